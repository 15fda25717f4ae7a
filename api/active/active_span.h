/* SPDX-License-Identifier: Apache-2.0 */
/* api/active/active_span.h - an open span: what is known of it so far.
 *
 * Attributes, events and links are kept as the OTLP bytes that they will be on the wire,
 * each kind in a buffer of its own, so that ending a span is copying. The buffers stay
 * with the place when the span ends and serve the next one: no allocation once a place has
 * seen its largest span.
 *
 * Threads:  an entered span's place belongs to its thread; a detached span's record is used
 *           under its lock (detached_pool.h). */
#ifndef OTELI_ACTIVE_SPAN_H
#define OTELI_ACTIVE_SPAN_H

#include "api/context/handle.h"
#include "common/base/copy.h"
#include "common/text/text.h"
#include <otel/thread_context.h>
#include <otel/trace.h>

/* The most that a span keeps; what is more is left out, and counted. */
struct oteli_limits {
    size_t value_length; /* characters of a string, bytes of bytes; SIZE_MAX: none */
    uint32_t attributes; /* of a span */
    uint32_t events;
    uint32_t links;
    uint32_t event_attributes;
    uint32_t link_attributes;
    bool roots_hold;     /* local roots hold their descendants back for a verdict */
    uint8_t value_depth; /* of arrays and maps: what is deeper is an empty value */
};

/* Bytes that grow. Buffers above OTELI_BUFFER_KEPT are given back when their span ends. */
struct oteli_buffer {
    uint8_t *data;
    uint32_t capacity;
    uint32_t length;
};
enum { OTELI_BUFFER_FIRST = 512, OTELI_BUFFER_KEPT = 64 * 1024, OTELI_NAME_INLINE = 48 };
enum {
    OTELI_OWN_SIZE_FIRST = 9,
    OTELI_OWN_SIZE_MOST = 30
}; /* exponents, of memory for attributes */

/* What decides about a span's record beside its ids, in one word: one store sets it. */
struct oteli_traits {
    uint16_t wire_flags; /* Span.flags */
    uint8_t reserved;
    bool is_lent;       /* a leaf: name and attributes are in the line (oteli_active_lend) */
    uint8_t wire_kind;  /* Span.kind */
    uint8_t is_unusual; /* not 0: has anything but ids, a name in its place or in the line, times
                           and attributes, or a dead place below. Of a raw record: it has events,
                           at events_at */
    uint8_t bits;       /* OTELI_HOLDS and below */
    uint8_t end_as;     /* enum oteli_end_as */
};
_Static_assert(sizeof(struct oteli_traits) == 8, "one word");
/* In is_unusual: beside what is usual it only has a longer name, or what goes between attributes
 * and flags. */
enum { OTELI_HAS_MORE = 2 };
enum { OTELI_FLAG_HAS_IS_REMOTE = 0x100, OTELI_FLAG_IS_REMOTE = 0x200 }; /* of wire_flags */

/* What becomes of a span when it ends. */
enum oteli_end_as {
    OTELI_END_EXPORTED = 0, /* or held back, with its set */
    OTELI_END_CANCELLED,
    OTELI_END_TOO_SHORT,
    OTELI_END_LATE,     /* below a root that was decided against */
    OTELI_END_ABANDONED /* below a root that was left open */
};
enum {
    OTELI_HOLDS = 1,            /* the root of the held set `hold` */
    OTELI_NAME_IS_ADDRESS = 2,  /* the name is the bytes of a pointer to code */
    OTELI_START_IS_GIVEN = 4,   /* by options */
    OTELI_RECORD_ONLY = 8,      /* for processors; it counts as unsampled */
    OTELI_IS_PROCESSED = 16,    /* processors have seen its start */
    OTELI_IS_ENDING = 32,       /* and are being told of its end */
    OTELI_ATTACHED_SIMPLY = 64, /* a context that changed nothing but the span, and still would */
    OTELI_IS_PARENT = 64,       /* a detached span that was attached, or a parent */
    OTELI_IS_ATTACHED = 128,    /* a context, and no cover of one */
    OTELI_IS_ATTACHED_SIMPLY = OTELI_IS_ATTACHED | OTELI_ATTACHED_SIMPLY
};

/* Traits of a span that is not unusual, as the word that they are in memory. */
static inline uint64_t oteli_traits_word(uint32_t wire_flags, uint8_t wire_kind)
{
    const struct oteli_traits traits = {.wire_flags = (uint16_t)wire_flags, .wire_kind = wire_kind};
    uint64_t word;
    memcpy(&word, &traits, sizeof word);
    return word;
}

/* What most sampled spans have: a random trace id, and no parent elsewhere. */
static inline uint64_t oteli_usual_traits(uint8_t wire_kind)
{
    return oteli_traits_word(
        OTEL_TRACE_FLAG_SAMPLED | OTEL_TRACE_FLAG_RANDOM | OTELI_FLAG_HAS_IS_REMOTE, wire_kind);
}

/* The same of a leaf. */
static inline uint64_t oteli_leaf_traits(uint8_t wire_kind)
{
    const struct oteli_traits leaf = {.is_lent = true};
    uint64_t word;
    memcpy(&word, &leaf, sizeof word);
    return word | oteli_usual_traits(wire_kind);
}

/* In oteli_active_span.below of places that are no contexts, and no covers. */
#define OTELI_NOT_A_COVER UINT32_MAX

/* In oteli_active_span.below of a span that is open, and was entered in one of its trace that has
 * ended. */
#define OTELI_PASSED (UINT32_MAX - 1)

/* What few spans have. All zero and empty unless traits.is_unusual says so; made so again by
 * oteli_active_lighten after the end. */
struct oteli_unusual {
    uint8_t own_size; /* no part of this: of `own`, the exponent of a power of two; 0: none */
    uint8_t status;   /* otel_span_status */
    bool has_warned;
    uint8_t warning; /* enum oteli_warning_about, to be logged */
    uint32_t event_count;
    uint32_t link_count;
    uint32_t dropped_attributes;
    uint32_t dropped_events;
    uint32_t dropped_links;
    struct oteli_buffer name;    /* a name that does not fit inline */
    struct oteli_buffer events;  /* Span.events fields */
    struct oteli_buffer links;   /* Span.links fields */
    struct oteli_buffer message; /* status description */
};

/* Laid out by cache lines: every span writes the first two and the name. What a record is
 * made of stands in pairs of 16 bytes that are written and read as such. */
struct oteli_active_span {
    /* The span's handle. Its span id says whether this is still that span: 0 is a free
     * place. In slots of detached spans the span id is a relaxed atomic. A place of the stack is
     * mostly the record that others read: context_record.h. */
    union {
        otel_span self;
        otel_thread_context_record record;
    };
    union {
        struct {
            otel_tracer *tracer;
            uint64_t parent_id; /* 0: a root */
        };
        uint64_t origin[2];
    };
    union {
        struct {
            uint32_t epoch;
            uint32_t name_length;
            struct oteli_traits traits;
        };
        uint64_t shape[2];
    };

    uint64_t start;                 /* ticks, or Unix nanoseconds if OTELI_START_IS_GIVEN */
    struct oteli_buffer attributes; /* Span.attributes fields: in its own memory, or in a line */
    uint32_t attribute_count;
    uint32_t lock;             /* of a detached span: not 0 during a call; see detached_pool.h */
    uint64_t attribute_filter; /* the bits of their keys, or more */
    uint64_t usual_ref;        /* what the handle of most spans here says: sampled,
                                             recorded, and of a random trace id */
    union {
        const otel_thread_context_record
            *shown; /* on a stack: what was published when the place above it was written */
        uint64_t generation; /* detached: of the SDK that it started under */
    };

    union {
        struct {
            uint32_t hold;  /* see oteli_active_hold */
            uint32_t below; /* attached: the attached context below it, as oteli_thread.attached; a
                               cover: the index of what it repeats */
        };
        uint64_t hold_and_below;
    };

    char name[OTELI_NAME_INLINE]; /* or, if longer, in unusual.name; a leaf's is in the line */
    uint8_t *own; /* its own memory for attributes, which it keeps while they are in a line */
    struct oteli_unusual unusual;
    union {
        struct {
            const otel_context_value *values; /* attached: the context's */
            uint64_t token;                   /* attached: which attach it was; 0: detached */
        };
        uint64_t values_and_token[2];
    };
    uint64_t made_at; /* entered, and noted: where its thread's random numbers were when its id was
                         made … (end.c) */
    union {
        uint64_t quiet_to; /* … and to where they have gone since, with nothing of it left */
        struct oteli_active_span
            *outgrown; /* the lowest: the memory that the stack was in before */
    };
    uint64_t baggage;                  /* attached: the context's, held; 0 in every other place */
    otel_thread_context_record *apart; /* what is published where the place cannot be */
};
_Static_assert(offsetof(struct oteli_active_span, name) == 128, "names begin a cache line");
_Static_assert(sizeof(struct oteli_active_span) == 320, "five cache lines");
_Static_assert(offsetof(struct oteli_active_span, attributes.length) ==
                   offsetof(struct oteli_active_span, attributes.capacity) + sizeof(uint32_t),
               "one store sets both");

/* Make room for `more` bytes; NULL (and nothing changed) without memory. Otherwise where
 * they go; add what was written to length. */
OTELI_COLD uint8_t *oteli_buffer_grow(struct oteli_buffer *buffer, size_t more);
static inline uint8_t *oteli_buffer_room(struct oteli_buffer *buffer, size_t more)
{
    if (OTELI_LIKELY(more <= (size_t)(buffer->capacity - buffer->length)))
        return buffer->data + buffer->length;
    return oteli_buffer_grow(buffer, more);
}

void oteli_buffer_fini(struct oteli_buffer *buffer);

/* The same for attributes. */
OTELI_COLD uint8_t *oteli_active_grow(struct oteli_active_span *active, size_t more);
static inline uint8_t *oteli_active_room(struct oteli_active_span *active, size_t more)
{
    const struct oteli_buffer *buffer = &active->attributes;
    if (OTELI_LIKELY(more <= (size_t)(buffer->capacity - buffer->length)))
        return buffer->data + buffer->length;
    return oteli_active_grow(active, more);
}

/* Copy the name, with bad UTF-8 replaced. */
OTELI_COLD void oteli_active_set_long_name(struct oteli_active_span *active, const char *name,
                                           size_t length);

/* Its bits by name. */
static inline bool oteli_active_records(const struct oteli_active_span *active)
{
    return (active->self.opaque[3] & OTEL_SPAN_IS_RECORDING_) != 0;
}

/* What the handle of any span here says: where it is. */
static inline uint64_t oteli_active_place_ref(const struct oteli_active_span *active)
{
    return active->usual_ref & ~OTELI_REF_USUAL;
}

/* The held set that it is a member of (span_set.h), or 0: the field counts where the bits are. */
static inline uint32_t oteli_active_hold(const struct oteli_active_span *active)
{
    return (active->self.opaque[3] & (OTELI_REF_HELD | OTELI_REF_COLLECTED)) != 0 ? active->hold
                                                                                  : 0;
}

static inline uint32_t oteli_active_tracestate(const struct oteli_active_span *active)
{
    return oteli_ref_tracestate(active->self.opaque[3]);
}

static inline const char *oteli_active_name(const struct oteli_active_span *active)
{
    if (active->traits.is_lent)
        return (const char *)active->attributes.data - active->name_length;
    return active->name_length <= OTELI_NAME_INLINE ? active->name
                                                    : (const char *)active->unusual.name.data;
}

/* --- leaves ---
 *
 * The current span may have its name and attributes where they will be in its record, behind the
 * last one in its thread's line, so that they need not be copied when it ends: it is a leaf. Those
 * bytes are not committed, and the worker does not read them. Before anything else is written to
 * the line, or becomes current above it, the leaf takes them back into its place. So at most the
 * top of a stack that is current is a leaf. */

static inline uint32_t oteli_active_own_capacity(const struct oteli_active_span *active)
{
    return UINT32_C(1) << active->unusual.own_size &
           ~UINT32_C(1); /* the exponent 0 stands for none */
}

/* Attributes, of which there are none, will be in the place's own memory. */
static OTELI_INLINE void oteli_active_use_own(struct oteli_active_span *active)
{
    active->attributes.data = active->own;
    active->attributes.capacity = oteli_active_own_capacity(active);
    active->traits.is_lent = false;
}

/* There are none. */
static inline void oteli_active_begin_own(struct oteli_active_span *active)
{
    active->attributes.length = active->attribute_count = 0;
    active->attribute_filter = 0;
    oteli_active_use_own(active);
}

/* Attributes go to `at`, where there is room for `capacity` bytes; the name is before it. The
 * traits of leaves say so. */
static OTELI_INLINE void oteli_active_lend(struct oteli_active_span *active, uint8_t *at,
                                           size_t capacity)
{
    const uint64_t capacity_and_length = oteli_word_of(capacity, 0);
    active->attributes.data = at;
    memcpy(&active->attributes.capacity, &capacity_and_length, sizeof capacity_and_length);
    active->attribute_count = 0;
    active->attribute_filter = 0;
}

/* A leaf takes back what is in the line. */
OTELI_COLD void oteli_active_take_back(struct oteli_active_span *active);

/* The same where there is a name only, of a frequent length. */
static OTELI_INLINE void oteli_active_take_name_back(struct oteli_active_span *active)
{
    (void)oteli_move_8_twice(active->name, oteli_active_name(active), active->name_length);
    oteli_active_use_own(active);
}

static OTELI_INLINE bool oteli_active_is_name_only(const struct oteli_active_span *active)
{
    return active->attributes.length == 0 && active->name_length - 8 <= 8;
}

/* What is left out of a span; the first time in a span it is noted, to be logged once
 * nothing is locked. */
enum oteli_warning_about {
    OTELI_NO_COMPLAINT = 0,
    OTELI_TOO_MANY_ATTRIBUTES,
    OTELI_TOO_MANY_EVENTS,
    OTELI_TOO_MANY_LINKS,
    OTELI_TOO_MANY_EVENT_ATTRIBUTES,
    OTELI_TOO_MANY_LINK_ATTRIBUTES,
    OTELI_BAD_ATTRIBUTE
};
OTELI_COLD void oteli_active_warn(struct oteli_active_span *active, enum oteli_warning_about about);

struct oteli_warning {
    enum oteli_warning_about about;
    char name[64];
};
OTELI_COLD void oteli_active_take_warning(struct oteli_active_span *active,
                                          struct oteli_warning *warning);
OTELI_COLD void oteli_warn_later(const struct oteli_warning *warning);

/* After the end of an unusual span: let go of what a following one need not inherit. */
void oteli_active_lighten(struct oteli_active_span *active);

/* oteli_active_lighten for a place of the stack that is left: it has no span any more. */
OTELI_COLD void oteli_active_leave(struct oteli_active_span *active);

/* oteli_active_leave without giving memory back: in a forked child, whose parent has the span. */
void oteli_active_forget(struct oteli_active_span *active);

/* Free everything that hangs on a slot. */
void oteli_active_fini(struct oteli_active_span *active);

/* Set an attribute under the limits. Empty keys are refused; the same key replaces. */
void oteli_active_set(struct oteli_active_span *active, const struct oteli_limits *limits,
                      const char *key, size_t key_length, const otel_value *value);
void oteli_active_set_many(struct oteli_active_span *active, const struct oteli_limits *limits,
                           const otel_attribute *attributes, size_t count);

/* What stands behind the key of an attribute: its value, as the field of a KeyValue. Empty: no
 * attribute has this key. */
otel_slice oteli_active_find(const struct oteli_active_span *active, const char *key,
                             size_t key_length);

void oteli_active_add_event(struct oteli_active_span *active, const struct oteli_limits *limits,
                            otel_slice name, uint64_t time, const otel_attribute *attributes,
                            size_t count);
void oteli_active_add_link(struct oteli_active_span *active, const struct oteli_limits *limits,
                           const otel_link *link);
/* Write a link without attributes as a Span.links field; at most 600 bytes. */
uint32_t oteli_put_link(uint8_t *at, const otel_link *link);

void oteli_active_set_status(struct oteli_active_span *active, otel_span_status status,
                             otel_slice description);

#endif
