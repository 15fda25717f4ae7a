/* SPDX-License-Identifier: Apache-2.0 */
/* otel/baggage.h - names and values that travel with a context, from process to process.
 *
 * A baggage is a small immutable value: the functions that change one return another. What is
 * in it lies in a pool of the library's, bounded in number and bytes: it stays while a context
 * that has the baggage is attached to any thread, or while the baggage is kept
 * (otel_baggage_keep). When neither is so it is still there until thousands of others have been
 * made (hundreds, if it is larger than a kilobyte), and then the baggage is empty; it is never
 * another one. So a request of an event loop either attaches its context or keeps its baggage,
 * and nothing leaks if a program forgets to let go of one.
 *
 * Every service that gets a request can read its baggage: nothing that is secret belongs in it, and
 * otel_context_with_baggage(context, otel_baggage_none()) is what to send where it is not wanted.
 *
 * Threads:  any thread, lock-free. Works without an SDK.
 * Signals:  all of these may allocate or log: otel/context.h says what is safe in a handler.
 * Errors:   none; what does not fit the limits of W3C Baggage (64 entries, 8192 bytes as it is
 *           on the wire) is left out, and the baggage is as it was.
 * Strings:  UTF-8, copied before return; a value's NULL is an empty string, its bad bytes are
 *           replaced by U+FFFD. Names are compared with case.
 * Source:   OpenTelemetry specification, baggage/api.md; W3C Baggage. */
#ifndef OTEL_BAGGAGE_H
#define OTEL_BAGGAGE_H

#include <otel/context.h>

OTEL_BEGIN_DECLS

typedef struct otel_baggage {
    uint64_t opaque; /* zero: empty */
} otel_baggage;

/* The empty baggage. */
OTEL_INLINE otel_baggage otel_baggage_none(void)
{
    otel_baggage none;
    none.opaque = 0;
    return none;
}

/* The baggage of a context (NULL: the current one). */
OTEL_API otel_baggage otel_context_baggage(const otel_context *context);

/* A context with another baggage. */
OTEL_INLINE otel_context otel_context_with_baggage(otel_context context, otel_baggage baggage)
{
    context.baggage = baggage.opaque;
    return context;
}

/* A baggage with an entry more, in the place of the one of the same name. Names are any UTF-8 but
 * the empty text; only those of letters, digits and !#$%&'*+-.^_`|~ can be sent in W3C headers.
 * `metadata` is what stands behind the value's `;`, or NULL; nothing is known of its meaning. */
OTEL_API otel_baggage otel_baggage_set(otel_baggage baggage, const char *name, const char *value,
                                       const char *metadata);

/* A baggage without the entry of a name. One that has none stays what it is; one for which there is
 * no free slot in the pool is empty. */
OTEL_API otel_baggage otel_baggage_remove(otel_baggage baggage, const char *name);

/* Copy the value of an entry, or its metadata, as otel_span_context_tracestate does: cut to `size`
 * bytes, ended by a NUL. Returns the full length, or SIZE_MAX where there is no such name; 0 where
 * the entry has no metadata. */
OTEL_API size_t otel_baggage_get(otel_baggage baggage, const char *name, char *value, size_t size);
OTEL_API size_t otel_baggage_get_metadata(otel_baggage baggage, const char *name, char *metadata,
                                          size_t size);

/* An entry; its metadata is empty where there is none. Behind each text there is a NUL; a value
 * from a header may have others in it. */
typedef struct otel_baggage_entry {
    otel_slice name;
    otel_slice value;
    otel_slice metadata;
} otel_baggage_entry;

/* All entries, in any order. For each, `visit` is called with texts that are valid during the
 * call; it returns false to stop. */
typedef bool otel_baggage_visitor(void *state, const otel_baggage_entry *entry);
OTEL_API void otel_baggage_each(otel_baggage baggage, otel_baggage_visitor *visit, void *state);

/* How many entries there are. */
OTEL_API size_t otel_baggage_count(otel_baggage baggage);

/* Keep a baggage until otel_baggage_let_go has been called as often. Returns it, or the empty one
 * when it is gone already. */
OTEL_API otel_baggage otel_baggage_keep(otel_baggage baggage);

/* Let go of a baggage that otel_baggage_keep has kept, once. */
OTEL_API void otel_baggage_let_go(otel_baggage baggage);

OTEL_END_DECLS
#endif
