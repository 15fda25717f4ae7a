/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/safe_text.c - text that grows, and text from strangers made harmless.
 *
 * Runs on the thread that draws. A text owns its memory; nothing else is kept. */
#include "exporters/console/safe_text.h"

#include "common/text/utf8.h"
#include <stdarg.h>
#include <stdio.h>

void oteli_text_add_string(struct oteli_text *text, const char *string)
{
    oteli_text_add(text, string, strlen(string));
}

void oteli_text_add_format(struct oteli_text *text, const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length > 0)
        oteli_text_add(text, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

void oteli_text_add_spaces(struct oteli_text *text, size_t count)
{
    oteli_text_add_format(text, "%*s", (int)count, "");
}

struct code_points {
    uint32_t first, last;
};

static bool is_in(const struct code_points *ranges, size_t count, uint32_t point)
{
    for (size_t i = 0; i < count; i++)
        if (point >= ranges[i].first && point <= ranges[i].last)
            return true;
    return false;
}

/* Controls, and characters without a picture that change how their neighbours are shown:
 * direction overrides, invisible spaces, line separators, tags. */
static bool is_harmful(uint32_t point)
{
    static const struct code_points harmful[] = {
        {0x00, 0x1f},       {0x7f, 0x9f},        {0xad, 0xad},     {0x061c, 0x061c},
        {0x180e, 0x180e},   {0x200b, 0x200f},    {0x2028, 0x202e}, {0x2060, 0x206f},
        {0xfeff, 0xfeff},   {0xfff0, 0xfffb},    {0xfffe, 0xffff}, {0xe000, 0xf8ff},
        {0xe0000, 0xe007f}, {0xf0000, 0x10ffff},
    };
    return is_in(harmful, sizeof harmful / sizeof harmful[0], point);
}

/* The blocks that matter, not each character: a wrong guess shifts one line by a column. */
static size_t columns_of(uint32_t point)
{
    static const struct code_points combining[] = {
        {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x064b, 0x065f}, {0x1ab0, 0x1aff},
        {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef},
    };
    static const struct code_points wide[] = {
        {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xac00, 0xd7a3},
        {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
        {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
    };
    if (point < 0x0300)
        return 1;
    if (is_in(combining, sizeof combining / sizeof combining[0], point))
        return 0;
    return is_in(wide, sizeof wide / sizeof wide[0], point) ? 2 : 1;
}

/* One character as it will be shown: itself, or an escape. */
struct glyph {
    size_t bytes;   /* that it takes from the input */
    size_t columns; /* that it takes on the screen */
    size_t length;  /* of the escape; 0: the input itself */
    char escape[12];
};

static void set_escape(struct glyph *glyph, const char *format, unsigned value)
{
    glyph->length = (size_t)snprintf(glyph->escape, sizeof glyph->escape, format, value);
    glyph->columns = glyph->length;
}

static uint32_t decode(const uint8_t *at, size_t bytes)
{
    if (bytes == 1)
        return at[0];
    uint32_t point = at[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++)
        point = point << 6 | (at[i] & 0x3fu);
    return point;
}

static struct glyph next_glyph(const char *at, size_t left)
{
    const uint8_t first = (uint8_t)at[0];
    struct glyph glyph = {.bytes = 1, .columns = 1};
    if (first >= 0x20 && first < 0x7f)
        return glyph;
    const size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (bytes > left || !oteli_utf8_is_valid(at, bytes)) {
        set_escape(&glyph, "\\x%02x", first);
        return glyph;
    }
    const uint32_t point = decode((const uint8_t *)at, bytes);
    glyph.bytes = bytes;
    if (point == '\n')
        set_escape(&glyph, "\\%c", 'n');
    else if (point == '\t')
        set_escape(&glyph, "\\%c", 't');
    else if (point == '\r')
        set_escape(&glyph, "\\%c", 'r');
    else if (point < 0x80)
        set_escape(&glyph, "\\x%02x", point);
    else if (is_harmful(point))
        set_escape(&glyph, "\\u{%x}", point);
    else
        glyph.columns = columns_of(point);
    return glyph;
}

bool oteli_text_is_safe(otel_slice unsafe, size_t *bytes)
{
    const struct glyph glyph = next_glyph(unsafe.data, unsafe.length);
    *bytes = glyph.bytes;
    return glyph.length == 0;
}

size_t oteli_text_safe_columns(otel_slice unsafe, size_t limit)
{
    size_t columns = 0;
    for (size_t i = 0; i < unsafe.length && columns <= limit;) {
        const struct glyph glyph = next_glyph(unsafe.data + i, unsafe.length - i);
        columns += glyph.columns;
        i += glyph.bytes;
    }
    return columns;
}

size_t oteli_text_add_safe(struct oteli_text *text, otel_slice unsafe, size_t columns)
{
    const bool fits = oteli_text_safe_columns(unsafe, columns) <= columns;
    const size_t room = fits ? columns : columns - (columns > 0);
    size_t used = 0;
    for (size_t i = 0; i < unsafe.length;) {
        const struct glyph glyph = next_glyph(unsafe.data + i, unsafe.length - i);
        if (used + glyph.columns > room)
            break;
        if (glyph.length != 0)
            oteli_text_add(text, glyph.escape, glyph.length);
        else
            oteli_text_add(text, unsafe.data + i, glyph.bytes);
        used += glyph.columns;
        i += glyph.bytes;
    }
    if (!fits && columns > 0) {
        oteli_text_add_string(text, "…");
        used++;
    }
    return used;
}

void oteli_text_add_quoted(struct oteli_text *text, otel_slice value)
{
    bool quoted = value.length == 0;
    for (size_t i = 0; i < value.length && !quoted; i++)
        quoted = strchr(" ,\"[]{}", value.data[i]) != NULL && value.data[i] != '\0';
    if (quoted)
        oteli_text_add(text, "\"", 1);
    oteli_text_add(text, value.data, value.length);
    if (quoted)
        oteli_text_add(text, "\"", 1);
}
