/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/fork.c - children of every kind, from a program that is busy tracing: each one
 * exports its own spans and nothing of its parent's, and the parent exports all of its own.
 *
 * The exporter marks spans by number in memory that all processes share, one column for the
 * process that started the SDK and one for its descendants. So the oracle is outside of all of
 * them, and sees what is delivered twice, or by the wrong one. */
#include "common/base/atomic.h"
#include "tests/support/oracle.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    HOT = 8,
    AT_ONCE = 8, /* children */
    SPANS = 100, /* of each */
    HANG_S = 60, /* of a child, before it counts as one */
    QUEUE = 16384,
    LINES_BYTES = 1 << 20,
    PARENTS = 1 << 24 /* numbers for the parent; children's come behind them */
};

struct shared {
    uint32_t next; /* number of a child's span; atomic, all of these */
    uint32_t children_spans;
    uint32_t foreign; /* deliveries of what is the other's */
    uint32_t twice;
    uint32_t unnumbered;
    uint32_t blocked; /* the exporter waits while it is set */
};

static struct shared *shared;
static uint8_t *seen; /* by number */
static uint32_t numbers;
static uint64_t (*ids)[3];
static otel_tracer *tracer;
static uint32_t next_of_parent; /* atomic */
static uint32_t stop;           /* atomic */

/* The runtimes of sanitizers have locks of their own, which in a child stay as other threads
 * had them: AddressSanitizer's allocator has, so there nobody else allocates when we fork. */
#if defined(OTELI_TSAN) || defined(__SANITIZE_ADDRESS__)
static const bool may_fork_raw = false;
#else
static const bool may_fork_raw = true;
#endif
#if defined(__SANITIZE_ADDRESS__)
static const bool may_fork_busy = false;
#else
static const bool may_fork_busy = true;
#endif

static void *share(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    STRESS_CHECK(memory != MAP_FAILED);
    return memory;
}

/* --- the exporter --- */

static const char of_starter, of_descendant; /* states */

static otel_export_result export_batch(void *state, otel_export *call)
{
    otel_span_view span;
    while (oteli_load_acquire_32(&shared->blocked) != 0)
        stress_sleep_us(100);
    for (size_t i = 0; i < otel_batch_size(call->batch); i++) {
        otel_batch_span(call->batch, i, &span);
        const uint32_t number = oracle_number(span.name);
        if (number >= numbers)
            oteli_add_full_32(&shared->unnumbered, 1);
        else if ((number < PARENTS) != (state == &of_starter))
            oteli_add_full_32(&shared->foreign, 1);
        else if (__atomic_fetch_add(&seen[number], 1, __ATOMIC_SEQ_CST) != 0)
            oteli_add_full_32(&shared->twice, 1);
        else if (number >= PARENTS)
            oteli_add_full_32(&shared->children_spans, 1);
    }
    return OTEL_EXPORT_DONE;
}

static otel_status renew(const void *state, otel_exporter *renewed)
{
    (void)state;
    *renewed = OTEL_EXPORTER(.name = "shared_memory", .state = (void *)(uintptr_t)&of_descendant,
                             .export_batch = export_batch, .renew = renew);
    return OTEL_OK;
}

static otel_status start(const char *state)
{
    otel_exporter exporter;
    (void)!renew(NULL, &exporter);
    exporter.state = (void *)(uintptr_t)state;
    const otel_status status = otel_start_with(
        OTEL_SDK_OPTIONS(.service_name = "fork", .exporters = &exporter, .exporter_count = 1,
                         .bsp_schedule_delay = 20, .bsp_max_queue_size = QUEUE,
                         .queue_max_bytes = LINES_BYTES, .log_level = "none"));
    return status == OTEL_OK ? otel_flush(60000) : status; /* its thread has settled down */
}

/* --- spans with numbers --- */

static otel_span begin_of_parent(void)
{
    return oracle_enter(tracer, oteli_add_full_32(&next_of_parent, 1));
}

/* In a child: so many spans, under whatever is current. */
static void trace(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const uint32_t number = oteli_add_full_32(&shared->next, 1);
        const otel_span span =
            i % 3 == 2 ? oracle_start(tracer, number) : oracle_enter(tracer, number);
        otel_span_set_int(span, "i", (int64_t)i);
        otel_span_set_string(span, "text", "something of a child");
        otel_span_end(span);
    }
}

/* In a child, once its spans have ended: 0 if so many and no others were exported. */
static int check_delivered(uint64_t count, bool shut_down)
{
    const otel_status status = shut_down ? otel_shutdown(60000) : otel_flush(60000);
    otel_stats stats = {.size = sizeof stats};
    const bool is_right = otel_stats_read(0, &stats) == OTEL_OK && stats.started == count &&
                          stats.delivered == count && stats.ended == count && stats.open == 0;
    if (status == OTEL_OK && is_right)
        return 0;
    char text[256];
    otel_stats_describe(&stats, text, sizeof text);
    fprintf(stderr, "a child of %d: %s: started %u, ended %u, open %u, %s; expected %u\n",
            (int)getppid(), otel_status_string(status), (unsigned)stats.started,
            (unsigned)stats.ended, (unsigned)stats.open, text, (unsigned)count);
    return 10;
}

static pid_t raw_fork(void)
{
#if defined(SYS_fork)
    return (pid_t)syscall(SYS_fork);
#else
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif
}

/* Run `life` in a child that does not live longer than HANG_S. */
static pid_t spawn(int (*life)(unsigned number), unsigned number, pid_t (*how)(void))
{
    const pid_t child = how();
    STRESS_CHECK(child >= 0);
    if (child == 0) {
        alarm(HANG_S);
        _exit(life(number));
    }
    return child;
}

static void reap(pid_t child)
{
    int status = -1;
    while (waitpid(child, &status, 0) != child)
        continue;
    if (status != 0)
        fprintf(stderr, "a child ended with status %#x\n", (unsigned)status);
    STRESS_CHECK(status == 0);
}

static void run(int (*life)(unsigned number), unsigned count, pid_t (*how)(void))
{
    pid_t children[AT_ONCE] = {0};
    for (unsigned i = 0; i < count + AT_ONCE; i++) {
        if (children[i % AT_ONCE] != 0)
            reap(children[i % AT_ONCE]);
        children[i % AT_ONCE] = i < count ? spawn(life, i, how) : 0;
    }
}

/* --- what children do --- */

static int trace_and_end(unsigned number)
{
    const bool shut_down = number % 2 == 0;
    trace(SPANS);
    return check_delivered(SPANS, shut_down);
}

static void *trace_on_thread(void *gate)
{
    pthread_barrier_wait(gate);
    trace(SPANS / 4);
    return NULL;
}

static int race_for_the_first(unsigned number)
{
    (void)number;
    pthread_t threads[HOT];
    pthread_barrier_t gate;
    pthread_barrier_init(&gate, NULL, HOT);
    for (unsigned i = 0; i < HOT; i++)
        if (pthread_create(&threads[i], NULL, trace_on_thread, &gate) != 0)
            return 1;
    stress_join(threads, HOT);
    return check_delivered(HOT * (SPANS / 4), true);
}

/* Harmless is what it has to be: it has no SDK, and everything does nothing. */
static int live_raw(unsigned number)
{
    trace(number % 4);
    if (otel_tracer_enabled(tracer) || otel_flush(60000) != OTEL_OK)
        return 1;
    return otel_shutdown(60000) != OTEL_OK;
}

/* --- the parent --- */

static void *trace_hot(void *argument)
{
    const uintptr_t thread = (uintptr_t)argument;
    void *piece = NULL;
    while (oteli_load_relaxed_32(&stop) == 0) {
        const bool has_number = oteli_load_relaxed_32(&next_of_parent) < PARENTS - 1000;
        const otel_span outer =
            has_number ? begin_of_parent() : otel_span_enter(tracer, "without a number", NULL);
        const otel_span inner = otel_span_start(tracer, "inner", NULL);
        otel_span_set_string(inner, "key", "value");
        otel_span_end(inner);
        otel_span_end(outer);
        if (thread < 2) { /* and the allocator is never left alone */
            free(piece);
            piece = malloc(64 + (size_t)(uintptr_t)outer.opaque[2] % 4000);
        }
    }
    free(piece);
    return NULL;
}

static void check_parent(void)
{
    STRESS_CHECK(shared->foreign == 0);
    STRESS_CHECK(shared->twice == 0);
    for (uint32_t number = PARENTS; number < shared->next; number++)
        STRESS_CHECK(seen[number] <= 1);
}

static void end_parent(void)
{
    STRESS_CHECK(otel_shutdown(60000) != OTEL_ERROR_TIMEOUT);
    const otel_stats stats = stress_stats();
    stress_check_sums(&stats, true);
    check_parent();
}

static void count_children(uint32_t before, uint32_t spans)
{
    STRESS_CHECK(shared->children_spans - before == spans);
    check_parent();
}

/* Threads at full speed, an open span, and children from the midst of it. */
static void test_hot_parent(unsigned children)
{
    pthread_t threads[HOT];
    STRESS_CHECK(start(&of_starter) == OTEL_OK);
    oteli_store_relaxed_32(&stop, 0);
    stress_start(threads, HOT, trace_hot);
    const uint32_t before = shared->children_spans;
    const otel_span open = begin_of_parent();
    run(trace_and_end, children, fork);
    otel_span_end(open);
    count_children(before, children * SPANS);
    if (may_fork_raw)
        run(live_raw, 16, raw_fork);
    oteli_store_relaxed_32(&stop, 1);
    stress_join(threads, HOT);
    end_parent();
}

static void *fork_here(void *argument)
{
    (void)argument;
    const otel_span open = begin_of_parent();
    reap(spawn(trace_and_end, 0, fork));
    reap(spawn(trace_and_end, 1, fork));
    otel_span_end(open);
    return NULL;
}

static void test_quiet_parent(void)
{
    pthread_t thread;
    STRESS_CHECK(start(&of_starter) == OTEL_OK);
    const uint32_t before = shared->children_spans;
    STRESS_CHECK(pthread_create(&thread, NULL, fork_here, NULL) == 0);
    pthread_join(thread, NULL);
    run(race_for_the_first, 8, fork);
    count_children(before, 2 * SPANS + 8 * HOT * (SPANS / 4));
    otel_span_end(begin_of_parent());
    end_parent();
}

/* --- ids --- */

static unsigned ids_each;

static int write_ids(unsigned child)
{
    for (unsigned i = 0; i < ids_each; i++) {
        const otel_span span = otel_span_enter(tracer, "id", OTEL_SPAN_OPTIONS(.root = true));
        memcpy(ids[(size_t)child * ids_each + i], span.opaque, sizeof *ids);
        otel_span_end(span);
    }
    return otel_tracer_enabled(tracer) ? 0 : 1;
}

static int start_and_write_ids(unsigned child)
{
    if (start(&of_descendant) != OTEL_OK)
        return 1;
    return write_ids(child);
}

static int by_trace(const void *a, const void *b)
{
    return memcmp(a, b, sizeof *ids);
}

static int by_span(const void *a, const void *b)
{
    const uint64_t left = (*(const uint64_t(*)[3])a)[2];
    const uint64_t right = (*(const uint64_t(*)[3])b)[2];
    return left < right ? -1 : left > right;
}

static void test_ids(unsigned children, unsigned each)
{
    const size_t count = (size_t)(children + 1) * each;
    ids_each = each;
    ids = share(count * sizeof *ids);
    STRESS_CHECK(start(&of_starter) == OTEL_OK);
    STRESS_CHECK(write_ids(0) == 0);
    for (unsigned i = 1; i <= children; i++) {
        const bool is_raw = may_fork_raw && i % 4 == 0;
        reap(spawn(is_raw ? start_and_write_ids : write_ids, i, is_raw ? raw_fork : fork));
    }
    qsort(ids, count, sizeof *ids, by_trace);
    for (size_t i = 1; i < count; i++)
        STRESS_CHECK(memcmp(ids[i - 1], ids[i], 16) != 0 && ids[i][2] != 0);
    qsort(ids, count, sizeof *ids, by_span);
    for (size_t i = 1; i < count; i++)
        STRESS_CHECK(ids[i - 1][2] != ids[i][2]);
    munmap(ids, count * sizeof *ids);
    end_parent();
}

/* --- forks in signal handlers, over calls of ours --- */

static volatile sig_atomic_t forks_left;
static volatile sig_atomic_t is_child;
static volatile pid_t last_child;

static void fork_in_handler(int signal)
{
    (void)signal;
    if (forks_left <= 0 || is_child || last_child != 0)
        return;
    forks_left--;
    const pid_t child = fork();
    if (child == 0) {
        alarm(HANG_S);
        is_child = 1;
    } else {
        last_child = child;
    }
}

/* The C library's fork() must not interrupt its malloc(). So all lines that there may be are
 * made before, and nothing here allocates any more. */
static void use_up_all_memory(void)
{
    oteli_store_release_32(&shared->blocked, 1);
    for (int i = 0; i < 2 * QUEUE; i++)
        otel_span_end(otel_span_enter(tracer, "a name that makes it somewhat longer", NULL));
    oteli_store_release_32(&shared->blocked, 0);
    STRESS_CHECK(otel_flush(60000) != OTEL_ERROR_TIMEOUT);
    STRESS_CHECK(stress_stats().dropped[OTEL_DROP_BYTE_LIMIT] != 0);
}

static void test_signal_handler(unsigned forks)
{
    STRESS_CHECK(start(&of_starter) == OTEL_OK);
    use_up_all_memory();
    const struct sigaction action = {.sa_handler = fork_in_handler, .sa_flags = SA_RESTART};
    const struct itimerval every = {{0, 1300}, {0, 1300}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    sigaction(SIGVTALRM, &action, NULL);
    forks_left = (sig_atomic_t)forks;
    setitimer(ITIMER_VIRTUAL, &every, NULL);
    while (forks_left > 0 || last_child != 0) {
        const otel_span outer = otel_span_enter(tracer, "outer", NULL);
        otel_span_set_int(outer, "k", 1);
        otel_span_end(otel_span_enter(tracer, "inner", NULL));
        otel_span_end(outer);
        if (is_child) {
            trace(10);
            const uint32_t exported = shared->children_spans;
            _exit(otel_shutdown(60000) == OTEL_OK && shared->children_spans > exported ? 0 : 1);
        }
        if (last_child != 0) {
            reap(last_child);
            last_child = 0;
        }
    }
    setitimer(ITIMER_VIRTUAL, &never, NULL);
    signal(SIGVTALRM, SIG_DFL);
    end_parent();
}

/* --- forks while the SDK comes and goes --- */

static void *start_and_stop(void *argument)
{
    (void)argument;
    while (oteli_load_relaxed_32(&stop) == 0) {
        const otel_status status = start(&of_starter);
        STRESS_CHECK(status == OTEL_OK || status == OTEL_ERROR_EXPORT_FAILED);
        otel_span_end(otel_span_enter(tracer, "in between", NULL));
        (void)!otel_shutdown(60000);
    }
    return NULL;
}

static void *flush_often(void *argument)
{
    (void)argument;
    while (oteli_load_relaxed_32(&stop) == 0)
        (void)!otel_flush(60000);
    return NULL;
}

static int live_in_between(unsigned number)
{
    trace(1);
    const bool has_sdk = otel_tracer_enabled(tracer);
    trace(4);
    const otel_status status = otel_flush(60000);
    if (has_sdk)
        return check_delivered(5, number % 2 == 0);
    return status != OTEL_OK && status != OTEL_ERROR_NOT_STARTED;
}

static void test_lifecycle(unsigned children)
{
    pthread_t threads[2];
    oteli_store_relaxed_32(&stop, 0);
    STRESS_CHECK(pthread_create(&threads[0], NULL, start_and_stop, NULL) == 0);
    STRESS_CHECK(pthread_create(&threads[1], NULL, flush_often, NULL) == 0);
    run(live_in_between, children, fork);
    oteli_store_relaxed_32(&stop, 1);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    check_parent();
}

/* spec: P14 */
int main(int argc, char **argv)
{
    const unsigned scale = stress_scale(argc, argv, 50);
    const unsigned children = 200 * scale;
    numbers = PARENTS + children * SPANS + (1u << 20);
    shared = share(sizeof *shared);
    seen = share(numbers);
    shared->next = PARENTS;
    tracer = otel_tracer_get("stress", NULL);

    test_quiet_parent();
    test_ids(scale == 1 ? 40 : 1000, scale == 1 ? 200 : 1000);
    test_signal_handler(40 * scale);
    if (may_fork_busy) {
        test_lifecycle(40 * scale);
        test_hot_parent(children);
    }
    printf("%u spans of children\n", (unsigned)shared->children_spans);
    return 0;
}
