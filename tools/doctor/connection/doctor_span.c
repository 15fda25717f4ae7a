/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_span.c - the contracts are in
 * tools/doctor/connection/doctor_span.h. */
#include "tools/doctor/connection/doctor_span.h"

#include "tools/doctor/findings/doctor_log.h"

#include <otel/otel.h>
#include <stdio.h>
#include <stdlib.h>

otel_status doctor_span_start(unsigned timeout_ms)
{
    /* A test span is not worth keeping for later. */
    unsetenv("OTEL_C_SPOOL_DIR");
    return otel_start(OTEL_SDK_OPTIONS(.traces_exporter = "otlp", .traces_sampler = "always_on",
                                       .sdk_disabled = "false", .log_level = "info",
                                       .profiler = "off",
                                       .exporter_otlp_traces_timeout = timeout_ms));
}

void doctor_span_send(unsigned timeout_ms, struct doctor_record *record)
{
    struct doctor_span *seen = &record->span;
    otel_tracer *tracer = otel_tracer_get("otel-doctor", OTEL_VERSION);
    const otel_span span = otel_span_start(tracer, DOCTOR_SPAN_NAME, NULL);
    const otel_span_context context = otel_span_get_context(span);
    otel_trace_id_hex(&context, seen->trace_id);
    otel_span_set_string(span, "otel_doctor.endpoint", record->target.url);
    otel_span_end(span);

    const size_t lines = doctor_log_count();
    const int64_t patience_ms = (int64_t)timeout_ms + 1000;
    const otel_status flushed = otel_flush(patience_ms);
    const otel_status ended = otel_shutdown(patience_ms);
    seen->stats.size = sizeof seen->stats;
    otel_stats_read(0, &seen->stats);
    otel_stats_describe(&seen->stats, seen->counters, sizeof seen->counters);
    snprintf(seen->words, sizeof seen->words, "%s", doctor_log_after(lines));
    const bool is_accepted = flushed == OTEL_OK && ended == OTEL_OK && seen->stats.delivered == 1;
    seen->result = is_accepted ? DOCTOR_FINE : DOCTOR_FAILED;
}
