/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/profiler_test.c - specification of profiling/profiler.c, profiler_thread.c:
 * from start to stop, with sources and an exporter that do as the test says. */
#include "api/thread/thread_state.h"
#include "common/base/atomic.h"
#include "common/clock/clock.h"
#include "profiling/profiler_inside.h"
#include "profiling/signal/thread_timers.h"
#include "tests/support/leaks.h"
#include "tests/support/said.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FOREVER_MS = INT32_MAX, LONG_S = 24 * 3600, EXPORTS_MOST = 512 };

/* --- time --- */

/* Set: half of the time that a stop has is over as soon as it waits for it. So a stop that has for
 * ever wakes the exporter, and has no end that a slow machine could meet. */
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

/* --- sources --- */

struct fake_source {
    int error; /* of its start */
    uint32_t starts;
    uint32_t stops;   /* atomic */
    uint32_t drains;  /* atomic */
    uint32_t waiting; /* samples that the next drain hands out; atomic */
    uint32_t forgets;
    unsigned
        bad_starts; /* not on a thread of its own, or while the starter's signals are blocked */
    struct oteli_source_counts counts; /* of each drain */
    struct oteli_source_options options;
    uint64_t frames[2]; /* of each sample */
    bool forks;         /* as soon as it is started */
    int child_status;
};
static struct fake_source fake_perf;
static struct fake_source fake_signal;

/* As another thread of the program could. A child that cannot go on ends by a signal, and not in
 * the parent's tests. */
static void fork_once(struct fake_source *fake)
{
    void (*const before)(int) = signal(SIGSEGV, SIG_DFL);
    const pid_t child = fork();
    if (child == 0)
        _exit(fake->forgets == 1 ? 0 : 1);
    signal(SIGSEGV, before);
    assert_int_equal(waitpid(child, &fake->child_status, 0), child);
}

static int start_fake(struct fake_source *fake, const struct oteli_source_options *options,
                      void **source)
{
    char name[16] = "";
    sigset_t blocked;
    pthread_getname_np(pthread_self(), name, sizeof name);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    fake->bad_starts += strcmp(name, "otel-profiler") != 0 || sigismember(&blocked, SIGPROF) != 1 ||
                        sigismember(&blocked, SIGINT) != 1 ||
                        oteli_thread_blocks(getpid(), SIGPROF);
    fake->starts++;
    fake->options = *options;
    *source = fake->error == 0 ? fake : NULL;
    if (fake->forks)
        fork_once(fake);
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
    *counts = fake->counts;
    oteli_add_full_32(&fake->drains, 1);
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

static void sample(uint32_t count)
{
    oteli_add_full_32(&fake_perf.waiting, count);
}

/* --- the exporter --- */

/* What one export got. */
struct exported {
    uint64_t samples;
    uint64_t leaf;
    uint64_t begin_ns;
    uint64_t end_ns;
    char name[32]; /* of its first function */
};

struct fake_exporter {
    otel_status status;
    uint64_t loses; /* samples of each profile */
    bool was_silent;
    bool waits_for_a_drain; /* the first export, during which these come: */
    uint32_t arriving;
    uint32_t calls;      /* atomic */
    uint32_t frees;      /* atomic */
    uint32_t is_stuck;   /* atomic: it waits until this is 0 … */
    uint32_t wake_frees; /* … or until it has been woken so often, then it has not delivered */
    uint32_t is_inside;  /* atomic */
    uint32_t wakes;      /* atomic */
    uint64_t samples;
};
static struct fake_exporter fake;
static struct exported exported[EXPORTS_MOST];

static bool wait_until_free(void)
{
    bool is_woken = false;
    oteli_store_release_32(&fake.is_inside, 1);
    while (oteli_load_acquire_32(&fake.is_stuck) != 0 && !is_woken) {
        is_woken = fake.wake_frees != 0 && oteli_load_acquire_32(&fake.wakes) >= fake.wake_frees;
        sched_yield();
    }
    oteli_store_release_32(&fake.is_inside, 0);
    return !is_woken;
}

static void wait_for_a_drain(const otel_profile *profile)
{
    const uint32_t before = oteli_load_acquire_32(&fake_perf.drains);
    fake.waits_for_a_drain = false;
    oteli_store_release_32(&fake_perf.waiting, fake.arriving);
    while (oteli_load_acquire_32(&fake_perf.drains) == before)
        assert_true(otel_profile_meanwhile(profile) >= 1);
}

static otel_status export_fake(void *state, const otel_profile *profile, int64_t timeout_ms)
{
    struct exported *this = &exported[fake.calls];
    assert_ptr_equal(state, &fake);
    assert_true(timeout_ms >= 0 && fake.calls < EXPORTS_MOST);
    fake.was_silent = oteli_thread_is_silent();
    oteli_add_full_32(&fake.calls, 1);
    if (fake.waits_for_a_drain)
        wait_for_a_drain(profile);
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const struct oteli_profile_sample *sample = oteli_interner_at(&profile->samples, i);
        this->samples += sample->count;
    }
    fake.samples += this->samples;
    const struct oteli_profile_location *leaf = oteli_interner_at(&profile->locations, 0);
    this->leaf = leaf->address;
    this->begin_ns = profile->start_unix_ns;
    this->end_ns = profile->start_unix_ns + profile->duration_ns;
    snprintf(this->name, sizeof this->name, "%s", oteli_profile_text(profile, leaf->name));
    otel_profile_drop(profile, fake.loses);
    return wait_until_free() ? fake.status : OTEL_ERROR_TIMEOUT;
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

static otel_profile_exporter exporter(void)
{
    return (otel_profile_exporter){
        .state = &fake, .export_profile = export_fake, .wake = wake_fake, .free = free_fake};
}

/* --- a profiler --- */

static int begin(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    memset(exported, 0, sizeof exported);
    fake_perf = fake_signal = (struct fake_source){.frames = {0x1000, 0x2000}, .child_status = -1};
    is_half_over = false;
    said_begin(OTEL_LOG_INFO);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    said_end();
    oteli_leaks_check();
    return 0;
}

static otel_status try_start(otel_profiler_options options, otel_profiler **profiler)
{
    options.size = sizeof options;
    *profiler = NULL;
    return oteli_profiler_start_with(&options, &perf_source, &signal_source, profiler);
}

static otel_profiler *start_with(otel_profiler_options options)
{
    otel_profiler *profiler;
    if (options.exporter.state == NULL)
        options.exporter = exporter();
    assert_int_equal(try_start(options, &profiler), OTEL_OK);
    assert_non_null(profiler);
    return profiler;
}

static otel_profiler *start(void)
{
    return start_with((otel_profiler_options){0});
}

static void flush(otel_profiler *profiler)
{
    assert_int_equal(otel_profiler_flush(profiler, FOREVER_MS), OTEL_OK);
}

static void stop(otel_profiler *profiler)
{
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
}

static otel_profiler_stats stats_of(const otel_profiler *profiler)
{
    otel_profiler_stats stats = {.size = sizeof stats};
    assert_int_equal(otel_profiler_get_stats(profiler, &stats), OTEL_OK);
    assert_true(stats.samples == stats.by_chain + stats.by_scan + stats.by_thread +
                                     stats.unlabelled + stats.no_history);
    return stats;
}

static void assert_counted(const otel_profiler *profiler, const char *expected)
{
    char text[128];
    const otel_profiler_stats stats = stats_of(profiler);
    snprintf(text, sizeof text, "%u unlabelled: %u exported in %u, %u dropped; %u lost, %u missed",
             (unsigned)stats.unlabelled, (unsigned)stats.exported, (unsigned)stats.profiles,
             (unsigned)stats.dropped, (unsigned)stats.kernel_lost, (unsigned)stats.missed_periods);
    assert_string_equal(text, expected);
}

/* --- options --- */

AROUND_EACH(begin, end);

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
    otel_profiler *profiler;
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        otel_profiler_options options = wrong[i];
        options.exporter = exporter();
        assert_int_equal(try_start(options, &profiler), OTEL_ERROR_INVALID_ARGUMENT);
        assert_null(profiler);
        assert_int_equal(fake.frees, i + 1);
    }
    assert_int_equal(try_start((otel_profiler_options){0}, &profiler), OTEL_ERROR_NO_MEMORY);
    assert_null(profiler); /* its exporter could not be made */
    assert_int_equal(fake_perf.starts, 0);
}

/* --- which source --- */

TEST(samples_with_what_is_allowed_and_says_why)
{
    static const struct {
        otel_profiler_source wanted;
        int perf_error;
        otel_profiler_source source;
        const char *why, *log;
    } table[] = {
        {OTEL_PROFILER_AUTO, 0, OTEL_PROFILER_PERF, "perf events are allowed", "perf events"},
        {OTEL_PROFILER_AUTO, EPERM, OTEL_PROFILER_SIGNAL, "not permitted", "not permitted"},
        {OTEL_PROFILER_SIGNAL, 0, OTEL_PROFILER_SIGNAL, "it was asked for", ""},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        (void)begin(NULL);
        fake_perf.error = table[i].perf_error;
        otel_profiler *profiler = start_with((otel_profiler_options){.source = table[i].wanted});
        const bool is_perf = table[i].source == OTEL_PROFILER_PERF;
        const otel_profiler_stats stats = stats_of(profiler);
        assert_int_equal(stats.source, table[i].source);
        assert_int_equal(stats.refused_errno, table[i].perf_error);
        assert_non_null(strstr(stats.why, table[i].why));
        assert_non_null(strstr(said, table[i].log));
        stop(profiler);
        assert_int_equal(fake_perf.starts, table[i].wanted == OTEL_PROFILER_AUTO);
        assert_int_equal(fake_signal.starts, !is_perf);
        assert_int_equal(fake_perf.stops, is_perf);
        assert_int_equal(fake_signal.stops, !is_perf);
        assert_int_equal(fake.frees, 1);
    }
}

TEST(does_not_start_where_none_is_allowed)
{
    otel_profiler *profiler;
    fake_perf.error = EACCES;
    fake_signal.error = EBUSY;
    assert_int_equal(
        try_start((otel_profiler_options){.source = OTEL_PROFILER_PERF, .exporter = exporter()},
                  &profiler),
        OTEL_ERROR_SYSTEM);
    assert_null(profiler);
    assert_int_equal(fake_signal.starts, 0); /* perf was asked for, and is the only one tried */
    assert_int_equal(try_start((otel_profiler_options){.exporter = exporter()}, &profiler),
                     OTEL_ERROR_SYSTEM);
    assert_null(profiler);
    assert_int_equal(fake.frees, 2);
    assert_non_null(strstr(said, "the program has a handler of that signal"));
    assert_non_null(strstr(said, "perf_event_paranoid"));
}

TEST(the_source_is_opened_on_a_thread_of_its_own_when_the_starter_has_its_signals_back)
{
    while (fake_perf.starts < 200)
        stop(start());
    assert_int_equal(fake_perf.bad_starts, 0);
}

TEST(smaller_rings_than_asked_for_are_drained_more_often)
{
    const struct oteli_source_options got = {
        .period_ns = 1000000000 / 99, .ring_bytes = 32 * 1024, .sample_bytes = 5 * 1024};
    fake_perf.counts.ring_bytes = got.ring_bytes;
    otel_profiler *profiler = start();
    assert_int_equal(fake_perf.options.ring_bytes, 128 * 1024);
    assert_int_equal(oteli_profiler_half_full_ns(&profiler->plan.source),
                     oteli_profiler_half_full_ns(&got));
    stop(profiler);
}

/* --- one at a time, or none --- */

TEST(one_at_a_time_or_none)
{
    otel_profiler *second;
    otel_profiler_stats stats = {.size = sizeof stats};
    otel_profiler *first = start();
    assert_int_equal(try_start((otel_profiler_options){.exporter = exporter()}, &second),
                     OTEL_ERROR_ALREADY_STARTED);
    assert_null(second);
    assert_int_equal(fake.frees, 1);
    stop(first);
    stop(start());
    assert_int_equal(fake_perf.stops, 2);

    assert_int_equal(otel_profiler_stop(NULL, 0), OTEL_OK);
    assert_int_equal(otel_profiler_flush(NULL, 0), OTEL_ERROR_NOT_STARTED);
    assert_int_equal(otel_profiler_get_stats(NULL, &stats), OTEL_ERROR_INVALID_ARGUMENT);
}

/* --- samples and exports --- */

TEST(a_flush_exports_what_has_been_sampled_and_a_stop_the_rest)
{
    otel_profiler *profiler = start();
    flush(profiler); /* of nothing */
    assert_int_equal(fake.calls, 0);
    sample(7);
    flush(profiler);
    assert_counted(profiler, "7 unlabelled: 7 exported in 1, 0 dropped; 0 lost, 0 missed");
    assert_true(fake.was_silent);
    sample(3);
    stop(profiler);
    assert_int_equal(fake.calls, 2);
    assert_int_equal(exported[0].samples, 7);
    assert_int_equal(exported[1].samples, 3);
    assert_int_equal(fake.frees, 1);
}

TEST(functions_are_named_for_exporters_that_want_it)
{
    for (int wants_names = 0; wants_names < 2; wants_names++) {
        otel_profile_exporter given = exporter();
        given.wants_names = wants_names;
        fake.calls = 0;
        fake_perf.frames[0] = (uintptr_t)export_fake;
        otel_profiler *profiler = start_with((otel_profiler_options){.exporter = given});
        for (unsigned i = 0; i < 2; i++) {
            sample(1);
            flush(profiler);
        }
        sample(1);
        stop(profiler);
        for (unsigned i = 0; i < 3; i++)
            assert_string_equal(exported[i].name, wants_names ? "export_fake" : "");
    }
}

TEST(each_interval_is_exported_without_being_asked_for)
{
    otel_profiler *profiler = start_with((otel_profiler_options){.export_interval_ms = 1});
    for (uint32_t i = 1; i <= 3; i++) {
        sample(1);
        while (oteli_load_acquire_32(&fake.calls) < i)
            sched_yield();
    }
    stop(profiler);
    assert_int_equal(fake.samples, 3);
}

TEST(what_does_not_arrive_is_counted_as_dropped)
{
    otel_profiler *profiler = start();
    fake.status = OTEL_ERROR_EXPORT_FAILED;
    sample(4);
    assert_int_equal(otel_profiler_flush(profiler, FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);
    fake.status = OTEL_OK;
    fake.loses = 3; /* in part */
    sample(7);
    assert_int_equal(otel_profiler_flush(profiler, FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);
    fake.loses = 0;
    sample(2);
    fake_perf.counts = (struct oteli_source_counts){.lost = 11, .missed_periods = 12};
    flush(profiler);
    assert_counted(profiler, "13 unlabelled: 6 exported in 2, 7 dropped; 11 lost, 12 missed");

    fake.status = OTEL_ERROR_EXPORT_FAILED;
    sample(1);
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);
}

TEST(statistics_are_as_long_as_the_caller_knows_them)
{
    otel_profiler_stats stats;
    otel_profiler *profiler = start_with((otel_profiler_options){
        .exporter = {.state = &fake, .export_profile = export_fake}}); /* it need not be freed */
    memset(&stats, 0xee, sizeof stats);
    stats.size = offsetof(otel_profiler_stats, by_chain);
    assert_int_equal(otel_profiler_get_stats(profiler, &stats), OTEL_OK);
    assert_true(stats.samples == 0);
    assert_true(stats.by_chain == UINT64_C(0xeeeeeeeeeeeeeeee));
    stop(profiler);
}

/* --- meanwhile --- */

static uint64_t distance(uint64_t one, uint64_t other)
{
    return one > other ? one - other : other - one;
}

TEST(samples_that_come_while_an_exporter_waits_are_in_the_next_profile)
{
    fake.waits_for_a_drain = true;
    fake.arriving = 7;
    otel_profiler *profiler = start();
    sample(3);
    const uint64_t long_enough_ns = oteli_monotonic_ns() + 20000000;
    while (oteli_monotonic_ns() < long_enough_ns)
        sched_yield();

    flush(profiler);
    flush(profiler);
    assert_counted(profiler, "10 unlabelled: 10 exported in 2, 0 dropped; 0 lost, 0 missed");
    stop(profiler);

    const otel_profile alone = {.sample_count = 0};
    assert_int_equal(otel_profile_meanwhile(&alone), INT_MAX); /* it has nothing to do meanwhile */
    assert_int_equal(fake.calls, 2);
    assert_int_equal(exported[0].samples, 3);
    assert_int_equal(exported[0].leaf, 0x1000); /* it has stayed as it was */
    assert_int_equal(exported[1].samples, 7);
    assert_true(exported[1].begin_ns < exported[1].end_ns);
    /* It begins where the first has ended. Both are counted by two clocks, and so nearly the
     * same. */
    assert_true(distance(exported[1].begin_ns, exported[0].end_ns) <
                distance(exported[1].begin_ns, exported[0].begin_ns));
}

/* --- an exporter that hangs --- */

static void wait_until_stuck(otel_profiler *profiler)
{
    oteli_store_release_32(&fake.is_stuck, 1);
    sample(1);
    assert_int_equal(otel_profiler_flush(profiler, 1), OTEL_ERROR_TIMEOUT);
    while (oteli_load_acquire_32(&fake.is_inside) == 0)
        sched_yield();
}

TEST(a_flush_does_not_wait_for_an_exporter_that_hangs)
{
    otel_profiler *profiler = start();
    wait_until_stuck(profiler);
    assert_int_equal(otel_profiler_flush(profiler, 0), OTEL_ERROR_TIMEOUT);
    assert_int_equal(fake.wakes, 0); /* it may still deliver */
    oteli_store_release_32(&fake.is_stuck, 0);
    flush(profiler);
    assert_int_equal(stats_of(profiler).exported, 1);
    stop(profiler);
}

/* It may have been deaf when it was woken first. */
TEST(a_stop_wakes_an_exporter_until_it_comes_back_and_still_exports_the_rest)
{
    for (unsigned rest = 0; rest <= 2; rest += 2) {
        (void)begin(NULL);
        otel_profiler *profiler = start();
        fake.wake_frees = rest != 0 ? 1 : 8;
        wait_until_stuck(profiler);
        sample(rest);
        is_half_over = true;
        assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS),
                         rest != 0 ? OTEL_ERROR_EXPORT_FAILED : OTEL_OK);
        assert_true(fake.wakes >= fake.wake_frees);
        assert_int_equal(fake.calls, rest != 0 ? 2 : 1);
        assert_int_equal(fake.frees, 1);
        assert_int_equal(fake_perf.stops, 1);
    }
}

/* How many threads there are, and two: the links of that folder. */
static nlink_t count_threads(void)
{
    struct stat folder;
    assert_int_equal(stat("/proc/self/task", &folder), 0);
    return folder.st_nlink;
}

TEST(a_stop_leaves_an_exporter_behind_that_does_not_come_back)
{
    const nlink_t threads = count_threads();
    otel_profiler *profiler = start();
    wait_until_stuck(profiler);
    assert_int_equal(otel_profiler_stop(profiler, 1), OTEL_ERROR_TIMEOUT);
    assert_int_equal(fake_perf.stops, 1); /* no samples any more, nevertheless */
    assert_int_equal(fake.frees, 0);
    assert_non_null(strstr(said, "did not come back"));

    profiler = start(); /* another one is possible meanwhile */
    oteli_store_release_32(&fake.is_stuck, 0);
    while (oteli_load_acquire_32(&fake.frees) == 0)
        sched_yield();
    stop(profiler);
    assert_int_equal(fake.frees, 2);
    assert_int_equal(fake_perf.stops, 2);
    while (count_threads() != threads)
        sched_yield(); /* the one that was left has ended, and freed what was left to it */
}

/* Whatever allocation fails, it is said or counted, and nothing is left behind. */
TEST(does_without_any_allocation)
{
    bool all_tried = false;
    for (size_t nth = 1; !all_tried; nth++) {
        otel_profiler *profiler;
        fake.samples = fake.calls = 0;
        memset(exported, 0, sizeof exported);
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        const otel_status started =
            try_start((otel_profiler_options){.exporter = exporter()}, &profiler);
        if (started == OTEL_OK) {
            sample(3);
            const otel_status flushed = otel_profiler_flush(profiler, FOREVER_MS);
            const otel_profiler_stats stats = stats_of(profiler);
            assert_int_equal(stats.samples, 3);
            assert_int_equal(stats.exported + stats.dropped, 3);
            assert_int_equal(stats.exported, fake.samples);
            assert_true(flushed == OTEL_OK || stats.exported == 0);
            stop(profiler);
        }
        all_tried = !oteli_leaks_failed();
        oteli_leaks_check();
        assert_true(started == OTEL_OK || (!all_tried && started == OTEL_ERROR_NO_MEMORY));
        assert_true(!all_tried || fake.samples == 3);
    }
}

static otel_profiler *of_parent;

static int life_of_child(void)
{
    otel_profiler_stats stats = {.size = sizeof stats};
    otel_profiler *own;
    if (fake_perf.forgets != 1 || fake_perf.stops != 0)
        return 1;
    if (otel_profiler_flush(of_parent, 0) != OTEL_ERROR_NOT_STARTED ||
        otel_profiler_get_stats(of_parent, &stats) != OTEL_ERROR_NOT_STARTED ||
        otel_profiler_stop(of_parent, 0) != OTEL_ERROR_NOT_STARTED)
        return 2;
    if (try_start((otel_profiler_options){.exporter = exporter()}, &own) != OTEL_OK)
        return 3;
    sample(2);
    if (otel_profiler_stop(own, FOREVER_MS) != OTEL_OK || fake.samples != 2)
        return 4;
    return 0;
}

TEST(a_forked_child_has_none_and_may_start_its_own)
{
    fake_perf.forks = true; /* in the moment in which there is a source, too */
    otel_profiler *profiler = start();
    assert_int_equal(fake_perf.child_status, 0);
    fake_perf.forks = false;
    of_parent = profiler;
    check_child(life_of_child);
    stop(profiler);
}
