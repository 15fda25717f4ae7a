/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/wire_text.c - the contract is in wire_text.h. */
#include "tests/support/wire_text.h"

#include "common/wire.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Field and length of what stands at `content`, and the content behind them. */
static uint8_t *put_whole(uint8_t *at, uint32_t field, const uint8_t *content, size_t length)
{
    uint8_t head[16];
    const size_t size = (size_t)(oteli_put_bytes_head(head, field, length) - head);
    memmove(at + size, content, length);
    memcpy(at, head, size);
    return at + size + length;
}

static uint8_t *put_double(uint8_t *at, const char *from, char **end)
{
    char number[64] = "";
    uint64_t bits;
    strncat(number, from, strcspn(from, " ]}"));
    const double value = strtod(number, end);
    *end = (char *)(uintptr_t)from + strlen(number);
    memcpy(&bits, &value, sizeof bits);
    return oteli_put_fixed64(at, bits);
}

static uint8_t *put_fields(uint8_t *at, const char **text);

static uint8_t *put_value(uint8_t *at, uint32_t field, const char **text)
{
    const char kind = *(*text)++;
    const char *from = *text;
    char *end;
    uint8_t *content = at;
    switch (kind) {
    case '\'':
        *text = strchr(from, '\'') + 1;
        return put_whole(at, field, (const uint8_t *)from, (size_t)(*text - from) - 1);
    case '{':
        content = put_fields(at, text);
        ++*text;
        return put_whole(at, field, at, (size_t)(content - at));
    case 'x':
        for (; isxdigit((unsigned char)**text); *text += 2)
            (void)sscanf(*text, "%2hhx", content++);
        return put_whole(at, field, at, (size_t)(content - at));
    case '=':
        at = oteli_put_varint_field(at, field, strtoull(from, &end, 10));
        break;
    case '@':
        at = oteli_put_tag(at, field, OTELI_WIRE_FIXED64);
        at = oteli_put_fixed64(at, strtoull(from, &end, 10));
        break;
    case '^':
        at = oteli_put_tag(at, field, OTELI_WIRE_FIXED32);
        at = oteli_put_fixed32(at, (uint32_t)strtoull(from, &end, 10));
        break;
    case '~':
        at = put_double(oteli_put_tag(at, field, OTELI_WIRE_FIXED64), from, &end);
        break;
    default:
        fprintf(stderr, "no field: %s\n", from - 1);
        abort();
    }
    *text = end;
    return at;
}

static bool is_over(const char **text)
{
    *text += strspn(*text, " ");
    return strchr("]}", **text) != NULL; /* or the end */
}

static uint8_t *put_fields(uint8_t *at, const char **text)
{
    while (!is_over(text)) {
        char *end;
        const uint32_t field = (uint32_t)strtoul(*text, &end, 10);
        *text = end;
        if (*end != '[') {
            at = put_value(at, field, text);
            continue;
        }
        for (++*text; !is_over(text);)
            at = put_value(at, field, text);
        ++*text;
    }
    return at;
}

otel_slice wire_text(const char *format, ...)
{
    static char text[WIRE_TEXT_MAX];
    static uint8_t bytes[WIRE_TEXT_MAX];
    const char *at = text;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof text)
        abort();
    const uint8_t *end = put_fields(bytes, &at);
    return (otel_slice){(const char *)bytes, (size_t)(end - bytes)};
}
