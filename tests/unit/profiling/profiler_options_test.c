/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/profiler_options_test.c - specification of profiling/profiler_options.c:
 * what options come to. Those that cannot be are in profiler_test.c, with what becomes of their
 * exporter. */
#include "profiling/profiler_inside.h"
#include "tests/support/guarded.h"
#include "tests/support/unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct oteli_profiler_plan plan_of(otel_profiler_options options)
{
    struct oteli_profiler_plan plan;
    assert_int_equal(oteli_profiler_plan(&options, &plan), OTEL_OK);
    return plan;
}

/* More of the stack is looked through where the ring is large enough. */
TEST(options_are_what_they_say_or_have_defaults)
{
    static const struct {
        otel_profiler_options options;
        const char *plan;
    } table[] = {
        {{0}, "10101010 ns, rings of 128 and 64 KiB, 4096 of the stack, 27, 4096 links, 10000 ms"},
        {{.frequency_hz = 1000,
          .export_interval_ms = 7,
          .ring_kib = 256,
          .stack_scan_bytes = OTEL_ZERO,
          .signal_number = SIGURG,
          .max_links = 3},
         "1000000 ns, rings of 256 and 256 KiB, 0 of the stack, 23, 3 links, 7 ms"},
    };
    static const struct {
        uint32_t hz, ring_kib;
        int32_t scan;
        uint32_t expected_kib, expected_scan;
    } rings[] = {
        {1, 0, 0, 128, 4096},        {250, 0, 0, 128, 4096},       {251, 0, 0, 128, 1024},
        {99, 0, 1024, 128, 1024},    {99, 0, 32768, 128, 32768},   {99, 0, OTEL_ZERO, 128, 0},
        {1000, 1024, 0, 1024, 4096}, {1000, 1024, 100, 1024, 104}, {1000, 64, 0, 64, 1024},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[128];
        const struct oteli_profiler_plan plan = plan_of(table[i].options);
        snprintf(text, sizeof text,
                 "%u ns, rings of %u and %u KiB, %u of the stack, %d, %u links, %u ms",
                 (unsigned)plan.source.period_ns, (unsigned)plan.source.ring_bytes / 1024,
                 (unsigned)plan.source.signal_bytes / 1024, (unsigned)plan.source.stack_bytes,
                 plan.source.signal_number, (unsigned)plan.max_links,
                 (unsigned)(plan.export_ns / OTELI_NS_PER_MS));
        assert_string_equal(text, table[i].plan);
    }
    for (size_t i = 0; i < sizeof rings / sizeof rings[0]; i++) {
        const struct oteli_profiler_plan plan =
            plan_of((otel_profiler_options){.frequency_hz = rings[i].hz,
                                            .ring_kib = rings[i].ring_kib,
                                            .stack_scan_bytes = rings[i].scan});
        assert_int_equal(plan.source.ring_bytes, rings[i].expected_kib * 1024);
        assert_int_equal(plan.source.stack_bytes, rings[i].expected_scan);
        if (rings[i].ring_kib == 0)
            assert_int_equal(plan.source.signal_bytes, 64 * 1024);
    }
}

/* Samples are taken to have 1 KiB, and the copy of the stack besides. */
TEST(a_ring_is_half_full_after_so_many_samples)
{
    static const struct {
        uint32_t hz, ring_kib;
        uint64_t ms;
    } table[] = {{1000, 64, 16}, {100, 64, 60}, {1, 64, 6000}, {10000, 4, 0}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct oteli_profiler_plan plan = plan_of(
            (otel_profiler_options){.frequency_hz = table[i].hz, .ring_kib = table[i].ring_kib});
        assert_int_equal(oteli_profiler_half_full_ns(&plan.source) / OTELI_NS_PER_MS, table[i].ms);
    }
}

/* There is no exporter in them, so nothing starts; those that end before it have none either. */
TEST(nothing_is_read_behind_the_size_of_options)
{
    enum { MORE = 64 };
    struct {
        otel_profiler_options options;
        char more[MORE];
    } longer = {.options.size = sizeof longer};
    otel_profiler_options *shorter =
        guarded_copy(&longer.options, offsetof(otel_profiler_options, exporter));
    shorter->size = offsetof(otel_profiler_options, exporter);
    otel_profiler *profiler;
    memset(longer.more, 0xA5, sizeof longer.more);

    assert_int_equal(otel_profiler_start(&longer.options, &profiler), OTEL_ERROR_NO_MEMORY);
    assert_int_equal(otel_profiler_start(shorter, &profiler), OTEL_ERROR_NO_MEMORY);
    longer.options.size = 0;
    assert_int_equal(otel_profiler_start(&longer.options, &profiler), OTEL_ERROR_INVALID_ARGUMENT);
}
