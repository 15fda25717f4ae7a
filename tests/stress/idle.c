/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/idle.c - with nothing to export there are no wake-ups: the kernel never gives
 * the exporter thread a processor for a long time, while other threads compute and
 * use the API in every way that records nothing.
 *
 * Work is done first, in ticks of a few milliseconds, and the thread has to fall asleep from
 * it. How long that takes is its own matter and the machine's; that it ever does is not:
 * one that ticks, looks again or waits with a timeout never does. */
#include "common/base/atomic.h"
#include "tests/support/http_sink.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

enum { BUSY = 3, DELAY_MS = 5, PAUSE_MS = 100, STILL_MS = 600, LONG = 4, TRIES = 300 };
enum { NS_PER_MS = 1000000, QUEUE = 10000 };

static struct oracle oracle;
static otel_tracer *tracer;
static uint32_t next_number; /* atomic */
static uint32_t stop;        /* atomic */
static bool is_sampled;
static uint32_t worker; /* its thread; atomic */
static unsigned still_ms;

/* What an instrumented program does while it records nothing. */
static void *be_busy(void *argument)
{
    const otel_span open = otel_span_enter(tracer, "open all the time", NULL);
    uint64_t sum = 0;
    (void)argument;
    while (oteli_load_relaxed_32(&stop) == 0) {
        for (uint64_t i = 0; i < 10000; i++)
            sum += i * i;
        otel_span_set_int(open, "sum", (int64_t)sum);
        const otel_context token = otel_current_context();
        (void)token;
        if (!is_sampled)
            otel_span_end(otel_span_enter(tracer, "unsampled", NULL));
    }
    otel_span_cancel(open);
    return NULL;
}

static void trace(unsigned spans)
{
    for (unsigned i = 0; i < spans; i++)
        otel_span_end(oracle_enter(tracer, oteli_add_full_32(&next_number, 1)));
}

static void note_worker(void *state)
{
    (void)state;
    oteli_store_release_32(&worker, (uint32_t)process_this_thread());
}

static bool is_still_for(unsigned ms)
{
    const struct process_turns before = process_turns((int)oteli_load_acquire_32(&worker));
    STRESS_CHECK(before.turns != 0);
    stress_sleep_us(ms * 1000);
    const struct process_turns after = process_turns((int)oteli_load_acquire_32(&worker));
    return after.turns == before.turns && after.ran_ns == before.ran_ns;
}

/* Wait for the worker to have no turn for long. */
static void expect_stillness(const char *when)
{
    for (unsigned i = 0; i < TRIES; i++)
        if (is_still_for(PAUSE_MS) && is_still_for(still_ms)) {
            printf("%s: still, after %u tries\n", when, i);
            return;
        }
    fprintf(stderr, "%s: the worker is given a processor again and again\n", when);
    STRESS_CHECK(false);
}

static void expect_delivery(uint64_t numbers)
{
    const uint64_t until_ns = process_now_ns() + UINT64_C(60000) * NS_PER_MS;
    for (uint32_t i = 0; i < numbers; i++)
        while (oracle_seen(&oracle, i) != 1) {
            STRESS_CHECK(process_now_ns() < until_ns);
            stress_sleep_us(1000);
        }
}

static void run(const char *sampler, const char *clock)
{
    pthread_t busy[BUSY];
    oracle_init(&oracle, QUEUE);
    next_number = stop = worker = 0;
    is_sampled = sampler == NULL;
    stress_start_sdk(oracle_exporter(&oracle), &(otel_sdk_options){.bsp_schedule_delay = DELAY_MS,
                                                                   .bsp_max_queue_size = QUEUE,
                                                                   .traces_sampler = sampler,
                                                                   .clock = clock,
                                                                   .thread_started = note_worker});
    stress_wait(&worker, 1);
    stress_start(busy, BUSY, be_busy);
    expect_stillness(is_sampled ? "nothing has ended yet" : "nothing is sampled");
    if (is_sampled) {
        trace(1);
        expect_delivery(1); /* by the tick alone */
        trace(3000);
        expect_delivery(next_number);
        expect_stillness("after spans");
        STRESS_CHECK(otel_flush(60000) == OTEL_OK);
        expect_stillness("after a flush");
        trace(1);
        expect_delivery(next_number);
    }
    oteli_store_relaxed_32(&stop, 1);
    stress_join(busy, BUSY);
    const otel_stats stats = stress_stop_sdk();
    STRESS_CHECK(stats.delivered == next_number && oracle_wrong(&oracle) == 0);
    oracle_fini(&oracle);
}

/* The same with a connection that is kept: nobody looks after it for half a minute. */
static void run_otlp(void)
{
    struct http_sink *sink = http_sink_start(NULL, 0);
    worker = 0;
    STRESS_CHECK(
        otel_start(OTEL_SDK_OPTIONS(.traces_exporter = "otlp", .traces_sampler = "always_on",
                                    .exporter_otlp_traces_endpoint = http_sink_url(sink),
                                    .bsp_schedule_delay = DELAY_MS,
                                    .thread_started = note_worker)) == OTEL_OK);
    stress_wait(&worker, 1);
    otel_span_end(otel_span_enter(tracer, "delivered", NULL));
    STRESS_CHECK(http_sink_wait(sink, 1));
    expect_stillness("after an export by OTLP");
    STRESS_CHECK(otel_shutdown(60000) == OTEL_OK);
    http_sink_stop(sink);
}

/* spec: P13 */
int main(int argc, char **argv)
{
    still_ms = STILL_MS * stress_scale(argc, argv, LONG);
    tracer = otel_tracer_get("stress", NULL);
    if (process_turns(process_this_thread()).turns == 0) {
        printf("this kernel does not count turns\n");
        return 77;
    }
    run(NULL, NULL);
    run("always_off", NULL);
    run("always_off", "monotonic"); /* without the counter no span goes the fast path */
    run_otlp();
    return 0;
}
