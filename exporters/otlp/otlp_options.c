/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/otlp_options.c - the contracts are in exporters/otlp/otlp_options.h. Runs where an
 * exporter is made. */
#include "exporters/otlp/otlp_options.h"

#include "common/log.h"
#include "exporters/otlp/call/request_headers.h"
#include "exporters/otlp/encode/compress.h"
#include "exporters/otlp/protocol/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    DEFAULT_TIMEOUT_MS = 10000,
    DEFAULT_REQUEST_BYTES = 64 * 1024 * 1024,
    DEFAULT_RESPONSE_BYTES = 4 * 1024 * 1024,
    DEFAULT_SPOOL_BYTES = 64 * 1024 * 1024,
    DEFAULT_SPOOL_AGE_MS = 24 * 60 * 60 * 1000,
    CONCURRENCY_MAX = 16
};

static bool is_tls_version(otel_tls_version version)
{
    return version == OTEL_TLS_DEFAULT || version == OTEL_TLS_1_2 || version == OTEL_TLS_1_3;
}

static bool is_tls_valid(const otel_otlp_options *given)
{
    return is_tls_version(given->tls_min) && is_tls_version(given->tls_max) &&
           (given->tls_max == OTEL_TLS_DEFAULT || given->tls_max >= given->tls_min) &&
           (given->certificate_file != NULL) == (given->key_file != NULL);
}

static bool are_headers_valid(const otel_otlp_options *given)
{
    if (!oteli_otlp_header_is_valid("User-Agent", given->user_agent ? given->user_agent : ""))
        return false;
    for (size_t i = 0; i < given->header_count; i++) {
        if (!oteli_otlp_header_is_valid(given->headers[i].name, given->headers[i].value))
            return false;
    }
    return true;
}

/* An empty name of a file is none. */
static void forget_empty(const char **text)
{
    if (*text != NULL && **text == '\0')
        *text = NULL;
}

bool oteli_options_take(otel_otlp_options *given, const otel_otlp_options *options)
{
    *given = (otel_otlp_options){.size = 0};
    if (options != NULL && options->size == 0)
        return false;
    if (options != NULL)
        memcpy(given, options, options->size < sizeof *given ? options->size : sizeof *given);
    given->size = sizeof *given;
    forget_empty(&given->ca_file);
    forget_empty(&given->certificate_file);
    forget_empty(&given->key_file);
    forget_empty(&given->tls_ciphers);
    forget_empty(&given->spool_directory);
    if (given->timeout_ms < OTEL_ZERO || given->spool_max_age_ms < OTEL_ZERO ||
        given->concurrency > CONCURRENCY_MAX || (unsigned)given->protocol > OTEL_OTLP_GRPC ||
        (unsigned)given->compression > OTEL_OTLP_COMPRESSION_ZSTD)
        return false;
    if (given->timeout_ms == 0)
        given->timeout_ms = DEFAULT_TIMEOUT_MS;
    if (given->max_request_bytes == 0)
        given->max_request_bytes = DEFAULT_REQUEST_BYTES;
    if (given->max_request_bytes > INT32_MAX) /* what protobuf can hold */
        given->max_request_bytes = INT32_MAX;
    if (given->max_response_bytes == 0)
        given->max_response_bytes = DEFAULT_RESPONSE_BYTES;
    if (given->concurrency == 0)
        given->concurrency = 1;
    if (given->spool_max_bytes == 0)
        given->spool_max_bytes = DEFAULT_SPOOL_BYTES;
    if (given->spool_max_age_ms == 0)
        given->spool_max_age_ms = DEFAULT_SPOOL_AGE_MS;
    return true;
}

static bool is_supported(const struct oteli_options *options)
{
    const bool is_tls = strncasecmp(options->endpoint.url, "https:", 6) == 0;
    return (options->given.protocol != OTEL_OTLP_GRPC || oteli_transport_has_http2()) &&
           (!is_tls || oteli_transport_has_tls()) &&
           oteli_compression_is_known(options->given.compression);
}

/* Those that the protocol prescribes, and those that were given. */
static bool choose_headers(struct oteli_options *options)
{
    const otel_otlp_options *given = &options->given;
    otel_otlp_header *headers =
        calloc(OTELI_PROTOCOL_HEADERS + given->header_count, sizeof *headers);
    if (headers == NULL)
        return false;
    size_t count = oteli_protocol_headers(given->protocol, given->compression, headers);
    for (size_t i = 0; i < given->header_count; i++) {
        if (oteli_header_is_reserved(given->headers[i].name))
            OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                             "the header %s is set by the OTLP exporter itself; "
                             "the one that was given is left out",
                             given->headers[i].name);
        else
            headers[count++] = given->headers[i];
    }
    options->headers = headers;
    options->header_count = count;
    return true;
}

static bool choose_user_agent(struct oteli_options *options)
{
    const char *prefix = options->given.user_agent != NULL ? options->given.user_agent : "";
    if (asprintf(&options->user_agent, "%s%sOTel-OTLP-Exporter-C/" OTEL_VERSION, prefix,
                 *prefix != '\0' ? " " : "") < 0)
        options->user_agent = NULL;
    return options->user_agent != NULL;
}

otel_status oteli_options_init(struct oteli_options *options, enum oteli_otlp_signal signal,
                               const otel_otlp_options *given)
{
    *options = (struct oteli_options){.headers = NULL};
    if (!oteli_options_take(&options->given, given) || !is_tls_valid(&options->given) ||
        !are_headers_valid(&options->given))
        return OTEL_ERROR_INVALID_ARGUMENT;
    options->endpoint_is_default = options->given.endpoint == NULL;
    if (options->endpoint_is_default)
        options->given.endpoint = oteli_otlp_default_endpoint(signal, options->given.protocol);
    otel_status status = oteli_endpoint_init(&options->endpoint, signal, options->given.protocol,
                                             options->given.endpoint, options->given.insecure);
    if (status != OTEL_OK)
        return status;
    if (!is_supported(options))
        status = OTEL_ERROR_UNSUPPORTED;
    else if (!choose_headers(options) || !choose_user_agent(options))
        status = OTEL_ERROR_NO_MEMORY;
    if (status != OTEL_OK)
        oteli_options_fini(options);
    return status;
}

void oteli_options_fini(struct oteli_options *options)
{
    oteli_endpoint_fini(&options->endpoint);
    free(options->user_agent);
    free(options->headers);
    options->user_agent = NULL;
    options->headers = NULL;
}

struct oteli_transport *oteli_options_transport(const struct oteli_options *options)
{
    const otel_otlp_options *given = &options->given;
    struct oteli_transport_options chosen = {
        .url = options->endpoint.url,
        .unix_socket = options->endpoint.unix_socket,
        .user_agent = options->user_agent,
        .headers = options->headers,
        .header_count = options->header_count,
        .max_response_bytes = given->max_response_bytes,
        .is_http2 = given->protocol == OTEL_OTLP_GRPC,
        .tls = {.ca_file = given->ca_file,
                .certificate_file = given->certificate_file,
                .key_file = given->key_file,
                .min = (int)given->tls_min,
                .max = (int)given->tls_max,
                .ciphers = given->tls_ciphers},
        .observer = options->observer,
    };
    if (chosen.unix_socket == NULL && given->proxy != NULL) {
        chosen.proxy = given->proxy;
        chosen.no_proxy = given->no_proxy;
    } else if (chosen.unix_socket == NULL) {
        oteli_otlp_proxy(chosen.url, &chosen.proxy, &chosen.no_proxy);
    }
    return oteli_transport_new(&chosen);
}
