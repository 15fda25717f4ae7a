/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/cold.c - what a span costs between the work of a program.
 *
 * A pass is some work (cold_work.h) and then one operation, and is timed as a whole. Passes with
 * and without an operation take turns; the median of the differences is what the operation costs.
 * There are four kinds of work: none, so that all is hot; data; code; both. The exporter thread has
 * another core, where there is one, and takes the spans away meanwhile; all must have been
 * delivered in the end.
 *
 * The spans are children of one that is open all the while. Beside them are two floors: the same
 * fields written by the loop itself into a ring, in wire form; and cold_floor.h. */
#include "benchmarks/bench.h"
#include "benchmarks/cold_floor.h"
#include "benchmarks/cold_work.h"
#include "common/clock/counter.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 101, QUICK_ROUNDS = 2, PASSES = 50, WARM_UP = 5, HOT_UNIT = 50 };
enum { DATA_BYTES = 256 << 10, RING_BYTES = 1 << 20, RECORD_BYTES = 256 };

static otel_tracer *tracer;
static uint64_t value; /* what the work has come to */

/* --- the operations --- */

static void nothing(void)
{
}

static void two_tsc_reads(void)
{
    const uint64_t start = oteli_counter();
    value += oteli_counter() < start;
}

static uint8_t *put(uint8_t *at, const char *key, size_t key_length, const void *bytes,
                    size_t length)
{
    *at++ = (uint8_t)key_length;
    memcpy(at, key, key_length);
    at += key_length;
    *at++ = (uint8_t)length;
    memcpy(at, bytes, length);
    return at + length;
}

#define PUT(at, key, bytes, length) put(at, key, sizeof(key) - 1, bytes, length)

static void floor_inline(void)
{
    static uint8_t ring[RING_BYTES + RECORD_BYTES];
    static size_t used;
    static uint64_t random = 88172645463325252U;
    uint8_t *const record = ring + used;
    const int64_t status = 200;
    uint64_t ids[6] = {oteli_counter(), 0, used, used, used, floor_id(&random)};
    uint8_t *at = PUT(record + sizeof ids, "GET /users", "", 0);
    at = PUT(at, "http.request.method", "GET", 3);
    at = PUT(at, "http.response.status_code", &status, sizeof status);
    ids[1] = oteli_counter();
    memcpy(record, ids, sizeof ids);
    used = (used + (size_t)(at - record)) % RING_BYTES;
}

static void floor_library(void)
{
    floor_enter("GET /users");
    floor_set_string("http.request.method", "GET");
    floor_set_int("http.response.status_code", 200);
    floor_end();
}

static void set_2_attributes(otel_span span)
{
    otel_span_set_string(span, "http.request.method", "GET");
    otel_span_set_int(span, "http.response.status_code", 200);
}

#define TWO_IN_OPTIONS                                                          \
    (otel_attribute[])                                                          \
    {                                                                           \
        otel_attribute_of("http.request.method", otel_value_string("GET")),     \
            otel_attribute_of("http.response.status_code", otel_value_int(200)) \
    }
#define FIVE_IN_OPTIONS                                                            \
    (otel_attribute[])                                                             \
    {                                                                              \
        otel_attribute_of("http.request.method", otel_value_string("GET")),        \
            otel_attribute_of("url.path", otel_value_string("/api/users/12345")),  \
            otel_attribute_of("server.address", otel_value_string("example.com")), \
            otel_attribute_of("http.response.status_code", otel_value_int(200)),   \
            otel_attribute_of("server.port", otel_value_int(8080))                 \
    }

#define SPAN_CASE(name, way, options, set)                           \
    static void name(void)                                           \
    {                                                                \
        const otel_span span = way(tracer, "GET /users", (options)); \
        set;                                                         \
        otel_span_end(span);                                         \
    }
#define WITH(list, count) OTEL_SPAN_OPTIONS(.attributes = (list), .attribute_count = (count))

SPAN_CASE(enter_0, otel_span_enter, NULL, )
SPAN_CASE(enter_2, otel_span_enter, NULL, set_2_attributes(span))
SPAN_CASE(enter_2_options, otel_span_enter, WITH(TWO_IN_OPTIONS, 2), )
SPAN_CASE(enter_5, otel_span_enter, NULL, bench_set_5_attributes(span))
SPAN_CASE(enter_5_options, otel_span_enter, WITH(FIVE_IN_OPTIONS, 5), )
SPAN_CASE(start_0, otel_span_start, NULL, )
SPAN_CASE(start_2, otel_span_start, NULL, set_2_attributes(span))
SPAN_CASE(start_2_options, otel_span_start, WITH(TWO_IN_OPTIONS, 2), )
SPAN_CASE(start_5, otel_span_start, NULL, bench_set_5_attributes(span))
SPAN_CASE(start_5_options, otel_span_start, WITH(FIVE_IN_OPTIONS, 5), )

static const struct operation {
    const char *name;
    void (*run)(void);
    bool is_span;
} operations[] = {
    {"two_tsc_reads", two_tsc_reads, false},
    {"floor_inline", floor_inline, false},
    {"floor_library", floor_library, false},
    {"enter_0", enter_0, true},
    {"enter_2", enter_2, true},
    {"enter_2_options", enter_2_options, true},
    {"enter_5", enter_5, true},
    {"enter_5_options", enter_5_options, true},
    {"start_0", start_0, true},
    {"start_2", start_2, true},
    {"start_2_options", start_2_options, true},
    {"start_5", start_5, true},
    {"start_5_options", start_5_options, true},
};
enum {
    TWO_TSC_READS,
    FLOOR_INLINE,
    FLOOR_LIBRARY,
    OPERATIONS = sizeof operations / sizeof *operations
};

/* --- the work --- */

static const char *const kinds[] = {"hot", "data", "code", "both"};
enum { KINDS = 4, DATA = 1, CODE = 2 };

/* One pass, in ticks for an operation. Hot operations are too short for a reading each. */
static uint64_t pass(unsigned kind, void (*run)(void))
{
    const unsigned count = kind == 0 ? HOT_UNIT : 1;
    const uint64_t start = oteli_counter();
    if ((kind & DATA) != 0)
        value = cold_data(value);
    if ((kind & CODE) != 0)
        value ^= cold_code(0) & 1;
    for (unsigned i = 0; i < count; i++)
        run();
    return oteli_counter() - start;
}

static double *added[KINDS][OPERATIONS]; /* ticks, by pairs of passes */
static double *alone[KINDS];             /* passes without an operation */

/* Pairs of passes, with and without. The first are for the predictors to learn the block. */
static void run_block(size_t at, unsigned kind, unsigned operation)
{
    const unsigned count = kind == 0 ? HOT_UNIT : 1;
    for (unsigned i = 0; i < WARM_UP + PASSES; i++) {
        const double without = (double)pass(kind, nothing) / count;
        const double with = (double)pass(kind, operations[operation].run) / count;
        const size_t slot = at + (i < WARM_UP ? 0 : i - WARM_UP);
        added[kind][operation][slot] = with - without;
        alone[kind][slot] = without;
    }
}

/* --- the run --- */

/* The exporter thread lives where main does when the SDK starts. */
static void go_to_core(unsigned index)
{
    cpu_set_t allowed;
    cpu_set_t one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2)
        return;
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &allowed) && index-- == 0)
            CPU_SET(i, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

static otel_export_result accept_and_forget(void *state, otel_export *call)
{
    (void)state;
    (void)call;
    return OTEL_EXPORT_DONE;
}

static void report(unsigned count, double ns_per_tick)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        bench_sort(alone[kind], count);
        for (unsigned i = 0; i < OPERATIONS; i++)
            bench_sort(added[kind][i], count);
    }
    const double two_reads = bench_median(added[0][TWO_TSC_READS], count);
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (unsigned i = 0; i < OPERATIONS; i++) {
            char name[64];
            snprintf(name, sizeof name, "%s_%s", operations[i].name, kinds[kind]);
            const double median = bench_median(added[kind][i], count);
            bench_line_begin("cold", name);
            bench_figure("added_ns", median * ns_per_tick, 1);
            bench_figure("lower_quartile_ns",
                         bench_percentile(added[kind][i], count, 25) * ns_per_tick, 1);
            bench_figure("upper_quartile_ns",
                         bench_percentile(added[kind][i], count, 75) * ns_per_tick, 1);
            bench_figure("ratio_to_two_tsc_reads", median / two_reads, 2);
            bench_figure("ratio_to_floor_library",
                         median / bench_median(added[kind][FLOOR_LIBRARY], count), 2);
            bench_figure("work_ns", bench_median(alone[kind], count) * ns_per_tick, 1);
            bench_line_end();
        }
    bench_line_begin("cold", "working_set");
    bench_count("data_bytes", DATA_BYTES);
    bench_count("code_bytes", cold_code_bytes());
    bench_count("branches", cold_code_branches());
    bench_line_end();
}

static double *room_for(unsigned rounds)
{
    double *made = calloc(rounds, PASSES * sizeof *made);
    if (made == NULL)
        bench_fail("no memory");
    return made;
}

static void prepare(unsigned rounds)
{
    cold_data_prepare(DATA_BYTES);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        alone[kind] = room_for(rounds);
        for (unsigned i = 0; i < OPERATIONS; i++)
            added[kind][i] = room_for(rounds);
    }
}

static void start_sdk(void)
{
    const otel_exporter exporter =
        OTEL_EXPORTER(.name = "accept_and_forget", .export_batch = accept_and_forget);
    cpu_set_t allowed;
    const bool is_known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    go_to_core(1);
    bench_expect_ok(
        otel_start_with(OTEL_SDK_OPTIONS(.service_name = "bench", .exporters = &exporter,
                                         .exporter_count = 1, .traces_sampler = "always_on",
                                         .bsp_max_queue_size = 1 << 20)),
        "otel_start_with");
    if (is_known)
        (void)sched_setaffinity(0, sizeof allowed, &allowed);
    go_to_core(0);
    tracer = otel_tracer_get("bench", "1.0");
}

/* One round, of how many spans. */
static uint64_t run_round(unsigned round)
{
    uint64_t spans = 1;
    const otel_span root = otel_span_enter(tracer, "root", NULL);
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (unsigned i = 0; i < OPERATIONS; i++) {
            run_block((size_t)round * PASSES, kind, i);
            if (operations[i].is_span)
                spans += (uint64_t)(WARM_UP + PASSES) * (kind == 0 ? HOT_UNIT : 1);
        }
    otel_span_end(root);
    bench_expect_ok(otel_flush(60000), "otel_flush");
    return spans;
}

int main(int count, char **arguments)
{
    const struct bench_options options = bench_options_read(count, arguments);
    const unsigned rounds = bench_rounds(&options, ROUNDS, QUICK_ROUNDS);
    uint64_t spans = 0;
    prepare(rounds);
    start_sdk();
    const uint64_t start_ns = bench_now_ns();
    const uint64_t start = oteli_counter();
    for (unsigned round = 0; round < rounds; round++)
        spans += run_round(round);
    const double ns_per_tick =
        (double)(bench_now_ns() - start_ns) / (double)(oteli_counter() - start);
    bench_expect_delivered(spans);
    bench_expect_ok(otel_shutdown(60000), "otel_shutdown");
    if (value == 1)
        fputs("\n", stderr); /* the work counts for something */
    report(rounds * PASSES, ns_per_tick);
    return 0;
}
