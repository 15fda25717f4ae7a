/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/received.h - the real SDK, exporting each span when it ends to a receiver that
 * forgives nothing (strict.h) and keeps everything. A span that it refuses ends the program.
 *
 * Threads:  one. */
#ifndef OTELI_TESTS_RECEIVED_H
#define OTELI_TESTS_RECEIVED_H

#include "opentelemetry/proto/trace/v1/trace.pb-c.h"

#include <otel/otel.h>

typedef Opentelemetry__Proto__Trace__V1__Span received_pb_span;
typedef Opentelemetry__Proto__Common__V1__KeyValue received_pb_key_value;

/* Start the SDK with these options (or NULL), which get the exporter; and stop it. */
void received_start(otel_sdk_options *options);
void received_stop(void);

/* What has been received since the start: spans in the order of their ends; warnings and
 * errors. */
size_t received_count(void);
size_t received_logs(void);
const char *received_last_log(void);

/* A span as protobuf-c sees it, and its bytes. Until received_stop. */
const received_pb_span *received_span(size_t index);
otel_slice received_bytes(size_t index);

/* The attributes of the resource and of the scope of the last span. */
otel_slice received_resource(void);
otel_slice received_scope(void);

/* Part `nth` (from 0) of a message: field `number` of it. False: there is none. */
bool received_part(otel_slice message, uint32_t number, size_t nth, otel_slice *part);

/* The AnyValue bytes of the attribute with this key among the fields `number` of a message.
 * False: there is none. */
bool received_value(otel_slice message, uint32_t number, const char *key, size_t key_length,
                    otel_slice *any_value);

/* That it is there, with what these limits leave of the value. */
void received_check(otel_slice message, uint32_t number, const char *key, otel_value value,
                    size_t length_limit, unsigned depth_limit);

/* For AROUND_EACH: start without options, stop. */
int received_begin(void **state);
int received_end(void **state);

#endif
