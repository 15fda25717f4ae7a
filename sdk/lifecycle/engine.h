/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/engine.h - a running SDK: its pipelines, the queue before them, and who may touch
 * what.
 *
 *     app threads ──lots──▶ reserved        harvest ─▶ batch ─▶ export ─▶ pipelines
 *                 ──lines─▶ ring ─────────▶    (worker.c drives these, on otel-export)
 *                 ──bell──▶
 *     any thread  ──asks──▶ flush_wanted, stopping
 *
 * One engine lives from otel_start to the next otel_start, so that its statistics can be
 * read after the shutdown. */
#ifndef OTELI_ENGINE_H
#define OTELI_ENGINE_H

#include "api/thread/sdk_slot.h"
#include "api/thread/thread_state.h"
#include "sdk/lifecycle/custom_callbacks.h"
#include "sdk/lifecycle/sdk_start.h"
#include "sdk/pipeline/batch.h"
#include "sdk/pipeline/ring.h"
#include "sdk/pipeline/waker.h"
#include "sdk/process_context/process_context.h"
#include "sdk/processors/processors.h"
#include "sdk/resource/resource.h"
#include "sdk/sampling/builtin_sampler.h"
#include "sdk/sampling/tail.h"
#include "sdk/worker/event_loop_fds.h"

#include <otel/sdk.h>
#include <pthread.h>

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

/* Where the harvest is in its pass over threads and ring: drain.c. */
struct oteli_harvest {
    bool under_way;
    bool in_ring;                /* the threads are visited */
    struct oteli_thread *thread; /* the next to visit */
    struct oteli_line *line;     /* its line, once it is being visited … */
    uint32_t limit;              /* … and how much was committed there by then */
    uint64_t ticket;             /* then the ring, from here … */
    uint64_t ring_end;           /* … to here */
    struct oteli_line *parked;   /* retired lines that cannot be given back yet */
    uint64_t taken;              /* spans harvested so far */
};

/* Why everything that was committed by now is being exported; worker.c. */
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
    bool is_harvested;     /* what is not in a batch by now is not of this pass */
    uint64_t taken_before; /* harvest.taken when it began … */
    size_t left_over;      /* … what was in the batch already … */
    uint64_t flush;        /* … and the newest request for a flush */
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
    _Alignas(OTELI_CACHELINE) struct oteli_bell bell; /* one cache line for all that a lot costs */
    uint64_t reserved;                                /* spans in lots, lines and batches */
    /* The queue was full, but there was nothing to take: all of its room is in lots of
     * threads that do not use it. Set by the worker, unset by whoever uses up a lot. */
    uint32_t full_is_futile;
    _Alignas(OTELI_CACHELINE) struct oteli_ring ring;

    /* of the worker */
    otel_batch batches[2];
    otel_batch *batch;            /* the one of them that is being filled */
    bool is_prepared;             /* the exporters have been shown it, complete */
    struct oteli_sending sending; /* perhaps the other */
    struct oteli_harvest harvest;
    struct oteli_pass pass;
    struct oteli_driving driving;
    uint32_t cores;           /* that the worker may run on */
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

/* drain.c - worker. */

/* Begin a pass, unless one is under way: it visits every thread's line once, and then the
 * ring as far as it reached at that moment. So a finished pass has taken every span that
 * was committed before it began. */
void oteli_harvest_begin(struct oteli_engine *engine);

/* Go on with the pass until the batch is full (false) or the pass is done (true). */
bool oteli_harvest_continue(struct oteli_engine *engine);

/* Put names in the place of the batch's addresses. The program's resolver may take its time:
 * the mutex is not held. */
void oteli_harvest_look_up_names(struct oteli_engine *engine);

/* Let go of a batch's records: their lines can be given back, their room in the queue is
 * free again. */
void oteli_harvest_release(struct oteli_engine *engine, otel_batch *batch);

/* Spans that are in lines or ring and that nobody will take any more. Once the worker is
 * done; any thread. */
uint64_t oteli_harvest_leftover(const struct oteli_engine *engine);

/* Give back the lines of a worker that is done. Also those that came too late for it, when
 * the engine is freed and nobody is inside any more. */
void oteli_harvest_fini(struct oteli_engine *engine);

/* export.c - worker, or any thread under the mutex of a synchronous engine. */

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

/* on_idle.c - worker, likewise. */

/* The exporter is there. */
void oteli_attend_init(struct oteli_pipeline *pipeline);

/* An export of this pipeline has ended. */
void oteli_attend_soon(struct oteli_pipeline *pipeline);

/* Let exporters do what is due; no export is under way. When to call it again in any case;
 * UINT64_MAX: not before the next export. */
uint64_t oteli_attend(struct oteli_engine *engine);

/* The SDK stops: let each exporter finish what it does, until the deadline. */
void oteli_attend_finish(struct oteli_engine *engine, uint64_t deadline_ns);

/* Whether some exporter has a descriptor to wait for. */
bool oteli_attend_has_descriptor(const struct oteli_engine *engine);

/* Watch it, or none, in the engine's driving. Until when to wait for it, at most `until_ns`. */
uint64_t oteli_attend_watch(struct oteli_engine *engine, uint64_t until_ns);

/* Sleep on it and on the bell: oteli_bell_sleep for an engine with a thread. */
void oteli_attend_sleep(struct oteli_engine *engine, uint32_t heard, int64_t wanted,
                        uint64_t deadline_ns);

/* worker.c */

enum oteli_round {
    OTELI_ROUND_IDLE,    /* nothing to do until *deadline_ns, *wanted spans, or an exporter's
                            descriptor (attend.c) */
    OTELI_ROUND_WORKED,  /* something was done, there may be more */
    OTELI_ROUND_PENDING, /* an exporter has to be waited for, and that was not allowed */
    OTELI_ROUND_STOPPED  /* shut down */
};

/* One round: export for one reason, if there is any. Worker, otel_poll, or a test. */
enum oteli_round oteli_worker_round(struct oteli_engine *engine, bool may_wait, int64_t *wanted,
                                    uint64_t *deadline_ns);

/* The last round is over: otel_shutdown may return. */
void oteli_worker_finish(struct oteli_engine *engine);

/* When spans come steadily, the worker wakes by itself when half a queue of them should be
 * there: to wake it costs a thread of the program more than many spans do. Then the bell is for
 * a little more than that. A batch that is late is rung for, as is everything else. */
struct oteli_pace {
    uint64_t taken;    /* spans, when … */
    uint64_t since_ns; /* … a batch had last come */
    uint64_t batch_ns; /* that the last ones took to come; UINT64_MAX: none has */
};
void oteli_worker_pace(const struct oteli_engine *engine, struct oteli_pace *pace, uint64_t now_ns,
                       int64_t *wanted, uint64_t *deadline_ns);

/* The exporter thread's main function. */
void *oteli_worker_main(void *argument);

/* queue.c - what the API calls, on app threads. */
uint32_t oteli_queue_take_lot(struct oteli_sdk *sdk, uint32_t ended);
bool oteli_queue_reserve(struct oteli_sdk *sdk, uint32_t count);
void oteli_queue_announce(struct oteli_sdk *sdk, uint32_t count);
void oteli_queue_give_room_back(struct oteli_sdk *sdk, uint32_t count);
void oteli_queue_press(struct oteli_sdk *sdk);
void oteli_queue_free_room(struct oteli_engine *engine, uint64_t spans); /* any thread */
void oteli_queue_hand_over(struct oteli_sdk *sdk, struct oteli_line *line);
void oteli_queue_wake(struct oteli_sdk *sdk);

/* poll.c - an engine without a thread: whoever calls is the worker. Any thread. */
bool oteli_driving_init(struct oteli_engine *engine);
void oteli_driving_fini(struct oteli_engine *engine);

/* Be the worker until `*counter` has reached `target`, it stopped, or the deadline comes. */
void oteli_drive_until(struct oteli_engine *engine, const uint64_t *counter, uint64_t target,
                       uint64_t deadline_ns);

/* simple_export.c */
void oteli_simple_export_one(struct oteli_sdk *sdk, const void *record);

/* The end of a synchronous engine that is to stop: flush its exporters and free them. Under the
 * mutex. */
void oteli_simple_finish(struct oteli_engine *engine);

/* The same without the mutex, if otel_shutdown has not waited for it and no export has it. */
void oteli_simple_finish_hanging(struct oteli_engine *engine);

/* helper_thread.c - the only place where a thread is made: all signals are blocked in it. 0, or an
 * errno. `stack_bytes` 0: enough. */
int oteli_thread_create(pthread_t *thread, size_t stack_bytes, void *(*main)(void *),
                        void *argument);

/* engine.c */
otel_status oteli_engine_new(const struct oteli_engine_options *options,
                             struct oteli_engine **engine);
void oteli_engine_free(struct oteli_engine *engine);

/* Parts of oteli_engine_new, for fork_engine.c: no engine had this number before; nothing waits and
 * the worker will sleep; memory, mutex and whatever else one engine has of its own. */
uint64_t oteli_engine_next_generation(void);
void oteli_engine_rest(struct oteli_engine *engine);
otel_status oteli_engine_furnish(struct oteli_engine *engine, size_t batch_capacity,
                                 bool is_driven);

/* lifecycle.c */

/* Wait, the engine's mutex being held, for a change; false: the deadline has come. */
bool oteli_lifecycle_wait(struct oteli_engine *engine, uint64_t deadline_ns);

/* The running engine, which stays while the caller uses it. NULL: none, and what to answer. */
struct oteli_engine *oteli_lifecycle_use(bool stop, otel_status *status);
void oteli_lifecycle_leave(struct oteli_engine *used);

/* The engine that runs, or ran last; NULL: none ever. Under oteli_lifecycle_lock. */
struct oteli_engine *oteli_lifecycle_engine(void);
void oteli_lifecycle_lock(void);
void oteli_lifecycle_unlock(void);

/* Whether this is a forked child whose parent had such a pipeline, and nothing has happened
 * in it yet. Under oteli_lifecycle_lock. */
bool oteli_lifecycle_inherits(size_t pipeline);

/* oteli_sdk.revive. */
void oteli_lifecycle_revive(void);

/* Free the engines that stopped, as the end of the process does. For tests. */
void oteli_lifecycle_reset(void);

#endif
