/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/json/otlp_json.h - a batch as an ExportTraceServiceRequest in OTLP's JSON encoding,
 * which is a TracesData as well.
 *
 * One line, made of what any exporter sees: spans by scope, in the order in which each scope
 * comes first. Fields that have their default value are left out.
 *
 * Threads:  one thread at a time.
 * Source:   opentelemetry-proto docs/specification.md "JSON Protobuf Encoding". */
#ifndef OTELI_OTLP_JSON_H
#define OTELI_OTLP_JSON_H

#include "common/base/internal_api.h"
#include "exporters/json/json_text.h"

/* Append the spans from number `first` on, before `end`, without a newline. False, and what was
 * appended is of no use: it has more than `max_bytes`, or there is no memory. */
bool oteli_otlp_json_add(struct oteli_text *json, const otel_batch *batch, size_t first, size_t end,
                         size_t max_bytes);

/* Make the text anew, of the spans from number `first` on: of `max_spans` at most, a number that is
 * halved until the text has at most `max_bytes`. Gives how many; 0: the first alone is too much, or
 * there is no memory, and json->failed. */
OTELI_INTERNAL_API size_t oteli_otlp_json_request(struct oteli_text *json, const otel_batch *batch,
                                                  size_t first, size_t max_spans, size_t max_bytes);

#endif
