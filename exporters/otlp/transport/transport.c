/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/transport.c - a request from its start to its answer. The exporting
 * thread; owns what a transport is made of. The contracts are in transport.h. */
#include "exporters/otlp/transport/transport.h"
#include "common/base/atomic.h"
#include "exporters/otlp/transport/transport_parts.h"

#include <limits.h>
#include <poll.h>
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
    NAMES_KEPT_S = 60,
    PAUSE_MS = 20 /* between looks when polling itself fails, or says nothing */
};

/* Without handles. */
static struct oteli_transport *new_closed(const struct oteli_transport_options *options)
{
    const size_t body_size = options->gets ? GOT_BODY_KEPT : BODY_KEPT;
    struct oteli_transport *transport = malloc(sizeof *transport + body_size);
    if (transport == NULL)
        return NULL;
    memset(transport, 0, sizeof *transport); /* not the body: its pages are not touched yet */
    oteli_sockets_init(&transport->sockets);
    oteli_epoll_set_init(&transport->epoll_set);
    transport->waker[0] = transport->waker[1] = -1;
    transport->body_size = body_size;
    transport->options = *options;
    if (options->max_response_bytes == 0)
        transport->options.max_response_bytes = BODY_MAX;
    if (!oteli_transport_own_options(&transport->options)) {
        oteli_transport_free(transport);
        return NULL;
    }
    oteli_tls_files_init(&transport->tls, &transport->options.tls);
    transport->is_https = strncasecmp(options->url, "https:", 6) == 0;
    transport->is_tls =
        transport->is_https || strncasecmp(transport->options.proxy, "https:", 6) == 0;
    return transport;
}

/* Files of TLS are read here the first time: what is wrong with them is said at the start. */
struct oteli_transport *oteli_transport_new(const struct oteli_transport_options *options)
{
    if (!oteli_transport_start_curl())
        return NULL;
    struct oteli_transport *transport = new_closed(options);
    if (transport == NULL)
        return NULL;
    if (!oteli_transport_open(transport)) {
        oteli_transport_free(transport);
        return NULL;
    }
    if (transport->is_tls) {
        oteli_tls_watch_threads();
        (void)oteli_tls_files_look(&transport->tls);
    }
    return transport;
}

struct oteli_transport *oteli_transport_renew(const struct oteli_transport *parents)
{
    oteli_transport_close_copies(parents);
    return new_closed(&parents->options);
}

void oteli_transport_free(struct oteli_transport *transport)
{
    if (transport == NULL)
        return;
    if (oteli_transport_enter(transport)) {
        oteli_transport_close(transport);
        oteli_transport_leave(transport);
    } else {
        oteli_transport_disown(transport);
    }
    curl_slist_free_all(transport->lines);
    oteli_tls_files_fini(&transport->tls);
    oteli_transport_free_options(&transport->options);
    free(transport);
}

static void say_why_disowned(struct oteli_transport *transport)
{
    snprintf(transport->problem, sizeof transport->problem, "%s",
             oteli_transport_is_over(transport) ? "the process is ending, and with it TLS"
                                                : "the program has closed the connection");
}

static void note_progress(struct oteli_transport *transport)
{
    curl_off_t uploaded = 0;
    curl_off_t begun = 0;
    const bool was_choked = oteli_transport_is_choked(transport);
    (void)curl_easy_getinfo(transport->easy, CURLINFO_SIZE_UPLOAD_T, &uploaded);
    (void)curl_easy_getinfo(transport->easy, CURLINFO_PRETRANSFER_TIME_T, &begun);
    if (transport->options.is_http2 && begun != 0 && uploaded == transport->uploaded &&
        (size_t)uploaded < transport->length)
        transport->futile_calls++;
    else
        transport->futile_calls = 0;
    transport->uploaded = uploaded;
    transport->was_connected |= begun != 0;
    if (oteli_transport_is_choked(transport) != was_choked && transport->room_fd != -1)
        oteli_epoll_set_socket(&transport->epoll_set, transport->room_fd, true, was_choked);
}

static bool set_connection(struct oteli_transport *transport, bool is_fresh)
{
    return OTELI_CURL_SET(transport->easy, CURLOPT_FRESH_CONNECT, (long)is_fresh) &&
           oteli_transport_set_version(transport, is_fresh);
}

/* Take the handle out when the transfer has ended. Returns whether the request is through: it may
 * have to be made again at once. */
static bool end_transfer(struct oteli_transport *transport, CURLcode result)
{
    transport->result = result;
    curl_multi_remove_handle(transport->multi, transport->easy);
    transport->is_running = false;
    if (!transport->kept_connection_lost || !set_connection(transport, true))
        return true;
    transport->problem[0] = '\0';
    transport->is_running = curl_multi_add_handle(transport->multi, transport->easy) == CURLM_OK;
    return !transport->is_running;
}

/* Go on with the request without waiting, inside curl. Returns whether it is through. */
static bool perform_once(struct oteli_transport *transport)
{
    if (!transport->is_running)
        return true;
    struct oteli_signal_guard guard;
    oteli_transport_guard(transport, &guard);
    int running = 0;
    int left;
    /* Called deprecated because it looks at every transfer; here there is only one. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    const CURLMcode code = curl_multi_socket_all(transport->multi, &running);
#pragma GCC diagnostic pop
    note_progress(transport);
    transport->is_spoilt |= code != CURLM_OK;
    if (!transport->was_connected)
        transport->was_connected = oteli_sockets_of_curl_connected(&transport->sockets);
    const CURLMsg *message = curl_multi_info_read(transport->multi, &left);
    bool is_through = false;
    if (message != NULL && message->msg == CURLMSG_DONE)
        is_through = end_transfer(transport, message->data.result);
    else if (code != CURLM_OK || running == 0)
        is_through = end_transfer(transport, CURLE_OUT_OF_MEMORY);
    /* Of several attempts to connect, those that lost are closed without telling us. */
    if ((is_through && transport->result != CURLE_OK) ||
        oteli_sockets_of_curl(&transport->sockets) > 1)
        oteli_sockets_forget_closed(&transport->sockets);
    if (!is_through)
        oteli_epoll_set_settle(&transport->epoll_set);
    oteli_transport_unguard(transport, &guard);
    return is_through;
}

static void forget_wakes(const struct oteli_transport *transport)
{
    char woken[64];
    (void)recv(transport->waker[0], woken, sizeof woken, MSG_DONTWAIT);
}

/* The same after a while, in which the program may have closed our descriptors. */
static bool drive(struct oteli_transport *transport)
{
    if (!transport->is_running)
        return true;
    if (!oteli_transport_enter_again(transport)) {
        oteli_transport_disown(transport);
        transport->result = CURLE_SEND_ERROR;
        say_why_disowned(transport);
        return true;
    }
    if (!transport->only_answers)
        forget_wakes(transport);
    transport->only_answers = false;
    const bool is_through = perform_once(transport);
    oteli_transport_leave(transport);
    return is_through;
}

/* Inside curl. */
static void break_off(struct oteli_transport *transport)
{
    curl_multi_remove_handle(transport->multi, transport->easy);
    transport->is_running = false;
    oteli_sockets_forget_closed(&transport->sockets);
}

/* Enter with handles that are free for a request. */
static bool make_ready(struct oteli_transport *transport)
{
    transport->only_answers = false;
    if (transport->is_running || transport->is_spoilt ? oteli_transport_enter(transport)
                                                      : oteli_transport_enter_again(transport)) {
        if (transport->is_running)
            break_off(transport);
        if (!transport->is_spoilt || oteli_transport_reopen(transport))
            return true;
        oteli_transport_leave(transport);
    }
    oteli_transport_disown(transport);
    say_why_disowned(transport);
    if (oteli_transport_is_over(transport) || !oteli_transport_open(transport) ||
        !oteli_transport_enter(transport))
        return false;
    transport->problem[0] = '\0';
    return true;
}

static bool set_request(struct oteli_transport *transport,
                        const struct oteli_transport_request *request)
{
    CURL *easy = transport->easy;
    const struct curl_slist *lines = oteli_transport_request_lines(transport, request);
    const bool is_fresh = request->fresh || transport->needs_fresh;
    return lines != NULL && OTELI_CURL_SET(easy, CURLOPT_HTTPHEADER, lines) &&
           (transport->options.gets ||
            (OTELI_CURL_SET(easy, CURLOPT_POSTFIELDS, request->body) &&
             OTELI_CURL_SET(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->length))) &&
           OTELI_CURL_SET(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)request->connect_ms) &&
           set_connection(transport, is_fresh) &&
           OTELI_CURL_SET(easy, CURLOPT_DNS_CACHE_TIMEOUT, request->fresh ? 0L : NAMES_KEPT_S);
}

void oteli_transport_start(struct oteli_transport *transport,
                           const struct oteli_transport_request *request)
{
    oteli_transport_forget(transport);
    transport->length = request->length;
    transport->uploaded = 0;
    transport->futile_calls = 0;
    transport->room_fd = -1;
    transport->epoll_set.has_unwatched_socket = false;
    if (!make_ready(transport))
        return;
    oteli_epoll_set_arm(&transport->epoll_set, true);
    transport->is_running = oteli_transport_look_at_files(transport) &&
                            set_request(transport, request) &&
                            curl_multi_add_handle(transport->multi, transport->easy) == CURLM_OK;
    /* HTTP/2 and TLS cut a request into pieces of 16 KiB, and curl sends each by itself: over a
     * kept connection they go out together. */
    const bool is_cut = transport->options.is_http2 || transport->is_tls;
    if (is_cut)
        oteli_sockets_cork(&transport->sockets, true);
    (void)perform_once(transport);
    if (is_cut)
        oteli_sockets_cork(&transport->sockets, false);
    oteli_transport_leave(transport);
}

void oteli_transport_wait(struct oteli_transport *transport, int timeout_ms)
{
    /* A request that runs was gone on with a moment ago: whose the descriptor is, is known. */
    const int answers = transport->is_running && transport->epoll_set.is_armed
                            ? oteli_epoll_set_wait(&transport->epoll_set, timeout_ms)
                            : -1;
    transport->only_answers = answers == 1;
    if (answers >= 0)
        return;
    struct pollfd event = {.fd = oteli_transport_descriptor(transport), .events = POLLIN};
    if (event.fd == -1 && (timeout_ms < 0 || timeout_ms > PAUSE_MS))
        timeout_ms = PAUSE_MS;
    (void)poll(&event, 1, timeout_ms);
}

bool oteli_transport_poll(struct oteli_transport *transport, int timeout_ms,
                          struct oteli_transport_response *answer)
{
    if (timeout_ms > 0 && transport->is_running) { /* curl has done before what it could */
        const int curls_ms = oteli_transport_timeout_ms(transport);
        oteli_transport_wait(transport,
                             curls_ms >= 0 && curls_ms < timeout_ms ? curls_ms : timeout_ms);
    }
    const bool is_through = drive(transport);
    if (is_through)
        oteli_transport_fill(transport, answer);
    return is_through;
}

void oteli_transport_cancel(struct oteli_transport *transport,
                            struct oteli_transport_response *answer)
{
    const bool is_through = drive(transport);
    if (!is_through)
        transport->result = CURLE_OPERATION_TIMEDOUT;
    oteli_transport_fill(transport, answer);
    if (is_through)
        return;
    answer->problem = answer->body_was_sent ? "no answer in time" : "no connection in time";
    if (oteli_transport_enter(transport)) {
        struct oteli_signal_guard guard;
        oteli_transport_guard(transport, &guard);
        break_off(transport);
        oteli_transport_unguard(transport, &guard);
        oteli_transport_leave(transport);
    } else {
        oteli_transport_disown(transport);
    }
}

void oteli_transport_sleep(struct oteli_transport *transport, int timeout_ms)
{
    oteli_transport_wait(transport, timeout_ms);
    if (oteli_transport_is_ours(transport))
        forget_wakes(transport);
}

int oteli_transport_descriptor(struct oteli_transport *transport)
{
    if (!oteli_transport_is_ours_on_the_way(transport))
        return -1;
    if (!transport->is_running)
        oteli_epoll_set_settle(&transport->epoll_set);
    oteli_epoll_set_arm(&transport->epoll_set, true);
    return transport->epoll_set.fd;
}

bool oteli_transport_include(struct oteli_transport *transport, struct oteli_transport *other)
{
    const int fd = oteli_transport_descriptor(other);
    return fd != -1 && oteli_transport_is_ours(transport) &&
           oteli_epoll_set_socket(&transport->epoll_set, fd, true, false);
}

bool oteli_transport_is_lost(const struct oteli_transport *transport)
{
    return transport->is_running && !oteli_transport_is_ours_on_the_way(transport);
}

int oteli_transport_timeout_ms(struct oteli_transport *transport)
{
    long timeout_ms = -1;
    if (!transport->is_running)
        return 0;
    (void)curl_multi_timeout(transport->multi, &timeout_ms);
    if ((transport->epoll_set.fd == -1 || transport->epoll_set.has_unwatched_socket ||
         oteli_transport_is_choked(transport)) &&
        (timeout_ms < 0 || timeout_ms > PAUSE_MS))
        timeout_ms = PAUSE_MS;
    return timeout_ms < INT_MAX ? (int)timeout_ms : INT_MAX;
}

void oteli_transport_rest(struct oteli_transport *transport)
{
    if (transport->epoll_set.is_armed && oteli_transport_is_ours_on_the_way(transport)) {
        oteli_epoll_set_settle(&transport->epoll_set);
        oteli_epoll_set_arm(&transport->epoll_set, false);
    }
}

void oteli_transport_wake(struct oteli_transport *transport)
{
    if (OTELI_LOAD_ACQUIRE_PTR(&transport->multi) == NULL ||
        oteli_load_relaxed_32(&transport->process) != (uint32_t)getpid())
        return;
    const int fd = (int)oteli_load_relaxed_32(&transport->waker_fd);
    if (oteli_socket_is(fd, oteli_load_relaxed_64(&transport->waker_inode)))
        (void)send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool oteli_transport_has_http2(void)
{
    return oteli_transport_curl_has(CURL_VERSION_HTTP2);
}

bool oteli_transport_has_tls(void)
{
    return oteli_transport_curl_has(CURL_VERSION_SSL);
}
