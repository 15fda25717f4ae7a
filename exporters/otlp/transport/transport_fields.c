/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/transport_fields.c - what is kept of an answer while it comes, and what
 * is said of it in the end. The exporting thread; a transport owns what is kept. */
#include "common/text/error_text.h"
#include "exporters/otlp/transport/transport_parts.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { HEADERS_MAX = 256 * 1024 };

/* Not with zeros to their ends, which are 9 KiB: each ends with its first NUL. */
static void clear(struct oteli_transport_fields *fields)
{
    fields->retry_after[0] = '\0';
    fields->content_type[0] = '\0';
    fields->grpc_status[0] = '\0';
    fields->grpc_message[0] = '\0';
    fields->grpc_details[0] = '\0';
}

void oteli_transport_forget(struct oteli_transport *transport)
{
    transport->result = CURLE_OUT_OF_MEMORY; /* until it is known */
    transport->was_connected = false;
    transport->body_was_sent = false;
    transport->is_too_long = false;
    transport->is_wrong_version = false;
    transport->lacks_files = false;
    transport->needs_fresh = false;
    transport->body_bytes = 0;
    transport->header_bytes = 0;
    transport->problem[0] = '\0';
    clear(&transport->fields);
}

static size_t take_body(char *bytes, size_t one, size_t length, void *state)
{
    (void)one;
    struct oteli_transport *transport = state;
    if (transport->body_bytes < transport->body_size) {
        const size_t room = transport->body_size - transport->body_bytes;
        memcpy(transport->body + transport->body_bytes, bytes, length < room ? length : room);
    }
    transport->body_bytes += length;
    if (transport->body_bytes <= transport->options.max_response_bytes)
        return length;
    transport->is_too_long = true;
    return length + 1; /* anything but length breaks the transfer off */
}

/* Keep the value of a line with this name; true: it has that name. A value that is longer than its
 * text counts as none, unless its beginning is of use, too. */
static bool take_field(char *text, size_t size, const char *name, bool is_cut, const char *line,
                       size_t length)
{
    const size_t name_length = strlen(name);
    if (length <= name_length || strncasecmp(line, name, name_length) != 0 ||
        line[name_length] != ':')
        return false;
    const char *value = line + name_length + 1;
    length -= name_length + 1;
    for (; length != 0 && (*value == ' ' || *value == '\t'); value++)
        length--;
    while (length != 0 && strchr(" \t\r\n", value[length - 1]) != NULL)
        length--;
    if (length >= size)
        length = is_cut ? size - 1 : 0;
    memcpy(text, value, length);
    text[length] = '\0';
    return true;
}

/* Of header lines and trailers alike. */
static void take_fields(struct oteli_transport_fields *fields, const char *line, size_t length)
{
#define TAKE(member, name, is_cut) \
    take_field(fields->member, sizeof fields->member, name, is_cut, line, length)
    (void)(TAKE(retry_after, "Retry-After", false) || TAKE(content_type, "Content-Type", false) ||
           TAKE(grpc_status, "grpc-status", false) || TAKE(grpc_message, "grpc-message", true) ||
           TAKE(grpc_details, "grpc-status-details-bin", false));
#undef TAKE
}

static size_t take_line(char *line, size_t one, size_t length, void *state)
{
    (void)one;
    struct oteli_transport *transport = state;
    if (length > 5 && memcmp(line, "HTTP/", 5) == 0) {
        clear(&transport->fields);
        transport->is_wrong_version = transport->options.is_http2 && line[5] != '2';
    } else {
        take_fields(&transport->fields, line, length);
    }
    transport->header_bytes += length;
    transport->is_too_long |= transport->header_bytes > HEADERS_MAX;
    return transport->is_too_long || transport->is_wrong_version ? length + 1 : length;
}

/* curl may repeat a request by itself when a kept connection turns out to be dead, and
 * then counts from zero; what has been sent once stays sent. */
static int watch_progress(void *state, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                          curl_off_t up)
{
    (void)down_total;
    (void)down;
    (void)up_total;
    struct oteli_transport *transport = state;
    if (up > 0)
        transport->body_was_sent = true;
    return 0;
}

#define SET(option, value) OTELI_CURL_SET(easy, option, value)

static int tell(CURL *easy, curl_infotype type, char *bytes, size_t length, void *state)
{
    (void)easy;
    const struct oteli_observer *observer =
        ((const struct oteli_transport *)state)->options.observer;
    if (type == CURLINFO_TEXT)
        observer->note(observer->state, OTELI_OBSERVED_TEXT, bytes, length);
    else if (type == CURLINFO_HEADER_IN)
        observer->note(observer->state, OTELI_OBSERVED_LINE, bytes, length);
    return 0;
}

/* An answer that is compressed is undone piece by piece, and counted as what comes out. */
bool oteli_transport_listen(struct oteli_transport *transport, CURL *easy)
{
    return SET(CURLOPT_ERRORBUFFER, transport->problem) && SET(CURLOPT_ACCEPT_ENCODING, "gzip") &&
           SET(CURLOPT_WRITEFUNCTION, take_body) && SET(CURLOPT_WRITEDATA, transport) &&
           SET(CURLOPT_HEADERFUNCTION, take_line) && SET(CURLOPT_HEADERDATA, transport) &&
           SET(CURLOPT_NOPROGRESS, 0L) && SET(CURLOPT_XFERINFOFUNCTION, watch_progress) &&
           SET(CURLOPT_XFERINFODATA, transport) &&
           (transport->options.observer == NULL ||
            (SET(CURLOPT_DEBUGFUNCTION, tell) && SET(CURLOPT_DEBUGDATA, transport) &&
             SET(CURLOPT_VERBOSE, 1L)));
}

/* Why there is no answer, in words. */
static const char *problem_of(const struct oteli_transport *transport)
{
    if (transport->is_wrong_version)
        return "the receiver answers in HTTP/1.1, where gRPC needs HTTP/2";
    if (transport->options.is_http2 && !transport->had_response && transport->header_bytes == 0 &&
        (transport->result == CURLE_HTTP2 || transport->result == CURLE_GOT_NOTHING))
        return "the receiver ends the connection, or does not speak HTTP/2, which gRPC needs";
    return transport->problem[0] != '\0' ? transport->problem
                                         : curl_easy_strerror(transport->result);
}

/* A server that wants a certificate of the client, and does not like what it got, says so only
 * after the client has begun to send: nothing of that was read. */
static bool is_refused_certificate(const struct oteli_transport *transport)
{
    static const char *const alerts[] = {
        "alert certificate required",    "alert bad certificate",     "alert unknown ca",
        "alert certificate expired",     "alert certificate unknown", "alert certificate revoked",
        "alert unsupported certificate",
    };
    for (size_t i = 0; transport->is_tls && i < sizeof alerts / sizeof *alerts; i++) {
        if (strstr(transport->problem, alerts[i]) != NULL)
            return true;
    }
    return false;
}

/* What is the same for every retry, because it is wrong here and not at the receiver. Where
 * TLS has worked before, it is being changed on one side or the other, and may work again. */
static bool is_hopeless(const struct oteli_transport *transport, long connect_status)
{
    switch (transport->result) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
        return true;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
        return !transport->had_response;
    default:
        return transport->is_wrong_version || transport->lacks_files ||
               oteli_transport_is_over(transport) || connect_status == 403 || connect_status == 407;
    }
}

/* What curl knows of a request, whatever its end. */
struct facts {
    long status;
    long connect_status; /* of a proxy's answer to CONNECT */
    long os_error;
    curl_off_t sent;
    curl_off_t looked_up;
    curl_off_t began; /* to send; both: when, 0: not yet */
};

static struct facts learn(const struct oteli_transport *transport)
{
    struct facts facts = {0};
    CURL *easy = transport->easy;
    if (easy == NULL || transport->result == CURLE_OUT_OF_MEMORY)
        return facts;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &facts.status);
    curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &facts.connect_status);
    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &facts.os_error);
    curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &facts.sent);
    curl_easy_getinfo(easy, CURLINFO_NAMELOOKUP_TIME_T, &facts.looked_up);
    curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &facts.began);
    return facts;
}

/* What went wrong has to do with TLS. */
static bool is_tls_result(CURLcode result)
{
    return result == CURLE_SSL_CONNECT_ERROR || result == CURLE_SSL_CERTPROBLEM ||
           result == CURLE_SSL_CIPHER || result == CURLE_PEER_FAILED_VERIFICATION ||
           result == CURLE_SSL_CACERT_BADFILE;
}

static enum oteli_transport_step step_of(const struct oteli_transport *transport,
                                         const struct facts *facts)
{
    if (is_tls_result(transport->result) || transport->lacks_files ||
        is_refused_certificate(transport))
        return OTELI_STEP_TLS;
    if (transport->result == CURLE_COULDNT_RESOLVE_HOST ||
        transport->result == CURLE_COULDNT_RESOLVE_PROXY)
        return OTELI_STEP_NAME;
    if (facts->connect_status >= 300)
        return OTELI_STEP_PROXY;
    if (facts->began != 0)
        return transport->options.gets || (size_t)facts->sent >= transport->length
                   ? OTELI_STEP_ANSWER
                   : OTELI_STEP_SEND;
    if (transport->was_connected && transport->result != CURLE_COULDNT_CONNECT) {
        const bool is_at_proxy =
            transport->options.proxy[0] != '\0' && facts->connect_status / 100 != 2;
        return is_at_proxy         ? OTELI_STEP_PROXY
               : transport->is_tls ? OTELI_STEP_TLS
                                   : OTELI_STEP_SEND;
    }
    return facts->looked_up != 0 || transport->result == CURLE_COULDNT_CONNECT ? OTELI_STEP_CONNECT
                                                                               : OTELI_STEP_NAME;
}

/* Below 200 there is more to come. A gRPC answer of 200 says nothing before its trailers. */
static bool is_answered(const struct oteli_transport *transport, long status)
{
    if (status < 200 || transport->is_wrong_version)
        return false;
    return !transport->options.is_http2 || status != 200 || transport->result == CURLE_OK ||
           transport->is_too_long || transport->fields.grpc_status[0] != '\0';
}

static const char *kept_text(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

void oteli_transport_fill(struct oteli_transport *transport,
                          struct oteli_transport_response *answer)
{
    const struct oteli_transport_fields *fields = &transport->fields;
    const struct facts facts = learn(transport);
    struct oteli_error_text text;
    /* curl names the host of the URL, which has no part in it. */
    if (transport->options.unix_socket != NULL && transport->result == CURLE_COULDNT_CONNECT)
        snprintf(transport->problem, sizeof transport->problem, "no connection to %s: %s",
                 transport->options.unix_socket,
                 facts.os_error != 0 ? oteli_error_text((int)facts.os_error, &text) : "it failed");
    const bool has_status = is_answered(transport, facts.status);
    const bool was_read = !transport->is_wrong_version && !is_refused_certificate(transport);
    const size_t kept =
        transport->body_bytes < transport->body_size ? transport->body_bytes : transport->body_size;
    transport->had_response |= has_status;
    *answer = (struct oteli_transport_response){
        .status = has_status ? (int)facts.status : 0,
        .body_was_sent = !has_status && was_read && (transport->body_was_sent || facts.sent > 0),
        .os_error = (int)facts.os_error,
        .connection_refused = !has_status && transport->result == CURLE_COULDNT_CONNECT,
        .is_hopeless = !has_status && is_hopeless(transport, facts.connect_status),
        .is_too_long = transport->is_too_long,
        .is_tls_file = transport->lacks_files || transport->result == CURLE_SSL_CERTPROBLEM ||
                       transport->result == CURLE_SSL_CACERT_BADFILE,
        .proxy_status = (int)facts.connect_status,
        .body = {transport->body, kept,
                 transport->result != CURLE_OK || kept < transport->body_bytes},
        .retry_after = kept_text(fields->retry_after),
        .content_type = kept_text(fields->content_type),
        .grpc_status = kept_text(fields->grpc_status),
        .grpc_message = kept_text(fields->grpc_message),
        .grpc_details = kept_text(fields->grpc_details),
        .problem = problem_of(transport),
        .step = step_of(transport, &facts),
    };
}
