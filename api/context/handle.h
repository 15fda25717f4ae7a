/* SPDX-License-Identifier: Apache-2.0 */
/* api/context/handle.h - what an otel_span holds: the ids, and where its open span is.
 *
 *     opaque[0], opaque[1]   trace id, the 16 bytes as they are on the wire
 *     opaque[2]              span id, the 8 bytes as they are on the wire
 *     opaque[3]              two halves of four bytes:
 *
 *     state, the first in memory
 *         byte 0    bit 0    it is a span's
 *                   bit 1    a decision without a trace: oteli_span_of_decision
 *                   bit 2    it is collected
 *                   bit 3    deferred: the sampling is not decided yet; not inherited
 *                   bit 4-7  tracestate reference, its lowest four bits
 *         byte 1    bit 0-1  W3C flags
 *                   bit 4-7  tracestate reference, the next four bits
 *         byte 2-3           tracestate reference, the others
 *     where, the second
 *                   bit 0-1  enum oteli_span_where  (OTEL_SPAN_IS_OPEN_)
 *                   bit 2    it records             (OTEL_SPAN_IS_RECORDING_)
 *                   bit 3    it is held back
 *                   bit 4    the span is of another process
 *                   bit 5-6  of places of the stack: attached, dead
 *                   bit 7    debug (B3, Jaeger): always sampled
 *                   bit 8-11 which of the holding roots of its trace (hold_table.h)
 *                   bit 12-31 index: of the place on the thread's stack, or of the slot in the pool
 *
 * So the first 28 bytes of the handle of almost every span are an otel_thread_context_record
 * (otel/thread_context.h) as others read it: context_record.h.
 *
 * A handle owns nothing. Its slot is asked for the span id before it is used, so that a
 * handle that is old, or of another thread, finds nothing and does nothing. */
#ifndef OTELI_HANDLE_H
#define OTELI_HANDLE_H

#include "common/base/atomic.h"
#include <otel/context.h>
#include <string.h>

enum oteli_span_where {
    OTELI_SPAN_NOWHERE = 0,  /* only ids: wrapped, or none */
    OTELI_SPAN_ON_STACK = 1, /* on the stack of open spans of its thread */
    OTELI_SPAN_IN_POOL = 2   /* in the pool of detached spans */
};

/* How far to the left the bytes of the state are, and the bits of the other half. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OTELI_REF_BYTE(number) (8 * (number))
enum { OTELI_REF_SIZE_SHIFT = OTELI_REF_BYTE(2), OTELI_REF_WHERE_SHIFT = 32 };
#else
#define OTELI_REF_BYTE(number) (56 - 8 * (number))
enum { OTELI_REF_SIZE_SHIFT = OTELI_REF_BYTE(3), OTELI_REF_WHERE_SHIFT = 0 };
#endif
enum {
    OTELI_REF_FLAGS_SHIFT = OTELI_REF_BYTE(1),
    OTELI_REF_REMOTE_SHIFT = OTELI_REF_WHERE_SHIFT + 4,
    OTELI_REF_HOLDER_SHIFT = OTELI_REF_WHERE_SHIFT + 8,
    OTELI_REF_INDEX_SHIFT = OTELI_REF_WHERE_SHIFT + 12,
    OTELI_INDEX_MAX = (1 << 20) - 1,
    OTELI_HOLDER_MAX = (1 << 4) - 1,
    OTELI_W3C_FLAGS = OTEL_TRACE_FLAG_SAMPLED | OTEL_TRACE_FLAG_RANDOM
};
#define OTELI_REF_BIT(shift) (UINT64_C(1) << (shift))

/* What a span context keeps in reserved[0] for propagators of other formats than W3C's. */
enum { OTELI_KEEPS_DEBUG = 1, OTELI_KEEPS_DEFERRED = 2 };

#define OTELI_REF_STATE (UINT64_C(0xffffffff) << (32 - OTELI_REF_WHERE_SHIFT))
#define OTELI_REF_VALID OTELI_REF_BIT(OTELI_REF_BYTE(0))
#define OTELI_REF_LONE OTELI_REF_BIT(OTELI_REF_BYTE(0) + 1)
#define OTELI_REF_COLLECTED OTELI_REF_BIT(OTELI_REF_BYTE(0) + 2)
#define OTELI_REF_DEFERRED OTELI_REF_BIT(OTELI_REF_BYTE(0) + 3)
#define OTELI_REF_SAMPLED ((uint64_t)OTEL_TRACE_FLAG_SAMPLED << OTELI_REF_FLAGS_SHIFT)
#define OTELI_REF_RANDOM ((uint64_t)OTEL_TRACE_FLAG_RANDOM << OTELI_REF_FLAGS_SHIFT)
#define OTELI_REF_TRACESTATE                                                                   \
    (UINT64_C(0xffff) << OTELI_REF_SIZE_SHIFT | UINT64_C(0xf) << (OTELI_REF_FLAGS_SHIFT + 4) | \
     UINT64_C(0xf) << (OTELI_REF_BYTE(0) + 4))

#define OTELI_REF_HELD OTELI_REF_BIT(OTELI_REF_WHERE_SHIFT + 3)
#define OTELI_REF_REMOTE OTELI_REF_BIT(OTELI_REF_REMOTE_SHIFT)
#define OTELI_REF_ATTACHED OTELI_REF_BIT(OTELI_REF_WHERE_SHIFT + 5)
#define OTELI_REF_DEAD OTELI_REF_BIT(OTELI_REF_WHERE_SHIFT + 6)
#define OTELI_REF_DEBUG OTELI_REF_BIT(OTELI_REF_WHERE_SHIFT + 7)
#define OTELI_REF_HOLDER ((uint64_t)OTELI_HOLDER_MAX << OTELI_REF_HOLDER_SHIFT)
#define OTELI_REF_INDEX ((uint64_t)OTELI_INDEX_MAX << OTELI_REF_INDEX_SHIFT)
_Static_assert(OTEL_SPAN_IS_OPEN_ == UINT64_C(3) << OTELI_REF_WHERE_SHIFT, "otel/context.h");
_Static_assert(OTEL_SPAN_IS_RECORDING_ == OTELI_REF_BIT(OTELI_REF_WHERE_SHIFT + 2),
               "otel/context.h");

static inline uint64_t oteli_ref_of_flags(uint8_t flags)
{
    return (uint64_t)(flags & OTELI_W3C_FLAGS) << OTELI_REF_FLAGS_SHIFT;
}

static inline uint64_t oteli_ref_of_tracestate(uint32_t reference)
{
    if (OTELI_LIKELY(reference == 0))
        return 0;
    return (uint64_t)(reference >> 8 & 0xffff) << OTELI_REF_SIZE_SHIFT |
           (uint64_t)(reference >> 4 & 0xf) << (OTELI_REF_FLAGS_SHIFT + 4) |
           (uint64_t)(reference & 0xf) << (OTELI_REF_BYTE(0) + 4);
}

/* A span's. */
static inline uint64_t oteli_ref_make(uint8_t flags, enum oteli_span_where where, bool recording,
                                      uint32_t index, uint32_t tracestate)
{
    return OTELI_REF_VALID | oteli_ref_of_flags(flags) | oteli_ref_of_tracestate(tracestate) |
           (uint64_t)where << OTELI_REF_WHERE_SHIFT | (recording ? OTEL_SPAN_IS_RECORDING_ : 0) |
           (uint64_t)index << OTELI_REF_INDEX_SHIFT;
}

/* Whether the first 28 bytes of the handle are the record that others read: then nothing is
 * beside it. */
static inline uint64_t oteli_ref_beside_record(uint64_t ref)
{
    return (ref & OTELI_REF_STATE & ~(OTELI_REF_SAMPLED | OTELI_REF_RANDOM)) ^ OTELI_REF_VALID;
}

static inline bool oteli_ref_is_record(uint64_t ref)
{
    return oteli_ref_beside_record(ref) == 0;
}

static inline uint8_t oteli_ref_flags(uint64_t ref)
{
    return (uint8_t)(ref >> OTELI_REF_FLAGS_SHIFT & OTELI_W3C_FLAGS);
}

static inline bool oteli_ref_is_remote(uint64_t ref)
{
    return (ref & OTELI_REF_REMOTE) != 0;
}

static inline enum oteli_span_where oteli_ref_where(uint64_t ref)
{
    return (enum oteli_span_where)(ref >> OTELI_REF_WHERE_SHIFT & 3);
}

static inline uint32_t oteli_ref_index(uint64_t ref)
{
    return (uint32_t)(ref >> OTELI_REF_INDEX_SHIFT) & OTELI_INDEX_MAX;
}

static inline uint32_t oteli_ref_holder(uint64_t ref)
{
    return (uint32_t)(ref >> OTELI_REF_HOLDER_SHIFT) & OTELI_HOLDER_MAX;
}

static inline uint32_t oteli_ref_tracestate(uint64_t ref)
{
    if (OTELI_LIKELY((ref & OTELI_REF_TRACESTATE) == 0))
        return 0;
    return (uint32_t)(ref >> OTELI_REF_SIZE_SHIFT & 0xffff) << 8 |
           (uint32_t)(ref >> (OTELI_REF_FLAGS_SHIFT + 4) & 0xf) << 4 |
           (uint32_t)(ref >> (OTELI_REF_BYTE(0) + 4) & 0xf);
}

/* What a child of such a span needs has to be looked up: bits of a parent's opaque[3]. */
#define OTELI_REF_SPECIAL \
    (OTELI_REF_TRACESTATE | OTELI_REF_HELD | OTELI_REF_COLLECTED | OTELI_REF_LONE)

/* What a child has of its parent's, beside the trace id. */
#define OTELI_REF_INHERITED (OTELI_REF_RANDOM | OTELI_REF_DEBUG)

/* A span that is recorded, … */
#define OTELI_SAMPLED_AND_RECORDING (OTELI_REF_SAMPLED | OTEL_SPAN_IS_RECORDING_)

/* … and what most of them say beside where they are. */
#define OTELI_REF_USUAL (OTELI_SAMPLED_AND_RECORDING | OTELI_REF_RANDOM)

/* What a handle that is given out does not say. */
#define OTELI_REF_OF_STACK (OTELI_REF_ATTACHED | OTELI_REF_DEAD)

/* Two words that are stored at once. A handle is written and read in halves of 16 bytes;
 * a half that was stored as two words could not be forwarded to the load that copies it. */
typedef uint64_t oteli_half __attribute__((vector_size(16)));

typedef uint64_t oteli_half_at __attribute__((vector_size(16), aligned(8), may_alias));

/* Two numbers of 32 bits as the word that they are in memory, one behind the other. */
static inline uint64_t oteli_word_of(uint64_t first, uint64_t second)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return first | second << 32;
#else
    return second | first << 32;
#endif
}

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
static inline otel_span oteli_span_of_decision(uint64_t bits)
{
    return (otel_span){{0, 0, 1, bits | OTELI_REF_LONE | OTELI_REF_REMOTE}};
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
