/* SPDX-License-Identifier: Apache-2.0 */
/* Times of spans where the kernel stops keeping time with the TSC while the program runs. */
#include "blackbox.h"
#include <dlfcn.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 20, MOST_FLUSHES = 5000, SOME_FLUSHES = 50, TOLERANCE_NS = 20000000 };
#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)

/* What the kernel says it keeps time with; NULL: nothing, as where there is no /sys. */
static const char *clocksource = "tsc";

/* The clocks of the kernel: `ns` at `from_ns` of the real one, then at a speed of their own. Since
 * the TSC is as it is, its rate changes with the speed. */
struct stretch {
    int64_t from_ns;
    int64_t ns;
    int64_t speed;
};
static struct stretch stretches[8] = {{0, 0, 1}};
static unsigned newest;
static int64_t ahead_ns; /* and how far all clocks went in no time */

static int (*real_gettime)(clockid_t, struct timespec *);

static int64_t real_ns(clockid_t clock)
{
    struct timespec now;
    real_gettime(clock, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* The time is read before the newest stretch is, which begins after it has been made known: so the
 * clocks go on without a step. */
static int64_t monotonic_ns(void)
{
    const int64_t now_ns = real_ns(CLOCK_MONOTONIC);
    const struct stretch *stretch = &stretches[__atomic_load_n(&newest, __ATOMIC_SEQ_CST)];
    if (now_ns < stretch->from_ns)
        stretch--;
    return stretch->ns + (now_ns - stretch->from_ns) * stretch->speed +
           __atomic_load_n(&ahead_ns, __ATOMIC_RELAXED);
}

/* Only ever faster: times never go back, so a curve that is ahead of a clock that got slower stays
 * so. */
static void go_on_faster(void)
{
    const struct stretch *last = &stretches[newest];
    const int64_t from_ns = real_ns(CLOCK_MONOTONIC) + NS_PER_MS;
    const int64_t ns = last->ns + (from_ns - last->from_ns) * last->speed;
    assert_true(newest + 1 < sizeof stretches / sizeof *stretches);
    stretches[newest + 1] = (struct stretch){from_ns, ns, last->speed + 1};
    __atomic_store_n(&newest, newest + 1, __ATOMIC_SEQ_CST);
    while (real_ns(CLOCK_MONOTONIC) < from_ns)
        sched_yield();
}

static int64_t later_ns[16]; /* than CLOCK_MONOTONIC, by clock */

static void __attribute__((constructor)) find_clocks(void)
{
    *(void **)&real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    later_ns[CLOCK_REALTIME] = real_ns(CLOCK_REALTIME) - real_ns(CLOCK_MONOTONIC);
    later_ns[CLOCK_BOOTTIME] = real_ns(CLOCK_BOOTTIME) - real_ns(CLOCK_MONOTONIC);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const bool is_followed =
        clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME || clock == CLOCK_REALTIME;
    if (real_gettime == NULL || !is_followed)
        return (int)syscall(SYS_clock_gettime, clock, now);
    const int64_t ns = monotonic_ns() + later_ns[clock];
    *now = (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
    return 0;
}

FILE *fopen(const char *path, const char *mode)
{
    static FILE *(*real)(const char *, const char *);
    if (strstr(path, "current_clocksource") == NULL) {
        if (real == NULL)
            *(void **)&real = dlsym(RTLD_NEXT, "fopen");
        return real(path, mode);
    }
    const char *says = __atomic_load_n(&clocksource, __ATOMIC_RELAXED);
    return says == NULL ? NULL : fmemopen((char *)(uintptr_t)says, strlen(says), "r");
}

static int refusals, warnings;

static void count_messages(void *state, otel_log_level level, const char *message)
{
    (void)state;
    if (level != OTEL_LOG_WARN)
        return;
    if (strstr(message, "OTEL_C_CLOCK") != NULL)
        __atomic_add_fetch(&refusals, 1, __ATOMIC_RELAXED);
    else if (strstr(message, "no longer keeps time") != NULL)
        __atomic_add_fetch(&warnings, 1, __ATOMIC_RELAXED);
}

/* An exporter that keeps how long the last span of each name lasted. */
static int64_t work_ns, outer_ns;

static otel_export_result keep_times(void *state, otel_export *call)
{
    otel_span_view span;
    (void)state;
    for (size_t i = 0; i < otel_batch_size(call->batch); i++) {
        otel_batch_span(call->batch, i, &span);
        *(span.name.data[0] == 'w' ? &work_ns : &outer_ns) = (int64_t)(span.end_ns - span.start_ns);
    }
    return OTEL_EXPORT_DONE;
}

static void have_clocks_read(otel_tracer *tracer)
{
    otel_span_end(otel_span_enter(tracer, "again", NULL));
    assert_int_equal(otel_flush(PATIENCE_MS), OTEL_OK);
}

/* False: this processor has no TSC that could be trusted. */
static bool start(bool is_simple)
{
    static const otel_exporter exporter =
        OTEL_EXPORTER(.name = "times", .export_batch = keep_times);
    __atomic_store_n(&clocksource, "tsc", __ATOMIC_RELAXED);
    refusals = warnings = 0;
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                      .simple = is_simple, .clock = "tsc")),
                     OTEL_OK);
    if (refusals == 0)
        return true;
    assert_int_equal(otel_shutdown(PATIENCE_MS), OTEL_OK);
    return false;
}

static void check(bool is_simple)
{
    if (!start(is_simple))
        skip();
    otel_tracer *tracer = otel_tracer_get("blackbox", NULL);
    const int64_t before = monotonic_ns();
    otel_span outer = otel_span_start(tracer, "outer", NULL);
    const int64_t started = monotonic_ns();
    have_clocks_read(tracer);

    __atomic_store_n(&clocksource, NULL, __ATOMIC_RELAXED);
    go_on_faster();
    for (int i = 0; i < SOME_FLUSHES; i++)
        have_clocks_read(tracer);
    assert_int_equal(warnings, 0); /* nothing is known */

    __atomic_store_n(&clocksource, "hpet", __ATOMIC_RELAXED);
    go_on_faster();
    for (int i = 0; __atomic_load_n(&warnings, __ATOMIC_RELAXED) == 0; i++) {
        assert_true(i < MOST_FLUSHES);
        have_clocks_read(tracer);
    }

    for (int i = 0; i < ROUNDS; i++) {
        const int64_t entering = monotonic_ns();
        otel_span span = otel_span_enter(tracer, "work", NULL);
        const int64_t entered = monotonic_ns();
        __atomic_add_fetch(&ahead_ns, i * NS_PER_MS, __ATOMIC_RELAXED);
        const int64_t ending = monotonic_ns();
        otel_span_end(span);
        const int64_t ended = monotonic_ns();
        assert_int_equal(otel_flush(PATIENCE_MS), OTEL_OK);
        assert_in_range(work_ns, ending - entered - 1, ended - entering + 1);
    }
    const int64_t ending = monotonic_ns();
    otel_span_end(outer);
    const int64_t ended = monotonic_ns();
    assert_int_equal(otel_flush(PATIENCE_MS), OTEL_OK);
    assert_in_range(outer_ns, ending - started - TOLERANCE_NS, ended - before + TOLERANCE_NS);
    assert_int_equal(warnings, 1);
    assert_int_equal(otel_shutdown(PATIENCE_MS), OTEL_OK);
}

static void the_worker_goes_over_to_the_clock_of_the_system(void **state)
{
    (void)state;
    check(false);
}

static void so_does_an_end_that_exports(void **state)
{
    (void)state;
    check(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_worker_goes_over_to_the_clock_of_the_system),
        cmocka_unit_test(so_does_an_end_that_exports),
    };
    otel_log_set_handler(count_messages, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
