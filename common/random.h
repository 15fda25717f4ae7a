/* SPDX-License-Identifier: Apache-2.0 */
/* common/random.h - random identifiers: one generator a thread, a multiplication a number.
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

#include "common/lent.h"
#include <stdbool.h>
#include <stdint.h>

struct oteli_random {
    uint64_t state;
    uint64_t step; /* odd, so that the sequence has its full length of 2^64 */
};

/* Seed from the kernel; false when it gives no random bytes. */
OTELI_LENT bool oteli_random_seed(struct oteli_random *random);

__extension__ typedef unsigned __int128 oteli_product;

static inline uint64_t oteli_random_next(struct oteli_random *random)
{
    random->state += random->step;
    const uint64_t state = random->state;
    const oteli_product product = (oteli_product)(state ^ UINT64_C(0xa0761d6478bd642f)) *
                                  (state ^ UINT64_C(0xe7037ed1a0b428db));
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* An identifier: any value but zero. */
static inline uint64_t oteli_random_id(struct oteli_random *random)
{
    uint64_t id = oteli_random_next(random);
    while (__builtin_expect(id == 0, 0))
        id = oteli_random_next(random);
    return id;
}

#endif
