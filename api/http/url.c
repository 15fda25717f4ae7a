/* SPDX-License-Identifier: Apache-2.0 */
/* api/http/url.c - the contracts are in api/http/url.h. Any thread. */
#include "api/http/url.h"
#include "common/base/atomic.h"

static void append(struct oteli_url_text *text, const char *data, size_t length)
{
    const size_t room = sizeof text->text - text->used;
    length = length < room ? length : room;
    if (length != 0)
        memcpy(text->text + text->used, data, length);
    text->used += length;
}

static void append_word(struct oteli_url_text *text, const char *word)
{
    append(text, word, strlen(word));
}

static otel_slice appended_since(const struct oteli_url_text *text, size_t start)
{
    return otel_slice_n(text->text + start, text->used - start);
}

otel_slice oteli_url_keep(struct oteli_url_text *text, otel_slice piece)
{
    const size_t start = text->used;
    append(text, piece.data, piece.length);
    return appended_since(text, start);
}

struct oteli_url oteli_url_cut(otel_slice text)
{
    struct oteli_url url = {.path = text};
    (void)oteli_cut_behind(&url.path, '#');
    url.query = oteli_cut_behind(&url.path, '?');
    if (url.path.length == 0 || url.path.data[0] == '/')
        return url;
    const char *const end = url.path.data + url.path.length;
    const char *mark = memchr(url.path.data, '/', url.path.length);
    if (mark == NULL || mark[-1] != ':' || mark + 1 == end || mark[1] != '/')
        return url;
    url.scheme = otel_slice_n(text.data, (size_t)(mark - 1 - text.data));
    url.authority = otel_slice_n(mark + 2, (size_t)(end - mark - 2));
    const char *path = memchr(url.authority.data, '/', url.authority.length);
    if (path != NULL)
        url.authority.length = (size_t)(path - url.authority.data);
    url.path = path != NULL ? otel_slice_n(path, (size_t)(end - path)) : otel_slice_of("/");
    const char *at = memrchr(url.authority.data, '@', url.authority.length);
    if (at != NULL) {
        url.user = otel_slice_n(url.authority.data, (size_t)(at + 1 - url.authority.data));
        url.authority = otel_slice_n(at + 1, url.authority.length - url.user.length);
    }
    return url;
}

/* A port between 1 and 65,535; 0: it is none. */
static uint16_t port_of(otel_slice digits)
{
    enum { MOST_DIGITS = 5 };
    const char *const end = digits.data + digits.length;
    uint32_t port = 0;
    if (digits.length > MOST_DIGITS)
        return 0;
    for (const char *at = digits.data; at != end; at++) {
        const unsigned digit = (unsigned char)*at - (unsigned)'0';
        if (digit > 9)
            return 0;
        port = port * 10 + digit;
    }
    return port <= UINT16_MAX ? (uint16_t)port : 0;
}

static OTELI_NOINLINE otel_slice host_in_brackets(otel_slice authority, uint16_t *port)
{
    otel_slice host = otel_slice_n(authority.data + 1, authority.length - 1);
    otel_slice digits = oteli_cut_behind(&host, ']'); /* with its colon */
    (void)oteli_cut(digits, ':', &(otel_slice){0}, &digits);
    const uint16_t number = port_of(digits);
    *port = number != 0 ? number : *port;
    return host;
}

otel_slice oteli_url_host(otel_slice authority, uint16_t *port)
{
    if (authority.length != 0 && OTELI_UNLIKELY(authority.data[0] == '['))
        return host_in_brackets(authority, port);
    otel_slice host = authority;
    const otel_slice digits = oteli_cut_behind(&host, ':');
    const uint16_t number = port_of(digits);
    if (OTELI_LIKELY(number != 0)) {
        *port = number;
        return host;
    }
    const bool is_ipv6 = digits.length != 0 && memchr(digits.data, ':', digits.length) != NULL;
    return is_ipv6 ? authority : host;
}

otel_slice oteli_url_join(struct oteli_url_text *text, otel_slice scheme, otel_slice authority,
                          otel_slice path)
{
    const size_t start = text->used;
    append(text, scheme.data, scheme.length);
    append_word(text, "://");
    append(text, authority.data, authority.length);
    append(text, path.data, path.length);
    return appended_since(text, start);
}

/* Query parameters whose values are credentials: those that the conventions list, and two of AWS
 * that other versions of them have. */
static bool is_secret(otel_slice key)
{
    static const char *const secrets[] = {"X-Amz-Signature",
                                          "X-Amz-Credential",
                                          "X-Amz-Security-Token",
                                          "X-Goog-Signature",
                                          "AWSAccessKeyId",
                                          "Signature",
                                          "sig"};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        if (oteli_is_text(key, secrets[i]))
            return true;
    return false;
}

/* Append the text from `copied` to `secret`, and what is shown instead of that. Returns what is
 * to be appended next. */
static const char *hide(struct oteli_url_text *text, const char *copied, otel_slice secret,
                        const char *instead)
{
    append(text, copied, (size_t)(secret.data - copied));
    append_word(text, instead);
    return secret.data + secret.length;
}

otel_slice oteli_url_redact(struct oteli_url_text *text, otel_slice whole, otel_slice user,
                            otel_slice query)
{
    if (user.length + query.length == 0)
        return whole;
    const size_t start = text->used;
    const char *copied = whole.data;
    if (user.length != 0)
        copied = hide(text, copied, user, "REDACTED:REDACTED@");
    otel_slice rest = query;
    otel_slice key;
    while (oteli_piece_next(&rest, '&', &key)) {
        const otel_slice value = oteli_cut_behind(&key, '=');
        if (value.length != 0 && is_secret(key))
            copied = hide(text, copied, value, "REDACTED");
    }
    if (copied == whole.data)
        return whole;
    append(text, copied, (size_t)(whole.data + whole.length - copied));
    return appended_since(text, start);
}

static otel_slice unquoted(otel_slice value)
{
    const bool is_quoted = value.length >= 2 && value.data[0] == '"';
    return is_quoted ? otel_slice_n(value.data + 1, value.length - 2) : value;
}

struct oteli_forwarded oteli_url_forwarded(otel_slice member)
{
    struct oteli_forwarded said = {{0}, {0}, {0}};
    otel_slice pair;
    otel_slice name;
    otel_slice value;
    while (oteli_piece_next(&member, ';', &pair)) {
        if (!oteli_cut(pair, '=', &name, &value))
            continue;
        value = unquoted(value);
        if (oteli_is_word(name, "for"))
            said.client = oteli_url_host(value, &(uint16_t){0});
        else if (oteli_is_word(name, "proto"))
            said.scheme = value;
        else if (oteli_is_word(name, "host"))
            said.host = value;
    }
    if (oteli_is_word(said.client, "unknown") ||
        (said.client.length != 0 && said.client.data[0] == '_'))
        said.client = otel_slice_n(NULL, 0);
    return said;
}
