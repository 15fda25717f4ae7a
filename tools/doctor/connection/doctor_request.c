/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_request.c - the contracts are in
 * tools/doctor/connection/doctor_request.h. */
#include "tools/doctor/connection/doctor_request.h"

#include "common/clock/clock.h"
#include "common/text/secrets.h"
#include "common/text/text.h"
#include "tools/doctor/connection/doctor_speech.h"
#include "tools/doctor/connection/doctor_tls.h"
#include "tools/doctor/settings/doctor_redact.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* What a request is observed for. */
struct watch {
    struct doctor_http *http;
    struct doctor_tls_watch tls;
};

/* ---- the answer ----------------------------------------------------------------------- */

/* If a line is the header `name`, its value. */
static bool take_header(const char *line, size_t length, const char *name, char *out, size_t size)
{
    const size_t name_length = strlen(name);
    if (length <= name_length || strncasecmp(line, name, name_length) != 0 ||
        line[name_length] != ':')
        return false;
    const otel_slice value = oteli_trim(
        (otel_slice){.data = line + name_length + 1, .length = length - name_length - 1});
    doctor_one_line(value.data, value.length, out, size);
    return true;
}

static void note_line(const char *line, size_t length, struct doctor_http *http)
{
    char location[DOCTOR_TEXT];
    if (length > 5 && memcmp(line, "HTTP/", 5) == 0) { /* what came before was a proxy's */
        const size_t version = strcspn(line + 5, " ");
        snprintf(http->version, sizeof http->version, "%.*s", (int)version, line + 5);
        http->location[0] = http->wants_authentication[0] = http->server[0] = '\0';
    } else if (take_header(line, length, "location", location, sizeof location)) {
        oteli_hide_in_setting(location, http->location, sizeof http->location);
    } else if (take_header(line, length, "www-authenticate", http->wants_authentication,
                           sizeof http->wants_authentication)) {
        http->wants_authentication[strcspn(http->wants_authentication, " ,")] = '\0';
    } else {
        take_header(line, length, "server", http->server, sizeof http->server);
    }
}

static void note(void *state, enum oteli_observed what, const char *bytes, size_t length)
{
    struct watch *watch = state;
    doctor_tls_note(&watch->tls, what, bytes, length);
    if (what == OTELI_OBSERVED_LINE)
        note_line(bytes, length, watch->http);
}

static bool is_type(const struct doctor_http *http, const char *type)
{
    return strncasecmp(http->content_type, type, strlen(type)) == 0;
}

static bool begins_as_html(const struct oteli_response_body *body)
{
    const char *text = (const char *)body->bytes;
    size_t at = 0;
    while (at < body->length && strchr(" \t\r\n", text[at]) != NULL)
        at++;
    return body->length - at >= 5 &&
           (strncasecmp(text + at, "<html", 5) == 0 || strncasecmp(text + at, "<!doc", 5) == 0);
}

/* What a receiver says for itself. */
static void read_body(const struct oteli_response_body *body, struct doctor_record *record)
{
    struct doctor_http *http = &record->http;
    struct doctor_otlp *otlp = &record->otlp;
    http->is_html = is_type(http, "text/html") || begins_as_html(body);
    if (record->target.protocol == OTEL_OTLP_GRPC || http->is_html)
        return;
    if (!is_type(http, "application/x-protobuf")) {
        doctor_one_line((const char *)body->bytes, body->length, http->words, sizeof http->words);
    } else if (http->status == 200) {
        const struct oteli_partial_success partial = oteli_response_partial_success(body);
        otlp->rejected = partial.rejected_spans;
        oteli_response_printable(partial.message, otlp->words, sizeof otlp->words);
    } else {
        oteli_response_printable(oteli_response_status_message(body), http->words,
                                 sizeof http->words);
    }
}

static void read_grpc(const struct oteli_transport_response *answer, struct doctor_otlp *otlp)
{
    char message[sizeof otlp->words];
    size_t length;
    if (answer->grpc_status != NULL)
        otlp->grpc_status = (int)strtol(answer->grpc_status, NULL, 10);
    if (answer->grpc_message == NULL)
        return;
    snprintf(message, sizeof message, "%s", answer->grpc_message);
    if (!oteli_percent_decode(message, strlen(message), message, &length))
        length = strlen(message);
    doctor_one_line(message, length, otlp->words, sizeof otlp->words);
}

/* Whether the answer is one of OTLP. */
static bool is_otlp(const struct doctor_record *record)
{
    const struct doctor_http *http = &record->http;
    if (http->status != 200)
        return false;
    if (record->target.protocol == OTEL_OTLP_GRPC)
        return record->otlp.grpc_status == 0;
    if (record->target.protocol == OTEL_OTLP_HTTP_JSON)
        return is_type(http, "application/json");
    return is_type(http, "application/x-protobuf") || http->content_type[0] == '\0';
}

static void read_answer(const struct oteli_transport_response *answer, bool timed_out,
                        struct doctor_record *record)
{
    struct doctor_http *http = &record->http;
    const bool has_answer = answer->status != 0;
    http->result = has_answer ? DOCTOR_FINE : DOCTOR_FAILED;
    http->timed_out = timed_out;
    http->proxy_refused =
        !has_answer && answer->proxy_status != 0 && answer->proxy_status / 100 != 2;
    http->status = http->proxy_refused ? answer->proxy_status : answer->status;
    if (answer->content_type != NULL)
        doctor_one_line(answer->content_type, strlen(answer->content_type), http->content_type,
                        sizeof http->content_type);
    read_grpc(answer, &record->otlp);
    if (has_answer)
        read_body(&answer->body, record);
    else
        doctor_one_line(answer->problem, strlen(answer->problem), http->words, sizeof http->words);
    record->otlp.result = is_otlp(record) ? DOCTOR_FINE : DOCTOR_FAILED;
}

/* ---- the question --------------------------------------------------------------------- */

/* Post a request without spans. True: no answer came in time. */
static bool post(struct oteli_transport *transport, const struct doctor_target *target,
                 struct oteli_transport_response *answer)
{
    static const char *const bodies[] = {[OTEL_OTLP_HTTP_PROTOBUF] = "",
                                         [OTEL_OTLP_HTTP_JSON] = "{}",
                                         [OTEL_OTLP_GRPC] = "\0\0\0\0"};
    static const size_t lengths[] = {0, 2, 5};
    const struct oteli_transport_request request = {.body = bodies[target->protocol],
                                                    .length = lengths[target->protocol],
                                                    .connect_ms = target->timeout_ms};
    const uint64_t deadline_ns = oteli_monotonic_ns() + target->timeout_ms * UINT64_C(1000000);
    oteli_transport_start(transport, &request);
    while (!oteli_transport_poll(transport, 100, answer)) {
        if (oteli_monotonic_ns() >= deadline_ns) {
            oteli_transport_cancel(transport, answer);
            return answer->status == 0;
        }
    }
    return answer->status == 0 && oteli_monotonic_ns() >= deadline_ns;
}

/* Ask once, as the exporter with these options does but for the compression of an empty body. */
static void ask(const otel_otlp_options *asked, struct doctor_record *record)
{
    otel_otlp_options given = *asked;
    struct oteli_options options;
    given.compression = OTEL_OTLP_COMPRESSION_NONE;
    record->otlp.grpc_status = -1;
    if (oteli_options_init(&options, OTELI_SIGNAL_TRACES, &given) != OTEL_OK)
        return;
    struct watch watch = {.http = &record->http};
    const struct oteli_observer observer = {note, &watch};
    options.observer = &observer;
    record->tls.has_certificate = given.certificate_file != NULL;
    doctor_tls_watch(&watch.tls, record);
    struct oteli_transport *transport = oteli_options_transport(&options);
    if (transport != NULL) {
        struct oteli_transport_response answer;
        const bool timed_out = post(transport, &record->target, &answer);
        read_answer(&answer, timed_out, record);
        if (record->target.is_tls && !timed_out)
            doctor_tls_conclude(&watch.tls, &answer);
        oteli_transport_free(transport);
    }
    oteli_options_fini(&options);
}

/* The status of /v1/traces on the same host, or 0. */
static int ask_elsewhere(const struct doctor_route *route, const struct doctor_record *record)
{
    struct doctor_record other = {.target = record->target};
    otel_otlp_options given = route->options.given;
    const char *url = route->options.endpoint.url;
    const char *host = strstr(url, "://");
    char endpoint[2 * DOCTOR_TEXT];
    if (host == NULL || record->target.unix_path[0] != '\0')
        return 0;
    host += strlen("://");
    const int length = (int)(host + strcspn(host, "/?#") - url);
    snprintf(endpoint, sizeof endpoint, "%.*s/v1/traces", length, url);
    given.endpoint = endpoint;
    ask(&given, &other);
    return other.otlp.result == DOCTOR_FINE ? 200 : other.http.status;
}

/* ---- what does it speak? -------------------------------------------------------------- */

/* Ask with TLS, and without the headers and the certificate that are meant for the receiver. */
static enum doctor_speech ask_with_tls(const struct doctor_route *route,
                                       const struct doctor_target *target,
                                       otel_otlp_protocol protocol)
{
    struct doctor_record other = {.target = *target};
    const char *const brackets = strchr(target->host, ':') != NULL ? "[]" : "";
    char endpoint[300];
    snprintf(endpoint, sizeof endpoint, "https://%.1s%s%s:%u/v1/traces", brackets, target->host,
             brackets[0] != '\0' ? brackets + 1 : "", target->port);
    other.target.is_tls = true;
    other.target.protocol = protocol;
    const otel_otlp_options given = {.size = sizeof given,
                                     .endpoint = endpoint,
                                     .protocol = protocol,
                                     .ca_file = route->options.given.ca_file,
                                     .proxy = ""};
    ask(&given, &other);
    if (other.http.version[0] == '2')
        return DOCTOR_SPEECH_HTTP2_IN_TLS;
    const struct doctor_tls *tls = &other.tls;
    const bool is_tls = tls->issuer[0] != '\0' || tls->result == DOCTOR_FINE ||
                        tls->problem == DOCTOR_TLS_VERSION || tls->problem == DOCTOR_TLS_NO_HTTP1;
    return is_tls ? DOCTOR_SPEECH_TLS : DOCTOR_SPEECH_UNKNOWN;
}

static enum doctor_speech find_speech(const struct doctor_route *route,
                                      const struct doctor_peer *peer,
                                      const struct doctor_record *record)
{
    const struct doctor_target *target = &record->target;
    const otel_otlp_protocol protocol = route->options.given.protocol;
    if (target->is_tls && record->tls.result == DOCTOR_FINE)
        return ask_with_tls(route, target, OTEL_OTLP_GRPC);
    if (record->tls.problem == DOCTOR_TLS_VERSION)
        return ask_with_tls(route, target, protocol);
    const bool is_plain_host = !target->is_tls && target->unix_path[0] == '\0';
    const enum doctor_speech speech =
        is_plain_host ? ask_with_tls(route, target, protocol) : DOCTOR_SPEECH_UNKNOWN;
    return speech != DOCTOR_SPEECH_UNKNOWN
               ? speech
               : doctor_speech_ask(peer, target->host, target->timeout_ms);
}

/* Whether it is a question what the other end speaks. A proxy would only say what itself does. */
static bool is_odd(const struct doctor_record *record)
{
    const struct doctor_http *http = &record->http;
    const struct doctor_tls *tls = &record->tls;
    const bool breaks_off = http->result == DOCTOR_FAILED && !http->timed_out;
    if (record->target.proxy[0] != '\0' || (!breaks_off && http->status != 400))
        return false;
    return tls->result != DOCTOR_FAILED || tls->problem == DOCTOR_TLS_NOT_TLS ||
           tls->problem == DOCTOR_TLS_VERSION || tls->problem == DOCTOR_TLS_OTHER;
}

void doctor_request(const struct doctor_route *route, const struct doctor_peer *peer,
                    struct doctor_record *record)
{
    const struct doctor_target *target = &record->target;
    struct doctor_http *http = &record->http;
    ask(&route->options.given, record);
    if (is_odd(record))
        http->speech = find_speech(route, peer, record);
    if (http->status == 404 && target->protocol != OTEL_OTLP_GRPC &&
        strcmp(target->path, "/v1/traces") != 0)
        http->status_elsewhere = ask_elsewhere(route, record);
}
