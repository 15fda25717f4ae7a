/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/engine/engine.h - a running SDK: its pipelines, the queue before them, and which thread may
 * touch what.
 *
 *     app threads ─quotas─▶ reserved        drain ─▶ batch ─▶ export ─▶ pipelines
 *                 ──lines─▶ ring ─────────▶    (worker.c drives these, on otel-export)
 *                 ─waker──▶
 *     any thread  ──asks──▶ flush_wanted, stop_deadline_ns
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
#include "sdk/pipeline/batch.h"
#include "sdk/pipeline/event_loop_fds.h"
#include "sdk/pipeline/ring.h"
#include "sdk/pipeline/waker.h"
#include "sdk/resource/resource.h"
#include "sdk/sampling/builtin_sampler.h"

#include <otel/sdk.h>
#include <pthread.h>

/* How exports ended: with success, with spans refused, or dropped for a reason (of several the
 * one with most spans): OTELI_EXPORT_DROPPED and the reason. */
enum {
    OTELI_EXPORT_SUCCEEDED = 0,
    OTELI_EXPORT_REJECTED = 1,
    OTELI_EXPORT_DROPPED = 2,
    OTELI_EXPORT_OUTCOMES = OTELI_EXPORT_DROPPED + OTEL_DROP_REASON_COUNT
};

/* One exporter and what it did. Counters have one writer at a time; any thread reads them. */
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
    size_t shown;           /* to pipelines: those that have `batch` already */
    uint64_t started_ns;
    struct oteli_call call;
};

/* Why everything that was committed by now is being exported. */
enum oteli_reason {
    OTELI_REASON_NONE,
    OTELI_REASON_BATCH, /* a whole one waits; only whole ones are exported */
    OTELI_REASON_FULL,  /* threads found no room in the queue */
    OTELI_REASON_TICK,
    OTELI_REASON_FLUSH,
    OTELI_REASON_STOP
};

struct oteli_pass {
    enum oteli_reason reason; /* of the last one */
    bool is_under_way;
    bool is_drained;       /* what is not in a batch by now is not of this pass */
    uint64_t taken_before; /* drain.taken when it began … */
    size_t left_over;      /* … what was in the batch already … */
    uint64_t flush;        /* … and the newest request for a flush */
};

/* Spans that threads have dropped because the queue had no room. */
struct oteli_full_queue {
    uint64_t spans; /* as many waited as may */
    uint64_t bytes; /* those that waited took all bytes */
};

/* How fast spans come: worker.h. */
struct oteli_pace {
    uint64_t taken; /* spans, when … */
    uint64_t since_ns;
    uint64_t batch_ns; /* a batch takes so long to come; UINT64_MAX: they do not come steadily */
    uint64_t look_ns;  /* when to look whether one is there; UINT64_MAX: threads ring for it */
};

enum { OTELI_SCHEMA_SIZE = 64 };

/* What an engine was started with. Constant, but for a flag of the sampler, and for the program's
 * sampler, which is taken away when the engine ends. The engine of a forked child copies it. */
struct oteli_engine_settings {
    struct oteli_sampler sampler;
    otel_sampler custom_sampler; /* the program's; its function `sample` is NULL: there is none */
    void (*generate_ids)(void *state, uint8_t *trace_id, uint8_t *span_id); /* or NULL */
    void *generate_ids_state;
    bool (*tracer_enabled)(void *state, const otel_scope_view *scope); /* or NULL */
    void *tracer_enabled_state;
    struct oteli_tail_rules tail;

    uint64_t queue_size;      /* spans */
    uint64_t queue_max_bytes; /* of its lines */
    size_t batch_size;        /* spans */
    uint64_t schedule_delay_ns;
    uint64_t export_timeout_ns; /* UINT64_MAX: none */

    bool threadless;
    size_t thread_stack_bytes;
    void (*thread_started)(void *state); /* or NULL */
    void *thread_started_state;
    char thread_context_schema[OTELI_SCHEMA_SIZE]; /* "": this process publishes no context */
};

struct oteli_engine {
    struct oteli_sdk sdk; /* first: what the API holds is a pointer to it */
    struct oteli_engine_settings settings;
    struct oteli_processors processors;
    struct oteli_resource resource;
    struct oteli_pipeline *pipelines;
    size_t pipeline_count;

    /* of the app threads */
    _Alignas(
        OTELI_CACHELINE) struct oteli_waker waker; /* one cache line for all that a quota costs */
    uint64_t reserved;                             /* spans in quotas, lines and batches */
    /* The queue was full, but there was nothing to take: all of its room is in quotas of
     * threads that do not use it. Set by the worker, unset by the thread that next uses up a
     * quota. */
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
    struct oteli_full_queue told; /* by threads, and known to the log … */
    uint64_t drops_meanwhile;     /* … since it said that the queue is full; 0: it is not */
    struct oteli_pace pace;
    uint64_t tick_ns; /* when to export the spans that wait; UINT64_MAX: asleep */
    bool asleep;      /* the generation says so: the next span wakes us */

    /* of any thread, through the mutex */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t flush_done;     /* the newest request that is done */
    uint64_t flush_failures; /* flushes that an exporter answered with an error */
    uint64_t told_lost;      /* the losses that flushes have answered for so far; atomic */
    uint32_t done;           /* the worker has returned; release, also read without the mutex */
    uint32_t hangs;          /* an exporter did not return: the worker may not touch lines any more,
                            its thread and memory are not freed; release, also read unlocked */
    uint32_t users; /* calls that wait on this engine; under the lock of the current engine */

    /* of any thread, read by the worker */
    uint64_t flush_wanted;      /* requests so far */
    uint64_t flush_deadline_ns; /* the latest of those that are not done; through the mutex */
    uint64_t stop_deadline_ns;  /* 0: running; monotonic */

    pthread_t thread;
    struct oteli_engine *next_retired;
    uint64_t
        told_dropped[OTELI_ORIGINS]; /* of self_metrics.c; under the lock of the current engine */
};

static inline struct oteli_engine *oteli_engine_of(const struct oteli_sdk *sdk)
{
    return (struct oteli_engine *)(uintptr_t)sdk;
}

/* Count spans as dropped in every pipeline. */
void oteli_engine_drop(struct oteli_engine *engine, otel_drop_reason reason, uint64_t count);

/* Follow the clocks; before times are converted. */
void oteli_engine_renew_clock(struct oteli_engine *engine);

#endif
