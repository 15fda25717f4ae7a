/* SPDX-License-Identifier: Apache-2.0 */
/* api/baggage/baggage_pool.h - how baggages are made, kept and written: what is behind
 * otel/baggage.h.
 *
 *     entry    name, value, metadata        packed, each with a final NUL
 *     builder  entries being put together   on the caller's stack (baggage_builder.c)
 *     pool     entries that do not change   numbered slots, reused oldest first (baggage_pool.c)
 *     text     a W3C baggage header         parsed into a builder, written from a slot
 *                                           (baggage_text.c)
 *
 * Threads:  any thread; a builder belongs to its caller.
 * Source:   OpenTelemetry specification, baggage/api.md; W3C Baggage, "Header Content". */
#ifndef OTELI_BAGGAGE_POOL_H
#define OTELI_BAGGAGE_POOL_H

#include "common/text/text.h"
#include <otel/baggage.h>

/* The limits that every platform has to carry after W3C Baggage; we carry no more. Bytes are those
 * of the header's text as we write it. */
enum { OTELI_BAGGAGE_MEMBERS = 64, OTELI_BAGGAGE_BYTES = 8192 };

/* How much text of headers is looked at, with what is not kept of it: blanks, malformed members,
 * %xx that need not be. */
enum { OTELI_BAGGAGE_TEXT = 64 * 1024 };

/* An entry's head. The three texts follow it, each with a final NUL, and perhaps one byte so
 * that the next head is aligned. */
struct oteli_baggage_entry {
    uint16_t name_length;
    uint16_t value_length;
    uint16_t metadata_length;
    uint16_t wire_length; /* in a header, with one comma */
};
enum {
    OTELI_BAGGAGE_ENTRY_MORE = sizeof(struct oteli_baggage_entry) + 3 + 1,
    OTELI_BAGGAGE_ROOM = OTELI_BAGGAGE_BYTES + OTELI_BAGGAGE_MEMBERS * OTELI_BAGGAGE_ENTRY_MORE
};

/* What stands before entries that lie one behind the other: in a builder, or in a slot of the
 * pool. */
struct oteli_baggage_entries {
    uint16_t count;
    uint16_t wire_length; /* the sum of theirs: one comma too many */
    uint32_t length;      /* of what follows */
};

/* A baggage being put together: 9 KiB, on the stack of the call that needs it. */
struct oteli_baggage_builder {
    uint32_t text_left; /* how much of headers will still be looked at */
    uint32_t spare;
    union {
        struct oteli_baggage_entries entries;
        uint8_t room[sizeof(struct oteli_baggage_entries) + OTELI_BAGGAGE_ROOM];
    } made;
};

/* Begin with the entries of a baggage; {0}: with none. */
void oteli_baggage_begin(struct oteli_baggage_builder *builder, otel_baggage from);

/* An entry as it is given. */
struct oteli_baggage_member {
    otel_slice name;
    otel_slice value;
    otel_slice metadata; /* empty: none */
    bool is_encoded;     /* the value has %xx in it */
};

/* Put an entry in, in the place of the one of this name. False, and nothing has changed: its
 * name is empty or no UTF-8, or it would be more than W3C Baggage allows. What is no UTF-8 in
 * a value is replaced by U+FFFD; a % that is not followed by two digits is a %. */
bool oteli_baggage_put(struct oteli_baggage_builder *builder,
                       const struct oteli_baggage_member *member);

/* Take the entry of this name out. False: there is none. */
bool oteli_baggage_drop(struct oteli_baggage_builder *builder, otel_slice name);

/* Keep what was put together. {0}: no entries, or no slot in the pool. */
otel_baggage oteli_baggage_finish(const struct oteli_baggage_builder *builder);

/* The entry of this name; NULL: there is none. */
const struct oteli_baggage_entry *oteli_baggage_find(const struct oteli_baggage_entries *entries,
                                                     otel_slice name);

/* Whether a character of a value stands on the wire as it is: baggage-octet, but for %. */
static inline bool oteli_baggage_is_plain(char c)
{
    return c > ' ' && c <= '~' && c != '"' && c != ',' && c != '\\' && c != '%' && c != ';';
}

/* The same of metadata: there, a ; separates properties, and %xx is the sender's. */
static inline bool oteli_baggage_is_plain_metadata(const char *at, const char *end)
{
    const bool is_code =
        end - at > 2 && *at == '%' && oteli_hex_digit(at[1]) >= 0 && oteli_hex_digit(at[2]) >= 0;
    return oteli_baggage_is_plain(*at) || *at == ';' || is_code;
}

/* --- the W3C header: baggage_text.c --- */

/* Put the members of one baggage header in. Several headers follow each other and have common
 * limits: what is behind the first OTELI_BAGGAGE_TEXT of all of them is not looked at, and
 * members that are malformed or do not fit are left out. Returns how many were put in. */
size_t oteli_baggage_parse(struct oteli_baggage_builder *builder, const char *text, size_t length);

/* Write the header's text with a final NUL, and return its length; 0: there is nothing to
 * send. OTELI_BAGGAGE_BYTES + 1 are enough; in less, as many members as fit. Entries whose
 * names are no tokens cannot be sent, and are left out. */
size_t oteli_baggage_format(otel_baggage baggage, char *text, size_t size);

/* --- the pool: baggage_pool.c --- */

/* Hold the entries of a baggage; NULL: it is empty, or gone. Each hold needs a release. */
const struct oteli_baggage_entries *oteli_baggage_hold(otel_baggage baggage);
void oteli_baggage_release(otel_baggage baggage);

/* Copy entries into the pool. {0}: all slots are held, or there is no memory. */
otel_baggage oteli_baggage_store(const struct oteli_baggage_entries *entries);

/* In a forked child: held is what the program keeps. Stores only. */
void oteli_baggages_forget(void);

/* The process ends, or a test: free the memory in which no baggage is held. */
void oteli_baggages_free(void);

/* The entry at this offset; NULL: there is none. */
static inline const struct oteli_baggage_entry *oteli_baggage_entry_at(
    const struct oteli_baggage_entries *entries, uint32_t at)
{
    return at < entries->length
               ? (const struct oteli_baggage_entry *)(const void *)((const uint8_t *)(entries + 1) +
                                                                    at)
               : NULL;
}

static inline const char *oteli_baggage_name(const struct oteli_baggage_entry *entry)
{
    return (const char *)(entry + 1);
}

static inline const char *oteli_baggage_value(const struct oteli_baggage_entry *entry)
{
    return oteli_baggage_name(entry) + entry->name_length + 1;
}

static inline const char *oteli_baggage_metadata(const struct oteli_baggage_entry *entry)
{
    return oteli_baggage_value(entry) + entry->value_length + 1;
}

static inline uint32_t oteli_baggage_entry_size(size_t texts)
{
    return (uint32_t)((sizeof(struct oteli_baggage_entry) + texts + 3 + 1) & ~(size_t)1);
}

/* From an entry to the one behind it. */
static inline uint32_t oteli_baggage_entry_length(const struct oteli_baggage_entry *entry)
{
    return oteli_baggage_entry_size((size_t)entry->name_length + entry->value_length +
                                    entry->metadata_length);
}

#endif
