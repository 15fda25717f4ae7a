/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/parents.c - seven threads add spans to one otel_parents, which is often full, while
 * another mounts lines under what it remembers: each that was added is the parent of one mounted
 * span, and no other is. Every child of a fork meanwhile forgets, and can add and mount. */
#include "common/base/atomic.h"
#include "tests/support/oracle.h"
#include <otel/otel.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 7, ADDS = 10000, MOST = 50, FORKS = 20, PATIENCE_MS = 600000 };

static otel_parents *parents;
static uint32_t running; /* threads that add; atomic */
static uint8_t added[THREADS * ADDS];
static uint8_t mounted[THREADS * ADDS]; /* the exporter thread's */
static size_t others;

/* The number of a span is its id. */
static otel_span span_of(uint64_t number)
{
    otel_span_context context = {.trace_id = {1}, .flags = OTEL_TRACE_FLAG_SAMPLED};
    number++;
    memcpy(context.span_id, &number, sizeof number);
    return otel_span_wrap(&context);
}

static otel_export_result note_parents(void *state, otel_export *call)
{
    (void)state;
    for (size_t i = 0; i < otel_batch_size(call->batch); i++) {
        otel_span_view span = {.size = sizeof span};
        uint64_t number = 0;
        otel_batch_span(call->batch, i, &span);
        if (span.parent_span_id != NULL)
            memcpy(&number, span.parent_span_id, sizeof number);
        if (number - 1 < sizeof mounted)
            mounted[number - 1]++;
        else
            others++;
    }
    return OTEL_EXPORT_DONE;
}

static void *add_all(void *argument)
{
    const uint64_t first = (uint64_t)(uintptr_t)argument * ADDS;
    for (uint64_t i = first; i < first + ADDS; i++) {
        const otel_span span = span_of(i);
        do { /* every other one until there is room */
            added[i] = otel_parents_add(parents, &span);
            if (added[i] == 0)
                sched_yield();
        } while (added[i] == 0 && i % 2 == 0);
    }
    oteli_add_full_32(&running, (uint32_t)-1);
    return NULL;
}

static void mount(otel_tracer *tracer)
{
    otel_lines_begin();
    otel_span_end(otel_span_enter(tracer, "work", NULL));
    otel_lines *lines = otel_lines_end();
    otel_parents_mount(parents, lines, NULL);
    otel_lines_free(lines);
}

/* Whatever was under way in other threads has no place here, but at most one for each. */
static void fork_one(void)
{
    const pid_t child = fork();
    STRESS_CHECK(child >= 0);
    if (child == 0) {
        const otel_span span = span_of(0);
        unsigned count = 0;
        otel_parents_mount(parents, NULL, NULL);
        while (otel_parents_add(parents, &span))
            count++;
        otel_parents_mount(parents, NULL, NULL);
        _exit(count < MOST - THREADS || count > MOST);
    }
    int status;
    STRESS_CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void say_nothing(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    (void)message;
}

int main(void)
{
    const otel_exporter exporter = OTEL_EXPORTER(.name = "parents", .export_batch = note_parents);
    otel_log_set_handler(say_nothing, NULL);
    STRESS_CHECK(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                  .bsp_max_queue_size = 1 << 20)) == OTEL_OK);
    otel_tracer *tracer = otel_tracer_get("stress", NULL);
    parents = otel_parents_new(MOST);
    STRESS_CHECK(parents != NULL);

    pthread_t threads[THREADS];
    running = THREADS;
    for (uintptr_t i = 0; i < THREADS; i++)
        STRESS_CHECK(pthread_create(&threads[i], NULL, add_all, (void *)i) == 0);
    unsigned forks = 0;
    while (oteli_load_acquire_32(&running) != 0) {
        mount(tracer);
        if (forks < FORKS) {
            fork_one();
            forks++;
        }
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    mount(tracer);
    mount(tracer);
    STRESS_CHECK(otel_shutdown(PATIENCE_MS) == OTEL_OK);

    size_t count = 0;
    for (size_t i = 0; i < sizeof added; i++) {
        STRESS_CHECK(mounted[i] == added[i]);
        count += added[i];
    }
    STRESS_CHECK(others == 0 && count >= sizeof added / 2);
    printf("%zu of %zu were added, each is in one mount\n", count, sizeof added);
    otel_parents_free(parents);
    return 0;
}
