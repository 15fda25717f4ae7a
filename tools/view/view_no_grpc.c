/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_no_grpc.c - instead of view_grpc.c where libnghttp2 is missing. */
#include "tools/view/view_grpc.h"

bool view_grpc_start(struct view_grpc *grpc, uint16_t port, struct view_taker taker)
{
    (void)port;
    *grpc = (struct view_grpc){.taker = taker, .listener = -1, .epoll = -1};
    return true;
}

void view_grpc_stop(struct view_grpc *grpc)
{
    (void)grpc;
}

void view_grpc_run(struct view_grpc *grpc)
{
    (void)grpc;
}
