/* SPDX-License-Identifier: Apache-2.0 */
/* proto/json.h - print any OTLP message as OTLP/JSON.
 *
 * Works on protobuf-c's descriptors, so it knows no message by name. It is proto3's JSON
 * with what OTLP changes: trace and span ids are lower-case hex and not base64, and enums
 * are numbers. Fields with their default value are left out, members of a oneof never.
 * protobuf-c keeps strings as C strings: one with a NUL inside ends there.
 *
 * Threads:  any thread, one at a time for a message.
 * Source:   opentelemetry-proto docs/specification.md "JSON Protobuf Encoding";
 *           protobuf.dev/programming-guides/json. */
#ifndef OTELI_JSON_H
#define OTELI_JSON_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

/* Messages in messages, at most: as deep as other readers of protobuf go. */
enum { OTELI_JSON_DEPTH_MAX = 100 };

/* Append the message on one line, without a newline. False: it is nested too deeply, and
 * what was appended is of no use. */
bool oteli_json_print(const ProtobufCMessage *message, ProtobufCBuffer *out);

#endif
