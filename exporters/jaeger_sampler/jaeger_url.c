/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/jaeger_sampler/jaeger_url.c - the contracts are in jaeger_url.h. Owns nothing. */
#include "exporters/jaeger_sampler/jaeger_url.h"

#include "common/config/configuration.h"
#include "common/text/text.h"
#include "exporters/otlp/transport/transport.h"

#include <stdlib.h>
#include <string.h>

static const char default_endpoint[] = "http://localhost:5778";
static const char default_service[] = "unknown_service";
static const char path[] = "/sampling";

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~", c) != NULL);
}

static char *put(char *out, const char *text, size_t length)
{
    memcpy(out, text, length);
    return out + length;
}

static char *put_encoded(char *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (is_unreserved(*text))
            *out++ = *text;
        else
            out = oteli_percent_put(out, *text);
    }
    return out;
}

char *oteli_jaeger_url(const char *endpoint, const char *service)
{
    if (endpoint == NULL)
        endpoint = default_endpoint;
    if (service == NULL || *service == '\0')
        service = default_service;
    const size_t length = strcspn(endpoint, "#");
    char *url = malloc(length + sizeof path + sizeof "?service=" + 3 * strlen(service));
    if (url == NULL)
        return NULL;
    const char *authority = strstr(endpoint, "://") + strlen("://");
    const size_t before_path = (size_t)(authority - endpoint) + strcspn(authority, "/?#");
    const size_t before_query = before_path + strcspn(endpoint + before_path, "?#");
    const bool has_path = before_query > before_path + 1;
    const bool has_query = endpoint[before_query] == '?';
    char *out = put(url, endpoint, has_path ? before_query : before_path);
    if (!has_path)
        out = put(out, path, sizeof path - 1);
    out = put(out, endpoint + before_query, length - before_query);
    out = put(out, has_query ? "&service=" : "?service=", strlen("?service="));
    out = put_encoded(out, service);
    *out = '\0';
    return url;
}

static bool take_entry(otel_slice key, otel_slice value, struct oteli_jaeger_argument *argument)
{
    char *text = oteli_slice_copy(value);
    bool is_good = false;
    if (text == NULL)
        return false;
    if (oteli_is_word(key, "endpoint") && argument->endpoint == NULL) {
        is_good = oteli_transport_url_is_valid(text);
        if (is_good) {
            argument->endpoint = text;
            return true;
        }
    } else if (oteli_is_word(key, "pollingIntervalMs")) {
        is_good = oteli_parse_whole(value, &argument->polling_interval_ms) &&
                  argument->polling_interval_ms > 0;
    } else if (oteli_is_word(key, "initialSamplingRate")) {
        is_good = oteli_parse_ratio(text, &argument->initial_ratio);
    }
    free(text);
    return is_good;
}

bool oteli_jaeger_argument_parse(const char *text, struct oteli_jaeger_argument *argument)
{
    *argument = (struct oteli_jaeger_argument){.initial_ratio = -1};
    otel_slice rest = oteli_slice_of(text);
    otel_slice entry;
    while (oteli_list_next(&rest, &entry)) {
        otel_slice key;
        otel_slice value;
        if (oteli_cut(entry, '=', &key, &value) && take_entry(key, value, argument))
            continue;
        free(argument->endpoint);
        *argument = (struct oteli_jaeger_argument){.initial_ratio = -1};
        return false;
    }
    return true;
}
