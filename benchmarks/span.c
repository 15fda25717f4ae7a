/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/span.c - what a span costs the thread that makes it.
 *
 * The program is linked like a user's, against the shared libraries; span_cases.c has what
 * is measured. There are six worlds, each a process of its own that was forked before any
 * SDK started: without an SDK; with one that samples nothing; with one that samples one root of
 * 10,000; with one that samples everything and has no exporter; and twice with one that samples
 * everything and delivers it, through the batch processor, to an exporter that accepts and
 * forgets: with batches larger than a round, and with batches of the default size, which the
 * exporter thread takes away while spans are being made. A conductor asks
 * them in turn for one short round of one case, so that slow and fast times of the machine
 * meet all cases alike. Between the rounds everything is flushed, and in the end every span
 * must have become what its case says.
 *
 * Before the rounds that count there is one during which the exporter is held up. It
 * makes the SDK own as much memory as any round can need; an allocation after that is one
 * that spans keep causing. */
#include "benchmarks/bench.h"
#include "benchmarks/span_cases.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 301, QUICK_ROUNDS = 5, ROUND_NS = 500000, QUICK_ROUND_NS = 100000 };
enum {
    CALIBRATION_COUNT = 2000,
    MOST_A_ROUND = 1 << 20,
    MOST_SPANS_A_ROUND = 2000,
    QUEUE_SIZE = 1 << 21
};
enum { LARGE_BATCH = 1 << 17, DEFAULT_BATCH = 512 };
#define QUEUE_BYTES (INT64_C(1) << 32)

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

static void start_sdk(enum bench_world world)
{
    const otel_exporter exporter =
        OTEL_EXPORTER(.name = "accept_and_forget", .export_batch = accept_and_forget);
    const char *sampler = world == BENCH_UNSAMPLED ? "always_off"
                          : world == BENCH_RATIO   ? "parentbased_traceidratio"
                                                   : "always_on";
    const int64_t batch = world == BENCH_DRAINING ? DEFAULT_BATCH : LARGE_BATCH;
    bench_expect_ok(
        otel_start_with(OTEL_SDK_OPTIONS(.service_name = "bench", .exporters = &exporter,
                                         .exporter_count = world != BENCH_NO_EXPORTER,
                                         .traces_sampler = sampler, .traces_sampler_arg = "0.0001",
                                         .bsp_max_queue_size = QUEUE_SIZE,
                                         .bsp_max_export_batch_size = batch,
                                         .queue_max_bytes = QUEUE_BYTES)),
        "otel_start_with");
}

static void flush(void)
{
    bench_expect_ok(otel_flush(60000), "otel_flush");
}

static struct answer run_round(const struct question *question, int counter)
{
    const struct bench_case *asked = &bench_cases[question->index];
    const uint64_t instructions = bench_instructions_read(counter);
    const uint64_t allocations = bench_allocations();
    const uint64_t start_ns = bench_now_ns();
    asked->run(question->count);
    const uint64_t end_ns = bench_now_ns();
    return (struct answer){.ns = end_ns - start_ns,
                           .allocations = bench_allocations() - allocations,
                           .instructions = bench_instructions_read(counter) - instructions};
}

/* What must have become of the spans of a world. */
struct books {
    uint64_t delivered;
    uint64_t cancelled;
    uint64_t unsampled;
};

static void write_down(struct books *books, const struct question *question)
{
    const struct bench_case *asked = &bench_cases[question->index];
    books->delivered += question->count * asked->delivered;
    books->cancelled += question->count * asked->cancelled;
    if (asked->world == BENCH_UNSAMPLED || asked->world == BENCH_RATIO)
        books->unsampled += question->count;
}

/* Nobody else has asked the SDK for anything: its books must hold exactly our spans. */
static void check_books(enum bench_world world, struct books *books)
{
    otel_stats stats = {.size = sizeof stats};
    bench_expect_ok(otel_stats_read(0, &stats), "otel_stats_read");
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        if (stats.dropped[i] != 0)
            bench_fail("%llu spans were dropped: %s", (unsigned long long)stats.dropped[i],
                       otel_drop_reason_string((otel_drop_reason)i));
    if (world == BENCH_RATIO) { /* how many are sampled is drawn */
        books->delivered = stats.delivered;
        books->unsampled -= stats.delivered;
    }
    const struct books found = {stats.delivered, stats.withheld[OTEL_WITHHELD_CANCELLED],
                                stats.unsampled};
    if (memcmp(&found, books, sizeof found) != 0 || stats.open != 0 || stats.queued != 0)
        bench_fail("%llu spans should be delivered, %llu cancelled and %llu unsampled, and "
                   "%llu, %llu and %llu are",
                   (unsigned long long)books->delivered, (unsigned long long)books->cancelled,
                   (unsigned long long)books->unsampled, (unsigned long long)found.delivered,
                   (unsigned long long)found.cancelled, (unsigned long long)found.unsampled);
    bench_expect_ok(otel_shutdown(60000), "otel_shutdown");
}

static void live_in(enum bench_world world, int from_conductor, int to_conductor)
{
    struct question question;
    struct books books = {0};
    const int counter = bench_instructions_open();
    if (world != BENCH_NO_SDK)
        start_sdk(world);
    bench_cases_prepare(world);
    for (;;) {
        if (read(from_conductor, &question, sizeof question) != (ssize_t)sizeof question)
            _exit(1); /* the conductor is gone */
        if (question.count == 0)
            break;
        if (question.pile_up)
            bench_gate_set(&gate, true);
        const struct answer answer = run_round(&question, counter);
        bench_gate_set(&gate, false);
        write_down(&books, &question);
        if (world != BENCH_NO_SDK && world != BENCH_UNSAMPLED)
            flush();
        if (write(to_conductor, &answer, sizeof answer) != (ssize_t)sizeof answer)
            _exit(1);
    }
    if (world == BENCH_NO_EXPORTER)
        bench_expect_ok(otel_shutdown(60000), "otel_shutdown"); /* there are no books */
    else if (world != BENCH_NO_SDK)
        check_books(world, &books);
    _exit(0);
}

/* --- the conductor --- */

static struct {
    pid_t process;
    int questions; /* written by us */
    int answers;   /* read by us */
} worlds[BENCH_WORLDS];

static void make_world(enum bench_world world)
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
    const enum bench_world world = bench_cases[index].world;
    struct question question;
    memset(&question, 0, sizeof question);
    question.count = count;
    question.index = index;
    question.pile_up = pile_up;
    struct answer answer;
    if (write(worlds[world].questions, &question, sizeof question) != (ssize_t)sizeof question ||
        read(worlds[world].answers, &answer, sizeof answer) != (ssize_t)sizeof answer)
        bench_fail("the process for %s has ended", bench_cases[index].name);
    return answer;
}

static void end_world(enum bench_world world)
{
    struct question last;
    memset(&last, 0, sizeof last);
    int status = 0;
    if (write(worlds[world].questions, &last, sizeof last) != (ssize_t)sizeof last ||
        waitpid(worlds[world].process, &status, 0) < 0 || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 0)
        bench_fail("a process did not end well, so its figures are worth nothing");
}

static uint64_t whole_units(const struct bench_case *measured, uint64_t count)
{
    return (count + measured->unit - 1) / measured->unit * measured->unit;
}

/* How many operations make a round: of the wanted length; where spans are delivered, so few that
 * their lines stay in a second-level cache. */
static uint64_t calibrate(uint32_t index, double round_ns)
{
    const struct bench_case *measured = &bench_cases[index];
    const uint64_t first = whole_units(measured, CALIBRATION_COUNT);
    if (measured->delivered != 0)
        return whole_units(measured, MOST_SPANS_A_ROUND / measured->delivered);
    ask(index, first, false);
    double ns = (double)ask(index, first, false).ns / (double)first;
    if (ns < 0.1)
        ns = 0.1;
    const double count = round_ns / ns;
    return count < (double)first  ? first
           : count > MOST_A_ROUND ? MOST_A_ROUND
                                  : whole_units(measured, (uint64_t)count);
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

/* How far apart the cases are that should cost the same. */
static void report_family(const struct measured *measured, const char *family)
{
    double least_ns = 0;
    double most_ns = 0;
    for (size_t i = 0; i < bench_case_count; i++) {
        if (bench_cases[i].family == NULL || strcmp(bench_cases[i].family, family) != 0)
            continue;
        const double ns = measured[i].ns[0];
        if (least_ns == 0 || ns < least_ns)
            least_ns = ns;
        if (ns > most_ns)
            most_ns = ns;
    }
    bench_line_begin("span", family);
    bench_figure("least_min_ns", least_ns, 2);
    bench_figure("most_min_ns", most_ns, 2);
    bench_figure("flat_within_percent", (most_ns / least_ns - 1) * 100, 1);
    bench_line_end();
}

static struct measured *prepare(unsigned rounds, double round_ns)
{
    struct measured *measured = calloc(bench_case_count, sizeof *measured);
    if (measured == NULL)
        bench_fail("no memory");
    for (uint32_t i = 0; i < bench_case_count; i++) {
        measured[i].ns = calloc(rounds, sizeof *measured[i].ns);
        if (measured[i].ns == NULL)
            bench_fail("no memory");
        measured[i].count = calibrate(i, round_ns);
    }
    for (uint32_t i = 0; i < bench_case_count; i++)
        ask(i, measured[i].count + whole_units(&bench_cases[i], measured[i].count / 4), true);
    return measured;
}

int main(int count, char **arguments)
{
    const struct bench_options options = bench_options_read(count, arguments);
    const unsigned rounds = bench_rounds(&options, ROUNDS, QUICK_ROUNDS);

    signal(SIGPIPE, SIG_IGN);
    for (unsigned i = 0; i < BENCH_WORLDS; i++)
        make_world((enum bench_world)i);
    struct measured *measured = prepare(rounds, options.quick ? QUICK_ROUND_NS : ROUND_NS);
    for (unsigned round = 0; round < rounds; round++)
        for (uint32_t i = 0; i < bench_case_count; i++)
            measure(&measured[i], i, round);
    for (unsigned i = 0; i < BENCH_WORLDS; i++)
        end_world((enum bench_world)i);

    for (uint32_t i = 0; i < bench_case_count; i++)
        bench_sort(measured[i].ns, rounds);
    const double two_reads_ns = measured[0].ns[0];
    for (uint32_t i = 0; i < bench_case_count; i++)
        report(&measured[i], bench_cases[i].name, rounds, two_reads_ns);
    report_family(measured, "nested");
    report_family(measured, "sequential");
    for (uint32_t i = 0; i < bench_case_count; i++)
        free(measured[i].ns);
    free(measured);
    return 0;
}
