/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/flush_races.c - flush, shutdown and start against one another while 16 threads
 * trace and the schedule delay is one hour: every call returns, and a span that ended before
 * a flush began is delivered when the flush says OTEL_OK.
 *
 * Producers stop when they are ahead of the flushes, so a wake-up that is lost stays lost:
 * nothing but that flush will ever wake the worker. The watchdog ends the program then. How
 * long the longest call took is printed, and how much of that nobody was running or waiting
 * for a processor: a stall is what is left, when also the watchdog itself ran in time.
 *
 * Exports know spans by producer and sequence, in a window that is as long as a producer can
 * be ahead. What ended while the SDK stopped or started belongs to nobody and is not looked
 * for; nor is that of an SDK that was stopped without time to export it. */
#include "common/base/atomic.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PRODUCERS = 16,
    FLUSHERS = 4,
    AHEAD = 48,
    WINDOW = 2048,
    SEQUENCE_BITS = 28,
    EPOCHS = 1024,
    PATIENT_MS = 60000,
    WATCH_US = 10000,
    NAP_US = 100
};
#define STALL_NS (UINT64_C(50) * 1000 * 1000)
#define LOST_NS (UINT64_C(60) * 1000 * 1000 * 1000)

struct plan {
    const char *name;
    unsigned flushers;
    bool restarts;
    bool impatient; /* some calls have no time */
    int64_t batch_size;
    uint32_t races; /* in the short form */
};

/* A caller of flush or shutdown. */
struct caller {
    uint64_t random;
    uint64_t since_ns; /* 0: in no call; atomic */
    uint64_t longest_ns;
    uint64_t stalled_ns; /* the longest time that nothing explains */
    uint32_t thread;     /* atomic */
};

static const struct plan *plan;
static otel_tracer *tracer;
static uint32_t stop;    /* atomic */
static uint64_t races;   /* calls so far; atomic */
static uint64_t wanted;  /* calls */
static bool is_long;     /* a machine for it: nobody else takes its processors away */
static uint64_t answers; /* flushes that said OTEL_OK; atomic */
static uint64_t late_ns; /* what the watchdog overslept so far; atomic */
static uint32_t worker;  /* its thread; atomic */
static struct caller callers[FLUSHERS + 1];

static uint64_t epoch;                        /* odd: no SDK; atomic */
static uint32_t lossy[EPOCHS];                /* by epoch: stopped without time; atomic */
static uint32_t ended[PRODUCERS];             /* spans that have ended; atomic */
static uint32_t flushed[PRODUCERS];           /* of those, looked for and found; atomic */
static uint64_t lived_in[PRODUCERS][WINDOW];  /* the epoch of a span; 0: of none; atomic */
static uint32_t delivered[PRODUCERS][WINDOW]; /* 1 more than the newest span there; atomic */
static uint32_t wrong;                        /* delivered twice, or unknown; atomic */
static uint64_t exported;                     /* spans, since the last start; atomic */

static void see(otel_slice name)
{
    char text[ORACLE_NAME + 1] = "";
    if (name.length != ORACLE_NAME) {
        oteli_add_full_32(&wrong, 1);
        return;
    }
    memcpy(text, name.data, ORACLE_NAME);
    const uint32_t number = (uint32_t)strtoul(text, NULL, 16);
    const uint32_t sequence = number & ((1U << SEQUENCE_BITS) - 1);
    const uint32_t before = oteli_exchange_full_32(
        &delivered[number >> SEQUENCE_BITS][sequence % WINDOW], sequence + 1);
    /* A worker that was given up may come late, when the window has moved on. */
    if (before == sequence + 1 || (before > sequence + 1 && !plan->impatient))
        oteli_add_full_32(&wrong, 1);
}

static otel_export_result export_batch(void *state, otel_export *call)
{
    const size_t size = otel_batch_size(call->batch);
    otel_span_view span;
    (void)state;
    oteli_add_full_64(&exported, size);
    if (size > (size_t)plan->batch_size)
        oteli_add_full_32(&wrong, 1);
    for (size_t i = 0; i < size; i++) {
        otel_batch_span(call->batch, i, &span);
        see(span.name);
    }
    return OTEL_EXPORT_DONE;
}

static void note_worker(void *state)
{
    (void)state;
    oteli_store_release_32(&worker, (uint32_t)process_this_thread());
}

static void start(void)
{
    const otel_exporter exporter = OTEL_EXPORTER(.name = "races", .export_batch = export_batch);
    oteli_store_relaxed_64(&exported, 0);
    STRESS_CHECK(otel_start_with(
                     OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                      .bsp_schedule_delay = 3600000, .bsp_max_queue_size = 1 << 16,
                                      .bsp_max_export_batch_size = plan->batch_size,
                                      .thread_started = note_worker, .log_level = "none")) ==
                 OTEL_OK);
}

static void *produce(void *argument)
{
    const uint32_t me = (uint32_t)(uintptr_t)argument;
    char name[ORACLE_NAME];
    for (uint32_t i = 0; oteli_load_relaxed_32(&stop) == 0;) {
        const uint64_t before = oteli_load_acquire_64(&epoch);
        if (before % 2 != 0 || i - oteli_load_acquire_32(&flushed[me]) >= AHEAD) {
            stress_sleep_us(NAP_US); /* who only yields keeps the processors from the others */
            continue;
        }
        oracle_name(me << SEQUENCE_BITS | i, name);
        otel_span_end(i % 3 == 0 ? otel_span_start_n(tracer, name, sizeof name, NULL)
                                 : otel_span_enter_n(tracer, name, sizeof name, NULL));
        const bool is_whole = oteli_load_acquire_64(&epoch) == before;
        oteli_store_relaxed_64(&lived_in[me][i % WINDOW], is_whole ? before : 0);
        oteli_store_release_32(&ended[me], ++i);
        STRESS_CHECK(i >> SEQUENCE_BITS == 0);
    }
    return NULL;
}

/* Whether a span is where it has to be, unless another flush has looked for it meanwhile. */
static bool is_there(uint32_t producer, uint32_t sequence)
{
    const uint32_t newest = oteli_load_acquire_32(&delivered[producer][sequence % WINDOW]);
    const uint64_t home = oteli_load_acquire_64(&lived_in[producer][sequence % WINDOW]);
    return newest == sequence + 1 || home == 0 || oteli_load_acquire_32(&lossy[home % EPOCHS]) ||
           oteli_load_acquire_32(&flushed[producer]) > sequence;
}

static void look_for(uint32_t producer, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        if (is_there(producer, i))
            continue;
        fprintf(stderr,
                "%s: span %" PRIu32 " of producer %" PRIu32 " is missing (%" PRIu32 " ended)\n",
                plan->name, i, producer, to);
        STRESS_CHECK(is_there(producer, i));
    }
    uint32_t known = oteli_load_acquire_32(&flushed[producer]);
    while (known < to && !oteli_cas_full_32(&flushed[producer], known, to))
        known = oteli_load_acquire_32(&flushed[producer]);
}

/* Time in which somebody whom a flush waits for ran, or could have. */
static uint64_t explained_ns(void)
{
    uint64_t sum = oteli_load_relaxed_64(&late_ns);
    const struct process_turns of_worker = process_turns((int)oteli_load_acquire_32(&worker));
    sum += of_worker.ran_ns + of_worker.waited_ns;
    for (unsigned i = 0; i < plan->flushers; i++)
        sum += process_turns((int)oteli_load_relaxed_32(&callers[i].thread)).waited_ns;
    return sum;
}

static void begin(struct caller *me)
{
    oteli_store_release_64(&me->since_ns, process_now_ns());
}

static void finish(struct caller *me, uint64_t explained_before_ns)
{
    const uint64_t took_ns = process_now_ns() - me->since_ns;
    oteli_store_release_64(&me->since_ns, 0);
    if (took_ns > me->longest_ns)
        me->longest_ns = took_ns;
    if (plan->restarts || took_ns < STALL_NS)
        return;
    const uint64_t explained = explained_ns() - explained_before_ns;
    const uint64_t left_ns = took_ns > explained ? took_ns - explained : 0;
    if (left_ns > me->stalled_ns)
        me->stalled_ns = left_ns;
}

static int64_t choose_timeout(struct caller *me)
{
    const uint64_t dice = plan->impatient ? stress_random(&me->random) % 8 : 2;
    return dice < 2 ? (int64_t)dice : PATIENT_MS;
}

static void flush_once(struct caller *me)
{
    uint32_t from[PRODUCERS];
    uint32_t to[PRODUCERS];
    const int64_t timeout_ms = choose_timeout(me);
    const uint64_t explained = !plan->restarts ? explained_ns() : 0;
    for (unsigned i = 0; i < PRODUCERS; i++) {
        from[i] = oteli_load_acquire_32(&flushed[i]);
        to[i] = oteli_load_acquire_32(&ended[i]);
    }
    begin(me);
    const otel_status status = otel_flush(timeout_ms);
    finish(me, explained);
    if (status != OTEL_ERROR_NOT_STARTED)
        oteli_add_full_64(&races, 1);
    if (status == OTEL_OK) {
        oteli_add_full_64(&answers, 1);
        for (uint32_t i = 0; i < PRODUCERS; i++)
            look_for(i, from[i], to[i]);
    } else if (status == OTEL_ERROR_TIMEOUT) {
        STRESS_CHECK(timeout_ms != PATIENT_MS);
    } else if (status == OTEL_ERROR_EXPORT_FAILED) { /* a shutdown without time lost something */
        STRESS_CHECK(plan->restarts && plan->impatient);
    } else { /* a shutdown came first */
        STRESS_CHECK(plan->restarts && status == OTEL_ERROR_NOT_STARTED);
        while (oteli_load_acquire_64(&epoch) % 2 != 0)
            stress_sleep_us(NAP_US);
    }
}

static void *flush(void *argument)
{
    struct caller *me = argument;
    while (oteli_load_relaxed_64(&races) < wanted)
        flush_once(me);
    return NULL;
}

static void stop_sdk(struct caller *me)
{
    const uint64_t stopped = oteli_load_relaxed_64(&epoch);
    const int64_t timeout_ms = choose_timeout(me);
    oteli_store_release_32(&lossy[stopped % EPOCHS], timeout_ms != PATIENT_MS);
    oteli_add_full_64(&epoch, 1);
    begin(me);
    const otel_status status = otel_shutdown(timeout_ms);
    finish(me, 0);
    oteli_add_full_64(&races, 1);
    STRESS_CHECK(status == OTEL_OK || timeout_ms != PATIENT_MS);
    const otel_stats stats = stress_stats();
    stress_check_sums(&stats, false);
    STRESS_CHECK(plan->impatient || stats.delivered == oteli_load_relaxed_64(&exported));
}

static void *restart(void *argument)
{
    struct caller *me = argument;
    while (oteli_load_relaxed_64(&races) < wanted) {
        if (stress_random(&me->random) % 4 != 0)
            stress_sleep_us((unsigned)(stress_random(&me->random) % 1000));
        stop_sdk(me);
        STRESS_CHECK(otel_flush(0) == OTEL_ERROR_NOT_STARTED);
        STRESS_CHECK(otel_shutdown(0) == OTEL_ERROR_NOT_STARTED);
        start();
        oteli_add_full_64(&epoch, 1);
    }
    return NULL;
}

static void *watch(void *argument)
{
    (void)argument;
    while (oteli_load_relaxed_32(&stop) == 0) {
        const uint64_t before_ns = process_now_ns();
        stress_sleep_us(WATCH_US);
        const uint64_t now_ns = process_now_ns();
        const uint64_t due_ns = before_ns + UINT64_C(1000) * WATCH_US;
        if (now_ns > due_ns)
            oteli_add_full_64(&late_ns, now_ns - due_ns);
        otel_stats stats = {.size = sizeof stats};
        if (otel_stats_read(0, &stats) == OTEL_OK)
            stress_check_sums(&stats, false); /* at every moment */
        for (unsigned i = 0; i <= FLUSHERS; i++) {
            const uint64_t since_ns = oteli_load_acquire_64(&callers[i].since_ns);
            if (since_ns == 0 || now_ns < since_ns || now_ns - since_ns < LOST_NS)
                continue;
            fprintf(stderr, "%s: caller %u does not come back\n", plan->name, i);
            abort();
        }
    }
    return NULL;
}

static void *begin_as_caller(void *argument)
{
    struct caller *me = argument;
    oteli_store_relaxed_32(&me->thread, (uint32_t)process_this_thread());
    return me == &callers[FLUSHERS] ? restart(me) : flush(me);
}

static void reset(const struct plan *next_plan, uint64_t scale)
{
    plan = next_plan;
    stop = 0;
    races = answers = 0;
    wanted = plan->races * scale;
    epoch = 2;
    memset(lossy, 0, sizeof lossy);
    memset(ended, 0, sizeof ended);
    memset(flushed, 0, sizeof flushed);
    memset(lived_in, 0, sizeof lived_in);
    memset(delivered, 0, sizeof delivered);
    memset(callers, 0, sizeof callers);
}

static void report(void)
{
    uint64_t longest_ns = 0;
    uint64_t stalled_ns = 0;
    for (unsigned i = 0; i <= FLUSHERS; i++) {
        longest_ns = callers[i].longest_ns > longest_ns ? callers[i].longest_ns : longest_ns;
        stalled_ns = callers[i].stalled_ns > stalled_ns ? callers[i].stalled_ns : stalled_ns;
    }
    printf("%s: %" PRIu64 " races, %" PRIu64 " flushes said that all is delivered; the longest "
           "call took %" PRIu64 " us, of which nothing explains %" PRIu64 " us\n",
           plan->name, races, answers, longest_ns / 1000, stalled_ns / 1000);
    fflush(stdout);
    STRESS_CHECK(wrong == 0);
    STRESS_CHECK(answers != 0);
    STRESS_CHECK(!is_long || stalled_ns < STALL_NS);
}

static void run(const struct plan *next_plan, uint64_t scale, uint64_t seed)
{
    pthread_t producers[PRODUCERS];
    pthread_t others[FLUSHERS + 2];
    unsigned count = 0;
    reset(next_plan, scale);
    start();
    stress_start(producers, PRODUCERS, produce);
    STRESS_CHECK(pthread_create(&others[count++], NULL, watch, NULL) == 0);
    for (unsigned i = 0; i <= FLUSHERS; i++) {
        callers[i].random = seed + i;
        if (i < plan->flushers || (i == FLUSHERS && plan->restarts))
            STRESS_CHECK(pthread_create(&others[count++], NULL, begin_as_caller, &callers[i]) == 0);
    }
    for (unsigned i = 1; i < count; i++)
        pthread_join(others[i], NULL);
    oteli_store_relaxed_32(&stop, 1);
    pthread_join(others[0], NULL);
    stress_join(producers, PRODUCERS);
    STRESS_CHECK(otel_flush(PATIENT_MS) == OTEL_OK);
    for (uint32_t i = 0; i < PRODUCERS; i++)
        look_for(i, flushed[i], ended[i]);
    STRESS_CHECK(otel_shutdown(PATIENT_MS) == OTEL_OK);
    const otel_stats stats = stress_stats();
    stress_check_sums(&stats, true);
    uint64_t all = 0;
    for (unsigned i = 0; i < PRODUCERS; i++)
        all += ended[i];
    STRESS_CHECK(plan->restarts || stats.delivered == all);
    report();
}

/* spec: P10 P12 */
int main(int argc, char **argv)
{
    static const struct plan plans[] = {
        {"one flusher, flushes alone wake the worker", 1, false, false, 1 << 16, 500},
        {"one flusher, batches wake it as well", 1, false, false, 64, 500},
        {"four flushers", FLUSHERS, false, false, 512, 500},
        {"four flushers, small batches", FLUSHERS, false, false, 7, 500},
        {"four flushers, some without time", FLUSHERS, false, true, 512, 500},
        {"restarts", FLUSHERS, true, false, 512, 500},
        {"restarts, some without time", FLUSHERS, true, true, 7, 500},
    };
    const uint64_t scale = stress_scale(argc, argv, 334);
    const uint64_t seed = stress_seed() | 1;
    is_long = scale != 1;
    tracer = otel_tracer_get("stress", NULL);
    for (unsigned i = 0; i < sizeof plans / sizeof plans[0]; i++)
        run(&plans[i], scale, seed);
    return 0;
}
