/* SPDX-License-Identifier: Apache-2.0 */
/* tests/package/consumer/profiled.c - the least that uses otel-profiling: works under a label until
 * there is a sample, and looks at the profile. Built by run.sh from an installed tree. */
#include <otel/profile.h>
#include <otel/profiler.h>
#include <stdio.h>
#include <time.h>

enum { MOST_SECONDS = 20 };

struct seen {
    unsigned profiles;
};

static otel_status see(void *state, const otel_profile *profile, int64_t timeout_ms)
{
    struct seen *seen = state;
    (void)timeout_ms;
    seen->profiles += profile != NULL;
    return OTEL_OK;
}

static void leave(void *state)
{
    (void)state;
}

/* Some processor time, in a function of its own. */
static void *work(void *argument)
{
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < 10000000; i++)
        sum += i;
    return argument;
}

int main(void)
{
    struct seen seen = {0};
    const otel_profiler_options options = {
        .size = sizeof options,
        .frequency_hz = 499,
        .exporter = {.state = &seen, .export_profile = see, .wake = leave, .free = leave}};
    otel_profiler *profiler = NULL;
    otel_profiler_stats stats = {.size = sizeof stats};
    const otel_status started = otel_profiler_start(&options, &profiler);
    if (started != OTEL_OK) {
        fprintf(stderr, "otel_profiler_start: %s\n", otel_status_string(started));
        return 1;
    }
    const otel_profile_kv kv = {"query", "work"};
    otel_profile_label label = otel_profile_label_acquire(&kv, 1);
    bool is_called = true;
    while (stats.exported == 0 && clock() < (clock_t)MOST_SECONDS * CLOCKS_PER_SEC) {
        is_called = is_called && otel_profile_apply(&label, work, &seen) == &seen;
        if (otel_profiler_flush(profiler, 60000) != OTEL_OK ||
            otel_profiler_get_stats(profiler, &stats) != OTEL_OK)
            break;
    }
    otel_profile_label_release(&label);
    const otel_status stopped = otel_profiler_stop(profiler, 60000);
    printf("profiler: stop %s, %u profiles, %s\n", otel_status_string(stopped), seen.profiles,
           stats.why);
    return is_called && stopped == OTEL_OK && seen.profiles != 0 ? 0 : 1;
}
