/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/endpoint.c - the contracts are in exporters/otlp/endpoint.h. Runs where
 * exporters are made; owns nothing. */
#include "exporters/otlp/endpoint.h"

#include "common/config/configuration.h"
#include "common/log.h"
#include "common/text/text.h"
#include "exporters/otlp/call/request_headers.h"
#include "exporters/otlp/transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define UNIX_SCHEME "unix:"
#define DEFAULT_HTTP "http://localhost:4318"
#define DEFAULT_GRPC "http://localhost:4317"

enum { SOCKET_PATH_MAX = 107 }; /* what sockaddr_un holds, but for the NUL */

/* Where a signal's requests go. */
static const struct {
    const char *http_path;
    const char *http_default;
    const char *grpc_method;
} ways[] = {
    [OTELI_SIGNAL_TRACES] = {"/v1/traces", DEFAULT_HTTP "/v1/traces",
                             "/opentelemetry.proto.collector.trace.v1.TraceService/Export"},
    [OTELI_SIGNAL_PROFILES] = {"/v1development/profiles", DEFAULT_HTTP "/v1development/profiles",
                               "/opentelemetry.proto.collector.profiles.v1development."
                               "ProfilesService/Export"},
};

/* Three texts as one, of the first so many bytes; NULL: no memory. */
static char *join(const char *head, size_t head_length, const char *middle, const char *tail)
{
    char *text;
    return asprintf(&text, "%.*s%s%s", (int)head_length, head, middle, tail) >= 0 ? text : NULL;
}

/* The path of unix:/path or unix:///path; NULL: it is neither. */
static const char *socket_path(const char *text)
{
    if (strncasecmp(text, UNIX_SCHEME, strlen(UNIX_SCHEME)) != 0)
        return NULL;
    const char *path = text + strlen(UNIX_SCHEME);
    if (strncmp(path, "//", 2) == 0)
        path += 2;
    const size_t length = strlen(path);
    if (path[0] != '/' || path[1] == '\0' || path[1] == '/' || length > SOCKET_PATH_MAX)
        return NULL;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)path[i] < 0x20 || path[i] == 0x7f)
            return NULL;
    return path;
}

/* Where the path of a URL begins, or what is behind it, or its end. */
static const char *path_of(const char *url)
{
    const char *authority = strstr(url, "://") + strlen("://");
    return authority + strcspn(authority, "/?#");
}

const char *oteli_otlp_default_endpoint(enum oteli_otlp_signal signal, otel_otlp_protocol protocol)
{
    return protocol == OTEL_OTLP_GRPC ? DEFAULT_GRPC : ways[signal].http_default;
}

static bool is_usable(otel_otlp_protocol protocol, const char *text)
{
    struct oteli_endpoint endpoint;
    const bool is_good =
        oteli_endpoint_init(&endpoint, OTELI_SIGNAL_TRACES, protocol, text, true) == OTEL_OK;
    if (is_good)
        oteli_endpoint_fini(&endpoint);
    return is_good;
}

bool oteli_otlp_endpoint(enum oteli_otlp_signal signal, otel_otlp_protocol protocol,
                         const char *general, const char *own, char **endpoint)
{
    const char *given = own != NULL ? own : general;
    *endpoint = NULL;
    if (given == NULL)
        given = oteli_otlp_default_endpoint(signal, protocol);
    if (!is_usable(protocol, given))
        return false;
    if (protocol == OTEL_OTLP_GRPC || socket_path(given) != NULL) {
        *endpoint = strdup(given);
        return *endpoint != NULL;
    }
    const char *path = path_of(given);
    const char *end = path + strcspn(path, "?#");
    const char *more = path == end ? "/" : "";
    if (given == general)
        more = path != end && end[-1] == '/' ? &ways[signal].http_path[1] : ways[signal].http_path;
    *endpoint = join(given, (size_t)(end - given), more, end);
    return *endpoint != NULL;
}

/* Whether there is a port behind a host, which may be an IPv6 address in brackets. */
static bool has_port(const char *authority)
{
    const char *host_end = strchr(authority, ']');
    return strchr(host_end != NULL ? host_end : authority, ':') != NULL;
}

/* The URL of a gRPC target that has no scheme; NULL: it is none, or there is no memory. */
static char *url_of_target(const char *target, bool insecure)
{
    static const char resolver[] = "dns:///";
    if (strncmp(target, resolver, sizeof resolver - 1) == 0)
        target += sizeof resolver - 1;
    const char *colon = strchr(target, ':');
    const bool has_several = colon != NULL && strchr(colon + 1, ':') != NULL;
    const bool is_bad_socket = strncasecmp(target, UNIX_SCHEME, strlen(UNIX_SCHEME)) == 0;
    if (strpbrk(target, "/?#@ ") != NULL || (has_several && target[0] != '[') || is_bad_socket ||
        (colon != NULL && colon[1] == '\0'))
        return NULL;
    const char *scheme = insecure ? "http://" : "https://";
    return join(scheme, strlen(scheme), target, has_port(target) ? "" : ":4317");
}

/* Fill in url and name from a URL. With gRPC the method stands in place of its path. */
static bool take_url(struct oteli_endpoint *endpoint, enum oteli_otlp_signal signal,
                     otel_otlp_protocol protocol, const char *url)
{
    if (protocol == OTEL_OTLP_GRPC) {
        char *base = join(url, (size_t)(path_of(url) - url), "", "");
        endpoint->name = base != NULL ? oteli_transport_url_for_log(base) : NULL;
        endpoint->url =
            base != NULL ? join(base, strlen(base), ways[signal].grpc_method, "") : NULL;
        free(base);
    } else {
        endpoint->url = strdup(url);
        endpoint->name = oteli_transport_url_for_log(url);
    }
    return endpoint->url != NULL && endpoint->name != NULL;
}

static bool take_socket(struct oteli_endpoint *endpoint, enum oteli_otlp_signal signal,
                        otel_otlp_protocol protocol, const char *path)
{
    static const char host[] = "http://localhost";
    static const char scheme[] = UNIX_SCHEME "//";
    endpoint->unix_socket = strdup(path);
    endpoint->name = join(scheme, sizeof scheme - 1, path, "");
    endpoint->url =
        join(host, sizeof host - 1,
             protocol == OTEL_OTLP_GRPC ? ways[signal].grpc_method : ways[signal].http_path, "");
    return endpoint->unix_socket != NULL && endpoint->name != NULL && endpoint->url != NULL;
}

otel_status oteli_endpoint_init(struct oteli_endpoint *endpoint, enum oteli_otlp_signal signal,
                                otel_otlp_protocol protocol, const char *text, bool insecure)
{
    *endpoint = (struct oteli_endpoint){NULL, NULL, NULL};
    const char *path = socket_path(text);
    bool is_made = false;
    if (path != NULL) {
        is_made = take_socket(endpoint, signal, protocol, path);
    } else if (oteli_transport_url_is_valid(text)) {
        is_made = take_url(endpoint, signal, protocol, text);
    } else {
        char *url = protocol == OTEL_OTLP_GRPC ? url_of_target(text, insecure) : NULL;
        const bool is_url = url != NULL && oteli_transport_url_is_valid(url);
        is_made = is_url && take_url(endpoint, signal, protocol, url);
        free(url);
        if (!is_url)
            return OTEL_ERROR_INVALID_ARGUMENT;
    }
    if (is_made)
        return OTEL_OK;
    oteli_endpoint_fini(endpoint);
    return OTEL_ERROR_NO_MEMORY;
}

void oteli_endpoint_fini(struct oteli_endpoint *endpoint)
{
    free(endpoint->url);
    free(endpoint->unix_socket);
    free(endpoint->name);
    *endpoint = (struct oteli_endpoint){NULL, NULL, NULL};
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

/* Split and decode one pair, and put it behind the others; *is_pair: it can be sent. false: no
 * memory. */
static bool put_pair(struct otel_otlp_request_headers *headers, otel_slice pair, bool *is_pair)
{
    otel_slice key;
    otel_slice value;
    *is_pair = false;
    if (!oteli_cut(pair, '=', &key, &value))
        return true;
    char *name = oteli_slice_copy(key);
    char *text = decoded_copy(value);
    bool has_memory = name != NULL && text != NULL;
    *is_pair = has_memory && oteli_otlp_header_is_valid(name, text);
    if (*is_pair)
        has_memory = oteli_headers_put(headers, name, text);
    free(name);
    free(text);
    return has_memory;
}

bool oteli_otlp_headers_are_pairs(const char *text)
{
    struct otel_otlp_request_headers headers = {.list = NULL};
    otel_slice rest = oteli_slice_of(text);
    otel_slice pair;
    bool is_pair = true;
    while (is_pair && oteli_list_next(&rest, &pair))
        is_pair = put_pair(&headers, pair, &is_pair) && is_pair;
    oteli_headers_fini(&headers);
    return is_pair;
}

bool oteli_otlp_headers_parse(const char *variable, const char *text, otel_otlp_header **headers,
                              size_t *count)
{
    struct otel_otlp_request_headers found = {.list = NULL};
    otel_slice rest = oteli_slice_of(text);
    otel_slice pair;
    size_t left_out = 0, first = 0;
    bool has_memory = true;
    for (size_t position = 1; has_memory && oteli_list_next(&rest, &pair); position++) {
        bool is_pair;
        has_memory = put_pair(&found, pair, &is_pair);
        if (!is_pair)
            first = left_out++ == 0 ? position : first;
    }
    if (!has_memory)
        oteli_headers_fini(&found);
    else if (left_out != 0)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "%s: entry %zu is not name=value; %zu entr%s left out",
                         variable, first, left_out, left_out == 1 ? "y is" : "ies are");
    *headers = found.list;
    *count = found.count;
    return has_memory;
}

void oteli_otlp_headers_free(otel_otlp_header *headers, size_t count)
{
    struct otel_otlp_request_headers all = {.list = headers, .count = count};
    oteli_headers_fini(&all);
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
