/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/processor_rival.c - the exporter thread of the rival designs, and their gate. */
#include "benchmarks/processor_rival.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE = 128 }; /* fruitless looks before the worker lets others run */

void *processor_memory(size_t bytes)
{
    const size_t lines = (bytes + OTELI_CACHELINE - 1) & ~(size_t)(OTELI_CACHELINE - 1);
    void *memory = aligned_alloc(OTELI_CACHELINE, lines);
    if (memory == NULL)
        bench_fail("no memory");
    return memset(memory, 0, lines); /* and it is there, page by page */
}

/* --- the gate --- */

static void wake_up(struct processor_gate *gate)
{
    oteli_add_full_32(&gate->word, 1);
    syscall(SYS_futex, &gate->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void processor_gate_signal(struct processor_gate *gate, struct processor_rival *rival)
{
    if (oteli_exchange_full_64(&gate->needed, PROCESSOR_NEVER) == PROCESSOR_NEVER)
        return;
    wake_up(gate);
    oteli_add_full_64(&rival->signals, 1);
}

uint32_t processor_gate_shut(struct processor_gate *gate, uint64_t needed)
{
    const uint32_t heard = oteli_load_acquire_32(&gate->word);
    oteli_store_relaxed_64(&gate->needed, needed);
    oteli_fence_full();
    return heard;
}

void processor_gate_sleep(struct processor_gate *gate, uint32_t heard, uint64_t deadline_ns)
{
    const struct timespec deadline = {(time_t)(deadline_ns / 1000000000),
                                      (long)(deadline_ns % 1000000000)};
    syscall(SYS_futex, &gate->word, FUTEX_WAIT_BITSET_PRIVATE, heard, &deadline, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

void processor_gate_open(struct processor_gate *gate)
{
    oteli_store_relaxed_64(&gate->needed, PROCESSOR_NEVER);
}

void processor_gate_wake(struct processor_gate *gate)
{
    processor_gate_open(gate);
    wake_up(gate);
}

/* --- the worker --- */

void processor_rival_be_patient(struct processor_rival *rival)
{
    if (++rival->fruitless % PATIENCE == 0)
        sched_yield();
    else
        oteli_stall();
}

/* The no-op exporter. */
static void export_batch(struct processor_rival *rival)
{
    struct processor_batch *batch = &rival->batch;
    uint64_t touched = rival->exporter->touched;
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->spans[i]->name != processor_span_name)
            bench_fail("a span was torn on its way");
        touched += batch->spans[i]->end - batch->spans[i]->start;
    }
    rival->exporter->touched = touched;
    rival->exporter->batches++;
    oteli_count(&rival->exporter->exported, batch->count);
    if (rival->rules->exported != NULL)
        rival->rules->exported(rival);
    batch->count = 0;
}

static void *work(void *argument)
{
    struct processor_rival *rival = argument;
    const struct processor_rules *rules = rival->rules;
    struct processor_batch *batch = &rival->batch;
    uint64_t due_ns = bench_now_ns() + PROCESSOR_DELAY_NS;
    oteli_store_release_32(&rival->worker, (uint32_t)gettid());
    for (;;) {
        const bool is_last = processor_is_stopping(rival);
        const size_t taken = rules->take(rival);
        if (batch->count == PROCESSOR_BATCH || (taken == 0 && bench_now_ns() >= due_ns)) {
            export_batch(rival);
            due_ns = bench_now_ns() + PROCESSOR_DELAY_NS;
        } else if (taken != 0) {
            rival->fruitless = 0;
        } else if (is_last) {
            break;
        } else {
            rules->wait(rival, PROCESSOR_BATCH - batch->count, due_ns);
        }
    }
    export_batch(rival);
    return NULL;
}

void *processor_rival_start(const struct processor_design *design,
                            struct processor_exporter *exporter, struct processor_thread *threads,
                            unsigned count)
{
    struct processor_rival *rival = processor_memory(design->rules->size);
    rival->rules = design->rules;
    rival->exporter = exporter;
    for (size_t i = 0; i < PROCESSOR_BATCH; i++)
        rival->batch.spans[i] = &rival->batch.copies[i];
    design->rules->init(rival, threads, count);
    if (pthread_create(&rival->thread, NULL, work, rival) != 0)
        bench_fail("no thread");
    return rival;
}

pid_t processor_rival_worker(void *queue)
{
    struct processor_rival *rival = queue;
    return (pid_t)oteli_load_acquire_32(&rival->worker);
}

uint64_t processor_rival_signals(void *queue)
{
    struct processor_rival *rival = queue;
    return oteli_load_relaxed_64(&rival->signals);
}

void processor_rival_stop(void *queue)
{
    struct processor_rival *rival = queue;
    oteli_store_release_32(&rival->is_stopping, 1);
    oteli_fence_full();
    rival->rules->wake(rival);
    pthread_join(rival->thread, NULL);
    rival->rules->fini(rival);
    free(rival);
}
