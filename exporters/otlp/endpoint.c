/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/endpoint.c - the contracts are in exporters/otlp/endpoint.h. Runs where
 * exporters are made; owns nothing. */
#include "exporters/otlp/endpoint.h"

#include "common/config/configuration.h"
#include "common/log.h"
#include "common/text/text.h"
#include "exporters/otlp/transport/transport.h"

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

static char *join(const char *head, size_t head_length, const char *middle, const char *tail)
{
    const size_t middle_length = strlen(middle);
    const size_t tail_length = strlen(tail);
    char *text = malloc(head_length + middle_length + tail_length + 1);
    if (text == NULL)
        return NULL;
    memcpy(text, head, head_length);
    memcpy(text + head_length, middle, middle_length);
    memcpy(text + head_length + middle_length, tail, tail_length + 1);
    return text;
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

const char *oteli_otlp_default_endpoint_of(enum oteli_otlp_signal signal,
                                           otel_otlp_protocol protocol)
{
    return protocol == OTEL_OTLP_GRPC ? DEFAULT_GRPC : ways[signal].http_default;
}

const char *oteli_otlp_default_endpoint(otel_otlp_protocol protocol)
{
    return oteli_otlp_default_endpoint_of(OTELI_SIGNAL_TRACES, protocol);
}

static bool is_usable(otel_otlp_protocol protocol, const char *text)
{
    struct oteli_endpoint endpoint;
    const bool is_good = oteli_endpoint_init(&endpoint, protocol, text, true) == OTEL_OK;
    if (is_good)
        oteli_endpoint_fini(&endpoint);
    return is_good;
}

bool oteli_otlp_endpoint_of(enum oteli_otlp_signal signal, otel_otlp_protocol protocol,
                            const char *general, const char *own, char **endpoint)
{
    const char *given = own != NULL ? own : general;
    *endpoint = NULL;
    if (given == NULL)
        given = oteli_otlp_default_endpoint_of(signal, protocol);
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

bool oteli_otlp_endpoint(otel_otlp_protocol protocol, const char *general, const char *traces,
                         char **endpoint)
{
    return oteli_otlp_endpoint_of(OTELI_SIGNAL_TRACES, protocol, general, traces, endpoint);
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

otel_status oteli_endpoint_init_of(struct oteli_endpoint *endpoint, enum oteli_otlp_signal signal,
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

otel_status oteli_endpoint_init(struct oteli_endpoint *endpoint, otel_otlp_protocol protocol,
                                const char *text, bool insecure)
{
    return oteli_endpoint_init_of(endpoint, OTELI_SIGNAL_TRACES, protocol, text, insecure);
}

void oteli_endpoint_fini(struct oteli_endpoint *endpoint)
{
    free(endpoint->url);
    free(endpoint->unix_socket);
    free(endpoint->name);
    *endpoint = (struct oteli_endpoint){NULL, NULL, NULL};
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

bool oteli_otlp_headers_are_pairs(const char *text)
{
    otel_slice rest = oteli_slice_of(text);
    otel_slice pair;
    otel_otlp_header header;
    while (oteli_list_next(&rest, &pair)) {
        if (!parse_pair(pair, &header) || header.name == NULL)
            return false;
        header_fini(&header);
    }
    return true;
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
    size_t left_out = 0, first = 0;
    for (size_t position = 1; oteli_list_next(&rest, &pair); position++) {
        otel_otlp_header header;
        if (!parse_pair(pair, &header))
            goto fail;
        if (header.name == NULL) {
            first = left_out++ == 0 ? position : first;
        } else if (!put_header(header, headers, count)) {
            header_fini(&header);
            goto fail;
        }
    }
    if (left_out == 1)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "%s: entry %zu is not name=value; it is left out", variable,
                         first);
    else if (left_out != 0)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                         "%s: %zu entries are not name=value, the first is entry %zu; they are "
                         "left out",
                         variable, left_out, first);
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
