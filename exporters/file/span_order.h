/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/file/span_order.h - the spans of a trace in the order in which they are drawn, and
 * who is whose child.
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_FILE_SPAN_ORDER_H
#define OTELI_FILE_SPAN_ORDER_H

#include "common/base/span_copy.h"
#include "exporters/file/lanes.h"

/* Sort the spans as oteli_lanes_assign wants them, and fill in all of `places` but the lanes.
 * A span that is its own ancestor is a root. False: no memory. */
bool oteli_order_spans(struct oteli_kept_span **spans, struct oteli_lane_span *places,
                       uint32_t count);

#endif
