/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/fork_engine.h - an engine like the one that a forked child's parent ran.
 *
 * The parent's engine is a copy of what its threads were in the middle of. Only what is
 * constant from its start on is read, and nothing of it is written, given back or locked: its
 * queue, its batches and its counters are the parent's business, and its exporters have
 * connections that must not hear of the child.
 *
 * Threads:  an app thread of the child, under the lifecycle lock. */
#ifndef OTELI_FORK_ENGINE_H
#define OTELI_FORK_ENGINE_H

#include "sdk/engine/engine.h"

/* An engine with the same settings and an empty queue, whose exporters were made anew. One
 * that cannot be drops what it is given as OTEL_DROP_FORKED_CHILD. */
otel_status oteli_engine_renew(const struct oteli_engine *parents, struct oteli_engine **renewed);

#endif
