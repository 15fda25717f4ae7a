/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_grpc.h - an OTLP/gRPC receiver on loopback: TraceService.Export over HTTP/2
 * without TLS.
 *
 * It has no thread: the owner polls `epoll` and calls `view_grpc_run`. Where libnghttp2 was not
 * there at build time, nothing listens: `port` stays 0 and `epoll` -1.
 *
 * Threads:  one thread at a time. */
#ifndef VIEW_GRPC_H
#define VIEW_GRPC_H

#include "tools/view/view_body.h"

struct view_grpc_connection;

struct view_grpc {
    struct view_taker taker;
    int listener;
    int epoll; /* readable when there is something to do */
    uint16_t port;
    unsigned in_flight; /* calls that are not answered to the end yet */
    unsigned connection_count;
    struct view_grpc_connection *connections;
};

/* Listen on 127.0.0.1; port 0: any free one. False, with errno: that is not possible. */
bool view_grpc_start(struct view_grpc *grpc, uint16_t port, struct view_taker taker);
void view_grpc_stop(struct view_grpc *grpc);

/* Do what can be done without waiting. */
void view_grpc_run(struct view_grpc *grpc);

#endif
