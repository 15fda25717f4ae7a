/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/http_sink.c - a fault receiver (fault_peer.h) with the answers of a simpler script.
 * The contracts are in http_sink.h. */
#include "tests/support/http_sink.h"

#include "tests/support/fault_peer_inside.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { STATUS_LINE = sizeof "HTTP/1.1 200 Scripted\r\n" - 1, HEAD_MOST = 1024, LONGER = 100 };

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
static void decide(void *state, const struct fault_peer_request *request,
                   struct fault_answer *answer)
{
    struct fault_peer *peer = state;
    pthread_mutex_lock(&peer->lock);
    const size_t limit = peer->body_limit;
    const bool is_too_large = limit != 0 && request->body_length > limit;
    peer->script_at -= is_too_large;
    pthread_mutex_unlock(&peer->lock);
    if (is_too_large)
        *answer = translate(&(struct http_sink_answer){.status = 413});
}

struct http_sink *http_sink_start(const struct http_sink_answer *script, size_t count)
{
    struct fault_answer *answers = calloc(count + 1, sizeof *answers);
    fault_must(answers != NULL);
    for (size_t i = 0; i < count; i++)
        answers[i] = translate(&script[i]);
    struct fault_peer *peer = fault_peer_start(
        &(struct fault_peer_options){.script = answers,
                                     .script_count = count,
                                     .otherwise = translate(&(struct http_sink_answer){0}),
                                     .decide = decide,
                                     .only_http1 = true,
                                     .reads_nothing = true});
    pthread_mutex_lock(&peer->lock);
    peer->options.decide_state = peer;
    peer->owned_script = answers;
    pthread_mutex_unlock(&peer->lock);
    return peer;
}

void http_sink_hold(struct http_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
}

void http_sink_go_on(struct http_sink *sink)
{
    pthread_mutex_unlock(&sink->lock);
}

void http_sink_limit(struct http_sink *sink, size_t body_bytes)
{
    pthread_mutex_lock(&sink->lock);
    sink->body_limit = body_bytes;
    pthread_mutex_unlock(&sink->lock);
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
