/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_request.c - the contracts are in
 * tools/doctor/connection/doctor_request.h. */
#include "tools/doctor/connection/doctor_request.h"

#include "common/clock/clock.h"
#include "common/text/secrets.h"
#include "common/text/text.h"
#include "exporters/otlp/otlp_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { HTTP_PORT = 4318, GRPC_PORT = 4317, OTHER_WAY_MS = 2000 };

/* ---- while it runs -------------------------------------------------------------------- */

/* Foreign text as one line, without blanks around it. */
static void copy_line(otel_slice text, char *out, size_t size)
{
    oteli_response_printable(text, out, size);
    oteli_slice_fit(out, size, oteli_trim(oteli_slice_of(out)));
}

/* If a text begins with `start`, what comes between that and one of the bytes `ends`. */
static bool take_after(otel_slice text, const char *start, const char *ends, char *out, size_t size)
{
    const size_t length = strlen(start);
    if (text.length <= length || strncasecmp(text.data, start, length) != 0)
        return false;
    otel_slice rest = {.data = text.data + length, .length = 0};
    while (length + rest.length < text.length && strchr(ends, rest.data[rest.length]) == NULL)
        rest.length++;
    copy_line(rest, out, size);
    return true;
}

static void note_line(otel_slice line, struct doctor_answer *answer)
{
    char location[DOCTOR_TEXT];
    if (take_after(line, "HTTP/", " ", answer->version, sizeof answer->version))
        answer->location[0] = answer->server[0] = '\0'; /* those before were a proxy's */
    else if (take_after(line, "location:", "\r\n", location, sizeof location))
        oteli_hide_in_setting(location, answer->location, sizeof answer->location);
    else
        take_after(line, "server:", "\r\n", answer->server, sizeof answer->server);
}

static bool has(otel_slice text, const char *words)
{
    return memmem(text.data, text.length, words, strlen(words)) != NULL;
}

/* What libcurl says to people, of which these words have been the same for ten years. */
static void note_words(otel_slice words, struct doctor_answer *answer)
{
    const size_t used = strlen(answer->addresses);
    char address[128];
    words = oteli_trim(words);
    if (take_after(words, "Trying ", " \n", address, sizeof address)) {
        char *dots = strstr(address, "...");
        if (dots != NULL)
            *dots = '\0';
        snprintf(answer->addresses + used, sizeof answer->addresses - used, "%s%s",
                 used != 0 ? ", " : "", address);
    }
    take_after(words, "SSL connection using ", " \n", answer->tls_version,
               sizeof answer->tls_version);
    if (has(words, "CONNECT")) /* TLS before that was the proxy's */
        answer->hears_tls = answer->wants_certificate = false;
    answer->hears_tls |= has(words, "(IN), TLS handshake") || has(words, "(IN), TLS alert");
    answer->wants_certificate |= has(words, "Request CERT");
}

static void note(void *state, enum oteli_observed what, const char *bytes, size_t length)
{
    const otel_slice text = {.data = bytes, .length = length};
    if (what == OTELI_OBSERVED_LINE)
        note_line(text, state);
    else if (what == OTELI_OBSERVED_TEXT)
        note_words(text, state);
}

/* ---- the answer ----------------------------------------------------------------------- */

static bool is_type(const struct doctor_answer *answer, const char *type)
{
    return strncasecmp(answer->content_type, type, strlen(type)) == 0;
}

/* What a receiver says for itself. */
static void read_body(const struct oteli_response_body *body, otel_otlp_protocol protocol,
                      struct doctor_answer *answer)
{
    otel_slice text = {(const char *)body->bytes, body->length};
    char beginning[64];
    copy_line(text, beginning, sizeof beginning);
    answer->is_html = is_type(answer, "text/html") || strncasecmp(beginning, "<html", 5) == 0 ||
                      strncasecmp(beginning, "<!doc", 5) == 0;
    if (protocol == OTEL_OTLP_GRPC || answer->is_html)
        return;
    if (is_type(answer, "application/x-protobuf"))
        text = answer->status == 200 ? oteli_response_partial_success(body).message
                                     : oteli_response_status_message(body);
    copy_line(text, answer->message, sizeof answer->message);
}

static void read_grpc(const struct oteli_transport_response *response, struct doctor_answer *answer)
{
    char message[sizeof answer->message];
    size_t length;
    if (response->grpc_status != NULL)
        answer->grpc_status = (int)strtol(response->grpc_status, NULL, 10);
    if (response->grpc_message == NULL)
        return;
    snprintf(message, sizeof message, "%s", response->grpc_message);
    if (!oteli_percent_decode(message, strlen(message), message, &length))
        length = strlen(message);
    copy_line((otel_slice){message, length}, answer->message, sizeof answer->message);
}

/* Whether the answer is one of OTLP. */
static bool is_otlp(const struct doctor_answer *answer, otel_otlp_protocol protocol)
{
    if (answer->status != 200)
        return false;
    if (protocol == OTEL_OTLP_GRPC)
        return answer->grpc_status == 0;
    if (protocol == OTEL_OTLP_HTTP_JSON)
        return is_type(answer, "application/json");
    return is_type(answer, "application/x-protobuf") || answer->content_type[0] == '\0';
}

static enum doctor_result result_at(enum oteli_transport_step step,
                                    enum oteli_transport_step reached)
{
    return reached < step ? DOCTOR_NOT_TRIED : reached == step ? DOCTOR_FAILED : DOCTOR_FINE;
}

/* How far a request came. With TLS 1.3 a server refuses a client that has finished its handshake
 * already, and often hangs up so fast that the reason does not arrive. */
static void read_steps(const struct oteli_transport_response *response,
                       const struct doctor_target *target, struct doctor_answer *answer)
{
    enum doctor_result *results = answer->results;
    enum oteli_transport_step reached = response->step;
    answer->stops_at_proxy =
        answer->status == 0 &&
        (reached == OTELI_STEP_PROXY || (reached == OTELI_STEP_TLS && answer->proxy_status == 0 &&
                                         strncasecmp(target->proxy, "https:", 6) == 0));
    if (answer->stops_at_proxy)
        reached = OTELI_STEP_PROXY;
    else if (answer->wants_certificate && reached > OTELI_STEP_TLS && !answer->timed_out)
        reached = OTELI_STEP_TLS;
    if (answer->status != 0)
        reached = OTELI_STEP_ANSWER;
    results[DOCTOR_NAME] = result_at(OTELI_STEP_NAME, reached);
    results[DOCTOR_CONNECT] = result_at(OTELI_STEP_CONNECT, reached);
    if (answer->is_tls_file) /* it is looked at first */
        results[DOCTOR_NAME] = results[DOCTOR_CONNECT] = DOCTOR_NOT_TRIED;
    if (target->is_tls)
        results[DOCTOR_TLS] = result_at(OTELI_STEP_TLS, reached);
    if (answer->status != 0)
        results[DOCTOR_HTTP] = DOCTOR_FINE;
    else if (reached > OTELI_STEP_CONNECT && results[DOCTOR_TLS] != DOCTOR_FAILED)
        results[DOCTOR_HTTP] = DOCTOR_FAILED;
    if (answer->status != 0)
        results[DOCTOR_OTLP] = is_otlp(answer, target->protocol) ? DOCTOR_FINE : DOCTOR_FAILED;
}

static void read_answer(const struct oteli_transport_response *response,
                        const struct doctor_target *target, struct doctor_answer *answer)
{
    answer->proxy_status = response->proxy_status;
    answer->status = response->status;
    answer->connect_error = response->step == OTELI_STEP_CONNECT ? response->os_error : 0;
    answer->is_tls_file = response->is_tls_file;
    copy_line(oteli_slice_of(response->content_type), answer->content_type,
              sizeof answer->content_type);
    read_grpc(response, answer);
    if (answer->status != 0)
        read_body(&response->body, target->protocol, answer);
    else
        copy_line(oteli_slice_of(response->problem), answer->problem, sizeof answer->problem);
    read_steps(response, target, answer);
}

/* ---- the question --------------------------------------------------------------------- */

/* Post a request without spans. True: no answer came in time. */
static bool post(struct oteli_transport *transport, const struct doctor_target *target,
                 struct oteli_transport_response *response)
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
    while (!oteli_transport_poll(transport, 100, response)) {
        if (oteli_monotonic_ns() >= deadline_ns) {
            oteli_transport_cancel(transport, response);
            break;
        }
    }
    return response->status == 0 && oteli_monotonic_ns() >= deadline_ns;
}

/* Ask once, as the exporter with these options does but for the compression of an empty body. */
static void ask(const otel_otlp_options *given, const struct doctor_target *target,
                struct doctor_answer *answer)
{
    otel_otlp_options plain = *given;
    struct oteli_options options;
    const struct oteli_observer observer = {note, answer};
    *answer = (struct doctor_answer){.grpc_status = -1};
    plain.compression = OTEL_OTLP_COMPRESSION_NONE;
    if (oteli_options_init(&options, OTELI_SIGNAL_TRACES, &plain) != OTEL_OK)
        return;
    options.observer = &observer;
    struct oteli_transport *transport = oteli_options_transport(&options);
    if (transport != NULL) {
        struct oteli_transport_response response;
        answer->timed_out = post(transport, target, &response);
        read_answer(&response, target, answer);
        oteli_transport_free(transport);
    }
    oteli_options_fini(&options);
}

/* ---- other ways ----------------------------------------------------------------------- */

/* Ask as `other` says. What is secret goes only where it goes anyway. */
static void ask_otherwise(const struct doctor_route *route, const struct doctor_target *target,
                          struct doctor_target *other, struct doctor_answer *answer)
{
    otel_otlp_options given = route->given;
    char endpoint[512];
    snprintf(endpoint, sizeof endpoint, "http%s://%s:%u%s", other->is_tls ? "s" : "", other->host,
             other->port, other->protocol == OTEL_OTLP_GRPC ? "" : "/v1/traces");
    given.endpoint = endpoint;
    given.protocol = other->protocol;
    if (other->is_tls != target->is_tls || other->port != target->port) {
        given.headers = NULL;
        given.header_count = 0;
        given.certificate_file = given.key_file = NULL;
    }
    if (other->timeout_ms > OTHER_WAY_MS)
        other->timeout_ms = OTHER_WAY_MS;
    ask(&given, other, answer);
}

static otel_otlp_protocol other_protocol(otel_otlp_protocol protocol)
{
    return protocol == OTEL_OTLP_GRPC ? OTEL_OTLP_HTTP_PROTOBUF : OTEL_OTLP_GRPC;
}

/* Whether it is a question what the other end speaks. */
static bool is_odd(const struct doctor_target *target, const struct doctor_answer *answer)
{
    if (answer->timed_out || answer->results[DOCTOR_CONNECT] != DOCTOR_FINE)
        return false;
    if (answer->results[DOCTOR_TLS] == DOCTOR_FAILED)
        return !answer->is_tls_file &&
               (!answer->hears_tls || strstr(answer->problem, "no application protocol") != NULL);
    if (answer->results[DOCTOR_HTTP] == DOCTOR_FAILED || answer->status == 400)
        return true;
    const bool is_refused = answer->status == 404 || answer->status == 405 || answer->status == 415;
    return target->protocol == OTEL_OTLP_GRPC && is_refused && answer->grpc_status < 0;
}

/* The other of with and without TLS. A server of https may answer 400 to a request in the clear. */
static bool speaks_otherwise(const struct doctor_route *route, const struct doctor_target *target)
{
    struct doctor_target other = *target;
    struct doctor_answer answer;
    other.is_tls = !target->is_tls;
    ask_otherwise(route, target, &other, &answer);
    if (other.is_tls)
        return answer.hears_tls || answer.results[DOCTOR_TLS] == DOCTOR_FINE;
    if (answer.version[0] == '\0') {
        other.protocol = other_protocol(target->protocol);
        ask_otherwise(route, target, &other, &answer);
    }
    return answer.version[0] != '\0' && answer.status != 400;
}

static enum doctor_instead find_instead(const struct doctor_route *route,
                                        const struct doctor_target *target,
                                        const struct doctor_answer *seen)
{
    struct doctor_target other = *target;
    struct doctor_answer answer;
    if (target->unix_path[0] != '\0')
        return DOCTOR_INSTEAD_NOTHING;
    if (seen->status == 404 && target->protocol != OTEL_OTLP_GRPC &&
        strcmp(target->path, "/v1/traces") != 0) {
        ask_otherwise(route, target, &other, &answer);
        return answer.results[DOCTOR_OTLP] == DOCTOR_FINE ? DOCTOR_INSTEAD_PATH
                                                          : DOCTOR_INSTEAD_NOTHING;
    }
    if (target->proxy[0] != '\0') /* it would only say what itself speaks */
        return DOCTOR_INSTEAD_NOTHING;
    other.protocol = other_protocol(target->protocol);
    if (seen->connect_error == ECONNREFUSED &&
        (target->port == HTTP_PORT || target->port == GRPC_PORT)) {
        other.port = target->port == HTTP_PORT ? GRPC_PORT : HTTP_PORT;
        ask_otherwise(route, target, &other, &answer);
        return answer.results[DOCTOR_CONNECT] == DOCTOR_FINE ? DOCTOR_INSTEAD_PORT
                                                             : DOCTOR_INSTEAD_NOTHING;
    }
    if (!is_odd(target, seen))
        return DOCTOR_INSTEAD_NOTHING;
    if (seen->results[DOCTOR_TLS] != DOCTOR_FINE && speaks_otherwise(route, target))
        return target->is_tls ? DOCTOR_INSTEAD_PLAIN : DOCTOR_INSTEAD_TLS;
    ask_otherwise(route, target, &other, &answer);
    if (other.protocol == OTEL_OTLP_GRPC)
        return answer.grpc_status >= 0 ? DOCTOR_INSTEAD_GRPC : DOCTOR_INSTEAD_NOTHING;
    return answer.version[0] != '\0' ? DOCTOR_INSTEAD_HTTP : DOCTOR_INSTEAD_NOTHING;
}

void doctor_request(const struct doctor_route *route, struct doctor_record *record)
{
    ask(&route->given, &record->target, &record->answer);
    record->instead = find_instead(route, &record->target, &record->answer);
}
