/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/random.h - random identifiers: one generator a thread, a multiplication a number.
 *
 * A Weyl sequence (state += step) is scrambled by folding a 128-bit product. Nothing but
 * the addition depends on the number before, so several numbers are made at once.
 *
 * Threads:  a generator belongs to one thread. State and step come from the kernel
 *           (getrandom), so two threads, or a parent and its forked child, walk different
 *           sequences and not different places of one.
 * Source:   Wang Yi's wyrand, with a step of its own for every generator. */
#ifndef OTELI_RANDOM_H
#define OTELI_RANDOM_H

#include "common/base/internal_api.h"
#include <stdbool.h>
#include <stdint.h>

struct oteli_random {
    uint64_t state;
    uint64_t step; /* odd, so that the sequence has its full length of 2^64 */
};

/* Seed from the kernel; false when it gives no random bytes. */
OTELI_INTERNAL_API bool oteli_random_seed(struct oteli_random *random);

/* Both halves of a product. The instruction by its name: compilers move the halves of a
 * 128-bit number about. */
static inline uint64_t oteli_multiply(uint64_t a, uint64_t b, uint64_t *high)
{
#if defined(__x86_64__)
    uint64_t low;
    __asm__("mulq %3" : "=a"(low), "=d"(*high) : "%0"(a), "rm"(b) : "cc");
    return low;
#else
    __extension__ const unsigned __int128 product = (unsigned __int128)a * b;
    *high = (uint64_t)(product >> 64);
    return (uint64_t)product;
#endif
}

/* What a state is scrambled to. */
static inline uint64_t oteli_random_of(uint64_t state, uint64_t *high)
{
    return oteli_multiply(state, state ^ UINT64_C(0xe7037ed1a0b428db), high);
}

/* The next product of the sequence. */
static inline uint64_t oteli_random_step(struct oteli_random *random, uint64_t *high)
{
    const uint64_t state = random->state + random->step;
    random->state = state;
    return oteli_random_of(state, high);
}

static inline uint64_t oteli_random_next(struct oteli_random *random)
{
    uint64_t high;
    return oteli_random_step(random, &high) ^ high;
}

/* A number as an identifier: any value but zero, in whose place is 1. */
static inline uint64_t oteli_random_not_zero(uint64_t id)
{
#if defined(__GNUC__)
    __asm__("" : "+r"(id)); /* one number: it is not to be compared by its halves */
#endif
    return id + (id == 0);
}

/* The next number, and a second one out of the same product: enough for an identifier of 128
 * bits, since state and step together have 127. The first is never zero, so the two are a valid
 * trace id. No bit of them is fixed: samplers compare either half as a number. */
static inline uint64_t oteli_random_pair_of(uint64_t low, uint64_t high, uint64_t step,
                                            uint64_t *second)
{
    *second = high ^ (low << 27 | low >> 37) ^ step;
    return oteli_random_not_zero(high ^ low);
}

static inline uint64_t oteli_random_pair(struct oteli_random *random, uint64_t *second)
{
    uint64_t high;
    const uint64_t low = oteli_random_step(random, &high);
    return oteli_random_pair_of(low, high, random->step, second);
}

static inline uint64_t oteli_random_id(struct oteli_random *random)
{
    return oteli_random_not_zero(oteli_random_next(random));
}

/* The identifier that was made when the sequence came to this state. */
static inline uint64_t oteli_random_id_at(uint64_t state)
{
    uint64_t high;
    const uint64_t low = oteli_random_of(state, &high);
    return oteli_random_not_zero(low ^ high);
}

/* Both: oteli_random_pair and then oteli_random_id, with one access to the state. */
static inline uint64_t oteli_random_pair_and_id(struct oteli_random *random, uint64_t *second,
                                                uint64_t *id)
{
    const uint64_t step = random->step;
    const uint64_t state = random->state + step;
    random->state = state + step;
    uint64_t high;
    const uint64_t low = oteli_random_of(state, &high);
    const uint64_t first = oteli_random_pair_of(low, high, step, second);
    const uint64_t other_low = oteli_random_of(state + step, &high);
    *id = oteli_random_not_zero(other_low ^ high);
    return first;
}

/* One number, of a generator that is seeded for it: copies of a process do not draw the same one. A
 * system call. 0 without the kernel's random bytes. */
static inline uint32_t oteli_random_once(void)
{
    struct oteli_random random;
    return oteli_random_seed(&random) ? (uint32_t)(oteli_random_next(&random) >> 32) : 0;
}

#endif
