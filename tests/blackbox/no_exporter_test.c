/* SPDX-License-Identifier: Apache-2.0 */
/* Without an exporter (OTEL_TRACES_EXPORTER=none) all but the export is as with one: what is
 * sampled, what is propagated, what processors see; and nothing piles up. prices_test.py says what
 * a span costs then. Each test starts and stops the SDK. */
#include "blackbox.h"
#include <stdlib.h>

enum { SPANS = 20000, QUEUE = 64 };

struct seen {
    uint64_t started;
    uint64_t ended;
    uint64_t sampled;
};

static void see_start(void *state, otel_span span, const otel_context *parent)
{
    (void)span;
    (void)parent;
    ((struct seen *)state)->started++;
}

static void see_end(void *state, const otel_span_view *span)
{
    struct seen *seen = state;
    seen->ended++;
    seen->sampled += (span->flags & OTEL_TRACE_FLAG_SAMPLED) != 0;
}

static void keep_traceparent(void *carrier, const char *name, const char *value, size_t length)
{
    if (strcmp(name, "traceparent") == 0 && length < 64)
        memcpy(carrier, value, length + 1);
}

/* How many of the spans say to the next service that they are sampled; half of them have a parent
 * that is. */
static uint64_t count_propagated(void)
{
    otel_tracer *tracer = otel_tracer_get("no_exporter", NULL);
    uint64_t sampled = 0;
    for (unsigned i = 0; i < SPANS / 2; i++) {
        char traceparent[64] = "";
        const otel_span outer = otel_span_enter(tracer, "outer", NULL);
        const otel_span inner = otel_span_start(tracer, "inner", NULL);
        const otel_context context = otel_context_with_span(otel_current_context(), inner);
        otel_inject(&context, keep_traceparent, traceparent);
        assert_int_equal(strlen(traceparent), 55);
        sampled += (traceparent[54] - '0') & OTEL_TRACE_FLAG_SAMPLED;
        assert_int_equal(otel_span_is_recording(inner), otel_span_is_recording(outer));
        otel_span_end(inner);
        otel_span_end(outer);
    }
    return sampled;
}

static void start(const char *sampler, const char *argument, struct seen *seen, bool threadless)
{
    const otel_processor processor =
        OTEL_PROCESSOR(.name = "seen", .state = seen, .on_start = see_start, .on_end = see_end);
    assert_int_equal(
        otel_start(OTEL_SDK_OPTIONS(.ignore_environment = true, .traces_exporter = "none",
                                    .traces_sampler = sampler, .traces_sampler_arg = argument,
                                    .bsp_max_queue_size = QUEUE,
                                    .bsp_max_export_batch_size = QUEUE / 2,
                                    .threadless = threadless, .processors = &processor,
                                    .processor_count = seen != NULL)),
        OTEL_OK);
}

static void stop(void)
{
    assert_int_equal(otel_flush(10000), OTEL_OK);
    assert_int_equal(otel_shutdown(10000), OTEL_OK);
    otel_stats stats = {.size = sizeof stats};
    assert_int_equal(otel_stats_read(0, &stats), OTEL_ERROR_INVALID_ARGUMENT);
}

static void test_spans_are_sampled_and_propagated(void **state)
{
    (void)state;
    start("always_on", NULL, NULL, false);
    assert_int_equal(count_propagated(), SPANS / 2);
    stop();
    start("always_off", NULL, NULL, false);
    assert_int_equal(count_propagated(), 0);
    stop();
    start("parentbased_traceidratio", "0.5", NULL, false);
    assert_in_range(count_propagated(), SPANS / 4 - 300, SPANS / 4 + 300); /* six sigma */
    stop();
}

static void test_processors_see_every_span(void **state)
{
    (void)state;
    struct seen seen = {0};
    start("parentbased_traceidratio", "0.5", &seen, false);
    const uint64_t sampled = count_propagated();
    stop();
    assert_int_equal(seen.started, 2 * sampled);
    assert_int_equal(seen.ended, 2 * sampled);
    assert_int_equal(seen.sampled, 2 * sampled);
}

static void test_nobody_has_to_poll(void **state)
{
    (void)state;
    struct seen seen = {0};
    start("always_on", NULL, &seen, true);
    assert_int_equal(count_propagated(), SPANS / 2);
    assert_int_equal(otel_poll(0), OTEL_OK);
    stop();
    assert_int_equal(seen.ended, SPANS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans_are_sampled_and_propagated),
        cmocka_unit_test(test_processors_see_every_span),
        cmocka_unit_test(test_nobody_has_to_poll),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
