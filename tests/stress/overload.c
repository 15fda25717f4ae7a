/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/overload.c - 16 threads trace as fast as they can, and what takes their spans is
 * a hundred times too slow, or away. Every span is delivered or counted, memory stays under
 * its cap, and the log says once that spans are lost and once that it is over.
 *
 *     overload_stress exporter    an exporter that takes 100 times as long as it needs
 *     overload_stress receiver    OTLP to a receiver that reads slowly
 *     overload_stress down        spans of 1 MiB for a receiver that is not there
 *     overload_stress footprint   20 threads, the default queue, and a receiver that keeps up: the
 *                                 SDK adds at most 8 MiB and the bytes of the queue to what the
 *                                 program had before otel_start
 *
 * Memory: first the producers do the same and cancel each span at its end. What the process
 * has then, at most, is what so many threads with such spans have in any case; the queue may
 * add its cap and a tenth. The kernel keeps the maximum (VmHWM). */
#include "common/base/atomic.h"
#include "tests/support/fault_peer.h"
#include "tests/support/http_sink.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { PRODUCERS = 16, FOOTPRINT_PRODUCERS = 20, TOUCHED = 16 * 1024 };
enum { MIB = 1024 * 1024, CAP_BYTES = 32 * MIB, KIB = 1024, HUNDRED = 100 };
enum { QUEUE_SIZE = 2048, DEFAULT_KIB = 16 * KIB, FOOTPRINT_KIB = DEFAULT_KIB + 8 * KIB };
enum { LAPS_MS = 700, LONG_SCALE = 60, RECOVERY_TRIES = 20000 };
enum {
    NS_PER_MS = 1000000,
    DELAY_MS = 100,
    LOG_CAP_MS = 10000,
    FULL_TRIES = 100,
    SLOW_BYTES = 1024, /* every SLOW_MS, and what the kernel takes was not read by anybody */
    SLOW_MS = 10,
    RECEIVE_BUFFER = 4096
};
enum mode { PARKED, CANCELS, TRACES, ENDS };

struct producer {
    _Alignas(OTELI_CACHELINE) uint64_t ended; /* atomic */
    uint32_t is_parked;                       /* atomic */
    pthread_t thread;
};

static struct producer producers[FOOTPRINT_PRODUCERS];
static unsigned producer_count;
static otel_tracer *tracer;
static uint32_t mode;               /* enum mode; atomic */
static const char *large_attribute; /* or NULL */

static void trace_one(bool is_cancelled)
{
    const otel_span span = otel_span_enter(tracer, "overload", NULL);
    otel_span_set_string(span, "url.path", "/api/users/12345");
    otel_span_set_int(span, "http.response.status_code", 200);
    if (large_attribute != NULL)
        otel_span_set_string(span, "large", large_attribute);
    if (is_cancelled)
        otel_span_cancel(span);
    else
        otel_span_end(span);
}

/* A program's thread has used some of its stack, and its heap, before. */
static void live_a_little(void)
{
    char on_stack[TOUCHED];
    memset(on_stack, 1, sizeof on_stack);
    char *on_heap = malloc(TOUCHED);
    STRESS_CHECK(on_heap != NULL);
    memcpy(on_heap, on_stack, TOUCHED);
    __asm__ volatile("" : : "r"(on_heap) : "memory");
    free(on_heap);
}

static void *produce(void *argument)
{
    struct producer *me = argument;
    live_a_little();
    for (;;) {
        const enum mode now = (enum mode)oteli_load_acquire_32(&mode);
        if (now == ENDS)
            return NULL;
        if (now == PARKED) {
            oteli_store_release_32(&me->is_parked, 1);
            stress_sleep_us(500);
            continue;
        }
        oteli_store_relaxed_32(&me->is_parked, 0);
        trace_one(now == CANCELS);
        oteli_store_relaxed_64(&me->ended, me->ended + 1);
    }
}

static void start_producers(unsigned count)
{
    producer_count = count;
    for (unsigned i = 0; i < producer_count; i++)
        STRESS_CHECK(pthread_create(&producers[i].thread, NULL, produce, &producers[i]) == 0);
}

/* Wait until each of them has what a thread with such spans has. */
static void wait_for_producers(void)
{
    for (unsigned i = 0; i < producer_count; i++)
        while (oteli_load_relaxed_64(&producers[i].ended) == 0)
            stress_sleep_us(100);
}

/* Wait until all of them have seen it. */
static void park_producers(void)
{
    for (unsigned i = 0; i < producer_count; i++)
        oteli_store_relaxed_32(&producers[i].is_parked, 0);
    oteli_store_release_32(&mode, PARKED);
    for (unsigned i = 0; i < producer_count; i++)
        while (oteli_load_acquire_32(&producers[i].is_parked) == 0)
            stress_sleep_us(100);
}

static void end_producers(void)
{
    oteli_store_release_32(&mode, ENDS);
    for (unsigned i = 0; i < producer_count; i++)
        pthread_join(producers[i].thread, NULL);
}

static uint64_t ended_by_producers(void)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < producer_count; i++)
        sum += oteli_load_relaxed_64(&producers[i].ended);
    return sum;
}

/* --- an exporter that takes its time --- */

struct slow {
    uint32_t times; /* as long as it needs; atomic */
    int event;      /* wakes it */
    uint64_t done_ns;
    uint64_t bytes;
};

static otel_export_result begin_export(void *state, otel_export *call)
{
    struct slow *slow = state;
    const uint64_t began_ns = process_now_ns();
    const uint32_t times = oteli_load_acquire_32(&slow->times);
    otel_span_view span;
    if (times == 0)
        return OTEL_EXPORT_DONE;
    for (size_t i = 0; i < otel_batch_size(call->batch); i++) {
        otel_batch_span(call->batch, i, &span);
        slow->bytes += span.otlp.length;
    }
    const uint64_t now_ns = process_now_ns();
    slow->done_ns = now_ns + (now_ns - began_ns) * (times - 1);
    return times == 1 ? OTEL_EXPORT_DONE : OTEL_EXPORT_PENDING;
}

static otel_export_result go_on(void *state, otel_export *call, int timeout_ms, bool abandon)
{
    struct slow *slow = state;
    struct pollfd event = {.fd = slow->event, .events = POLLIN};
    const uint64_t now_ns = process_now_ns();
    uint64_t count;
    (void)call;
    if (now_ns >= slow->done_ns || oteli_load_acquire_32(&slow->times) == 1)
        return OTEL_EXPORT_DONE;
    if (abandon)
        return OTEL_EXPORT_PENDING;
    const uint64_t left_ms = (slow->done_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
    poll(&event, 1, left_ms < (uint64_t)timeout_ms ? (int)left_ms : timeout_ms);
    if (event.revents != 0)
        (void)!read(slow->event, &count, sizeof count);
    return OTEL_EXPORT_PENDING;
}

static void wake(void *state)
{
    const uint64_t one = 1;
    (void)!write(((struct slow *)state)->event, &one, sizeof one);
}

static otel_exporter slow_exporter(struct slow *slow)
{
    return OTEL_EXPORTER(.name = "slow", .state = slow, .export_batch = begin_export, .poll = go_on,
                         .wake = wake);
}

/* --- the log --- */

static uint32_t lines_of_loss;     /* spans that exporters lose; atomic */
static uint32_t lines_of_drops;    /* spans that find no room; atomic */
static uint32_t lines_of_recovery; /* atomic */

static void on_log(void *state, otel_log_level level, const char *message)
{
    (void)state;
    if (level > OTEL_LOG_WARN)
        return;
    if (strstr(message, "is full") != NULL)
        oteli_add_full_32(&lines_of_drops, 1);
    else if (strstr(message, "losing") != NULL)
        oteli_add_full_32(&lines_of_loss, 1);
    if (strstr(message, "again") != NULL)
        oteli_add_full_32(&lines_of_recovery, 1);
    printf("log: %s\n", message);
}

static void check_log(uint64_t took_ns, bool recovers)
{
    const uint64_t most = took_ns / ((uint64_t)LOG_CAP_MS * NS_PER_MS) + 1;
    STRESS_CHECK(lines_of_drops >= 1 && lines_of_drops <= most);
    STRESS_CHECK(lines_of_loss <= most);
    STRESS_CHECK(lines_of_recovery <= 2 * most); /* from either */
    if (recovers)
        STRESS_CHECK(lines_of_recovery >= 1);
}

/* --- the test --- */

struct scene {
    otel_status (*start)(void);
    void (*recover)(void); /* or NULL */
    otel_drop_reason reason;
};

static struct slow slow = {.times = HUNDRED};
static struct fault_peer *peer;

static otel_status start_exporter(void)
{
    const otel_exporter exporter = slow_exporter(&slow);
    slow.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    STRESS_CHECK(slow.event >= 0);
    return otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                            .bsp_max_queue_size = QUEUE_SIZE,
                                            .queue_max_bytes = CAP_BYTES,
                                            .bsp_schedule_delay = DELAY_MS));
}

static void recover_exporter(void)
{
    oteli_store_release_32(&slow.times, 1);
}

static otel_status start_receiver(void)
{
    peer = fault_peer_start(&(struct fault_peer_options){.keeps_none = true,
                                                         .read_bytes = SLOW_BYTES,
                                                         .read_ms = SLOW_MS,
                                                         .receive_buffer = RECEIVE_BUFFER});
    return otel_start(OTEL_SDK_OPTIONS(.traces_exporter = "otlp", .traces_sampler = "always_on",
                                       .queue_max_bytes = CAP_BYTES, .bsp_schedule_delay = DELAY_MS,
                                       .exporter_otlp_traces_endpoint = fault_peer_url(peer)));
}

static void recover_receiver(void)
{
    fault_peer_set_reading(peer, 0, 0);
}

static otel_status start_down(void)
{
    static char endpoint[64];
    char *text = malloc(MIB + 1);
    STRESS_CHECK(text != NULL);
    memset(text, 'x', MIB);
    text[MIB] = '\0';
    large_attribute = text;
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u/v1/traces", http_sink_closed_port());
    return otel_start(OTEL_SDK_OPTIONS(.traces_exporter = "otlp", .traces_sampler = "always_on",
                                       .queue_max_bytes = CAP_BYTES, .bsp_schedule_delay = DELAY_MS,
                                       .exporter_otlp_timeout = 200,
                                       .exporter_otlp_traces_endpoint = endpoint));
}

/* Until the log says that it is over. */
static uint64_t trace_until_recovered(void)
{
    uint64_t ended = 0;
    for (; ended < RECOVERY_TRIES && oteli_load_acquire_32(&lines_of_recovery) == 0; ended++) {
        trace_one(false);
        if (ended % 100 == 0)
            (void)!otel_flush(1000);
        stress_sleep_us(1000);
    }
    return ended;
}

static void report(const otel_stats *stats, uint64_t before_kib, uint64_t peak_kib)
{
    char text[256];
    otel_stats_describe(stats, text, sizeof text);
    printf("%" PRIu64 " spans: %s; %" PRIu64 " KiB without a queue, %" PRIu64 " KiB with one\n",
           stats->ended, text, before_kib, peak_kib);
    fflush(stdout);
}

static void play(const struct scene *scene, unsigned scale)
{
    const uint64_t began_ns = process_now_ns();
    otel_log_set_handler(on_log, NULL);
    STRESS_CHECK(scene->start() == OTEL_OK);
    start_producers(PRODUCERS);
    oteli_store_release_32(&mode, CANCELS);
    stress_sleep_us(LAPS_MS * 1000 / 2);
    wait_for_producers();
    park_producers();
    const uint64_t before_kib = process_peak_kib();
    oteli_store_release_32(&mode, TRACES);
    stress_sleep_us(LAPS_MS * 1000 * scale);
    for (unsigned i = 0; i < FULL_TRIES && stress_stats().dropped[scene->reason] == 0; i++)
        stress_sleep_us(LAPS_MS * 1000); /* a slow build needs longer to fill the queue */
    park_producers();
    const uint64_t peak_kib = process_peak_kib();

    uint64_t ended = 0;
    if (scene->recover != NULL) {
        scene->recover();
        ended = trace_until_recovered();
    }
    end_producers();
    const otel_status status = otel_shutdown(scene->recover != NULL ? 60000 : 1000);
    STRESS_CHECK(stress_is_done(status) || scene->recover == NULL);
    const otel_stats stats = stress_stats();
    report(&stats, before_kib, peak_kib);
    stress_check_sums(&stats, true);
    STRESS_CHECK(stats.ended == ended_by_producers() + ended);
    STRESS_CHECK(stats.dropped[scene->reason] != 0);
    check_log(process_now_ns() - began_ns, scene->recover != NULL);
    if (process_memory_is_ours())
        STRESS_CHECK(peak_kib - before_kib <= CAP_BYTES / KIB + CAP_BYTES / KIB / 10);
}

/* The threads and the receiver are there before. The difference is what otel_start brought and what
 * tracing took: libcurl and its connection, lines, the request, the state of each thread. */
static void measure_footprint(unsigned scale)
{
    peer = fault_peer_start(&(struct fault_peer_options){.keeps_none = true});
    start_producers(FOOTPRINT_PRODUCERS);
    park_producers();
    const uint64_t before_kib = process_resident_kib();
    process_forget_peak();
    STRESS_CHECK(
        otel_start(OTEL_SDK_OPTIONS(.traces_exporter = "otlp", .traces_sampler = "always_on",
                                    .exporter_otlp_traces_endpoint = fault_peer_url(peer))) ==
        OTEL_OK);
    oteli_store_release_32(&mode, TRACES);
    stress_sleep_us(LAPS_MS * 1000 * scale);
    end_producers();
    STRESS_CHECK(stress_is_done(otel_flush(60000)));
    const uint64_t peak_kib = process_peak_kib();
    const otel_stats stats = stress_stop_sdk();
    report(&stats, before_kib, peak_kib);
    STRESS_CHECK(stats.delivered != 0 && fault_peer_requests(peer) == stats.batches);
    if (process_memory_is_ours())
        STRESS_CHECK(peak_kib - before_kib <= FOOTPRINT_KIB);
    fault_peer_stop(peer);
}

int main(int argc, char **argv)
{
    static const struct scene exporter = {start_exporter, recover_exporter, OTEL_DROP_QUEUE_FULL};
    static const struct scene receiver = {start_receiver, recover_receiver, OTEL_DROP_BYTE_LIMIT};
    static const struct scene down = {start_down, NULL, OTEL_DROP_BYTE_LIMIT};
    const char *what = argc > 1 ? argv[1] : "exporter";
    tracer = otel_tracer_get("stress", NULL);
    const unsigned scale = stress_scale(argc, argv, LONG_SCALE);
    if (strcmp(what, "footprint") == 0)
        measure_footprint(scale);
    else
        play(strcmp(what, "receiver") == 0 ? &receiver
             : strcmp(what, "down") == 0   ? &down
                                           : &exporter,
             scale);
    return 0;
}
