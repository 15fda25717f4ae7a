/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/dead_scenes.c - the contracts are in dead_scenes.h. */
#include "tests/support/dead_scenes.h"

#include <stdio.h>
#include <string.h>

enum { SMALL_BUFFER = 4096, BODY = 400, HTTP2_CANCEL = 8, HTTP2_INTERNAL = 2 };

#define KERNELS(word) .is_kernels = true, .kind = DEAD_PEER_##word

const struct dead_scene dead_scenes[] = {
    {.name = "refuses", .protocols = FOR_ALL, KERNELS(REFUSES)},
    {.name = "full_backlog", .protocols = FOR_ALL, KERNELS(FULL_BACKLOG)},
    {.name = "no_name", .protocols = FOR_ALL, KERNELS(NO_NAME)},
    {.name = "silent_proxy", .protocols = FOR_ALL, KERNELS(SILENT_PROXY)},
    {.name = "plain", .protocols = FOR_ALL, KERNELS(PLAIN)},
    {.name = "http2_to_http1", .protocols = FOR_HTTP, KERNELS(HTTP2), .may_end = true},
    {.name = "never_reads",
     .protocols = FOR_ALL,
     .receive_buffer = SMALL_BUFFER,
     .connection = {.received = {FAULT_DEAF, 0}}},
    {.name = "never_answers",
     .protocols = FOR_ALL,
     .answer = {.in_answer = {FAULT_STALL, 0}},
     .may_receive = true},
    {.name = "trickles",
     .protocols = FOR_ALL,
     .answer = {.pace_bytes = 1, .pace_ms = 1000},
     .may_receive = true},
    {.name = "resets_body", .protocols = FOR_ALL, .answer = {.in_request = {FAULT_RESET, BODY}}},
    {.name = "cuts_head",
     .protocols = FOR_ALL,
     .answer = {.in_answer = {FAULT_FIN, 10}},
     .may_receive = true},
    {.name = "continues",
     .protocols = FOR_HTTP,
     .answer = {.before = "HTTP/1.1 100 Continue\r\n\r\n", .in_answer = {FAULT_STALL, 25}},
     .may_receive = true},
    {.name = "busy", .protocols = FOR_ALL, .answer = {.status = 503}},
    {.name = "endless_body",
     .protocols = FOR_ALL,
     .answer = {.status = 503, .body_repeats = FAULT_ENDLESS, .pace_bytes = 64, .pace_ms = 100}},
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
     .answer = {.in_request = {FAULT_RESET, BODY}}},
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

static void start_fault(struct dead_stage *stage, struct certificates *certificates)
{
    const struct dead_scene *scene = stage->scene;
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
    stage->fault = fault_peer_start(&options);
}

void dead_stage_start(struct dead_stage *stage, const struct dead_scene *scene,
                      otel_otlp_protocol protocol, struct certificates *certificates)
{
    const char *path = protocol == OTEL_OTLP_GRPC ? "" : "/v1/traces";
    const char *origin;
    *stage = (struct dead_stage){.scene = scene};
    if (scene->is_kernels) {
        stage->kernels = dead_peer_start(scene->kind);
        origin = dead_peer_url(stage->kernels);
        if (dead_peer_proxy(stage->kernels) != NULL)
            snprintf(stage->proxy, sizeof stage->proxy, "%s", dead_peer_proxy(stage->kernels));
    } else {
        start_fault(stage, certificates);
        origin = fault_peer_origin(stage->fault);
    }
    snprintf(stage->endpoint, sizeof stage->endpoint, "%s%s", origin, path);
}

void dead_stage_stop(struct dead_stage *stage)
{
    if (stage->fault != NULL)
        fault_peer_stop(stage->fault);
    if (stage->kernels != NULL)
        dead_peer_stop(stage->kernels);
}
