/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/profile.c - what it costs to call a function under a label, and to make one.
 *
 * `indirect_call` calls a function through a pointer, and is what the others are compared with;
 * `apply` does it under one label, and `apply_1000_labels` under another of a thousand each time,
 * in an order that the processor cannot learn, both with trampolines in the program itself, as in
 * one that is linked statically. `apply_shared` is `apply` with those of the shared library, which
 * is far away: calls and returns over more than 4 GiB take this processor longer, whatever they
 * lead to, as `apply_empty_shared` shows, the same with an empty label. `label_acquire_release`
 * makes a label of one key and gives it back; `clock_read` is the reading of the clock that is in
 * it. `attach_detach` makes a context current and takes it back, which other programs can see. One
 * round of each case follows the other, so that slow and fast times of the machine meet all cases
 * alike. A profiler runs meanwhile, for there are no labels without one, and takes one sample a
 * second.
 *
 * Last comes what the sampler costs (profile_sampler.c). */
#include "benchmarks/bench.h"
#include "benchmarks/profile_sampler.h"
#include "profiling/labels/trampolines.h"

#include <otel/profile.h>
#include <stdlib.h>

enum { ROUNDS = 2001, QUICK_ROUNDS = 5, CALLS = 4000, QUICK_CALLS = 4000, MANY = 1000 };
enum { ORDER = 1 << 14 };

typedef void *function(void *argument);

static void *work(void *argument)
{
    return argument;
}

/* What the compiler may not look into. */
static function *volatile called = work;
static volatile otel_profile_label near;
static volatile otel_profile_label shared;
static volatile otel_profile_label empty;
static otel_profile_label labels[MANY];
static uint16_t order[ORDER];
static void *volatile sink;
static otel_context attached;

static void call_indirectly(unsigned count)
{
    void *last = NULL;
    for (unsigned i = 0; i < count; i++)
        last = called(last);
    sink = last;
}

static inline void apply_label(const otel_profile_label *label, unsigned count)
{
    void *last = NULL;
    for (unsigned i = 0; i < count; i++)
        last = otel_profile_apply(label, called, last);
    sink = last;
}

static void apply_near(unsigned count)
{
    const otel_profile_label label = near;
    apply_label(&label, count);
}

static void apply_shared(unsigned count)
{
    const otel_profile_label label = shared;
    apply_label(&label, count);
}

static void apply_empty(unsigned count)
{
    const otel_profile_label label = empty;
    apply_label(&label, count);
}

static void apply_many(unsigned count)
{
    void *last = NULL;
    for (unsigned i = 0; i < count; i++)
        last = otel_profile_apply(&labels[order[i % ORDER]], called, last);
    sink = last;
}

static void acquire_and_release(unsigned count)
{
    const otel_profile_kv kv = {"query", "A"};
    for (unsigned i = 0; i < count; i++) {
        otel_profile_label label = otel_profile_label_acquire(&kv, 1);
        otel_profile_label_release(&label);
    }
}

static void read_clocks(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        sink = (void *)(uintptr_t)bench_now_ns();
}

static void attach_and_detach(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        (void)otel_context_detach(otel_context_attach(attached));
}

struct profile_case {
    const char *name;
    void (*run)(unsigned count);
};

static const struct profile_case cases[] = {
    {"indirect_call", call_indirectly},  {"apply", apply_near},
    {"apply_1000_labels", apply_many},   {"apply_shared", apply_shared},
    {"apply_empty_shared", apply_empty}, {"label_acquire_release", acquire_and_release},
    {"clock_read", read_clocks},         {"attach_detach", attach_and_detach},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static otel_profiler *prepare(void)
{
    const otel_profile_kv kv = {"query", "A"};
    uint32_t random = 1;
    otel_profiler *profiler = bench_sampler_start(1);
    for (unsigned i = 0; i < MANY; i++)
        labels[i].trampoline = oteli_trampoline_at(i);
    for (unsigned i = 0; i < ORDER; i++) {
        random = random * 1664525 + 1013904223;
        order[i] = (uint16_t)((random >> 16) * MANY >> 16);
    }
    near = labels[MANY / 2];
    shared = otel_profile_label_acquire(&kv, 1);
    otel_profile_label released = otel_profile_label_acquire(&kv, 1);
    otel_profile_label_release(&released);
    empty = released;
    if (near.trampoline == NULL || shared.index == 0)
        bench_fail("there are no labels on this machine");
    bench_expect_ok(otel_start_with(NULL), "otel_start_with");
    attached = otel_context_with_span(
        otel_current_context(), otel_span_start(otel_tracer_get("bench", NULL), "request", NULL));
    return profiler;
}

int main(int count, char **arguments)
{
    static double figures[CASES][ROUNDS];
    const struct bench_options options = bench_options_read(count, arguments);
    const unsigned calls = options.quick ? QUICK_CALLS : CALLS;
    unsigned rounds = options.quick ? QUICK_ROUNDS : ROUNDS;
    if (options.rounds != 0 && options.rounds < rounds)
        rounds = options.rounds;
    otel_profiler *profiler = prepare();
    for (unsigned i = 0; i < CASES; i++)
        cases[i].run(calls);
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned i = 0; i < CASES; i++) {
            const uint64_t start_ns = bench_now_ns();
            cases[i].run(calls);
            figures[i][round] = (double)(bench_now_ns() - start_ns) / calls;
        }
    for (unsigned i = 0; i < CASES; i++) {
        bench_sort(figures[i], rounds);
        bench_line_begin("profile", cases[i].name);
        bench_figure("min_ns", figures[i][0], 2);
        bench_figure("median_ns", bench_median(figures[i], rounds), 2);
        bench_line_end();
    }
    bench_expect_ok(otel_shutdown(1000), "otel_shutdown");
    bench_expect_ok(otel_profiler_stop(profiler, 1000), "otel_profiler_stop");
    bench_sampler_measure(&options);
    return 0;
}
