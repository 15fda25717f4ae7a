/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/counters_wrap.c - counters that leave 32 and 64 bits behind while threads
 * trace, flush, attach contexts and mount: nothing changes.
 *
 * They are set before anybody uses them, those of the engine by the exporter thread itself when
 * it starts, each a little before its end:
 *
 *     ring                head, tail, and so the slots' sequences
 *     waker               word (32 bits), the number of the sleep in `wanted` (32), wake-ups
 *     engine              flush_wanted and flush_done, drain.taken, flush_failures,
 *                         the generation (32 bits: it only grows, by 2 a start)
 *     pipeline            delivered, batches, and what was rejected and dropped
 *     thread              recorded, ended with the end of its quota, unsampled, dropped;
 *                         random state; tokens of attached contexts (of 63 bits at first)
 *     free lists          the changes beside the head (32 bits), on a list of our own
 *
 * Sums (reserved, waiting, bytes and units of lines, users, pins, members, retained
 * tracestates) come back to zero and have no end. Quotas, lengths and indexes are bounded. */
#include "api/thread/thread_state.h"
#include "common/base/free_list.h"
#include "sdk/engine/current_engine.h"
#include "sdk/lifecycle/lifecycle.h"
#include "tests/support/oracle.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 8, SPANS = 6000, ADDED_EACH = 2 * ((SPANS - 1) / 500), CONTEXTS = 3 };
enum { LIST_THREADS = 4, PLACES = 64, CHANGES = 100000 };

static struct oracle oracle;
static otel_tracer *tracer;
static uint32_t is_set;          /* atomic */
static uint64_t end_of_counters; /* UINT32_MAX or UINT64_MAX */

static void end_span(uint32_t number)
{
    otel_span_end(oracle_enter(tracer, number));
}

/* Two spans, under a parent that is one more: their names are no numbers of the oracle. */
static void mount_two(void)
{
    const otel_span parent = otel_span_enter(tracer, "", NULL);
    otel_lines_begin();
    otel_span_end(otel_span_enter(tracer, "", NULL));
    otel_lines *lines = otel_lines_end();
    otel_lines_mount(lines, &parent, 1, NULL);
    otel_lines_free(lines);
    otel_span_end(parent);
}

static void attach_some(void)
{
    otel_context_token tokens[CONTEXTS];
    for (unsigned i = 0; i < CONTEXTS; i++)
        tokens[i] = otel_context_attach(otel_current_context());
    for (unsigned i = CONTEXTS; i-- > 0;)
        otel_context_detach(tokens[i]);
}

/* This thread's own counters: as if it had ended so many spans before, and had lost some. */
static void set_mine(void)
{
    struct oteli_thread *self = oteli_self;
    const uint64_t before = end_of_counters - SPANS / 2;
    oteli_count(&self->counts.recorded[OTELI_ORIGIN_LOCAL], 2 * before);
    oteli_count(&self->counts.ended, 2 * before);
    self->quota_end += 2 * before;
    oteli_count(&self->counts.dropped[OTEL_DROP_QUEUE_FULL], before);
    oteli_count(&self->counts.unsampled[OTELI_ORIGIN_LOCAL], before);
    self->attaches = end_of_counters == UINT64_MAX ? INT64_MAX - 5 : UINT32_MAX - 5;
    self->random.state = end_of_counters - 10 * self->random.step;
}

static void *trace(void *argument)
{
    const uint32_t first = (uint32_t)(uintptr_t)argument * SPANS;
    end_span(first);
    set_mine();
    for (uint32_t i = 1; i < SPANS; i++) {
        end_span(first + i);
        if (i % 500 == 0) {
            mount_two();
            attach_some();
            STRESS_CHECK(stress_is_done(otel_flush(60000)));
        }
    }
    return NULL;
}

static void set_engine(struct oteli_engine *engine)
{
    const uint64_t lines = engine->ring.mask + 1;
    oteli_ring_fini(&engine->ring);
    STRESS_CHECK(oteli_ring_init(&engine->ring, lines, end_of_counters - 20));
    oteli_store_release_32(&engine->waker.word, UINT32_MAX - 20);
    const uint64_t wanted = oteli_load_relaxed_64(&engine->waker.wanted);
    oteli_store_relaxed_64(&engine->waker.wanted,
                           (uint64_t)(UINT32_MAX - 10) << 32 | (uint32_t)wanted);
    engine->waker.wakes = end_of_counters - 20;
    engine->drain.taken = end_of_counters - SPANS;
    oteli_store_release_64(&engine->flush_done, end_of_counters - 20);
    oteli_store_release_64(&engine->flush_wanted, end_of_counters - 20);
    engine->flush_failures = end_of_counters;
}

static void set_pipeline(struct oteli_pipeline *pipeline)
{
    const uint64_t before = end_of_counters - SPANS / 2;
    pipeline->delivered += THREADS * before - 2 * end_of_counters;
    pipeline->rejected = end_of_counters;
    pipeline->dropped[OTEL_DROP_UNCONFIRMED] = end_of_counters;
    pipeline->batches = end_of_counters - 1;
}

/* On the exporter thread, before it does anything. */
static void set_counters(void *state)
{
    (void)state;
    oteli_current_lock();
    struct oteli_engine *engine = oteli_current.engine;
    set_engine(engine);
    set_pipeline(&engine->pipelines[0]);
    oteli_sdk_uninstall();
    engine->sdk.generation = UINT32_MAX - 1;
    oteli_sdk_install(&engine->sdk);
    oteli_current_unlock();
    oteli_store_release_32(&is_set, 1);
}

static void check(void)
{
    const otel_stats stats = stress_stop_sdk();
    const uint64_t before = end_of_counters - SPANS / 2;
    STRESS_CHECK(stats.delivered - (THREADS * before - 2 * end_of_counters) ==
                 (uint64_t)THREADS * (SPANS + ADDED_EACH));
    STRESS_CHECK(stats.ended - 2 * THREADS * before == (uint64_t)THREADS * (SPANS + ADDED_EACH));
    STRESS_CHECK(stats.dropped[OTEL_DROP_QUEUE_FULL] == THREADS * before);
    STRESS_CHECK(oracle_wrong(&oracle) == oracle.unknown);
    STRESS_CHECK(oracle.unknown == (uint64_t)THREADS * ADDED_EACH);
    for (uint32_t i = 0; i < THREADS * SPANS; i++)
        STRESS_CHECK(oracle_seen(&oracle, i) == 1);
}

static void run(uint64_t end)
{
    pthread_t threads[THREADS];
    printf("counters up to %" PRIu64 "\n", end);
    fflush(stdout);
    end_of_counters = end;
    oracle_init(&oracle, THREADS * SPANS);
    is_set = 0;
    stress_start_sdk(oracle_exporter(&oracle), &(otel_sdk_options){.bsp_schedule_delay = 3600000,
                                                                   .bsp_max_queue_size = 1 << 20,
                                                                   .thread_started = set_counters});
    stress_wait(&is_set, 1);
    tracer = otel_tracer_get("stress", NULL);
    stress_start(threads, THREADS, trace);
    stress_join(threads, THREADS);
    check();
    oracle_fini(&oracle);
    oteli_lifecycle_reset();
    oteli_api_reset(); /* generations only grow: the next SDK's is smaller than ours was */
}

/* --- free lists --- */

static struct oteli_free_list list;
static uint32_t links[PLACES];
static uint32_t is_taken[PLACES]; /* atomic */

static uint32_t *link_of(uint32_t index)
{
    return &links[index];
}

static void *take_and_give(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < CHANGES; i++) {
        const uint32_t one = oteli_free_list_pop(&list, link_of);
        const uint32_t two = oteli_free_list_pop(&list, link_of);
        STRESS_CHECK(one < PLACES && two < PLACES);
        STRESS_CHECK(oteli_exchange_full_32(&is_taken[one], 1) == 0);
        STRESS_CHECK(oteli_exchange_full_32(&is_taken[two], 1) == 0);
        oteli_store_release_32(&is_taken[one], 0);
        oteli_free_list_push(&list, link_of, one);
        oteli_store_release_32(&is_taken[two], 0);
        oteli_free_list_push(&list, link_of, two);
    }
    return NULL;
}

static void wrap_free_list(void)
{
    pthread_t threads[LIST_THREADS];
    list.head = (uint64_t)(UINT32_MAX - CHANGES) << 32;
    for (uint32_t i = 0; i < PLACES; i++)
        oteli_free_list_push(&list, link_of, i);
    stress_start(threads, LIST_THREADS, take_and_give);
    stress_join(threads, LIST_THREADS);
    uint32_t count = 0;
    while (oteli_free_list_pop(&list, link_of) != OTELI_NO_SLOT)
        count++;
    STRESS_CHECK(count == PLACES);
}

int main(int argc, char **argv)
{
    const unsigned times = stress_scale(argc, argv, 20);
    for (unsigned i = 0; i < times; i++) {
        run(UINT32_MAX);
        run(UINT64_MAX);
        wrap_free_list();
    }
    return 0;
}
