/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/start_custom.h - what the program is asked when a span starts, where
 * program.has_callbacks says that it has to be: its ids, its sampler; and the context that all of
 * them are shown.
 *
 * App threads, with the state busy: spans that these functions of the program start are refused. */
#ifndef OTELI_START_CUSTOM_H
#define OTELI_START_CUSTOM_H

#include "api/active/active_span.h"
#include "api/thread/thread_state.h"

/* The context that a span with these options starts in. */
otel_context oteli_custom_context(const struct oteli_thread *thread, const otel_span *parent,
                                  const otel_span_options *options);

/* One of the two ids, the other being NULL, asked for twice at most. False: it was zero both times,
 * and nothing is changed. */
bool oteli_custom_id(struct oteli_thread *thread, uint64_t *trace_id, uint64_t *span_id);

/* The sampler's answer; DROP without an SDK. */
void oteli_custom_ask(struct oteli_thread *thread, const struct oteli_sampling_question *question,
                      otel_sampling_result *result);

/* Put the answer's tracestate in the place of the parent's, unless it is not valid. */
void oteli_custom_tracestate(struct oteli_active_span *active, const otel_sampling_result *result,
                             const uint8_t trace_id[16], uint64_t *ref);

#endif
