/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/threadless.c - an SDK without a thread: several threads poll, flush and shut down
 * while others trace, and the exporter has to be waited for. It is never called by two at once
 * nor told to wait, every span is delivered once or counted, and a loop that only watches the
 * descriptor is woken for everything. */
#include "common/base/atomic.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>

enum { TRACERS = 6, POLLERS = 3, ROUNDS = 12, NUMBERS = 1 << 22, SPANS = 2000, STALL_MS = 60000 };

static struct oracle oracle;
static otel_exporter inner; /* what the oracle counts */
static otel_tracer *tracer;
static uint64_t seed;
static uint32_t next_number; /* atomic */
static uint32_t stop;        /* atomic */
static uint32_t round_stop;  /* atomic */
static uint32_t inside;      /* atomic: calls of the exporter just now */
static uint32_t polls_left;  /* of the export under way */
static uint64_t pace;        /* random numbers of the exporter */

/* ---- an exporter that takes a few looks
 * ------------------------------------------------------- */

/* The exporter's calls come one after the other. */
static otel_export_result work_on(otel_export *call, bool is_at_its_end)
{
    STRESS_CHECK(oteli_add_full_32(&inside, 1) == 0);
    if (is_at_its_end)
        STRESS_CHECK(inner.export_batch(inner.state, call) == OTEL_EXPORT_DONE);
    STRESS_CHECK(oteli_add_full_32(&inside, UINT32_MAX) == 1);
    return is_at_its_end ? OTEL_EXPORT_DONE : OTEL_EXPORT_PENDING;
}

static otel_export_result export_batch(void *state, otel_export *call)
{
    (void)state;
    polls_left = (uint32_t)(stress_random(&pace) % 4);
    return work_on(call, polls_left == 0);
}

static otel_export_result poll_export(void *state, otel_export *call, int timeout_ms, bool abandon)
{
    (void)state;
    STRESS_CHECK(timeout_ms == 0);
    return work_on(call, abandon || --polls_left == 0);
}

static void prepare(void *state, const otel_batch *batch)
{
    (void)state;
    STRESS_CHECK(otel_batch_size(batch) != 0);
    (void)work_on(NULL, false);
}

static void start(uint64_t *random)
{
    stress_start_sdk(OTEL_EXPORTER(.name = "patient", .export_batch = export_batch,
                                   .poll = poll_export, .prepare = prepare),
                     &(otel_sdk_options){
                         .threadless = true,
                         .bsp_max_queue_size = 100 + (int64_t)(stress_random(random) % 5000),
                         .bsp_max_export_batch_size = 10 + (int64_t)(stress_random(random) % 300),
                         .bsp_schedule_delay = 1 + (int64_t)(stress_random(random) % 5),
                         .log_level = "none"});
}

/* ---- who traces, and who drives
 * ---------------------------------------------------------------- */

static void trace_one(uint64_t *random)
{
    const otel_span span = oracle_enter(tracer, oteli_add_full_32(&next_number, 1) % NUMBERS);
    otel_span_set_int(span, "n", 1);
    otel_span_end(span);
    if (stress_random(random) % 64 == 0)
        stress_sleep_us((unsigned)(stress_random(random) % 300));
}

static void *trace(void *argument)
{
    uint64_t random = seed + (uint64_t)(uintptr_t)argument + 1;
    while (oteli_load_relaxed_32(&stop) == 0)
        trace_one(&random);
    return NULL;
}

static void *trace_some(void *argument)
{
    uint64_t random = seed + (uint64_t)(uintptr_t)argument + 100;
    for (unsigned i = 0; i < SPANS; i++)
        trace_one(&random);
    return NULL;
}

static void drive(uint64_t *random)
{
    const int64_t timeout_ms = (int64_t)(stress_random(random) % 3);
    const bool flushes = stress_random(random) % 4 == 0;
    const otel_status status = flushes ? otel_flush(timeout_ms) : otel_poll(timeout_ms);
    STRESS_CHECK(stress_is_done(status) || status == OTEL_ERROR_NOT_STARTED ||
                 (flushes && status == OTEL_ERROR_TIMEOUT));
    if (status == OTEL_ERROR_NOT_STARTED)
        sched_yield();
}

/* Until this says so: the end of all, or that of one run of the SDK, with which the descriptor
 * goes. */
static void *drive_until(void *stopped)
{
    uint64_t random = seed + (uint64_t)process_this_thread();
    while (oteli_load_relaxed_32(stopped) == 0)
        drive(&random);
    return NULL;
}

/* A step of an event loop that knows nothing but the descriptor. */
static bool loop_once(int limit_ms)
{
    struct pollfd waited = {.fd = otel_poll_fd(), .events = POLLIN};
    const bool is_woken = waited.fd < 0 || poll(&waited, 1, limit_ms) == 1;
    (void)!otel_poll(0);
    (void)otel_poll_timeout();
    return is_woken;
}

static void *loop(void *argument)
{
    (void)argument;
    while (oteli_load_relaxed_32(&round_stop) == 0)
        (void)loop_once(5);
    return NULL;
}

/* ---- the two tests
 * -------------------------------------------------------------------------------- */

static void check_end(uint64_t delivered_before, bool is_final)
{
    const otel_stats stats = stress_stats();
    stress_check_sums(&stats, is_final);
    STRESS_CHECK(stats.delivered == oracle.delivered - delivered_before);
    STRESS_CHECK(otel_poll(0) == OTEL_ERROR_NOT_STARTED && otel_poll_fd() == -1);
}

static void one_round(uint64_t *random)
{
    pthread_t thread;
    const uint64_t before = oracle.delivered;
    start(random);
    oteli_store_relaxed_32(&round_stop, 0);
    STRESS_CHECK(pthread_create(&thread, NULL, loop, NULL) == 0);
    stress_sleep_us((unsigned)(stress_random(random) % 30000));
    STRESS_CHECK(stress_is_done(otel_shutdown(60000)));
    oteli_store_relaxed_32(&round_stop, 1);
    pthread_join(thread, NULL);
    check_end(before, false);
}

/* Everybody drives, across starts and shutdowns. */
static void run_all(uint64_t *random, unsigned rounds)
{
    pthread_t threads[TRACERS + POLLERS];
    for (uintptr_t i = 0; i < TRACERS + POLLERS; i++)
        STRESS_CHECK(pthread_create(&threads[i], NULL, i < TRACERS ? trace : drive_until,
                                    i < TRACERS ? (void *)i : &stop) == 0);
    for (unsigned round = 0; round < rounds; round++)
        one_round(random);
    oteli_store_relaxed_32(&stop, 1);
    stress_join(threads, TRACERS + POLLERS);
}

/* The loop is all there is to bring things to their end, and others disturb it meanwhile. */
static void run_loop(uint64_t *random)
{
    pthread_t tracers[TRACERS];
    pthread_t disturber;
    otel_stats stats;
    const uint64_t before = oracle.delivered;
    start(random);
    oteli_store_relaxed_32(&round_stop, 0);
    stress_start(tracers, TRACERS, trace_some);
    STRESS_CHECK(pthread_create(&disturber, NULL, drive_until, &round_stop) == 0);
    do {
        STRESS_CHECK(loop_once(STALL_MS));
        stats = stress_stats();
        if (stats.started >= TRACERS * SPANS / 2)
            oteli_store_relaxed_32(&round_stop, 1);
    } while (stats.ended < TRACERS * SPANS || stats.queued != 0);
    stress_join(tracers, TRACERS);
    pthread_join(disturber, NULL);
    STRESS_CHECK(stress_is_done(otel_shutdown(60000)));
    check_end(before, true);
}

/* spec: P18 */
int main(int argc, char **argv)
{
    const unsigned scale = stress_scale(argc, argv, 20);
    seed = stress_seed() | 1;
    uint64_t random = seed;
    pace = seed;
    oracle_init(&oracle, NUMBERS);
    inner = oracle_exporter(&oracle);
    tracer = otel_tracer_get("stress", NULL);
    for (unsigned i = 0; i < 2 * scale; i++)
        run_loop(&random);
    run_all(&random, ROUNDS * scale);
    if (next_number < NUMBERS)
        STRESS_CHECK(oracle_wrong(&oracle) == 0);
    oracle_fini(&oracle);
    return 0;
}
