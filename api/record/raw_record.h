/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/raw_record.h - the record of most spans: written raw, finished by the worker.
 *
 * What a span costs the thread that ends it is mostly stores, so it copies what the span's
 * place holds in pieces of 16 bytes, with name and attributes behind. The worker makes the Span
 * message of that: where it is sent from, or in its place for exporters that ask for it.
 *
 *   raw       | struct oteli_raw                  | name | attributes |       |
 *   finished  | head | ids, tag | name | kind, times | attributes | flags     |
 *
 * What else a span has in front of its flags, events for instance, is finished bytes behind the
 * attributes. */
#ifndef OTELI_RAW_RECORD_H
#define OTELI_RAW_RECORD_H

#include "api/record/span_encoder.h"

/* The first 24 bytes are those of a struct oteli_record. */
struct oteli_raw {
    union {
        struct {
            uint32_t size;              /* as there */
            uint32_t attributes_length; /* in the place of `length` */
        };
        uint64_t sizes;
    };
    union {
        struct {
            uint32_t epoch; /* as there */
            uint32_t name_length;
            struct oteli_traits traits; /* the second half in the place of `what` */
        };
        uint64_t shape[2];
    };
    union {
        struct {
            otel_tracer *tracer; /* as there */
            uint64_t parent_id;
        };
        uint64_t origin[2];
    };
    uint64_t span_id_and_ref[2];
    uint64_t trace_id[2];
    union {
        struct {
            uint64_t start; /* ticks, without OTELI_TICKS_BIT: no other times come this way */
            uint64_t end;
        };
        uint64_t times[2];
    };
    uint32_t events_at; /* from the start of attributes, if traits.is_unusual */
    uint32_t reserved;
    uint8_t name[];
};
_Static_assert(offsetof(struct oteli_raw, epoch) == offsetof(struct oteli_record, epoch), "head");
_Static_assert(offsetof(struct oteli_raw, traits.wire_kind) == offsetof(struct oteli_record, what),
               "a kind is never 0 on the wire");
_Static_assert(offsetof(struct oteli_raw, tracer) == offsetof(struct oteli_record, tracer), "head");

enum {
    OTELI_RAW_NAME_AT = 96,
    OTELI_RAW_IDS = 28,         /* of trace and span */
    OTELI_RAW_PARENT = 10,      /* that of the parent */
    OTELI_RAW_BEFORE_NAME = 2,  /* tag and length */
    OTELI_RAW_BEHIND_NAME = 20, /* kind and times */
    OTELI_RAW_BEHIND_ALL = 6,   /* flags */
    OTELI_RAW_FIXED = sizeof(struct oteli_record) + OTELI_RAW_IDS + OTELI_RAW_PARENT +
                      OTELI_RAW_BEFORE_NAME + OTELI_RAW_BEHIND_NAME + OTELI_RAW_BEHIND_ALL
};
_Static_assert(OTELI_RAW_FIXED >= OTELI_RAW_NAME_AT,
               "room for what is raw, and for what it becomes");

_Static_assert(offsetof(struct oteli_raw, name) == OTELI_RAW_NAME_AT, "behind all that is fixed");

/* The size of a span's record; pieces are written up to OTELI_RAW_SLACK beyond it. */
enum { OTELI_RAW_SLACK = 3 * OTELI_COMPOSE_PIECE, OTELI_RAW_AHEAD = 2 };
enum { OTELI_RAW_PADDED = OTELI_RAW_FIXED + 7 };
static inline size_t oteli_raw_size_of(size_t name_length, size_t attributes_length)
{
    return (OTELI_RAW_PADDED + name_length + attributes_length) & ~(size_t)7;
}

static inline uint32_t oteli_raw_size(const struct oteli_active_span *active)
{
    return (uint32_t)oteli_raw_size_of(active->name_length, active->attributes.length);
}

/* All but the name and the attributes, which those of a leaf have there already. */
static OTELI_INLINE void oteli_raw_write_head(struct oteli_raw *raw,
                                              const struct oteli_active_span *active, size_t size,
                                              size_t attributes_length, uint64_t end)
{
    raw->sizes = oteli_word_of(size, attributes_length);
    oteli_half_copy(raw->shape, active->shape);
    oteli_half_copy(raw->origin, active->origin);
    oteli_half_copy(raw->span_id_and_ref, active->self.opaque + 2);
    oteli_half_copy(raw->trace_id, active->self.opaque);
    oteli_half_store(raw->times, (oteli_half){active->start, end});
    /* What comes next was last written by the exporter thread, on another core. */
    const uint8_t *next = (const uint8_t *)raw + size;
    for (unsigned i = 0; i < OTELI_RAW_AHEAD; i++)
        oteli_fetch_to_write(next + (2 + i) * OTELI_CACHELINE);
}

/* The name of a span that is no leaf, if it is not longer than this. */
enum { OTELI_RAW_SHORT_NAME = sizeof(oteli_half) };
static OTELI_INLINE void oteli_raw_write_short_name(struct oteli_raw *raw,
                                                    const struct oteli_active_span *active)
{
    memcpy(raw->name, active->name, OTELI_RAW_SHORT_NAME);
}

/* Its name, and its attributes. Names are copied in whole pieces: what is too much lies where the
 * attributes will be. */
static OTELI_INLINE void oteli_raw_write_rest(struct oteli_raw *raw,
                                              const struct oteli_active_span *active)
{
    _Static_assert(OTELI_NAME_INLINE == 3 * sizeof(oteli_half), "three pieces");
    const uint32_t name_length = active->name_length;
    oteli_raw_write_short_name(raw, active);
    if (name_length > OTELI_RAW_SHORT_NAME)
        memcpy(raw->name + OTELI_RAW_SHORT_NAME, active->name + OTELI_RAW_SHORT_NAME,
               OTELI_NAME_INLINE - OTELI_RAW_SHORT_NAME);
    if (active->attributes.length != 0)
        oteli_compose_attributes(raw->name + name_length, active);
}

/* Write all of it at `raw`, which is aligned to 8. */
static OTELI_INLINE void oteli_raw_write(struct oteli_raw *raw,
                                         const struct oteli_active_span *active, uint32_t size,
                                         uint64_t end)
{
    oteli_raw_write_rest(raw, active);
    oteli_raw_write_head(raw, active, size, active->attributes.length, end);
}

/* The same of a span that has more (OTELI_HAS_MORE), with the rest of its fields as if they were
 * attributes. Returns its size, which is not above oteli_raw_more_bound. Names are not longer than
 * OTELI_RAW_NAME_MOST, whose length is one byte. */
enum { OTELI_RAW_NAME_MOST = 127 };
uint32_t oteli_raw_write_more(struct oteli_raw *raw, const struct oteli_active_span *active,
                              uint64_t end);
static inline size_t oteli_raw_more_bound(const struct oteli_active_span *active)
{
    return oteli_raw_size(active) + oteli_compose_rest_bound(active);
}

/* How long its Span message is. */
static inline size_t oteli_raw_message_length(const struct oteli_raw *raw)
{
    size_t length = OTELI_RAW_IDS + OTELI_RAW_BEHIND_NAME + OTELI_RAW_BEHIND_ALL +
                    (size_t)raw->attributes_length;
    if (raw->parent_id != 0)
        length += OTELI_RAW_PARENT;
    if (raw->name_length != 0)
        length += OTELI_RAW_BEFORE_NAME + (size_t)raw->name_length;
    return length;
}

/* Make a record with a Span message of it, its times in nanoseconds, in its place. The worker. */
OTELI_INTERNAL_API struct oteli_record *oteli_raw_finish(struct oteli_raw *raw);

/* Records, raw and others, as the fields `spans` of a ScopeSpans message. They are read only: their
 * lines belong to the threads that wrote them, and are written by these again. The worker.
 *
 * How many of the first `most` follow each other with one tracer and take no more than `room`
 * bytes; *bytes is what they take. */
OTELI_INTERNAL_API size_t oteli_records_measure(struct oteli_record *const *records, size_t most,
                                                size_t room, size_t *bytes);

/* Write the fields at `at`; returns what is behind them. */
OTELI_INTERNAL_API uint8_t *oteli_records_put(struct oteli_record *const *records, size_t count,
                                              uint8_t *at);

#endif
