/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_filter.h - which spans somebody wants to see.
 *
 * Threads:  any; nothing is kept. */
#ifndef VIEW_FILTER_H
#define VIEW_FILTER_H

#include <otel/exporter.h>
#include <stdbool.h>
#include <stdint.h>

/* All that is set has to be true of a span. The patterns are of common/text/pattern.h. */
struct view_filter {
    const char *service; /* NULL: any */
    const char *name;    /* NULL: any */
    bool error;
    uint64_t least_ns; /* how long it took at least */
};

bool view_filter_is_set(const struct view_filter *filter);
bool view_filter_passes(const struct view_filter *filter, const otel_span_view *span,
                        otel_slice service);

#endif
