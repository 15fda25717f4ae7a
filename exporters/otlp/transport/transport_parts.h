/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/transport_parts.h - what a transport is made of, for the files that make
 * it up:
 *
 *     transport.c          a request, from its start to its answer
 *     transport_handles.c  curl's handles: made, set up, never touched when they are not ours
 *     transport_fields.c   what is kept of an answer, and what it says
 *     transport_options.c  copies of the options that a program gave
 *     transport_lines.c    the header lines of a request
 *     transport_tls.c      which certificates count for a request
 *     transport_url.c      URLs
 *
 * No other file of the libraries includes this, nor <curl/curl.h>. */
#ifndef OTELI_TRANSPORT_PARTS_H
#define OTELI_TRANSPORT_PARTS_H

#include "common/os/signal_guard.h"
#include "exporters/otlp/transport/epoll_set.h"
#include "exporters/otlp/transport/http_message.h"
#include "exporters/otlp/transport/socket.h"
#include "exporters/otlp/transport/tls_exit_guard.h"

#include <curl/curl.h>

/* Field values, each in a text that is empty where there is none. */
struct oteli_transport_fields {
    char retry_after[64];
    char content_type[128];
    char grpc_status[16];
    char grpc_message[1024 + 1];
    char grpc_details[8 * 1024 + 1];
};

struct oteli_transport {
    /* Constant; a forked child makes its own from these. */
    struct oteli_transport_options options; /* with texts of its own; `proxy` is not NULL */
    bool is_https;                          /* the receiver */
    bool is_tls;                            /* that, or the proxy */

    struct oteli_tls_files tls; /* its paths are those of `options` */

    CURL *easy;
    CURLM *multi;         /* release when handles are opened, acquire by wake on any thread */
    uint32_t process;     /* that opened the handles; written before `multi` */
    int waker[2];         /* a byte sent to [1] ends a wait; [0] is -1 when there is none */
    uint32_t waker_fd;    /* waker[1] for other threads, and what tells it from a later */
    uint64_t waker_inode; /* descriptor of that number; written before `multi` */
    bool is_running;
    bool is_spoilt;    /* the handles are: some failure left them half done */
    bool had_response; /* some request was answered */
    bool has_files;    /* curl has what is to be used of `tls` */
    struct oteli_epoll_set epoll_set;
    struct oteli_sockets sockets;

    /* Of the request that runs or ran last. */
    struct curl_slist *lines; /* its header lines */
    bool lines_are_plain;     /* all are of the options: those of the next request, too */
    size_t length;
    curl_off_t uploaded;   /* of that */
    unsigned futile_calls; /* of curl in a row that sent nothing of it */
    curl_socket_t room_fd; /* curl waits for room in it; -1: in none */
    CURLcode result;
    bool only_answers; /* the last wait ended because there is something to read from its socket */
    bool was_connected;
    bool body_was_sent;
    bool is_too_long;
    bool is_wrong_version;     /* HTTP/1.1 where nothing but HTTP/2 will do */
    bool reuse_only;           /* goes over the connection of the request before, or not at all, */
    bool kept_connection_lost; /* and there is none any more */
    bool lacks_files;          /* for TLS */
    bool needs_fresh;          /* connection: the one before was made with other files */
    size_t body_bytes;         /* of the answer, kept or not */
    size_t header_bytes;
    struct oteli_transport_fields fields;
    char problem[CURL_ERROR_SIZE];
    size_t body_size;
    uint8_t body[]; /* what is kept of it */
};

#define OTELI_CURL_SET(easy, option, value) (curl_easy_setopt(easy, option, value) == CURLE_OK)

/* Some versions of curl (7.88) wait for room in the socket also while the receiver takes no more
 * for now, which HTTP/2 says in another way: then there always is room, and no wait would last.
 * What counts then is what the receiver sends. */
static inline bool oteli_transport_is_choked(const struct oteli_transport *transport)
{
    return transport->futile_calls >= 2;
}

/* Whether the libcurl that is loaded has a feature. */
static inline bool oteli_transport_curl_has(int feature)
{
    return (curl_version_info(CURLVERSION_NOW)->features & feature) != 0;
}

/* transport_options.c. Replace all texts that the options borrow with copies. false: no memory. */
bool oteli_transport_own_options(struct oteli_transport_options *options);

/* Free these copies, also after a failure. */
void oteli_transport_free_options(struct oteli_transport_options *options);

/* transport_handles.c. Start libcurl, once in the process; false: it does not work here. */
bool oteli_transport_start_curl(void);

/* Make the handles, for this process. false: no memory. */
bool oteli_transport_open(struct oteli_transport *transport);

/* Say which version the next request is to be made with, over a new connection or a kept one.
 *
 * Some versions of curl (7.87 to 7.88) cannot use a connection again that they know to be HTTP/2
 * without having been told so in a TLS handshake. They can if HTTP/2 is only allowed; over a new
 * connection they would then speak HTTP/1.1, so such a request `reuse_only`: it gets no new one. */
bool oteli_transport_set_version(struct oteli_transport *transport, bool is_fresh);

/* Drop the handles without letting curl do anything with their descriptors, which belong to the
 * parent process, or by now name files of the program. */
void oteli_transport_disown(struct oteli_transport *transport);

/* Close the handles, inside curl. */
void oteli_transport_close(struct oteli_transport *transport);

/* Inside curl, between two requests: new handles instead of those, which a failure has spoilt. curl
 * 7.88 forgets, when it has no memory for one, that it has a list of a socket's transfers, and
 * divides by its length of zero the next time. false: there are none now. */
bool oteli_transport_reopen(struct oteli_transport *transport);

/* In a forked child: close its copies of a parent's descriptors. */
void oteli_transport_close_copies(const struct oteli_transport *parents);

/* Whether the descriptors are: all of them, or those that a request uses on its way. */
bool oteli_transport_is_ours(const struct oteli_transport *transport);
bool oteli_transport_is_ours_on_the_way(const struct oteli_transport *transport);

/* Whether the process is ending, and TLS with it. */
static inline bool oteli_transport_is_over(const struct oteli_transport *transport)
{
    return transport->is_tls && oteli_tls_is_over();
}

/* Call curl with the handles from here to leave. False: they are not to be touched. `again`: to
 * begin or go on with a request, which may be done each time that something has come; neither
 * handles nor wakers are closed. */
bool oteli_transport_enter(const struct oteli_transport *transport);
bool oteli_transport_enter_again(const struct oteli_transport *transport);
void oteli_transport_leave(const struct oteli_transport *transport);

/* transport_fields.c. Forget the answer of the request before. */
void oteli_transport_forget(struct oteli_transport *transport);

/* Have curl hand over what comes. */
bool oteli_transport_listen(struct oteli_transport *transport, CURL *easy);

void oteli_transport_fill(struct oteli_transport *transport,
                          struct oteli_transport_response *answer);

/* transport_lines.c. The header lines of a request, until the next one; NULL: no memory. */
struct curl_slist *oteli_transport_request_lines(struct oteli_transport *transport,
                                                 const struct oteli_transport_request *request);

/* transport_tls.c. What does not change: versions, ciphers. */
bool oteli_transport_set_tls(const struct oteli_transport *transport, CURL *easy);

/* Read files that have changed, and use them. False: there is nothing to use, and the problem says
 * so; or no memory. */
bool oteli_transport_look_at_files(struct oteli_transport *transport);

/* Around calls into curl: TLS libraries write to sockets without MSG_NOSIGNAL. Without TLS nothing
 * is done. */
static inline void oteli_transport_guard(const struct oteli_transport *transport,
                                         struct oteli_signal_guard *guard)
{
    if (transport->is_tls)
        oteli_signal_guard_begin(guard);
}

static inline void oteli_transport_unguard(const struct oteli_transport *transport,
                                           const struct oteli_signal_guard *guard)
{
    if (transport->is_tls)
        oteli_signal_guard_end(guard, EPIPE);
}

#endif
