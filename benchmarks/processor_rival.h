/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/processor_rival.h - what the rival designs of the queue study share: the exporter
 * thread, its batch, and a gate for it to sleep at.
 *
 * The exporter thread is that of Java's batch span processor: take what there is, export
 * when a batch is full or its time has come, wait when there is nothing. Each design brings
 * its own way to take and its own way to wait.
 *
 * The gate is the article's "spans needed": the worker says how many spans must be in the
 * queue to be worth a signal, and whoever makes them that many signals, once. A design that
 * signals for every span is one whose worker needs one. */
#ifndef OTELI_BENCH_PROCESSOR_RIVAL_H
#define OTELI_BENCH_PROCESSOR_RIVAL_H

#include "benchmarks/processor.h"

#include <pthread.h>

#define PROCESSOR_NEVER UINT64_MAX

struct processor_batch {
    size_t count;
    const struct processor_span *spans[PROCESSOR_BATCH]; /* into `copies`, or elsewhere */
    struct processor_span copies[PROCESSOR_BATCH];
};

struct processor_rival;

struct processor_rules {
    size_t size; /* of the design's struct, which begins with a struct processor_rival */
    void (*init)(struct processor_rival *rival, struct processor_thread *threads, unsigned count);
    /* Put spans into the batch while it has room; how many? Worker. */
    size_t (*take)(struct processor_rival *rival);
    /* The last take gave nothing: sleep until `needed` spans are there, the monotonic time
     * has come, or wake was called. May come back early. Worker. */
    void (*wait)(struct processor_rival *rival, uint64_t needed, uint64_t deadline_ns);
    void (*wake)(struct processor_rival *rival);
    void (*exported)(struct processor_rival *rival); /* the batch is not used any more; or NULL */
    void (*fini)(struct processor_rival *rival);
};

struct processor_rival {
    const struct processor_rules *rules;
    struct processor_exporter *exporter;
    struct processor_batch batch;
    pthread_t thread;
    uint32_t worker; /* its number; release */
    uint32_t is_stopping;
    unsigned fruitless; /* takes in a row */
    _Alignas(OTELI_CACHELINE) uint64_t signals;
};

/* For the table of designs. */
void *processor_rival_start(const struct processor_design *design,
                            struct processor_exporter *exporter, struct processor_thread *threads,
                            unsigned count);
pid_t processor_rival_worker(void *queue);
uint64_t processor_rival_signals(void *queue);
void processor_rival_stop(void *queue);

#define PROCESSOR_RIVAL(word, put, text)               \
    const struct processor_design processor_##word = { \
        .name = #word,                                 \
        .about = text,                                 \
        .start = processor_rival_start,                \
        .burst = word##_burst,                         \
        .end = put,                                    \
        .worker = processor_rival_worker,              \
        .signals = processor_rival_signals,            \
        .stop = processor_rival_stop,                  \
        .rules = &word##_rules,                        \
    }

/* Memory in whole cache lines, zeroed. */
void *processor_memory(size_t bytes);

static inline bool processor_is_stopping(const struct processor_rival *rival)
{
    return oteli_load_acquire_32(&rival->is_stopping) != 0;
}

/* The worker waits for a producer that has a place, but has not filled it yet. */
void processor_rival_be_patient(struct processor_rival *rival);

struct processor_gate {
    _Alignas(OTELI_CACHELINE) uint64_t needed; /* PROCESSOR_NEVER: the worker is awake */
    uint32_t word;                             /* changes with every signal */
};

static inline void processor_gate_init(struct processor_gate *gate)
{
    *gate = (struct processor_gate){.needed = PROCESSOR_NEVER};
}

/* Producer: after its span has been counted with a full atomic operation. */
void processor_gate_signal(struct processor_gate *gate, struct processor_rival *rival);
static OTELI_INLINE void processor_gate_tell(struct processor_gate *gate,
                                             struct processor_rival *rival, uint64_t size)
{
    if (OTELI_UNLIKELY(size >= oteli_load_relaxed_64(&gate->needed)))
        processor_gate_signal(gate, rival);
}

/* Whether it is worth it to find out the size. */
static OTELI_INLINE bool processor_gate_is_shut(const struct processor_gate *gate)
{
    return oteli_load_relaxed_64(&gate->needed) != PROCESSOR_NEVER;
}

/* Worker: announce what it needs; then it looks at the size again, and sleeps or does not. */
uint32_t processor_gate_shut(struct processor_gate *gate, uint64_t needed);
void processor_gate_sleep(struct processor_gate *gate, uint32_t heard, uint64_t deadline_ns);
void processor_gate_open(struct processor_gate *gate);
void processor_gate_wake(struct processor_gate *gate); /* for the end */

#endif
