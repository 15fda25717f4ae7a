/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/span_oracle.h - what protobuf-c makes of recorded spans. */
#ifndef OTELI_TESTS_SPAN_ORACLE_H
#define OTELI_TESTS_SPAN_ORACLE_H

#include "opentelemetry/proto/trace/v1/trace.pb-c.h"
#include "tests/support/recorder.h"

typedef Opentelemetry__Proto__Trace__V1__Span pb_span;
typedef Opentelemetry__Proto__Trace__V1__Span__Event pb_event;
typedef Opentelemetry__Proto__Trace__V1__Span__Link pb_link;
typedef Opentelemetry__Proto__Common__V1__KeyValue pb_key_value;
typedef Opentelemetry__Proto__Common__V1__AnyValue pb_any_value;

/* Unpack a recorded span, after checking that protobuf-c, packing it again, gets the same
 * bytes: no field twice, none in another order, none that need not be there. */
pb_span *oracle_unpack(size_t index);
void oracle_free(pb_span *span);

/* Pack a value under a key as a KeyValue message, by way of protobuf-c's structs, as strict.h makes
 * it without a limit. */
size_t oracle_pack_key_value(const char *key, const otel_value *value, uint8_t *out);

#endif
