/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_span.h - send one test span the way a program would: a started
 * SDK, the real exporter, a flush. Start/stop only. */
#ifndef DOCTOR_SPAN_H
#define DOCTOR_SPAN_H

#include "tools/doctor/findings/doctor_findings.h"

#define DOCTOR_SPAN_NAME "otel-doctor test span"

/* After an SDK has been started whose pipeline 0 is the exporter: make the span, flush it within
 * `timeout_ms`, shut down, and say in record->span what became of it. */
void doctor_span_send(unsigned timeout_ms, struct doctor_record *record);

/* Start an SDK as the environment says, but with nothing beside the OTLP exporter and without
 * leaving the span out, whatever the sampler would do. */
otel_status doctor_span_start(unsigned timeout_ms);

#endif
