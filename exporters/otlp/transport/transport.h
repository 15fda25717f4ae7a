/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/transport.h - one request at a time, without ever blocking for longer
 * than asked: a POST over HTTP/1.1 or HTTP/2, or a GET. The door to libcurl: only transport*.c
 * include it.
 *
 *     oteli_transport_start ─▶ oteli_transport_poll … ─▶ true: the answer is there
 *                              └▶ oteli_transport_cancel:  what is known of it so far
 *
 * Threads:  one thread at a time; oteli_transport_wake from any thread.
 * Limits:   an answer is read up to a maximum, of which the first 64 KiB (1 MiB after a GET)
 *           are kept; its headers up to 256 KiB. No redirect is followed, so credentials stay
 *           with the host that they were given for.
 * Fork:     a child that starts a request leaves the parent's connection alone and opens
 *           its own; so does a process whose descriptors were closed under it. */
#ifndef OTELI_TRANSPORT_H
#define OTELI_TRANSPORT_H

#include "common/base/internal_api.h"
#include "exporters/otlp/transport/http_message.h"

struct oteli_transport;

/* Everything is copied. NULL: no memory, or libcurl does not work here. */
struct oteli_transport *oteli_transport_new(const struct oteli_transport_options *options);
void oteli_transport_free(struct oteli_transport *transport);

/* In a forked child: another one from what is constant in the parent's, whatever its thread
 * was doing. It is not connected yet, and no curl handle was touched: a program that forks
 * while other threads are inside curl can leave a lock of curl's taken for ever, and waiting
 * for that is left to the exporter thread. Copies of the parent's descriptors are closed. */
struct oteli_transport *oteli_transport_renew(const struct oteli_transport *parents);

/* Begin to post, or to get. What the request points to, but for its body, is copied. */
void oteli_transport_start(struct oteli_transport *transport,
                           const struct oteli_transport_request *request);

/* Go on for at most `timeout_ms`, and not after the first event: true when the request is
 * through and *answer filled in. */
bool oteli_transport_poll(struct oteli_transport *transport, int timeout_ms,
                          struct oteli_transport_response *answer);

/* Break the request off. *answer has the status if that had come already. */
void oteli_transport_cancel(struct oteli_transport *transport,
                            struct oteli_transport_response *answer);

/* A descriptor for an event loop: readable when a request can go on, and after
 * oteli_transport_wake. It stays the same unless the program closes descriptors that are not its
 * own. -1: none. */
int oteli_transport_descriptor(struct oteli_transport *transport);

/* Make a transport's descriptor readable when another's is. false: that is not possible. */
bool oteli_transport_include(struct oteli_transport *transport, struct oteli_transport *other);

/* When the request can go on in any case; -1: never. */
int oteli_transport_timeout_ms(struct oteli_transport *transport);

/* No export is pending any more: from now on nothing makes the descriptor readable. */
void oteli_transport_rest(struct oteli_transport *transport);

/* Whether the program has closed descriptors of the request: the next oteli_transport_poll ends
 * it. */
bool oteli_transport_is_lost(const struct oteli_transport *transport);

/* Until the descriptor is readable; without one, for a moment. */
void oteli_transport_wait(struct oteli_transport *transport, int timeout_ms);

/* Sleep while there is no request. */
void oteli_transport_sleep(struct oteli_transport *transport, int timeout_ms);

/* Make poll and sleep return early: those that wait now, or the next one. */
void oteli_transport_wake(struct oteli_transport *transport);

/* What the libcurl that is loaded can do. */
OTELI_INTERNAL_API bool oteli_transport_has_http2(void);
bool oteli_transport_has_tls(void);

/* Whether this is an absolute http or https URL with a host. */
bool oteli_transport_url_is_valid(const char *url);

/* The URL as it may stand in a log: without user, password, query and fragment. NULL: no
 * memory. Free with free(). */
char *oteli_transport_url_for_log(const char *url);

/* Read a date in one of HTTP's forms. false: it is none, or is before 1970. */
bool oteli_transport_date(const char *text, int64_t *unix_s);

#endif
