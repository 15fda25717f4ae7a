/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/on_idle.h - exporters that have something to do without being given a batch
 * (otel_exporter.attend).
 *
 * Threads:  the worker, or any thread under the mutex of a synchronous engine. */
#ifndef OTELI_ON_IDLE_H
#define OTELI_ON_IDLE_H

#include <stdbool.h>
#include <stdint.h>

struct oteli_engine;
struct oteli_pipeline;

/* The exporter is there. */
void oteli_on_idle_init(struct oteli_pipeline *pipeline);

/* An export of this pipeline has ended. */
void oteli_on_idle_soon(struct oteli_pipeline *pipeline);

/* Let exporters do what is due; no export is under way. When to call it again in any case;
 * UINT64_MAX: not before the next export. */
uint64_t oteli_on_idle(struct oteli_engine *engine);

/* The SDK stops: let each exporter finish what it does, until the deadline. */
void oteli_on_idle_finish(struct oteli_engine *engine, uint64_t deadline_ns);

/* Whether some exporter has a descriptor to wait for. */
bool oteli_on_idle_has_descriptor(const struct oteli_engine *engine);

/* Watch it, or none, in the engine's driving. Until when to wait for it, at most `until_ns`. */
uint64_t oteli_on_idle_watch(struct oteli_engine *engine, uint64_t until_ns);

/* Sleep on it and on the waker: oteli_waker_sleep for an engine with a thread. */
void oteli_on_idle_sleep(struct oteli_engine *engine, uint32_t heard, int64_t wanted,
                         uint64_t deadline_ns);

#endif
