/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/endpoint.h - the rules for OTLP's endpoints, headers and proxies.
 *
 * Threads:  any thread, but oteli_otlp_proxy reads the environment: start/stop only.
 * Source:   OpenTelemetry specification, protocol/exporter.md "Configuration Options",
 *           "Endpoint URLs for OTLP/HTTP" and "Specifying headers via environment variables". */
#ifndef OTELI_OTLP_ENDPOINT_H
#define OTELI_OTLP_ENDPOINT_H

#include "common/base/internal_api.h"
#include <otel/otlp.h>

/* Which of OTLP's services requests are for. What does not say so is about traces. */
enum oteli_otlp_signal { OTELI_SIGNAL_TRACES, OTELI_SIGNAL_PROFILES };

/* What otel_otlp_options.endpoint is where it is not given. Static. */
const char *oteli_otlp_default_endpoint(enum oteli_otlp_signal signal, otel_otlp_protocol protocol);

/* What otel_otlp_options.endpoint should be, from the values of OTEL_EXPORTER_OTLP_ENDPOINT
 * (with HTTP a base: it gets /v1/traces behind its path) and OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
 * (it wins and is taken as it is, only an empty path becomes "/"). Either may be NULL; with both
 * it is the default. false, and *endpoint is NULL: the one that counts cannot be used, or there
 * is no memory. Free *endpoint with free(). */
OTELI_INTERNAL_API bool oteli_otlp_endpoint(enum oteli_otlp_signal signal,
                                            otel_otlp_protocol protocol, const char *general,
                                            const char *own, char **endpoint);

/* What an endpoint means. */
struct oteli_endpoint {
    char *url;         /* that requests are posted to: http or https */
    char *unix_socket; /* the socket to connect to instead of the URL's host; NULL: none */
    char *name;        /* for log lines, without secrets */
};

/* Whatever otel_otlp_options.endpoint may be, for gRPC also host and port without a scheme:
 * then `insecure` says that there is no TLS, and the port is 4317 where there is none.
 * OTEL_ERROR_INVALID_ARGUMENT: it is nothing that can be used. OTEL_ERROR_NO_MEMORY. In both
 * cases there is nothing to free. */
otel_status oteli_endpoint_init(struct oteli_endpoint *endpoint, enum oteli_otlp_signal signal,
                                otel_otlp_protocol protocol, const char *text, bool insecure);
void oteli_endpoint_fini(struct oteli_endpoint *endpoint);

/* Read the value of OTEL_EXPORTER_OTLP_HEADERS: "name=value,name=value", where values are
 * percent-encoded and names are not. A pair that cannot be sent is left out, with one
 * warning that names the variable and not the value, which may be a secret. Of two with
 * the same name the later counts. false: no memory. Free with oteli_otlp_headers_free. */
OTELI_INTERNAL_API bool oteli_otlp_headers_parse(const char *variable, const char *text,
                                                 otel_otlp_header **headers, size_t *count);
/* Whether none would be left out. false: no memory, too. */
OTELI_INTERNAL_API bool oteli_otlp_headers_are_pairs(const char *text);
OTELI_INTERNAL_API void oteli_otlp_headers_free(otel_otlp_header *headers, size_t count);

/* The proxy that curl would take from the environment for this URL, and the list of hosts
 * that it would not take it for; each "" when there is none. HTTP_PROXY in upper case does
 * not count, because a CGI program's client chooses its value. */
void oteli_otlp_proxy(const char *url, const char **proxy, const char **no_proxy);

#endif
