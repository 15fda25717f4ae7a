/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/worker.h - when to export: the batch span processor's consumer.
 *
 * Threads:  the worker: "otel-export", the caller of otel_poll, or a test. */
#ifndef OTELI_WORKER_H
#define OTELI_WORKER_H

#include "sdk/engine/engine.h"

enum oteli_round {
    OTELI_ROUND_IDLE,    /* nothing to do until *deadline_ns, *wanted spans, or an exporter's
                            descriptor (on_idle.c) */
    OTELI_ROUND_WORKED,  /* something was done, there may be more */
    OTELI_ROUND_PENDING, /* an exporter has to be waited for, and that was not allowed */
    OTELI_ROUND_STOPPED  /* shut down */
};

/* One round: export for one reason, if there is any. Worker, otel_poll, or a test. */
enum oteli_round oteli_worker_round(struct oteli_engine *engine, bool may_wait, int64_t *wanted,
                                    uint64_t *deadline_ns);

/* The last round is over: otel_shutdown may return. */
void oteli_worker_finish(struct oteli_engine *engine);

/* When spans come steadily, the worker looks by itself when the next batch should be full: to wake
 * it costs a thread of the program more than many spans do, and threads announce only the spans of
 * used quotas. Meanwhile they ring for a quarter more than a batch, or for a quarter of the queue
 * where batches come faster than a timer; otherwise for a batch. */
void oteli_worker_pace(struct oteli_engine *engine, uint64_t now_ns, int64_t *wanted,
                       uint64_t *deadline_ns);

/* The exporter thread's main function. */
void *oteli_worker_main(void *argument);

#endif
