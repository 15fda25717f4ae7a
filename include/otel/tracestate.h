/* SPDX-License-Identifier: Apache-2.0 */
/* otel/tracestate.h - look into a W3C tracestate, and make another one of it.
 *
 * A tracestate is a text, `key=value,key=value`, and these functions never change the one that
 * they are given: the result goes into memory of the caller's, which may be the same. What they
 * write is always valid: blanks and empty members are gone, of members with equal keys the first
 * is there, at most 32, in at most 512 bytes. A text that is not valid counts as empty.
 *
 *     char state[OTEL_TRACESTATE_SIZE];
 *     otel_span_context_tracestate(&parent, state, sizeof state);
 *     otel_tracestate_set(state, "vendor", "value", state, sizeof state);
 *     parent = otel_span_context_make(parent.trace_id, parent.span_id, parent.flags, true, state);
 *
 * Threads:  any thread; no state, no memory. Works without an SDK.
 * Signals:  a handler may call otel_tracestate_get and _remove; otel_tracestate_set may log.
 * Errors:   a key or value that is not valid changes nothing, and the log says so.
 * Source:   OpenTelemetry specification, trace/api.md "TraceState"; W3C Trace Context Level 2,
 *           sections 3.3 and 3.5. */
#ifndef OTEL_TRACESTATE_H
#define OTEL_TRACESTATE_H

#include <otel/base.h>

OTEL_BEGIN_DECLS

enum { OTEL_TRACESTATE_SIZE = 513 }; /* the longest tracestate and its NUL */

/* Get: copy the value of a key, cut to `size` and always ended by a NUL when `size` is not zero.
 * Returns its full length without the NUL, or SIZE_MAX where there is no such key. */
OTEL_API size_t otel_tracestate_get(const char *tracestate, const char *key, char *value,
                                    size_t size);

/* Add and Update: write a tracestate with this member at the front, and without the one of this
 * key. A 33rd member falls off the end; when it is too long, members above 128 bytes go first, then
 * those at the end, the new one last. NULL and "" are a tracestate without members. Returns the
 * length of the result without its NUL; where this is not below `size`, nothing could be written
 * but an empty text. OTEL_TRACESTATE_SIZE is enough for all. */
OTEL_API size_t otel_tracestate_set(const char *tracestate, const char *key, const char *value,
                                    char *result, size_t size);

/* Delete: write a tracestate without the member of this key. Returns as otel_tracestate_set. */
OTEL_API size_t otel_tracestate_remove(const char *tracestate, const char *key, char *result,
                                       size_t size);

OTEL_END_DECLS
#endif
