/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/fault_peer_exchange.c - one request: which answer it gets, and what is kept of it.
 * The contracts are in fault_peer.h and fault_peer_inside.h. */
#include "tests/support/fault_peer_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *fault_request_header(const struct fault_peer_request *request, const char *name,
                                 char *out, size_t size)
{
    const size_t name_length = strlen(name);
    out[0] = '\0';
    for (const char *line = strstr(request->head, "\r\n"); line != NULL && line[2] != '\0';
         line = strstr(line + 2, "\r\n")) {
        const char *value = line + 2 + name_length;
        if (strncasecmp(line + 2, name, name_length) != 0 || *value != ':')
            continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(out, size, "%.*s", (int)strcspn(value, "\r"), value);
        break;
    }
    return out;
}

static enum fault_format format_of(const struct fault_bytes *head)
{
    char type[64];
    const struct fault_peer_request request = {.head =
                                                   head->data != NULL ? (char *)head->data : ""};
    fault_request_header(&request, "Content-Type", type, sizeof type);
    return strcmp(type, "application/x-protobuf") == 0  ? FAULT_PROTOBUF
           : strncmp(type, "application/json", 16) == 0 ? FAULT_JSON
           : strncmp(type, "application/grpc", 16) == 0 ? FAULT_GRPC
                                                        : FAULT_OTHER;
}

static const char *encoding_of(const struct fault_peer_request *request)
{
    static const char *const known[] = {"identity", "gzip", "zstd"};
    char name[32];
    fault_request_header(request,
                         request->format == FAULT_GRPC ? "grpc-encoding" : "Content-Encoding", name,
                         sizeof name);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i]) == 0)
            return known[i];
    return name[0] == '\0' ? "identity" : "unknown";
}

static bool is_for_proxy(const struct fault_link *link)
{
    return link->protocol == FAULT_HTTP1 &&
           (link->ways.accepts_connect || link->ways.refuses_connect != 0);
}

struct fault_exchange *fault_exchange_new(struct fault_link *link)
{
    struct fault_peer *peer = link->peer;
    struct fault_exchange *exchange = calloc(1, sizeof *exchange);
    fault_must(exchange != NULL);
    exchange->link = link;
    exchange->number = SIZE_MAX;
    if (is_for_proxy(link))
        return exchange;
    pthread_mutex_lock(&peer->lock);
    exchange->number = peer->begun_count++;
    const size_t at = peer->script_at++;
    exchange->answer =
        at < peer->options.script_count ? peer->options.script[at] : peer->options.otherwise;
    pthread_cond_broadcast(&peer->changed);
    pthread_mutex_unlock(&peer->lock);
    return exchange;
}

void fault_exchange_free(struct fault_exchange *exchange)
{
    if (exchange == NULL)
        return;
    fault_clear(&exchange->head);
    fault_clear(&exchange->body);
    fault_reply_free(&exchange->reply);
    free(exchange);
}

void fault_exchange_reply(struct fault_exchange *exchange)
{
    exchange->is_replying = true;
    fault_reply_make(&exchange->reply, &exchange->answer, format_of(&exchange->head));
}

static void refuse(struct fault_answer *answer, enum fault_format format,
                   enum fault_refusal refusal)
{
    *answer = (struct fault_answer){0};
    if (format == FAULT_GRPC) {
        answer->rpc_code = 8;
        answer->message = "grpc: received message after decompression larger than max";
        answer->in_trailers_only = true;
    } else if (refusal == FAULT_REFUSAL_413) {
        answer->status = 413;
        answer->content_type = "text/plain";
        answer->body = "too large\n";
        answer->body_length = 10;
    } else {
        answer->status = 400;
        answer->rpc_code = 3;
        answer->message = "http: request body too large";
    }
}

void fault_request_free(struct fault_peer_request *request)
{
    free((void *)(uintptr_t)request->head);
    free((void *)(uintptr_t)request->body);
    free((void *)(uintptr_t)request->plain);
    free(request);
}

static void keep(struct fault_peer *peer, struct fault_peer_request *request,
                 const struct fault_bytes *ids)
{
    struct fault_span_counts *counts = &peer->spans.counts;
    pthread_mutex_lock(&peer->lock);
    if (request->problem != NULL && peer->problem == NULL)
        peer->problem = request->problem;
    if (request->plain_length > counts->largest_request)
        counts->largest_request = request->plain_length;
    if (!request->is_too_large && !peer->options.keeps_none)
        fault_spans_add(&peer->spans, ids, request->was_taken);
    peer->requests = realloc(peer->requests, (peer->request_count + 1) * sizeof(*peer->requests));
    fault_must(peer->requests != NULL);
    const bool forgets = peer->options.forgets || peer->options.keeps_none;
    peer->requests[peer->request_count++] = forgets ? NULL : request;
    pthread_cond_broadcast(&peer->changed);
    pthread_mutex_unlock(&peer->lock);
    if (forgets)
        fault_request_free(request);
}

void fault_exchange_finish(struct fault_exchange *exchange)
{
    struct fault_peer *peer = exchange->link->peer;
    struct fault_peer_request *request = calloc(1, sizeof *request);
    struct fault_bytes ids = {0};
    fault_must(request != NULL);
    exchange->is_whole = true;
    fault_append(&exchange->head, "", 0);
    fault_append(&exchange->body, "", 0);
    request->number = exchange->number;
    request->connection = exchange->link->number;
    request->http = exchange->link->protocol == FAULT_HTTP2 ? 2 : 1;
    request->head = strdup((const char *)exchange->head.data);
    request->body = exchange->body.data;
    request->body_length = exchange->body.length;
    exchange->body = (struct fault_bytes){0};
    request->format = format_of(&exchange->head);
    request->encoding = encoding_of(request);
    const bool looks = !peer->options.keeps_none && !peer->options.reads_nothing;
    if (looks)
        fault_uncover(request);
    request->is_too_large = peer->options.max_request_bytes != 0 &&
                            request->plain_length > peer->options.max_request_bytes;
    if (looks && !request->is_too_large)
        fault_examine(request, &ids);
    if (!exchange->is_replying && request->is_too_large)
        refuse(&exchange->answer, request->format, peer->options.refusal);
    if (!exchange->is_replying && peer->options.decide != NULL)
        peer->options.decide(peer->options.decide_state, request, &exchange->answer);
    request->was_taken = exchange->number != SIZE_MAX &&
                         fault_answer_is_success(&exchange->answer, request->format) &&
                         !exchange->link->ways.without_window;
    if (request->was_taken && exchange->answer.rejected > 0) {
        pthread_mutex_lock(&peer->lock);
        peer->spans.counts.rejected += (uint64_t)exchange->answer.rejected;
        pthread_mutex_unlock(&peer->lock);
    }
    keep(peer, request, &ids);
    fault_clear(&ids);
}
