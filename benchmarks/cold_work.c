/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/cold_work.c - memory and code to run through: cold_work.h has the contracts. */
#include "benchmarks/cold_work.h"
#include "benchmarks/bench.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 64, WORDS = LINE / sizeof(uint64_t), STRIDE = 1237 };

/* --- data --- */

static uint64_t *data;
static size_t lines; /* a power of two */

void cold_data_prepare(size_t bytes)
{
    lines = bytes / LINE;
    data = aligned_alloc(LINE, bytes);
    if (data == NULL)
        bench_fail("no memory");
    memset(data, 1, bytes);
}

/* An odd stride meets every line once; it is larger than a page, so no prefetcher follows. */
uint64_t cold_data(uint64_t value)
{
    for (size_t i = 0; i < lines; i++) {
        uint64_t *line = data + (i * STRIDE & (lines - 1)) * WORDS;
        value += line[1];
        if (i % 4 == 0)
            line[2] = value;
    }
    return value;
}

/* --- code --- */

/* Not more than a few operations apart there is a branch, as in most programs. */
#define BRANCH(n, bit)                                     \
    if ((value >> (bit)&1) != 0) {                         \
        __asm__ volatile("" ::: "memory");                 \
        value = value * 0x5851f42d4c957f2dU + 2 * (n) + 1; \
    } else {                                               \
        __asm__ volatile("" ::: "memory");                 \
        value ^= value >> 17;                              \
        value += 0x14057b7ef767814fU ^ (n);                \
    }
enum { BRANCHES = 4, FUNCTIONS = 500 };

#define FUNCTION(n)                                                       \
    static __attribute__((noinline)) uint64_t function##n(uint64_t value) \
    {                                                                     \
        BRANCH(1##n##U, 13)                                               \
        BRANCH(1##n##U, 29)                                               \
        BRANCH(1##n##U, 41)                                               \
        BRANCH(1##n##U, 57)                                               \
        return value;                                                     \
    }
#define NAME(n) function##n,
#define TEN(m, n) m(n##0) m(n##1) m(n##2) m(n##3) m(n##4) m(n##5) m(n##6) m(n##7) m(n##8) m(n##9)
#define HUNDRED(m, n) \
    TEN(m, n##0)      \
    TEN(m, n##1)      \
    TEN(m, n##2)      \
    TEN(m, n##3) TEN(m, n##4) TEN(m, n##5) TEN(m, n##6) TEN(m, n##7) TEN(m, n##8) TEN(m, n##9)
#define FIVE_HUNDRED(m) HUNDRED(m, 0) HUNDRED(m, 1) HUNDRED(m, 2) HUNDRED(m, 3) HUNDRED(m, 4)

FIVE_HUNDRED(FUNCTION)

typedef uint64_t function(uint64_t value);
static function *const functions[FUNCTIONS] = {FIVE_HUNDRED(NAME)};

uint64_t cold_code(uint64_t value)
{
    for (size_t i = 0; i < FUNCTIONS; i++)
        value = functions[i](value);
    return value;
}

size_t cold_code_bytes(void)
{
    uintptr_t first = (uintptr_t)functions[0];
    uintptr_t last = first;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        const uintptr_t at = (uintptr_t)functions[i];
        first = at < first ? at : first;
        last = at > last ? at : last;
    }
    return (size_t)(last - first);
}

size_t cold_code_branches(void)
{
    return (size_t)FUNCTIONS * (BRANCHES + 1); /* and the call of each */
}
