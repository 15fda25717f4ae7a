/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/split_work.c - see split_work.h. SPLIT_WORK_FRAMED: this is the kind with frame
 * pointers. */
#include "tests/support/split_work.h"

#include <stdlib.h>
#include <string.h>

#ifdef SPLIT_WORK_FRAMED
#define SPLIT_WORK(name) split_work##name##_framed
#else
#define SPLIT_WORK(name) split_work##name##_frameless
#endif

enum { STEPS = 20000, NUMBERS = 600, BYTES = 4096, COPIES = 600 };

static __attribute__((noinline)) uint32_t leaf(uint32_t value, unsigned steps)
{
    for (unsigned i = 0; i < steps; i++) {
        value = value * 1664525 + 1013904223;
        value ^= value >> 15;
    }
    return value;
}

static __attribute__((noinline)) uint32_t middle(uint32_t value)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < 4; i++)
        sum += leaf(value + i, STEPS / 4);
    return sum;
}

uint32_t SPLIT_WORK()(uint32_t seed)
{
    return middle(seed) + leaf(seed, STEPS) + 1;
}

static int compare(const void *one, const void *two)
{
    const uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)two;
    return (a > b) - (a < b);
}

uint32_t SPLIT_WORK(_libc)(uint32_t seed)
{
    static __thread uint32_t numbers[NUMBERS]; /* not on the stack, which is copied in part */
    static __thread char from[BYTES], to[BYTES];
    for (unsigned i = 0; i < NUMBERS; i++) {
        seed = seed * 1664525 + 1013904223;
        numbers[i] = seed;
    }
    qsort(numbers, NUMBERS, sizeof numbers[0], compare);
    memset(from, (int)seed, sizeof from);
    for (unsigned i = 0; i < COPIES; i++) {
        memcpy(to, from, sizeof to - i);
        __asm__ volatile("" : : "r"(to) : "memory"); /* each of them is needed */
    }
    return numbers[NUMBERS / 2] + (uint8_t)to[seed % 100];
}

#ifndef SPLIT_WORK_FRAMED

uint32_t split_work_clobber(uint32_t seed)
{
#if defined(__x86_64__)
    uint64_t value = seed, steps = (uint64_t)4 * STEPS;
    __asm__ volatile("mov %%rbp, %%r8\n"
                     "1: imul $1664525, %0, %0\n"
                     "add $1013904223, %0\n"
                     "mov %0, %%rbp\n"
                     "dec %1\n"
                     "jnz 1b\n"
                     "mov %%r8, %%rbp\n"
                     : "+a"(value), "+c"(steps)
                     :
                     : "r8", "cc");
    return (uint32_t)value;
#else
    return leaf(seed, 4 * STEPS);
#endif
}

#endif
