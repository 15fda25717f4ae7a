/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/raw_record.c - finish raw records: raw_record.h. The worker. */
#include "api/record/raw_record.h"
#include "api/record/set_roots.h"
#include "common/clock/clock.h"

struct oteli_record *oteli_raw_finish(struct oteli_raw *raw)
{
    /* Everything is read before anything is written: the two overlap. */
    const struct oteli_raw from = *raw;
    uint8_t *const name = raw->name;
    const struct oteli_span_times spanned = oteli_clock_span_times(
        from.start | OTELI_TICKS_BIT, from.end | OTELI_TICKS_BIT, from.epoch);

    uint8_t *at = name + from.name_length;
    *at++ = OTELI_TAG(OTELI_SPAN_KIND, OTELI_WIRE_VARINT);
    *at++ = from.traits.wire_kind;
    uint8_t *const times = at;
    *at++ = OTELI_TAG(OTELI_SPAN_START_TIME, OTELI_WIRE_FIXED64);
    at = oteli_put_fixed64(at, spanned.start_ns);
    *at++ = OTELI_TAG(OTELI_SPAN_END_TIME, OTELI_WIRE_FIXED64);
    at = oteli_put_fixed64(at, spanned.end_ns) + from.attributes_length;
    at = oteli_compose_flags(at, from.traits.wire_flags);

    uint8_t *front = name;
    if (from.name_length != 0) {
        *--front = (uint8_t)from.name_length;
        *--front = OTELI_TAG(OTELI_SPAN_NAME, OTELI_WIRE_BYTES);
    }
    const size_t ids = 28 + (from.parent_id != 0 ? 10 : 0);
    uint8_t *const message = front - ids;
    front = oteli_put_short(message, OTELI_SPAN_TRACE_ID, from.trace_id, 16);
    front = oteli_put_short(front, OTELI_SPAN_SPAN_ID, &from.span_id_and_ref[0], 8);
    if (from.parent_id != 0)
        oteli_put_short(front, OTELI_SPAN_PARENT_SPAN_ID, &from.parent_id, 8);

    /* Heads are aligned, messages need not be. */
    const size_t gap = (size_t)(message - (uint8_t *)raw) % 8;
    struct oteli_record *record = (struct oteli_record *)(void *)(message - gap - sizeof *record);
    *record = (struct oteli_record){.length = (uint32_t)(at - message),
                                    .epoch = from.epoch,
                                    .times_at = (uint32_t)(times - message),
                                    .what = (uint32_t)gap << OTELI_RECORD_GAP_SHIFT,
                                    .tracer = from.tracer};
    if (OTELI_UNLIKELY(from.traits.is_unusual)) {
        record->events_at = record->times_at + 2 * 9 + from.events_at;
        oteli_record_convert(record);
    }
    return record;
}
