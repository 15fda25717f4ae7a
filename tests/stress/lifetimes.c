/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/lifetimes.c - threads that die in the middle of everything, thousands of them,
 * and one that never ends: nothing that ended is lost, what cannot end any more is counted,
 * and memory does not grow with the number of threads there ever were.
 *
 * Each short-lived thread ends some spans and is gone before anybody has taken them; leaves
 * one open; and on its turn leaves a stretch, or a root that holds others back, open as well.
 * It also passes a detached span on to whoever comes next. */
#include "api/thread/thread_state.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"

#include <pthread.h>

enum { THREADS = 10000, AT_A_TIME = 12, ENDED = 3, NUMBERS = ENDED + 1, MOST_GROWTH_KIB = 8192 };

static struct oracle oracle;
static otel_tracer *tracer;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static otel_span handed;     /* from one thread to another, under the lock */
static uint32_t has_settled; /* the thread that never ends has done its part; atomic */
static uint32_t may_end;     /* the test is over; atomic */

static otel_span exchange(otel_span mine)
{
    pthread_mutex_lock(&lock);
    const otel_span theirs = handed;
    handed = mine;
    pthread_mutex_unlock(&lock);
    return theirs;
}

static otel_span enter(const char *name, bool hold)
{
    return otel_span_enter(tracer, name, OTEL_SPAN_OPTIONS(.root = true, .hold = hold));
}

static void leave_something_open(uint32_t number)
{
    switch (number % 4) {
    case 0: /* 1 */
        (void)enter("open", false);
        break;
    case 1: /* 3: a stretch with a span that has ended, and two that have not */
        otel_lines_begin();
        otel_span_end(otel_span_enter(tracer, "collected", NULL));
        (void)otel_span_enter(tracer, "open", NULL);
        (void)otel_span_enter(tracer, "open", NULL);
        break;
    case 2: /* 2: a root, and what it holds back */
        (void)enter("holds", true);
        otel_span_end(otel_span_enter(tracer, "held", NULL));
        break;
    default: /* 0: but a context, attached and never detached */
        (void)otel_context_attach(otel_current_context());
    }
}

static uint64_t abandoned_by(uint32_t threads)
{
    return (uint64_t)threads / 4 * (1 + 3 + 2 + 0); /* there are whole fours of them */
}

static void *live_shortly(void *argument)
{
    const uint32_t number = (uint32_t)(uintptr_t)argument;
    const uint32_t first = number * NUMBERS;
    char name[ORACLE_NAME];
    for (uint32_t i = 0; i < ENDED; i++) {
        otel_span_end(oracle_enter(tracer, first + i));
    }
    oracle_name(first + ENDED, name);
    const otel_span theirs = exchange(otel_span_start_n(tracer, name, sizeof name, NULL));
    otel_span_set_int(theirs, "by", (int64_t)number);
    otel_span_end(theirs);
    otel_span_end(theirs);
    leave_something_open(number);
    return NULL;
}

/* It ends one span, has another one open, and then does nothing at all. */
static void *live_forever(void *argument)
{
    const uint32_t number = *(const uint32_t *)argument;
    otel_span_end(oracle_enter(tracer, number));
    (void)enter("forever", false);
    oteli_store_release_32(&has_settled, 1);
    stress_wait(&may_end, 1);
    return NULL;
}

static void live_and_die(uint32_t from, uint32_t end)
{
    pthread_t running[AT_A_TIME];
    for (uint32_t i = from; i < end; i++) {
        pthread_t *thread = &running[i % AT_A_TIME];
        if (i >= from + AT_A_TIME)
            pthread_join(*thread, NULL);
        STRESS_CHECK(pthread_create(thread, NULL, live_shortly, (void *)(uintptr_t)i) == 0);
    }
    stress_join(running, AT_A_TIME);
}

static unsigned count_states(void)
{
    unsigned states = 0;
    for (const struct oteli_thread *at = oteli_threads(); at != NULL; at = at->next)
        states++;
    return states;
}

static bool is_complete(uint32_t numbers)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < numbers; i++)
        seen += oracle_seen(&oracle, i) == 1;
    return seen == numbers;
}

int main(int argc, char **argv)
{
    const uint32_t threads = THREADS * stress_scale(argc, argv, 20);
    uint32_t numbers = threads * NUMBERS + 1;
    uint32_t last = numbers - 1;
    oracle_init(&oracle, numbers);
    stress_start_sdk(oracle_exporter(&oracle),
                     &(otel_sdk_options){.bsp_schedule_delay = 5, .bsp_max_queue_size = 1 << 16});
    tracer = otel_tracer_get("stress", NULL);
    pthread_t immortal;
    STRESS_CHECK(pthread_create(&immortal, NULL, live_forever, &last) == 0);
    stress_wait(&has_settled, 1);

    live_and_die(0, threads / 5);
    const uint64_t before_kib = process_resident_kib();
    const unsigned states = count_states();
    live_and_die(threads / 5, threads);
    otel_span_end(exchange((otel_span){{0}}));
    STRESS_CHECK(!process_memory_is_ours() ||
                 process_resident_kib() < before_kib + MOST_GROWTH_KIB);
    STRESS_CHECK(states <= AT_A_TIME + 2 && count_states() <= AT_A_TIME + 2);

    STRESS_CHECK(otel_flush(60000) == OTEL_ERROR_EXPORT_FAILED);
    STRESS_CHECK(is_complete(numbers) && oracle_wrong(&oracle) == 0);
    otel_stats stats = stress_stats();
    stress_check_sums(&stats, false);
    STRESS_CHECK(stats.delivered == numbers && stats.open == 1);
    STRESS_CHECK(stats.queued_bytes <= (uint64_t)count_states() * OTELI_LINE_BYTES);
    STRESS_CHECK(stats.dropped[OTEL_DROP_ABANDONED] == abandoned_by(threads));

    oteli_store_release_32(&may_end, 1);
    pthread_join(immortal, NULL);
    stats = stress_stop_sdk();
    STRESS_CHECK(stats.dropped[OTEL_DROP_ABANDONED] == abandoned_by(threads) + 1);
    oracle_fini(&oracle);
    return 0;
}
