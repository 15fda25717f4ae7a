/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/view/collected_spans.c - look at finished spans in process: otel_lines_next of otel/lines.h.
 * The thread that has the otel_lines. */
#include "api/record/line.h"
#include "api/record/set_pool.h"
#include "sdk/view/address_names.h"
#include "sdk/view/span_view.h"

#include <otel/lines.h>

/* Only the exporter thread may ask the resolver, and the records stay as they are because
 * mounts are read meanwhile: so an address is shown as a number, one at a time. */
static void show_address(otel_span_view *span)
{
    static __thread char name[OTELI_HEX_MOST];
    span->name.length = oteli_name_in_hex(span->name.data, span->name.length, name);
    span->name.data = name;
}

bool otel_lines_next(const otel_lines *lines, size_t *cursor, otel_span_view *span)
{
    if (lines == NULL || *cursor >= lines->records.length)
        return false;
    struct oteli_record *record = (struct oteli_record *)(void *)(lines->records.data + *cursor);
    *cursor += record->size;
    oteli_span_view_of_record(span, record);
    if (OTELI_UNLIKELY((record->what & OTELI_RECORD_ADDRESS) != 0))
        show_address(span);
    return true;
}
