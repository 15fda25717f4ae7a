/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/span_encoder.h - an ended span as a record: head and OTLP Span message, in one pass
 * and in the order of field numbers, so that it equals what protobuf-c would pack. Its times are
 * ticks still; the worker puts nanoseconds in their place.
 *
 * Runs on the thread that ends the span. */
#ifndef OTELI_SPAN_ENCODER_H
#define OTELI_SPAN_ENCODER_H

#include "api/active/active_span.h"
#include "api/record/line.h"
#include "common/base/copy.h"
#include "common/clock/clock.h"
#include "common/wire.h"

enum {
    OTELI_SPAN_TRACE_ID = 1,
    OTELI_SPAN_SPAN_ID = 2,
    OTELI_SPAN_PARENT_SPAN_ID = 4,
    OTELI_SPAN_NAME = 5,
    OTELI_SPAN_KIND = 6,
    OTELI_SPAN_START_TIME = 7,
    OTELI_SPAN_END_TIME = 8,
    OTELI_SPAN_FLAGS = 16
};

/* Room for everything of a span that has a fixed size, and for copying in pieces. */
enum { OTELI_COMPOSE_FIXED = sizeof(struct oteli_record) + 160, OTELI_COMPOSE_PIECE = 16 };

/* No record of this span is larger. */
static inline size_t oteli_compose_bound(const struct oteli_active_span *active)
{
    enum { TRACESTATE_PART = 520 };
    return OTELI_COMPOSE_FIXED + (size_t)active->name_length + active->attributes.length +
           (oteli_active_tracestate(active) != 0 ? TRACESTATE_PART : 0) +
           active->unusual.events.length + active->unusual.links.length +
           active->unusual.message.length;
}

/* What is between attributes and flags is not larger. */
static inline size_t oteli_compose_rest_bound(const struct oteli_active_span *active)
{
    enum { COUNTS = 3 * 6, STATUS = 6 + 6 + 2 };
    return COUNTS + STATUS + (size_t)active->unusual.events.length + active->unusual.links.length +
           active->unusual.message.length;
}

/* Write it at `record`, which is aligned to 8; returns the record's size. */
uint32_t oteli_compose(struct oteli_record *record, const struct oteli_active_span *active,
                       uint64_t end);

/* Tag and length of a field of constant size, one byte each. */
static inline uint8_t *oteli_put_short(uint8_t *at, unsigned field, const void *bytes,
                                       size_t length)
{
    at[0] = (uint8_t)OTELI_TAG(field, OTELI_WIRE_BYTES);
    at[1] = (uint8_t)length;
    memcpy(at + 2, bytes, length);
    return at + 2 + length;
}

/* Ticks are marked; a start that was given is nanoseconds already. */
static inline uint64_t oteli_active_start(const struct oteli_active_span *active)
{
    const bool is_given = (active->traits.bits & OTELI_START_IS_GIVEN) != 0;
    return is_given ? active->start : active->start | OTELI_TICKS_BIT;
}

static inline uint8_t *oteli_compose_flags(uint8_t *at, uint32_t wire_flags)
{
    *at++ = (uint8_t)(OTELI_TAG(OTELI_SPAN_FLAGS, OTELI_WIRE_FIXED32) | 0x80);
    *at++ = OTELI_TAG(OTELI_SPAN_FLAGS, OTELI_WIRE_FIXED32) >> 7;
    return oteli_put_fixed32(at, wire_flags);
}

/* The attributes' bytes, in pieces that may reach beyond their end on both sides: buffers
 * are multiples of the piece, and what is behind `at` is written later. */
static inline uint8_t *oteli_compose_attributes(uint8_t *at, const struct oteli_active_span *active)
{
    const uint32_t length = active->attributes.length;
    const uint8_t *from = active->attributes.data;
    for (uint32_t i = 0; i < length; i += OTELI_COMPOSE_PIECE)
        memcpy(at + i, from + i, OTELI_COMPOSE_PIECE);
    return at + length;
}

#endif
