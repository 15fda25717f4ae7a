/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/profiler_meanwhile_test.c - specification of otel_profile_meanwhile: what is sampled while
 * an exporter waits gets into the next profile. The source has samples from the moment on at which the
 * exporter begins to wait. */
#include "common/atomic.h"
#include "common/clock.h"
#include "profiling/profiler_inside.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <limits.h>
#include <sched.h>
#include <string.h>

enum { FOREVER_MS = INT32_MAX, EXPORTS_MOST = 4 };

/* --- the source --- */

static uint32_t waiting; /* samples that the next drain hands out; atomic */
static uint32_t drains;  /* atomic */
static uint64_t frames[2];

static int start_fake(const struct oteli_source_options *options, void **source)
{
    (void)options;
    *source = frames;
    return 0;
}

static void drain_fake(void *source, oteli_take_sample *take, void *state,
                       struct oteli_source_counts *counts)
{
    const uint32_t count = oteli_exchange_full_32(&waiting, 0);
    for (uint32_t i = 0; i < count; i++) {
        const struct oteli_sample sample = {
            .time_ns = 1, .periods = 1, .thread = 1, .frames = source, .depth = 2};
        take(state, &sample);
    }
    *counts = (struct oteli_source_counts){.lost = 0};
    oteli_add_full_32(&drains, 1);
}

static void stop_fake(void *source)
{
    (void)source;
}

static const struct oteli_source source = {start_fake, drain_fake, stop_fake, stop_fake};

/* --- the exporter --- */

struct exported {
    uint64_t samples;
    uint64_t leaf;
    uint64_t begin_ns;
    uint64_t end_ns;
};

static struct exported exported[EXPORTS_MOST];
static uint32_t exports;
static uint32_t arriving; /* samples, while the first export waits */

static otel_status export_slowly(void *state, const otel_profile *profile, int64_t timeout_ms)
{
    (void)state;
    (void)timeout_ms;
    struct exported *this = &exported[exports];
    const uint32_t before = oteli_load_acquire_32(&drains);
    oteli_store_release_32(&waiting, exports == 0 ? arriving : 0);
    while (exports == 0 && oteli_load_acquire_32(&drains) == before)
        assert_true(otel_profile_meanwhile(profile) >= 1);
    for (size_t i = 0; i < profile->sample_count; i++)
        this->samples += profile->samples[i].count;
    this->leaf = profile->locations[0].address;
    this->begin_ns = profile->start_unix_ns;
    this->end_ns = profile->start_unix_ns + profile->duration_ns;
    exports++;
    return OTEL_OK;
}

static void do_nothing(void *state)
{
    (void)state;
}

static otel_profiler *start(void)
{
    otel_profiler *profiler = NULL;
    const otel_profiler_options options = {.size = sizeof options,
                                           .source = OTEL_PROFILER_PERF,
                                           .exporter = {.state = exported,
                                                        .export_profile = export_slowly,
                                                        .wake = do_nothing,
                                                        .free = do_nothing}};
    assert_int_equal(oteli_profiler_start_with(&options, &source, &source, &profiler), OTEL_OK);
    return profiler;
}

static int begin(void **state)
{
    (void)state;
    memset(exported, 0, sizeof exported);
    waiting = drains = exports = arriving = 0;
    frames[0] = 0x1000;
    frames[1] = 0x2000;
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    oteli_leaks_check();
    return 0;
}

static uint64_t distance(uint64_t one, uint64_t other)
{
    return one > other ? one - other : other - one;
}

/* --- what it does --- */

AROUND_EACH(begin, end);

TEST(samples_that_come_while_an_exporter_waits_are_in_the_next_profile)
{
    otel_profiler_stats stats = {.size = sizeof stats};
    arriving = 7;
    otel_profiler *profiler = start();
    oteli_store_release_32(&waiting, 3);

    assert_int_equal(otel_profiler_flush(profiler, FOREVER_MS), OTEL_OK);
    assert_int_equal(otel_profiler_flush(profiler, FOREVER_MS), OTEL_OK);
    assert_int_equal(otel_profiler_get_stats(profiler, &stats), OTEL_OK);
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);

    assert_int_equal(exports, 2);
    assert_int_equal(exported[0].samples, 3);
    assert_int_equal(exported[0].leaf, 0x1000); /* it has stayed as it was */
    assert_int_equal(exported[1].samples, 7);
    assert_true(exported[1].begin_ns < exported[1].end_ns);
    assert_int_equal(stats.samples, 10);
    assert_int_equal(stats.exported, 10);
}

TEST(the_interval_of_the_next_profile_begins_where_the_first_has_ended)
{
    arriving = 1;
    otel_profiler *profiler = start();
    oteli_store_release_32(&waiting, 1);
    const uint64_t long_enough_ns = oteli_monotonic_ns() + 20000000;
    while (oteli_monotonic_ns() < long_enough_ns)
        sched_yield();

    assert_int_equal(otel_profiler_flush(profiler, FOREVER_MS), OTEL_OK);
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);

    /* Both are counted by two clocks, and so nearly the same. */
    assert_int_equal(exports, 2);
    assert_true(distance(exported[1].begin_ns, exported[0].end_ns) <
                distance(exported[1].begin_ns, exported[0].begin_ns));
}

TEST(where_nothing_comes_the_next_profile_is_of_what_comes_later)
{
    otel_profiler *profiler = start();
    oteli_store_release_32(&waiting, 3);

    assert_int_equal(otel_profiler_flush(profiler, FOREVER_MS), OTEL_OK);
    oteli_store_release_32(&waiting, 2);
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);

    assert_int_equal(exports, 2);
    assert_int_equal(exported[1].samples, 2);
}

TEST(the_last_export_has_nothing_to_do_meanwhile)
{
    const otel_profile alone = {.sample_count = 0};
    otel_profiler *profiler = start();
    exports = 1; /* so that it does not wait for a drain */
    oteli_store_release_32(&waiting, 1);

    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);

    assert_int_equal(exports, 2);
    assert_int_equal(otel_profile_meanwhile(&alone), INT_MAX);
}
