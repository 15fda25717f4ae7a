/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/http_sink.c - a fault receiver (fault_peer.h) with the answers of a simpler script.
 * The contracts are in http_sink.h. */
#include "tests/support/http_sink.h"

#include "tests/support/fault_peer_inside.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { STATUS_LINE = sizeof "HTTP/1.1 200 Scripted\r\n" - 1, HEAD_MOST = 1024, LONGER = 100 };

struct http_sink {
    pthread_mutex_t lock; /* guards the two below, for `decide` */
    struct fault_peer *peer;
    size_t limit; /* of a body; 0: none */
    struct fault_answer *script;
    struct http_sink_request *requests[4096]; /* those that were asked for */
};

static struct fault_answer translate(const struct http_sink_answer *from)
{
    static const char blanks[1024] = {' '};
    struct fault_answer answer = {.status = from->status,
                                  .headers = from->headers,
                                  .content_type = "",
                                  .body = from->body != NULL ? from->body : "",
                                  .body_length = from->body_length};
    switch (from->then) {
    case HTTP_SINK_KEEP:
        break;
    case HTTP_SINK_CLOSE:
        answer.then = FAULT_FIN;
        break;
    case HTTP_SINK_HANG:
        answer.in_answer = (struct fault){FAULT_STALL, 0};
        break;
    case HTTP_SINK_NO_ANSWER:
        answer.in_answer = (struct fault){FAULT_FIN, 0};
        break;
    case HTTP_SINK_RESET:
        answer.in_answer = (struct fault){FAULT_RESET, 0};
        break;
    case HTTP_SINK_RESET_EARLY:
        answer.in_request = (struct fault){FAULT_RESET, HEAD_MOST};
        break;
    case HTTP_SINK_CUT_HEAD:
        answer.in_answer = (struct fault){FAULT_FIN, STATUS_LINE};
        break;
    case HTTP_SINK_CUT_BODY:
    case HTTP_SINK_STALL_BODY:
        answer.announced = from->body_length + LONGER;
        answer.then = from->then == HTTP_SINK_CUT_BODY ? FAULT_FIN : FAULT_STALL;
        break;
    case HTTP_SINK_ENDLESS_HEAD:
        answer.headers = "X-More: of the same, and then some, and more, and still more\r\n";
        answer.header_repeats = FAULT_ENDLESS;
        break;
    case HTTP_SINK_ENDLESS_BODY:
        answer.body_repeats = FAULT_ENDLESS;
        if (from->body_length == 0) {
            answer.body = blanks;
            answer.body_length = sizeof blanks;
        }
        break;
    }
    return answer;
}

/* What is too large takes nothing of the script. */
static void decide(void *state, const struct fault_request *request, struct fault_answer *answer)
{
    struct http_sink *sink = state;
    pthread_mutex_lock(&sink->lock);
    const bool is_too_large = sink->limit != 0 && request->body_length > sink->limit;
    struct fault_peer *peer = sink->peer;
    pthread_mutex_unlock(&sink->lock);
    if (!is_too_large)
        return;
    *answer = translate(&(struct http_sink_answer){.status = 413});
    pthread_mutex_lock(&peer->lock);
    peer->script_at--;
    pthread_mutex_unlock(&peer->lock);
}

struct http_sink *http_sink_start(const struct http_sink_answer *script, size_t count)
{
    struct http_sink *sink = calloc(1, sizeof *sink);
    fault_must(sink != NULL);
    sink->script = calloc(count + 1, sizeof *sink->script);
    fault_must(sink->script != NULL);
    for (size_t i = 0; i < count; i++)
        sink->script[i] = translate(&script[i]);
    pthread_mutex_init(&sink->lock, NULL);
    pthread_mutex_lock(&sink->lock);
    sink->peer = fault_peer_start(
        &(struct fault_peer_options){.script = sink->script,
                                     .script_count = count,
                                     .otherwise = translate(&(struct http_sink_answer){0}),
                                     .decide = decide,
                                     .decide_state = sink,
                                     .only_http1 = true,
                                     .reads_nothing = true});
    pthread_mutex_unlock(&sink->lock);
    return sink;
}

void http_sink_stop(struct http_sink *sink)
{
    fault_peer_stop(sink->peer);
    for (size_t i = 0; i < sizeof sink->requests / sizeof *sink->requests; i++)
        free(sink->requests[i]);
    pthread_mutex_destroy(&sink->lock);
    free(sink->script);
    free(sink);
}

const char *http_sink_url(const struct http_sink *sink)
{
    return fault_peer_url(sink->peer);
}

uint16_t http_sink_port(const struct http_sink *sink)
{
    return fault_peer_port(sink->peer);
}

bool http_sink_wait(struct http_sink *sink, size_t requests)
{
    return fault_peer_wait(sink->peer, requests);
}

void http_sink_settle(struct http_sink *sink)
{
    fault_peer_settle(sink->peer);
}

void http_sink_hold(struct http_sink *sink)
{
    pthread_mutex_lock(&sink->peer->lock);
}

void http_sink_go_on(struct http_sink *sink)
{
    pthread_mutex_unlock(&sink->peer->lock);
}

void http_sink_limit(struct http_sink *sink, size_t body_bytes)
{
    pthread_mutex_lock(&sink->lock);
    sink->limit = body_bytes;
    pthread_mutex_unlock(&sink->lock);
}

size_t http_sink_requests(struct http_sink *sink)
{
    return fault_peer_requests(sink->peer);
}

size_t http_sink_connections(struct http_sink *sink)
{
    return fault_peer_connections(sink->peer);
}

size_t http_sink_open_connections(struct http_sink *sink)
{
    size_t count = 0;
    fault_peer_settle(sink->peer);
    for (size_t i = 0; i < FAULT_LINKS; i++)
        count += sink->peer->links[i].fd != -1;
    return count;
}

uint64_t http_sink_bytes_sent(struct http_sink *sink)
{
    return fault_peer_bytes_sent(sink->peer);
}

const struct http_sink_request *http_sink_request(struct http_sink *sink, size_t index)
{
    const struct fault_request *came = fault_peer_request(sink->peer, index);
    if (came == NULL)
        return NULL;
    fault_must(index < sizeof sink->requests / sizeof *sink->requests);
    if (sink->requests[index] == NULL) {
        sink->requests[index] = malloc(sizeof **sink->requests);
        fault_must(sink->requests[index] != NULL);
        *sink->requests[index] = (struct http_sink_request){
            .head = came->head,
            .body = came->body,
            .body_length = came->body_length,
            .connection = came->connection,
        };
    }
    return sink->requests[index];
}

const char *http_sink_header(const struct http_sink_request *request, const char *name, char *out,
                             size_t size)
{
    return fault_request_header(&(struct fault_request){.head = request->head}, name, out, size);
}

uint16_t http_sink_closed_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    fault_must(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    fault_must(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    return ntohs(address.sin_port); /* and it stays bound, or another program would get it */
}
