/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/consistent.h - the decision that all participants of a trace would make alike: its
 * randomness R, 56 bits that they share, against a threshold T. Kept is what has R >= T.
 *
 * Threads:  any; no state.
 * Source:   OpenTelemetry specification, trace/tracestate-probability-sampling.md. */
#ifndef OTELI_CONSISTENT_H
#define OTELI_CONSISTENT_H

#include "sdk/sampling/ot_tracestate.h"

/* Whether the span has a parent, here or in another process. */
bool oteli_query_has_parent(const otel_sampling_query *query);

/* Whether the span has a parent with a sampling decision: a B3 header may come without one, which
 * leaves the decision to this process. */
bool oteli_query_has_decision(const otel_sampling_query *query);

/* R: the explicit one of the tracestate, or else the low 56 bits of the trace id. */
uint64_t oteli_randomness(const otel_sampling_query *query, const struct oteli_ot *ot);

/* Compare R with the threshold of the intent, and keep th of the tracestate true: it is there
 * where a span was sampled by a threshold that is known, and nowhere else. `ot` is that of the
 * parent's tracestate. */
void oteli_consistent_decide(const otel_sampling_query *query, const struct oteli_ot *ot,
                             const otel_sampling_intent *intent, otel_sampling_result *result);

/* Whether this is the first call with this flag, which was 0. Any thread. */
bool oteli_is_first(uint32_t *flag);

#endif
