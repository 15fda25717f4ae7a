/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/engine/engine.h - a running SDK: its pipelines, the queue before them, and who may touch
 * what.
 *
 *     app threads ─quotas─▶ reserved        drain ─▶ batch ─▶ export ─▶ pipelines
 *                 ──lines─▶ ring ─────────▶    (worker.c drives these, on otel-export)
 *                 ─waker──▶
 *     any thread  ──asks──▶ flush_wanted, stopping
 *
 * One engine lives from otel_start to the next otel_start, so that its statistics can be
 * read after the shutdown. */
#ifndef OTELI_ENGINE_H
#define OTELI_ENGINE_H

#include "api/thread/sdk_slot.h"
#include "api/thread/thread_state.h"
#include "sdk/engine/drain.h"
#include "sdk/engine/processors.h"
#include "sdk/engine/tail.h"
#include "sdk/lifecycle/custom_callbacks.h"
#include "sdk/lifecycle/sdk_start.h"
#include "sdk/pipeline/batch.h"
#include "sdk/pipeline/event_loop_fds.h"
#include "sdk/pipeline/ring.h"
#include "sdk/pipeline/waker.h"
#include "sdk/process_context/process_context.h"
#include "sdk/resource/resource.h"
#include "sdk/sampling/builtin_sampler.h"
#include "sdk/worker/export.h"
#include "sdk/worker/worker.h"

#include <otel/sdk.h>
#include <pthread.h>

struct oteli_engine {
    struct oteli_sdk sdk; /* first: what the API holds is a pointer to it */
    struct oteli_sampler sampler;
    struct oteli_hooks hooks;
    struct oteli_processors processors;
    struct oteli_tail_rules tail;
    struct oteli_resource resource;
    struct oteli_pipeline *pipelines;
    size_t pipeline_count;

    uint64_t queue_size; /* spans */
    uint64_t schedule_delay_ns;
    uint64_t export_timeout_ns; /* UINT64_MAX: none */

    /* of the app threads */
    _Alignas(
        OTELI_CACHELINE) struct oteli_waker waker; /* one cache line for all that a lot costs */
    uint64_t reserved;                             /* spans in quotas, lines and batches */
    /* The queue was full, but there was nothing to take: all of its room is in quotas of
     * threads that do not use it. Set by the worker, unset by whoever uses up a lot. */
    uint32_t full_but_empty;
    _Alignas(OTELI_CACHELINE) struct oteli_ring ring;

    /* of the worker */
    otel_batch batches[2];
    otel_batch *batch;            /* the one of them that is being filled */
    bool is_prepared;             /* the exporters have been shown it, complete */
    struct oteli_sending sending; /* perhaps the other */
    struct oteli_drain drain;
    struct oteli_pass pass;
    struct oteli_event_fds event_fds;
    uint64_t told_drops;      /* by threads, and known to the log … */
    uint64_t drops_meanwhile; /* … since it said that the queue is full … */
    bool threads_drop;        /* … and whether it goes on */
    uint64_t tick_ns;         /* when to export what there is; UINT64_MAX: asleep */
    bool asleep;              /* the generation says so: the next span wakes us */

    /* of any thread, through the mutex */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t flush_done;     /* the newest request that is done */
    uint64_t flush_failures; /* flushes that an exporter answered with an error */
    uint64_t told_lost;      /* the losses that flushes have answered for so far; atomic */
    uint32_t done;           /* the worker has returned; release, also read without the mutex */
    uint32_t hangs;          /* an exporter did not come back: the worker may not touch lines any
                            more, thread and memory are left to it; release, likewise */
    uint32_t users;          /* calls that wait on this engine; under the lifecycle lock */

    /* of any thread, read by the worker */
    uint64_t flush_wanted;      /* requests so far */
    uint64_t flush_deadline_ns; /* the latest of those that are not done; through the mutex */
    uint64_t stop_deadline_ns;  /* 0: running; monotonic */

    pthread_t thread;
    size_t thread_stack_bytes;
    void (*thread_started)(void *state); /* or NULL */
    void *thread_started_state;
    struct oteli_engine *next_grave;
    char thread_context_schema[OTELI_SCHEMA_SIZE]; /* "": this process publishes no context */
    uint64_t told_dropped[OTELI_ORIGINS];          /* of self_metrics.c; under the lifecycle lock */
};

otel_status oteli_engine_new(const struct oteli_engine_options *options,
                             struct oteli_engine **engine);
void oteli_engine_free(struct oteli_engine *engine);

/* Parts of oteli_engine_new, for fork_engine.c: no engine had this number before; nothing waits and
 * the worker will sleep; memory, mutex and whatever else one engine has of its own. */
uint64_t oteli_engine_next_generation(void);
void oteli_engine_rest(struct oteli_engine *engine);
otel_status oteli_engine_furnish(struct oteli_engine *engine, size_t batch_capacity,
                                 bool is_driven);

#endif
