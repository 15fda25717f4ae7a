/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/lifecycle_test.c - specification of sdk/lifecycle/lifecycle.c: start, flush and
 * shut down with a real worker; where and when a program may do so; and the exporter thread. Its
 * tick is far away, so that only what a test asks for happens. */
#include "sdk/engine/current_engine.h"
#include "sdk/lifecycle/lifecycle.h"
#include "tests/support/faked.h"
#include "tests/support/leaks.h"
#include "tests/support/traced.h"
#include "tests/support/unit.h"

#include <otel/record.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static otel_status start(bool simple)
{
    return faked_start(1, &(otel_sdk_options){.simple = simple, .clock = "monotonic"});
}

AROUND_EACH(faked_begin, faked_end);

/* spec: P10 P11 P16 */
TEST(a_flush_and_a_shutdown_deliver_what_has_ended_and_the_exporter_is_freed)
{
    assert_int_equal(start(false), OTEL_OK);
    faked_span("a");
    faked_span("b");
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    assert_string_equal(fake->text, "a b|");
    const otel_span open = otel_span_enter(otel_tracer_get("test", NULL), "open", NULL);
    faked_span("c");
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK); /* it does not wait for what is open */
    assert_string_equal(fake->text, "a b|c|");
    otel_span_end(open);

    assert_int_equal(otel_shutdown(INT64_MAX), OTEL_OK);

    assert_string_equal(fake->text, "a b|c|open|");
    assert_int_equal(fake->frees, 1);
    assert_true(fake->wakes >= 1);
}

/* spec: P11 */
TEST(before_the_start_and_after_a_shutdown_every_call_says_so)
{
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned k = 0; k < 3; k++) {
            assert_int_equal(otel_flush(FOREVER_MS), OTEL_ERROR_NOT_STARTED);
            assert_int_equal(otel_flush(0), OTEL_ERROR_NOT_STARTED);
            assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_ERROR_NOT_STARTED);
            assert_int_equal(otel_shutdown(0), OTEL_ERROR_NOT_STARTED);
        }
        assert_int_equal(start(false), OTEL_OK);
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    }
}

TEST(losses_and_failures_are_the_result_of_a_flush_and_of_a_shutdown)
{
    fake->reject = 1;
    assert_int_equal(start(false), OTEL_OK);
    faked_span("a");
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    fake->flush_status = OTEL_ERROR_SYSTEM;
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);
    fake->flush_status = OTEL_OK;
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    faked_span("b");

    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);
}

/* spec: P10 */
TEST(a_flush_does_not_wait_longer_than_it_may_and_is_done_all_the_same)
{
    fake->during = faked_hold;
    assert_int_equal(start(false), OTEL_OK);
    faked_span("a");

    assert_int_equal(otel_flush(0), OTEL_ERROR_TIMEOUT);
    faked_wait_until_held();
    assert_int_equal(otel_flush(1), OTEL_ERROR_TIMEOUT);
    assert_int_equal(otel_flush(INT64_MIN), OTEL_ERROR_TIMEOUT);
    faked_let_go();
    assert_int_equal(otel_flush(INT64_MAX), OTEL_OK);

    assert_string_equal(fake->text, "a|");
}

/* The worker that was given up has come back. */
static void wait_until_left(const struct oteli_engine *engine)
{
    while (oteli_load_acquire_32(&engine->done) == 0)
        sched_yield();
}

/* spec: P11 */
TEST(a_shutdown_does_not_wait_for_an_exporter_that_hangs_and_another_sdk_can_run_meanwhile)
{
    struct fake_exporter *const second = &fakes[1];
    const otel_exporter exporter = fake_exporter(second);
    fake->during = faked_hold;
    assert_int_equal(start(false), OTEL_OK);
    faked_span("a");
    (void)!otel_flush(0);
    faked_wait_until_held();
    for (unsigned i = 0; i < 500; i++)
        faked_span("old");
    assert_int_equal(otel_shutdown(1), OTEL_ERROR_TIMEOUT);
    assert_string_equal(faked_sums(0), "501 started, 501 ended: delivered 0, dropped 501 "
                                       "(shutdown_timeout 501)");
    const struct oteli_engine *const old = oteli_current.engine;

    assert_int_equal(
        otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                         .bsp_schedule_delay = FOREVER_MS, .log_level = "none")),
        OTEL_OK);
    for (unsigned i = 0; i < 300; i++)
        faked_span("new");
    faked_let_go();
    wait_until_left(old);
    for (unsigned i = 0; i < 300; i++)
        faked_span("new");
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_int_equal(second->spans, 600);
    assert_null(strstr(second->text, "old"));
    assert_int_equal(fake->batches, 1);
}

TEST(neither_flush_nor_shutdown_wait_for_a_simple_export_that_hangs)
{
    static char name[] = "a";
    pthread_t thread;
    fake->during = faked_hold;
    assert_int_equal(start(true), OTEL_OK);
    assert_int_equal(pthread_create(&thread, NULL, faked_span_of_thread, name), 0);
    faked_wait_until_held();

    assert_int_equal(otel_flush(1), OTEL_ERROR_TIMEOUT);
    assert_int_equal(faked_stats(0).ended, 1);
    assert_int_equal(otel_shutdown(1), OTEL_ERROR_TIMEOUT);
    assert_int_equal(faked_stats(0).dropped[OTEL_DROP_SHUTDOWN_TIMEOUT], 1);

    faked_let_go();
    assert_int_equal(pthread_join(thread, NULL), 0);
}

TEST(a_disabled_sdk_starts_and_stops_and_does_nothing)
{
    assert_int_equal(faked_start(1, &(otel_sdk_options){.sdk_disabled = "true"}), OTEL_OK);
    assert_int_equal(fake->frees, 1);
    faked_span("a");
    assert_int_equal(otel_flush(0), OTEL_OK);
    assert_int_equal(faked_start(1, &(otel_sdk_options){.sdk_disabled = "true"}),
                     OTEL_ERROR_ALREADY_STARTED);
    assert_int_equal(otel_shutdown(0), OTEL_OK);
    assert_int_equal(otel_shutdown(0), OTEL_ERROR_NOT_STARTED);

    assert_int_equal(fake->batches, 0);
}

/* The exporter is adopted: freed once, whatever fails. */
/* spec: Q3 */
TEST(every_allocation_of_a_start_may_fail)
{
    for (unsigned way = 0; way < 3; way++) { /* with a thread, simple, to be polled */
        bool has_failed = true;
        for (size_t nth = 1; has_failed; nth++) {
            memset(fake, 0, sizeof *fake);
            oteli_leaks_begin();
            oteli_leaks_fail_at(nth);
            const otel_status status = faked_start(1, &(otel_sdk_options){.simple = way == 1,
                                                                          .threadless = way == 2,
                                                                          .clock = "monotonic"});
            has_failed = oteli_leaks_failed();
            if (status == OTEL_OK)
                assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
            else
                assert_int_equal(status, OTEL_ERROR_NO_MEMORY);
            assert_int_equal(fake->frees, 1);
            faked_restart();
            oteli_leaks_check();
        }
    }
    oteli_leaks_begin();
}

/* spec: Q5 */
TEST(options_that_cannot_be_free_the_exporter_too)
{
    assert_int_equal(faked_start(1, &(otel_sdk_options){.traces_sampler = "no such"}),
                     OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(fake->frees, 1);
}

/* ---- from where
 * ------------------------------------------------------------------------------- */

static void shut_down_at_exit(void)
{
    faked_span("at exit");
    const bool is_flushed = otel_flush(FOREVER_MS) == OTEL_OK;
    const bool is_stopped = otel_shutdown(FOREVER_MS) == OTEL_OK;
    const bool is_over = otel_shutdown(FOREVER_MS) == OTEL_ERROR_NOT_STARTED &&
                         otel_flush(FOREVER_MS) == OTEL_ERROR_NOT_STARTED;
    faked_span("after the shutdown");
    _exit(is_flushed && is_stopped && is_over && strcmp(fake->text, "before exit at exit|") == 0 &&
                  fake->frees == 1
              ? 0
              : 3);
}

/* spec: P12 Q13 */
TEST(a_process_that_exits_flushes_and_shuts_down_from_atexit)
{
    const pid_t child = fork();
    if (child == 0) {
        if (start(false) != OTEL_OK || atexit(shut_down_at_exit) != 0)
            _exit(1);
        faked_span("before exit");
        exit(2); /* unless it ends otherwise */
    }
    check_forked(child);
}

/* ---- the exporter thread
 * -------------------------------------------------------------------------- */

static struct {
    uint32_t calls;
    void *state;
    char name[16];
    bool blocks_all;
    size_t stack_bytes;
    size_t batches_before;
    cpu_set_t cores;
} seen;

static bool all_signals_are_blocked(void)
{
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    for (int signal = 1; signal <= SIGRTMAX; signal++)
        if (signal != SIGKILL && signal != SIGSTOP && (signal < __SIGRTMIN || signal >= SIGRTMIN) &&
            sigismember(&blocked, signal) != 1)
            return false;
    return true;
}

static size_t own_stack_bytes(void)
{
    pthread_attr_t attributes;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstacksize(&attributes, &bytes);
        pthread_attr_destroy(&attributes);
    }
    return bytes;
}

static void look(void *state)
{
    seen.calls++;
    seen.state = state;
    seen.blocks_all = all_signals_are_blocked();
    seen.stack_bytes = own_stack_bytes();
    seen.batches_before = fake->batches;
    pthread_getname_np(pthread_self(), seen.name, sizeof seen.name);
}

static otel_status start_with_hook(int64_t stack_bytes, void (*hook)(void *state))
{
    memset(&seen, 0, sizeof seen);
    return faked_start(1, &(otel_sdk_options){.thread_stack_bytes = stack_bytes,
                                              .thread_started = hook,
                                              .thread_started_state = fake});
}

/* spec: P17 */
TEST(the_exporter_thread_is_named_and_blocks_all_signals)
{
    assert_int_equal(start_with_hook(0, look), OTEL_OK);
    faked_span("a");
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_int_equal(seen.calls, 1);
    assert_ptr_equal(seen.state, fake);
    assert_int_equal(seen.batches_before, 0);
    assert_string_equal(seen.name, "otel-export");
    assert_true(seen.blocks_all);
    assert_false(all_signals_are_blocked());
}

/* libc may give it the stack of a thread that ended, which is larger. Whatever is asked for, it is
 * enough for a receiver with TLS. */
/* spec: P17 */
TEST(its_stack_is_as_large_as_was_asked_for_and_never_too_small)
{
    static const int64_t sizes[] = {64 << 20, INT64_MIN, -1, 1, 4096, 16384, 20000, 65536, 131072};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(start_with_hook(sizes[i], look), OTEL_OK);
        faked_span("a");
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
        assert_true(seen.stack_bytes >= 131072);
        if (i == 0)
            assert_in_range(seen.stack_bytes, (63 << 20), (65 << 20));
        assert_int_equal(fake->spans, i + 1);
    }
}

static void name_and_pin(void *state)
{
    cpu_set_t one;
    (void)state;
    pthread_setname_np(pthread_self(), "telemetry");
    sched_getaffinity(0, sizeof seen.cores, &seen.cores);
    size_t core = 0;
    while (core < CPU_SETSIZE - 1 && !CPU_ISSET(core, &seen.cores))
        core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    seen.cores = one;
}

static cpu_set_t cores_of_export;
static char name_of_export[16];

static void look_at_thread(void *context, otel_export *call)
{
    (void)context;
    (void)call;
    sched_getaffinity(0, sizeof cores_of_export, &cores_of_export);
    pthread_getname_np(pthread_self(), name_of_export, sizeof name_of_export);
}

/* The clocks of the cores are compared meanwhile, which visits all of them. */
/* spec: P17 */
TEST(a_program_may_name_and_pin_it)
{
    fake->during = look_at_thread;
    assert_int_equal(start_with_hook(0, name_and_pin), OTEL_OK);
    faked_span("a");
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    assert_true(CPU_EQUAL(&cores_of_export, &seen.cores));
    assert_string_equal(name_of_export, "telemetry");
}

TEST(where_there_is_no_thread_nothing_is_called)
{
    memset(&seen, 0, sizeof seen);
    assert_int_equal(faked_start(1, &(otel_sdk_options){.threadless = true,
                                                        .thread_started = look,
                                                        .thread_started_state = fake}),
                     OTEL_OK);
    faked_span("a");
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_int_equal(seen.calls, 0);
    assert_string_equal(fake->text, "a|");
}

/* ---- what an exporter calls is not traced: its spans would have to be exported in turn
 * ----------- */

static unsigned traced_by_exporter;

/* As if it used a library that is instrumented. */
static void trace_in_exporter(void *context, otel_export *call)
{
    (void)context;
    (void)call;
    otel_tracer *tracer = otel_tracer_get("http.client", NULL);
    const otel_span request = otel_span_enter(tracer, "POST", NULL);
    const otel_span lookup = otel_span_start(tracer, "DNS", NULL);
    otel_span_set_string(request, "url.path", "/v1/traces");
    traced_by_exporter += otel_span_is_recording(request) || otel_span_is_recording(lookup) ||
                          otel_tracer_enabled(tracer);
    otel_span_record(tracer, OTEL_FINISHED_SPAN(.flags = 1, .name = "TLS"));
    otel_span_end(lookup);
    otel_span_end(request);
}

static otel_status trace_in_flush(void *state, int64_t timeout_ms)
{
    (void)timeout_ms;
    trace_in_exporter(state, NULL);
    return OTEL_OK;
}

TEST(R41_what_an_exporter_starts_is_left_out)
{
    otel_exporter exporter = fake_exporter(fake);
    fake->during = trace_in_exporter;
    exporter.flush = trace_in_flush;
    traced_by_exporter = 0;
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1)),
                     OTEL_OK);
    for (int i = 0; i < 10; i++) {
        faked_span("work");
        assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    }

    assert_int_equal(fake->spans, 10);
    assert_string_equal(faked_sums(0), "10 started, 10 ended: delivered 10, dropped 0");
    assert_int_equal(traced_by_exporter, 0);
}
