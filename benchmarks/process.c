/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/process.c - programs of a moment, for processes.py. Compiled in several forms:
 *
 *     PROCESS_BARE   nothing of otel-c
 *     PROCESS_API    one span, with otel-api alone
 *     PROCESS_FILE   one span to a file, with otel-sdk alone
 *     otherwise      by the first word: "linked" starts nothing, "threadless" and "thread" export
 *                    one span by OTLP
 *
 * The last form, and the bare one, also fork a process for each of N connections, one after the
 * other: WORD "postmaster", "backend" or "bare", and N. They print for each connection its
 * time and its processor time, in nanoseconds. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef PROCESS_BARE
#include <otel/otel.h>

enum { SHUTDOWN_MS = 5000 };

static void make_span(const char *name)
{
    otel_span_end(otel_span_enter(otel_tracer_get("bench.process", NULL), name, NULL));
}
#endif

#if defined PROCESS_FILE
#include <otel/file.h>

static bool trace(const char *path)
{
    otel_exporter exporter;
    if (otel_file_exporter_new(OTEL_FILE_OPTIONS(.path = path), &exporter) != OTEL_OK ||
        otel_start_with(OTEL_SDK_OPTIONS(.threadless = true, .exporters = &exporter,
                                         .exporter_count = 1)) != OTEL_OK)
        return false;
    make_span("one");
    return otel_shutdown(SHUTDOWN_MS) == OTEL_OK;
}
#elif !defined PROCESS_BARE && !defined PROCESS_API
static bool start(bool threadless)
{
    return otel_start(OTEL_SDK_OPTIONS(.threadless = threadless)) == OTEL_OK;
}

static bool trace(const char *word)
{
    if (strcmp(word, "linked") == 0)
        return true;
    if (!start(strcmp(word, "threadless") == 0))
        return false;
    make_span("one");
    return otel_shutdown(SHUTDOWN_MS) == OTEL_OK;
}
#endif

#if !defined PROCESS_FILE && !defined PROCESS_API
static bool serve_connection(const char *word)
{
#ifdef PROCESS_BARE
    (void)word;
    return true;
#else
    if (strcmp(word, "backend") == 0 && !start(false))
        return false;
    make_span("connect");
    make_span("query");
    return otel_shutdown(SHUTDOWN_MS) == OTEL_OK;
#endif
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t microseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static int fork_for_each(const char *word, unsigned long connections)
{
    for (unsigned long i = 0; i < connections; i++) {
        struct rusage used;
        int status;
        const uint64_t begin_ns = now_ns();
        const pid_t child = fork();
        if (child == 0)
            _exit(!serve_connection(word));
        if (child < 0 || wait4(child, &status, 0, &used) != child || status != 0)
            return 1;
        printf("%llu %llu\n", (unsigned long long)(now_ns() - begin_ns),
               (unsigned long long)(microseconds(used.ru_utime) + microseconds(used.ru_stime)) *
                   1000);
    }
    return 0;
}
#endif

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    (void)word;
#if !defined PROCESS_FILE && !defined PROCESS_API
    if (argc > 2) {
#ifndef PROCESS_BARE
        if (strcmp(word, "postmaster") == 0 && !start(false))
            return 1;
#endif
        const int status = fork_for_each(word, strtoul(argv[2], NULL, 10));
#ifndef PROCESS_BARE
        if (strcmp(word, "postmaster") == 0 && otel_shutdown(SHUTDOWN_MS) != OTEL_OK)
            return 1;
#endif
        return status;
    }
#endif
#if defined PROCESS_BARE
    return 0;
#elif defined PROCESS_API
    make_span("one");
    return 0;
#else
    return !trace(word);
#endif
}
