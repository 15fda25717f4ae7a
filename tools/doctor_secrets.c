/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor_secrets.c - the contracts are in tools/doctor_secrets.h. */
#include "tools/doctor_secrets.h"

#include "common/text.h"
#include "exporters/otlp/answer.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *doctor_hide_headers(const char *list, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    otel_slice rest = oteli_slice_of(list);
    otel_slice pair;
    while (used < size && oteli_list_next(&rest, &pair)) {
        otel_slice name = {.data = "", .length = 0};
        otel_slice value;
        (void)oteli_cut(pair, '=', &name, &value);
        used += (size_t)snprintf(out + used, size - used, "%s%.*s=***", used != 0 ? "," : "",
                                 (int)name.length, name.data);
    }
    return out;
}

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
    return oteli_answer_printable((otel_slice){.data = flat, .length = used}, out, size);
}
