/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/span_cases.h - the ways of making spans whose cost is measured: in time by
 * bench-span, in instructions by tests/callgrind.
 *
 * Threads:  the one that makes the spans. */
#ifndef OTELI_BENCH_SPAN_CASES_H
#define OTELI_BENCH_SPAN_CASES_H

#include <otel/otel.h>

#include <stddef.h>
#include <stdint.h>

/* Not cloned for one value of an argument, so that all values run the same code. */
#if defined(__clang__)
#define BENCH_ONE_COPY __attribute__((noinline))
#else
#define BENCH_ONE_COPY __attribute__((noinline, noclone))
#endif

/* What the process must be in which a case runs. DRAINING: sampled as well, and batches are
 * so small that the exporter thread takes spans away meanwhile. NO_EXPORTER: sampled, and no
 * exporter is there to get the spans. RATIO: one root of 10,000 is sampled. */
enum bench_world {
    BENCH_NO_SDK,
    BENCH_UNSAMPLED,
    BENCH_SAMPLED,
    BENCH_RATIO,
    BENCH_DRAINING,
    BENCH_NO_EXPORTER,
    BENCH_WORLDS
};

struct bench_case {
    const char *name;
    enum bench_world world;
    uint32_t unit;               /* operations of the smallest run: the spans of its trace */
    void (*run)(uint64_t count); /* so many operations, a multiple of `unit` */
    uint32_t delivered;          /* spans that are exported of each operation; RATIO: 0 */
    uint32_t cancelled;          /* spans that end in it, and are not */
    const char *family;          /* of cases that should cost the same; or NULL */
};

extern const struct bench_case bench_cases[];
extern const size_t bench_case_count;

/* Get ready to run the cases of a world, whose SDK has been started. */
void bench_cases_prepare(enum bench_world world);

#endif
