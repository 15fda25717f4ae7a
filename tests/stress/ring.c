/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/ring.c - 8 producers and the worker on one ring: every line comes out once
 * for each time it went in, those of one producer in their order, also where tickets leave
 * 32 and 64 bits behind. */
#include "sdk/ring.h"
#include "tests/support/oracle.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { PRODUCERS = 8, LINES = 8, PUTS = 60000 };

/* A line and whether it is its producer's. `committed` is its number in the sequence of
 * its producer, and `index` says which producer that is. */
struct token {
    struct oteli_line *line;
    uint32_t is_free; /* atomic */
};

static struct oteli_ring ring;
static struct token tokens[PRODUCERS][LINES];
static uint32_t put_count;

static void *produce(void *argument)
{
    struct token *mine = argument;
    for (uint32_t i = 0; i < put_count; i++) {
        struct token *token = &mine[i % LINES];
        while (oteli_load_acquire_32(&token->is_free) == 0)
            sched_yield();
        oteli_store_relaxed_32(&token->is_free, 0);
        token->line->committed = i;
        oteli_ring_put(&ring, token->line);
    }
    return NULL;
}

static void consume(uint64_t first)
{
    uint32_t expected[PRODUCERS] = {0};
    const uint64_t total = (uint64_t)put_count * PRODUCERS;
    for (uint64_t taken = 0; taken < total; taken++) {
        struct oteli_line *line;
        while ((line = oteli_ring_take(&ring)) == NULL)
            sched_yield();
        const uint32_t producer = line->index;
        STRESS_CHECK(line->committed == expected[producer]);
        struct token *token = &tokens[producer][expected[producer]++ % LINES];
        STRESS_CHECK(token->line == line);
        oteli_store_release_32(&token->is_free, 1);
    }
    STRESS_CHECK(oteli_ring_take(&ring) == NULL);
    STRESS_CHECK(oteli_ring_head(&ring) == first + total && ring.tail == first + total);
}

static void run(uint64_t first)
{
    pthread_t threads[PRODUCERS];
    printf("first ticket %" PRIu64 "\n", first);
    STRESS_CHECK(oteli_ring_init(&ring, PRODUCERS * LINES, first));
    for (unsigned i = 0; i < PRODUCERS; i++) {
        for (unsigned k = 0; k < LINES; k++) {
            tokens[i][k].line = aligned_alloc(OTELI_CACHELINE, sizeof(struct oteli_line));
            STRESS_CHECK(tokens[i][k].line != NULL);
            tokens[i][k].line->index = i;
            tokens[i][k].is_free = 1;
        }
    }
    for (unsigned i = 0; i < PRODUCERS; i++)
        STRESS_CHECK(pthread_create(&threads[i], NULL, produce, tokens[i]) == 0);
    consume(first);
    for (unsigned i = 0; i < PRODUCERS; i++) {
        pthread_join(threads[i], NULL);
        for (unsigned k = 0; k < LINES; k++)
            free(tokens[i][k].line);
    }
    oteli_ring_fini(&ring);
}

int main(int argc, char **argv)
{
    put_count = PUTS * stress_scale(argc, argv, 50);
    run(0);
    run((UINT64_C(1) << 32) - 1000);
    run(UINT64_MAX - 1000);
    return 0;
}
