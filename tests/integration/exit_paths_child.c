/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/exit_paths_child.c - a program that ends in one of many ways while eight
 * of its threads trace at full speed. Started by exit_paths.py.
 *
 *     exit_paths_child WAY SHUTDOWN ENDPOINT
 *
 * The threads never wait for anything and are never stopped, but for the ways in which the
 * process ends with its last thread. */
#include <otel/otel.h>

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { THREADS = 8, SHUTDOWN_MS = 100, STATUS = 7 };

static otel_tracer *tracer;
static atomic_bool must_stop;
static atomic_bool exits_traced;
static atomic_bool exits_in_exporter;
static bool shuts_down_in_destructor;
static sem_t traced; /* once for each thread that has begun */
static sem_t shutting_down;

static bool is(const char *word, const char *other)
{
    return strcmp(word, other) == 0;
}

static void shut_down(void)
{
    (void)!otel_shutdown(SHUTDOWN_MS);
}

__attribute__((destructor)) static void at_destruction(void)
{
    if (shuts_down_in_destructor)
        shut_down();
}

static void trace_once(void)
{
    const otel_span outer = otel_span_enter(tracer, "outer", NULL);
    otel_span_set_string(outer, "text", "of some length");
    const otel_span detached = otel_span_start(tracer, "detached", NULL);
    otel_span_set_int(detached, "number", 1);
    const otel_span inner = otel_span_enter(tracer, "inner", NULL);
    otel_span_fail(inner, "as it should");
    if (atomic_exchange(&exits_traced, false))
        exit(STATUS);
    otel_span_end(inner);
    otel_span_end(detached);
    otel_span_end(outer);
}

static void *trace(void *unused)
{
    trace_once();
    sem_post(&traced);
    while (!atomic_load_explicit(&must_stop, memory_order_relaxed))
        trace_once();
    return unused;
}

static void *shut_down_in_thread(void *unused)
{
    sem_post(&shutting_down);
    shut_down();
    return unused;
}

/* A thread that runs while the process ends, and for ever if nothing ends it. */
static void start_thread(void *(*run)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) != 0)
        abort();
    pthread_detach(thread);
}

static otel_export_result export_and_exit(void *state, otel_export *call)
{
    (void)state;
    (void)call;
    if (atomic_exchange(&exits_in_exporter, false))
        exit(STATUS);
    return OTEL_EXPORT_DONE;
}

static otel_status start(const char *endpoint)
{
    if (!is(endpoint, "-"))
        return otel_start(OTEL_SDK_OPTIONS(.traces_exporter = "otlp",
                                           .exporter_otlp_endpoint = endpoint,
                                           .exporter_otlp_timeout = 50, .bsp_schedule_delay = 10));
    const otel_exporter exporter =
        OTEL_EXPORTER(.name = "exiting", .export_batch = export_and_exit);
    return otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1));
}

/* The ways that do not come back; otherwise what main returns. */
static int end(const char *way)
{
    if (is(way, "exit"))
        exit(STATUS);
    if (is(way, "quick_exit"))
        quick_exit(STATUS);
    if (is(way, "_exit"))
        _exit(STATUS);
    if (is(way, "abort"))
        abort();
    if (is(way, "terminated"))
        kill(getpid(), SIGTERM);
    atomic_store(&must_stop, is(way, "pthread_exit"));
    atomic_store(&exits_traced, is(way, "exit_traced"));
    if (is(way, "pthread_exit"))
        pthread_exit(NULL);
    while (!is(way, "return"))
        pause();
    return STATUS;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const char *shutdown = argv[2];
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    sem_init(&traced, 0, 0);
    sem_init(&shutting_down, 0, 0);

    if (is(shutdown, "atexit_early") && (atexit(shut_down) != 0 || at_quick_exit(shut_down) != 0))
        return 2;
    if (start(argv[3]) != OTEL_OK)
        return 2;
    if (is(shutdown, "atexit_late") && (atexit(shut_down) != 0 || at_quick_exit(shut_down) != 0))
        return 2;
    shuts_down_in_destructor = is(shutdown, "destructor");
    tracer = otel_tracer_get("exit_paths", NULL);
    for (int i = 0; i < THREADS; i++)
        start_thread(trace);
    for (int i = 0; i < THREADS; i++)
        sem_wait(&traced);
    trace_once();

    atomic_store(&exits_in_exporter, is(argv[1], "exit_in_exporter"));
    if (is(shutdown, "before"))
        shut_down();
    if (is(shutdown, "concurrent")) {
        start_thread(shut_down_in_thread);
        sem_wait(&shutting_down);
    }
    return end(argv[1]);
}
