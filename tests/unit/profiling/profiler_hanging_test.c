/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/profiler_hanging_test.c - specification of profiling/profiler.c: what a flush and a stop do
 * with an exporter that hangs. */
#include "api/thread.h"
#include "common/atomic.h"
#include "profiling/profiler_inside.h"
#include "sdk/thread.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

enum { FOREVER_MS = INT32_MAX, LONG_S = 24 * 3600 };

/* --- time --- */

/* Set: half of the time that a stop has is over as soon as it waits for it. So a stop that has for ever
 * wakes the exporter, and has no end that a slow machine could meet. */
static bool is_half_over;

int __real_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until);

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (is_half_over && until->tv_sec - now.tv_sec > LONG_S)
        return ETIMEDOUT;
    return __real_pthread_cond_timedwait(condition, mutex, until);
}

/* --- the source --- */

static uint32_t waiting; /* samples that the next drain hands out; atomic */
static uint32_t stops;   /* atomic */
static const uint64_t frames[2] = {0x1000, 0x2000};

static int start_fake(const struct oteli_source_options *options, void **source)
{
    (void)options;
    *source = &waiting;
    return 0;
}

static void drain_fake(void *source, oteli_take_sample *take, void *state,
                       struct oteli_source_counts *counts)
{
    const uint32_t count = oteli_exchange_full_32(source, 0);
    for (uint32_t i = 0; i < count; i++) {
        const struct oteli_sample sample = {
            .time_ns = 1, .periods = 1, .thread = 1, .frames = frames, .depth = 2};
        take(state, &sample);
    }
    *counts = (struct oteli_source_counts){.lost = 0};
}

static void stop_fake(void *source)
{
    (void)source;
    oteli_add_full_32(&stops, 1);
}

static const struct oteli_source source = {start_fake, drain_fake, stop_fake, stop_fake};

static void sample(uint32_t count)
{
    oteli_add_full_32(&waiting, count);
}

/* --- the exporter --- */

struct fake_exporter {
    uint32_t calls;      /* atomic */
    uint32_t is_stuck;   /* atomic: it waits until this is 0 … */
    uint32_t wake_frees; /* … or until it has been woken so often, then it has not delivered */
    uint32_t is_inside;  /* atomic */
    uint32_t wakes;      /* atomic */
    uint32_t frees;      /* atomic */
};
static struct fake_exporter fake;

static otel_status export_fake(void *state, const otel_profile *profile, int64_t timeout_ms)
{
    struct fake_exporter *exporter = state;
    (void)profile;
    (void)timeout_ms;
    oteli_add_full_32(&exporter->calls, 1);
    oteli_store_release_32(&exporter->is_inside, 1);
    bool is_woken = false;
    while (oteli_load_acquire_32(&exporter->is_stuck) != 0 && !is_woken) {
        is_woken = exporter->wake_frees != 0 &&
                   oteli_load_acquire_32(&exporter->wakes) >= exporter->wake_frees;
        sched_yield();
    }
    oteli_store_release_32(&exporter->is_inside, 0);
    return is_woken ? OTEL_ERROR_TIMEOUT : OTEL_OK;
}

static void wake_fake(void *state)
{
    struct fake_exporter *exporter = state;
    oteli_add_full_32(&exporter->wakes, 1);
}

static void free_fake(void *state)
{
    struct fake_exporter *exporter = state;
    oteli_add_full_32(&exporter->frees, 1);
}

/* --- tests --- */

static char logged[512];

static void log_line(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    strncpy(logged, message, sizeof logged - 1);
}

static int begin(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    memset(logged, 0, sizeof logged);
    waiting = stops = 0;
    is_half_over = false;
    otel_log_set_handler(log_line, NULL);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    otel_log_set_handler(NULL, NULL);
    oteli_leaks_check();
    return 0;
}

static otel_profiler *start(void)
{
    otel_profiler *profiler = NULL;
    const otel_profiler_options options = {
        .size = sizeof options,
        .exporter = {
            .state = &fake, .export_profile = export_fake, .wake = wake_fake, .free = free_fake}};
    assert_int_equal(oteli_profiler_start_with(&options, &source, &source, &profiler), OTEL_OK);
    return profiler;
}

static void wait_until_stuck(otel_profiler *profiler)
{
    oteli_store_release_32(&fake.is_stuck, 1);
    sample(1);
    assert_int_equal(otel_profiler_flush(profiler, 1), OTEL_ERROR_TIMEOUT);
    while (oteli_load_acquire_32(&fake.is_inside) == 0)
        sched_yield();
}

AROUND_EACH(begin, end);

TEST(a_flush_does_not_wait_for_an_exporter_that_hangs)
{
    otel_profiler_stats stats = {.size = sizeof stats};
    otel_profiler *profiler = start();
    wait_until_stuck(profiler);
    assert_int_equal(otel_profiler_flush(profiler, 0), OTEL_ERROR_TIMEOUT);
    assert_int_equal(fake.wakes, 0); /* it may still deliver */
    oteli_store_release_32(&fake.is_stuck, 0);
    assert_int_equal(otel_profiler_flush(profiler, FOREVER_MS), OTEL_OK);
    assert_int_equal(otel_profiler_get_stats(profiler, &stats), OTEL_OK);
    assert_int_equal(stats.exported, 1);
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
}

TEST(a_stop_wakes_an_exporter_and_still_exports_the_rest)
{
    otel_profiler *profiler = start();
    fake.wake_frees = 1;
    wait_until_stuck(profiler);
    sample(2);
    is_half_over = true;
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);
    assert_int_equal(fake.calls, 2);
    assert_int_equal(fake.frees, 1);
    assert_int_equal(stops, 1);
}

/* It may have been deaf when it was woken first. */
TEST(a_stop_wakes_an_exporter_until_it_comes_back)
{
    otel_profiler *profiler = start();
    fake.wake_frees = 8;
    wait_until_stuck(profiler);
    is_half_over = true;
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
    assert_true(fake.wakes >= 8);
}

TEST(a_stop_leaves_an_exporter_behind_that_does_not_come_back)
{
    otel_profiler *profiler = start();
    wait_until_stuck(profiler);
    assert_int_equal(otel_profiler_stop(profiler, 1), OTEL_ERROR_TIMEOUT);
    assert_int_equal(stops, 1); /* no samples any more, nevertheless */
    assert_int_equal(fake.frees, 0);
    assert_non_null(strstr(logged, "did not come back"));

    profiler = start(); /* another one is possible meanwhile */
    oteli_store_release_32(&fake.is_stuck, 0);
    while (oteli_load_acquire_32(&fake.frees) == 0)
        sched_yield();
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
    assert_int_equal(fake.frees, 2);
    assert_int_equal(stops, 2);
    while (oteli_helpers() != 0)
        sched_yield(); /* the one that was left has ended, and freed what was left to it */
}
