/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/cold_work.h - what a program does between two spans, as far as caches see it: it
 * touches data, runs code and takes branches. The sizes are fixed, so that a run can be repeated.
 *
 * Threads:  one. */
#ifndef OTELI_BENCH_COLD_WORK_H
#define OTELI_BENCH_COLD_WORK_H

#include <stddef.h>
#include <stdint.h>

/* A piece of memory, of a power of two: each line is read once a pass, in a scattered order, and
 * every fourth is written. */
void cold_data_prepare(size_t bytes);
uint64_t cold_data(uint64_t value);

/* One pass over many functions, none of which runs twice; how many bytes they are, and how many
 * branches, conditional or calls, are in them. The same value takes the same way. */
uint64_t cold_code(uint64_t value);
size_t cold_code_bytes(void);
size_t cold_code_branches(void);

#endif
