/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/engine_life.h - make an engine, make one like a parent's in a forked child, and
 * free it.
 *
 * The parent's engine is a copy of what its threads were in the middle of. Only what is
 * constant from its start on is read, and nothing of it is written, given back or locked: its
 * queue, its batches and its counters are the parent's business, and its exporters have
 * connections that must not hear of the child.
 *
 * Threads:  start/stop only; of a forked child the thread that records its first span, under the
 *           lock of the current engine. */
#ifndef OTELI_ENGINE_LIFE_H
#define OTELI_ENGINE_LIFE_H

#include "sdk/engine/engine.h"
#include "sdk/lifecycle/sdk_start.h"

otel_status oteli_engine_new(const struct oteli_engine_options *options,
                             struct oteli_engine **made);

/* An engine with the settings of the parent's and an empty queue, whose exporters were made anew.
 * One that cannot be drops what it is given as OTEL_DROP_FORKED_CHILD. */
otel_status oteli_engine_renew(const struct oteli_engine *parents, struct oteli_engine **renewed);

/* Free the program's sampler; a second time does nothing. */
void oteli_engine_free_sampler(struct oteli_engine *engine);

void oteli_engine_free(struct oteli_engine *engine);

#endif
