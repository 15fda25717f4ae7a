/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/baggage.c - eight threads make, read, keep, attach and let go of baggages, their
 * own and those that others have put into a common table and that may be long gone: whatever is
 * read is empty, or what its number has always meant. What is kept or attached is there. */
#include "api/baggage/baggage_pool.h"
#include "common/base/atomic.h"
#include "tests/support/oracle.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 8, TABLE = 512, OPERATIONS = 24000 };

/* A baggage says of itself what it is, so that nobody has to remember: the name `seed` has a
 * number, and the others follow from it. The table has numbers of any age. */
static uint64_t table[TABLE];
static uint64_t seed;
static unsigned scale;

struct worker {
    uint64_t random;
    uint64_t found;
    uint64_t gone;
};

/* Small, medium and large ones. */
static size_t length_for(uint64_t what)
{
    return what % 64 == 0 ? 4000 : what % 8 == 0 ? 600 : what % 90;
}

static void fill(uint64_t what, char *value)
{
    const size_t length = length_for(what);
    memset(value, (int)('a' + what % 26), length);
    value[length] = '\0';
}

static otel_baggage make(uint64_t what)
{
    char name[24];
    char value[4096];
    snprintf(name, sizeof name, "%llx", (unsigned long long)what);
    fill(what, value);
    const otel_baggage baggage = otel_baggage_set(otel_baggage_none(), "seed", name, "m");
    return otel_baggage_set(baggage, "value", value, NULL);
}

/* By way of a header, as a request's comes. */
static otel_baggage extract(uint64_t what)
{
    char text[4200];
    char value[4096];
    struct oteli_baggage_builder builder;
    fill(what, value);
    const int length =
        snprintf(text, sizeof text, "seed=%llx;m, value = %s", (unsigned long long)what, value);
    oteli_baggage_begin(&builder, otel_baggage_none());
    STRESS_CHECK(oteli_baggage_parse(&builder, text, (size_t)length) == 2);
    return oteli_baggage_finish(&builder);
}

/* Whether it is there; when it is, it is whole. */
static bool look(otel_baggage baggage)
{
    char name[24];
    char value[4096];
    char wanted[4096];
    char text[OTELI_BAGGAGE_BYTES + 1];
    unsigned long long what = 0;
    const bool is_held = otel_baggage_keep(baggage).opaque != 0;
    if (!is_held)
        return false;
    STRESS_CHECK(otel_baggage_get(baggage, "seed", name, sizeof name) < sizeof name);
    STRESS_CHECK(sscanf(name, "%llx", &what) == 1);
    fill(what, wanted);
    if (otel_baggage_count(baggage) != 1) { /* 1: on the way to two */
        STRESS_CHECK(otel_baggage_count(baggage) == 2);
        STRESS_CHECK(otel_baggage_get(baggage, "value", value, sizeof value) == strlen(wanted));
        STRESS_CHECK(strcmp(value, wanted) == 0);
    }
    oteli_baggage_format(baggage, text, sizeof text);
    STRESS_CHECK(strncmp(text, "seed=", 5) == 0);
    otel_baggage_let_go(baggage);
    return true;
}

static void attach(struct worker *worker, otel_baggage baggage)
{
    const otel_context_token token = otel_context_attach((otel_context){.baggage = baggage.opaque});
    const otel_baggage current = otel_context_baggage(NULL);
    STRESS_CHECK(current.opaque == 0 || current.opaque == baggage.opaque);
    for (unsigned i = 0; i < 20; i++)
        (void)make(stress_random(&worker->random));
    STRESS_CHECK(look(current) == (current.opaque != 0));
    STRESS_CHECK(otel_context_detach(token));
}

static void keep(struct worker *worker, otel_baggage baggage)
{
    const otel_baggage kept = otel_baggage_keep(baggage);
    STRESS_CHECK(kept.opaque == 0 || kept.opaque == baggage.opaque);
    for (unsigned i = 0; i < 20; i++)
        (void)make(stress_random(&worker->random));
    STRESS_CHECK(look(kept) == (kept.opaque != 0));
    otel_baggage_let_go(kept);
}

static void operate(struct worker *worker)
{
    const uint64_t what = stress_random(&worker->random);
    uint64_t *slot = &table[what % TABLE];
    const otel_baggage found = {oteli_load_relaxed_64(slot)};
    switch (what / TABLE % 8) {
    case 0:
        oteli_store_relaxed_64(slot, make(what).opaque);
        break;
    case 1:
        oteli_store_relaxed_64(slot, extract(what).opaque);
        break;
    case 2:
        attach(worker, found);
        break;
    case 3:
        keep(worker, found);
        break;
    case 4: /* of a place that others may have meanwhile */
        (void)look((otel_baggage){found.opaque + (UINT64_C(1) << 16)});
        break;
    default:
        if (look(found))
            worker->found++;
        else
            worker->gone++;
        break;
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (unsigned i = 0; i < OPERATIONS / THREADS * scale; i++)
        operate(worker);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    scale = stress_scale(argc, argv, 20);
    seed = stress_seed() << 8;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.random = seed + i + 1};
        STRESS_CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    uint64_t found = 0;
    uint64_t gone = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        found += workers[i].found;
        gone += workers[i].gone;
    }
    printf("found %llu, gone %llu\n", (unsigned long long)found, (unsigned long long)gone);
    STRESS_CHECK(found != 0 && gone != 0);
    return 0;
}
