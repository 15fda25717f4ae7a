/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_options.h - otel-view's command line.
 *
 * Threads:  otel-view's only thread; the texts are the command line's. */
#ifndef VIEW_OPTIONS_H
#define VIEW_OPTIONS_H

#include "tools/view/view_spans.h"

struct view_options {
    uint16_t port, grpc_port; /* 0: any free one */
    bool needs_grpc;          /* --grpc-port was given */
    bool json;
    bool discard;
    enum view_form form;
    bool all;
    struct view_filter filter;
    uint64_t count;        /* 0: no end by count */
    uint64_t idle_exit_ms; /* 0: never */
};

/* Returns the exit status when there is nothing more to do, otherwise -1. */
int view_options_parse(struct view_options *options, int argc, char **argv);

#endif
