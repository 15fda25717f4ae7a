/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/baggage_fork_test.c - specification of baggages in a forked child of a program
 * that makes baggages and nothing else: it has no SDK, starts no span and attaches no context. */
#include "tests/support/unit.h"

#include <otel/baggage.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The large places of the pool (baggage_pool.c), and a value that fits in no other. */
enum { LARGE = 256, LARGE_VALUE = 4000 };

static pthread_barrier_t gate;

static otel_baggage make_large(void)
{
    static char value[LARGE_VALUE + 1];
    memset(value, 'v', LARGE_VALUE);
    return otel_baggage_set(otel_baggage_none(), "k", value, NULL);
}

/* Reads a baggage for as long as the other thread takes to fork. */
static bool wait_for_the_fork(void *state, const otel_baggage_entry *entry)
{
    (void)state, (void)entry;
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    return true;
}

static void *read_one(void *state)
{
    otel_baggage_each(*(otel_baggage *)state, wait_for_the_fork, NULL);
    return NULL;
}

/* Returns 0 when each of the large places can have a baggage that is kept. */
static int keep_all_large(void)
{
    for (int i = 0; i < LARGE; i++)
        if (otel_baggage_keep(make_large()).opaque == 0)
            return 1;
    return 0;
}

TEST(a_place_that_another_thread_reads_at_the_fork_is_free_in_the_child)
{
    pthread_t reader;
    otel_baggage read = make_large();
    assert_int_equal(pthread_barrier_init(&gate, NULL, 2), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_one, &read), 0);
    pthread_barrier_wait(&gate);

    check_child(keep_all_large);

    pthread_barrier_wait(&gate);
    pthread_join(reader, NULL);
    pthread_barrier_destroy(&gate);
}
