/* SPDX-License-Identifier: Apache-2.0 */
/* common/text/text.h - cut, compare and decode pieces of text that comes from outside: headers,
 * settings, responses.
 *
 * A piece is an otel_slice: it points into the text and is not NUL-terminated. Nothing
 * here depends on the locale or on errno, and only oteli_slice_copy and oteli_parse_decimal
 * allocate.
 *
 * Threads:  any thread; no state. */
#ifndef OTELI_TEXT_H
#define OTELI_TEXT_H

#include "common/base/internal_api.h"
#include <otel/exporter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline otel_slice oteli_slice_of(const char *text)
{
    return (otel_slice){.data = text, .length = text ? strlen(text) : 0};
}

/* A text in a struct of the program: NULL is empty, and without a length it ends with a NUL. */
static inline otel_slice oteli_text_of(const char *text, size_t length)
{
    if (text == NULL)
        return (otel_slice){.data = "", .length = 0};
    return (otel_slice){.data = text, .length = length != 0 ? length : strlen(text)};
}

static inline otel_slice oteli_key_of(const otel_attribute *attribute)
{
    return oteli_text_of(attribute->key, attribute->key_length);
}

static inline char oteli_to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Without the spaces and tabs at both ends. */
OTELI_INTERNAL_API otel_slice oteli_trim(otel_slice text);

/* Take what stands up to the next `mark` from the front of `rest`, as it is. false: there is
 * nothing left. */
OTELI_INTERNAL_API bool oteli_piece_next(otel_slice *rest, char mark, otel_slice *piece);

/* Take the next member of a comma separated list from the front of `rest`, trimmed. Empty
 * members are skipped. false: there is none left. */
OTELI_INTERNAL_API bool oteli_list_next(otel_slice *rest, otel_slice *member);

/* Cut at the first `mark`: what stands before and behind it, both trimmed. false: there is
 * no mark, and nothing is written. */
OTELI_INTERNAL_API bool oteli_cut(otel_slice text, char mark, otel_slice *before,
                                  otel_slice *behind);

/* Whether the text is this word; ASCII letters in any case. */
OTELI_INTERNAL_API bool oteli_is_word(otel_slice text, const char *word);

/* Whether it is exactly this text. */
static inline bool oteli_is_same(otel_slice slice, otel_slice other)
{
    return slice.length == other.length &&
           (slice.length == 0 || memcmp(slice.data, other.data, slice.length) == 0);
}
static inline bool oteli_is_text(otel_slice slice, const char *text)
{
    return slice.length == strlen(text) && memcmp(slice.data, text, slice.length) == 0;
}

/* Copy a text and a NUL behind it: length + 1 bytes. Returns `out`. */
static inline char *oteli_slice_put(char *out, otel_slice text)
{
    if (text.length != 0)
        memcpy(out, text.data, text.length);
    out[text.length] = '\0';
    return out;
}

/* Copy as much of a text as fits into `size` bytes with a NUL; `out` may overlap it. Returns the
 * length of the whole. */
static inline size_t oteli_slice_fit(char *out, size_t size, otel_slice text)
{
    const size_t copied = text.length < size ? text.length : size - 1;
    if (size != 0 && copied != 0)
        memmove(out, text.data, copied);
    if (size != 0)
        out[copied] = '\0';
    return text.length;
}

/* How "span" goes on behind a number of them: 1 span is lost, 2 spans are lost. */
static inline const char *oteli_is_or_are(uint64_t count)
{
    return count == 1 ? " is" : "s are";
}

/* How "span" goes on where no verb follows: 1 span, 2 spans. */
static inline const char *oteli_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* A NUL-terminated copy on the heap, or NULL without memory. */
OTELI_INTERNAL_API char *oteli_slice_copy(otel_slice text);

/* FNV-1a, which only has to tell texts apart: the hash of what was hashed before and these bytes
 * behind it. */
#define OTELI_HASH_BEGIN UINT64_C(0xcbf29ce484222325)
static inline uint64_t oteli_hash(uint64_t hash, const void *data, size_t length)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* What an ASCII character is worth as a hexadecimal digit; -1: it is none. */
OTELI_INTERNAL_API int oteli_hex_digit(char c);

/* Whether the name of a header can be this: RFC 9110, 5.6.2 "token". */
OTELI_INTERNAL_API bool oteli_is_token(const char *text, size_t length);

/* Write a byte as %XX. Returns what comes behind it. */
static inline char *oteli_percent_put(char *out, char byte)
{
    static const char digits[] = "0123456789ABCDEF";
    *out++ = '%';
    *out++ = digits[(unsigned char)byte >> 4];
    *out++ = digits[(unsigned char)byte & 15];
    return out;
}

/* Write bytes as hexadecimal digits and a NUL: 2 * length + 1 bytes. Returns `out`. */
static inline char *oteli_hex_put(char *out, const uint8_t *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < length; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * length] = '\0';
    return out;
}

/* Replace every %xx by its byte; everything else, '+' too, stays. `out` needs room for
 * `length` bytes and may be `text`; it gets no NUL, and may contain one (%00). false: some
 * '%' is not followed by two hexadecimal digits, and `out` is of no use. */
OTELI_INTERNAL_API bool oteli_percent_decode(const char *text, size_t length, char *out,
                                             size_t *out_length);

/* Read decimal digits, with blanks around them and nothing else: no sign, no unit. false:
 * there is something else, or the number is above INT64_MAX. */
OTELI_INTERNAL_API bool oteli_parse_whole(otel_slice text, int64_t *number);

/* Read a decimal number, perhaps with a sign, a point and an exponent, behind which no digit
 * stands. false: there is something else, or no memory. */
OTELI_INTERNAL_API bool oteli_parse_decimal(otel_slice text, double *number);

/* Write a finite number as JSON has it, with as few digits as it takes to read the same one back:
 * 404, 0.5, 1e+21. */
enum { OTELI_DECIMAL_SIZE = 32 };
OTELI_INTERNAL_API const char *oteli_decimal_text(double number, char text[OTELI_DECIMAL_SIZE]);

/* A text that is put together piece by piece, in a buffer. What does not fit is counted and not
 * written, as snprintf does it. */
struct oteli_text_builder {
    char *text;
    size_t size;
    size_t length; /* of the whole text, written or not */
};
OTELI_INTERNAL_API void oteli_build(struct oteli_text_builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
