/* SPDX-License-Identifier: Apache-2.0 */
/* tests/callgrind/instruction_counts.c - runs the cases of one world, to have the instructions
 * of the thread that makes the spans counted; instruction_counts.sh starts it so.
 *
 *     instruction_counts no_sdk|unsampled|sampled|ratio
 *
 * callgrind counts inside measured_run and writes a file whenever that returns; what ran, in
 * this order, is said on stdout: name and operations. Each case has run once before, so
 * that what it needs is there. Nothing is exported meanwhile: the exporter thread waits for
 * a batch that is larger than any case.
 *
 * Spans must take their times from the processor's counter, as they do where tracing has to be
 * fast. A machine whose kernel keeps time otherwise would have us count another way, so here
 * the kernel's answer about it is ours. callgrind has the counter in any case. */
#include "benchmarks/bench.h"
#include "benchmarks/span_cases.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { OPERATIONS = 10000, LARGE_BATCH = 1 << 17, QUEUE_SIZE = 1 << 19, AN_HOUR_MS = 3600000 };
#define QUEUE_BYTES (INT64_C(1) << 30)

/* fopen of everybody in this process instead of libc's; nobody here writes files. */
FILE *open_or_answer(const char *path, const char *mode) __asm__("fopen");
FILE *open_or_answer(const char *path, const char *mode)
{
    static char answer[] = "tsc\n";
    if (strcmp(path, "/sys/devices/system/clocksource/clocksource0/current_clocksource") == 0)
        return fmemopen(answer, sizeof answer - 1, "r");
    const int file = mode[0] == 'r' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    return file < 0 ? NULL : fdopen(file, "r");
}

static otel_export_result accept_and_forget(void *state, otel_export *call)
{
    (void)state;
    (void)call;
    return OTEL_EXPORT_DONE;
}

static void start_sdk(enum bench_world world)
{
    const otel_exporter exporter =
        OTEL_EXPORTER(.name = "accept_and_forget", .export_batch = accept_and_forget);
    const char *sampler = world == BENCH_UNSAMPLED ? "always_off"
                          : world == BENCH_RATIO   ? "parentbased_traceidratio"
                                                   : "always_on";
    bench_expect_ok(
        otel_start_with(
            OTEL_SDK_OPTIONS(.service_name = "counts", .exporters = &exporter, .exporter_count = 1,
                             .traces_sampler = sampler, .traces_sampler_arg = "0.0001",
                             .clock = "tsc", .bsp_max_queue_size = QUEUE_SIZE,
                             .bsp_max_export_batch_size = LARGE_BATCH,
                             .bsp_schedule_delay = AN_HOUR_MS, .queue_max_bytes = QUEUE_BYTES,
                             .held_max_bytes = QUEUE_BYTES)),
        "otel_start_with");
}

/* The counters of several cores could be found to differ, and cost more. */
static void stay_on_this_core(void)
{
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET((size_t)sched_getcpu(), &core);
    if (sched_setaffinity(0, sizeof core, &core) != 0)
        bench_fail("this thread cannot be bound to its core");
}

BENCH_ONE_COPY void measured_run(const struct bench_case *measured, uint64_t count);
BENCH_ONE_COPY void measured_run(const struct bench_case *measured, uint64_t count)
{
    measured->run(count);
    __asm__ __volatile__("" ::: "memory"); /* not a tail call: it is here that counting ends */
}

static void flush(enum bench_world world)
{
    if (world == BENCH_SAMPLED)
        bench_expect_ok(otel_flush(60000), "otel_flush");
}

/* The cases that read clocks and nothing else are no spans. */
static bool is_of(enum bench_world world, const struct bench_case *asked)
{
    return asked->world == world && strncmp(asked->name, "two_", 4) != 0;
}

int main(int count, char **arguments)
{
    static const char *const names[] = {"no_sdk", "unsampled", "sampled", "ratio"};
    unsigned world = 0;
    while (world <= BENCH_RATIO && (count != 2 || strcmp(arguments[1], names[world]) != 0))
        world++;
    if (world > BENCH_RATIO)
        bench_fail("usage: %s no_sdk|unsampled|sampled|ratio", arguments[0]);

    stay_on_this_core();
    if (world != BENCH_NO_SDK)
        start_sdk((enum bench_world)world);
    bench_cases_prepare((enum bench_world)world);
    for (size_t i = 0; i < bench_case_count; i++) {
        if (!is_of((enum bench_world)world, &bench_cases[i]))
            continue;
        const uint64_t operations = OPERATIONS / bench_cases[i].unit * bench_cases[i].unit;
        bench_cases[i].run(operations);
        flush((enum bench_world)world);
        measured_run(&bench_cases[i], operations);
        flush((enum bench_world)world);
        printf("%s %llu\n", bench_cases[i].name, (unsigned long long)operations);
    }
    if (world != BENCH_NO_SDK)
        bench_expect_ok(otel_shutdown(60000), "otel_shutdown");
    return 0;
}
