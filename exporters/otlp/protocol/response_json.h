/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol/response_json.h - the two messages of response.h where a receiver answers in JSON.
 *
 * Bodies come from somebody else: they are read in place, with no recursion, and nothing is
 * allocated. Of a body that was cut, what stands in it counts.
 *
 * Threads:  any thread; no state.
 * Source:   opentelemetry-proto docs/specification.md "JSON Protobuf Encoding"; the names of
 *           protobuf itself are understood as well. */
#ifndef OTELI_RESPONSE_JSON_H
#define OTELI_RESPONSE_JSON_H

#include "exporters/otlp/protocol/response.h"

/* ExportTraceServiceResponse.partial_success; the message as oteli_answer_printable makes it, in
 * `message`, which is "" where there is none. Gives the number of spans that were refused. */
uint64_t oteli_answer_json_partial_success(const struct oteli_answer_body *body, char *message,
                                           size_t size);

/* google.rpc.Status.message in the same way; false: there is none. */
bool oteli_answer_json_status_message(const struct oteli_answer_body *body, char *message,
                                      size_t size);

#endif
