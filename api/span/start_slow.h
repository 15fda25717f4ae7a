/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/start_slow.h - start a span of any kind, whatever the state of the thread and of the
 * SDK: what the fast path of start.c leaves to be done. App threads; the state is not busy, unless
 * by a call that a signal handler has interrupted. */
#ifndef OTELI_START_SLOW_H
#define OTELI_START_SLOW_H

#include <otel/trace.h>

/* It becomes current. */
void oteli_span_enter_slow(otel_span *span, otel_tracer *tracer, const char *name,
                           size_t name_length, const otel_span_options *options);

/* It is detached. */
void oteli_span_start_slow(otel_span *span, otel_tracer *tracer, const char *name,
                           size_t name_length, const otel_span_options *options);

#endif
