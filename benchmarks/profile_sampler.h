/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/profile_sampler.h - what the sampler costs a program that it samples. */
#ifndef BENCH_PROFILE_SAMPLER_H
#define BENCH_PROFILE_SAMPLER_H

#include "benchmarks/bench.h"

#include <otel/profiler.h>

/* A profiler whose profiles go nowhere; ends the program where there is none to be had. */
otel_profiler *bench_sampler_start(uint32_t hz);

/* Measures at 99 and 1,000 Hz, and prints two lines: sampler_99hz and sampler_1000hz. */
void bench_sampler_measure(const struct bench_options *options);

#endif
