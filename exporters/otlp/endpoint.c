/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/endpoint.c - the contracts are in exporters/otlp/endpoint.h. Runs where
 * exporters are made; owns nothing. */
#include "exporters/otlp/endpoint.h"

#include "common/config.h"
#include "common/log.h"
#include "common/text.h"
#include "exporters/otlp/transport.h"

#include <stdlib.h>
#include <strings.h>

static bool join(char **out, const char *head, size_t head_length, const char *middle,
                 const char *tail)
{
    const size_t middle_length = strlen(middle);
    const size_t tail_length = strlen(tail);
    char *text = malloc(head_length + middle_length + tail_length + 1);
    *out = text;
    if (text == NULL)
        return false;
    memcpy(text, head, head_length);
    memcpy(text + head_length, middle, middle_length);
    memcpy(text + head_length + middle_length, tail, tail_length + 1);
    return true;
}

bool oteli_otlp_endpoint(const char *general, const char *traces, char **url)
{
    *url = NULL;
    const char *given = traces != NULL ? traces : general;
    if (given == NULL)
        given = OTELI_OTLP_DEFAULT_ENDPOINT;
    if (!oteli_transport_url_is_valid(given))
        return false;
    const char *authority = strstr(given, "://") + strlen("://");
    const char *path = authority + strcspn(authority, "/?#");
    const char *path_end = path + strcspn(path, "?#");
    if (given != general)
        return join(url, given, (size_t)(path_end - given), path == path_end ? "/" : "", path_end);
    const bool has_slash = path != path_end && path_end[-1] == '/';
    return join(url, given, (size_t)(path_end - given), has_slash ? "v1/traces" : "/v1/traces",
                path_end);
}

bool oteli_otlp_header_is_valid(const char *name, const char *value)
{
    if (name == NULL || value == NULL || !oteli_is_token(name, strlen(name)))
        return false;
    for (; *value != '\0'; value++) {
        if (((unsigned char)*value < 0x20 && *value != '\t') || *value == 0x7f)
            return false;
    }
    return true;
}

static char *decoded_copy(otel_slice text)
{
    char *copy = oteli_slice_copy(text);
    if (copy == NULL)
        return NULL;
    size_t length;
    /* A value with a NUL in it cannot be sent: a line break makes the check refuse it. */
    if (!oteli_percent_decode(text.data, text.length, copy, &length) ||
        memchr(copy, '\0', length) != NULL) {
        copy[0] = '\n';
        length = 1;
    }
    copy[length] = '\0';
    return copy;
}

static void header_fini(otel_otlp_header *header)
{
    free((char *)(uintptr_t)header->name);
    free((char *)(uintptr_t)header->value);
}

/* Split and decode one pair; a header without a name when it is none that can be sent.
 * false: no memory. */
static bool parse_pair(otel_slice pair, otel_otlp_header *header)
{
    otel_slice key;
    otel_slice value;
    *header = (otel_otlp_header){0};
    if (!oteli_cut(pair, '=', &key, &value))
        return true;
    header->name = oteli_slice_copy(key);
    header->value = decoded_copy(value);
    const bool is_whole = header->name != NULL && header->value != NULL;
    if (!is_whole || !oteli_otlp_header_is_valid(header->name, header->value)) {
        header_fini(header);
        *header = (otel_otlp_header){0};
    }
    return is_whole;
}

/* Put a header behind the others, or in the place of the one of its name. */
static bool put_header(otel_otlp_header header, otel_otlp_header **headers, size_t *count)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcasecmp((*headers)[i].name, header.name) == 0) {
            header_fini(&(*headers)[i]);
            (*headers)[i] = header;
            return true;
        }
    }
    otel_otlp_header *larger = realloc(*headers, (*count + 1) * sizeof *larger);
    if (larger == NULL)
        return false;
    *headers = larger;
    larger[(*count)++] = header;
    return true;
}

bool oteli_otlp_headers_parse(const char *variable, const char *text, otel_otlp_header **headers,
                              size_t *count)
{
    *headers = NULL;
    *count = 0;
    otel_slice rest = oteli_slice_of(text);
    otel_slice pair;
    for (size_t position = 1; oteli_list_next(&rest, &pair); position++) {
        otel_otlp_header header;
        if (!parse_pair(pair, &header))
            goto fail;
        if (header.name == NULL) {
            OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "%s: entry %zu is not name=value; it is left out",
                             variable, position);
        } else if (!put_header(header, headers, count)) {
            header_fini(&header);
            goto fail;
        }
    }
    return true;

fail:
    oteli_otlp_headers_free(*headers, *count);
    *headers = NULL;
    *count = 0;
    return false;
}

void oteli_otlp_headers_free(otel_otlp_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        header_fini(&headers[i]);
    free(headers);
}

static const char *first_set(const char *const *variables)
{
    for (; *variables != NULL; variables++) {
        const char *value = oteli_env_get(*variables);
        if (value != NULL)
            return value;
    }
    return "";
}

void oteli_otlp_proxy(const char *url, const char **proxy, const char **no_proxy)
{
    static const char *const http[] = {"http_proxy", "all_proxy", "ALL_PROXY", NULL};
    static const char *const https[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
                                        NULL};
    static const char *const none[] = {"no_proxy", "NO_PROXY", NULL};
    *proxy = first_set(strncasecmp(url, "https:", 6) == 0 ? https : http);
    *no_proxy = first_set(none);
}
