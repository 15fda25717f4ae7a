/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/lifecycle_test.c - specification of sdk/lifecycle.c: start, flush and shut
 * down with a real worker. Its tick is far away, so that only what a test asks for
 * happens. */
#include "sdk/engine.h"

#include "tests/support/fake_exporter.h"
#include "tests/support/leaks.h"

#include <otel/otel.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

static void test_a_flush_delivers_what_has_ended(void **state)
{
    (void)state;
    assert_int_equal(start(false), OTEL_OK);
    span("a");
    span("b");

    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    assert_string_equal(fake.text, "a b|");
}

static void test_a_shutdown_delivers_what_has_ended_and_frees_the_exporter(void **state)
{
    (void)state;
    assert_int_equal(start(false), OTEL_OK);
    span("a");

    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_string_equal(fake.text, "a|");
    assert_int_equal(fake.frees, 1);
    assert_true(fake.wakes >= 1);
}

static void test_what_was_not_started_is_not_flushed_or_shut_down(void **state)
{
    (void)state;
    assert_int_equal(otel_flush(0), OTEL_ERROR_NOT_STARTED);
    assert_int_equal(otel_shutdown(0), OTEL_ERROR_NOT_STARTED);
}

static void test_the_second_shutdown_and_a_flush_after_it_say_so(void **state)
{
    (void)state;
    assert_int_equal(start(false), OTEL_OK);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_ERROR_NOT_STARTED);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_ERROR_NOT_STARTED);
}

static void test_what_runs_is_not_started_again_and_the_new_exporter_is_freed(void **state)
{
    (void)state;
    assert_int_equal(start(false), OTEL_OK);

    assert_int_equal(start(false), OTEL_ERROR_ALREADY_STARTED);

    assert_int_equal(fake.frees, 1);
    span("a");
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    assert_string_equal(fake.text, "a|");
}

static void test_losses_are_the_result_of_a_flush_and_of_a_shutdown(void **state)
{
    (void)state;
    fake.reject = 1;
    assert_int_equal(start(false), OTEL_OK);
    span("a");
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    span("b");

    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);
}

static void test_an_exporter_that_cannot_flush_is_the_result_of_a_flush(void **state)
{
    (void)state;
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

static void test_a_flush_does_not_wait_longer_than_it_may(void **state)
{
    (void)state;
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

static void test_a_shutdown_does_not_wait_for_an_exporter_that_hangs(void **state)
{
    (void)state;
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
static void test_another_sdk_can_run_while_the_old_exporter_hangs(void **state)
{
    (void)state;
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

static void test_neither_flush_nor_shutdown_wait_for_a_simple_export_that_hangs(void **state)
{
    (void)state;
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

static void test_restarts_have_the_new_options_and_new_sums(void **state)
{
    (void)state;
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

static void test_a_span_of_the_sdk_before_is_no_span_of_this_one(void **state)
{
    (void)state;
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

static void test_a_span_that_ends_after_the_shutdown_is_counted(void **state)
{
    (void)state;
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

static void test_a_disabled_sdk_starts_and_stops_and_does_nothing(void **state)
{
    (void)state;
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
static void test_every_allocation_of_a_start_may_fail(void **state)
{
    (void)state;
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

static void test_options_that_cannot_be_free_the_exporter_too(void **state)
{
    (void)state;
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

static void test_flushes_that_meet_a_shutdown_come_back(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, begin, end)
        TEST(a_flush_delivers_what_has_ended),
        TEST(a_shutdown_delivers_what_has_ended_and_frees_the_exporter),
        TEST(what_was_not_started_is_not_flushed_or_shut_down),
        TEST(the_second_shutdown_and_a_flush_after_it_say_so),
        TEST(what_runs_is_not_started_again_and_the_new_exporter_is_freed),
        TEST(losses_are_the_result_of_a_flush_and_of_a_shutdown),
        TEST(an_exporter_that_cannot_flush_is_the_result_of_a_flush),
        TEST(a_flush_does_not_wait_longer_than_it_may),
        TEST(a_shutdown_does_not_wait_for_an_exporter_that_hangs),
        TEST(another_sdk_can_run_while_the_old_exporter_hangs),
        TEST(neither_flush_nor_shutdown_wait_for_a_simple_export_that_hangs),
        TEST(restarts_have_the_new_options_and_new_sums),
        TEST(a_span_of_the_sdk_before_is_no_span_of_this_one),
        TEST(a_span_that_ends_after_the_shutdown_is_counted),
        TEST(a_disabled_sdk_starts_and_stops_and_does_nothing),
        TEST(every_allocation_of_a_start_may_fail),
        TEST(options_that_cannot_be_free_the_exporter_too),
        TEST(flushes_that_meet_a_shutdown_come_back),
#undef TEST
    };
    return cmocka_run_group_tests_name("lifecycle", tests, NULL, NULL);
}
