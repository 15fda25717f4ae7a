/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/export.h - export a batch through one pipeline after the other, and count what became
 * of it. One batch at one exporter is an export call (otel_export in otel/exporter.h); it ends when
 * each span of the batch is counted.
 *
 * Threads:  the worker, or any thread under the mutex of a synchronous engine. */
#ifndef OTELI_EXPORT_H
#define OTELI_EXPORT_H

#include "sdk/engine/engine.h"

/* Give the batch of engine->sending to one pipeline after the other. False: one is not done yet. */
bool oteli_export_ask(struct oteli_engine *engine);

/* Go on with the export that is under way, and wait for its exporter if `may_wait`. True: it
 * has been through every pipeline, and is counted. */
bool oteli_export_continue(struct oteli_engine *engine, bool may_wait);

/* From beginning to end. */
void oteli_export_batch(struct oteli_engine *engine, otel_batch *batch);

/* Let the exporters be shown the batch that comes after the one under way, each once it has
 * that one. */
void oteli_export_prepare(struct oteli_engine *engine, const otel_batch *next);

/* Say in the log when threads begin to drop spans because the queue is full, and when that is
 * over. */
void oteli_export_tell_drops(struct oteli_engine *engine);

/* Hand a flush on to the exporters themselves; a failure is counted. */
void oteli_export_flush(struct oteli_engine *engine, uint64_t deadline_ns);

/* Free the exporters. */
void oteli_export_fini(struct oteli_engine *engine);

/* When the export under way must be over, at the latest. */
uint64_t oteli_export_deadline(const struct oteli_engine *engine, uint64_t started_ns);

/* Make an export that waits look at its deadline again. Any thread. */
void oteli_export_wake(struct oteli_engine *engine);

/* Export a batch through one pipeline that is of no engine, from beginning to end. */
void oteli_pipeline_export(struct oteli_pipeline *pipeline, const otel_batch *batch,
                           uint64_t deadline_ns);

/* Count spans that its exporter is not given, and say so in the log. */
void oteli_pipeline_drop(struct oteli_pipeline *pipeline, otel_drop_reason reason, uint64_t count);

/* In a forked child: an exporter like the parent's. One that cannot be made drops what it is given
 * as OTEL_DROP_FORKED_CHILD, and does not take others with it. */
otel_exporter oteli_exporter_renew(const otel_exporter *parents);

#endif
