/* SPDX-License-Identifier: Apache-2.0 */
/* common/text/secrets.c - the contracts are in common/text/secrets.h. */
#include "common/text/secrets.h"

#include "common/text/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct output {
    char *at;
    size_t left;      /* with room for the NUL */
    const char *ends; /* what no password goes on behind */
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

/* Where the last @ of a piece of text is; NULL: nowhere. */
static const char *find_at(const char *text, size_t length)
{
    return length != 0 ? memrchr(text, '@', length) : NULL;
}

/* Whether what stands between the slashes can be an address, or a password has an end to it that
 * only looks like a part of the URL: what is behind the colon is a number. */
static bool is_address(const char *authority, size_t length)
{
    const char *colon = *authority != '[' ? memchr(authority, ':', length) : NULL;
    if (colon == NULL)
        return true;
    const size_t port = strspn(colon + 1, "0123456789");
    return colon + 1 + port == authority + length || colon[1 + port] == ',';
}

/* Where the host begins behind a scheme: after the user and the password, if it has them. */
static const char *host_of(const struct output *output, const char *authority)
{
    const size_t length = strcspn(authority, "/?# \"");
    const char *at = find_at(authority, length);
    if (at == NULL && !is_address(authority, length))
        at = find_at(authority, strcspn(authority, output->ends));
    return at != NULL ? at + 1 : authority;
}

/* A word in which there is no scheme: name=user:password@host. */
static void put_word(struct output *output, const char *word, size_t length)
{
    const char *colon = length != 0 ? memchr(word, ':', length) : NULL;
    const char *at = find_at(word, length);
    if (colon == NULL || at == NULL || at < colon) {
        put(output, word, length);
        return;
    }
    const char *equals = memrchr(word, '=', (size_t)(colon - word));
    if (equals != NULL)
        put(output, word, (size_t)(equals + 1 - word));
    put_text(output, "***");
    put(output, at, (size_t)(word + length - at));
}

/* Words, and what is between them. */
static void put_words(struct output *output, const char *text, size_t length)
{
    const char *const end = text + length;
    while (text < end) {
        size_t word = strcspn(text, output->ends);
        word = word < (size_t)(end - text) ? word : (size_t)(end - text);
        put_word(output, text, word);
        text += word;
        if (text < end)
            put(output, text++, 1);
    }
}

/* Hide what is behind a ? or #; where that ends. */
static const char *put_query(struct output *output, const char *text)
{
    put(output, text, 1);
    put_text(output, "***");
    const char *end = text + 1 + strcspn(text + 1, ", ");
    return end[-1] == '"' ? end - 1 : end;
}

static const char *hide(const char *text, char *out, size_t size, const char *ends)
{
    struct output output = {out, size, ends};
    out[0] = '\0';
    for (const char *scheme; (scheme = strstr(text, "://")) != NULL;) {
        const char *authority = scheme + 3;
        put_words(&output, text, (size_t)(authority - text));
        const char *host = host_of(&output, authority);
        if (host != authority)
            put_text(&output, "***@");
        const size_t path = strcspn(host, "?#, \"");
        put(&output, host, path);
        text = host + path;
        if (*text == '?' || *text == '#')
            text = put_query(&output, text);
    }
    put_words(&output, text, strlen(text));
    return out;
}

const char *oteli_hide_in_words(const char *text, char *out, size_t size)
{
    return hide(text, out, size, " \"");
}

const char *oteli_hide_in_setting(const char *text, char *out, size_t size)
{
    return hide(text, out, size, "");
}

const char *oteli_hide_header_values(const char *list, char *out, size_t size)
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
