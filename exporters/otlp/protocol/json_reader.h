/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol/json_reader.h - read JSON that a server sent, strictly and in place.
 *
 *     struct oteli_json json = oteli_json_begin(text, length);
 *     otel_slice key;
 *     for (bool first = oteli_json_object(&json); oteli_json_member(&json, &first, &key);)
 *         if (oteli_json_is(key, "rate")) oteli_json_number(&json, &number);
 *         else oteli_json_skip(&json);
 *     if (!oteli_json_end(&json)) ... it was not JSON, or not of the expected form
 *
 * After the first thing that is wrong every function fails, so only the end needs to be looked
 * at. Every member's value has to be read or skipped. Nesting is limited, nothing is recursive,
 * and only oteli_json_text allocates.
 *
 * Threads:  one thread at a time for a reader.
 * Source:   RFC 8259. */
#ifndef OTELI_JSON_READER_H
#define OTELI_JSON_READER_H

#include <otel/exporter.h>
#include <stdbool.h>
#include <stddef.h>

enum { OTELI_JSON_DEPTH = 32 };

struct oteli_json {
    const char *at;
    const char *end;
    unsigned depth;
    bool failed;
};

struct oteli_json oteli_json_begin(const char *text, size_t length);

/* Whether all of it was good, and there is nothing behind it. */
bool oteli_json_end(struct oteli_json *json);

/* The character that a value begins with, without taking it; 0: there is no more. */
char oteli_json_next(struct oteli_json *json);

/* Enter an object or an array; false: it is none. The answer is the `first` of the loop. */
bool oteli_json_object(struct oteli_json *json);
bool oteli_json_array(struct oteli_json *json);

/* Go to the next member, or element; false: there are no more, and the reader is behind it. The
 * key is as it is written, escapes and all. */
bool oteli_json_member(struct oteli_json *json, bool *first, otel_slice *key);
bool oteli_json_element(struct oteli_json *json, bool *first);

/* Whether a key is this one. */
bool oteli_json_is(otel_slice key, const char *name);

/* If a null stands here, take it. */
bool oteli_json_null(struct oteli_json *json);

/* Take a number, as it is written; a string, as it is written and without its quotes; a string
 * as a text on the heap, unescaped. A text cannot hold a NUL. */
bool oteli_json_number(struct oteli_json *json, otel_slice *number);
bool oteli_json_string(struct oteli_json *json, otel_slice *string);
bool oteli_json_text(struct oteli_json *json, char **text);

/* Unescape a string that was taken: as much of it as fits into `size` bytes with the NUL behind it,
 * and up to what cannot stand in a text. What fits may end inside a character. Gives the length. */
size_t oteli_json_copy(otel_slice string, char *out, size_t size);

/* Take whatever value stands here. */
void oteli_json_skip(struct oteli_json *json);

/* What is read does not make sense: fail. */
void oteli_json_refuse(struct oteli_json *json);

#endif
