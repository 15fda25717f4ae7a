/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor_request.c - the contracts are in tools/doctor_request.h. */
#include "tools/doctor_request.h"

#include "common/secrets.h"
#include "common/text.h"
#include "exporters/otlp/answer.h"
#include "tools/doctor_secrets.h"
#include "tools/doctor_speech.h"
#include "tools/doctor_tls.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* What comes back. */
struct answer {
    struct doctor_http *http;
    struct doctor_otlp *otlp;
    uint8_t body[DOCTOR_BODY];
    size_t length;
    bool is_cut;
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

static void decode_percent(char *text)
{
    size_t length;
    if (oteli_percent_decode(text, strlen(text), text, &length))
        text[length] = '\0';
}

static size_t note_header(char *line, size_t size, size_t count, void *state)
{
    struct answer *answer = state;
    struct doctor_http *http = answer->http;
    const size_t length = size * count;
    char number[16];
    char location[DOCTOR_TEXT];
    if (length > 5 && memcmp(line, "HTTP/", 5) == 0)
        answer->length = 0; /* what came before was not the last answer */
    else if (take_header(line, length, "location", location, sizeof location))
        oteli_hide_in_setting(location, http->location, sizeof http->location);
    else if (take_header(line, length, "www-authenticate", http->wants_authentication,
                         sizeof http->wants_authentication))
        http->wants_authentication[strcspn(http->wants_authentication, " ,")] = '\0';
    else if (take_header(line, length, "grpc-status", number, sizeof number))
        answer->otlp->grpc_status = (int)strtol(number, NULL, 10);
    else if (take_header(line, length, "grpc-message", answer->otlp->words,
                         sizeof answer->otlp->words))
        decode_percent(answer->otlp->words);
    else if (!take_header(line, length, "content-type", http->content_type,
                          sizeof http->content_type))
        take_header(line, length, "server", http->server, sizeof http->server);
    return length;
}

static size_t note_body(char *bytes, size_t size, size_t count, void *state)
{
    struct answer *answer = state;
    const size_t length = size * count;
    const size_t room = sizeof answer->body - answer->length;
    const size_t taken = length < room ? length : room;
    memcpy(answer->body + answer->length, bytes, taken);
    answer->length += taken;
    answer->is_cut |= taken < length;
    return length;
}

static bool is_type(const struct doctor_http *http, const char *type)
{
    return strncasecmp(http->content_type, type, strlen(type)) == 0;
}

static bool begins_as_html(const struct answer *answer)
{
    size_t at = 0;
    while (at < answer->length && strchr(" \t\r\n", answer->body[at]) != NULL)
        at++;
    const char *text = (const char *)answer->body + at;
    return answer->length - at >= 5 &&
           (strncasecmp(text, "<html", 5) == 0 || strncasecmp(text, "<!doc", 5) == 0);
}

/* What a receiver says for itself. */
static void read_body(const struct answer *answer, const struct doctor_target *target)
{
    struct doctor_http *http = answer->http;
    const struct oteli_answer_body body = {
        .bytes = answer->body, .length = answer->length, .is_cut = answer->is_cut};
    http->is_html = is_type(http, "text/html") || begins_as_html(answer);
    if (target->protocol == DOCTOR_GRPC || http->is_html)
        return;
    if (!is_type(http, "application/x-protobuf")) {
        doctor_one_line((const char *)answer->body, answer->length, http->words,
                        sizeof http->words);
        return;
    }
    if (http->status == 200) {
        const struct oteli_partial_success partial = oteli_answer_partial_success(&body);
        answer->otlp->rejected = partial.rejected_spans;
        oteli_answer_printable(partial.message, answer->otlp->words, sizeof answer->otlp->words);
    } else {
        oteli_answer_printable(oteli_answer_status_message(&body), http->words, sizeof http->words);
    }
}

/* Whether the answer is one of OTLP. */
static void conclude(const struct doctor_target *target, struct doctor_http *http,
                     struct doctor_otlp *otlp)
{
    bool fine = http->status == 200;
    if (target->protocol == DOCTOR_GRPC)
        fine = fine && otlp->grpc_status == 0;
    else if (target->protocol == DOCTOR_HTTP_JSON)
        fine = fine && is_type(http, "application/json");
    else
        fine = fine && (is_type(http, "application/x-protobuf") || http->content_type[0] == '\0');
    otlp->result = fine ? DOCTOR_FINE : DOCTOR_FAILED;
}

/* ---- the question --------------------------------------------------------------------- */

static struct curl_slist *append_header(struct curl_slist *list, const otel_otlp_header *header)
{
    char line[8192];
    const int length = snprintf(line, sizeof line, header->value[0] != '\0' ? "%s: %s" : "%s;",
                                header->name, header->value);
    if (length < 0 || (size_t)length >= sizeof line)
        return list;
    struct curl_slist *longer = curl_slist_append(list, line);
    return longer != NULL ? longer : list;
}

/* Those of the exporter, but that the empty body is not compressed. */
static struct curl_slist *make_headers(const struct oteli_options *options)
{
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    for (size_t i = 0; i < options->header_count; i++) {
        const otel_otlp_header *header = &options->headers[i];
        if (strcasecmp(header->name, "Content-Encoding") != 0 &&
            strcasecmp(header->name, "grpc-encoding") != 0)
            list = append_header(list, header);
    }
    return list;
}

static void set_text(CURL *handle, CURLoption option, const char *text)
{
    if (text != NULL)
        curl_easy_setopt(handle, option, text);
}

static void set_tls(CURL *handle, const otel_otlp_options *given)
{
    static const long min[] = {CURL_SSLVERSION_TLSv1_2, 0, CURL_SSLVERSION_TLSv1_2,
                               CURL_SSLVERSION_TLSv1_3};
    static const long max[] = {CURL_SSLVERSION_MAX_DEFAULT, 0, CURL_SSLVERSION_MAX_TLSv1_2,
                               CURL_SSLVERSION_MAX_TLSv1_3};
    curl_easy_setopt(handle, CURLOPT_SSLVERSION, min[given->tls_min] | max[given->tls_max]);
    set_text(handle, CURLOPT_CAINFO, given->ca_file);
    set_text(handle, CURLOPT_SSLCERT, given->certificate_file);
    set_text(handle, CURLOPT_SSLKEY, given->key_file);
    set_text(handle, CURLOPT_SSL_CIPHER_LIST, given->tls_ciphers);
}

static void set_body(CURL *handle, const struct doctor_target *target)
{
    static const char *const bodies[] = {
        [DOCTOR_HTTP_PROTOBUF] = "", [DOCTOR_HTTP_JSON] = "{}", [DOCTOR_GRPC] = "\0\0\0\0"};
    static const long lengths[] = {0, 2, 5};
    long version = CURL_HTTP_VERSION_1_1;
    if (target->protocol == DOCTOR_GRPC)
        version = target->is_tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, version);
    curl_easy_setopt(handle, CURLOPT_POST, 1L);
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE, lengths[target->protocol]);
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, bodies[target->protocol]);
}

/* A handle for a request to `url`; NULL: no memory. */
static CURL *make_handle(const struct doctor_route *route, const struct doctor_target *target,
                         const char *url, struct curl_slist *headers, struct answer *answer)
{
    CURL *handle = curl_easy_init();
    if (handle == NULL)
        return NULL;
    const struct oteli_options *options = &route->options;
    set_text(handle, CURLOPT_URL, url);
    set_text(handle, CURLOPT_UNIX_SOCKET_PATH, options->endpoint.unix_socket);
    set_text(handle, CURLOPT_USERAGENT, options->user_agent);
    set_text(handle, CURLOPT_PROXY, target->proxy[0] != '\0' ? route->proxy : "");
    set_text(handle, CURLOPT_NOPROXY, "");
    set_text(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    set_body(handle, target);
    set_tls(handle, &options->given);
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, (long)target->timeout_ms);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)target->timeout_ms);
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, note_header);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, answer);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, note_body);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, answer);
    return handle;
}

static void note_outcome(CURL *handle, CURLcode code, const char *words, struct doctor_http *http)
{
    long status = 0;
    long proxy_status = 0;
    long version = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(handle, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
    curl_easy_getinfo(handle, CURLINFO_HTTP_VERSION, &version);
    http->proxy_refused = code != CURLE_OK && proxy_status != 0 && proxy_status / 100 != 2;
    http->status = (int)(http->proxy_refused ? proxy_status : status);
    http->result = code == CURLE_OK ? DOCTOR_FINE : DOCTOR_FAILED;
    http->timed_out = code == CURLE_OPERATION_TIMEDOUT;
    snprintf(http->version, sizeof http->version, "%s",
             version == CURL_HTTP_VERSION_2_0   ? "2"
             : version == CURL_HTTP_VERSION_1_0 ? "1.0"
                                                : "1.1");
    if (code != CURLE_OK)
        doctor_one_line(words, strlen(words), http->words, sizeof http->words);
}

/* Ask once; false: no memory. */
static bool ask(const struct doctor_route *route, const char *url, struct doctor_record *record)
{
    struct answer answer = {.http = &record->http, .otlp = &record->otlp};
    struct doctor_tls_watch watch = {.seen = &record->tls};
    struct curl_slist *headers = make_headers(&route->options);
    CURL *handle = make_handle(route, &record->target, url, headers, &answer);
    if (handle != NULL) {
        char words[CURL_ERROR_SIZE] = "";
        curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, words);
        record->tls.has_certificate = route->options.given.certificate_file != NULL;
        if (record->target.is_tls)
            doctor_tls_watch(&watch, handle);
        const CURLcode code = curl_easy_perform(handle);
        if (words[0] == '\0')
            snprintf(words, sizeof words, "%s", curl_easy_strerror(code));
        note_outcome(handle, code, words, &record->http);
        if (record->target.is_tls)
            doctor_tls_conclude(&watch, code, words);
        if (code == CURLE_OK)
            read_body(&answer, &record->target);
        conclude(&record->target, &record->http, &record->otlp);
        curl_easy_cleanup(handle);
    }
    curl_slist_free_all(headers);
    return handle != NULL;
}

/* The status of /v1/traces on the same host, or 0. */
static int ask_elsewhere(const struct doctor_route *route, const struct doctor_record *record)
{
    struct doctor_record other = {.target = record->target, .otlp = {.grpc_status = -1}};
    CURLU *url = curl_url();
    char *text = NULL;
    if (url != NULL &&
        curl_url_set(url, CURLUPART_URL, route->options.endpoint.url, 0) == CURLUE_OK &&
        curl_url_set(url, CURLUPART_PATH, "/v1/traces", 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_URL, &text, 0) == CURLUE_OK)
        ask(route, text, &other);
    curl_free(text);
    curl_url_cleanup(url);
    return other.otlp.result == DOCTOR_FINE ? 200 : other.http.status;
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
           tls->problem == DOCTOR_TLS_OTHER;
}

void doctor_request(const struct doctor_route *route, const struct doctor_door *door,
                    struct doctor_record *record)
{
    const struct doctor_target *target = &record->target;
    struct doctor_http *http = &record->http;
    record->otlp.grpc_status = -1;
    if (!ask(route, route->options.endpoint.url, record))
        return;
    if (is_odd(record))
        http->speech = doctor_speech_ask(door, target, record->tls.result == DOCTOR_FINE);
    if (http->status == 404 && target->protocol != DOCTOR_GRPC &&
        strcmp(target->path, "/v1/traces") != 0)
        http->status_elsewhere = ask_elsewhere(route, record);
}
