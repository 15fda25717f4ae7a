/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/dead_records.c - see dead_records.h. */
#include "tests/support/dead_records.h"
#include "profiling/labels/trampolines.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    STACK_BYTES = 2 * 1024 * 1024,
    ALIGNMENT = 4096,
    ROUNDS = 200,
    DEPTH = 5,
    PAD_BYTES = 96 * 1024
};

/* What is left of an address that is signed. */
#define ADDRESS_BITS ((UINT64_C(1) << 48) - 1)

static size_t returns;

static void *leaf(void *argument)
{
    return argument;
}

/* The frame record of this function is all of its frame, just below that of its trampoline. */
__attribute__((noinline)) static void *with_frame(void *argument)
{
    const void *volatile frame = __builtin_frame_address(0); /* so it has one */
    return frame != NULL ? argument : NULL;
}

static void *deeper(void *argument)
{
    const unsigned *depth = argument;
    const unsigned below = *depth - 1;
    (void)oteli_trampoline_at(below)(argument, leaf);
    (void)oteli_trampoline_at(below + DEPTH)(argument, with_frame);
    unsigned next = below;
    return below == 0 ? argument : oteli_trampoline_at(100 + below)(&next, deeper);
}

void *dead_records_work(void *unused)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned depth = DEPTH;
        (void)oteli_trampoline_at(i)(&depth, deeper);
    }
    return unused;
}

static void count_returns(const void *stack)
{
    returns = 0;
    for (size_t at = 0; at < STACK_BYTES; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, (const char *)stack + at, sizeof word);
        word &= ADDRESS_BITS;
        if (oteli_trampoline_of(word) != OTELI_NO_TRAMPOLINE &&
            oteli_trampoline_of_marker(word) == OTELI_NO_TRAMPOLINE)
            returns++;
    }
}

struct job {
    void *(*work)(void *);
    void *argument;
};

/* Far down on its stack, where what ends a thread does not write over what it has left. */
static void *run_deep(void *argument)
{
    const struct job *job = argument;
    char pad[PAD_BYTES];
    __asm__ volatile("" : : "r"(pad) : "memory"); /* so it is there before the call, … */
    void *result = job->work(job->argument);
    __asm__ volatile("" : : "r"(pad) : "memory"); /* … and after it */
    return result;
}

size_t dead_records_after(void *(*work)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int found[1];
    struct job job = {work, argument};
    void *stack = aligned_alloc(ALIGNMENT, STACK_BYTES);
    if (stack == NULL)
        abort();
    memset(stack, 0, STACK_BYTES);
    if (pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstack(&attributes, stack, STACK_BYTES) != 0 ||
        pthread_create(&thread, &attributes, run_deep, &job) != 0 ||
        pthread_join(thread, NULL) != 0)
        abort();
    pthread_attr_destroy(&attributes);
    count_returns(stack);
    const size_t count =
        oteli_trampolines_scan(stack, STACK_BYTES, (uint64_t)(uintptr_t)stack, found, 1);
    free(stack);
    return count;
}

size_t dead_records_returns(void)
{
    return returns;
}
