/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/profile_whole.c - the whole profiler, as a program uses it: threads run two queries for
 * spans and for labels, and an exporter looks at the profiles that come of it. In every stack that has
 * one of the two functions on it the label is that function's, and the link a span of its kind; the
 * split of their processor time is what the threads' own clocks say; and the counters close.
 *
 *     profile_whole_stress             by perf events and by signals, as root and as another */
#include "common/atomic.h"
#include "profiling/profile_model.h"
#include "tests/support/oracle.h"
#include "tests/support/profiled.h"
#include "tests/support/split_work.h"

#include <inttypes.h>
#include <math.h>
#include <otel/profile.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 2, SPANS = 2, LABELLED_PERCENT = 99 };

/* Each of the two in a section of its own, so that an address says whether it is in it. */
extern const char __start_whole_a[], __stop_whole_a[];
extern const char __start_whole_b[], __stop_whole_b[];

/* --- what runs --- */

static uint32_t is_over; /* atomic */
static otel_tracer *tracer;
static otel_span_context spans[SPANS]; /* of A and of B */
static otel_span open_spans[SPANS];
static uint64_t cpu_ns[THREADS][SPANS];

static uint64_t thread_cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static inline __attribute__((always_inline)) void *work(uint64_t *spent_ns, unsigned pieces)
{
    const uint64_t before_ns = thread_cpu_ns();
    uint32_t value = (uint32_t)before_ns;
    for (unsigned i = 0; i < pieces; i++)
        value = split_work_framed(value);
    __asm__ volatile("" : : "r"(value));
    *spent_ns += thread_cpu_ns() - before_ns;
    return NULL;
}

static __attribute__((noinline, section("whole_a"))) void *run_query_a(void *argument)
{
    return work(argument, 7);
}

static __attribute__((noinline, section("whole_b"))) void *run_query_b(void *argument)
{
    return work(argument, 3);
}

static void *(*const functions[])(void *) = {run_query_a, run_query_b};

static void *run_queries(void *argument)
{
    uint64_t *mine = argument;
    for (unsigned i = 0; oteli_load_acquire_32(&is_over) == 0; i++) {
        const unsigned query = i % 2;
        if (i % 4 < 2) {
            otel_span_run(open_spans[query], functions[query], &mine[query]);
            continue;
        }
        const otel_profile_kv kv = {"http.route", query == 0 ? "A" : "B"};
        otel_profile_label label = otel_profile_label_acquire(&kv, 1);
        otel_profile_apply(&label, functions[query], &mine[query]);
        otel_profile_label_release(&label);
    }
    return NULL;
}

/* --- what comes of it --- */

struct sums {
    uint64_t samples;
    uint64_t of[2]; /* with A on the stack, with B */
    uint64_t labelled;
    uint64_t linked;
    uint64_t wrong;
    double time_ns[2];
    double squares;
};

static struct sums sums;
static uint64_t enough; /* atomic: samples of the two */
static uint64_t handed; /* atomic: all samples that the exporter was given */

/* 0 for A, 1 for B, -1 for none of them. */
static int function_on(const otel_profile *profile, const struct oteli_profile_stack *stack)
{
    for (uint32_t i = 0; i < stack->count; i++) {
        const uint64_t address =
            profile->locations[profile->location_of_stack[stack->first + i]].address;
        if (address >= (uintptr_t)__start_whole_a && address < (uintptr_t)__stop_whole_a)
            return 0;
        if (address >= (uintptr_t)__start_whole_b && address < (uintptr_t)__stop_whole_b)
            return 1;
    }
    return -1;
}

static int label_of(const otel_profile *profile, const struct oteli_profile_label_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct oteli_profile_pair *pair = &profile->pairs[set->first + i];
        if (strcmp(profile->strings[pair->key], "http.route") == 0)
            return profile->strings[pair->value][0] - 'A';
    }
    return -1;
}

static int span_of(const struct oteli_profile_link *link)
{
    for (int i = 0; i < SPANS; i++) {
        if (memcmp(link->span_id, spans[i].span_id, sizeof link->span_id) == 0)
            return i;
    }
    return -1;
}

static void look_at(const otel_profile *profile, const struct oteli_profile_sample *sample)
{
    const int function = function_on(profile, &profile->stacks[sample->stack]);
    const int label = label_of(profile, &profile->label_sets[sample->label_set]);
    const int span = sample->link != 0 ? span_of(&profile->links[sample->link]) : -1;
    const double each_ns = (double)sample->cpu_ns / (double)sample->count;
    sums.samples += sample->count;
    if (function < 0)
        return;
    sums.of[function] += sample->count;
    sums.labelled += label >= 0 || span >= 0 ? sample->count : 0;
    sums.linked += span >= 0 ? sample->count : 0;
    sums.wrong += (label >= 0 && label != function) || (span >= 0 && span != function) ||
                          (sample->link != 0 && span < 0)
                      ? sample->count
                      : 0;
    sums.time_ns[function] += (double)sample->cpu_ns;
    sums.squares += each_ns * each_ns * (double)sample->count;
}

static otel_status look_at_all(void *state, const otel_profile *profile, int64_t timeout_ms)
{
    (void)state;
    (void)timeout_ms;
    for (size_t i = 0; i < profile->sample_count; i++)
        look_at(profile, &profile->samples[i]);
    oteli_store_release_64(&enough, sums.of[0] + sums.of[1]);
    oteli_store_release_64(&handed, sums.samples);
    return OTEL_OK;
}

static void do_nothing(void *state)
{
    (void)state;
}

/* --- a run --- */

struct run {
    otel_profiler_source source;
    uint64_t samples;
};

static void check_counters(const otel_profiler_stats *stats)
{
    STRESS_CHECK(stats->samples == stats->by_chain + stats->by_scan + stats->by_thread +
                                       stats->unlabelled + stats->no_history);
    STRESS_CHECK(stats->samples >= stats->exported + stats->dropped);
    STRESS_CHECK(stats->dropped == 0);
    STRESS_CHECK(stats->labels_refused == 0 && stats->labels_cut == 0 && stats->links_over == 0);
}

static void check(const struct run *run, const otel_profiler_stats *stats)
{
    double spent_ns[2] = {0, 0};
    for (unsigned i = 0; i < THREADS; i++) {
        spent_ns[0] += (double)cpu_ns[i][0];
        spent_ns[1] += (double)cpu_ns[i][1];
    }
    const double all_ns = sums.time_ns[0] + sums.time_ns[1];
    const double truth = spent_ns[0] / (spent_ns[0] + spent_ns[1]);
    const double sampled = sums.time_ns[0] / all_ns;
    const double sigma = sqrt(truth * (1 - truth) * sums.squares) / all_ns;
    const uint64_t both = sums.of[0] + sums.of[1];
    printf("  %" PRIu64 " samples of both, %.2f %% labelled, %.2f %% linked, %" PRIu64
           " wrong; A %.2f %%, sampled %.2f (sigma %.2f)\n",
           both, 100 * (double)sums.labelled / (double)both,
           100 * (double)sums.linked / (double)both, sums.wrong, 100 * truth, 100 * sampled,
           100 * sigma);
    fflush(stdout);
    STRESS_CHECK(sums.wrong == 0);
    STRESS_CHECK(sums.linked != 0 && sums.linked < sums.labelled);
    STRESS_CHECK(100 * sums.labelled >= LABELLED_PERCENT * both);
    STRESS_CHECK(fabs(sampled - truth) <= 5 * sigma);
    STRESS_CHECK(run->source == OTEL_PROFILER_AUTO || stats->source == run->source);
    check_counters(stats);
}

/* The threads of the profiler and of the test are sampled as well, so that an export may come between:
 * the two numbers are the same as soon as none does. */
static void flush_until_counted(otel_profiler *profiler, otel_profiler_stats *stats)
{
    for (unsigned tries = 0; tries < 10000; tries++) {
        STRESS_CHECK(otel_profiler_flush(profiler, 60000) == OTEL_OK);
        const uint64_t before = oteli_load_acquire_64(&handed);
        STRESS_CHECK(otel_profiler_get_stats(profiler, stats) == OTEL_OK);
        if (stats->exported == before)
            return;
    }
    STRESS_CHECK(false && "exported is what the exporter was given");
}

static void profile(const struct run *run, otel_profiler *profiler)
{
    pthread_t threads[THREADS];
    memset(cpu_ns, 0, sizeof cpu_ns);
    oteli_store_release_32(&is_over, 0);
    for (unsigned i = 0; i < THREADS; i++)
        STRESS_CHECK(pthread_create(&threads[i], NULL, run_queries, cpu_ns[i]) == 0);
    while (oteli_load_acquire_64(&enough) < run->samples)
        stress_sleep_us(10000);
    oteli_store_release_32(&is_over, 1);
    stress_join(threads, THREADS);
    otel_profiler_stats stats = {.size = sizeof stats};
    flush_until_counted(profiler, &stats);
    STRESS_CHECK(otel_profiler_stop(profiler, 60000) == OTEL_OK);
    check(run, &stats);
}

static int run_profiler(void *argument)
{
    static const char *const names[] = {"what there is", "perf", "signal"};
    const struct run *run = argument;
    otel_profiler *profiler;
    const otel_profiler_options options = {
        .size = sizeof options,
        .source = run->source,
        .frequency_hz = 2000,
        .ring_kib = 256,
        .export_interval_ms = 100,
        .exporter = {
            .state = &sums, .export_profile = look_at_all, .wake = do_nothing, .free = do_nothing}};
    memset(&sums, 0, sizeof sums);
    oteli_store_release_64(&enough, 0);
    oteli_store_release_64(&handed, 0);
    printf("%s, uid %u\n", names[run->source], (unsigned)getuid());
    const otel_status status = otel_profiler_start(&options, &profiler);
    if (status == OTEL_ERROR_SYSTEM && run->source == OTEL_PROFILER_PERF) {
        printf("  the kernel refuses perf events here\n");
        return 0;
    }
    STRESS_CHECK(status == OTEL_OK);
    profile(run, profiler);
    return 0;
}

static otel_export_result forget_spans(void *state, otel_export *call)
{
    (void)state;
    (void)call;
    return OTEL_EXPORT_DONE;
}

/* Both sources, one after the other, in one process. */
static int run_all(void *argument)
{
    const unsigned *scale = argument;
    const struct run runs[] = {{OTEL_PROFILER_PERF, 1000 * (uint64_t)*scale},
                               {OTEL_PROFILER_SIGNAL, 200 * (uint64_t)*scale},
                               {OTEL_PROFILER_AUTO, 200 * (uint64_t)*scale}};
    const otel_exporter exporter = {.export_batch = forget_spans};
    STRESS_CHECK(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1)) ==
                 OTEL_OK);
    tracer = otel_tracer_get("whole", NULL);
    for (unsigned i = 0; i < SPANS; i++) {
        open_spans[i] = otel_span_start(tracer, "query", NULL);
        otel_span_set_string(open_spans[i], "http.route", i == 0 ? "A" : "B");
        spans[i] = otel_span_get_context(open_spans[i]);
    }
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        struct run run = runs[i];
        if (run.source == OTEL_PROFILER_PERF || profiled_source("signal") != NULL)
            run_profiler(&run);
    }
    for (unsigned i = 0; i < SPANS; i++)
        otel_span_end(open_spans[i]);
    STRESS_CHECK(otel_shutdown(60000) == OTEL_OK);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned scale = stress_scale(argc, argv, 20);
    if (getuid() == 0)
        STRESS_CHECK(profiled_as_nobody(run_all, &scale) == 0);
    return run_all(&scale);
}
