/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/dead_peer.c - the contracts are in dead_peer.h. */
#include "tests/support/dead_peer.h"

#include "tests/support/fault_peer_inside.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SMALL_BUFFER = 4096, BODY = 400, HTTP2_CANCEL = 8, FILLERS = 8 };

static const char busy[] = "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
static const char goaway[] = "\0\0\0\4\0\0\0\0\0"                   /* SETTINGS */
                             "\0\0\x8\7\0\0\0\0\0\0\0\0\0\0\0\0\1"; /* GOAWAY: protocol error */

const struct dead_scene dead_scenes[] = {
    [DEAD_PEER_REFUSES] = {.name = "refuses", .protocols = FOR_ALL},
    [DEAD_PEER_FULL_BACKLOG] = {.name = "full_backlog", .protocols = FOR_ALL},
    [DEAD_PEER_NEVER_READS] = {.name = "never_reads",
                               .protocols = FOR_ALL,
                               .receive_buffer = SMALL_BUFFER,
                               .connection = {.received = {FAULT_DEAF, 0}}},
    [DEAD_PEER_NEVER_ANSWERS] = {.name = "never_answers",
                                 .protocols = FOR_ALL,
                                 .answer = {.in_answer = {FAULT_STALL, 0}},
                                 .may_receive = true},
    [DEAD_PEER_TRICKLES] = {.name = "trickles",
                            .protocols = FOR_ALL,
                            .answer = {.pace_bytes = 1, .pace_ms = 1000},
                            .may_receive = true},
    [DEAD_PEER_RESETS] = {.name = "resets",
                          .protocols = FOR_ALL,
                          .answer = {.in_request = {FAULT_RESET, BODY},
                                     .in_answer = {FAULT_RESET, 0}}},
    [DEAD_PEER_CUTS_HEAD] = {.name = "cuts_head",
                             .protocols = FOR_ALL,
                             .answer = {.in_answer = {FAULT_FIN, 10}},
                             .may_receive = true},
    [DEAD_PEER_CONTINUES] = {.name = "continues",
                             .protocols = FOR_HTTP,
                             .answer = {.before = "HTTP/1.1 100 Continue\r\n\r\n",
                                        .in_answer = {FAULT_STALL, 25}},
                             .may_receive = true},
    [DEAD_PEER_BUSY] = {.name = "busy", .protocols = FOR_ALL, .answer = {.status = 503}},
    [DEAD_PEER_ENDLESS_BODY] = {.name = "endless_body",
                                .protocols = FOR_ALL,
                                .answer = {.status = 503,
                                           .body_repeats = FAULT_ENDLESS,
                                           .pace_bytes = 64,
                                           .pace_ms = 100}},
    [DEAD_PEER_HTTP2] = {.name = "http2_goaway",
                         .protocols = FOR_HTTP,
                         .connection = {.retort = goaway,
                                        .retort_length = sizeof goaway - 1,
                                        .after_retort = FAULT_STALL},
                         .may_end = true},
    [DEAD_PEER_SILENT_TLS] = {.name = "silent_tls",
                              .protocols = FOR_ALL,
                              .has_https = true,
                              .connection = {.received = {FAULT_STALL, 0}}},
    [DEAD_PEER_PLAIN] = {.name = "plain",
                         .protocols = FOR_ALL,
                         .has_https = true,
                         .connection = {.retort = busy,
                                        .retort_length = sizeof busy - 1,
                                        .after_retort = FAULT_FIN}},
    [DEAD_PEER_NO_NAME] = {.name = "no_name", .protocols = FOR_ALL},
    [DEAD_PEER_SILENT_PROXY] = {.name = "silent_proxy",
                                .protocols = FOR_ALL,
                                .connection = {.received = {FAULT_STALL, 0}}},
    {.name = "endless_head",
     .protocols = FOR_HTTP,
     .answer = {.status = 503,
                .headers = "X-More: more\r\n",
                .header_repeats = FAULT_ENDLESS,
                .pace_bytes = 64,
                .pace_ms = 100}},
    {.name = "tls_no_hello",
     .protocols = FOR_ALL,
     .has_tls = true,
     .connection = {.in_handshake = {FAULT_STALL, 0}}},
    {.name = "tls_half_hello",
     .protocols = FOR_ALL,
     .has_tls = true,
     .connection = {.in_handshake = {FAULT_STALL, 60}}},
    {.name = "tls_half_certificate",
     .protocols = FOR_ALL,
     .has_tls = true,
     .connection = {.in_handshake = {FAULT_STALL, 400}}},
    {.name = "tls_never_answers",
     .protocols = FOR_ALL,
     .has_tls = true,
     .answer = {.in_answer = {FAULT_STALL, 0}},
     .may_receive = true},
    {.name = "tls_resets_body",
     .protocols = FOR_ALL,
     .has_tls = true,
     .answer = {.in_request = {FAULT_RESET, BODY}, .in_answer = {FAULT_RESET, 0}}},
    {.name = "goes_away", .protocols = FOR_GRPC, .connection = {.goes_away = true}},
    {.name = "goes_away_below", .protocols = FOR_GRPC, .answer = {.goaway = FAULT_GOAWAY_INSTEAD}},
    {.name = "no_settings", .protocols = FOR_GRPC, .connection = {.without_settings = true}},
    {.name = "only_settings", .protocols = FOR_GRPC, .connection = {.sent = {FAULT_STALL, 9}}},
    {.name = "no_window",
     .protocols = FOR_GRPC,
     .connection = {.without_window = true},
     .may_receive = true},
    {.name = "no_streams",
     .protocols = FOR_GRPC,
     .connection = {.without_streams = true},
     .may_receive = true,
     .answer = {.in_answer = {FAULT_STALL, 0}}},
    {.name = "floods",
     .protocols = FOR_GRPC,
     .connection = {.floods = true},
     .answer = {.status = 503}},
    {.name = "resets_stream",
     .protocols = FOR_GRPC,
     .answer = {.resets_stream = true, .http2_error = HTTP2_CANCEL},
     .may_receive = true},
    {.name = "no_trailers",
     .protocols = FOR_GRPC,
     .answer = {.in_answer = {FAULT_STALL, 40}},
     .may_receive = true},
};
const size_t dead_scene_count = sizeof dead_scenes / sizeof *dead_scenes;

struct dead_peer {
    struct fault_peer *fault;
    int listener; /* of the kernel's; -1: none */
    int fillers[FILLERS];
    char url[160];
    char proxy[160];
};

const char *dead_peer_name(enum dead_peer_kind kind)
{
    return dead_scenes[kind].name;
}

/* Connections that nobody accepts, until the kernel lets further ones wait. */
static unsigned play_kernel(struct dead_peer *peer, bool has_backlog)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    fault_must(peer->listener >= 0 &&
               bind(peer->listener, (struct sockaddr *)&address, sizeof address) == 0);
    fault_must(getsockname(peer->listener, (struct sockaddr *)&address, &length) == 0);
    fault_must(!has_backlog || listen(peer->listener, 0) == 0);
    for (size_t i = 0; has_backlog && i < FILLERS; i++) {
        peer->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        fault_must(peer->fillers[i] >= 0);
        (void)connect(peer->fillers[i], (const struct sockaddr *)&address, sizeof address);
    }
    return ntohs(address.sin_port);
}

static unsigned play_fault(struct dead_peer *peer, const struct dead_scene *scene,
                           struct certificates *certificates)
{
    struct fault_peer_options options = {
        .otherwise = scene->answer,
        .other_connections = scene->connection,
        .receive_buffer = scene->receive_buffer,
        .forgets = true,
    };
    if (scene->has_tls) {
        options.tls.certificate = certificates_path(certificates, "server.pem");
        options.tls.key = certificates_path(certificates, "server.key");
    }
    peer->fault = fault_peer_start(&options);
    return fault_peer_port(peer->fault);
}

struct dead_peer *dead_peer_play(const struct dead_scene *scene, struct certificates *certificates)
{
    const enum dead_peer_kind kind = (enum dead_peer_kind)(scene - dead_scenes);
    const bool is_kernels = kind == DEAD_PEER_REFUSES || kind == DEAD_PEER_FULL_BACKLOG;
    struct dead_peer *peer = calloc(1, sizeof *peer);
    fault_must(peer != NULL);
    peer->listener = -1;
    unsigned port = is_kernels ? play_kernel(peer, kind == DEAD_PEER_FULL_BACKLOG)
                               : play_fault(peer, scene, certificates);
    if (kind == DEAD_PEER_SILENT_PROXY) {
        snprintf(peer->proxy, sizeof peer->proxy, "http://127.0.0.1:%u", port);
        port = 1;
    }
    snprintf(peer->url, sizeof peer->url, "http%s://%s:%u",
             scene->has_tls || scene->has_https ? "s" : "",
             kind == DEAD_PEER_NO_NAME ? "collector.invalid" : "127.0.0.1", port);
    return peer;
}

struct dead_peer *dead_peer_start(enum dead_peer_kind kind)
{
    return dead_peer_play(&dead_scenes[kind], NULL);
}

void dead_peer_stop(struct dead_peer *peer)
{
    if (peer->fault != NULL)
        fault_peer_stop(peer->fault);
    if (peer->listener != -1)
        close(peer->listener);
    for (size_t i = 0; i < FILLERS; i++)
        if (peer->fillers[i] != 0)
            close(peer->fillers[i]);
    free(peer);
}

const char *dead_peer_url(const struct dead_peer *peer)
{
    return peer->url;
}

const char *dead_peer_proxy(const struct dead_peer *peer)
{
    return peer->proxy[0] != '\0' ? peer->proxy : NULL;
}

struct fault_peer *dead_peer_fault(const struct dead_peer *peer)
{
    return peer->fault;
}
