/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/random.c - seeds for the generators of random.h. Any thread. */
#include "common/base/random.h"
#include "common/base/atomic.h"

#include <errno.h>
#include <stddef.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* SplitMix64. */
static uint64_t next_mixed(uint64_t *seed)
{
    uint64_t mixed = *seed += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

/* Without the kernel's bytes: what differs between processes, threads and moments. Ids
 * stay apart then, though they could be guessed. */
static void stir(struct oteli_random *random)
{
    static uint64_t calls;
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec;
    seed ^= (uint64_t)getpid() << 40 ^ (uint64_t)(uintptr_t)random << 8;
    seed += oteli_add_full_64(&calls, 1) * UINT64_C(0xd1342543de82ef95);
    random->state ^= next_mixed(&seed);
    random->step ^= next_mixed(&seed);
}

bool oteli_random_seed(struct oteli_random *random)
{
    uint8_t *at = (uint8_t *)random;
    size_t missing = sizeof *random;
    const int saved_errno = errno;
    while (missing != 0) {
        const ssize_t got = getrandom(at, missing, GRND_NONBLOCK); /* early in the boot */
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        at += got;
        missing -= (size_t)got;
    }
    if (missing != 0)
        stir(random);
    errno = saved_errno;
    random->step |= 1;
    return missing == 0;
}
