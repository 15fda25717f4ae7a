/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/raw_record.c - make Span messages of raw records: raw_record.h. The worker. */
#include "api/record/raw_record.h"
#include "api/record/set_roots.h"
#include "common/clock/conversion.h"

enum { SCOPE_SPANS_SPANS = 2, TIMES_BYTES = 2 * 9, COPY_PIECE = 2 * OTELI_COMPOSE_PIECE };

/* What is in front of the name. */
static inline uint8_t *put_front(uint8_t *at, const struct oteli_raw *raw)
{
    at = oteli_put_short(at, OTELI_SPAN_TRACE_ID, raw->trace_id, 16);
    at = oteli_put_short(at, OTELI_SPAN_SPAN_ID, &raw->span_id_and_ref[0], 8);
    if (raw->parent_id != 0)
        at = oteli_put_short(at, OTELI_SPAN_PARENT_SPAN_ID, &raw->parent_id, 8);
    if (raw->name_length != 0) {
        *at++ = OTELI_TAG(OTELI_SPAN_NAME, OTELI_WIRE_BYTES);
        *at++ = (uint8_t)raw->name_length;
    }
    return at;
}

/* What is between name and attributes. */
static inline uint8_t *put_middle(uint8_t *at, const struct oteli_raw *raw)
{
    const struct oteli_span_times times =
        oteli_clock_measured_times(raw->start, raw->end, raw->epoch);
    *at++ = OTELI_TAG(OTELI_SPAN_KIND, OTELI_WIRE_VARINT);
    *at++ = raw->traits.wire_kind;
    *at++ = OTELI_TAG(OTELI_SPAN_START_TIME, OTELI_WIRE_FIXED64);
    at = oteli_put_fixed64(at, times.start_ns);
    *at++ = OTELI_TAG(OTELI_SPAN_END_TIME, OTELI_WIRE_FIXED64);
    return oteli_put_fixed64(at, times.end_ns);
}

/* The head of what it becomes. */
static inline struct oteli_record finished_head(const struct oteli_raw *raw, size_t length)
{
    const uint32_t attributes_at = (uint32_t)length - OTELI_RAW_BEHIND_ALL - raw->attributes_length;
    return (struct oteli_record){.size = raw->size,
                                 .length = (uint32_t)length,
                                 .epoch = raw->epoch,
                                 .times_at = attributes_at - TIMES_BYTES,
                                 .events_at =
                                     raw->traits.is_unusual ? attributes_at + raw->events_at : 0,
                                 .tracer = raw->tracer};
}

/* Name and attributes move towards the head, the name first. */
struct oteli_record *oteli_raw_finish(struct oteli_raw *raw)
{
    const struct oteli_raw from = *raw;
    struct oteli_record *const record = (struct oteli_record *)(void *)raw;
    *record = finished_head(&from, oteli_raw_message_length(&from));
    uint8_t *const name = put_front(oteli_record_message(record), &from);
    uint8_t *const middle = name + from.name_length;
    memmove(name, raw->name, from.name_length);
    memmove(middle + OTELI_RAW_BEHIND_NAME, raw->name + from.name_length, from.attributes_length);
    oteli_compose_flags(put_middle(middle, &from) + from.attributes_length, from.traits.wire_flags);
    if (OTELI_UNLIKELY(from.traits.is_unusual))
        oteli_record_convert(record);
    return record;
}

/* Copy in pieces of which one may begin in front of the bytes: it reads what is in front there, and
 * what it writes is overwritten later. Nothing is read or written behind the bytes: that is another
 * thread's, or nothing. */
static OTELI_INLINE void copy_pieces(uint8_t *to, const uint8_t *from, ptrdiff_t length,
                                     ptrdiff_t piece)
{
    memcpy(to + length - piece, from + length - piece, (size_t)piece);
    for (ptrdiff_t at = 0; at < length - piece; at += piece)
        memcpy(to + at, from + at, (size_t)piece);
}

static OTELI_COLD void convert_events(uint8_t *message, const struct oteli_raw *raw, size_t length)
{
    const struct oteli_record head = finished_head(raw, length);
    oteli_record_convert_copy(&head, message);
}

/* The message of a raw record, its end first. */
static OTELI_INLINE void put_raw(uint8_t *message, const struct oteli_raw *raw, size_t length)
{
    /* Read once: what is written might be them, as far as the compiler knows. */
    const size_t name_length = raw->name_length;
    const size_t attributes_length = raw->attributes_length;
    uint8_t *const flags = message + length - OTELI_RAW_BEHIND_ALL;
    uint8_t *const middle = flags - attributes_length - OTELI_RAW_BEHIND_NAME;
    oteli_compose_flags(flags, raw->traits.wire_flags);
    copy_pieces(middle + OTELI_RAW_BEHIND_NAME, raw->name + name_length,
                (ptrdiff_t)attributes_length, COPY_PIECE);
    put_middle(middle, raw);
    copy_pieces(middle - name_length, raw->name, (ptrdiff_t)name_length, OTELI_COMPOSE_PIECE);
    put_front(message, raw);
    if (OTELI_UNLIKELY(raw->traits.is_unusual))
        convert_events(message, raw, length);
}

static OTELI_NOINLINE void put_composed(uint8_t *message, struct oteli_record *record)
{
    memcpy(message, oteli_record_message(record), record->length);
    oteli_record_convert_copy(record, message);
}

static inline bool is_raw(const struct oteli_record *record)
{
    return OTELI_LIKELY((record->what & OTELI_RECORD_RAW) != 0);
}

static inline const struct oteli_raw *raw_of(const struct oteli_record *record)
{
    return (const struct oteli_raw *)(const void *)record;
}

static inline size_t message_length(const struct oteli_record *record)
{
    return is_raw(record) ? oteli_raw_message_length(raw_of(record)) : record->length;
}

/* Most messages have a length of two bytes. */
static inline size_t field_size(size_t length)
{
    return OTELI_LIKELY(length < 1 << 14) ? 2u + (length >= 1 << 7) + length
                                          : oteli_bytes_field_size(SCOPE_SPANS_SPANS, length);
}

static inline uint8_t *put_field_head(uint8_t *at, size_t length)
{
    if (OTELI_UNLIKELY(length < 1 << 7 || length >= 1 << 14))
        return oteli_put_bytes_head(at, SCOPE_SPANS_SPANS, length);
    at[0] = OTELI_TAG(SCOPE_SPANS_SPANS, OTELI_WIRE_BYTES);
    at[1] = (uint8_t)(length | 0x80);
    at[2] = (uint8_t)(length >> 7);
    return at + 3;
}

size_t oteli_records_measure(struct oteli_record *const *records, size_t most, size_t room,
                             size_t *bytes)
{
    const otel_tracer *const tracer = records[0]->tracer;
    size_t left = room;
    size_t count = 0;
    for (; count < most && records[count]->tracer == tracer; count++) {
        const size_t field = field_size(message_length(records[count]));
        if (field > left)
            break;
        left -= field;
    }
    *bytes = room - left;
    return count;
}

uint8_t *oteli_records_put(struct oteli_record *const *records, size_t count, uint8_t *at)
{
    for (size_t i = 0; i < count; i++) {
        struct oteli_record *record = records[i];
        const size_t length = message_length(record);
        at = put_field_head(at, length);
        if (is_raw(record))
            put_raw(at, raw_of(record), length);
        else
            put_composed(at, record);
        at += length;
    }
    return at;
}
