/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/start_otlp.c - the contracts are in exporters/start_otlp.h. Start/stop only. */
#include "exporters/start_otlp.h"

#include "common/log.h"
#include "common/text/secrets.h"
#include "exporters/otlp/encode/compress.h"
#include "exporters/otlp/endpoint.h"
#include "exporters/otlp/transport/transport.h"

#include <stdlib.h>
#include <string.h>

/* What the configuration says of one signal: fields of it. */
struct settings {
    char *const *endpoint; /* its own; *endpoint is NULL: the general one counts */
    char *const *protocol;
    char *const *compression;
    char *const *headers;
    int64_t timeout;
    char *const *authority;
    char *const *certificate;
    char *const *key;
    bool insecure;
};

static struct settings settings_of(enum oteli_otlp_signal signal, const struct oteli_config *config)
{
    if (signal == OTELI_SIGNAL_PROFILES)
        return (struct settings){
            .endpoint = &config->profiler_endpoint,
            .protocol = &config->exporter_otlp_protocol,
            .compression = &config->exporter_otlp_compression,
            .headers = &config->exporter_otlp_headers,
            .timeout = config->exporter_otlp_timeout,
            .authority = &config->exporter_otlp_certificate,
            .certificate = &config->exporter_otlp_client_certificate,
            .key = &config->exporter_otlp_client_key,
            .insecure = config->exporter_otlp_insecure,
        };
    /* The configuration has put the general value where there was none for traces. */
    return (struct settings){
        .endpoint = &config->exporter_otlp_traces_endpoint,
        .protocol = &config->exporter_otlp_traces_protocol,
        .compression = &config->exporter_otlp_traces_compression,
        .headers = &config->exporter_otlp_traces_headers,
        .timeout = config->exporter_otlp_traces_timeout,
        .authority = &config->exporter_otlp_traces_certificate,
        .certificate = &config->exporter_otlp_traces_client_certificate,
        .key = &config->exporter_otlp_traces_client_key,
        .insecure = config->exporter_otlp_traces_insecure,
    };
}

/* There is no JSON for profiles, and what takes OTLP by HTTP takes both. */
static otel_otlp_protocol protocol_of(enum oteli_otlp_signal signal,
                                      const struct oteli_config *config, char *const *field)
{
    const char *word = *field;
    if (strcmp(word, "grpc") == 0)
        return OTEL_OTLP_GRPC;
    if (strcmp(word, "http/json") != 0)
        return OTEL_OTLP_HTTP_PROTOBUF;
    if (signal == OTELI_SIGNAL_TRACES)
        return OTEL_OTLP_HTTP_JSON;
    OTELI_LOG_ALWAYS(OTEL_LOG_INFO,
                     "%s is \"http/json\", which there is not for profiles: they are sent as "
                     "http/protobuf",
                     oteli_config_called(config, field));
    return OTEL_OTLP_HTTP_PROTOBUF;
}

static otel_otlp_compression compression_of(const struct oteli_config *config, char *const *field)
{
    const char *word = *field;
    if (strcmp(word, "gzip") == 0)
        return OTEL_OTLP_COMPRESSION_GZIP;
    if (strcmp(word, "zstd") != 0)
        return OTEL_OTLP_COMPRESSION_NONE;
    if (oteli_compression_is_known(OTEL_OTLP_COMPRESSION_ZSTD))
        return OTEL_OTLP_COMPRESSION_ZSTD;
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                     "%s is \"zstd\", which is not in this build; requests are not compressed",
                     oteli_config_called(config, field));
    return OTEL_OTLP_COMPRESSION_NONE;
}

/* Try the value of a field, which is its signal's own or the general one. False, and one line in
 * the log: it cannot be used, and `instead` is. */
static bool try_endpoint(struct oteli_start_otlp *otlp, enum oteli_otlp_signal signal,
                         const struct oteli_config *config, char *const *field, const char *instead)
{
    const otel_otlp_protocol protocol = otlp->options.protocol;
    const bool is_general = field == &config->exporter_otlp_endpoint;
    if (oteli_otlp_endpoint(signal, protocol, is_general ? *field : NULL,
                            is_general ? NULL : *field, &otlp->endpoint)) {
        otlp->endpoint_origin = oteli_config_origin(config, field);
        return true;
    }
    char shown[256];
    OTELI_LOG_ALWAYS(
        OTEL_LOG_WARN, "%s is \"%s\", which is no %s; using %s", oteli_config_called(config, field),
        oteli_hide_in_setting(*field, shown, sizeof shown),
        protocol == OTEL_OTLP_GRPC ? "endpoint for gRPC" : "http or https URL", instead);
    return false;
}

/* The signal's own, the general one, the default: the first that can be used. False: no memory. */
static bool choose_endpoint(struct oteli_start_otlp *otlp, enum oteli_otlp_signal signal,
                            const struct settings *settings, const struct oteli_config *config)
{
    char *const *general = &config->exporter_otlp_endpoint;
    const char *otherwise = oteli_otlp_default_endpoint(signal, otlp->options.protocol);
    otlp->endpoint_origin = "default";
    const bool is_chosen =
        (*settings->endpoint != NULL &&
         try_endpoint(otlp, signal, config, settings->endpoint,
                      *general != NULL ? oteli_config_called(config, general) : otherwise)) ||
        (*general != NULL && try_endpoint(otlp, signal, config, general, otherwise)) ||
        oteli_otlp_endpoint(signal, otlp->options.protocol, NULL, NULL, &otlp->endpoint);
    otlp->options.endpoint = otlp->endpoint;
    return is_chosen;
}

static void choose_tls(otel_otlp_options *options, const struct settings *settings,
                       const struct oteli_config *config)
{
    options->ca_file = *settings->authority;
    options->insecure = settings->insecure;
    options->tls_min = strcmp(config->otlp_tls_min, "1.3") == 0 ? OTEL_TLS_1_3 : OTEL_TLS_1_2;
    if ((*settings->certificate != NULL) == (*settings->key != NULL)) {
        options->certificate_file = *settings->certificate;
        options->key_file = *settings->key;
        return;
    }
    const bool has_key = *settings->key != NULL;
    char *const *given = has_key ? settings->key : settings->certificate;
    char *const *missing = has_key ? settings->certificate : settings->key;
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "%s is given without %s; it counts as unset",
                     oteli_config_called(config, given), oteli_config_called(config, missing));
}

static int64_t timeout_of(int64_t setting)
{
    return setting == OTELI_UNLIMITED ? OTEL_ZERO : setting;
}

bool oteli_start_otlp_init(struct oteli_start_otlp *otlp, enum oteli_otlp_signal signal,
                           const struct oteli_config *config)
{
    const struct settings settings = settings_of(signal, config);
    *otlp =
        (struct oteli_start_otlp){.options = {
                                      .size = sizeof otlp->options,
                                      .timeout_ms = timeout_of(settings.timeout),
                                      .protocol = protocol_of(signal, config, settings.protocol),
                                      .compression = compression_of(config, settings.compression),
                                  }};
    if (signal == OTELI_SIGNAL_TRACES) {
        otlp->options.concurrency = (uint32_t)config->otlp_concurrency;
        otlp->options.spool_directory = config->spool_dir;
        otlp->options.spool_max_bytes = (uint64_t)config->spool_max_bytes;
        otlp->options.spool_max_age_ms = timeout_of(config->spool_max_age);
    }
    choose_tls(&otlp->options, &settings, config);
    if (!choose_endpoint(otlp, signal, &settings, config))
        return false;
    if (*settings.headers != NULL &&
        !oteli_otlp_headers_parse(oteli_config_called(config, settings.headers), *settings.headers,
                                  &otlp->headers, &otlp->options.header_count)) {
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
                                      bool *is_made, const char **endpoint_origin)
{
    struct oteli_start_otlp otlp;
    if (!oteli_start_otlp_init(&otlp, OTELI_SIGNAL_TRACES, config))
        return OTEL_ERROR_NO_MEMORY;
    otel_status status = otel_otlp_exporter_new(&otlp.options, exporter);
    *is_made = status == OTEL_OK;
    *endpoint_origin = otlp.endpoint_origin;
    if (status == OTEL_ERROR_UNSUPPORTED) {
        /* Compression has been looked at. */
        const bool lacks_http2 =
            otlp.options.protocol == OTEL_OTLP_GRPC && !oteli_transport_has_http2();
        OTELI_LOG_ALWAYS(OTEL_LOG_ERROR,
                         "spans are not exported with OTLP: %s is %s, and the libcurl of this "
                         "program has no %s",
                         lacks_http2
                             ? oteli_config_called(config, &config->exporter_otlp_traces_protocol)
                             : otlp.endpoint_origin,
                         lacks_http2 ? "grpc" : "for https", lacks_http2 ? "HTTP/2" : "TLS");
        status = OTEL_OK;
    }
    oteli_start_otlp_fini(&otlp);
    return status;
}
