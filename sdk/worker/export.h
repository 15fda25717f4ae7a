/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/export.h - export a batch through one pipeline after the other, and count what became
 * of it.
 *
 * Threads:  the worker, or any thread under the mutex of a synchronous engine. */
#ifndef OTELI_EXPORT_H
#define OTELI_EXPORT_H

#include "sdk/pipeline/batch.h"

struct oteli_engine;

/* How exports ended: with success, with spans refused, or dropped for a reason (the last that
 * was given): OTELI_EXPORT_DROPPED and the reason. */
enum {
    OTELI_EXPORT_SUCCEEDED = 0,
    OTELI_EXPORT_REJECTED = 1,
    OTELI_EXPORT_DROPPED = 2,
    OTELI_EXPORT_OUTCOMES = OTELI_EXPORT_DROPPED + OTEL_DROP_REASON_COUNT
};

/* One exporter and what it did. Counters have one writer at a time, anybody reads. */
struct oteli_pipeline {
    otel_exporter exporter;
    uint64_t delivered;
    uint64_t rejected;
    uint64_t spooled;
    uint64_t dropped[OTEL_DROP_REASON_COUNT];
    uint64_t exporter_dropped[OTEL_DROP_REASON_COUNT]; /* of these: by the exporter */
    uint64_t batches;
    uint64_t handed;                              /* spans that it was given so far */
    uint64_t export_count[OTELI_EXPORT_OUTCOMES]; /* exports that ended so, and … */
    uint64_t export_ns[OTELI_EXPORT_OUTCOMES];    /* … what they took together */
    uint64_t lost_meanwhile; /* for the log: since the first loss, until recovery */

    /* of on_idle.c */
    bool attends;       /* the exporter can. Constant */
    int attend_fd;      /* to wait for before calling it; -1: none */
    uint64_t attend_ns; /* when to call it in any case; UINT64_MAX: not before an export */
};

/* The export that is under way: through one pipeline after the other. */
struct oteli_sending {
    otel_batch *batch; /* NULL: none is */
    size_t pipeline;
    const otel_batch *next; /* complete, it comes after this one; NULL: there is none yet */
    size_t shown;           /* pipelines that have been shown it: who has this one already */
    uint64_t started_ns;
    struct oteli_call call;
};

/* Follow the clocks; before times are converted. */
void oteli_export_renew_clock(struct oteli_engine *engine);

/* Begin to export a batch; none is under way. */
void oteli_export_begin(struct oteli_engine *engine, otel_batch *batch);

/* Go on with the export that is under way, and wait for its exporter if `may_wait`. True: it
 * has been through every pipeline, and is counted. */
bool oteli_export_continue(struct oteli_engine *engine, bool may_wait);

/* From beginning to end. */
void oteli_export_batch(struct oteli_engine *engine, otel_batch *batch);

/* Let the exporters be shown the batch that comes after the one under way, each once it has
 * that one. */
void oteli_export_prepare(struct oteli_engine *engine, const otel_batch *next);

/* Count a batch's spans as dropped in every pipeline. */
void oteli_export_drop_all(struct oteli_engine *engine, otel_drop_reason reason, uint64_t count);

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
