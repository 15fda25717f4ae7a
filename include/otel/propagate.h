/* SPDX-License-Identifier: Apache-2.0 */
/* otel/propagate.h - carry a context into and out of headers of any kind.
 *
 * Threads:  any thread; exchanging the global propagator is start/stop only.
 * Errors:   none. A header that is malformed leaves the context as it was.
 * Source:   OpenTelemetry specification, context/api-propagators.md; W3C Trace Context
 *           Level 2 (headers traceparent and tracestate). */
#ifndef OTEL_PROPAGATE_H
#define OTEL_PROPAGATE_H

#include <otel/context.h>

OTEL_BEGIN_DECLS

/* Give the value of header `name` (lower case; compare without case where the protocol
 * does) and its length, or NULL. `index` counts the headers of that name, from zero: the
 * propagator asks until it gets NULL. The text is borrowed until the next call. */
typedef const char *otel_get_header(void *carrier, const char *name, size_t index, size_t *length);

/* Set header `name` to `value`, a text with a final NUL; replaces what is there. */
typedef void otel_set_header(void *carrier, const char *name, const char *value, size_t length);

typedef struct otel_propagator otel_propagator;

/* The W3C Trace Context propagator. Static. */
OTEL_API const otel_propagator *otel_propagator_trace_context(void);

/* The propagator that does nothing: the global one until otel_start or
 * otel_propagator_set chooses another. Static. */
OTEL_API const otel_propagator *otel_propagator_none(void);

/* The global propagator. `propagator` is kept: it must be one of this header's. */
OTEL_API const otel_propagator *otel_propagator_get(void);
OTEL_API void otel_propagator_set(const otel_propagator *propagator);

/* Write a context (NULL: the current one) into headers. */
OTEL_API void otel_propagator_inject(const otel_propagator *propagator, const otel_context *context,
                                     otel_set_header *set, void *carrier);

/* Return a context (NULL: the current one) with what the headers say. */
OTEL_API otel_context otel_propagator_extract(const otel_propagator *propagator,
                                              const otel_context *context, otel_get_header *get,
                                              void *carrier);

/* The same with the global propagator. */
static inline void otel_inject(const otel_context *context, otel_set_header *set, void *carrier)
{
    otel_propagator_inject(otel_propagator_get(), context, set, carrier);
}
static inline otel_context otel_extract(const otel_context *context, otel_get_header *get,
                                        void *carrier)
{
    return otel_propagator_extract(otel_propagator_get(), context, get, carrier);
}

OTEL_END_DECLS
#endif
