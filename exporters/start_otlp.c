/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/start_otlp.c - the contracts are in exporters/start_otlp.h. Start/stop only. */
#include "exporters/start_otlp.h"

#include "common/log.h"
#include "exporters/otlp/compress.h"
#include "exporters/otlp/endpoint.h"
#include "exporters/otlp/transport.h"

#include <stdlib.h>
#include <string.h>

static otel_otlp_protocol protocol_of(const char *word)
{
    if (strcmp(word, "grpc") == 0)
        return OTEL_OTLP_GRPC;
    return strcmp(word, "http/json") == 0 ? OTEL_OTLP_HTTP_JSON : OTEL_OTLP_HTTP_PROTOBUF;
}

static otel_otlp_compression compression_of(const char *word)
{
    if (strcmp(word, "gzip") == 0)
        return OTEL_OTLP_COMPRESSION_GZIP;
    if (strcmp(word, "zstd") != 0)
        return OTEL_OTLP_COMPRESSION_NONE;
    if (oteli_compression_is_known(OTEL_OTLP_COMPRESSION_ZSTD))
        return OTEL_OTLP_COMPRESSION_ZSTD;
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "OTEL_EXPORTER_OTLP_COMPRESSION is \"zstd\", which is not in "
                                    "this build; requests are not compressed");
    return OTEL_OTLP_COMPRESSION_NONE;
}

/* false: no memory. */
static bool choose_endpoint(struct oteli_start_otlp *otlp, const struct oteli_config *config)
{
    const otel_otlp_protocol protocol = otlp->options.protocol;
    const char *traces = config->exporter_otlp_traces_endpoint;
    const char *general = config->exporter_otlp_endpoint;
    if (!oteli_otlp_endpoint(protocol, general, traces, &otlp->endpoint)) {
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "%s is \"%s\", which is no %s; using %s",
                         traces != NULL ? "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
                                        : "OTEL_EXPORTER_OTLP_ENDPOINT",
                         traces != NULL ? traces : general,
                         protocol == OTEL_OTLP_GRPC ? "endpoint for gRPC" : "http or https URL",
                         oteli_otlp_default_endpoint(protocol));
        if (!oteli_otlp_endpoint(protocol, NULL, NULL, &otlp->endpoint))
            return false;
    }
    otlp->options.endpoint = otlp->endpoint;
    return true;
}

static void choose_tls(otel_otlp_options *options, const struct oteli_config *config)
{
    const char *certificate = config->exporter_otlp_traces_client_certificate;
    const char *key = config->exporter_otlp_traces_client_key;
    options->ca_file = config->exporter_otlp_traces_certificate;
    options->insecure = config->exporter_otlp_traces_insecure;
    options->tls_min = strcmp(config->otlp_tls_min, "1.3") == 0 ? OTEL_TLS_1_3 : OTEL_TLS_1_2;
    if ((certificate != NULL) == (key != NULL)) {
        options->certificate_file = certificate;
        options->key_file = key;
    } else {
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                         "of OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and "
                         "OTEL_EXPORTER_OTLP_CLIENT_KEY only the %s is given; it counts as unset",
                         key != NULL ? "key" : "certificate");
    }
}

static int64_t timeout_of(int64_t setting)
{
    return setting == OTELI_UNLIMITED ? OTEL_ZERO : setting;
}

bool oteli_start_otlp_init(struct oteli_start_otlp *otlp, const struct oteli_config *config)
{
    *otlp = (struct oteli_start_otlp){
        .options = {
            .size = sizeof otlp->options,
            .timeout_ms = timeout_of(config->exporter_otlp_traces_timeout),
            .protocol = protocol_of(config->exporter_otlp_traces_protocol),
            .compression = compression_of(config->exporter_otlp_traces_compression),
            .concurrency = (uint32_t)config->otlp_concurrency,
            .spool_directory = config->spool_dir,
            .spool_max_bytes = (uint64_t)config->spool_max_bytes,
            .spool_max_age_ms = timeout_of(config->spool_max_age),
        }};
    choose_tls(&otlp->options, config);
    if (!choose_endpoint(otlp, config))
        return false;
    /* The configuration has put the general list where there was none for traces. */
    if (config->exporter_otlp_traces_headers != NULL &&
        !oteli_otlp_headers_parse("OTEL_EXPORTER_OTLP_HEADERS",
                                  config->exporter_otlp_traces_headers, &otlp->headers,
                                  &otlp->options.header_count)) {
        oteli_start_otlp_fini(otlp);
        return false;
    }
    otlp->options.headers = otlp->headers;
    return true;
}

void oteli_start_otlp_fini(struct oteli_start_otlp *otlp)
{
    oteli_otlp_headers_free(otlp->headers, otlp->options.header_count);
    free(otlp->endpoint);
}

otel_status oteli_start_otlp_exporter(const struct oteli_config *config, otel_exporter *exporter,
                                      bool *is_made)
{
    struct oteli_start_otlp otlp;
    if (!oteli_start_otlp_init(&otlp, config))
        return OTEL_ERROR_NO_MEMORY;
    otel_status status = otel_otlp_exporter_new(&otlp.options, exporter);
    *is_made = status == OTEL_OK;
    if (status == OTEL_ERROR_UNSUPPORTED) {
        /* Compression has been looked at. */
        const bool lacks_http2 =
            otlp.options.protocol == OTEL_OTLP_GRPC && !oteli_transport_has_http2();
        OTELI_LOG_ALWAYS(OTEL_LOG_ERROR,
                         "spans are not exported with OTLP: %s is %s, and the libcurl of this "
                         "program has no %s",
                         lacks_http2 ? "OTEL_EXPORTER_OTLP_PROTOCOL"
                                     : "OTEL_EXPORTER_OTLP_ENDPOINT",
                         lacks_http2 ? "grpc" : "for https", lacks_http2 ? "HTTP/2" : "TLS");
        status = OTEL_OK;
    }
    oteli_start_otlp_fini(&otlp);
    return status;
}
