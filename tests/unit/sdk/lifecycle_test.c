/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/lifecycle_test.c - specification of sdk/lifecycle.c: start, flush and shut
 * down with a real worker. Its tick is far away, so that only what a test asks for
 * happens. */
#include "sdk/engine.h"

#include "tests/support/fake_exporter.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { FOREVER_MS = INT32_MAX };

static struct fake_exporter fake;

static int begin(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)!otel_shutdown(FOREVER_MS);
    oteli_lifecycle_reset();
    oteli_api_reset();
    oteli_leaks_check();
    return 0;
}

static otel_status start(bool simple)
{
    const otel_exporter exporter = fake_exporter(&fake);
    return otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                            .simple = simple, .clock = "monotonic",
                                            .log_level = "none", .bsp_schedule_delay = FOREVER_MS));
}

static void span(const char *name)
{
    otel_span_end(otel_span_enter(otel_tracer_get("test", NULL), name, NULL));
}

static otel_stats stats(void)
{
    otel_stats read = {.size = sizeof read};
    assert_int_equal(otel_stats_read(0, &read), OTEL_OK);
    return read;
}

AROUND_EACH(begin, end);

/* spec: P10 */
TEST(a_flush_delivers_what_has_ended)
{
    assert_int_equal(start(false), OTEL_OK);
    span("a");
    span("b");

    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    assert_string_equal(fake.text, "a b|");
}

/* spec: P11 P16 */
TEST(a_shutdown_delivers_what_has_ended_and_frees_the_exporter)
{
    assert_int_equal(start(false), OTEL_OK);
    span("a");

    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_string_equal(fake.text, "a|");
    assert_int_equal(fake.frees, 1);
    assert_true(fake.wakes >= 1);
}

TEST(what_was_not_started_is_not_flushed_or_shut_down)
{
    assert_int_equal(otel_flush(0), OTEL_ERROR_NOT_STARTED);
    assert_int_equal(otel_shutdown(0), OTEL_ERROR_NOT_STARTED);
}

/* spec: P11 */
TEST(the_second_shutdown_and_a_flush_after_it_say_so)
{
    assert_int_equal(start(false), OTEL_OK);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_ERROR_NOT_STARTED);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_ERROR_NOT_STARTED);
}

TEST(what_runs_is_not_started_again_and_the_new_exporter_is_freed)
{
    assert_int_equal(start(false), OTEL_OK);

    assert_int_equal(start(false), OTEL_ERROR_ALREADY_STARTED);

    assert_int_equal(fake.frees, 1);
    span("a");
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    assert_string_equal(fake.text, "a|");
}

TEST(losses_are_the_result_of_a_flush_and_of_a_shutdown)
{
    fake.reject = 1;
    assert_int_equal(start(false), OTEL_OK);
    span("a");
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    span("b");

    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);
}

TEST(an_exporter_that_cannot_flush_is_the_result_of_a_flush)
{
    fake.flush_status = OTEL_ERROR_SYSTEM;
    assert_int_equal(start(false), OTEL_OK);

    assert_int_equal(otel_flush(FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);
    fake.flush_status = OTEL_OK;
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
}

static uint32_t is_held; /* atomic: an export waits while it is set */
static uint32_t is_inside;

static void hold(void *context, otel_export *call)
{
    (void)context;
    (void)call;
    oteli_store_release_32(&is_inside, 1);
    while (oteli_load_acquire_32(&is_held) != 0)
        sched_yield();
}

static void hold_exports(void)
{
    fake.during = hold;
    is_held = 1;
    is_inside = 0;
}

static void wait_until_inside(void)
{
    while (oteli_load_acquire_32(&is_inside) == 0)
        sched_yield();
}

TEST(a_flush_does_not_wait_longer_than_it_may)
{
    hold_exports();
    assert_int_equal(start(false), OTEL_OK);
    span("a");

    assert_int_equal(otel_flush(0), OTEL_ERROR_TIMEOUT);
    wait_until_inside();
    assert_int_equal(otel_flush(1), OTEL_ERROR_TIMEOUT);
    oteli_store_release_32(&is_held, 0);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    assert_string_equal(fake.text, "a|");
}

/* The worker that was given up has come back. */
static void wait_until_left(const struct oteli_engine *engine)
{
    while (oteli_load_acquire_32(&engine->done) == 0)
        sched_yield();
}

/* spec: P11 */
TEST(a_shutdown_does_not_wait_for_an_exporter_that_hangs)
{
    hold_exports();
    assert_int_equal(start(false), OTEL_OK);
    span("a");
    (void)!otel_flush(0);
    wait_until_inside();
    span("b");

    assert_int_equal(otel_shutdown(1), OTEL_ERROR_TIMEOUT);

    otel_stats sums = stats();
    assert_int_equal(sums.ended, 2);
    assert_int_equal(sums.queued, 0);
    assert_int_equal(sums.dropped[OTEL_DROP_SHUTDOWN_TIMEOUT], 2);
    oteli_store_release_32(&is_held, 0);
    wait_until_left(oteli_lifecycle_engine());
}

/* … and the program may start another SDK meanwhile. */
TEST(another_sdk_can_run_while_the_old_exporter_hangs)
{
    static struct fake_exporter second;
    memset(&second, 0, sizeof second);
    const otel_exporter exporter = fake_exporter(&second);
    hold_exports();
    assert_int_equal(start(false), OTEL_OK);
    span("a");
    (void)!otel_flush(0);
    wait_until_inside();
    for (unsigned i = 0; i < 500; i++)
        span("old");
    assert_int_equal(otel_shutdown(1), OTEL_ERROR_TIMEOUT);
    const struct oteli_engine *const old = oteli_lifecycle_engine();

    assert_int_equal(
        otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                         .bsp_schedule_delay = FOREVER_MS, .log_level = "none")),
        OTEL_OK);
    for (unsigned i = 0; i < 300; i++)
        span("new");
    oteli_store_release_32(&is_held, 0);
    wait_until_left(old);
    for (unsigned i = 0; i < 300; i++)
        span("new");
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_int_equal(second.spans, 600);
    assert_null(strstr(second.text, "old"));
    assert_int_equal(fake.batches, 1);
}

static void *span_of_a_thread(void *name)
{
    span(name);
    return NULL;
}

TEST(neither_flush_nor_shutdown_wait_for_a_simple_export_that_hangs)
{
    static char name[] = "a";
    pthread_t thread;
    hold_exports();
    assert_int_equal(start(true), OTEL_OK);
    assert_int_equal(pthread_create(&thread, NULL, span_of_a_thread, name), 0);
    wait_until_inside();

    assert_int_equal(otel_flush(1), OTEL_ERROR_TIMEOUT);
    assert_int_equal(stats().ended, 1);
    assert_int_equal(otel_shutdown(1), OTEL_ERROR_TIMEOUT);
    assert_int_equal(stats().dropped[OTEL_DROP_SHUTDOWN_TIMEOUT], 1);

    oteli_store_release_32(&is_held, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

TEST(restarts_have_the_new_options_and_new_sums)
{
    for (unsigned i = 1; i <= 20; i++) {
        assert_int_equal(start(i % 2 == 0), OTEL_OK);
        span("a");
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
        assert_int_equal(stats().ended, 1);
        assert_int_equal(stats().delivered, 1);
        assert_int_equal(fake.spans, i);
        assert_int_equal(fake.frees, i);
    }
}

TEST(a_span_of_the_sdk_before_is_no_span_of_this_one)
{
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    assert_int_equal(start(false), OTEL_OK);
    const otel_span local = otel_span_enter(tracer, "local", NULL);
    const otel_span detached = otel_span_start(tracer, "detached", NULL);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    assert_int_equal(start(false), OTEL_OK);

    otel_span_end(detached);
    otel_span_end(local);
    span("new");
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_string_equal(fake.text, "new|");
    assert_int_equal(stats().started, 1);
    assert_int_equal(stats().ended, 1);
}

TEST(a_span_that_ends_after_the_shutdown_is_counted)
{
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    assert_int_equal(start(false), OTEL_OK);
    const otel_span local = otel_span_enter(tracer, "local", NULL);
    const otel_span detached = otel_span_start(tracer, "detached", NULL);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    assert_int_equal(stats().open, 2);

    otel_span_end(detached);
    otel_span_end(local);

    assert_int_equal(stats().open, 0);
    assert_int_equal(stats().ended, 2);
    assert_int_equal(stats().dropped[OTEL_DROP_ALREADY_SHUTDOWN], 2);
    assert_int_equal(stats().queued, 0);
}

TEST(a_disabled_sdk_starts_and_stops_and_does_nothing)
{
    const otel_exporter exporter = fake_exporter(&fake);
    struct oteli_config config;
    assert_int_equal(oteli_config_load(&config, NULL, false), OTEL_OK);
    config.sdk_disabled = true;
    const struct oteli_engine_options options = {
        .config = &config, .exporters = &exporter, .exporter_count = 1};

    assert_int_equal(oteli_start(&options), OTEL_OK);
    assert_int_equal(fake.frees, 1);
    span("a");
    assert_int_equal(otel_flush(0), OTEL_OK);
    assert_int_equal(oteli_start(&options), OTEL_ERROR_ALREADY_STARTED);
    assert_int_equal(otel_shutdown(0), OTEL_OK);
    assert_int_equal(otel_shutdown(0), OTEL_ERROR_NOT_STARTED);

    assert_int_equal(fake.batches, 0);
    oteli_config_fini(&config);
}

/* The exporter is adopted: freed once, whatever fails. */
/* spec: Q3 */
TEST(every_allocation_of_a_start_may_fail)
{
    for (size_t nth = 1;; nth++) {
        memset(&fake, 0, sizeof fake);
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        const otel_status status = start(nth % 2 == 0);
        const bool has_failed = oteli_leaks_failed();
        oteli_leaks_fail_at(0);
        if (status == OTEL_OK)
            assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
        else
            assert_int_equal(status, OTEL_ERROR_NO_MEMORY);
        assert_int_equal(fake.frees, 1);
        oteli_lifecycle_reset();
        oteli_api_reset();
        oteli_leaks_check();
        if (!has_failed)
            break;
    }
    oteli_leaks_begin();
}

/* spec: Q5 */
TEST(options_that_cannot_be_free_the_exporter_too)
{
    const otel_exporter exporter = fake_exporter(&fake);

    assert_int_equal(
        otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                         .log_level = "none", .traces_sampler = "no such")),
        OTEL_ERROR_INVALID_ARGUMENT);

    assert_int_equal(fake.frees, 1);
}

static void *flush_again_and_again(void *argument)
{
    (void)argument;
    otel_status status;
    do
        status = otel_flush(FOREVER_MS);
    while (status == OTEL_OK);
    assert_int_equal(status, OTEL_ERROR_NOT_STARTED);
    return NULL;
}

/* spec: P12 */
TEST(flushes_that_meet_a_shutdown_come_back)
{
    for (unsigned i = 0; i < 20; i++) {
        pthread_t threads[4];
        assert_int_equal(start(false), OTEL_OK);
        span("a");
        for (unsigned k = 0; k < 4; k++)
            assert_int_equal(pthread_create(&threads[k], NULL, flush_again_and_again, NULL), 0);
        sched_yield();
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
        for (unsigned k = 0; k < 4; k++)
            assert_int_equal(pthread_join(threads[k], NULL), 0);
        assert_int_equal(fake.spans, i + 1);
    }
}

/* ---- the exporter thread -------------------------------------------------------------------------- */

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
    seen.batches_before = fake.batches;
    pthread_getname_np(pthread_self(), seen.name, sizeof seen.name);
}

static otel_status start_with_hook(int64_t stack_bytes, void (*hook)(void *state))
{
    const otel_exporter exporter = fake_exporter(&fake);
    memset(&seen, 0, sizeof seen);
    return otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                            .log_level = "none", .bsp_schedule_delay = FOREVER_MS,
                                            .thread_stack_bytes = stack_bytes,
                                            .thread_started = hook, .thread_started_state = &fake));
}

/* spec: P17 */
TEST(the_exporter_thread_is_named_and_blocks_all_signals)
{
    assert_int_equal(start_with_hook(0, look), OTEL_OK);
    span("a");
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_int_equal(seen.calls, 1);
    assert_ptr_equal(seen.state, &fake);
    assert_int_equal(seen.batches_before, 0);
    assert_string_equal(seen.name, "otel-export");
    assert_true(seen.blocks_all);
    assert_false(all_signals_are_blocked());
}

/* libc may give it the stack of a thread that ended, which is larger. */
/* spec: P17 */
TEST(its_stack_is_as_large_as_was_asked_for)
{
    assert_int_equal(start_with_hook(64 << 20, look), OTEL_OK);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_in_range(seen.stack_bytes, (63 << 20), (65 << 20));
}

/* Whatever is asked for, it is enough for a receiver with TLS. */
TEST(a_stack_that_would_be_too_small_is_not_made)
{
    static const int64_t sizes[] = {INT64_MIN, -1, 1, 4096, 16384, 20000, 65536, 131072};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(start_with_hook(sizes[i], look), OTEL_OK);
        span("a");
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
        assert_true(seen.stack_bytes >= 131072);
        assert_int_equal(fake.spans, i + 1);
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
    fake.during = look_at_thread;
    assert_int_equal(start_with_hook(0, name_and_pin), OTEL_OK);
    span("a");
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    assert_true(CPU_EQUAL(&cores_of_export, &seen.cores));
    assert_string_equal(name_of_export, "telemetry");
}

TEST(where_there_is_no_thread_nothing_is_called)
{
    const otel_exporter exporter = fake_exporter(&fake);
    memset(&seen, 0, sizeof seen);
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                      .threadless = true, .thread_started = look,
                                                      .thread_started_state = &fake)),
                     OTEL_OK);
    span("a");
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_int_equal(seen.calls, 0);
    assert_string_equal(fake.text, "a|");
}
