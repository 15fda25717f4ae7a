/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/footprint.c - what the SDK adds to the memory of a program of 20 threads, with
 * the default queue and OTLP over loopback: at most 8 MiB, measured at its maximum while all
 * of them trace as fast as they can.
 *
 * The threads, the receiver and the C library's memory for them are there before, so the
 * difference is what otel_start brought and what tracing took: libcurl and its connection,
 * lines, the request, the state of each thread. */
#include "common/atomic.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"
#include "tests/support/fault_peer.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 20, MOST_KIB = 8 * 1024, TRACE_MS = 500, LONG = 60, TOUCHED = 16 * 1024 };

static pthread_barrier_t are_there;
static pthread_barrier_t may_trace;
static uint32_t stop; /* atomic */
static otel_tracer *tracer;

/* A program's thread has used some of its stack, and its heap, before. */
static void live_a_little(void)
{
    char on_stack[TOUCHED];
    memset(on_stack, 1, sizeof on_stack);
    __asm__ volatile("" : : "r"(on_stack) : "memory");
    char *on_heap = malloc(TOUCHED);
    STRESS_CHECK(on_heap != NULL);
    memset(on_heap, 1, TOUCHED);
    __asm__ volatile("" : : "r"(on_heap) : "memory");
    free(on_heap);
}

static void *trace(void *argument)
{
    (void)argument;
    live_a_little();
    pthread_barrier_wait(&are_there);
    pthread_barrier_wait(&may_trace);
    while (oteli_load_relaxed_32(&stop) == 0) {
        const otel_span span = otel_span_enter(tracer, "GET /api/users/{id}", NULL);
        otel_span_set_string(span, "http.request.method", "GET");
        otel_span_set_string(span, "url.path", "/api/users/12345");
        otel_span_set_string(span, "server.address", "example.com");
        otel_span_set_int(span, "http.response.status_code", 200);
        otel_span_set_int(span, "server.port", 8080);
        otel_span_end(span);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const unsigned scale = stress_scale(argc, argv, LONG);
    pthread_t threads[THREADS];
    struct fault_peer *peer = fault_peer_start(&(struct fault_peer_options){.keeps_none = true});
    pthread_barrier_init(&are_there, NULL, THREADS + 1);
    pthread_barrier_init(&may_trace, NULL, THREADS + 1);
    stress_start(threads, THREADS, trace);
    pthread_barrier_wait(&are_there);

    const uint64_t before_kib = process_resident_kib();
    process_forget_peak();
    STRESS_CHECK(
        otel_start(OTEL_SDK_OPTIONS(.traces_exporter = "otlp", .traces_sampler = "always_on",
                                    .exporter_otlp_traces_endpoint = fault_peer_url(peer))) ==
        OTEL_OK);
    tracer = otel_tracer_get("stress", NULL);
    const uint64_t started_kib = process_resident_kib();
    pthread_barrier_wait(&may_trace);
    stress_sleep_us(TRACE_MS * 1000 * scale);
    oteli_store_relaxed_32(&stop, 1);
    stress_join(threads, THREADS);
    STRESS_CHECK(stress_is_done(otel_flush(60000)));
    const uint64_t peak_kib = process_peak_kib();
    STRESS_CHECK(stress_is_done(otel_shutdown(60000)));

    const otel_stats stats = stress_stats();
    stress_check_sums(&stats, true);
    printf("%" PRIu64 " KiB before otel_start, %" PRIu64 " KiB after it, at most %" PRIu64
           " KiB; %" PRIu64 " spans delivered in %" PRIu64 " requests\n",
           before_kib, started_kib, peak_kib, stats.delivered, fault_peer_requests(peer));
    STRESS_CHECK(stats.delivered != 0 && fault_peer_requests(peer) == stats.batches);
    if (process_memory_is_ours())
        STRESS_CHECK(peak_kib - before_kib <= MOST_KIB);
    fault_peer_stop(peer);
    return 0;
}
