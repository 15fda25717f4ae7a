/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/labels.c - 8 threads that make, apply and give back labels as fast as they can, more
 * at once than there are, and a reader that asks what each call was under: what it is told is
 * right or nothing, and no two labels in use are the same trampoline. */
#include "profiling/labels/labels.h"
#include "common/base/atomic.h"
#include "common/clock/clock.h"
#include "profiling/labels/trampolines.h"
#include "tests/support/oracle.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 8,
    HELD = 130,
    LABELS = 40000,
    SAMPLE_EVERY = 3,
    NUMBER_BYTES = 17,
    NEAR = 16,
    PLACES = 512
};

/* What was seen inside of a call, on its way to the reader. */
struct sample {
    uint64_t time_ns;
    uint64_t number; /* of the label */
    uint32_t index;  /* of the trampoline */
};

struct worker {
    pthread_t thread;
    uint64_t first; /* the number of its first label; the others follow */
    uint32_t count;
    uint64_t most;    /* samples that wait */
    uint64_t written; /* samples; release */
    uint64_t read;    /* release by the reader */
    struct sample samples[PLACES];
};

static struct worker workers[THREADS];
static uint32_t used[OTELI_TRAMPOLINES]; /* 1: a label in use is this one */
static uint32_t ended;
static uint64_t empty_ones;

struct call {
    struct worker *worker;
    uint64_t number;
};

/* Runs under the label. A reader that is far behind finds no history: half of the threads wait for
 * it before, and the others do not until it is. */
static void *look(void *argument)
{
    const struct call *call = argument;
    struct worker *worker = call->worker;
    const int index = oteli_trampoline_of(
        (uint64_t)(uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)));
    STRESS_CHECK(index != OTELI_NO_TRAMPOLINE);
    while (worker->written - oteli_load_acquire_64(&worker->read) >= worker->most)
        sched_yield();
    worker->samples[worker->written % PLACES] =
        (struct sample){oteli_monotonic_ns(), call->number, (uint32_t)index};
    oteli_store_release_64(&worker->written, worker->written + 1);
    return argument;
}

static otel_profile_label make(uint64_t number)
{
    char text[NUMBER_BYTES];
    (void)snprintf(text, sizeof text, "%016" PRIx64, number);
    const otel_profile_kv kv[] = {{"n", text}, {"again", text}};
    return otel_profile_label_acquire(kv, 2);
}

static void let_go(otel_profile_label *label)
{
    if (label->index != 0)
        STRESS_CHECK(oteli_exchange_full_32(&used[label->index - 1], 0) == 1);
    otel_profile_label_release(label);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    otel_profile_label held[HELD] = {{0}};
    uint64_t numbers[HELD] = {0};
    uint64_t empty = 0;
    for (uint32_t i = 0; i < worker->count; i++) {
        const uint32_t place = i % HELD;
        let_go(&held[place]);
        numbers[place] = worker->first + i;
        held[place] = make(numbers[place]);
        if (held[place].index != 0)
            STRESS_CHECK(oteli_exchange_full_32(&used[held[place].index - 1], 1) == 0);
        else
            empty++;
        if (i % SAMPLE_EVERY == 0) {
            const uint32_t other = i * 7 % HELD;
            struct call call = {worker, numbers[other]};
            if (held[other].index != 0)
                STRESS_CHECK(otel_profile_apply(&held[other], look, &call) == &call);
        }
    }
    for (uint32_t i = 0; i < HELD; i++)
        let_go(&held[i]);
    oteli_add_full_64(&empty_ones, empty);
    oteli_add_full_32(&ended, 1);
    return NULL;
}

struct answers {
    uint64_t right;
    uint64_t nothing;
};

static void check(const struct sample *sample, struct answers *answers)
{
    struct oteli_label found;
    char expected[2 * NUMBER_BYTES + sizeof "n" + sizeof "again"];
    if (!oteli_labels_find(sample->index, sample->time_ns, &found)) {
        answers->nothing++;
        return;
    }
    const int length = snprintf(expected, sizeof expected, "n%c%016" PRIx64 "%cagain%c%016" PRIx64,
                                0, sample->number, 0, 0, sample->number);
    STRESS_CHECK((int)found.text_length == length + 1);
    STRESS_CHECK(memcmp(found.text, expected, found.text_length) == 0);
    STRESS_CHECK(found.start_ns <= sample->time_ns);
    answers->right++;
}

/* Every sample that is there; how many. */
static uint64_t read_all(struct answers *answers)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        struct worker *worker = &workers[i];
        const uint64_t written = oteli_load_acquire_64(&worker->written);
        for (; worker->read != written; count++) {
            check(&worker->samples[worker->read % PLACES], answers);
            oteli_store_release_64(&worker->read, worker->read + 1);
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    const uint32_t count = LABELS * stress_scale(argc, argv, 50);
    struct answers answers = {0, 0};
    oteli_labels_switch(true);
    if (oteli_trampoline_at(0) == NULL) {
        printf("no trampolines on this machine\n");
        return 77;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].first = (uint64_t)(i + 1) << 32;
        workers[i].count = count;
        workers[i].most = i % 2 == 0 ? NEAR : PLACES;
        STRESS_CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    while (oteli_load_acquire_32(&ended) != THREADS)
        if (read_all(&answers) == 0)
            sched_yield();
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    (void)read_all(&answers);
    printf("%" PRIu64 " samples right, %" PRIu64 " without history, %" PRIu64 " empty labels\n",
           answers.right, answers.nothing, empty_ones);
    STRESS_CHECK(answers.right > 0);
    STRESS_CHECK(oteli_labels_counts().refused == empty_ones && oteli_labels_counts().cut == 0);
    for (unsigned i = 0; i < OTELI_TRAMPOLINES; i++) /* none is lost */
        STRESS_CHECK(make(i).index != 0);
    STRESS_CHECK(make(0).index == 0);
    return 0;
}
