/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/set_roots.c - look through the records of a set. Any thread, one at a time. */
#include "api/record/set_roots.h"
#include "api/record/span_encoder.h"
#include "common/clock/clock.h"

#include <string.h>

/* Where ids stand in a message: common tags are one byte, and so are these lengths. */
enum { SPAN_ID_AT = 20, BEHIND_SPAN_ID = 28, TRACE_STATE = 3, SPAN_EVENTS = 11 };

static struct oteli_record *next_record(uint8_t *records, uint32_t *at)
{
    struct oteli_record *record = (struct oteli_record *)(void *)(records + *at);
    *at += record->size;
    return record;
}

static uint64_t span_id_of(struct oteli_record *record)
{
    uint64_t id;
    memcpy(&id, oteli_record_message(record) + SPAN_ID_AT, sizeof id);
    return id;
}

/* 0: a root. */
static uint64_t parent_id_of(struct oteli_record *record)
{
    const uint8_t *at = oteli_record_message(record) + BEHIND_SPAN_ID;
    const uint8_t *end = oteli_record_message(record) + record->length;
    struct oteli_field field;
    uint64_t id = 0;
    while (oteli_next_field(&at, end, &field) && field.number <= OTELI_SPAN_PARENT_SPAN_ID)
        if (field.number == OTELI_SPAN_PARENT_SPAN_ID && field.bytes != NULL)
            memcpy(&id, field.bytes, sizeof id);
    return id;
}

/* A set of ids: open addressing, at most half full, 0 is free. Ids are random already. */
static uint32_t slots_for(uint32_t count)
{
    uint32_t slots = 16;
    while (slots < 2 * count)
        slots *= 2;
    return slots;
}

static uint64_t *look_up(uint64_t *ids, uint32_t slots, uint64_t id)
{
    uint32_t at = (uint32_t)(id >> 20) & (slots - 1);
    while (ids[at] != 0 && ids[at] != id)
        at = (at + 1) & (slots - 1);
    return &ids[at];
}

size_t oteli_outermost_scratch(uint32_t count)
{
    return slots_for(count) * sizeof(uint64_t);
}

void oteli_outermost_mark(uint8_t *records, uint32_t length, uint8_t *scratch, uint32_t count)
{
    uint64_t *ids = (uint64_t *)(void *)scratch;
    const uint32_t slots = slots_for(count);
    if (ids != NULL) {
        memset(ids, 0, slots * sizeof *ids);
        for (uint32_t at = 0; at < length;) {
            const uint64_t id = span_id_of(next_record(records, &at));
            *look_up(ids, slots, id) = id;
        }
    }
    for (uint32_t at = 0; at < length;) {
        struct oteli_record *record = next_record(records, &at);
        const uint64_t parent = parent_id_of(record);
        if (ids == NULL || parent == 0 || *look_up(ids, slots, parent) == 0)
            record->what |= OTELI_RECORD_OUTERMOST;
    }
}

/* The times of events are the first field of each: tag, eight bytes. */
static void convert_events(const struct oteli_record *record, uint8_t *message)
{
    const uint8_t *at = message + record->events_at;
    const uint8_t *end = message + record->length;
    struct oteli_field event;
    while (oteli_next_field(&at, end, &event) && event.number == SPAN_EVENTS) {
        uint8_t *time = message + (event.bytes - message) + 1;
        oteli_put_fixed64(time, oteli_clock_to_ns(oteli_get_fixed64(time), record->epoch));
    }
}

void oteli_record_convert_copy(const struct oteli_record *record, uint8_t *message)
{
    uint8_t *const start = message + record->times_at + 1;
    uint8_t *const end = start + 9;
    const struct oteli_span_times times =
        oteli_clock_span_times(oteli_get_fixed64(start), oteli_get_fixed64(end), record->epoch);
    oteli_put_fixed64(start, times.start_ns);
    oteli_put_fixed64(end, times.end_ns);
    if (OTELI_UNLIKELY(record->events_at != 0))
        convert_events(record, message);
}

void oteli_record_convert(struct oteli_record *record)
{
    oteli_record_convert_copy(record, oteli_record_message(record));
}
