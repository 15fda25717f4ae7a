/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/json/json_text.h - JSON text that grows: strings, numbers, bytes, one behind the other.
 *
 * Threads:  one thread at a time.
 * Errors:   without memory a text stops growing and remembers it in `failed`, so that only
 *           the end result has to be checked.
 * Nothing here depends on the locale. Source: RFC 8259. */
#ifndef OTELI_JSON_TEXT_H
#define OTELI_JSON_TEXT_H

#include "common/base/internal_api.h"

#include <otel/exporter.h>

struct oteli_text {
    char *data; /* not terminated; owned */
    size_t length;
    size_t capacity;
    bool failed;
};

OTELI_INTERNAL_API void oteli_text_fini(struct oteli_text *json);

/* Forget what is in it, a failure too, and keep the memory unless it is huge. */
void oteli_text_reset(struct oteli_text *json);

/* Append as it is. */
void oteli_text_add(struct oteli_text *json, const char *data, size_t length);
#define OTELI_JSON_ADD(json, literal) oteli_text_add(json, "" literal, sizeof(literal) - 1)

/* Append in quotes, escaped; what is not UTF-8 becomes U+FFFD byte by byte. */
void oteli_json_add_string(struct oteli_text *json, otel_slice string);

/* Append as lower-case hexadecimal digits. */
void oteli_text_add_hex(struct oteli_text *text, const uint8_t *bytes, size_t length);

/* Append in quotes, as lower-case hexadecimal digits or as base64 (RFC 4648, padded). */
void oteli_json_add_hex(struct oteli_text *json, const uint8_t *bytes, size_t length);
void oteli_json_add_base64(struct oteli_text *json, otel_slice bytes);

/* Append the digits of a whole number. */
void oteli_json_add_unsigned(struct oteli_text *json, uint64_t number);
void oteli_json_add_signed(struct oteli_text *json, int64_t number);

/* Append a number with as few digits as it takes to read the same one back; and "NaN",
 * "Infinity", "-Infinity" as strings. */
void oteli_json_add_double(struct oteli_text *json, double number);

/* An object whose members may all be missing: each member begins with a comma, and the
 * first comma becomes the brace.
 *
 *     const size_t object = oteli_json_open(json);
 *     if (...)
 *         OTELI_JSON_ADD(json, ",\"a\":1");
 *     oteli_json_close(json, object); */
static inline size_t oteli_json_open(const struct oteli_text *json)
{
    return json->length;
}
void oteli_json_close(struct oteli_text *json, size_t object);

#endif
