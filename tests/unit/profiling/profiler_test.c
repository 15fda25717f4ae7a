/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/profiler_test.c - specification of profiling/profiler.c and profiler_thread.c: from start
 * to stop, with sources and an exporter that do as the test says. Exporters that hang are in
 * profiler_hanging_test.c. */
#include "api/thread.h"
#include "common/atomic.h"
#include "profiling/profiler_inside.h"
#include "profiling/thread_timers.h"
#include "sdk/thread.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FOREVER_MS = INT32_MAX };

/* --- sources --- */

struct fake_source {
    int error; /* of its start */
    uint32_t starts;
    uint32_t stops;
    uint32_t forgets;
    uint32_t waiting; /* samples that the next drain hands out; atomic */
    uint64_t lost;
    uint64_t missed;
    uint64_t ring_bytes;
    struct oteli_source_options options;
    uint64_t frames[2]; /* of each sample */
    bool has_name;
    bool blocks_signals;
    bool starter_blocks;
};
static struct fake_source fake_perf;
static struct fake_source fake_signal;

static int start_fake(struct fake_source *fake, const struct oteli_source_options *options,
                      void **source)
{
    char name[16] = "";
    sigset_t blocked;
    pthread_getname_np(pthread_self(), name, sizeof name);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    fake->has_name = strcmp(name, "otel-profiler") == 0;
    fake->blocks_signals =
        sigismember(&blocked, SIGPROF) == 1 && sigismember(&blocked, SIGINT) == 1;
    fake->starter_blocks |= oteli_thread_blocks(getpid(), SIGPROF);
    fake->starts++;
    fake->options = *options;
    *source = fake->error == 0 ? fake : NULL;
    return fake->error;
}

static int start_fake_perf(const struct oteli_source_options *options, void **source)
{
    return start_fake(&fake_perf, options, source);
}

static int start_fake_signal(const struct oteli_source_options *options, void **source)
{
    return start_fake(&fake_signal, options, source);
}

static void drain_fake(void *source, oteli_take_sample *take, void *state,
                       struct oteli_source_counts *counts)
{
    struct fake_source *fake = source;
    const uint32_t count = oteli_exchange_full_32(&fake->waiting, 0);
    for (uint32_t i = 0; i < count; i++) {
        const struct oteli_sample sample = {
            .time_ns = 1, .periods = 1, .thread = 1, .frames = fake->frames, .depth = 2};
        take(state, &sample);
    }
    *counts = (struct oteli_source_counts){
        .lost = fake->lost, .missed_periods = fake->missed, .ring_bytes = fake->ring_bytes};
}

static void stop_fake(void *source)
{
    struct fake_source *fake = source;
    oteli_add_full_32(&fake->stops, 1);
}

static void forget_fake(void *source)
{
    struct fake_source *fake = source;
    fake->forgets++;
}

static const struct oteli_source perf_source = {start_fake_perf, drain_fake, stop_fake,
                                                forget_fake};
static const struct oteli_source signal_source = {start_fake_signal, drain_fake, stop_fake,
                                                  forget_fake};

/* --- the exporter --- */

struct fake_exporter {
    otel_status status;
    uint32_t calls;
    uint32_t frees; /* atomic */
    uint64_t samples;
    uint64_t loses; /* samples of each profile */
    char name[32];  /* of the last profile's first function */
    bool was_silent;
};
static struct fake_exporter fake;

static otel_status export_fake(void *state, const otel_profile *profile, int64_t timeout_ms)
{
    struct fake_exporter *exporter = state;
    assert_true(timeout_ms >= 0);
    exporter->was_silent = oteli_thread_is_silent();
    for (size_t i = 0; i < profile->sample_count; i++)
        exporter->samples += profile->samples[i].count;
    snprintf(exporter->name, sizeof exporter->name, "%s",
             profile->strings[profile->locations[0].name]);
    oteli_add_full_32(&exporter->calls, 1);
    otel_profile_drop(profile, exporter->loses);
    return exporter->status;
}

static void free_fake(void *state)
{
    struct fake_exporter *exporter = state;
    oteli_add_full_32(&exporter->frees, 1);
}

static otel_profile_exporter exporter(void)
{
    return (otel_profile_exporter){
        .state = &fake, .export_profile = export_fake, .free = free_fake};
}

/* --- the log --- */

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
    memset(&fake_perf, 0, sizeof fake_perf);
    memset(&fake_signal, 0, sizeof fake_signal);
    fake_perf.frames[0] = fake_signal.frames[0] = 0x1000;
    fake_perf.frames[1] = fake_signal.frames[1] = 0x2000;
    memset(logged, 0, sizeof logged);
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

static otel_status try_start(otel_profiler_options options, otel_profiler **profiler)
{
    options.size = sizeof options;
    return oteli_profiler_start_with(&options, &perf_source, &signal_source, profiler);
}

static otel_profiler *start(void)
{
    otel_profiler *profiler = NULL;
    assert_int_equal(try_start((otel_profiler_options){.exporter = exporter()}, &profiler),
                     OTEL_OK);
    assert_non_null(profiler);
    return profiler;
}

static otel_profiler_stats stats_of(const otel_profiler *profiler)
{
    otel_profiler_stats stats = {.size = sizeof stats};
    assert_int_equal(otel_profiler_get_stats(profiler, &stats), OTEL_OK);
    assert_true(stats.samples == stats.by_chain + stats.by_scan + stats.by_thread +
                                     stats.unlabelled + stats.no_history);
    return stats;
}

static void sample(struct fake_source *source, uint32_t count)
{
    oteli_add_full_32(&source->waiting, count);
}

/* --- names --- */

AROUND_EACH(begin, end);

TEST(functions_are_named_for_exporters_that_want_it)
{
    for (int wants_names = 0; wants_names < 2; wants_names++) {
        otel_profiler *profiler = NULL;
        otel_profile_exporter given = exporter();
        given.wants_names = wants_names;
        fake_perf.frames[0] = (uintptr_t)export_fake;
        assert_int_equal(try_start((otel_profiler_options){.exporter = given}, &profiler), OTEL_OK);
        for (unsigned i = 0; i < 2; i++) {
            sample(&fake_perf, 1);
            assert_int_equal(otel_profiler_flush(profiler, FOREVER_MS), OTEL_OK);
            assert_string_equal(fake.name, wants_names ? "export_fake" : "");
        }
        sample(&fake_perf, 1);
        assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
        assert_string_equal(fake.name, wants_names ? "export_fake" : "");
    }
}

/* --- which source --- */

TEST(samples_with_perf_events_where_they_are_allowed)
{
    otel_profiler *profiler = start();
    const otel_profiler_stats stats = stats_of(profiler);

    assert_int_equal(stats.source, OTEL_PROFILER_PERF);
    assert_int_equal(stats.refused_errno, 0);
    assert_string_equal(stats.why, "perf events are allowed");
    assert_non_null(strstr(logged, "perf events"));
    assert_int_equal(fake_signal.starts, 0);
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
    assert_int_equal(fake_perf.stops, 1);
    assert_int_equal(fake.frees, 1);
}

TEST(the_starter_has_its_signals_back_when_a_source_looks)
{
    while (fake_perf.starts < 200)
        assert_int_equal(otel_profiler_stop(start(), FOREVER_MS), OTEL_OK);
    assert_false(fake_perf.starter_blocks);
}

TEST(falls_back_to_the_signal_and_says_why)
{
    fake_perf.error = EPERM;
    otel_profiler *profiler = start();
    const otel_profiler_stats stats = stats_of(profiler);

    assert_int_equal(stats.source, OTEL_PROFILER_SIGNAL);
    assert_int_equal(stats.refused_errno, EPERM);
    assert_non_null(strstr(stats.why, "not permitted"));
    assert_non_null(strstr(logged, stats.why));
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
    assert_int_equal(fake_perf.stops, 0);
    assert_int_equal(fake_signal.stops, 1);
}

TEST(a_source_that_is_asked_for_is_the_only_one_tried)
{
    otel_profiler *profiler = NULL;
    fake_perf.error = EACCES;
    assert_int_equal(
        try_start((otel_profiler_options){.source = OTEL_PROFILER_PERF, .exporter = exporter()},
                  &profiler),
        OTEL_ERROR_SYSTEM);
    assert_null(profiler);
    assert_int_equal(fake_signal.starts, 0);
    assert_int_equal(fake.frees, 1);

    assert_int_equal(
        try_start((otel_profiler_options){.source = OTEL_PROFILER_SIGNAL, .exporter = exporter()},
                  &profiler),
        OTEL_OK);
    assert_int_equal(fake_perf.starts, 1);
    assert_int_equal(stats_of(profiler).refused_errno, 0);
    assert_string_equal(stats_of(profiler).why, "it was asked for");
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
}

TEST(does_not_start_where_neither_is_allowed)
{
    otel_profiler *profiler = NULL;
    fake_perf.error = EACCES;
    fake_signal.error = EBUSY;
    assert_int_equal(try_start((otel_profiler_options){.exporter = exporter()}, &profiler),
                     OTEL_ERROR_SYSTEM);
    assert_null(profiler);
    assert_int_equal(fake.frees, 1);
    assert_non_null(strstr(logged, "the program has a handler of that signal"));
    assert_non_null(strstr(logged, "perf_event_paranoid"));
}

TEST(the_source_is_opened_on_a_thread_of_its_own_without_signals)
{
    otel_profiler *profiler = start();
    assert_true(fake_perf.has_name);
    assert_true(fake_perf.blocks_signals);
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
}

TEST(smaller_rings_than_asked_for_are_drained_more_often)
{
    const struct oteli_source_options got = {
        .period_ns = 1000000000 / 99, .ring_bytes = 32 * 1024, .stack_bytes = 4096};
    fake_perf.ring_bytes = got.ring_bytes;
    otel_profiler *profiler = start();
    assert_int_equal(fake_perf.options.ring_bytes, 128 * 1024);
    assert_int_equal(profiler->most_drain_ns, oteli_profiler_drain_ns(&got, OTEL_PROFILER_PERF));
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
}

/* --- options --- */

TEST(options_that_cannot_be_are_refused)
{
    const otel_profiler_options wrong[] = {
        {.source = (otel_profiler_source)3},
        {.frequency_hz = 10001},
        {.ring_kib = 3},
        {.ring_kib = 2},
        {.stack_scan_bytes = -2},
        {.stack_scan_bytes = 65529},
        {.signal_number = SIGSEGV},
        {.signal_number = 32},
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        otel_profiler_options options = wrong[i];
        otel_profiler *profiler = NULL;
        options.exporter = exporter();
        assert_int_equal(try_start(options, &profiler), OTEL_ERROR_INVALID_ARGUMENT);
        assert_null(profiler);
        assert_int_equal(fake.frees, i + 1);
    }
    assert_int_equal(fake_perf.starts, 0);
}

TEST(an_exporter_that_could_not_be_made_is_no_memory)
{
    otel_profiler *profiler = NULL;
    assert_int_equal(try_start((otel_profiler_options){0}, &profiler), OTEL_ERROR_NO_MEMORY);
    assert_null(profiler);
}

/* --- one at a time --- */

TEST(one_at_a_time)
{
    otel_profiler *second = NULL;
    otel_profiler *first = start();
    assert_int_equal(try_start((otel_profiler_options){.exporter = exporter()}, &second),
                     OTEL_ERROR_ALREADY_STARTED);
    assert_null(second);
    assert_int_equal(fake.frees, 1);
    assert_int_equal(otel_profiler_stop(first, FOREVER_MS), OTEL_OK);

    second = start();
    assert_int_equal(otel_profiler_stop(second, FOREVER_MS), OTEL_OK);
    assert_int_equal(fake_perf.stops, 2);
}

TEST(no_profiler_is_harmless)
{
    otel_profiler_stats stats = {.size = sizeof stats};
    assert_int_equal(otel_profiler_stop(NULL, 0), OTEL_OK);
    assert_int_equal(otel_profiler_flush(NULL, 0), OTEL_ERROR_NOT_STARTED);
    assert_int_equal(otel_profiler_get_stats(NULL, &stats), OTEL_ERROR_INVALID_ARGUMENT);
}

/* --- samples and exports --- */

TEST(a_flush_exports_what_has_been_sampled)
{
    otel_profiler *profiler = start();
    sample(&fake_perf, 7);
    assert_int_equal(otel_profiler_flush(profiler, FOREVER_MS), OTEL_OK);
    const otel_profiler_stats stats = stats_of(profiler);

    assert_int_equal(stats.samples, 7);
    assert_int_equal(stats.unlabelled, 7);
    assert_int_equal(stats.exported, 7);
    assert_int_equal(stats.dropped, 0);
    assert_int_equal(stats.profiles, 1);
    assert_int_equal(fake.samples, 7);
    assert_true(fake.was_silent);
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
}

TEST(nothing_is_exported_where_nothing_was_sampled)
{
    otel_profiler *profiler = start();
    assert_int_equal(otel_profiler_flush(profiler, FOREVER_MS), OTEL_OK);
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
    assert_int_equal(fake.calls, 0);
}

TEST(each_interval_is_exported_without_being_asked_for)
{
    otel_profiler *profiler = NULL;
    assert_int_equal(
        try_start((otel_profiler_options){.export_interval_ms = 1, .exporter = exporter()},
                  &profiler),
        OTEL_OK);
    for (uint32_t i = 1; i <= 3; i++) {
        sample(&fake_perf, 1);
        while (oteli_load_acquire_32(&fake.calls) < i)
            sched_yield();
    }
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
    assert_int_equal(fake.samples, 3);
}

TEST(a_stop_exports_the_rest)
{
    otel_profiler *profiler = start();
    sample(&fake_perf, 3);
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
    assert_int_equal(fake.samples, 3);
    assert_int_equal(fake.frees, 1);
}

TEST(what_arrives_in_part_is_counted_in_part)
{
    otel_profiler *profiler = start();
    fake.loses = 3;
    sample(&fake_perf, 7);
    assert_int_equal(otel_profiler_flush(profiler, FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);
    fake.loses = 0;
    sample(&fake_perf, 2);
    assert_int_equal(otel_profiler_flush(profiler, FOREVER_MS), OTEL_OK);
    const otel_profiler_stats stats = stats_of(profiler);

    assert_int_equal(stats.exported, 6);
    assert_int_equal(stats.dropped, 3);
    assert_int_equal(stats.profiles, 2);
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
}

TEST(what_the_exporter_refuses_is_dropped)
{
    otel_profiler *profiler = start();
    fake.status = OTEL_ERROR_EXPORT_FAILED;
    sample(&fake_perf, 4);
    assert_int_equal(otel_profiler_flush(profiler, FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);
    fake.status = OTEL_OK;
    sample(&fake_perf, 5);
    assert_int_equal(otel_profiler_flush(profiler, FOREVER_MS), OTEL_OK);
    const otel_profiler_stats stats = stats_of(profiler);

    assert_int_equal(stats.samples, 9);
    assert_int_equal(stats.exported, 5);
    assert_int_equal(stats.dropped, 4);
    assert_int_equal(stats.profiles, 1);
    fake.status = OTEL_ERROR_EXPORT_FAILED;
    sample(&fake_perf, 1);
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);
}

TEST(what_the_source_loses_is_counted)
{
    otel_profiler *profiler = start();
    fake_perf.lost = 11;
    fake_perf.missed = 12;
    assert_int_equal(otel_profiler_flush(profiler, FOREVER_MS), OTEL_OK);
    const otel_profiler_stats stats = stats_of(profiler);

    assert_int_equal(stats.kernel_lost, 11);
    assert_int_equal(stats.missed_periods, 12);
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
}

TEST(statistics_are_as_long_as_the_caller_knows_them)
{
    otel_profiler_stats stats;
    otel_profiler *profiler = start();
    memset(&stats, 0xee, sizeof stats);
    stats.size = offsetof(otel_profiler_stats, by_chain);
    assert_int_equal(otel_profiler_get_stats(profiler, &stats), OTEL_OK);
    assert_true(stats.samples == 0);
    assert_true(stats.by_chain == UINT64_C(0xeeeeeeeeeeeeeeee));
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
}

/* Whatever allocation fails, it is said or counted, and nothing is left behind. */
TEST(does_without_any_allocation)
{
    for (size_t nth = 1;; nth++) {
        otel_profiler *profiler = NULL;
        fake.samples = 0;
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        const otel_status started =
            try_start((otel_profiler_options){.exporter = exporter()}, &profiler);
        if (started == OTEL_OK) {
            sample(&fake_perf, 3);
            const otel_status flushed = otel_profiler_flush(profiler, FOREVER_MS);
            const otel_profiler_stats stats = stats_of(profiler);
            assert_int_equal(stats.samples, 3);
            assert_int_equal(stats.exported + stats.dropped, 3);
            assert_int_equal(stats.exported, fake.samples);
            assert_true(flushed == OTEL_OK || stats.exported == 0);
            assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
        }
        const bool all_tried = !oteli_leaks_failed();
        oteli_leaks_check();
        if (all_tried) {
            assert_int_equal(started, OTEL_OK);
            assert_int_equal(fake.samples, 3);
            break;
        }
        assert_true(started == OTEL_OK || started == OTEL_ERROR_NO_MEMORY);
    }
}

/* --- fork --- */

static int life_of_child(otel_profiler *of_parent)
{
    otel_profiler_stats stats = {.size = sizeof stats};
    otel_profiler *own = NULL;
    if (fake_perf.forgets != 1 || fake_perf.stops != 0)
        return 1;
    if (otel_profiler_flush(of_parent, 0) != OTEL_ERROR_NOT_STARTED ||
        otel_profiler_get_stats(of_parent, &stats) != OTEL_ERROR_NOT_STARTED ||
        otel_profiler_stop(of_parent, 0) != OTEL_ERROR_NOT_STARTED)
        return 2;
    if (try_start((otel_profiler_options){.exporter = exporter()}, &own) != OTEL_OK)
        return 3;
    fake.samples = 0;
    sample(&fake_perf, 2);
    if (otel_profiler_stop(own, FOREVER_MS) != OTEL_OK || fake.samples != 2)
        return 4;
    return 0;
}

TEST(a_forked_child_has_none_and_may_start_its_own)
{
    int status;
    otel_profiler *profiler = start();
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(life_of_child(profiler));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
}
