/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/processors.c - eight threads with two span processors and a sampler of the
 * program's, which says by a span's number whether it is dropped, recorded or sampled. Every
 * span that records starts and ends once for each processor, whoever ends it; exactly those
 * that are sampled are exported; and no processor is called once it has been freed, when the
 * shutdown comes while all of that goes on. */
#include "common/base/atomic.h"
#include "tests/support/oracle.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 8, ROUNDS = 1500, SPANS_EACH = 3, SHUTDOWNS = 20 };

static struct oracle oracle;
static otel_tracer *tracer;
static uint32_t next_number;
static uint32_t has_stopped; /* threads that go on until then end */

/* Of one processor. All atomic. */
struct counts {
    uint32_t *ended; /* by number; NULL: they are not told apart */
    uint32_t starts;
    uint32_t endings;
    uint32_t ends;
    uint32_t is_freed;
};
static struct counts counts[2];

static otel_sampling_decision decision_of(uint32_t number)
{
    return (otel_sampling_decision)(number % 3);
}

static void sample(const void *state, const otel_sampling_query *query,
                   otel_sampling_result *result)
{
    (void)state;
    result->decision = decision_of(oracle_number(query->name));
}

static void on_start(void *state, otel_span span, const otel_context *parent)
{
    struct counts *own = state;
    (void)parent;
    STRESS_CHECK(oteli_load_relaxed_32(&own->is_freed) == 0);
    oteli_add_full_32(&own->starts, 1);
    otel_span_set_int(span, "started", 1);
}

static void on_ending(void *state, otel_span span, uint64_t end_ns)
{
    struct counts *own = state;
    (void)end_ns;
    oteli_add_full_32(&own->endings, 1);
    otel_span_set_int(span, "ending", 1);
    otel_span_end(span);
}

/* Whether it has the two attributes of above, and `by` at most once. */
static bool is_whole(const otel_span_view *span)
{
    unsigned found = 0;
    unsigned other = 0;
    otel_slice rest = span->attributes;
    otel_attribute_view attribute;
    while (otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute)) {
        const bool is_ours = attribute.key.length > 2;
        found += is_ours;
        other += !is_ours;
    }
    return found == 2 && other <= 1;
}

static void on_end(void *state, const otel_span_view *span)
{
    struct counts *own = state;
    STRESS_CHECK(oteli_load_relaxed_32(&own->is_freed) == 0);
    STRESS_CHECK(is_whole(span));
    STRESS_CHECK(span->end_ns >= span->start_ns);
    oteli_add_full_32(&own->ends, 1);
    if (own->ended == NULL)
        return;
    const uint32_t number = oracle_number(span->name);
    const bool is_sampled = (span->flags & OTEL_TRACE_FLAG_SAMPLED) != 0;
    STRESS_CHECK(is_sampled == (decision_of(number) == OTEL_SAMPLING_RECORD_AND_SAMPLE));
    oteli_add_full_32(&own->ended[number], 1);
}

static void on_free(void *state)
{
    oteli_exchange_full_32(&((struct counts *)state)->is_freed, 1);
}

static void start_sdk(void)
{
    const otel_sampler sampler = OTEL_SAMPLER(.sample = sample);
    otel_processor processors[2];
    for (unsigned i = 0; i < 2; i++)
        processors[i] = OTEL_PROCESSOR(.name = "counts", .state = &counts[i], .on_start = on_start,
                                       .on_ending = on_ending, .on_end = on_end, .free = on_free);
    stress_start_sdk(oracle_exporter(&oracle), &(otel_sdk_options){.bsp_schedule_delay = 5,
                                                                   .bsp_max_queue_size = 1 << 18,
                                                                   .sampler = &sampler,
                                                                   .processors = processors,
                                                                   .processor_count = 2});
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static otel_span shared; /* what several threads end at once; under the lock */

static otel_span exchange(otel_span mine)
{
    pthread_mutex_lock(&lock);
    const otel_span theirs = shared;
    shared = mine;
    pthread_mutex_unlock(&lock);
    return theirs;
}

static otel_span look(void)
{
    pthread_mutex_lock(&lock);
    const otel_span theirs = shared;
    pthread_mutex_unlock(&lock);
    return theirs;
}

static const char *new_name(char name[ORACLE_NAME])
{
    oracle_name(oteli_add_full_32(&next_number, 1), name);
    return name;
}

static void run_round(void)
{
    char name[ORACLE_NAME];
    const otel_span outer = otel_span_enter_n(tracer, new_name(name), sizeof name, NULL);
    const otel_span mine = otel_span_start_n(tracer, new_name(name), sizeof name, NULL);
    const otel_span inner = otel_span_enter_n(tracer, new_name(name), sizeof name, NULL);
    const otel_span theirs = exchange(mine);
    otel_span_set_int(inner, "in", 1);
    otel_span_end(inner);
    otel_span_set_int(theirs, "by", 1);
    otel_span_end(theirs);
    otel_span_end(look());
    otel_span_end(outer);
}

static uint32_t rounds_each; /* 0: until they are stopped */

static void *run_rounds(void *unused)
{
    for (uint32_t i = 0;
         rounds_each != 0 ? i < rounds_each : oteli_load_acquire_32(&has_stopped) == 0; i++)
        run_round();
    return unused;
}

/* Everything comes to an end, and is counted. */
static void check_sums(uint32_t rounds)
{
    const uint32_t spans = rounds * THREADS * SPANS_EACH;
    pthread_t threads[THREADS];
    oracle_init(&oracle, spans);
    for (unsigned i = 0; i < 2; i++)
        counts[i] = (struct counts){.ended = calloc(spans, sizeof(uint32_t))};
    start_sdk();
    rounds_each = rounds;
    stress_start(threads, THREADS, run_rounds);
    for (unsigned i = 0; i < 20; i++)
        STRESS_CHECK(otel_flush(10) != OTEL_ERROR_NOT_STARTED);
    stress_join(threads, THREADS);
    otel_span_end(exchange((otel_span){{0}}));
    const otel_stats stats = stress_stop_sdk();
    uint32_t by_decision[3] = {0};
    for (uint32_t number = 0; number < spans; number++) {
        const uint32_t expected = decision_of(number) != OTEL_SAMPLING_DROP;
        by_decision[decision_of(number)]++;
        for (unsigned i = 0; i < 2; i++)
            STRESS_CHECK(counts[i].ended[number] == expected);
        STRESS_CHECK(oracle_seen(&oracle, number) == (number % 3 == 2));
    }
    STRESS_CHECK(next_number == spans);
    STRESS_CHECK(stats.unsampled ==
                 by_decision[OTEL_SAMPLING_DROP] + by_decision[OTEL_SAMPLING_RECORD_ONLY]);
    STRESS_CHECK(stats.delivered == by_decision[OTEL_SAMPLING_RECORD_AND_SAMPLE]);
    for (unsigned i = 0; i < 2; i++) {
        STRESS_CHECK(counts[i].starts == spans - by_decision[OTEL_SAMPLING_DROP]);
        STRESS_CHECK(counts[i].endings == counts[i].starts);
        STRESS_CHECK(counts[i].ends == counts[i].starts);
        free(counts[i].ended);
    }
    oracle_fini(&oracle);
}

/* It stops in the middle. */
static void check_shutdown(void)
{
    pthread_t threads[THREADS];
    oracle_init(&oracle, 1);
    counts[0] = counts[1] = (struct counts){0};
    oteli_store_release_32(&has_stopped, 0);
    start_sdk();
    rounds_each = 0;
    stress_start(threads, THREADS, run_rounds);
    stress_sleep_us(5000);
    STRESS_CHECK(otel_shutdown(60000) != OTEL_ERROR_TIMEOUT);
    for (unsigned i = 0; i < 2; i++)
        STRESS_CHECK(oteli_load_relaxed_32(&counts[i].is_freed) == 1);
    oteli_store_release_32(&has_stopped, 1);
    stress_join(threads, THREADS);
    otel_span_end(exchange((otel_span){{0}}));
    STRESS_CHECK(counts[0].starts == counts[1].starts);
    STRESS_CHECK(counts[0].ends <= counts[0].starts);
    oracle_fini(&oracle);
}

int main(int argc, char **argv)
{
    const unsigned scale = stress_scale(argc, argv, 20);
    tracer = otel_tracer_get("stress", NULL);
    check_sums(ROUNDS * scale);
    for (unsigned i = 0; i < SHUTDOWNS * scale; i++)
        check_shutdown();
    return 0;
}
