/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/span.c - what a span costs the thread that makes it.
 *
 * The program is linked like a user's, against the shared libraries, and calls nothing
 * but the public interface. There are four worlds, each a process of its own that was
 * forked before any SDK started: without an SDK; with one that samples nothing; and twice
 * with one that samples everything and delivers it, through the batch processor, to an
 * exporter that accepts and forgets: with batches larger than a round, and with batches of
 * the default size, which the exporter thread takes away while spans are being made. A
 * conductor asks them in turn for one short round of one case, so that slow and fast times
 * of the machine meet all cases alike. Between the rounds everything is flushed, and in
 * the end every single span must have been delivered.
 *
 * Before the rounds that count there is one during which the exporter is held up. It
 * makes the SDK own as much memory as any round can need; an allocation after that is one
 * that spans keep causing. */
#include "benchmarks/bench.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum { ROUNDS = 101, QUICK_ROUNDS = 5, ROUND_NS = 500000, QUICK_ROUND_NS = 100000 };
enum { CALIBRATION_COUNT = 2000, MOST_A_ROUND = 1 << 20, QUEUE_SIZE = 1 << 21 };
enum { LARGE_BATCH = 1 << 17, DEFAULT_BATCH = 512 };
#define QUEUE_BYTES (INT64_C(1) << 32)

/* SAMPLED: the exporter thread sets to work after each round. DRAINING: with batches of the
 * default size it works all the while, on memory that the measured thread wants back. */
enum world { NO_SDK, UNSAMPLED, SAMPLED, DRAINING, WORLDS };

static otel_tracer *tracer;
static volatile uint64_t sink; /* keeps what nobody else reads from being left out */

static inline uint64_t read_counter(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return bench_now_ns();
#endif
}

static void two_tsc_reads(uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t start = read_counter();
        sum += read_counter() - start;
    }
    sink = sum;
}

static void two_clock_gettime(uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct timespec start;
        struct timespec end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        clock_gettime(CLOCK_MONOTONIC, &end);
        sum += (uint64_t)(end.tv_nsec - start.tv_nsec);
    }
    sink = sum;
}

static void enter_end(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const otel_span span = otel_span_enter(tracer, "GET /users", NULL);
        otel_span_end(span);
    }
}

static void enter_end_5attr(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const otel_span span = otel_span_enter(tracer, "GET /users", NULL);
        bench_set_5_attributes(span);
        otel_span_end(span);
    }
}

static void start_end(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const otel_span span = otel_span_start(tracer, "GET /users", NULL);
        otel_span_end(span);
    }
}

static void start_end_5attr(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const otel_span span = otel_span_start(tracer, "GET /users", NULL);
        bench_set_5_attributes(span);
        otel_span_end(span);
    }
}

/* Spans inside another one, a hundred for each: what most spans of a program are. */
static void enter_end_child(uint64_t count)
{
    enum { CHILDREN = 100 };
    for (uint64_t i = 0; i < count / CHILDREN; i++) {
        const otel_span parent = otel_span_enter(tracer, "request", NULL);
        enter_end(CHILDREN - 1);
        otel_span_end(parent);
    }
    enter_end(count % CHILDREN);
}

static const struct bench_case {
    const char *name;
    enum world world;
    void (*run)(uint64_t count);
} cases[] = {
    {"two_tsc_reads", NO_SDK, two_tsc_reads},
    {"two_clock_gettime", NO_SDK, two_clock_gettime},
    {"enter_end", SAMPLED, enter_end},
    {"enter_end_child", SAMPLED, enter_end_child},
    {"enter_end_draining", DRAINING, enter_end},
    {"enter_end_5attr", SAMPLED, enter_end_5attr},
    {"start_end", SAMPLED, start_end},
    {"start_end_5attr", SAMPLED, start_end_5attr},
    {"unsampled", UNSAMPLED, enter_end},
    {"unsampled_5attr", UNSAMPLED, enter_end_5attr},
    {"no_sdk", NO_SDK, enter_end},
};
enum { CASES = sizeof cases / sizeof *cases };

/* --- the worlds: each in its own process --- */

/* What the conductor asks of a world; a count of zero ends it. */
struct question {
    uint64_t count;
    uint32_t index; /* of the case */
    bool pile_up;   /* hold the exporter up meanwhile */
};

struct answer {
    uint64_t ns;
    uint64_t allocations;
    uint64_t instructions; /* 0: they cannot be counted here */
};

static struct bench_gate gate = BENCH_GATE_OPEN;

static otel_export_result accept_and_forget(void *state, otel_export *call)
{
    (void)state;
    (void)call;
    bench_gate_pass(&gate);
    return OTEL_EXPORT_DONE;
}

static void start_sdk(enum world world)
{
    const otel_exporter exporter =
        OTEL_EXPORTER(.name = "accept_and_forget", .export_batch = accept_and_forget);
    const char *sampler = world == UNSAMPLED ? "always_off" : "always_on";
    const int64_t batch = world == DRAINING ? DEFAULT_BATCH : LARGE_BATCH;
    bench_expect_ok(
        otel_start_with(
            OTEL_SDK_OPTIONS(.service_name = "bench", .exporters = &exporter, .exporter_count = 1,
                             .traces_sampler = sampler, .bsp_max_queue_size = QUEUE_SIZE,
                             .bsp_max_export_batch_size = batch, .queue_max_bytes = QUEUE_BYTES)),
        "otel_start_with");
}

static void flush(void)
{
    bench_expect_ok(otel_flush(60000), "otel_flush");
}

static struct answer run_round(const struct question *question, int counter)
{
    const struct bench_case *asked = &cases[question->index];
    const uint64_t instructions = bench_instructions_read(counter);
    const uint64_t allocations = bench_allocations();
    const uint64_t start_ns = bench_now_ns();
    asked->run(question->count);
    const uint64_t end_ns = bench_now_ns();
    return (struct answer){.ns = end_ns - start_ns,
                           .allocations = bench_allocations() - allocations,
                           .instructions = bench_instructions_read(counter) - instructions};
}

/* Nobody else has asked the SDK for anything: its books must hold exactly our spans. */
static void check_books(enum world world, uint64_t spans)
{
    if (world == SAMPLED || world == DRAINING)
        bench_expect_delivered(spans);
    otel_stats stats = {.size = sizeof stats};
    bench_expect_ok(otel_stats_read(0, &stats), "otel_stats_read");
    if (world == UNSAMPLED && (stats.unsampled != spans || stats.ended != 0))
        bench_fail("%llu spans were made, but %llu were unsampled and %llu ended",
                   (unsigned long long)spans, (unsigned long long)stats.unsampled,
                   (unsigned long long)stats.ended);
    bench_expect_ok(otel_shutdown(60000), "otel_shutdown");
}

static void live_in(enum world world, int from_conductor, int to_conductor)
{
    struct question question;
    uint64_t spans = 0;
    const int counter = bench_instructions_open();
    if (world != NO_SDK)
        start_sdk(world);
    tracer = otel_tracer_get("bench", "1.0");
    for (;;) {
        if (read(from_conductor, &question, sizeof question) != (ssize_t)sizeof question)
            _exit(1); /* the conductor is gone */
        if (question.count == 0)
            break;
        if (question.pile_up)
            bench_gate_set(&gate, true);
        const struct answer answer = run_round(&question, counter);
        bench_gate_set(&gate, false);
        spans += question.count;
        if (world == SAMPLED || world == DRAINING)
            flush();
        if (write(to_conductor, &answer, sizeof answer) != (ssize_t)sizeof answer)
            _exit(1);
    }
    if (world != NO_SDK)
        check_books(world, spans);
    _exit(0);
}

/* --- the conductor --- */

static struct {
    pid_t process;
    int questions; /* written by us */
    int answers;   /* read by us */
} worlds[WORLDS];

static void make_world(enum world world)
{
    int questions[2];
    int answers[2];
    if (pipe(questions) != 0 || pipe(answers) != 0)
        bench_fail("pipe: %s", strerror(errno));
    const pid_t conductor = getpid();
    const pid_t child = fork();
    if (child < 0)
        bench_fail("fork: %s", strerror(errno));
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != conductor)
            _exit(1);
        close(questions[1]);
        close(answers[0]);
        live_in(world, questions[0], answers[1]);
    }
    close(questions[0]);
    close(answers[1]);
    worlds[world].process = child;
    worlds[world].questions = questions[1];
    worlds[world].answers = answers[0];
}

static struct answer ask(uint32_t index, uint64_t count, bool pile_up)
{
    const enum world world = cases[index].world;
    struct question question;
    memset(&question, 0, sizeof question);
    question.count = count;
    question.index = index;
    question.pile_up = pile_up;
    struct answer answer;
    if (write(worlds[world].questions, &question, sizeof question) != (ssize_t)sizeof question ||
        read(worlds[world].answers, &answer, sizeof answer) != (ssize_t)sizeof answer)
        bench_fail("the process for %s has ended", cases[index].name);
    return answer;
}

static void end_world(enum world world)
{
    struct question last;
    memset(&last, 0, sizeof last);
    int status = 0;
    if (write(worlds[world].questions, &last, sizeof last) != (ssize_t)sizeof last ||
        waitpid(worlds[world].process, &status, 0) < 0 || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 0)
        bench_fail("a process did not end well, so its figures are worth nothing");
}

/* How many operations make a round of the wanted length. */
static uint64_t calibrate(uint32_t index, double round_ns)
{
    ask(index, CALIBRATION_COUNT, false);
    double ns = (double)ask(index, CALIBRATION_COUNT, false).ns / CALIBRATION_COUNT;
    if (ns < 0.1)
        ns = 0.1;
    const double count = round_ns / ns;
    return count < CALIBRATION_COUNT ? CALIBRATION_COUNT
           : count > MOST_A_ROUND    ? MOST_A_ROUND
                                     : (uint64_t)count;
}

struct measured {
    double *ns; /* an operation, one figure a round */
    double least_instructions;
    uint64_t allocations;
    uint64_t count; /* operations in a round */
};

static void measure(struct measured *measured, uint32_t index, unsigned round)
{
    const struct answer answer = ask(index, measured->count, false);
    const double instructions = (double)answer.instructions / (double)measured->count;
    measured->ns[round] = (double)answer.ns / (double)measured->count;
    measured->allocations += answer.allocations;
    if (round == 0 || instructions < measured->least_instructions)
        measured->least_instructions = instructions;
}

static void report(const struct measured *measured, const char *name, unsigned rounds,
                   double two_reads_ns)
{
    bench_line_begin("span", name);
    bench_figure("min_ns", measured->ns[0], 2);
    bench_figure("median_ns", bench_median(measured->ns, rounds), 2);
    bench_figure("ratio_to_two_tsc_reads", measured->ns[0] / two_reads_ns, 3);
    bench_figure("allocations",
                 (double)measured->allocations / ((double)measured->count * (double)rounds), 6);
    if (measured->least_instructions > 0)
        bench_figure("instructions", measured->least_instructions, 1);
    else
        bench_null("instructions");
    bench_line_end();
}

int main(int count, char **arguments)
{
    const struct bench_options options = bench_options_read(count, arguments);
    const unsigned rounds = options.rounds != 0 ? options.rounds
                            : options.quick     ? QUICK_ROUNDS
                                                : ROUNDS;
    struct measured measured[CASES] = {0};

    signal(SIGPIPE, SIG_IGN);
    for (unsigned i = 0; i < WORLDS; i++)
        make_world((enum world)i);
    for (uint32_t i = 0; i < CASES; i++) {
        measured[i].ns = calloc(rounds, sizeof *measured[i].ns);
        if (measured[i].ns == NULL)
            bench_fail("no memory");
        measured[i].count = calibrate(i, options.quick ? QUICK_ROUND_NS : ROUND_NS);
    }
    for (uint32_t i = 0; i < CASES; i++)
        ask(i, measured[i].count + measured[i].count / 4, true);
    for (unsigned round = 0; round < rounds; round++)
        for (uint32_t i = 0; i < CASES; i++)
            measure(&measured[i], i, round);
    for (unsigned i = 0; i < WORLDS; i++)
        end_world((enum world)i);

    for (uint32_t i = 0; i < CASES; i++)
        bench_sort(measured[i].ns, rounds);
    const double two_reads_ns = measured[0].ns[0];
    for (uint32_t i = 0; i < CASES; i++) {
        report(&measured[i], cases[i].name, rounds, two_reads_ns);
        free(measured[i].ns);
    }
    return 0;
}
