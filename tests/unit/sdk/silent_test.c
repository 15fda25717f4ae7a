/* SPDX-License-Identifier: Apache-2.0 */
/* What an exporter calls is not traced: its spans would have to be exported in turn. */
#include "sdk/engine.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <string.h>

enum { FOREVER_MS = INT32_MAX };

struct traced_exporter {
    const otel_tracer *tracer;
    size_t spans;
    size_t exports;
    bool was_enabled;
    bool was_recording;
};

/* As if it used a library that is instrumented. */
static void send_traced(struct traced_exporter *exporter)
{
    otel_tracer *tracer = otel_tracer_get("http.client", NULL);
    otel_span request = otel_span_enter(tracer, "POST", NULL);
    const otel_span lookup = otel_span_start(tracer, "DNS", NULL);
    otel_span_set_string(request, "url.path", "/v1/traces");
    exporter->was_recording |= otel_span_is_recording(request) || otel_span_is_recording(lookup);
    exporter->was_enabled |= otel_tracer_enabled(tracer);
    otel_span_end(lookup);
    otel_span_end(request);
}

static otel_export_result export_batch(void *state, otel_export *call)
{
    struct traced_exporter *exporter = state;
    exporter->spans += otel_batch_size(call->batch);
    exporter->exports++;
    send_traced(exporter);
    return OTEL_EXPORT_DONE;
}

static otel_status flush(void *state, int64_t timeout_ms)
{
    (void)timeout_ms;
    send_traced(state);
    return OTEL_OK;
}

TEST(R41_what_an_exporter_starts_is_left_out)
{
    struct traced_exporter exporter = {.spans = 0};
    const otel_exporter made = OTEL_EXPORTER(.name = "traced", .state = &exporter,
                                             .export_batch = export_batch, .flush = flush);
    otel_stats stats = {.size = sizeof stats};
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &made, .exporter_count = 1,
                                                      .resource_detectors = "none")),
                     OTEL_OK);

    for (int i = 0; i < 10; i++) {
        otel_span_end(otel_span_enter(otel_tracer_get("program", NULL), "work", NULL));
        assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    }
    assert_int_equal(otel_stats_read(0, &stats), OTEL_OK);

    assert_int_equal(exporter.exports, 10);
    assert_int_equal(exporter.spans, 10);
    assert_int_equal(stats.started, 10);
    assert_int_equal(stats.ended, 10);
    assert_false(exporter.was_recording);
    assert_false(exporter.was_enabled);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    oteli_lifecycle_reset();
    oteli_api_reset();
}
