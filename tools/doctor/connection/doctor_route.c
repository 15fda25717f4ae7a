/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_route.c - the contracts are in
 * tools/doctor/connection/doctor_route.h. */
#include "tools/doctor/connection/doctor_route.h"

#include "common/text/secrets.h"
#include "common/text/text.h"
#include "tools/doctor/doctor_log.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { LONGEST_STEP_MS = 10000 };

/* ---- URLs ----------------------------------------------------------------------------- */

const char *doctor_url_hint(const char *given, char *out, size_t size)
{
    const char *scheme = strstr(given, "://");
    const size_t length = scheme != NULL ? (size_t)(scheme - given) : 0;
    char shown[256];
    oteli_hide_in_setting(given, shown, sizeof shown);
    if (scheme == NULL && strncasecmp(given, "unix:", 5) == 0)
        snprintf(out, size, "write unix:///path, with the whole path of the socket");
    else if (scheme == NULL && strpbrk(given, " \t\"'") == NULL)
        snprintf(out, size, "write http://%s or https://%s", shown, shown);
    else if (strpbrk(given, " \t\"'") != NULL)
        snprintf(out, size, "take the blanks and quotation marks out of it");
    else if (length == 4 && strncasecmp(given, "grpc", length) == 0)
        snprintf(out, size, "write http:// in front, and say grpc in OTEL_EXPORTER_OTLP_PROTOCOL");
    else
        snprintf(out, size, "write it as http://HOST:PORT or https://HOST:PORT");
    return out;
}

static void copy_part(CURLU *url, CURLUPart part, unsigned flags, char *out, size_t size)
{
    char *text = NULL;
    out[0] = '\0';
    if (curl_url_get(url, part, &text, flags) == CURLUE_OK)
        snprintf(out, size, "%s", text);
    curl_free(text);
}

/* Host, port and path of a URL; a proxy's may lack its scheme. False: it is none. */
static bool split(const char *text, bool is_proxy, char host[256], unsigned *port, char *path,
                  size_t path_size)
{
    CURLU *url = curl_url();
    const unsigned flags = is_proxy ? CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME : 0;
    const bool fine = url != NULL && curl_url_set(url, CURLUPART_URL, text, flags) == CURLUE_OK;
    if (fine) {
        char number[16];
        copy_part(url, CURLUPART_HOST, 0, host, 256);
        copy_part(url, CURLUPART_PORT, is_proxy ? 0 : CURLU_DEFAULT_PORT, number, sizeof number);
        copy_part(url, CURLUPART_PATH, 0, path, path_size);
        *port = number[0] != '\0' ? (unsigned)strtoul(number, NULL, 10) : 1080;
        const size_t length = strlen(host);
        if (length > 2 && host[0] == '[') {
            memmove(host, host + 1, length - 2);
            host[length - 2] = '\0';
        }
    }
    curl_url_cleanup(url);
    return fine;
}

bool doctor_skips_proxy(const char *host, const char *no_proxy)
{
    otel_slice rest = oteli_slice_of(no_proxy);
    otel_slice entry;
    const size_t length = strlen(host);
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

/* ---- what can be shown ---------------------------------------------------------------- */

static void describe_proxy(const struct doctor_route *route, struct doctor_target *target)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                        "ALL_PROXY"};
    char path[DOCTOR_SHORT];
    if (route->proxy[0] == '\0' || target->unix_path[0] != '\0' ||
        doctor_skips_proxy(target->host, route->no_proxy))
        return;
    oteli_hide_in_setting(route->proxy, target->proxy, sizeof target->proxy);
    split(route->proxy, true, target->proxy_host, &target->proxy_port, path, sizeof path);
    snprintf(target->proxy_from, sizeof target->proxy_from, "the configuration");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (oteli_env_get(names[i]) == route->proxy)
            snprintf(target->proxy_from, sizeof target->proxy_from, "%s", names[i]);
    }
}

static void describe(const struct doctor_route *route, struct doctor_target *target)
{
    const struct oteli_options *options = &route->options;
    target->protocol = options->given.protocol;
    snprintf(target->url, sizeof target->url, "%s", options->endpoint.name);
    target->is_tls = strncasecmp(options->endpoint.url, "https:", 6) == 0;
    split(options->endpoint.url, false, target->host, &target->port, target->path,
          sizeof target->path);
    if (options->endpoint.unix_socket != NULL)
        snprintf(target->unix_path, sizeof target->unix_path, "%s", options->endpoint.unix_socket);
    const int64_t timeout = options->given.timeout_ms;
    target->timeout_ms =
        timeout > 0 && timeout < LONGEST_STEP_MS ? (unsigned)timeout : LONGEST_STEP_MS;
    describe_proxy(route, target);
}

bool doctor_route_take(struct doctor_route *route, const otel_otlp_options *given,
                       const struct doctor_tls_files *files, struct doctor_record *record)
{
    const otel_status status = oteli_options_init(&route->options, OTELI_SIGNAL_TRACES, given);
    if (status == OTEL_ERROR_NO_MEMORY)
        return false;
    struct doctor_settings_seen *seen = &record->settings;
    if (status == OTEL_ERROR_UNSUPPORTED)
        snprintf(seen->export_fault, sizeof seen->export_fault,
                 "this build of otel-c, or its libcurl, has not what the endpoint %.200s needs "
                 "(HTTP/2 for gRPC, TLS for https, or the compression)",
                 record->target.url);
    else if (status != OTEL_OK)
        snprintf(seen->export_fault, sizeof seen->export_fault,
                 "the OTLP exporter refuses its options (%.300s)", doctor_log_last());
    doctor_files_examine(files, record);
    if (status != OTEL_OK)
        return true;
    route->is_ready = true;
    route->proxy = given->proxy != NULL ? given->proxy : "";
    route->no_proxy = given->no_proxy != NULL ? given->no_proxy : "";
    if (given->proxy == NULL)
        oteli_otlp_proxy(route->options.endpoint.url, &route->proxy, &route->no_proxy);
    describe(route, &record->target);
    return true;
}

/* ---- from the environment ------------------------------------------------------------- */

/* Whether the headers of the settings can be sent; the log says which of them are left out. */
static void examine_headers(const struct doctor_settings *settings,
                            struct doctor_settings_seen *seen)
{
    static const char variable[] = "OTEL_EXPORTER_OTLP_TRACES_HEADERS";
    const char *list = doctor_settings_text(settings, variable);
    otel_otlp_header *headers = NULL;
    size_t count = 0;
    doctor_log_forget();
    if (list != NULL && oteli_otlp_headers_parse(doctor_settings_source(settings, variable), list,
                                                 &headers, &count))
        oteli_otlp_headers_free(headers, count);
    snprintf(seen->header_fault, sizeof seen->header_fault, "%s", doctor_log_last());
}

/* Whether the endpoint can be used. */
static bool examine_endpoint(const struct doctor_settings *settings, otel_otlp_protocol protocol,
                             struct doctor_record *record)
{
    const char *general = doctor_settings_text(settings, "OTEL_EXPORTER_OTLP_ENDPOINT");
    const char *traces = doctor_settings_text(settings, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    const char *given = traces != NULL ? traces : general;
    const char *variable =
        traces != NULL ? "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" : "OTEL_EXPORTER_OTLP_ENDPOINT";
    if (settings->endpoint != NULL)
        variable = "--endpoint";
    record->target.url_is_whole = traces != NULL;
    record->target.url_is_default = given == NULL;
    snprintf(record->target.url_from, sizeof record->target.url_from, "%s", variable);
    char *endpoint;
    if (given == NULL ||
        oteli_otlp_endpoint(OTELI_SIGNAL_TRACES, protocol, general, traces, &endpoint)) {
        if (given != NULL)
            free(endpoint);
        return true;
    }
    char shown[256];
    snprintf(record->settings.url_fault, sizeof record->settings.url_fault, "%s=\"%s\"", variable,
             oteli_hide_in_setting(given, shown, sizeof shown));
    doctor_url_hint(given, record->settings.url_hint, sizeof record->settings.url_hint);
    return false;
}

static struct doctor_tls_files files_of(const struct doctor_settings *settings)
{
    static const char ca[] = "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE";
    static const char certificate[] = "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE";
    static const char key[] = "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY";
    return (struct doctor_tls_files){
        .ca = doctor_settings_text(settings, ca),
        .ca_name = doctor_settings_source(settings, ca),
        .certificate = doctor_settings_text(settings, certificate),
        .certificate_name = doctor_settings_source(settings, certificate),
        .key = doctor_settings_text(settings, key),
        .key_name = doctor_settings_source(settings, key),
    };
}

bool doctor_route_from_settings(struct doctor_route *route, const struct doctor_settings *settings,
                                struct doctor_record *record)
{
    const char *source = doctor_settings_source(settings, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL");
    snprintf(record->target.protocol_from, sizeof record->target.protocol_from, "%s",
             strncmp(source, "OTEL_", 5) == 0 ? source : "OTEL_EXPORTER_OTLP_PROTOCOL");
    if (!oteli_start_otlp_init(&route->otlp, OTELI_SIGNAL_TRACES, &settings->config))
        return false;
    route->has_otlp = true;
    if (route->otlp.options.tls_min == OTEL_TLS_1_3)
        snprintf(record->target.tls_setting, sizeof record->target.tls_setting,
                 "OTEL_C_OTLP_TLS_MIN=%s", settings->config.otlp_tls_min);
    examine_headers(settings, &record->settings);
    if (!examine_endpoint(settings, route->otlp.options.protocol, record))
        return true;
    const struct doctor_tls_files files = files_of(settings);
    return doctor_route_take(route, &route->otlp.options, &files, record);
}

void doctor_route_fini(struct doctor_route *route)
{
    if (route->is_ready)
        oteli_options_fini(&route->options);
    if (route->has_otlp)
        oteli_start_otlp_fini(&route->otlp);
    memset(route, 0, sizeof *route);
}
