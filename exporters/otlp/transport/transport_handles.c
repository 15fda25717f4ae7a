/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/transport_handles.c - one easy handle in one multi handle. The
 * exporting thread; a transport owns both, and their sockets.
 *
 * curl_global_init is called once in the process and curl_global_cleanup never: at exit
 * other threads, other libraries and a resolver thread of curl's own may still be inside,
 * and all that it would give back the kernel takes anyway. For the same reasons libcurl
 * stays loaded when we are not. */
#include "common/base/atomic.h"
#include "common/log.h"
#include "common/os/descriptor.h"
#include "common/os/library.h"
#include "exporters/otlp/transport/transport_parts.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { UPLOAD_BYTES = 256 * 1024 }; /* handed to the kernel at once: a batch of large spans, too */

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static bool curl_works;

static void start_curl(void)
{
    oteli_tls_prepare_exit();
    curl_works = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    if (curl_works) {
        oteli_tls_watch_exit();
        oteli_stay_loaded((oteli_code *)start_curl); /* and what it is linked with */
    }
    if (curl_works && !oteli_transport_curl_has(CURL_VERSION_ASYNCHDNS))
        OTELI_LOG(OTEL_LOG_WARN, "this libcurl looks up host names synchronously: a slow name "
                                 "server can hold up the exporter beyond its timeouts");
}

bool oteli_transport_start_curl(void)
{
    return pthread_once(&curl_once, start_curl) == 0 && curl_works;
}

static curl_socket_t open_socket(void *state, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    struct oteli_transport *transport = state;
    transport->kept_connection_lost = transport->reuse_only;
    if (transport->reuse_only)
        return CURL_SOCKET_BAD;
    const int fd = oteli_sockets_open(&transport->sockets, address->family, address->socktype,
                                      address->protocol);
    return fd >= 0 ? fd : CURL_SOCKET_BAD;
}

static int close_socket(void *state, curl_socket_t fd)
{
    struct oteli_transport *transport = state;
    oteli_epoll_set_settle(&transport->epoll_set);
    return oteli_sockets_close(&transport->sockets, fd);
}

#define SET(option, value) OTELI_CURL_SET(easy, option, value)

static bool loses_its_footing(void)
{
    const unsigned version = curl_version_info(CURLVERSION_NOW)->version_num;
    return version >= 0x075700 && version < 0x080000;
}

bool oteli_transport_set_version(struct oteli_transport *transport, bool is_fresh)
{
    CURL *easy = transport->easy;
    transport->kept_connection_lost = false;
    transport->reuse_only = transport->options.is_http2 && !transport->is_https && !is_fresh &&
                            loses_its_footing() && oteli_sockets_of_curl(&transport->sockets) != 0;
    if (!transport->options.is_http2)
        return SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    return SET(CURLOPT_HTTP_VERSION, transport->is_https || transport->reuse_only
                                         ? (long)CURL_HTTP_VERSION_2TLS
                                         : (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
}

/* Where to. Proxy and no-proxy are always set, if only to "": otherwise curl asks the
 * environment, on the exporter thread. */
static bool set_way(const struct oteli_transport *transport, CURL *easy)
{
    const struct oteli_transport_options *options = &transport->options;
    const bool is_local = options->unix_socket != NULL;
    return SET(CURLOPT_URL, options->url) &&
#if LIBCURL_VERSION_NUM >= 0x075500
           SET(CURLOPT_PROTOCOLS_STR, "http,https") &&
#else
           SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS)) &&
#endif
           SET(CURLOPT_FOLLOWLOCATION, 0L) &&
           (!is_local || SET(CURLOPT_UNIX_SOCKET_PATH, options->unix_socket)) &&
           SET(CURLOPT_PROXY, is_local ? "" : options->proxy) &&
           SET(CURLOPT_NOPROXY, options->no_proxy) &&
           /* A proxy would read HTTP/2 as HTTP/1.1. */
           SET(CURLOPT_HTTPPROXYTUNNEL, (long)options->is_http2) &&
           SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

static bool configure(struct oteli_transport *transport, CURL *easy)
{
    return set_way(transport, easy) && oteli_transport_set_tls(transport, easy) &&
           oteli_transport_listen(transport, easy) &&
#if LIBCURL_VERSION_NUM >= 0x075700
           /* Giving up must not wait for a name server that does not answer. */
           SET(CURLOPT_QUICK_EXIT, 1L) &&
#endif
           SET(CURLOPT_NOSIGNAL, 1L) &&
           (transport->options.gets ? SET(CURLOPT_HTTPGET, 1L) : SET(CURLOPT_POST, 1L)) &&
           SET(CURLOPT_USERAGENT, transport->options.user_agent) &&
           SET(CURLOPT_TCP_KEEPALIVE, 1L) && SET(CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BYTES) &&
           SET(CURLOPT_OPENSOCKETFUNCTION, open_socket) && SET(CURLOPT_OPENSOCKETDATA, transport) &&
           SET(CURLOPT_CLOSESOCKETFUNCTION, close_socket) &&
           SET(CURLOPT_CLOSESOCKETDATA, transport);
}

/* Curl makes a waker in any case: look after it. */
static void note_waker_of_curl(struct oteli_transport *transport, CURLM *multi)
{
    struct oteli_pair_search search;
    if (!oteli_pair_search_begin(&search))
        return;
    for (int i = 0; i < OTELI_PAIR_BYTES; i++)
        (void)curl_multi_wakeup(multi);
    oteli_pair_search_end(&search, &transport->sockets);
    (void)curl_multi_poll(multi, NULL, 0, 0, NULL); /* which reads what woke it */
}

/* Ours is used because curl would go on to read from its own descriptor when the program has closed
 * it and that number names another file. */
static void make_waker(struct oteli_transport *transport)
{
    oteli_sockets_open_pair(&transport->sockets, transport->waker);
    oteli_store_relaxed_32(&transport->waker_fd, (uint32_t)transport->waker[1]);
    oteli_store_relaxed_64(&transport->waker_inode, oteli_socket_inode(transport->waker[1]));
}

/* curl_multi_init makes descriptors of its own, with the lowest numbers that are free: 0 to 2 are
 * not while it does. */
static CURLM *new_multi(void)
{
    int held[OTELI_DESCRIPTOR_LEAST];
    size_t count = 0;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    while (fd >= 0 && fd < OTELI_DESCRIPTOR_LEAST) {
        held[count++] = fd;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    }
    if (fd >= 0)
        close(fd);
    CURLM *multi = curl_multi_init();
    while (count != 0)
        close(held[--count]);
    return multi;
}

static int note_socket(CURL *easy, curl_socket_t fd, int what, void *state, void *of_socket)
{
    (void)easy;
    (void)of_socket;
    struct oteli_transport *transport = state;
    const bool wants_room = what == CURL_POLL_OUT || what == CURL_POLL_INOUT;
    transport->room_fd = wants_room ? fd : -1;
    if (what == CURL_POLL_REMOVE) {
        oteli_epoll_set_keep(&transport->epoll_set, fd);
        return 0;
    }
    oteli_epoll_set_socket(&transport->epoll_set, fd,
                           what == CURL_POLL_IN || what == CURL_POLL_INOUT,
                           wants_room && !oteli_transport_is_choked(transport));
    return 0;
}

/* What libcurl closes with the multi handle has the option of the last easy handle that was added,
 * and without CURLOPT_NOSIGNAL it ignores SIGPIPE for a moment in the whole process. */
static bool pass_options(CURLM *multi, CURL *easy)
{
    return curl_multi_add_handle(multi, easy) == CURLM_OK &&
           curl_multi_remove_handle(multi, easy) == CURLM_OK;
}

/* Both handles or none. */
static bool open_handles(struct oteli_transport *transport)
{
    transport->has_files = false;
    transport->is_spoilt = false;
    transport->easy = curl_easy_init();
    CURLM *multi = new_multi();
    if (transport->easy == NULL || multi == NULL || !configure(transport, transport->easy) ||
        curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 1L) != CURLM_OK ||
        curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, transport) != CURLM_OK ||
        curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, note_socket) != CURLM_OK ||
        !pass_options(multi, transport->easy)) {
        curl_easy_cleanup(transport->easy);
        transport->easy = NULL;
        if (multi != NULL)
            curl_multi_cleanup(multi);
        return false;
    }
    note_waker_of_curl(transport, multi);
    OTELI_STORE_RELEASE_PTR(&transport->multi, multi);
    return true;
}

bool oteli_transport_open(struct oteli_transport *transport)
{
    oteli_store_relaxed_32(&transport->process, (uint32_t)getpid());
    make_waker(transport);
    (void)oteli_epoll_set_open(&transport->epoll_set, transport->waker);
    return open_handles(transport);
}

static void close_epoll_set(const struct oteli_transport *transport, struct oteli_epoll_set *set)
{
    if (oteli_socket_is((int)transport->waker_fd, transport->waker_inode))
        oteli_epoll_set_close(set);
    oteli_epoll_set_init(set);
}

/* What oteli_transport_disown left behind, so that leak checkers see that it was on purpose. */
enum { LEFT_BEHIND = 32 };
static void *left_behind[LEFT_BEHIND][2];
static uint32_t left_behind_count;

/* Their memory stays; this happens once a fork, or when a program closes all descriptors that
 * it does not know. */
void oteli_transport_disown(struct oteli_transport *transport)
{
    if (transport->easy != NULL) {
        const uint32_t slot = oteli_add_full_32(&left_behind_count, 1) % LEFT_BEHIND;
        OTELI_STORE_RELEASE_PTR(&left_behind[slot][0], transport->easy);
        OTELI_STORE_RELEASE_PTR(&left_behind[slot][1], transport->multi);
    }
    close_epoll_set(transport, &transport->epoll_set);
    oteli_sockets_close_all(&transport->sockets);
    transport->easy = NULL;
    transport->is_running = false;
    OTELI_STORE_RELEASE_PTR(&transport->multi, NULL);
}

static void close_handles(struct oteli_transport *transport)
{
    curl_easy_cleanup(transport->easy);
    curl_multi_cleanup(transport->multi);
    transport->easy = NULL;
    OTELI_STORE_RELEASE_PTR(&transport->multi, NULL);
    oteli_sockets_forget_all_but(&transport->sockets, transport->waker);
}

bool oteli_transport_reopen(struct oteli_transport *transport)
{
    struct oteli_signal_guard guard;
    oteli_transport_guard(transport, &guard);
    close_handles(transport);
    const bool is_open = open_handles(transport);
    oteli_transport_unguard(transport, &guard);
    return is_open;
}

void oteli_transport_close(struct oteli_transport *transport)
{
    struct oteli_signal_guard guard;
    oteli_transport_guard(transport, &guard);
    if (transport->is_running)
        curl_multi_remove_handle(transport->multi, transport->easy);
    close_handles(transport);
    close_epoll_set(transport, &transport->epoll_set);
    oteli_sockets_close_all(&transport->sockets);
    oteli_transport_unguard(transport, &guard);
}

/* The parent has its own, and when it dies its connection should not stay. What it was just
 * opening or closing is not found, or not taken for its own, and stays open here. */
void oteli_transport_close_copies(const struct oteli_transport *parents)
{
    if (parents->process == (uint32_t)getpid())
        return;
    struct oteli_epoll_set epoll_set = parents->epoll_set;
    struct oteli_sockets sockets = parents->sockets;
    close_epoll_set(parents, &epoll_set);
    oteli_sockets_close_all(&sockets);
}

bool oteli_transport_is_ours(const struct oteli_transport *transport)
{
    return transport->easy != NULL && transport->process == (uint32_t)getpid() &&
           oteli_sockets_are_ours(&transport->sockets) &&
           (transport->epoll_set.fd == -1 || oteli_epoll_set_is_ours(&transport->epoll_set));
}

bool oteli_transport_is_ours_on_the_way(const struct oteli_transport *transport)
{
    const bool is_known = transport->only_answers; /* the set; and the waker is not read from */
    return transport->easy != NULL && transport->process == (uint32_t)getpid() &&
           oteli_sockets_of_curl_are_ours(&transport->sockets,
                                          is_known ? -1 : transport->waker[0]) &&
           (is_known || transport->epoll_set.fd == -1 ||
            oteli_epoll_set_has_reader(&transport->epoll_set));
}

static bool enter_if(const struct oteli_transport *transport,
                     bool (*is_ours)(const struct oteli_transport *))
{
    if (!oteli_tls_enter(transport->is_tls))
        return false;
    if (is_ours(transport))
        return true;
    oteli_tls_leave(transport->is_tls);
    return false;
}

bool oteli_transport_enter(const struct oteli_transport *transport)
{
    return enter_if(transport, oteli_transport_is_ours);
}

bool oteli_transport_enter_again(const struct oteli_transport *transport)
{
    return enter_if(transport, oteli_transport_is_ours_on_the_way);
}

void oteli_transport_leave(const struct oteli_transport *transport)
{
    oteli_tls_leave(transport->is_tls);
}
