/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/endpoint.h - the rules for OTLP's URLs, headers and proxies.
 *
 * Threads:  any thread, but oteli_otlp_proxy reads the environment: start/stop only.
 * Source:   OpenTelemetry specification, protocol/exporter.md "Endpoint URLs for OTLP/HTTP"
 *           and "Specifying headers via environment variables". */
#ifndef OTELI_OTLP_ENDPOINT_H
#define OTELI_OTLP_ENDPOINT_H

#include "common/lent.h"
#include <otel/otlp.h>

#define OTELI_OTLP_DEFAULT_ENDPOINT "http://localhost:4318/v1/traces"

/* The URL to post traces to, from the values of OTEL_EXPORTER_OTLP_ENDPOINT (a base: it
 * gets /v1/traces behind its path) and OTEL_EXPORTER_OTLP_TRACES_ENDPOINT (it wins and is
 * taken as it is, only an empty path becomes "/"). Either may be NULL; with both it is the
 * default. false, and *url is NULL: the one that counts is no http or https URL, or there
 * is no memory. Free *url with free(). */
OTELI_LENT bool oteli_otlp_endpoint(const char *general, const char *traces, char **url);

/* Read the value of OTEL_EXPORTER_OTLP_HEADERS: "name=value,name=value", where values are
 * percent-encoded and names are not. A pair that cannot be sent is left out, with one
 * warning that names the variable and not the value, which may be a secret. Of two with
 * the same name the later counts. false: no memory. Free with oteli_otlp_headers_free. */
OTELI_LENT bool oteli_otlp_headers_parse(const char *variable, const char *text,
                                         otel_otlp_header **headers, size_t *count);
OTELI_LENT void oteli_otlp_headers_free(otel_otlp_header *headers, size_t count);

/* Whether a header can stand in a request: its name is a token, its value has no line
 * break or other control character. */
bool oteli_otlp_header_is_valid(const char *name, const char *value);

/* The proxy that curl would take from the environment for this URL, and the list of hosts
 * that it would not take it for; each "" when there is none. HTTP_PROXY in upper case does
 * not count, because a CGI program's client chooses its value. */
void oteli_otlp_proxy(const char *url, const char **proxy, const char **no_proxy);

#endif
