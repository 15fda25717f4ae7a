/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/profiler_options_test.c - specification of profiling/profiler_options.c: what options come
 * to. Those that cannot be are in profiler_test.c, with what becomes of their exporter. */
#include "profiling/profiler_inside.h"
#include "tests/support/unit.h"

#include <signal.h>

TEST(options_have_defaults)
{
    struct oteli_profiler_plan plan;
    assert_int_equal(oteli_profiler_plan(&(otel_profiler_options){0}, &plan), OTEL_OK);
    assert_true(plan.source.period_ns == 1000000000 / 99);
    assert_int_equal(plan.source.ring_bytes, 128 * 1024);
    assert_int_equal(plan.source.thread_ring_bytes, 64 * 1024);
    assert_int_equal(plan.source.stack_bytes, 4096);
    assert_int_equal(plan.source.signal_number, SIGPROF);
    assert_int_equal(plan.max_links, 4096);
    assert_true(plan.export_ns == UINT64_C(10000000000));
}

TEST(options_are_what_they_say)
{
    struct oteli_profiler_plan plan;
    const otel_profiler_options options = {.frequency_hz = 1000,
                                           .export_interval_ms = 7,
                                           .ring_kib = 256,
                                           .stack_scan_bytes = OTEL_ZERO,
                                           .signal_number = SIGURG,
                                           .max_links = 3};
    assert_int_equal(oteli_profiler_plan(&options, &plan), OTEL_OK);
    assert_true(plan.source.period_ns == 1000000);
    assert_int_equal(plan.source.ring_bytes, 256 * 1024);
    assert_int_equal(plan.source.thread_ring_bytes, 256 * 1024);
    assert_int_equal(plan.source.stack_bytes, 0);
    assert_int_equal(plan.source.signal_number, SIGURG);
    assert_int_equal(plan.max_links, 3);
    assert_true(plan.export_ns == 7000000);
}

static uint64_t drain_ms(uint32_t hz, uint32_t ring_kib, otel_profiler_source source)
{
    struct oteli_profiler_plan plan;
    const otel_profiler_options options = {.frequency_hz = hz, .ring_kib = ring_kib};
    assert_int_equal(oteli_profiler_plan(&options, &plan), OTEL_OK);
    return oteli_profiler_drain_ns(&plan.source, source) / 1000000;
}

/* Samples are taken to have 1 KiB, and perf's the copy of the stack besides. */
TEST(drains_before_a_ring_is_half_full_and_no_more_often)
{
    assert_int_equal(drain_ms(1000, 64, OTEL_PROFILER_PERF), 16);   /* 32 samples, of 2 KiB */
    assert_int_equal(drain_ms(1000, 64, OTEL_PROFILER_SIGNAL), 32); /* 64 samples */
    assert_int_equal(drain_ms(100, 64, OTEL_PROFILER_PERF), 60);    /* 12 samples, of 5 KiB */
    assert_int_equal(drain_ms(1, 64, OTEL_PROFILER_PERF), 200);
    assert_int_equal(drain_ms(10000, 4, OTEL_PROFILER_PERF), 10);
    assert_int_equal(oteli_profiler_busy_drain_ns(99000000, OTEL_PROFILER_PERF), 99000000);
    assert_int_equal(oteli_profiler_busy_drain_ns(99000000, OTEL_PROFILER_SIGNAL), 25000000);
    assert_int_equal(oteli_profiler_busy_drain_ns(9000000, OTEL_PROFILER_SIGNAL), 9000000);
}

/* 5 KiB a sample, unless it is said how much of the stack is copied. */
TEST(a_ring_has_room_for_twice_100_ms_between_64_and_256_kib)
{
    struct oteli_profiler_plan plan;
    const struct {
        uint32_t hz;
        int32_t scan;
        uint32_t ring_kib;
    } rows[] = {{1, 0, 64},     {59, 0, 64},      {60, 0, 128},
                {250, 0, 256},  {1000, 0, 256},   {10000, 0, 256},
                {99, 1024, 64}, {99, 32768, 256}, {99, OTEL_ZERO, 64}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const otel_profiler_options options = {.frequency_hz = rows[i].hz,
                                               .stack_scan_bytes = rows[i].scan};
        assert_int_equal(oteli_profiler_plan(&options, &plan), OTEL_OK);
        assert_int_equal(plan.source.ring_bytes, rows[i].ring_kib * 1024);
        assert_int_equal(plan.source.thread_ring_bytes, 64 * 1024);
    }
}

TEST(looks_through_more_of_a_stack_where_the_ring_is_large_enough)
{
    struct oteli_profiler_plan plan;
    otel_profiler_options options = {.frequency_hz = 1000};
    assert_int_equal(oteli_profiler_plan(&options, &plan), OTEL_OK);
    assert_int_equal(plan.source.stack_bytes, 1024);
    options.ring_kib = 1024;
    assert_int_equal(oteli_profiler_plan(&options, &plan), OTEL_OK);
    assert_int_equal(plan.source.stack_bytes, 4096);
    options.stack_scan_bytes = 100;
    assert_int_equal(oteli_profiler_plan(&options, &plan), OTEL_OK);
    assert_int_equal(plan.source.stack_bytes, 104);
}
