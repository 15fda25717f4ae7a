/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/processor.h - the parts of the queue study: what a design is, what a thread that
 * ends spans has, and what the rival designs share.
 *
 *     producing threads ──end a span──▶ queue (2048) ──▶ exporter thread ──512──▶ no-op exporter
 *
 * Each design makes the same spans and ends them, on 1 to 20 threads. What is timed is the
 * end of a span, as the instrumented program feels it:
 *
 *   rivals    read the counter for the end, complete the record, put it into the queue, wake
 *             the exporter thread if the design wants that
 *   lines     otel_span_end of the public API; that is all of the above, and it also makes the
 *             span's parent current again and looks after a handle that may be stale
 *   control   the same, in an SDK that forgets full lines: what it is judged by
 *   control_copy   the rivals' part without a queue
 *
 * What comes before, making the span (identifiers, first reading of the counter, name; for
 * lines otel_span_enter), is not timed, but is part of the throughput.
 *
 * Rivals carry a record of 120 bytes, which with a sequence number fills two cache lines; a
 * plain record of otel-c has 128 and more. The exporter thread looks at each span once: that of
 * the rivals to see that it is whole, that of lines to find the next one. The exporter itself is
 * a no-op; what OTLP costs is the benchmark `worker`'s to say.
 *
 * Threads:  a struct processor_thread belongs to its thread, except for the two counts. */
#ifndef OTELI_BENCH_PROCESSOR_H
#define OTELI_BENCH_PROCESSOR_H

#include "benchmarks/bench.h"
#include "common/base/atomic.h"
#include "common/base/random.h"
#include "common/clock/counter.h"

#include <sys/types.h>

enum { PROCESSOR_QUEUE = 2048, PROCESSOR_BATCH = 512, PROCESSOR_MOST_THREADS = 64 };
#define PROCESSOR_DELAY_NS UINT64_C(5000000000)

struct processor_span {
    uint64_t trace_id[2];
    uint64_t span_id;
    uint64_t parent_id;
    uint64_t start; /* of the counter */
    uint64_t end;
    const char *name;
    uint32_t name_length;
    uint32_t kind;
    uint64_t rest[7]; /* what the record of a plain span has besides: head, state, flags ... */
};
_Static_assert(sizeof(struct processor_span) == 120, "a slot with a sequence is two cache lines");

/* --- times, without memory for each --- */

enum { PROCESSOR_STEPS = 32, PROCESSOR_BUCKETS = 60 * PROCESSOR_STEPS }; /* steps an octave */

struct processor_histogram {
    uint64_t counts[PROCESSOR_BUCKETS];
    uint64_t most;
};

static inline void processor_histogram_add(struct processor_histogram *histogram, uint64_t ticks)
{
    const uint64_t value = ticks < PROCESSOR_STEPS ? (uint64_t)PROCESSOR_STEPS : ticks;
    const unsigned octave = 58 - (unsigned)__builtin_clzll(value); /* 0 from 32 to 63 */
    histogram->counts[octave * PROCESSOR_STEPS + (value >> octave) - PROCESSOR_STEPS]++;
    if (ticks > histogram->most)
        histogram->most = ticks;
}

void processor_histogram_merge(struct processor_histogram *all,
                               const struct processor_histogram *one);
/* The smallest step that so many percent are not above, in ticks. */
double processor_histogram_percentile(const struct processor_histogram *histogram, double percent);

static inline uint64_t processor_ticks(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
    return oteli_counter();
#else
    return bench_now_ns();
#endif
}

/* The same around something short, for a time of just that: all before it is over, and
 * nothing behind it has begun. */
static inline uint64_t processor_ticks_exactly(void)
{
#if defined(__x86_64__)
    _mm_lfence();
    const uint64_t ticks = oteli_counter();
    _mm_lfence();
    return ticks;
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" : : : "memory");
    const uint64_t ticks = oteli_counter();
    __asm__ __volatile__("isb" : : : "memory");
    return ticks;
#else
    return bench_now_ns();
#endif
}

/* --- threads that end spans --- */

struct processor_nodes; /* processor_fifo.c */

struct processor_thread {
    _Alignas(OTELI_CACHELINE) uint64_t offered; /* spans ended; anybody reads */
    uint64_t dropped;                           /* of them, for want of room; likewise */

    _Alignas(OTELI_CACHELINE) void *queue; /* of the design */
    struct processor_nodes *nodes;         /* of this thread's own, where a design wants them */
    struct oteli_random random;
    struct processor_span span;
    otel_span lines_span;
    unsigned index;
    bool is_measured;   /* times count */
    bool is_first;      /* in the first second */
    unsigned time_mask; /* the end of span i is timed when i & time_mask is 0 */
    unsigned work;      /* what the program does during a span: processor_work */
    uint64_t worked;    /* what came out */
    uint64_t slow;      /* ticks from which on it is worth asking whether it was preempted */
    int64_t preempted;  /* how often it was until now, roughly */
    uint64_t longest_unpreempted; /* ticks */
    struct processor_histogram histogram;
    struct processor_histogram first_second;
};

/* Work that the compiler cannot take away: `steps` multiplications one after another. */
static inline uint64_t processor_work(uint64_t value, unsigned steps)
{
    for (unsigned i = 0; i < steps; i++)
        value = value * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return value;
}

/* An end took long: was the thread taken off its core since it last asked? */
OTELI_COLD void processor_note_slow(struct processor_thread *thread, uint64_t ticks);

extern const char processor_span_name[];

/* Rivals and control: begin a span, and complete it. */
static OTELI_INLINE void processor_begin(struct processor_thread *thread)
{
    struct processor_span *span = &thread->span;
    span->trace_id[0] = oteli_random_pair(&thread->random, &span->trace_id[1]);
    span->span_id = oteli_random_id(&thread->random);
    span->name = processor_span_name;
    span->start = processor_ticks();
}

static OTELI_INLINE void processor_complete(struct processor_thread *thread)
{
    thread->span.end = processor_ticks();
}

/* Begin and end spans. `begin` and `end` are names of functions, so that each design has a
 * loop of its own without calls through pointers. `end` answers false for a dropped span. */
static OTELI_INLINE void processor_burst(struct processor_thread *thread, unsigned spans,
                                         void (*begin)(struct processor_thread *),
                                         bool (*end)(struct processor_thread *))
{
    for (unsigned i = 0; i < spans; i++) {
        bool is_taken;
        begin(thread);
        if (thread->work != 0)
            thread->worked = processor_work(thread->worked, thread->work);
        if ((i & thread->time_mask) == 0) {
            const uint64_t start = processor_ticks_exactly();
            is_taken = end(thread);
            const uint64_t ticks = processor_ticks_exactly() - start;
            if (thread->is_measured)
                processor_histogram_add(&thread->histogram, ticks);
            if (thread->is_first)
                processor_histogram_add(&thread->first_second, ticks);
            if (OTELI_UNLIKELY(ticks > thread->slow))
                processor_note_slow(thread, ticks);
        } else {
            is_taken = end(thread);
        }
        oteli_count(&thread->offered, 1);
        if (!is_taken)
            oteli_count(&thread->dropped, 1);
    }
}

/* --- designs --- */

/* What the no-op exporters count: written by the exporter thread only. */
struct processor_exporter {
    _Alignas(OTELI_CACHELINE) uint64_t exported; /* also read by the conductor */
    uint64_t batches;
    uint64_t touched; /* something of every span */
};

struct processor_design {
    const char *name;
    const char *about;
    /* Make queue and exporter thread for so many producing threads; NULL is fine. */
    void *(*start)(const struct processor_design *design, struct processor_exporter *exporter,
                   struct processor_thread *threads, unsigned count);
    void (*burst)(struct processor_thread *thread, unsigned spans);
    bool (*end)(struct processor_thread *thread); /* end `thread->span`; NULL: not a rival */
    pid_t (*worker)(void *queue);                 /* the exporter thread; NULL: there is none */
    uint64_t (*dropped)(void *queue);             /* NULL: the threads know */
    uint64_t (*signals)(void *queue);    /* system calls to wake the worker; NULL: unknown */
    void (*stop)(void *queue);           /* when nobody produces any more: export all, free */
    const struct processor_rules *rules; /* of a rival */
};

extern const struct processor_design *const processor_designs[];
extern const unsigned processor_design_count;
const struct processor_design *processor_design_find(const char *name); /* or NULL */

extern const struct processor_design processor_mutex_signal;
extern const struct processor_design processor_mutex_batched;
extern const struct processor_design processor_fifo_signal;
extern const struct processor_design processor_fifo_batched;
extern const struct processor_design processor_padded_block;
extern const struct processor_design processor_padded_sleep;
extern const struct processor_design processor_mpsc_batched;
extern const struct processor_design processor_ck_ring_batched;
extern const struct processor_design processor_ring_span;
extern const struct processor_design processor_lines;
extern const struct processor_design processor_control;
extern const struct processor_design processor_control_copy;

/* --- one measurement --- */

struct processor_setting {
    unsigned threads;
    bool is_steady;
    uint64_t warm_up_ns;
    uint64_t window_ns;
    uint64_t period_ns; /* steady: of a thread's bursts */
    unsigned burst;     /* spans of one */
    unsigned work;      /* steps during a span */
};

enum processor_figure {
    PROCESSOR_OFFERED,     /* a second */
    PROCESSOR_EXPORTED,    /* a second */
    PROCESSOR_DROPPED,     /* percent */
    PROCESSOR_WORKER_CPU,  /* percent of a core */
    PROCESSOR_PROCESS_CPU, /* likewise */
    PROCESSOR_WAKEUPS,     /* a second: the worker's voluntary context switches */
    PROCESSOR_SIGNALS,     /* a second */
    PROCESSOR_END_P50,     /* us */
    PROCESSOR_END_P99,
    PROCESSOR_FIRST_SECOND_END_P99, /* steady only */
    PROCESSOR_END_P999,
    PROCESSOR_END_MAX,
    PROCESSOR_END_MAX_UNPREEMPTED, /* without those during which the thread lost its core */
    PROCESSOR_FIGURES
};

/* NAN where a design does not have a figure. Fails the benchmark if a span is lost. */
void processor_measure(const struct processor_design *design,
                       const struct processor_setting *setting, double figures[PROCESSOR_FIGURES]);

/* How many steps of processor_work take so long. */
unsigned processor_steps(double ns);

#endif
