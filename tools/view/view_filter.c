/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_filter.c - the contracts are in view_filter.h. */
#include "tools/view/view_filter.h"

#include "common/text/pattern.h"

bool view_filter_is_set(const struct view_filter *filter)
{
    return filter->service != NULL || filter->name != NULL || filter->error ||
           filter->least_ns != 0;
}

static bool is_like(const char *pattern, otel_slice text)
{
    return pattern == NULL ||
           oteli_pattern_matches(pattern, text.length != 0 ? text.data : "", text.length);
}

bool view_filter_passes(const struct view_filter *filter, const otel_span_view *span,
                        otel_slice service)
{
    const uint64_t took_ns = span->end_ns > span->start_ns ? span->end_ns - span->start_ns : 0;
    return is_like(filter->service, service) && is_like(filter->name, span->name) &&
           (!filter->error || span->status == OTEL_SPAN_STATUS_ERROR) &&
           took_ns >= filter->least_ns;
}
