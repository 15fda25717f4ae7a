/* SPDX-License-Identifier: Apache-2.0 */
/* An exporter that does something between exports: otel_shutdown waits for it only while it says,
 * by otel_exporter.finish, that it is not done. */
#include "blackbox.h"
#include <sys/eventfd.h>
#include <unistd.h>

enum { LONG_MS = 60000, ROUNDS = 5 };

static int event = -1;
static bool is_stopping;
static size_t exported;
static size_t attended_while_stopping;
static size_t finished;

static otel_export_result export_batch(void *state, otel_export *call)
{
    (void)state;
    exported += otel_batch_size(call->batch);
    is_stopping = call->is_stopping;
    return OTEL_EXPORT_DONE;
}

static int descriptor(void *state, int *timeout_ms)
{
    (void)state;
    *timeout_ms = -1;
    return event;
}

static int attend(void *state)
{
    (void)state;
    attended_while_stopping += is_stopping;
    return LONG_MS;
}

static int finish(void *state)
{
    (void)state;
    assert_int_equal(exported, 1);
    return ++finished < ROUNDS ? LONG_MS : -1;
}

/* With a span that is exported by the shutdown; `value`: the descriptor is readable if not 0. */
static void run(otel_exporter exporter, unsigned value)
{
    event = eventfd(value, EFD_CLOEXEC | EFD_NONBLOCK);
    is_stopping = false;
    exported = attended_while_stopping = finished = 0;
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                      .bsp_schedule_delay = INT32_MAX)),
                     OTEL_OK);
    otel_span_end(otel_span_start(otel_tracer_get("attend", NULL), "last", NULL));

    assert_int_equal(otel_shutdown(LONG_MS), OTEL_OK);

    assert_true(is_stopping);
    assert_int_equal(exported, 1);
    assert_int_equal(attended_while_stopping, 0);
    close(event);
}

static void test_a_shutdown_does_not_wait_for_a_descriptor_that_is_always_there(void **state)
{
    (void)state;
    run(OTEL_EXPORTER(.name = "idle", .export_batch = export_batch, .descriptor = descriptor,
                      .attend = attend),
        0);
}

static void test_a_shutdown_goes_on_until_the_exporter_is_done(void **state)
{
    (void)state;
    run(OTEL_EXPORTER(.name = "busy", .export_batch = export_batch, .descriptor = descriptor,
                      .attend = attend, .finish = finish),
        1);
    assert_int_equal(finished, ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_shutdown_does_not_wait_for_a_descriptor_that_is_always_there),
        cmocka_unit_test(test_a_shutdown_goes_on_until_the_exporter_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
