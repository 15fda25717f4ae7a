/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_redact.c - the contracts are in
 * tools/doctor/settings/doctor_redact.h. */
#include "tools/doctor/settings/doctor_redact.h"

#include "common/text/utf8.h"
#include "exporters/otlp/protocol/response.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *doctor_one_line(const char *text, size_t length, char *out, size_t size)
{
    /* Runs of white space are one blank: answers are often pages. */
    char flat[1024];
    size_t used = 0;
    for (size_t i = 0; i < length && used < sizeof flat; i++) {
        const bool blank = strchr(" \t\r\n", text[i]) != NULL;
        if (!blank)
            flat[used++] = text[i];
        else if (used != 0 && flat[used - 1] != ' ')
            flat[used++] = ' ';
    }
    while (used != 0 && flat[used - 1] == ' ')
        used--;
    return oteli_response_printable((otel_slice){.data = flat, .length = used}, out, size);
}

/* The bytes of a valid character that is not to reach a terminal; 0: it may. */
static size_t hidden_length(const unsigned char *at)
{
    if (at[0] < 0x20 || at[0] == 0x7f)
        return 1;
    if (at[0] == 0xc2 && at[1] < 0xa0) /* U+0080 to U+009F */
        return 2;
    /* U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069 */
    if (at[0] == 0xe2 && at[1] == 0x80)
        return at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xa8 && at[2] <= 0xae) ? 3 : 0;
    return at[0] == 0xe2 && at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9 ? 3 : 0;
}

static unsigned code_point(const unsigned char *at, size_t length)
{
    return length == 1   ? at[0]
           : length == 2 ? (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu)
                         : (at[0] & 0x0fu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
}

void doctor_put_visible(FILE *out, const char *line, size_t length, bool is_json)
{
    size_t valid = 0; /* bytes up to the next that is not UTF-8 */
    for (size_t i = 0; i < length;) {
        const unsigned char *at = (const unsigned char *)line + i;
        if (valid == 0)
            valid = oteli_utf8_valid_prefix(line + i, length - i);
        const size_t hidden = valid == 0 ? 1 : hidden_length(at);
        if (hidden != 0 && is_json)
            fprintf(out, "\\u%04x", code_point(at, hidden));
        for (size_t j = 0; j < hidden && !is_json; j++)
            fprintf(out, "\\x%02x", at[j]);
        if (hidden == 0)
            fputc(*at, out);
        const size_t step = hidden != 0 ? hidden : 1;
        valid -= step < valid ? step : valid;
        i += step;
    }
}
