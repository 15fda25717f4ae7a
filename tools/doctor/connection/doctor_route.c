/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_route.c - the contracts are in
 * tools/doctor/connection/doctor_route.h. */
#include "tools/doctor/connection/doctor_route.h"

#include "common/text/secrets.h"
#include "common/text/text.h"
#include "exporters/otlp/otlp_options.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { LONGEST_MS = 10000 };

bool doctor_skips_proxy(const char *host, const char *no_proxy)
{
    otel_slice rest = oteli_slice_of(no_proxy);
    otel_slice entry;
    size_t length = strlen(host);
    if (host[0] == '[') { /* an address of IPv6 */
        host++;
        length -= 2;
    }
    while (oteli_list_next(&rest, &entry)) {
        if (oteli_is_word(entry, "*"))
            return true;
        if (entry.data[0] == '.') {
            entry.data++;
            entry.length--;
        }
        if (entry.length == 0 || entry.length > length)
            continue;
        const char *tail = host + length - entry.length;
        if (strncasecmp(tail, entry.data, entry.length) == 0 && (tail == host || tail[-1] == '.'))
            return true;
    }
    return false;
}

static void describe_proxy(const otel_otlp_options *given, const char *url,
                           struct doctor_target *target)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                        "ALL_PROXY"};
    const char *proxy = given->proxy;
    const char *no_proxy = given->no_proxy;
    if (proxy == NULL)
        oteli_otlp_proxy(url, &proxy, &no_proxy);
    if (proxy[0] == '\0' || target->unix_path[0] != '\0' ||
        doctor_skips_proxy(target->host, no_proxy))
        return;
    oteli_hide_in_setting(proxy, target->proxy, sizeof target->proxy);
    snprintf(target->proxy_from, sizeof target->proxy_from, "the configuration");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (oteli_env_get(names[i]) == proxy)
            snprintf(target->proxy_from, sizeof target->proxy_from, "%s", names[i]);
    }
}

static void copy_part(CURLU *url, CURLUPart part, char *out, size_t size)
{
    char *text = NULL;
    if (curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK)
        snprintf(out, size, "%s", text);
    curl_free(text);
}

static void describe_headers(const otel_otlp_options *given, struct doctor_target *target)
{
    target->headers[0] = '\0';
    for (size_t i = 0, used = 0; i < given->header_count && used < sizeof target->headers; i++)
        used += (size_t)snprintf(target->headers + used, sizeof target->headers - used, "%s%s",
                                 i != 0 ? ", " : "", given->headers[i].name);
}

static void describe(const struct oteli_options *options, struct doctor_target *target)
{
    const char *text = options->endpoint.url;
    CURLU *url = curl_url();
    if (url != NULL && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK) {
        char port[16] = "";
        copy_part(url, CURLUPART_HOST, target->host, sizeof target->host);
        copy_part(url, CURLUPART_PORT, port, sizeof port);
        copy_part(url, CURLUPART_PATH, target->path, sizeof target->path);
        target->port = (unsigned)strtoul(port, NULL, 10);
    }
    curl_url_cleanup(url);
    target->protocol = options->given.protocol;
    target->is_tls = strncasecmp(text, "https:", 6) == 0;
    target->has_certificate = options->given.certificate_file != NULL;
    describe_headers(&options->given, target);
    snprintf(target->url, sizeof target->url, "%s", options->endpoint.name);
    if (options->endpoint.unix_socket != NULL)
        snprintf(target->unix_path, sizeof target->unix_path, "%s", options->endpoint.unix_socket);
    const int64_t timeout = options->given.timeout_ms;
    target->timeout_ms = timeout > 0 && timeout < LONGEST_MS ? (unsigned)timeout : LONGEST_MS;
    describe_proxy(&options->given, text, target);
}

bool doctor_route_take(struct doctor_route *route, const otel_otlp_options *given,
                       struct doctor_record *record)
{
    struct oteli_options options;
    const otel_status status = oteli_options_init(&options, OTELI_SIGNAL_TRACES, given);
    if (status == OTEL_ERROR_NO_MEMORY)
        return false;
    if (status == OTEL_OK) {
        route->given = options.given;
        route->is_ready = true;
        describe(&options, &record->target);
        oteli_options_fini(&options);
        return true;
    }
    snprintf(record->faults.exporting, sizeof record->faults.exporting,
             "no OTLP exporter can be made of %.100s and what belongs to it (%s)",
             record->target.url_from,
             status == OTEL_ERROR_UNSUPPORTED
                 ? "this build, or its libcurl, lacks HTTP/2, TLS or the compression"
                 : otel_status_string(status));
    return true;
}

bool doctor_route_from_settings(struct doctor_route *route, const struct oteli_config *config,
                                const char *endpoint, struct doctor_record *record)
{
    struct doctor_target *target = &record->target;
    if (!oteli_start_otlp_init(&route->otlp, OTELI_SIGNAL_TRACES, config))
        return false;
    route->has_otlp = true;
    const char *origin = route->otlp.endpoint_origin;
    target->url_is_default = strcmp(origin, "default") == 0;
    target->url_is_whole = strcmp(origin, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == 0;
    if (target->url_is_default)
        origin = "OTEL_EXPORTER_OTLP_ENDPOINT";
    snprintf(target->url_from, sizeof target->url_from, "%s",
             endpoint != NULL ? "--endpoint" : origin);
    origin = oteli_config_origin(config, &config->exporter_otlp_traces_protocol);
    snprintf(target->protocol_from, sizeof target->protocol_from, "%s",
             strcmp(origin, "default") == 0 ? "OTEL_EXPORTER_OTLP_PROTOCOL" : origin);
    if (route->otlp.options.tls_min == OTEL_TLS_1_3)
        snprintf(target->tls_setting, sizeof target->tls_setting, "OTEL_C_OTLP_TLS_MIN=%s",
                 config->otlp_tls_min);
    return doctor_route_take(route, &route->otlp.options, record);
}

void doctor_route_fini(struct doctor_route *route)
{
    if (route->has_otlp)
        oteli_start_otlp_fini(&route->otlp);
    memset(route, 0, sizeof *route);
}
