/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport.c - the door to libcurl: one easy handle in one multi handle,
 * driven by whoever exports. Owns both, its sockets, and the kept part of an answer.
 *
 * curl_global_init is called once in the process and curl_global_cleanup never: at exit
 * other threads, other libraries and a resolver thread of curl's own may still be inside,
 * and all that it would give back the kernel takes anyway. For the same reasons libcurl
 * stays loaded when we are not. */
#include "exporters/otlp/transport.h"

#include "common/atomic.h"
#include "common/log.h"
#include "common/pin.h"
#include "exporters/otlp/ending.h"
#include "exporters/otlp/socket.h"
#include "exporters/otlp/watch.h"

#include <curl/curl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BODY_MAX = 4 * 1024 * 1024,
    BODY_KEPT = 64 * 1024,
    GOT_BODY_KEPT = 1024 * 1024,
    HEADERS_MAX = 256 * 1024,
    UPLOAD_BYTES = 128 * 1024, /* handed to the kernel at once: a usual batch */
    PAUSE_MS = 20              /* between looks when polling itself fails */
};

struct oteli_transport {
    CURL *easy;
    CURLM *multi; /* release by open_handles, acquire by wake on any thread */
    struct curl_slist *headers;
    char *url;
    char *user_agent;
    char *proxy;
    char *no_proxy;
    char *unix_socket;
    struct curl_slist *request_headers; /* NULL: `headers` do */
    size_t max_response_bytes;
    uint32_t process;     /* that opened the handles; written before `multi` */
    int waker[2];         /* a byte sent to [1] ends a wait; [0] is -1 when there is none */
    uint32_t waker_fd;    /* waker[1] for other threads, and what tells it from a later */
    uint64_t waker_inode; /* descriptor of that number; written before `multi` */
    bool is_tls;
    bool gets;
    bool is_http2;
    bool is_running;
    struct oteli_watch watch;
    struct oteli_sockets sockets;

    /* Of the request that runs or ran last. */
    CURLcode result;
    bool body_was_sent;
    bool is_too_long;
    size_t body_bytes; /* of the answer, kept or not */
    size_t header_bytes;
    char retry_after[64]; /* "": no such header */
    char content_type[128];
    char grpc_status[16];
    char grpc_message[1024];
    char grpc_details[8 * 1024];
    char problem[CURL_ERROR_SIZE];
    size_t body_size;
    uint8_t body[]; /* what is kept of it */
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static bool curl_works;

static void start_curl(void)
{
    curl_works = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    if (curl_works) {
        oteli_tls_watch_exit();
        (void)oteli_pin((oteli_code *)curl_easy_init);
    }
    if (curl_works && !(curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_ASYNCHDNS))
        OTELI_LOG(OTEL_LOG_WARN, "this libcurl looks up host names synchronously: a slow name "
                                 "server can hold up the exporter beyond its timeouts");
}

static curl_socket_t open_socket(void *state, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    struct oteli_transport *transport = state;
    const int fd = oteli_sockets_open(&transport->sockets, address->family, address->socktype,
                                      address->protocol);
    return fd >= 0 ? fd : CURL_SOCKET_BAD;
}

static int close_socket(void *state, curl_socket_t fd)
{
    struct oteli_transport *transport = state;
    return oteli_sockets_close(&transport->sockets, fd);
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
    if (transport->body_bytes <= transport->max_response_bytes)
        return length;
    transport->is_too_long = true;
    return length + 1; /* anything but length breaks the transfer off */
}

/* Field values that are kept, each in a text of a fixed size; a longer one counts as none. */
struct field {
    const char *name; /* with the colon */
    size_t offset;
    size_t size;
};
#define FIELD(text, member)                                 \
    {                                                       \
        text ":", offsetof(struct oteli_transport, member), \
            sizeof((struct oteli_transport *)0)->member     \
    }
static const struct field fields[] = {
    FIELD("Retry-After", retry_after),
    FIELD("Content-Type", content_type),
    FIELD("grpc-status", grpc_status),
    FIELD("grpc-message", grpc_message),
    FIELD("grpc-status-details-bin", grpc_details),
};

static char *field_of(struct oteli_transport *transport, const struct field *field)
{
    return (char *)transport + field->offset;
}

static void forget_fields(struct oteli_transport *transport)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        *field_of(transport, &fields[i]) = '\0';
}

static void take_field(struct oteli_transport *transport, const struct field *field,
                       const char *value, size_t length)
{
    while (length != 0 && (*value == ' ' || *value == '\t')) {
        value++;
        length--;
    }
    while (length != 0 && strchr(" \t\r\n", value[length - 1]) != NULL)
        length--;
    if (length >= field->size)
        length = 0;
    char *kept = field_of(transport, field);
    memcpy(kept, value, length);
    kept[length] = '\0';
}

static void take_line(struct oteli_transport *transport, const char *line, size_t length)
{
    if (length > 5 && memcmp(line, "HTTP/", 5) == 0)
        forget_fields(transport);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const size_t name = strlen(fields[i].name);
        if (length >= name && strncasecmp(line, fields[i].name, name) == 0)
            take_field(transport, &fields[i], line + name, length - name);
    }
}

static size_t take_header(char *line, size_t one, size_t length, void *state)
{
    (void)one;
    struct oteli_transport *transport = state;
    take_line(transport, line, length);
    transport->header_bytes += length;
    if (transport->header_bytes <= HEADERS_MAX)
        return length;
    transport->is_too_long = true;
    return length + 1;
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

#define SET(option, value) (curl_easy_setopt(easy, option, value) == CURLE_OK)

/* Proxy and no-proxy are always set, if only to "": otherwise curl asks the environment,
 * on the exporter thread. Its CA paths are compiled in, so OpenSSL does not ask either. */
static bool configure(struct oteli_transport *transport, CURL *easy)
{
    return SET(CURLOPT_URL, transport->url) &&
#if LIBCURL_VERSION_NUM >= 0x075500
           SET(CURLOPT_PROTOCOLS_STR, "http,https") &&
#else
           SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS)) &&
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
           /* Giving up must not wait for a name server that does not answer. */
           SET(CURLOPT_QUICK_EXIT, 1L) &&
#endif
           SET(CURLOPT_HTTP_VERSION, transport->is_http2 ? (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
                                                         : (long)CURL_HTTP_VERSION_1_1) &&
           (transport->unix_socket == NULL ||
            SET(CURLOPT_UNIX_SOCKET_PATH, transport->unix_socket)) &&
           SET(CURLOPT_FOLLOWLOCATION, 0L) && SET(CURLOPT_NOSIGNAL, 1L) &&
           (transport->gets ? SET(CURLOPT_HTTPGET, 1L) : SET(CURLOPT_POST, 1L)) &&
           SET(CURLOPT_USERAGENT, transport->user_agent) && SET(CURLOPT_PROXY, transport->proxy) &&
           SET(CURLOPT_NOPROXY, transport->no_proxy) && SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) &&
           SET(CURLOPT_TCP_KEEPALIVE, 1L) && SET(CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BYTES) &&
           SET(CURLOPT_ERRORBUFFER, transport->problem) && SET(CURLOPT_WRITEFUNCTION, take_body) &&
           SET(CURLOPT_WRITEDATA, transport) && SET(CURLOPT_HEADERFUNCTION, take_header) &&
           SET(CURLOPT_HEADERDATA, transport) && SET(CURLOPT_NOPROGRESS, 0L) &&
           SET(CURLOPT_XFERINFOFUNCTION, watch_progress) && SET(CURLOPT_XFERINFODATA, transport) &&
           SET(CURLOPT_OPENSOCKETFUNCTION, open_socket) && SET(CURLOPT_OPENSOCKETDATA, transport) &&
           SET(CURLOPT_CLOSESOCKETFUNCTION, close_socket) &&
           SET(CURLOPT_CLOSESOCKETDATA, transport);
}

/* Make our own waker, and look after the one that curl makes in any case. Ours is used
 * because curl would go on to read from its descriptor, whoever that belongs to by then. */
static void make_waker(struct oteli_transport *transport, CURLM *multi)
{
    struct oteli_pair_search search;
    oteli_pair_search_begin(&search);
    if (curl_multi_wakeup(multi) == CURLM_OK) {
        oteli_pair_search_end(&search, &transport->sockets);
        (void)curl_multi_poll(multi, NULL, 0, 0, NULL); /* which reads what woke it */
    }
    oteli_sockets_open_pair(&transport->sockets, transport->waker);
    oteli_store_relaxed_32(&transport->waker_fd, (uint32_t)transport->waker[1]);
    oteli_store_relaxed_64(&transport->waker_inode, oteli_socket_inode(transport->waker[1]));
}

static bool open_handles(struct oteli_transport *transport)
{
    oteli_store_relaxed_32(&transport->process, (uint32_t)getpid());
    transport->easy = curl_easy_init();
    CURLM *multi = curl_multi_init();
    if (transport->easy == NULL || multi == NULL || !configure(transport, transport->easy) ||
        curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 1L) != CURLM_OK) {
        curl_easy_cleanup(transport->easy);
        transport->easy = NULL;
        if (multi != NULL)
            curl_multi_cleanup(multi);
        return false;
    }
    make_waker(transport, multi);
    oteli_store_release_any(&transport->multi, multi);
    return true;
}

static void close_watch(const struct oteli_transport *transport, struct oteli_watch *watch)
{
    if (oteli_socket_is((int)transport->waker_fd, transport->waker_inode))
        oteli_watch_close(watch);
    oteli_watch_init(watch);
}

/* What abandon_handles left behind, so that leak checkers see that it was on purpose. */
enum { LEFT_BEHIND = 32 };
static void *left_behind[LEFT_BEHIND][2];
static uint32_t left_behind_count;

/* Drop the handles without letting curl do anything with their descriptors, which belong
 * to the parent process or, by now, to somebody else. Their memory stays; this happens
 * once a fork, or when a program closes all descriptors that it does not know. */
static void abandon_handles(struct oteli_transport *transport)
{
    if (transport->easy != NULL) {
        const uint32_t place = oteli_add_full_32(&left_behind_count, 1) % LEFT_BEHIND;
        oteli_store_release_any(&left_behind[place][0], transport->easy);
        oteli_store_release_any(&left_behind[place][1], transport->multi);
    }
    close_watch(transport, &transport->watch);
    oteli_sockets_close_all(&transport->sockets);
    transport->easy = NULL;
    transport->is_running = false;
    oteli_store_release_any(&transport->multi, NULL);
}

static bool handles_are_ours(const struct oteli_transport *transport)
{
    return transport->easy != NULL && transport->process == (uint32_t)getpid() &&
           oteli_sockets_are_ours(&transport->sockets) &&
           (transport->watch.fd == -1 || oteli_watch_is_ours(&transport->watch));
}

/* Call curl with the handles from here to leave_curl. False: they are not to be touched. */
static bool enter_curl(const struct oteli_transport *transport)
{
    if (!oteli_tls_enter(transport->is_tls))
        return false;
    if (handles_are_ours(transport))
        return true;
    oteli_tls_leave(transport->is_tls);
    return false;
}

static void leave_curl(const struct oteli_transport *transport)
{
    oteli_tls_leave(transport->is_tls);
}

static bool is_over(const struct oteli_transport *transport)
{
    return transport->is_tls && oteli_tls_is_over();
}

static void say_why_abandoned(struct oteli_transport *transport)
{
    snprintf(transport->problem, sizeof transport->problem, "%s",
             is_over(transport) ? "the process is ending, and with it TLS"
                                : "the program has closed the connection");
}

static bool append_header(struct curl_slist **list, const char *name, const char *value)
{
    const size_t size = strlen(name) + strlen(value) + sizeof ": ";
    char *line = malloc(size);
    if (line == NULL)
        return false;
    /* "Name;" is how curl is told to send a header without a value. */
    snprintf(line, size, "%s%s%s", name, *value != '\0' ? ": " : ";", value);
    struct curl_slist *longer = curl_slist_append(*list, line);
    free(line);
    if (longer == NULL)
        return false;
    *list = longer;
    return true;
}

static bool is_among(const char *line, const otel_otlp_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(headers[i].name);
        if (strncasecmp(line, headers[i].name, length) == 0 &&
            (line[length] == ':' || line[length] == ';'))
            return true;
    }
    return false;
}

static bool append_headers(struct curl_slist **list, const otel_otlp_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!append_header(list, headers[i].name, headers[i].value))
            return false;
    }
    return true;
}

/* The constant ones, but for those that are among `headers`. */
static bool copy_headers(struct curl_slist **list, const struct curl_slist *from,
                         const otel_otlp_header *headers, size_t count)
{
    for (; from != NULL; from = from->next) {
        if (is_among(from->data, headers, count))
            continue;
        struct curl_slist *longer = curl_slist_append(*list, from->data);
        if (longer == NULL)
            return false;
        *list = longer;
    }
    return true;
}

static bool make_headers(struct oteli_transport *transport,
                         const struct oteli_transport_options *options)
{
    /* Without a value it is left out: large bodies go out at once. */
    transport->headers = curl_slist_append(NULL, "Expect:");
    return transport->headers != NULL &&
           append_headers(&transport->headers, options->headers, options->header_count);
}

static bool make_request_headers(struct oteli_transport *transport,
                                 const struct oteli_transport_request *request)
{
    curl_slist_free_all(transport->request_headers);
    transport->request_headers = NULL;
    return request->header_count == 0 ||
           (copy_headers(&transport->request_headers, transport->headers, request->headers,
                         request->header_count) &&
            append_headers(&transport->request_headers, request->headers, request->header_count));
}

/* Without headers, and without handles. */
static struct oteli_transport *new_closed(const struct oteli_transport_options *options)
{
    const size_t body_size = options->gets ? GOT_BODY_KEPT : BODY_KEPT;
    struct oteli_transport *transport = calloc(1, sizeof *transport + body_size);
    if (transport == NULL)
        return NULL;
    transport->body_size = body_size;
    transport->max_response_bytes =
        options->max_response_bytes != 0 ? options->max_response_bytes : BODY_MAX;
    transport->gets = options->gets;
    transport->is_http2 = options->is_http2;
    oteli_sockets_init(&transport->sockets);
    oteli_watch_init(&transport->watch);
    transport->waker[0] = transport->waker[1] = -1;
    transport->url = strdup(options->url);
    transport->user_agent = strdup(options->user_agent);
    transport->proxy = strdup(options->proxy);
    transport->no_proxy = strdup(options->no_proxy);
    if (options->unix_socket != NULL)
        transport->unix_socket = strdup(options->unix_socket);
    transport->is_tls = strncasecmp(options->url, "https:", 6) == 0 ||
                        strncasecmp(options->proxy, "https:", 6) == 0;
    if (transport->url == NULL || transport->user_agent == NULL || transport->proxy == NULL ||
        transport->no_proxy == NULL ||
        (options->unix_socket != NULL && transport->unix_socket == NULL)) {
        oteli_transport_free(transport);
        return NULL;
    }
    return transport;
}

struct oteli_transport *oteli_transport_new(const struct oteli_transport_options *options)
{
    if (pthread_once(&curl_once, start_curl) != 0 || !curl_works)
        return NULL;
    struct oteli_transport *transport = new_closed(options);
    if (transport != NULL && (!make_headers(transport, options) || !open_handles(transport))) {
        oteli_transport_free(transport);
        return NULL;
    }
    return transport;
}

/* Close this process's copies of a parent's descriptors: the parent has its own, and when it
 * dies its connection should not stay. What it was just opening or closing is not found, or
 * not taken for its own, and stays open here. */
static void close_copies(const struct oteli_transport *parents)
{
    if (parents->process == (uint32_t)getpid())
        return;
    struct oteli_watch watch = parents->watch;
    struct oteli_sockets sockets = parents->sockets;
    close_watch(parents, &watch);
    oteli_sockets_close_all(&sockets);
}

struct oteli_transport *oteli_transport_renew(const struct oteli_transport *parents)
{
    close_copies(parents);
    const struct oteli_transport_options options = {
        .url = parents->url,
        .unix_socket = parents->unix_socket,
        .user_agent = parents->user_agent,
        .proxy = parents->proxy,
        .no_proxy = parents->no_proxy,
        .max_response_bytes = parents->max_response_bytes,
        .gets = parents->gets,
        .is_http2 = parents->is_http2,
    };
    struct oteli_transport *transport = new_closed(&options);
    if (transport != NULL && !copy_headers(&transport->headers, parents->headers, NULL, 0)) {
        oteli_transport_free(transport);
        return NULL;
    }
    return transport;
}

void oteli_transport_free(struct oteli_transport *transport)
{
    if (transport == NULL)
        return;
    if (enter_curl(transport)) {
        const struct oteli_sigpipe_guard guard = oteli_sigpipe_guard_begin(transport->is_tls);
        if (transport->is_running)
            curl_multi_remove_handle(transport->multi, transport->easy);
        curl_easy_cleanup(transport->easy);
        curl_multi_cleanup(transport->multi);
        close_watch(transport, &transport->watch);
        oteli_sockets_close_all(&transport->sockets);
        oteli_sigpipe_guard_end(&guard);
        leave_curl(transport);
    } else {
        abandon_handles(transport);
    }
    curl_slist_free_all(transport->headers);
    curl_slist_free_all(transport->request_headers);
    free(transport->url);
    free(transport->user_agent);
    free(transport->proxy);
    free(transport->no_proxy);
    free(transport->unix_socket);
    free(transport);
}

/* Let curl do what can be done at once, and say which sockets it then waits for if there is
 * a descriptor to watch them. The function that does both is called deprecated because it
 * looks at every transfer; here there is only one, and unlike with curl_multi_socket_action
 * the descriptor may be asked for in the middle of it. */
static CURLMcode perform(struct oteli_transport *transport, int *running)
{
    if (transport->watch.fd == -1)
        return curl_multi_perform(transport->multi, running);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return curl_multi_socket_all(transport->multi, running);
#pragma GCC diagnostic pop
}

/* Go on with the request without waiting, inside curl. Returns whether it is through. */
static bool perform_once(struct oteli_transport *transport)
{
    if (!transport->is_running)
        return true;
    const struct oteli_sigpipe_guard guard = oteli_sigpipe_guard_begin(transport->is_tls);
    int running = 0;
    int left;
    const CURLMcode code = perform(transport, &running);
    const CURLMsg *message = curl_multi_info_read(transport->multi, &left);
    bool is_through = true;
    if (message != NULL && message->msg == CURLMSG_DONE)
        transport->result = message->data.result;
    else if (code != CURLM_OK || running == 0)
        transport->result = CURLE_OUT_OF_MEMORY;
    else
        is_through = false;
    if (is_through) {
        curl_multi_remove_handle(transport->multi, transport->easy);
        transport->is_running = false;
    }
    /* Of several attempts to connect, those that lost are closed without telling us. */
    if ((is_through && transport->result != CURLE_OK) ||
        oteli_sockets_of_curl(&transport->sockets) > 1)
        oteli_sockets_forget_closed(&transport->sockets);
    oteli_sigpipe_guard_end(&guard);
    return is_through;
}

/* The same after a while, in which the program may have closed our descriptors. */
static bool drive(struct oteli_transport *transport)
{
    if (!transport->is_running)
        return true;
    if (!enter_curl(transport)) {
        abandon_handles(transport);
        transport->result = CURLE_SEND_ERROR;
        say_why_abandoned(transport);
        return true;
    }
    const bool is_through = perform_once(transport);
    leave_curl(transport);
    return is_through;
}

void oteli_transport_start(struct oteli_transport *transport,
                           const struct oteli_transport_request *request)
{
    transport->result = CURLE_OUT_OF_MEMORY;
    transport->body_was_sent = false;
    transport->is_too_long = false;
    transport->body_bytes = 0;
    transport->header_bytes = 0;
    forget_fields(transport);
    transport->problem[0] = '\0';
    transport->watch.is_blind = false;
    if (!enter_curl(transport)) {
        abandon_handles(transport);
        say_why_abandoned(transport);
        if (is_over(transport) || !open_handles(transport) || !enter_curl(transport))
            return;
        transport->problem[0] = '\0';
    } else if (transport->is_running) {
        curl_multi_remove_handle(transport->multi, transport->easy);
        oteli_sockets_forget_closed(&transport->sockets);
    }
    CURL *easy = transport->easy;
    const bool has_body =
        transport->gets || (SET(CURLOPT_POSTFIELDS, request->body) &&
                            SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->length));
    transport->is_running =
        has_body && make_request_headers(transport, request) &&
        SET(CURLOPT_HTTPHEADER,
            transport->request_headers != NULL ? transport->request_headers : transport->headers) &&
        SET(CURLOPT_CONNECTTIMEOUT_MS, (long)request->connect_ms) &&
        SET(CURLOPT_FRESH_CONNECT, (long)request->fresh) &&
        curl_multi_add_handle(transport->multi, easy) == CURLM_OK;
    (void)perform_once(transport);
    leave_curl(transport);
}

/* What is the same for every retry, because it is wrong here and not at the receiver. */
static bool is_hopeless(CURLcode result)
{
    switch (result) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
        return true;
    default:
        return false;
    }
}

static const char *kept_text(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

static void fill_answer(struct oteli_transport *transport, struct oteli_transport_answer *answer)
{
    long status = 0;
    curl_off_t sent = 0;
    if (transport->easy != NULL && transport->result != CURLE_OUT_OF_MEMORY) {
        curl_easy_getinfo(transport->easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(transport->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    }
    const bool is_answered = status >= 200; /* below, there is more to come */
    const size_t kept =
        transport->body_bytes < transport->body_size ? transport->body_bytes : transport->body_size;
    *answer = (struct oteli_transport_answer){
        .status = is_answered ? (int)status : 0,
        .body_was_sent = !is_answered && (transport->body_was_sent || sent > 0),
        .is_hopeless = !is_answered && (is_hopeless(transport->result) || is_over(transport)),
        .is_too_long = transport->is_too_long,
        .body = {transport->body, kept,
                 transport->result != CURLE_OK || kept < transport->body_bytes},
        .retry_after = kept_text(transport->retry_after),
        .content_type = kept_text(transport->content_type),
        .grpc_status = kept_text(transport->grpc_status),
        .grpc_message = kept_text(transport->grpc_message),
        .grpc_details = kept_text(transport->grpc_details),
        .problem = transport->problem[0] != '\0' ? transport->problem
                                                 : curl_easy_strerror(transport->result),
    };
}

static void forget_wakes(const struct oteli_transport *transport)
{
    char woken[64];
    if (handles_are_ours(transport))
        (void)recv(transport->waker[0], woken, sizeof woken, MSG_DONTWAIT);
}

static void sleep_on(struct oteli_transport *transport, int timeout_ms)
{
    struct curl_waitfd waker = {.fd = transport->waker[0], .events = CURL_WAIT_POLLIN};
    if (transport->multi != NULL && waker.fd != -1 &&
        curl_multi_wait(transport->multi, &waker, 1, timeout_ms, NULL) == CURLM_OK) {
        if (waker.revents != 0)
            forget_wakes(transport);
        return;
    }
    (void)poll(NULL, 0, timeout_ms < PAUSE_MS ? timeout_ms : PAUSE_MS);
}

bool oteli_transport_poll(struct oteli_transport *transport, int timeout_ms,
                          struct oteli_transport_answer *answer)
{
    if (timeout_ms == 0 && transport->watch.fd != -1)
        forget_wakes(transport);
    if (timeout_ms > 0 && transport->is_running) /* curl has done before what it could */
        sleep_on(transport, timeout_ms);
    const bool is_through = drive(transport);
    if (is_through)
        fill_answer(transport, answer);
    return is_through;
}

void oteli_transport_cancel(struct oteli_transport *transport,
                            struct oteli_transport_answer *answer)
{
    if (!drive(transport)) {
        transport->result = CURLE_OPERATION_TIMEDOUT;
        fill_answer(transport, answer);
        if (enter_curl(transport)) {
            const struct oteli_sigpipe_guard guard = oteli_sigpipe_guard_begin(transport->is_tls);
            curl_multi_remove_handle(transport->multi, transport->easy);
            oteli_sockets_forget_closed(&transport->sockets);
            oteli_sigpipe_guard_end(&guard);
            leave_curl(transport);
        } else {
            abandon_handles(transport);
        }
        transport->is_running = false;
        answer->problem = answer->body_was_sent ? "no answer in time" : "no connection in time";
    } else {
        fill_answer(transport, answer);
    }
}

void oteli_transport_sleep(struct oteli_transport *transport, int timeout_ms)
{
    if (handles_are_ours(transport))
        sleep_on(transport, timeout_ms);
    else
        (void)poll(NULL, 0, timeout_ms < PAUSE_MS ? timeout_ms : PAUSE_MS);
}

static int note_socket(CURL *easy, curl_socket_t fd, int what, void *state, void *of_socket)
{
    (void)easy;
    (void)of_socket;
    struct oteli_transport *transport = state;
    oteli_watch_socket(&transport->watch, fd, what == CURL_POLL_IN || what == CURL_POLL_INOUT,
                       what == CURL_POLL_OUT || what == CURL_POLL_INOUT);
    return 0;
}

static void open_watch(struct oteli_transport *transport)
{
    if (oteli_watch_open(&transport->watch, transport->waker) &&
        (curl_multi_setopt(transport->multi, CURLMOPT_SOCKETDATA, transport) != CURLM_OK ||
         curl_multi_setopt(transport->multi, CURLMOPT_SOCKETFUNCTION, note_socket) != CURLM_OK))
        oteli_watch_close(&transport->watch); /* libcurl was built without */
}

int oteli_transport_descriptor(struct oteli_transport *transport, bool is_pending)
{
    if (handles_are_ours(transport) && transport->watch.fd == -1) {
        open_watch(transport);
        if (transport->watch.fd != -1 && transport->is_running)
            (void)drive(transport);
    }
    if (!handles_are_ours(transport))
        return -1;
    oteli_watch_arm(&transport->watch, is_pending);
    return transport->watch.fd;
}

int oteli_transport_timeout_ms(struct oteli_transport *transport)
{
    long timeout_ms = -1;
    if (!transport->is_running || !handles_are_ours(transport))
        return 0;
    (void)curl_multi_timeout(transport->multi, &timeout_ms);
    if (transport->watch.is_blind && (timeout_ms < 0 || timeout_ms > PAUSE_MS))
        timeout_ms = PAUSE_MS;
    return timeout_ms < INT_MAX ? (int)timeout_ms : INT_MAX;
}

void oteli_transport_rest(struct oteli_transport *transport)
{
    if (transport->watch.is_armed && handles_are_ours(transport))
        oteli_watch_arm(&transport->watch, false);
}

void oteli_transport_wake(struct oteli_transport *transport)
{
    if (oteli_load_acquire_any(&transport->multi) == NULL ||
        oteli_load_relaxed_32(&transport->process) != (uint32_t)getpid())
        return;
    const int fd = (int)oteli_load_relaxed_32(&transport->waker_fd);
    if (oteli_socket_is(fd, oteli_load_relaxed_64(&transport->waker_inode)))
        (void)send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool curl_has(int feature)
{
    return (curl_version_info(CURLVERSION_NOW)->features & feature) != 0;
}

bool oteli_transport_has_http2(void)
{
    return curl_has(CURL_VERSION_HTTP2);
}

bool oteli_transport_has_tls(void)
{
    return curl_has(CURL_VERSION_SSL);
}

bool oteli_transport_url_is_valid(const char *url)
{
    const size_t scheme = strncasecmp(url, "http://", 7) == 0    ? 7
                          : strncasecmp(url, "https://", 8) == 0 ? 8
                                                                 : 0;
    /* curl takes a third slash for a slip of the pen; here it is a missing host. */
    if (scheme == 0 || strcspn(url + scheme, "/?#") == 0)
        return false;
    CURLU *parts = curl_url();
    const bool is_valid = parts != NULL && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK;
    curl_url_cleanup(parts);
    return is_valid;
}

char *oteli_transport_url_for_log(const char *url)
{
    static const CURLUPart secret[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS,
                                       CURLUPART_QUERY, CURLUPART_FRAGMENT};
    CURLU *parts = curl_url();
    char *text = NULL;
    char *copy = NULL;
    if (parts != NULL && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK) {
        for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
            (void)curl_url_set(parts, secret[i], NULL, 0);
        if (curl_url_get(parts, CURLUPART_URL, &text, 0) == CURLUE_OK)
            copy = strdup(text);
    }
    curl_free(text);
    curl_url_cleanup(parts);
    return copy;
}
