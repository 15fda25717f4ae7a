/* SPDX-License-Identifier: Apache-2.0 */
/* api/open.h - an open span: what is known of it so far.
 *
 * Attributes, events and links are kept as the OTLP bytes that they will be on the wire,
 * each kind in a buffer of its own, so that ending a span is copying. The buffers stay
 * with the slot when the span ends and serve the next one: no allocation once a slot has
 * seen its largest span.
 *
 * Threads:  a local span's slot belongs to its thread; a detached span's slot is used
 *           under the slot's lock (detached.h). */
#ifndef OTELI_OPEN_H
#define OTELI_OPEN_H

#include "api/handle.h"
#include "api/sdk_link.h"

/* Bytes that grow. Buffers above OTELI_BUFFER_KEPT are given back when their span ends. */
struct oteli_buffer {
    uint8_t *data;
    uint32_t length;
    uint32_t capacity;
};
enum { OTELI_BUFFER_FIRST = 512, OTELI_BUFFER_KEPT = 64 * 1024, OTELI_NAME_INLINE = 48 };

/* Where an attribute stands, and enough of its key to tell most keys apart. */
struct oteli_attribute_place {
    uint64_t signature; /* length of the key, and its last four bytes */
    uint32_t at;        /* of the field's tag */
    uint32_t key_at;
};

/* What few spans have. All zero and empty unless is_unusual says so; made so again by
 * oteli_open_lighten after the end. */
struct oteli_unusual {
    uint32_t event_count;
    uint32_t link_count;
    uint32_t dropped_attributes;
    uint32_t dropped_events;
    uint32_t dropped_links;
    uint8_t status; /* otel_span_status */
    bool has_complained;
    uint8_t complaint;           /* enum oteli_complaint_about, to be logged */
    struct oteli_buffer name;    /* a name that does not fit inline */
    struct oteli_buffer events;  /* Span.events fields */
    struct oteli_buffer links;   /* Span.links fields */
    struct oteli_buffer message; /* status description */
};

/* Laid out by cache lines: every span writes the first three. */
struct oteli_open {
    uint64_t trace_id[2]; /* ids as bytes in memory, like in handles */
    uint64_t span_id;     /* 0: ended, or a free slot; relaxed atomic in detached records */
    uint64_t parent_id;   /* 0: a root */
    otel_span saved;      /* local: what was current before */

    uint64_t start; /* ticks with OTELI_TICKS_BIT, or Unix nanoseconds */
    otel_tracer *tracer;
    uint64_t generation; /* detached: of the SDK that it started under */
    uint32_t epoch;
    uint32_t tracestate; /* a reference that this span holds, or 0 */
    bool recording;
    uint8_t flags; /* W3C */
    uint8_t kind;  /* otel_span_kind */
    bool parent_is_remote;
    bool is_unusual; /* has anything but ids, a short name, times and attributes */
    uint32_t name_length;
    uint32_t attribute_count;
    struct oteli_buffer attributes; /* Span.attributes fields */

    char name[OTELI_NAME_INLINE];         /* or, if longer, in unusual.name */
    struct oteli_attribute_place *places; /* of the attributes, in their order */
    uint32_t place_capacity;

    struct oteli_unusual unusual;
    uint64_t reserved[5];
};
_Static_assert(sizeof(struct oteli_open) == 320, "five cache lines");

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

/* Copy the name, with bad UTF-8 replaced. */
OTELI_COLD void oteli_open_set_long_name(struct oteli_open *open, const char *name, size_t length);

static inline const char *oteli_open_name(const struct oteli_open *open)
{
    return open->name_length <= OTELI_NAME_INLINE ? open->name
                                                  : (const char *)open->unusual.name.data;
}

/* What is left out of a span; the first time in a span it is noted, to be logged once
 * nothing is held any more. */
enum oteli_complaint_about {
    OTELI_NO_COMPLAINT = 0,
    OTELI_TOO_MANY_ATTRIBUTES,
    OTELI_TOO_MANY_EVENTS,
    OTELI_TOO_MANY_LINKS,
    OTELI_BAD_ATTRIBUTE
};
OTELI_COLD void oteli_open_complain(struct oteli_open *open, enum oteli_complaint_about about);

struct oteli_complaint {
    enum oteli_complaint_about about;
    char name[64];
};
OTELI_COLD void oteli_open_take_complaint(struct oteli_open *open,
                                          struct oteli_complaint *complaint);
OTELI_COLD void oteli_complain(const struct oteli_complaint *complaint);

/* After the end of an unusual span: let go of what a following one need not inherit. */
OTELI_COLD void oteli_open_lighten(struct oteli_open *open);

/* Free everything that hangs on a slot. */
void oteli_open_fini(struct oteli_open *open);

/* Set an attribute under the limits. Empty keys are refused; the same key replaces. */
void oteli_open_set(struct oteli_open *open, const struct oteli_limits *limits, const char *key,
                    size_t key_length, const otel_value *value);
void oteli_open_set_string(struct oteli_open *open, const struct oteli_limits *limits,
                           const char *key, size_t key_length, const char *value, size_t length);
void oteli_open_set_int(struct oteli_open *open, const struct oteli_limits *limits, const char *key,
                        size_t key_length, int64_t value);
void oteli_open_set_many(struct oteli_open *open, const struct oteli_limits *limits,
                         const otel_attribute *attributes, size_t count);

void oteli_open_add_event(struct oteli_open *open, const struct oteli_limits *limits,
                          const char *name, uint64_t time, const otel_attribute *attributes,
                          size_t count, const otel_attribute *first, size_t first_count);
void oteli_open_add_link(struct oteli_open *open, const struct oteli_limits *limits,
                         const otel_link *link);
void oteli_open_set_status(struct oteli_open *open, otel_span_status status,
                           const char *description);

#endif
