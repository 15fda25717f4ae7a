/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/fault_peer_link.c - the bytes of one connection, both ways, and every way in which
 * they can end. The contracts are in fault_peer_inside.h. */
#include "tests/support/fault_peer_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 64 * 1024 };

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

void fault_link_open(struct fault_link *link, struct fault_peer *peer, int fd, size_t number,
                     const struct fault_connection *ways)
{
    *link = (struct fault_link){
        .peer = peer, .fd = fd, .number = number, .ways = *ways, .answer_left = SIZE_MAX};
    if (peer->tls != NULL && !ways->accepts_connect && ways->refuses_connect == 0)
        fault_link_start_tls(link);
    if (ways->sent.deed != FAULT_NONE && ways->sent.after == 0)
        fault_link_do(link, ways->sent.deed);
    else if (ways->received.deed != FAULT_NONE && ways->received.after == 0)
        fault_link_do(link, ways->received.deed);
}

void fault_link_start_tls(struct fault_link *link)
{
    const struct fault *fault = &link->ways.in_handshake;
    link->tls = fault_tls_new(link->peer->tls);
    link->protocol = FAULT_UNKNOWN;
    if (fault->deed != FAULT_NONE && fault->after == 0)
        fault_link_do(link, fault->deed);
}

void fault_link_close(struct fault_link *link, bool reset)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (reset)
        setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(link->fd);
    fault_http1_free(link->http1);
    fault_http2_free(link->http2);
    fault_tls_free(link->tls);
    fault_clear(&link->opening);
    fault_clear(&link->ready);
    fault_clear(&link->wire);
    *link = (struct fault_link){.fd = -1};
}

void fault_link_do(struct fault_link *link, enum fault_deed deed)
{
    if (deed == FAULT_NONE || link->closing != FAULT_NONE)
        return;
    link->is_mute = true;
    if (deed == FAULT_DEAF)
        link->is_deaf = true;
    else if (deed == FAULT_FIN || deed == FAULT_RESET)
        link->closing = deed;
}

/* Whether what comes is of no interest any more. */
bool fault_link_has_ended(const struct fault_link *link)
{
    return link->is_mute || link->is_gone;
}

/* ---- in --------------------------------------------------------------------------------- */

static void choose_protocol(struct fault_link *link, bool is_http2)
{
    if (is_http2) {
        link->protocol = FAULT_HTTP2;
        link->http2 = fault_http2_new(link);
        if (link->ways.without_settings)
            fault_link_do(link, FAULT_STALL);
    } else {
        link->protocol = FAULT_HTTP1;
        link->http1 = fault_http1_new(link);
    }
}

static void dispatch(struct fault_link *link, const uint8_t *bytes, size_t length)
{
    if (link->protocol == FAULT_HTTP1)
        fault_http1_receive(link->http1, bytes, length);
    else
        fault_http2_receive(link->http2, bytes, length);
}

/* Bytes of the protocol, whatever they came in. */
static void take_plain(struct fault_link *link, const uint8_t *bytes, size_t length)
{
    const struct fault *fault = &link->ways.received;
    size_t usable = length;
    if (fault_link_has_ended(link))
        return;
    if (fault->deed != FAULT_NONE && link->received + length >= fault->after)
        usable = fault->after - link->received;
    link->received += usable;
    if (link->protocol == FAULT_UNKNOWN) {
        fault_append(&link->opening, bytes, usable);
        const size_t known = link->opening.length;
        const size_t looked = known < sizeof preface - 1 ? known : sizeof preface - 1;
        const bool fits = !link->peer->options.only_http1 && known != 0 &&
                          memcmp(link->opening.data, preface, looked) == 0;
        if (known != 0 && (!fits || looked == sizeof preface - 1)) {
            choose_protocol(link, fits);
            dispatch(link, link->opening.data, known);
            fault_clear(&link->opening);
        }
    } else if (usable != 0) {
        dispatch(link, bytes, usable);
    }
    if (usable < length || (fault->deed != FAULT_NONE && link->received == fault->after))
        fault_link_do(link, fault->deed);
}

static void take_tls(struct fault_link *link, const uint8_t *bytes, size_t length)
{
    struct fault *fault = &link->ways.in_handshake;
    struct fault_bytes plain = {0};
    size_t left = fault->deed != FAULT_NONE ? fault->after : SIZE_MAX;
    const bool goes_on = fault_tls_receive(link->tls, bytes, length, &plain, &link->wire, &left);
    if (fault->deed != FAULT_NONE) {
        fault->after = left;
        if (left == 0)
            fault_link_do(link, fault->deed);
    }
    if (link->protocol == FAULT_UNKNOWN && fault_tls_chose_http2(link->tls) && plain.length != 0)
        choose_protocol(link, true);
    if (plain.length != 0)
        take_plain(link, plain.data, plain.length);
    fault_clear(&plain);
    if (!goes_on && link->closing == FAULT_NONE)
        link->closing = FAULT_FIN; /* after the alert */
}

/* How much may be read at a time, so that a deaf peer leaves the rest in the socket. */
static size_t appetite(const struct fault_link *link)
{
    const struct fault *fault = &link->ways.received;
    const size_t most = link->peer->read_bytes != 0 ? link->peer->read_bytes : PIECE;
    if (link->tls != NULL || fault->deed == FAULT_NONE || fault_link_has_ended(link))
        return most < PIECE ? most : PIECE;
    const size_t left = fault->after - link->received;
    return left < most ? left : most;
}

void fault_link_receive(struct fault_link *link)
{
    static _Thread_local uint8_t piece[PIECE];
    const ssize_t got = recv(link->fd, piece, appetite(link), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return;
    if (link->peer->read_bytes != 0)
        link->read_at_ms = fault_now_ms() + (uint64_t)link->peer->read_ms;
    if (got <= 0) {
        link->is_gone = true;
    } else if (link->ways.retort != NULL && !fault_link_has_ended(link)) {
        fault_append(&link->wire, link->ways.retort, link->ways.retort_length);
        fault_link_do(link, link->ways.after_retort);
    } else if (!link->is_closed_down && !fault_link_has_ended(link)) {
        if (link->tls != NULL)
            take_tls(link, piece, (size_t)got);
        else
            take_plain(link, piece, (size_t)got);
    }
}

/* ---- out -------------------------------------------------------------------------------- */

void fault_link_begin_answer(struct fault_link *link, const struct fault_answer *answer)
{
    link->answer = answer;
    link->answer_is_produced = false;
    link->answer_left = answer->in_answer.deed != FAULT_NONE
                            ? fault_left(&link->ready) + answer->in_answer.after
                            : SIZE_MAX;
    link->pace_left = answer->pace_bytes != 0 ? answer->pace_bytes : SIZE_MAX;
    link->pace_at_ms = 0;
}

static void produce(struct fault_link *link)
{
    if (link->protocol == FAULT_HTTP1)
        fault_http1_produce(link->http1, &link->ready);
    else if (link->protocol == FAULT_HTTP2)
        fault_http2_produce(link->http2, &link->ready);
}

static void put_on_wire(struct fault_link *link, size_t length)
{
    const uint8_t *bytes = link->ready.data + link->ready.at;
    if (link->tls == NULL)
        fault_append(&link->wire, bytes, length);
    else if (!fault_tls_send(link->tls, bytes, length, &link->wire))
        link->is_gone = true;
    fault_take(&link->ready, length);
    link->sent += length;
    if (link->answer_left != SIZE_MAX)
        link->answer_left -= length;
    if (link->pace_left != SIZE_MAX)
        link->pace_left -= length;
}

/* How many bytes may go now; 0: something happened instead. */
static size_t allowance(struct fault_link *link, uint64_t now_ms)
{
    const struct fault *fault = &link->ways.sent;
    if (fault->deed != FAULT_NONE && link->sent >= fault->after) {
        fault_link_do(link, fault->deed);
        return 0;
    }
    if (link->answer != NULL && link->answer_left == 0) {
        fault_link_do(link, link->answer->in_answer.deed);
        return 0;
    }
    if (link->answer != NULL && link->pace_left == 0) {
        if (link->pace_at_ms == 0)
            link->pace_at_ms = now_ms + (uint64_t)link->answer->pace_ms;
        if (now_ms < link->pace_at_ms)
            return 0;
        link->pace_at_ms = 0;
        link->pace_left = link->answer->pace_bytes;
    }
    size_t allowed = fault->deed != FAULT_NONE ? fault->after - link->sent : SIZE_MAX;
    if (link->answer != NULL && link->answer_left < allowed)
        allowed = link->answer_left;
    if (link->answer != NULL && link->pace_left < allowed)
        allowed = link->pace_left;
    return allowed;
}

/* The whole answer is on the wire. */
static void end_answer(struct fault_link *link)
{
    const enum fault_deed then = link->answer->then;
    link->answer = NULL;
    link->answer_left = SIZE_MAX;
    link->answer_is_produced = false;
    link->pace_at_ms = 0;
    fault_link_do(link, then);
}

static void fill_wire(struct fault_link *link, uint64_t now_ms)
{
    while (!fault_link_has_ended(link) && fault_left(&link->wire) < PIECE) {
        if (link->tls != NULL && !fault_tls_is_ready(link->tls))
            return;
        const size_t allowed = allowance(link, now_ms);
        if (allowed == 0)
            return;
        if (fault_left(&link->ready) == 0 && link->answer != NULL && link->answer_is_produced) {
            end_answer(link);
            continue;
        }
        if (fault_left(&link->ready) == 0)
            produce(link);
        const size_t left = fault_left(&link->ready);
        if (left == 0 && !link->answer_is_produced)
            return;
        if (left != 0)
            put_on_wire(link, left < allowed ? left : allowed);
    }
}

static void close_down(struct fault_link *link)
{
    if (link->closing == FAULT_RESET) {
        const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
        setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        link->is_gone = true;
    } else if (!link->is_closed_down) {
        shutdown(link->fd, SHUT_WR);
        link->is_closed_down = true;
    }
}

void fault_link_send(struct fault_link *link, uint64_t now_ms)
{
    for (;;) {
        fill_wire(link, now_ms);
        const size_t left = fault_left(&link->wire);
        if (left == 0)
            break;
        /* Whoever has seen the bytes also sees them counted. */
        pthread_mutex_lock(&link->peer->lock);
        const ssize_t written =
            send(link->fd, link->wire.data + link->wire.at, left, MSG_NOSIGNAL | MSG_DONTWAIT);
        link->peer->bytes_sent += written > 0 ? (uint64_t)written : 0;
        pthread_mutex_unlock(&link->peer->lock);
        if (written < 0) {
            link->is_gone = errno != EAGAIN;
            return;
        }
        fault_take(&link->wire, (size_t)written);
    }
    if (link->closing != FAULT_NONE)
        close_down(link);
}

bool fault_link_wants_room(const struct fault_link *link)
{
    return fault_left(&link->wire) != 0;
}

uint64_t fault_link_waits_until_ms(const struct fault_link *link)
{
    return fault_link_has_ended(link) ? 0 : link->pace_at_ms;
}
