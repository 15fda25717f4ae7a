/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/fault_peer_http2.c - requests of HTTP/2 by libnghttp2, any number at a time on a
 * connection; and answered one after the other. The contracts are in fault_peer_inside.h. */
#include "tests/support/fault_peer_inside.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FETCH = 16 * 1024, LINES_MAX = 100000, PINGS = 100, HEADER_BLOCK_MAX = 64 << 20 };

struct fault_http2 {
    struct fault_link *link;
    nghttp2_session *session;
    struct fault_exchange *exchanges; /* of streams that are open */
};

/* ---- in --------------------------------------------------------------------------------- */

static struct fault_exchange *exchange_of(struct fault_http2 *http2, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(http2->session, stream);
}

/* What goes out may close streams: those above the last one that a GOAWAY names. */
static void drain(struct fault_http2 *http2)
{
    const uint8_t *bytes;
    for (;;) {
        const ssize_t length = nghttp2_session_mem_send(http2->session, &bytes);
        if (length <= 0)
            return;
        fault_append(&http2->link->ready, bytes, (size_t)length);
    }
}

static void go_away(struct fault_http2 *http2, int32_t last_stream, uint32_t error)
{
    nghttp2_submit_goaway(http2->session, NGHTTP2_FLAG_NONE, last_stream, error, NULL, 0);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *state)
{
    struct fault_http2 *http2 = state;
    const int32_t stream = frame->hd.stream_id;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST ||
        fault_link_has_ended(http2->link))
        return 0;
    struct fault_exchange *exchange = fault_exchange_new(http2->link);
    const struct fault_answer *answer = &exchange->answer;
    exchange->stream = stream;
    exchange->next = http2->exchanges;
    http2->exchanges = exchange;
    nghttp2_session_set_stream_user_data(session, stream, exchange);
    if (answer->in_request.deed != FAULT_NONE && answer->in_request.after == 0)
        fault_link_do(http2->link, answer->in_request.deed);
    if (answer->goaway == FAULT_GOAWAY_INSTEAD) {
        exchange->is_dead = true;
        go_away(http2, stream - 2 > 0 ? stream - 2 : 0, answer->http2_error);
    } else if (answer->goaway == FAULT_GOAWAY_WITHIN) {
        go_away(http2, stream, answer->http2_error);
    }
    return 0;
}

/* HTTP/1.1's request line and Host come from pseudo-headers. */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
                     void *state)
{
    struct fault_exchange *exchange = exchange_of(state, frame->hd.stream_id);
    (void)session;
    (void)flags;
    if (exchange == NULL)
        return 0;
    struct fault_bytes *head = &exchange->head;
    if (name_length == 7 && memcmp(name, ":method", 7) == 0) {
        fault_append(&exchange->reply.front, value, value_length); /* kept for the request line */
    } else if (name_length == 5 && memcmp(name, ":path", 5) == 0) {
        fault_append(&exchange->reply.back, value, value_length);
    } else if (name[0] != ':' || memcmp(name, ":authority", name_length) == 0) {
        if (name[0] == ':')
            fault_append_text(head, "Host");
        else
            fault_append(head, name, name_length);
        fault_append_text(head, ": ");
        fault_append(head, value, value_length);
        fault_append_text(head, "\r\n");
    }
    return 0;
}

static void finish_head(struct fault_exchange *exchange)
{
    struct fault_bytes whole = {0};
    fault_append(&whole, exchange->reply.front.data, exchange->reply.front.length);
    fault_append_text(&whole, " ");
    fault_append(&whole, exchange->reply.back.data, exchange->reply.back.length);
    fault_append_text(&whole, " HTTP/2\r\n");
    fault_append(&whole, exchange->head.data, exchange->head.length);
    fault_append_text(&whole, "\r\n");
    fault_clear(&exchange->head);
    fault_clear(&exchange->reply.front);
    fault_clear(&exchange->reply.back);
    exchange->head = whole;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes,
                   size_t length, void *state)
{
    struct fault_http2 *http2 = state;
    struct fault_exchange *exchange = exchange_of(http2, stream);
    (void)session;
    (void)flags;
    if (exchange == NULL || exchange->is_dead || fault_link_has_ended(http2->link))
        return 0;
    fault_append(&exchange->body, bytes, length);
    const struct fault *fault = &exchange->answer.in_request;
    if (fault->deed != FAULT_NONE && exchange->body.length >= fault->after)
        fault_link_do(http2->link, fault->deed);
    return 0;
}

/* ---- out -------------------------------------------------------------------------------- */

struct fields {
    nghttp2_nv *list;
    size_t count;
    size_t room;
    struct fault_bytes text; /* what they point to */
};

static void add_field(struct fields *fields, uint8_t *name, size_t name_length, uint8_t *value,
                      size_t value_length)
{
    if (fields->count == fields->room) {
        fields->room = fields->room != 0 ? fields->room * 2 : 16;
        fields->list = realloc(fields->list, fields->room * sizeof *fields->list);
        fault_must(fields->list != NULL);
    }
    fields->list[fields->count++] = (nghttp2_nv){.name = name,
                                                 .namelen = name_length,
                                                 .value = value,
                                                 .valuelen = value_length,
                                                 .flags = NGHTTP2_NV_FLAG_NONE};
}

/* Lines with \r\n, in place: their names in small letters. */
static void add_lines(struct fields *fields, uint8_t *line, size_t length)
{
    const uint8_t *behind = line + length;
    while (line < behind) {
        uint8_t *end = memchr(line, '\r', (size_t)(behind - line));
        uint8_t *colon = memchr(line, ':', (size_t)(behind - line));
        fault_must(colon != NULL && end != NULL && colon < end);
        for (uint8_t *at = line; at < colon; at++)
            *at = (uint8_t)(*at >= 'A' && *at <= 'Z' ? *at + 32 : *at);
        uint8_t *value = colon + 1;
        while (*value == ' ')
            value++;
        add_field(fields, line, (size_t)(colon - line), value, (size_t)(end - value));
        line = end + 2;
    }
}

static void make_head_fields(struct fields *fields, struct fault_exchange *exchange)
{
    const struct fault_answer *answer = &exchange->answer;
    const size_t wanted = answer->header_repeats != 0 ? answer->header_repeats : 1;
    const size_t times = wanted < LINES_MAX ? wanted : LINES_MAX;
    char status[32];
    snprintf(status, sizeof status, "%d", exchange->reply.status);
    fault_append_text(&fields->text, status);
    fault_append(&fields->text, "", 1);
    const size_t lines = fields->text.length;
    fault_append_text(&fields->text, (const char *)exchange->reply.headers.data);
    for (size_t i = 0; i < times && answer->headers != NULL; i++)
        fault_append_text(&fields->text, answer->headers);
    if (answer->announced != 0) {
        char line[48];
        snprintf(line, sizeof line, "content-length: %zu\r\n", answer->announced);
        fault_append_text(&fields->text, line);
    }
    static uint8_t name[] = ":status";
    add_field(fields, name, sizeof name - 1, fields->text.data, strlen(status));
    add_lines(fields, fields->text.data + lines, fields->text.length - lines);
}

static void free_fields(struct fields *fields)
{
    fault_clear(&fields->text);
    free(fields->list);
}

static void submit_trailers(struct fault_http2 *http2, struct fault_exchange *exchange)
{
    struct fields fields = {0};
    add_lines(&fields, exchange->reply.trailers.data, exchange->reply.trailers.length);
    nghttp2_submit_trailer(http2->session, exchange->stream, fields.list, fields.count);
    free_fields(&fields);
}

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *out, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *state)
{
    struct fault_exchange *exchange = source->ptr;
    (void)session;
    (void)stream;
    const size_t got = fault_reply_read(&exchange->reply, out, room);
    if (exchange->reply.at >= exchange->reply.length) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (exchange->reply.has_trailers) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            submit_trailers(state, exchange);
        }
    }
    return (ssize_t)got;
}

static void reset_stream(struct fault_http2 *http2, struct fault_exchange *exchange)
{
    if (exchange->answer.in_trailers_only) {
        struct fields fields = {0};
        make_head_fields(&fields, exchange);
        nghttp2_submit_headers(http2->session, NGHTTP2_FLAG_NONE, exchange->stream, NULL,
                               fields.list, fields.count, NULL);
        drain(http2);
        free_fields(&fields);
    }
    exchange->is_dead = true;
    nghttp2_submit_rst_stream(http2->session, NGHTTP2_FLAG_NONE, exchange->stream,
                              exchange->answer.http2_error);
}

static void reply(struct fault_http2 *http2, struct fault_exchange *exchange)
{
    struct fields fields = {0};
    const int32_t stream = exchange->stream;
    drain(http2); /* so that faults count bytes of the answer alone */
    if (exchange_of(http2, stream) != exchange)
        return;
    fault_exchange_reply(exchange);
    if (exchange->answer.resets_stream) {
        reset_stream(http2, exchange);
        return;
    }
    make_head_fields(&fields, exchange);
    const nghttp2_data_provider body = {{.ptr = exchange}, read_body};
    const bool is_head_alone = exchange->reply.length == 0 && !exchange->reply.has_trailers;
    fault_link_begin_answer(http2->link, &exchange->answer);
    nghttp2_submit_response(http2->session, exchange->stream, fields.list, fields.count,
                            is_head_alone ? NULL : &body);
    free_fields(&fields);
}

/* ---- frames ----------------------------------------------------------------------------- */

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *state)
{
    struct fault_http2 *http2 = state;
    struct fault_exchange *exchange = exchange_of(http2, frame->hd.stream_id);
    (void)session;
    if (exchange == NULL || exchange->is_dead || fault_link_has_ended(http2->link))
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        finish_head(exchange);
        if (exchange->answer.is_early)
            reply(http2, exchange);
        exchange = exchange_of(http2, frame->hd.stream_id);
    }
    const bool is_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
                        (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA);
    if (!is_end || exchange == NULL || exchange->is_whole)
        return 0;
    fault_exchange_finish(exchange);
    if (http2->link->ways.without_window)
        fault_link_do(http2->link, FAULT_STALL);
    else if (!exchange->is_replying)
        reply(http2, exchange);
    return 0;
}

/* The answer's end is on its way. */
static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *state)
{
    struct fault_http2 *http2 = state;
    struct fault_exchange *exchange = exchange_of(http2, frame->hd.stream_id);
    (void)session;
    if (exchange == NULL || !exchange->is_replying || exchange->is_dead ||
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0 ||
        (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
        return 0;
    exchange->is_replied = true;
    if (exchange->answer.goaway == FAULT_GOAWAY_AFTER)
        go_away(http2, exchange->stream, exchange->answer.http2_error);
    if (http2->link->answer == &exchange->answer)
        http2->link->answer_is_produced = true;
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t error, void *state)
{
    struct fault_http2 *http2 = state;
    struct fault_exchange *exchange = exchange_of(http2, stream);
    (void)session;
    (void)error;
    if (exchange == NULL)
        return 0;
    if (http2->link->answer == &exchange->answer) {
        /* The bytes of its end are still to be sent; what follows needs a copy. */
        http2->link->kept_answer = exchange->answer;
        http2->link->answer = &http2->link->kept_answer;
        http2->link->answer_is_produced = true;
    }
    struct fault_exchange **at = &http2->exchanges;
    while (*at != exchange)
        at = &(*at)->next;
    *at = exchange->next;
    fault_exchange_free(exchange);
    return 0;
}

/* ---- the connection --------------------------------------------------------------------- */

static nghttp2_session *new_session(struct fault_http2 *http2, const struct fault_connection *ways)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option = NULL;
    nghttp2_session *session;
    fault_must(nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_option_set_max_send_header_block_length(option, HEADER_BLOCK_MAX);
    nghttp2_option_set_no_http_messaging(option, 1);
    nghttp2_option_set_no_auto_window_update(option, ways->without_updates || ways->without_window);
    fault_must(nghttp2_session_server_new2(&session, callbacks, http2, option) == 0);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    return session;
}

struct fault_http2 *fault_http2_new(struct fault_link *link)
{
    struct fault_http2 *http2 = calloc(1, sizeof *http2);
    const struct fault_connection *ways = &link->ways;
    nghttp2_settings_entry settings[2];
    size_t count = 0;
    fault_must(http2 != NULL);
    http2->link = link;
    http2->session = new_session(http2, ways);
    if (ways->without_window)
        settings[count++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
    if (ways->max_streams != 0 || ways->without_streams)
        settings[count++] =
            (nghttp2_settings_entry){NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, ways->max_streams};
    if (!ways->without_settings)
        nghttp2_submit_settings(http2->session, NGHTTP2_FLAG_NONE, settings, count);
    if (ways->goes_away)
        go_away(http2, 0, ways->http2_error);
    return http2;
}

void fault_http2_free(struct fault_http2 *http2)
{
    if (http2 == NULL)
        return;
    nghttp2_session_del(http2->session);
    while (http2->exchanges != NULL) {
        struct fault_exchange *exchange = http2->exchanges;
        http2->exchanges = exchange->next;
        fault_exchange_free(exchange);
    }
    free(http2);
}

void fault_http2_receive(struct fault_http2 *http2, const void *bytes, size_t length)
{
    const ssize_t used = nghttp2_session_mem_recv(http2->session, bytes, length);
    if (used < 0 || (size_t)used < length)
        fault_link_do(http2->link, FAULT_FIN);
}

void fault_http2_produce(struct fault_http2 *http2, struct fault_bytes *ready)
{
    const uint8_t *bytes;
    static const uint8_t ping[8];
    for (int i = 0; http2->link->ways.floods && i < PINGS; i++)
        nghttp2_submit_ping(http2->session, NGHTTP2_FLAG_NONE, ping);
    while (fault_left(ready) < FETCH) {
        const ssize_t length = nghttp2_session_mem_send(http2->session, &bytes);
        if (length < 0)
            fault_link_do(http2->link, FAULT_FIN);
        if (length <= 0)
            break;
        fault_append(ready, bytes, (size_t)length);
    }
    if (fault_left(ready) == 0 && !nghttp2_session_want_read(http2->session) &&
        !nghttp2_session_want_write(http2->session))
        fault_link_do(http2->link, FAULT_FIN);
}
