/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/json/json_text.c - the contracts are in json_text.h. One thread at a time; owns the
 * text. */
#include "exporters/json/json_text.h"

#include "common/text/text.h"
#include "common/text/utf8.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_AT_FIRST = 4096, BYTES_KEPT = 2 << 20 };

void oteli_text_fini(struct oteli_text *json)
{
    free(json->data);
    *json = (struct oteli_text){0};
}

void oteli_text_reset(struct oteli_text *json)
{
    json->length = 0;
    json->failed = false;
    if (json->capacity > BYTES_KEPT)
        oteli_text_fini(json);
}

/* Where `more` bytes can be written; NULL: no memory. */
static char *room_for(struct oteli_text *json, size_t more)
{
    if (json->failed || more > SIZE_MAX / 4 - json->length) {
        json->failed = true;
        return NULL;
    }
    const size_t wanted = json->length + more;
    if (wanted > json->capacity) {
        const size_t least =
            json->capacity * 2 > BYTES_AT_FIRST ? json->capacity * 2 : (size_t)BYTES_AT_FIRST;
        const size_t capacity = wanted > least ? wanted : least;
        char *larger = realloc(json->data, capacity);
        if (larger == NULL) {
            json->failed = true;
            return NULL;
        }
        json->data = larger;
        json->capacity = capacity;
    }
    return json->data + json->length;
}

void oteli_text_add(struct oteli_text *json, const char *data, size_t length)
{
    char *at = room_for(json, length);
    if (at == NULL || length == 0)
        return;
    memcpy(at, data, length);
    json->length += length;
}

void oteli_json_close(struct oteli_text *json, size_t object)
{
    if (json->length == object)
        OTELI_JSON_ADD(json, "{");
    else
        json->data[object] = '{';
    OTELI_JSON_ADD(json, "}");
}

/* ---- strings -------------------------------------------------------------------------- */

/* Append a byte that cannot stand in a string as it is. */
static void add_escape(struct oteli_text *json, uint8_t byte)
{
    static const char plain[] = "\b\t\n\f\r\"\\";
    static const char letters[] = "btnfr\"\\";
    static const char digits[] = "0123456789abcdef";
    const char *found = byte != 0 ? strchr(plain, byte) : NULL;
    if (found != NULL) {
        const char escape[] = {'\\', letters[found - plain]};
        oteli_text_add(json, escape, sizeof escape);
    } else {
        const char escape[] = {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
        oteli_text_add(json, escape, sizeof escape);
    }
}

/* Append text that is UTF-8. */
static void add_escaped(struct oteli_text *json, const char *text, size_t length)
{
    size_t from = 0; /* what is before has been added */
    for (size_t i = 0; i < length; i++) {
        const uint8_t byte = (uint8_t)text[i];
        if (byte >= 0x20 && byte != '"' && byte != '\\')
            continue;
        oteli_text_add(json, text + from, i - from);
        add_escape(json, byte);
        from = i + 1;
    }
    oteli_text_add(json, text + from, length - from);
}

void oteli_json_add_string(struct oteli_text *json, otel_slice string)
{
    OTELI_JSON_ADD(json, "\"");
    while (string.length != 0) {
        const size_t valid = oteli_is_ascii(string.data, string.length)
                                 ? string.length
                                 : oteli_utf8_valid_prefix(string.data, string.length);
        add_escaped(json, string.data, valid);
        string.data += valid;
        string.length -= valid;
        if (string.length != 0) {
            OTELI_JSON_ADD(json, "\\ufffd");
            string.data++;
            string.length--;
        }
    }
    OTELI_JSON_ADD(json, "\"");
}

void oteli_text_add_hex(struct oteli_text *text, const uint8_t *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    char *at = room_for(text, 2 * length);
    if (at == NULL)
        return;
    for (size_t i = 0; i < length; i++) {
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 15];
    }
    text->length += 2 * length;
}

void oteli_json_add_hex(struct oteli_text *json, const uint8_t *bytes, size_t length)
{
    OTELI_JSON_ADD(json, "\"");
    oteli_text_add_hex(json, bytes, length);
    OTELI_JSON_ADD(json, "\"");
}

void oteli_json_add_base64(struct oteli_text *json, otel_slice bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t length = (bytes.length + 2) / 3 * 4 + 2;
    char *at = room_for(json, length);
    if (at == NULL)
        return;
    const uint8_t *from = (const uint8_t *)bytes.data;
    *at++ = '"';
    for (size_t left = bytes.length; left != 0; left -= left < 3 ? left : 3, from += 3) {
        const uint32_t bits = (uint32_t)from[0] << 16 | (left > 1 ? (uint32_t)from[1] << 8 : 0) |
                              (left > 2 ? from[2] : 0);
        *at++ = digits[bits >> 18];
        *at++ = digits[bits >> 12 & 63];
        *at++ = left > 1 ? digits[bits >> 6 & 63] : '=';
        *at++ = left > 2 ? digits[bits & 63] : '=';
    }
    *at = '"';
    json->length += length;
}

/* ---- numbers -------------------------------------------------------------------------- */

void oteli_json_add_unsigned(struct oteli_text *json, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    oteli_text_add(json, digits + at, sizeof digits - at);
}

void oteli_json_add_signed(struct oteli_text *json, int64_t number)
{
    if (number < 0)
        OTELI_JSON_ADD(json, "-");
    oteli_json_add_unsigned(json, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

void oteli_json_add_double(struct oteli_text *json, double number)
{
    const double exact_max = 1e15;
    char text[OTELI_DECIMAL_SIZE];
    if (isnan(number))
        OTELI_JSON_ADD(json, "\"NaN\"");
    else if (isinf(number) && number > 0)
        OTELI_JSON_ADD(json, "\"Infinity\"");
    else if (isinf(number))
        OTELI_JSON_ADD(json, "\"-Infinity\"");
    else if (number == 0 && signbit(number))
        OTELI_JSON_ADD(json, "-0.0"); /* many readers make the integer 0 of -0 */
    else if (fabs(number) < exact_max && number == (double)(int64_t)number)
        oteli_json_add_signed(json, (int64_t)number);
    else
        oteli_text_add(json, text, strlen(oteli_decimal_text(number, text)));
}
