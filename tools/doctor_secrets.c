/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor_secrets.c - the contracts are in tools/doctor_secrets.h. */
#include "tools/doctor_secrets.h"

#include "common/text.h"
#include "exporters/otlp/answer.h"

#include <stdio.h>
#include <string.h>

struct output {
    char *at;
    size_t left; /* with room for the NUL */
};

static void put(struct output *output, const char *text, size_t length)
{
    if (length >= output->left)
        length = output->left - 1;
    memcpy(output->at, text, length);
    output->at += length;
    output->left -= length;
    *output->at = '\0';
}

static void put_text(struct output *output, const char *text)
{
    put(output, text, strlen(text));
}

const char *doctor_hide_in_urls(const char *text, char *out, size_t size)
{
    struct output output = {out, size};
    for (const char *scheme; (scheme = strstr(text, "://")) != NULL;) {
        const char *authority = scheme + 3;
        put(&output, text, (size_t)(authority - text));
        const size_t length = strcspn(authority, "/?#, ");
        const char *host = authority;
        for (const char *at = authority; at < authority + length; at++) {
            if (*at == '@')
                host = at + 1;
        }
        if (host != authority)
            put_text(&output, "***@");
        const size_t path = strcspn(host, "?#, ");
        put(&output, host, path);
        text = host + path;
        if (*text == '?' || *text == '#') {
            put(&output, text, 1);
            put_text(&output, "***");
            text += strcspn(text, ", ");
        }
    }
    put_text(&output, text);
    return out;
}

const char *doctor_hide_headers(const char *list, char *out, size_t size)
{
    struct output output = {out, size};
    out[0] = '\0';
    otel_slice rest = oteli_slice_of(list);
    otel_slice pair;
    while (oteli_list_next(&rest, &pair)) {
        otel_slice name;
        otel_slice value;
        if (output.at != out)
            put_text(&output, ",");
        if (oteli_cut(pair, '=', &name, &value))
            put(&output, name.data, name.length);
        put_text(&output, "=***");
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
