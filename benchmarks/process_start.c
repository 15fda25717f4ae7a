/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/process_start.c - what the start of an SDK takes of the thread that asks for it, for
 * processes.py. The argument is a URL to send to. Compiled in three forms:
 *
 *     START_OTEL     otel_start, a span, otel_shutdown
 *     START_LATER    the same in a program that has called curl_global_init before
 *     START_CURL     curl_global_init and as small a request, without otel-c
 *
 * They print how long the first call took, in nanoseconds of time and of the thread's processor
 * time, and the most memory that was resident, in KiB. */
#include "benchmarks/e2e_floor.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of benchmarks/bench.h, whose code would bring otel-c. */
__attribute__((format(printf, 1, 2), noreturn)) void bench_fail(const char *format, ...);
void bench_fail(const char *format, ...)
{
    fprintf(stderr, "%s\n", format);
    exit(1);
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The kernel's own count: getrusage's is not less than that of the process that executed this. */
static unsigned long most_resident_kib(void)
{
    unsigned long most = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "re");
    while (status != NULL && most == 0 && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0)
            most = strtoul(line + 6, NULL, 10);
    if (most == 0)
        bench_fail("/proc/self/status");
    fclose(status);
    return most;
}

#if defined START_LATER || defined START_CURL
static void start_curl(void)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        bench_fail("curl_global_init");
}
#endif

#ifdef START_CURL
enum { REQUEST_BYTES = 400 };

static void start(const char *url)
{
    (void)url;
    start_curl();
}

static void send_something(const char *url)
{
    e2e_floor_libcurl(url, 1, REQUEST_BYTES);
}
#else
#include <otel/otel.h>

enum { SHUTDOWN_MS = 5000 };

static void start(const char *url)
{
    if (otel_start(OTEL_SDK_OPTIONS(.exporter_otlp_traces_endpoint = url)) != OTEL_OK)
        bench_fail("otel_start");
}

static void send_something(const char *url)
{
    (void)url;
    otel_span_end(otel_span_enter(otel_tracer_get("bench.process", NULL), "one", NULL));
    if (otel_shutdown(SHUTDOWN_MS) != OTEL_OK)
        bench_fail("otel_shutdown");
}
#endif

int main(int argc, char **argv)
{
    if (argc != 2)
        bench_fail("usage: bench-start-FORM URL");
#ifdef START_LATER
    start_curl();
#endif
    const uint64_t begin_ns = now_ns(CLOCK_MONOTONIC);
    const uint64_t begin_cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    start(argv[1]);
    const uint64_t cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_cpu_ns;
    const uint64_t took_ns = now_ns(CLOCK_MONOTONIC) - begin_ns;
    send_something(argv[1]);

    printf("%llu %llu %lu\n", (unsigned long long)took_ns, (unsigned long long)cpu_ns,
           most_resident_kib());
    return 0;
}
