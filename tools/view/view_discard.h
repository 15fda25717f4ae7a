/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_discard.h - count what comes and keep nothing of it: a receiver for load.
 *
 * Of a request only the lengths down to its spans are read; what is in a span is passed by.
 *
 * Threads:  otel-view's only thread. */
#ifndef VIEW_DISCARD_H
#define VIEW_DISCARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct view_counts {
    uint64_t requests;
    uint64_t spans; /* as often as they come */
    uint64_t bytes; /* of requests, not compressed */
};

struct view_discard {
    struct view_counts all;
    struct view_counts line; /* since the last line */
    uint64_t line_ns;        /* monotonic: the last line, or the first request after a silence */
};

/* Count an ExportTraceServiceRequest. False: that is not what the bytes are. */
bool view_discard_count(struct view_discard *discard, const uint8_t *bytes, size_t length,
                        uint64_t now_ns);

/* Print what has come since the last line, if that is a second ago; at the end in any case. Where
 * nothing has come, there is no line. False: `out` takes no more. */
bool view_discard_print(struct view_discard *discard, FILE *out, uint64_t now_ns, bool at_end);

#endif
