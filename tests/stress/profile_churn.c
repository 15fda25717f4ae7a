/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/profile_churn.c - labels that are acquired and released as fast as threads can: far
 * more than histories hold between two looks of the profiler. A label that is told is right; where it
 * is not known any more, that is told.
 *
 * A label says which of two functions runs under it, and the stack of each sample has that function on
 * it, so that both can be compared. */
#include "common/atomic.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"
#include "tests/support/profiled.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 3, SAMPLES = 1500 };

/* Functions in sections of their own, so that an address says which of them it is in. */
extern const char __start_churn_a[], __stop_churn_a[];
extern const char __start_churn_b[], __stop_churn_b[];

static uint32_t is_over; /* atomic */
static uint64_t sampled; /* atomic: under one of the two */
static uint64_t told, untold, wrong;
static uint64_t labels; /* atomic */

static inline __attribute__((always_inline)) void *count(void *argument)
{
    uint32_t value = (uint32_t)(uintptr_t)argument;
    for (unsigned i = 0; i < 300; i++)
        value = value * 1664525 + 1013904223;
    __asm__ volatile("" : : "r"(value));
    return NULL;
}

static __attribute__((noinline, section("churn_a"))) void *query_a(void *argument)
{
    return count(argument);
}

static __attribute__((noinline, section("churn_b"))) void *query_b(void *argument)
{
    return count(argument);
}

/* 'A', 'B', or 0. */
static char function_of(uint64_t leaf)
{
    if (leaf >= (uintptr_t)__start_churn_a && leaf < (uintptr_t)__stop_churn_a)
        return 'A';
    if (leaf >= (uintptr_t)__start_churn_b && leaf < (uintptr_t)__stop_churn_b)
        return 'B';
    return 0;
}

static void take(void *state, const struct oteli_resolved *resolved)
{
    (void)state;
    const char function = function_of(resolved->sample->frames[0]);
    const char *query = profiled_value(resolved, "query");
    if (function == 0)
        return;
    told += query != NULL;
    untold += resolved->found == OTELI_NO_HISTORY;
    wrong += query != NULL && query[0] != function;
    STRESS_CHECK((query != NULL) != (resolved->found == OTELI_NO_HISTORY));
    oteli_store_release_64(&sampled, oteli_load_relaxed_64(&sampled) + 1);
}

static void *churn(void *argument)
{
    static const otel_profile_kv kv[] = {{"query", "A"}, {"query", "B"}};
    uint64_t made = 0;
    while (oteli_load_acquire_32(&is_over) == 0) {
        const unsigned which = (unsigned)(made++ * 7 / 5 % 2);
        otel_profile_label label = otel_profile_label_acquire(&kv[which], 1);
        if (label.index == 0) { /* a thread that gives one back has been interrupted */
            sched_yield();
            continue;
        }
        otel_profile_apply(&label, which == 0 ? query_a : query_b, argument);
        otel_profile_label_release(&label);
    }
    oteli_add_full_64(&labels, made);
    return NULL;
}

int main(int argc, char **argv)
{
    const uint64_t enough = (uint64_t)SAMPLES * stress_scale(argc, argv, 20);
    pthread_t threads[THREADS];
    struct profiled profiled = {
        .source = profiled_source("perf"),
        .options = {.period_ns = 500000, .ring_bytes = 512 * 1024, .stack_bytes = 1024},
        .take = take,
        .drain_us = 100000, /* so that histories are too short, on slow machines as well */
    };
    const int error = profiled_start(&profiled);
    if (error != 0) {
        printf("the kernel refuses perf events here: %s\n", strerror(error));
        return 0;
    }
    const uint64_t before_ns = process_now_ns();
    for (unsigned i = 0; i < THREADS; i++)
        STRESS_CHECK(pthread_create(&threads[i], NULL, churn, NULL) == 0);
    while (oteli_load_acquire_64(&sampled) < enough)
        stress_sleep_us(1000);
    oteli_store_release_32(&is_over, 1);
    stress_join(threads, THREADS);
    const uint64_t took_ns = process_now_ns() - before_ns;
    profiled_stop(&profiled);
    printf("%" PRIu64 " samples, %" PRIu64 " labelled, %" PRIu64 " without a history, %" PRIu64
           " wrong; %.0f labels a second\n",
           sampled, told, untold, wrong, (double)labels * 1e9 / (double)took_ns);
    STRESS_CHECK(wrong == 0);
    STRESS_CHECK(untold != 0);
    STRESS_CHECK(told + untold == sampled);
    return 0;
}
