/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/asan_fork_test.c - a child can allocate, and start threads, whatever the threads
 * of its parent were doing when it was forked: starting, and allocating for the first time. libc
 * sees to that, and under AddressSanitizer support/asan_fork.c; without it a run ends by an alarm.
 *
 * They end, and free, between the forks only: the sanitizer has one lock more, for what was freed,
 * which a thread holds for a few instructions when it ends, and nobody else can take it. */
#include "tests/support/traced.h"
#include "tests/support/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { FORKS = 300, THREADS = 4, SIZES = 12, HANGS_AFTER_S = 60 };

static atomic_int round_now;

/* One of every class of sizes, 16 bytes to 32 KiB: until the round is over, or at once. */
static void *allocate(void *round)
{
    void *blocks[SIZES];
    for (unsigned i = 0; i < SIZES; i++)
        blocks[i] = malloc((size_t)16 << i);
    while (round != NULL && atomic_load(&round_now) == *(const int *)round)
        sched_yield();
    for (unsigned i = 0; i < SIZES; i++)
        free(blocks[i]);
    return NULL;
}

static int live_as_a_child(void)
{
    alarm(HANGS_AFTER_S);
    (void)allocate(NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate, NULL) != 0)
        return 1;
    return pthread_join(thread, NULL);
}

static void fork_beside_threads_that_start(int round)
{
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate, &round), 0);
    const pid_t child = fork();
    if (child == 0)
        _exit(live_as_a_child());
    check_forked(child);
    atomic_store(&round_now, round + 1);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

TEST(a_child_allocates_and_starts_threads)
{
    for (int round = 0; round < FORKS; round++)
        fork_beside_threads_that_start(round);
}
