/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/fault_peer_http1.c - requests of HTTP/1.1 are read one after the other, with their
 * length said or in chunks; and answered. The contracts are in fault_peer_inside.h. */
#include "tests/support/fault_peer_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 64, FETCH = 16 * 1024 };

struct fault_http1 {
    struct fault_link *link;
    struct fault_bytes in;
    struct fault_exchange *exchange; /* NULL: between two requests */
    size_t head_length;              /* 0: not whole yet */
    size_t body_length;
    bool is_chunked;
    size_t seen; /* bytes of the request */

    bool said_head;
    size_t repeats; /* of the header lines, so far */
};

struct fault_http1 *fault_http1_new(struct fault_link *link)
{
    struct fault_http1 *http1 = calloc(1, sizeof *http1);
    fault_must(http1 != NULL);
    http1->link = link;
    return http1;
}

void fault_http1_free(struct fault_http1 *http1)
{
    if (http1 == NULL)
        return;
    fault_exchange_free(http1->exchange);
    fault_clear(&http1->in);
    free(http1);
}

/* ---- in --------------------------------------------------------------------------------- */

static void begin_reply(struct fault_http1 *http1)
{
    struct fault_exchange *exchange = http1->exchange;
    http1->said_head = false;
    http1->repeats = 0;
    fault_exchange_reply(exchange);
    if (exchange->answer.resets_stream)
        fault_link_do(http1->link, FAULT_RESET);
    else
        fault_link_begin_answer(http1->link, &exchange->answer);
}

/* A proxy's part: after 200 the peer is the host itself. */
static void take_connect(struct fault_http1 *http1)
{
    struct fault_link *link = http1->link;
    char line[64];
    fault_exchange_finish(http1->exchange);
    const int status = link->ways.refuses_connect != 0 ? link->ways.refuses_connect : 200;
    snprintf(line, sizeof line, "HTTP/1.1 %d Proxy\r\n%s\r\n", status,
             status == 200 ? "" : "Content-Length: 0\r\n");
    fault_append_text(&link->wire, line);
    fault_exchange_free(http1->exchange);
    http1->exchange = NULL;
    fault_clear(&http1->in);
    http1->head_length = 0;
    if (status != 200)
        return;
    link->ways.accepts_connect = false;
    link->received = 0;
    link->protocol = FAULT_UNKNOWN; /* the caller lets go of http1 */
    if (link->peer->tls != NULL)
        fault_link_start_tls(link);
}

static void read_head(struct fault_http1 *http1)
{
    char value[64];
    const char *text = (const char *)http1->in.data;
    const char *end = memmem(text, http1->in.length, "\r\n\r\n", 4);
    if (end == NULL)
        return;
    struct fault_exchange *exchange = http1->exchange;
    http1->head_length = (size_t)(end - text) + 4;
    fault_append(&exchange->head, text, http1->head_length);
    const struct fault_peer_request head = {.head = (const char *)exchange->head.data};
    fault_request_header(&head, "Content-Length", value, sizeof value);
    http1->body_length = strtoul(value, NULL, 10);
    http1->is_chunked =
        strcmp(fault_request_header(&head, "Transfer-Encoding", value, sizeof value), "chunked") ==
        0;
    if (exchange->answer.is_early)
        begin_reply(http1);
}

/* Move what is there of a body in chunks. Returns the length of all if it is whole, else 0. */
static size_t read_chunks(struct fault_http1 *http1)
{
    struct fault_bytes *body = &http1->exchange->body;
    size_t at = http1->head_length;
    body->length = 0;
    for (;;) {
        const char *line = (const char *)http1->in.data + at;
        const char *end = memmem(line, http1->in.length - at, "\r\n", 2);
        if (end == NULL)
            return 0;
        const size_t size = strtoul(line, NULL, 16);
        at = (size_t)(end + 2 - (const char *)http1->in.data);
        if (http1->in.length < at + size + 2)
            return 0;
        fault_append(body, http1->in.data + at, size);
        at += size + 2;
        if (size == 0)
            return at;
    }
}

static size_t read_body(struct fault_http1 *http1)
{
    if (http1->is_chunked)
        return read_chunks(http1);
    const size_t whole = http1->head_length + http1->body_length;
    if (http1->in.length < whole)
        return 0;
    fault_append(&http1->exchange->body, http1->in.data + http1->head_length, http1->body_length);
    return whole;
}

/* Leave the request behind when it is both read and answered. */
static void end_if_done(struct fault_http1 *http1)
{
    struct fault_exchange *exchange = http1->exchange;
    if (exchange == NULL || !exchange->is_whole || !exchange->is_replied ||
        http1->link->answer != NULL)
        return;
    fault_exchange_free(exchange);
    http1->exchange = NULL;
    http1->head_length = 0;
}

/* Go on with what has been read. False: more must come, or be answered, before. */
static bool digest(struct fault_http1 *http1)
{
    end_if_done(http1);
    if (http1->in.length == 0 || (http1->exchange != NULL && http1->exchange->is_whole))
        return false;
    if (http1->exchange == NULL) {
        http1->exchange = fault_exchange_new(http1->link);
        http1->seen = 0;
    }
    const struct fault *fault = &http1->exchange->answer.in_request;
    if (fault->deed != FAULT_NONE && http1->in.length >= fault->after) {
        fault_link_do(http1->link, fault->deed);
        return false;
    }
    if (http1->head_length == 0)
        read_head(http1);
    const size_t whole = http1->head_length != 0 ? read_body(http1) : 0;
    if (whole == 0)
        return false;
    if (strncmp((const char *)http1->in.data, "CONNECT ", 8) == 0) {
        take_connect(http1);
        return false;
    }
    fault_shift(&http1->in, whole);
    fault_exchange_finish(http1->exchange);
    if (!http1->exchange->is_replying)
        begin_reply(http1);
    return true;
}

void fault_http1_receive(struct fault_http1 *http1, const void *bytes, size_t length)
{
    struct fault_link *link = http1->link;
    fault_append(&http1->in, bytes, length);
    while (!fault_link_has_ended(link) && digest(http1))
        continue;
    if (link->protocol == FAULT_UNKNOWN) { /* a tunnel now */
        link->http1 = NULL;
        fault_http1_free(http1);
    }
}

/* ---- out -------------------------------------------------------------------------------- */

static void say_head(struct fault_http1 *http1, struct fault_bytes *ready)
{
    const struct fault_answer *answer = &http1->exchange->answer;
    const struct fault_reply *reply = &http1->exchange->reply;
    char line[96];
    if (answer->before != NULL)
        fault_append_text(ready, answer->before);
    snprintf(line, sizeof line, "HTTP/1.1 %d Scripted\r\n", reply->status);
    fault_append_text(ready, line);
    fault_append(ready, reply->headers.data, reply->headers.length);
    if (reply->length == SIZE_MAX && answer->announced == 0)
        snprintf(line, sizeof line, "Transfer-Encoding: chunked\r\n");
    else
        snprintf(line, sizeof line, "Content-Length: %zu\r\n",
                 answer->announced != 0 ? answer->announced : reply->length);
    if (reply->status >= 200 && reply->status != 204 && reply->status != 304)
        fault_append_text(ready, line);
    http1->said_head = true;
}

/* The header lines of the script, as often as they are to come. False: there are none left. */
static bool say_more_lines(struct fault_http1 *http1, struct fault_bytes *ready)
{
    const struct fault_answer *answer = &http1->exchange->answer;
    const size_t times = answer->header_repeats != 0 ? answer->header_repeats : 1;
    if (http1->repeats == SIZE_MAX || answer->headers == NULL)
        return false;
    for (size_t i = 0; i < LINES && http1->repeats < times; i++) {
        fault_append_text(ready, answer->headers);
        http1->repeats += times != FAULT_ENDLESS;
    }
    return http1->repeats < times;
}

static void say_body(struct fault_http1 *http1, struct fault_bytes *ready)
{
    struct fault_reply *reply = &http1->exchange->reply;
    uint8_t piece[FETCH];
    char line[32];
    const bool is_chunked = reply->length == SIZE_MAX && http1->exchange->answer.announced == 0;
    const size_t got = fault_reply_read(reply, piece, sizeof piece);
    if (got == 0) {
        http1->exchange->is_replied = true;
        http1->link->answer_is_produced = true;
        return;
    }
    snprintf(line, sizeof line, "%zx\r\n", got);
    if (is_chunked)
        fault_append_text(ready, line);
    fault_append(ready, piece, got);
    if (is_chunked)
        fault_append_text(ready, "\r\n");
}

static void say_raw(struct fault_http1 *http1, struct fault_bytes *ready)
{
    fault_append_text(ready, http1->exchange->answer.raw);
    http1->exchange->is_replied = true;
    http1->link->answer_is_produced = true;
}

void fault_http1_produce(struct fault_http1 *http1, struct fault_bytes *ready)
{
    while (digest(http1))
        continue;
    struct fault_exchange *exchange = http1->exchange;
    if (exchange == NULL || !exchange->is_replying || exchange->is_replied ||
        fault_link_has_ended(http1->link))
        return;
    if (exchange->answer.raw != NULL) {
        say_raw(http1, ready);
        return;
    }
    if (!http1->said_head)
        say_head(http1, ready);
    if (http1->repeats != SIZE_MAX && say_more_lines(http1, ready))
        return;
    if (http1->repeats != SIZE_MAX) {
        fault_append_text(ready, "\r\n");
        http1->repeats = SIZE_MAX;
    }
    say_body(http1, ready);
}
