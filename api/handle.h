/* SPDX-License-Identifier: Apache-2.0 */
/* api/handle.h - what an otel_span holds: the ids, and where its open span is.
 *
 *     opaque[0], opaque[1]   trace id, the 16 bytes as they are on the wire
 *     opaque[2]              span id, likewise
 *     opaque[3]              bit  0-1   W3C flags
 *                            bit  4-6   what B3 and Jaeger know beyond them (OTELI_REF_DEBUG …)
 *                            bit  8     the span is of another process
 *                            bit  9-10  enum oteli_span_place  (OTEL_SPAN_IS_OPEN_)
 *                            bit  11    it records             (OTEL_SPAN_IS_RECORDING_)
 *                            bit 16-35  slot: depth on the thread's stack, or pool index
 *                            bit 36-39  which of the holding roots of its trace (holders.h)
 *                            bit 40-63  tracestate reference
 *
 * A handle owns nothing. Its slot is asked for the span id before it is used, so that a
 * handle that is old, or of another thread, finds nothing and does nothing. */
#ifndef OTELI_HANDLE_H
#define OTELI_HANDLE_H

#include <otel/context.h>
#include <string.h>

enum oteli_span_place {
    OTELI_PLACE_NOWHERE = 0, /* only ids: wrapped, or none */
    OTELI_PLACE_LOCAL = 1,   /* on the stack of open spans of its thread */
    OTELI_PLACE_DETACHED = 2 /* in the pool of detached spans */
};

enum {
    OTELI_REF_W3C_FLAGS = OTEL_TRACE_FLAG_SAMPLED | OTEL_TRACE_FLAG_RANDOM,
    OTELI_REF_LONE = 1 << 4,     /* a decision without a trace: oteli_span_of_decision */
    OTELI_REF_DEFERRED = 1 << 5, /* nobody has decided whether to sample; not inherited */
    OTELI_REF_DEBUG = 1 << 6,    /* somebody wants to see this trace, whatever it costs */
    OTELI_REF_REMOTE = 1 << 8,
    OTELI_REF_PLACE_SHIFT = 9,
    OTELI_REF_RECORDING_SHIFT = 11,
    OTELI_REF_HELD = 1 << 12,
    OTELI_REF_COLLECTED = 1 << 13,
    OTELI_REF_ATTACHED = 1 << 14,
    OTELI_REF_DEAD = 1 << 15,
    OTELI_REF_SLOT_SHIFT = 16,
    OTELI_REF_HOLDER_SHIFT = 36,
    OTELI_REF_TRACESTATE_SHIFT = 40,
    OTELI_SLOT_MAX = (1 << 20) - 1,
    OTELI_HOLDER_MAX = (1 << 4) - 1
};
#define OTELI_REF_HOLDER ((uint64_t)OTELI_HOLDER_MAX << OTELI_REF_HOLDER_SHIFT)

static inline uint64_t oteli_ref_make(uint8_t flags, enum oteli_span_place place, bool recording,
                                      uint32_t slot, uint32_t tracestate)
{
    return (uint64_t)(flags & OTELI_REF_W3C_FLAGS) | (uint64_t)place << OTELI_REF_PLACE_SHIFT |
           (uint64_t)recording << OTELI_REF_RECORDING_SHIFT |
           (uint64_t)slot << OTELI_REF_SLOT_SHIFT |
           (uint64_t)tracestate << OTELI_REF_TRACESTATE_SHIFT;
}

static inline uint8_t oteli_ref_flags(uint64_t ref)
{
    return (uint8_t)(ref & OTELI_REF_W3C_FLAGS);
}

static inline bool oteli_ref_is_remote(uint64_t ref)
{
    return (ref & OTELI_REF_REMOTE) != 0;
}

static inline enum oteli_span_place oteli_ref_place(uint64_t ref)
{
    return (enum oteli_span_place)(ref >> OTELI_REF_PLACE_SHIFT & 3);
}

static inline uint32_t oteli_ref_slot(uint64_t ref)
{
    return (uint32_t)(ref >> OTELI_REF_SLOT_SHIFT) & OTELI_SLOT_MAX;
}

static inline uint32_t oteli_ref_holder(uint64_t ref)
{
    return (uint32_t)(ref >> OTELI_REF_HOLDER_SHIFT) & OTELI_HOLDER_MAX;
}

static inline uint32_t oteli_ref_tracestate(uint64_t ref)
{
    return (uint32_t)(ref >> OTELI_REF_TRACESTATE_SHIFT);
}

/* What a child of such a span needs has to be looked up: bits of a parent's opaque[3]. */
#define OTELI_REF_SPECIAL                                                                \
    (~UINT64_C(0) << OTELI_REF_TRACESTATE_SHIFT | OTELI_REF_HELD | OTELI_REF_COLLECTED | \
     OTELI_REF_LONE)

/* What a child has of its parent's, beside the trace id. */
#define OTELI_REF_INHERITED (OTEL_TRACE_FLAG_RANDOM | OTELI_REF_DEBUG)

/* What a handle that is given out does not say. */
#define OTELI_REF_OF_STACK ((uint64_t)(OTELI_REF_ATTACHED | OTELI_REF_DEAD))

/* Two words that are stored at once. A handle is written and read in halves of 16 bytes;
 * a half that was stored as two words could not be forwarded to the load that copies it. */
typedef uint64_t oteli_half __attribute__((vector_size(16)));

typedef uint64_t oteli_half_at __attribute__((vector_size(16), aligned(8), may_alias));

static inline oteli_half oteli_half_load(const uint64_t from[2])
{
    return *(const oteli_half_at *)(const void *)from;
}

static inline void oteli_half_store(uint64_t to[2], oteli_half half)
{
    *(oteli_half_at *)(void *)to = half;
}

static inline void oteli_half_copy(uint64_t to[2], const uint64_t from[2])
{
    oteli_half_store(to, oteli_half_load(from));
}

/* What is collected has ids of no trace that others could know (otel/lines.h). */
static inline bool oteli_span_is_collected(const otel_span *span)
{
    return (span->opaque[3] & OTELI_REF_COLLECTED) != 0;
}

/* B3 can say whether to sample, and not say of which trace: a handle that is not valid, but is
 * a remote parent for the sampler. What starts under it is a root. */
static inline otel_span oteli_span_of_decision(uint64_t flags)
{
    return (otel_span){{0, 0, 1, flags | OTELI_REF_LONE | OTELI_REF_REMOTE}};
}

static inline bool oteli_span_is_decision(const otel_span *span)
{
    return (span->opaque[3] & OTELI_REF_LONE) != 0;
}

/* The id of the span that a child of this one names as its parent; 0: it is a root. */
static inline uint64_t oteli_parent_id(const otel_span *parent)
{
    return oteli_span_is_decision(parent) ? 0 : parent->opaque[2];
}

/* A handle is a span's when both of its ids are there. */
static inline bool oteli_span_is_valid(const otel_span *span)
{
    return (span->opaque[0] | span->opaque[1]) != 0 && span->opaque[2] != 0;
}

#endif
