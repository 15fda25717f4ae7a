/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/engine/drain.h - take records out of lines: a pass over the threads' lines and the ring.
 *
 * Threads:  the worker, but for what is said otherwise. */
#ifndef OTELI_DRAIN_H
#define OTELI_DRAIN_H

#include "sdk/pipeline/batch.h"

struct oteli_engine;

/* What a pass visits, in this order: drain.c says why. */
enum oteli_drain_visits { OTELI_DRAIN_RING_BEFORE, OTELI_DRAIN_THREADS, OTELI_DRAIN_RING_AFTER };

/* Where the drain is in its pass over threads and ring. */
struct oteli_drain {
    bool under_way;
    enum oteli_drain_visits visits;
    struct oteli_thread *thread; /* the next to visit */
    struct oteli_line *line;     /* its line, once it is being visited … */
    uint32_t limit;              /* … and how much was committed there by then */
    uint64_t ticket;             /* the ring, from here … */
    uint64_t ring_end;           /* … to here */
    struct oteli_line *parked;   /* retired lines that cannot be given back yet */
    uint64_t taken;              /* spans drained so far */
};

/* Begin a pass, unless one is under way: it visits every thread's line once, and then the
 * ring as far as it reached at that moment. So a finished pass has taken every span that
 * was committed before it began. */
void oteli_drain_begin(struct oteli_engine *engine);

/* Go on with the pass until the batch is full (false) or the pass is done (true). */
bool oteli_drain_continue(struct oteli_engine *engine);

/* Put names in the place of the batch's addresses. The program's resolver may take its time:
 * the mutex is not held. */
void oteli_drain_look_up_names(struct oteli_engine *engine);

/* Let go of a batch's records: their lines can be given back, their room in the queue is
 * free again. */
void oteli_drain_release(struct oteli_engine *engine, otel_batch *batch);

/* Spans that are in lines or ring and that no worker will take any more. Once the worker is
 * done; any thread. */
uint64_t oteli_drain_leftover(const struct oteli_engine *engine);

/* Give back the lines of a worker that is done. Also those that came too late for it, when
 * the engine is freed and no thread is inside any more. */
void oteli_drain_fini(struct oteli_engine *engine);

#endif
