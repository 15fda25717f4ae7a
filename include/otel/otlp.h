/* SPDX-License-Identifier: Apache-2.0 */
/* otel/otlp.h - the exporter that sends OTLP to a collector: over HTTP as protobuf or JSON, or
 * over gRPC.
 *
 * One request at a time over a connection that is kept alive. Answers that the protocol calls
 * retryable, and no answer at all, are tried again until the deadline, with back-off and full
 * jitter and what the server asks for; a partial success is counted and never sent again; a request
 * that is too large for the receiver is halved; every other answer is final.
 *
 * Everything here can be had by environment as well: docs/CONFIGURATION.md.
 *
 * Threads:  any thread makes one; then as otel/exporter.h says.
 * Signals:  never in a handler: it reads files and allocates.
 * Errors:   otel_status; what cannot be delivered is counted in otel_stats (otel/sdk.h).
 * Source:   opentelemetry-proto docs/specification.md (OTLP 1.11); OpenTelemetry specification,
 *           protocol/exporter.md. */
#ifndef OTEL_OTLP_H
#define OTEL_OTLP_H

#include <otel/exporter.h>

OTEL_BEGIN_DECLS

typedef struct otel_otlp_header {
    const char *name;
    const char *value; /* as it is sent: nothing is decoded */
} otel_otlp_header;

typedef enum otel_otlp_protocol {
    OTEL_OTLP_HTTP_PROTOBUF = 0,
    OTEL_OTLP_HTTP_JSON = 1,
    OTEL_OTLP_GRPC = 2
} otel_otlp_protocol;

typedef enum otel_otlp_compression {
    OTEL_OTLP_COMPRESSION_NONE = 0,
    OTEL_OTLP_COMPRESSION_GZIP = 1,
    OTEL_OTLP_COMPRESSION_ZSTD = 2 /* OTEL_ERROR_UNSUPPORTED where it was not built in */
} otel_otlp_compression;

typedef enum otel_tls_version {
    OTEL_TLS_DEFAULT = 0, /* as minimum: 1.2 */
    OTEL_TLS_1_2 = 2,
    OTEL_TLS_1_3 = 3
} otel_tls_version;

/* Headers of the request that is about to be sent. */
typedef struct otel_otlp_request_headers otel_otlp_request_headers;

/* Add a header to the request, from inside otel_otlp_options.add_headers only. Both texts are
 * copied. One of the same name that the options have is replaced. OTEL_ERROR_INVALID_ARGUMENT: it
 * cannot stand in a request, or is the exporter's own. OTEL_ERROR_NO_MEMORY. */
OTEL_API otel_status otel_otlp_add_header(otel_otlp_request_headers *headers, const char *name,
                                          const char *value);

typedef struct otel_otlp_options {
    size_t size;          /* sizeof(otel_otlp_options) */
    const char *endpoint; /* the full URL; NULL: http://localhost:4318/v1/traces, and for gRPC
                             http://localhost:4317. unix:///path is a socket of this machine
                             (with HTTP its requests go to /v1/traces). gRPC also takes host:port */
    const otel_otlp_header *headers;
    size_t header_count;
    int64_t timeout_ms;       /* of one batch, retries included; 0: 10,000; OTEL_ZERO: none */
    const char *user_agent;   /* goes before ours; may be NULL */
    size_t max_request_bytes; /* 0: 64 MiB. Before compression. Larger batches are split */

    otel_otlp_protocol protocol;
    otel_otlp_compression compression;
    size_t max_response_bytes; /* 0: 4 MiB, after decompression. A longer answer is final */
    uint32_t concurrency;      /* requests at a time, each over a connection of its own, for the
                                  parts of one batch that is too large for one request; 0: 1;
                                  at most 16. With more than one their order is not kept */

    /* TLS, with an https endpoint. PEM files; each is read again when it has changed, and what
     * was read last stays in use while the new one cannot be read. */
    const char *ca_file;          /* NULL: the system's certificates */
    const char *certificate_file; /* the client's; NULL: none */
    const char *key_file;         /* its key; one is not given without the other */
    otel_tls_version tls_min;
    otel_tls_version tls_max; /* OTEL_TLS_DEFAULT: none */
    const char *tls_ciphers;  /* OpenSSL's list for TLS 1.2; NULL: libcurl's own */
    bool insecure;            /* gRPC with an endpoint that has no scheme: without TLS */

    const char *proxy;    /* NULL: from the environment (http_proxy, https_proxy, all_proxy,
                             no_proxy), read here and never again; "": none */
    const char *no_proxy; /* hosts, separated by commas; counts where `proxy` is given */

    /* Called before each attempt, on the thread that exports, to add headers that change: a
     * token, for instance. Should not wait: exports do meanwhile. false: the attempt counts as one
     * without a connection, and is made again later. Spans that it starts are not recorded. Or
     * NULL. */
    bool (*add_headers)(void *state, otel_otlp_request_headers *headers);
    void *add_headers_state;
    void (*free_add_headers_state)(void *state); /* with the exporter; or NULL */

    /* While the receiver is away, requests go to files in this directory. They are sent oldest
     * first when it is back, or by the next program that uses the directory, which must exist.
     * NULL: none. */
    const char *spool_directory;
    uint64_t spool_max_bytes; /* 0: 64 MiB; the oldest make room, but not what is on its way */
    int64_t spool_max_age_ms; /* 0: one day; OTEL_ZERO: none */
} otel_otlp_options;

#define OTEL_OTLP_OPTIONS(...) \
    (&(otel_otlp_options){.size = sizeof(otel_otlp_options), __VA_ARGS__})

/* Make an exporter; everything in the options is copied, and they may be NULL. Reads no
 * environment but where it names the proxies. `*exporter` is filled in on OTEL_OK; otherwise
 * add_headers_state stays the caller's.
 * OTEL_ERROR_INVALID_ARGUMENT: the endpoint is no URL that can be used, a header cannot stand in
 * a request, a certificate without its key or a key without its certificate, a number or an
 * enumeration out of range.
 * OTEL_ERROR_UNSUPPORTED: libcurl here has no HTTP/2 (gRPC) or no TLS (https), or there is no
 * zstd. */
OTEL_API OTEL_MUST_USE otel_status otel_otlp_exporter_new(const otel_otlp_options *options,
                                                          otel_exporter *exporter);

OTEL_END_DECLS
#endif
