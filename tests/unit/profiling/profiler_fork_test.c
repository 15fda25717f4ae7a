/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/profiler_fork_test.c - specification of profiling/profiler.c: a program that forks while a
 * profiler has just got its source, which is when another thread of it could. */
#include "profiling/profiler_inside.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FOREVER_MS = INT32_MAX };

static int child_status;
static unsigned forgets; /* in each process its own */

/* A child that cannot go on ends by a signal, and not in the parent's tests. */
static int start_and_fork(const struct oteli_source_options *options, void **source)
{
    static int state;
    (void)options;
    *source = &state;
    void (*const before)(int) = signal(SIGSEGV, SIG_DFL);
    const pid_t child = fork();
    if (child == 0)
        _exit(forgets == 1 ? 0 : 1);
    signal(SIGSEGV, before);
    return child > 0 && waitpid(child, &child_status, 0) == child ? 0 : ENOSYS;
}

static void drain(void *source, oteli_take_sample *take, void *state,
                  struct oteli_source_counts *counts)
{
    (void)source;
    (void)take;
    (void)state;
    *counts = (struct oteli_source_counts){0};
}

static void stop(void *source)
{
    (void)source;
}

static void forget(void *source)
{
    (void)source;
    forgets++;
}

static otel_status export_profile(void *state, const otel_profile *profile, int64_t timeout_ms)
{
    (void)state;
    (void)profile;
    (void)timeout_ms;
    return OTEL_OK;
}

TEST(a_child_of_the_moment_in_which_there_is_a_source_forgets_it)
{
    static const struct oteli_source source = {start_and_fork, drain, stop, forget};
    const otel_profiler_options options = {
        .size = sizeof options,
        .exporter = {.state = &child_status, .export_profile = export_profile}};
    otel_profiler *profiler;
    oteli_leaks_begin();
    child_status = -1;
    assert_int_equal(oteli_profiler_start_with(&options, &source, &source, &profiler), OTEL_OK);
    assert_int_equal(otel_profiler_stop(profiler, FOREVER_MS), OTEL_OK);
    assert_int_equal(child_status, 0);
    oteli_leaks_check();
}
