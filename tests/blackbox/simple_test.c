/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a span may call the program: the simple processor exports there, and tail_keep decides
 * there. However long that takes, other threads may go on to use the span, which has ended for
 * them. */
#include "blackbox.h"
#include <semaphore.h>
#include <time.h>

enum { HANGING_S = 20 }; /* a test that fails takes so long */

static sem_t is_ending;
static sem_t is_used;
static otel_span span;
static bool has_waited_in_vain;
static size_t exported;

static void wait_until_used(void)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += HANGING_S;
    sem_post(&is_ending);
    has_waited_in_vain = sem_timedwait(&is_used, &end) != 0;
}

static otel_export_result export_at_once(void *state, otel_export *call)
{
    (void)state;
    exported += otel_batch_size(call->batch);
    return OTEL_EXPORT_DONE;
}

static otel_export_result export_when_used(void *state, otel_export *call)
{
    if (exported == 0)
        wait_until_used();
    return export_at_once(state, call);
}

static bool keep_when_used(void *state, const otel_tail *tail)
{
    (void)state;
    (void)tail;
    wait_until_used();
    return true;
}

static void *use_the_span(void *argument)
{
    (void)argument;
    sem_wait(&is_ending);
    otel_span_set_int(span, "late", 1);
    otel_span_add_event(span, "late", NULL, 0);
    otel_span_set_status(span, OTEL_SPAN_STATUS_ERROR, "late");
    const bool is_recording = otel_span_is_recording(span);
    const otel_context context = otel_context_with_span(otel_current_context(), span);
    const otel_span child = otel_span_start(otel_tracer_get("simple", NULL), "child",
                                            OTEL_SPAN_OPTIONS(.parent = &context));
    otel_span_cancel(span);
    otel_span_end(span);
    sem_post(&is_used);
    otel_span_end(child);
    return is_recording ? &is_used : NULL;
}

/* One span that another thread uses while it ends here, and a child of it. */
static void check(const otel_sdk_options *options)
{
    pthread_t thread;
    void *was_recording = NULL;
    exported = 0;
    sem_init(&is_ending, 0, 0);
    sem_init(&is_used, 0, 0);
    assert_int_equal(otel_start_with(options), OTEL_OK);
    span = otel_span_start(otel_tracer_get("simple", NULL), "shared", NULL);
    assert_int_equal(pthread_create(&thread, NULL, use_the_span, NULL), 0);

    otel_span_end(span);

    pthread_join(thread, &was_recording);
    assert_false(has_waited_in_vain);
    assert_null(was_recording);
    assert_int_equal(otel_shutdown(5000), OTEL_OK);
    assert_int_equal(stats_now().delivered, 2);
    assert_int_equal(stats_now().ended, 2);
    assert_int_equal(exported, 2);
}

static void test_an_export_does_not_hold_the_span(void **state)
{
    (void)state;
    const otel_exporter exporter = OTEL_EXPORTER(.name = "slow", .export_batch = export_when_used);
    check(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1, .simple = true));
}

static void test_a_tail_rule_does_not_hold_the_span(void **state)
{
    (void)state;
    const otel_exporter exporter = OTEL_EXPORTER(.name = "fast", .export_batch = export_at_once);
    check(
        OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1, .tail_keep = keep_when_used));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_an_export_does_not_hold_the_span),
                                       cmocka_unit_test(test_a_tail_rule_does_not_hold_the_span)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
