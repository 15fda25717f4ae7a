/* SPDX-License-Identifier: Apache-2.0 */
/* otel/propagate.h - carry a context into and out of headers of any kind.
 *
 * Threads:  any thread; exchanging the global propagator is start/stop only.
 * Signals:  all of these may allocate: otel/context.h says what is safe in a handler.
 * Errors:   none. A header that is malformed leaves the context as it was.
 * Source:   OpenTelemetry specification, context/api-propagators.md and
 *           context/env-carriers.md; W3C Trace Context Level 2; W3C Baggage; B3; Jaeger. */
#ifndef OTEL_PROPAGATE_H
#define OTEL_PROPAGATE_H

#include <otel/context.h>

OTEL_BEGIN_DECLS

/* --- carriers: functions without a state of their own; the carrier is yours --- */

/* Give the value of header `name` (lower case; compare without case where the protocol
 * does) and its length, or NULL. `index` counts the headers of that name, from zero: the
 * propagator asks until it gets NULL. The text is borrowed until the next call; blanks at its ends
 * are no part of the value. */
typedef const char *otel_get_header(void *carrier, const char *name, size_t index, size_t *length);

/* Call `visit` with the name of each header; only Jaeger asks for that, whose baggage is in
 * headers of any name (uberctx-…). The names are borrowed during the call. */
typedef void otel_visit_header(void *state, const char *name, size_t length);
typedef void otel_list_headers(void *carrier, otel_visit_header *visit, void *state);

/* Set header `name` to `value`, a text with a final NUL; replaces a header of this name. */
typedef void otel_set_header(void *carrier, const char *name, const char *value, size_t length);

/* How a carrier is read. */
typedef struct otel_carrier_reader {
    otel_get_header *get;
    otel_list_headers *list; /* or NULL: it cannot tell */
    void *carrier;
} otel_carrier_reader;

/* --- propagators --- */

/* One of your own is a static struct of these functions. `inject` sets nothing where the
 * context has nothing for it; `extract` returns the context as it was when the headers say
 * nothing, or nothing that can be understood. */
typedef struct otel_propagator {
    size_t size;      /* sizeof(otel_propagator) */
    const char *name; /* static text, for messages */
    const void *state;
    void (*inject)(const void *state, const otel_context *context, otel_set_header *set,
                   void *carrier);
    otel_context (*extract)(const void *state, const otel_context *context,
                            const otel_carrier_reader *reader);
    const char *const *fields; /* the headers that inject may set, ended by NULL */
    const void *reserved[2];   /* NULL */
} otel_propagator;

#define OTEL_PROPAGATOR(...)                         \
    {                                                \
        .size = sizeof(otel_propagator), __VA_ARGS__ \
    }

/* The propagator of each format; static. B3 reads its single header and, without one, the several;
 * a trace id of 64 bits gets zeros in front. B3 ids without a sampling state leave the decision to
 * us: a sampler that looks at parents then decides as for a root. The debug flag of B3 and Jaeger
 * stays with the trace, and goes out in these two formats. */
OTEL_API const otel_propagator *otel_propagator_trace_context(void);
OTEL_API const otel_propagator *otel_propagator_baggage(void);
OTEL_API const otel_propagator *otel_propagator_b3(void);       /* writes the single header */
OTEL_API const otel_propagator *otel_propagator_b3_multi(void); /* writes several */
OTEL_API const otel_propagator *otel_propagator_jaeger(void);
OTEL_API const otel_propagator *otel_propagator_none(void); /* does nothing */

/* The propagator of a name as in OTEL_PROPAGATORS ("tracecontext", "baggage", "b3", "b3multi",
 * "jaeger", "none"), or NULL. */
OTEL_API const otel_propagator *otel_propagator_named(const char *name);

/* Make one propagator of several, one after the other, each once: at most OTEL_PROPAGATORS_MOST,
 * the others are left out. `composite` is the caller's memory, which has to stay while it is in
 * use; it must not be moved. Returns it as a propagator. */
enum { OTEL_PROPAGATORS_MOST = 8, OTEL_PROPAGATOR_FIELDS_MOST = 31 };
typedef struct otel_composite_propagator {
    otel_propagator propagator;
    const otel_propagator *parts[OTEL_PROPAGATORS_MOST];
    size_t count;
    const char *fields[OTEL_PROPAGATOR_FIELDS_MOST + 1];
} otel_composite_propagator;
OTEL_API const otel_propagator *otel_propagator_compose(otel_composite_propagator *composite,
                                                        const otel_propagator *const *parts,
                                                        size_t count);

/* Fields: the headers that inject may set, ended by NULL, for programs that clear them first or set
 * memory aside. Jaeger's baggage has names of its own, which are not among them. Here and in the
 * calls below NULL, as of a name that is unknown, is the propagator that does nothing. */
OTEL_API const char *const *otel_propagator_fields(const otel_propagator *propagator);

/* Get the global propagator, or choose another. Until otel_start or otel_propagator_set chooses
 * another, it is the one that does nothing. `propagator` is kept, and has to stay; NULL: none. */
OTEL_API const otel_propagator *otel_propagator_get(void);
OTEL_API void otel_propagator_set(const otel_propagator *propagator);

/* Write a context (NULL: the current one) into headers. */
OTEL_API void otel_propagator_inject(const otel_propagator *propagator, const otel_context *context,
                                     otel_set_header *set, void *carrier);

/* Return a context (NULL: the current one) with what the headers say. The second one takes
 * carriers that can list their headers. */
OTEL_API otel_context otel_propagator_extract(const otel_propagator *propagator,
                                              const otel_context *context, otel_get_header *get,
                                              void *carrier);
OTEL_API otel_context otel_propagator_extract_from(const otel_propagator *propagator,
                                                   const otel_context *context,
                                                   const otel_carrier_reader *reader);

/* otel_propagator_inject, and _extract, and _extract_from, by the global propagator. */
OTEL_INLINE void otel_inject(const otel_context *context, otel_set_header *set, void *carrier)
{
    otel_propagator_inject(otel_propagator_get(), context, set, carrier);
}
OTEL_INLINE otel_context otel_extract(const otel_context *context, otel_get_header *get,
                                      void *carrier)
{
    return otel_propagator_extract(otel_propagator_get(), context, get, carrier);
}
OTEL_INLINE otel_context otel_extract_from(const otel_context *context,
                                           const otel_carrier_reader *reader)
{
    return otel_propagator_extract_from(otel_propagator_get(), context, reader);
}

/* --- environment variables as a carrier: TRACEPARENT, TRACESTATE, BAGGAGE, B3 … --- */

/* Return a context (NULL: the current one) with what this process was started with, by the global
 * propagator. The environment is read now: where the program starts, before anything could change
 * it. Every user that may inspect a process can read its environment: nothing secret belongs into
 * baggage that goes this way. */
OTEL_API otel_context otel_extract_environment(const otel_context *context);

/* Make the environment for a child process: a copy of `environment` (NULL: this process's) ended by
 * NULL, with the variables of the context (NULL: the current one) set, and those that the global
 * propagator could set but did not, removed. The process's own environment is not changed. One
 * block: free it with free(). NULL: no memory. Not between fork and exec of a process with
 * threads: before. */
OTEL_API char **otel_environment_for_child(const otel_context *context,
                                           const char *const *environment);

/* How an environment is read, for an otel_carrier_reader: `carrier` is a char ** like that of
 * main, or NULL for this process's. Header names are normalized: "x-b3-traceid" is the variable
 * X_B3_TRACEID, and variables that are not in this form are not listed. */
OTEL_API const char *otel_environment_get(void *carrier, const char *name, size_t index,
                                          size_t *length);
OTEL_API void otel_environment_list(void *carrier, otel_visit_header *visit, void *state);

OTEL_END_DECLS
#endif
