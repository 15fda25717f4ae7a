/* SPDX-License-Identifier: Apache-2.0 */
/* R27: in front of receivers with limits from 64 KiB to 20 MiB, spans of 1 byte to 8 MiB: lost are
 * only those that alone are above the limit, and all of them are counted. */
#include "tests/support/otlp_wire.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>

enum { KIB = 1024, MIB = 1024 * KIB, OVERHEAD = KIB, SMALL_SPANS = 200 };

#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)

/* Names; not so near to the limits that what is around them counts. */
static const size_t large[] = {40 * KIB,   60 * KIB, 70 * KIB, 500 * KIB, 1000 * KIB,
                               1100 * KIB, 3 * MIB,  5 * MIB,  8 * MIB};
enum { LARGE_SPANS = sizeof large / sizeof *large };

/* Small spans with some of the large ones among them; returns how many are in the batch. */
static size_t fill(struct wire *wire, size_t limit)
{
    uint64_t id = 1;
    wire_clear(wire);
    for (size_t i = 0; i < LARGE_SPANS; i++) {
        for (size_t k = 0; k < SMALL_SPANS / LARGE_SPANS; k++)
            wire_add(wire, id++, 1 + (i * 131 + k * 17) % KIB);
        if (large[i] < 64 * limit) /* the test should end some day */
            wire_add(wire, id++, large[i]);
    }
    return (size_t)id - 1;
}

static size_t expected_losses(size_t limit)
{
    size_t count = 0;
    for (size_t i = 0; i < LARGE_SPANS; i++)
        count += large[i] < 64 * limit && large[i] + OVERHEAD > limit;
    return count;
}

static void export_with_limit(unsigned way, size_t limit, enum fault_refusal refusal,
                              const otel_otlp_options *options)
{
    struct wire wire;
    wire_init(&wire, way,
              &(struct fault_peer_options){
                  .max_request_bytes = limit, .refusal = refusal, .forgets = true},
              options);
    const size_t spans = fill(&wire, limit);

    wire_export(&wire);

    const size_t lost = expected_losses(limit);
    const struct fault_span_counts counts = fault_peer_spans(wire.peer);
    assert_only_dropped(&wire.fixture, OTEL_DROP_TOO_LARGE, lost);
    assert_int_equal(counts.taken, spans - lost);
    assert_int_equal(counts.taken_repeatedly, 0);
    assert_null(fault_peer_problem(wire.peer));
    wire_fini(&wire);
}

AROUND_ALL(wire_set_up, wire_tear_down);

TEST(R27_only_spans_that_alone_are_too_large_are_lost)
{
    static const size_t limits[] = {64 * KIB, MIB, 4 * MIB, 20 * MIB};
    (void)state;
    FOR_EACH_PLAIN_WAY(way)
    {
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i += way == 0 ? 1 : 2)
            export_with_limit(way, limits[i], (enum fault_refusal)(i / 2 % 2), NULL);
    }
}

TEST(R27_the_limit_counts_without_compression)
{
    FOR_EACH_PLAIN_WAY(way)
    {
        export_with_limit(way, 64 * KIB, FAULT_REFUSAL_413,
                          OPTIONS(.compression = OTEL_OTLP_COMPRESSION_GZIP));
        export_with_limit(way, 64 * KIB, FAULT_REFUSAL_400,
                          OPTIONS(.compression = OTEL_OTLP_COMPRESSION_GZIP));
    }
}

TEST(R27_requests_are_not_larger_than_the_option_says)
{
    FOR_EACH_PLAIN_WAY(way)
    {
        struct wire wire;
        wire_init(&wire, way, NULL, OPTIONS(.max_request_bytes = 64 * KIB));
        const size_t spans = fill(&wire, 64 * KIB);
        const size_t lost = expected_losses(64 * KIB);

        wire_export(&wire);

        assert_only_dropped(&wire.fixture, OTEL_DROP_TOO_LARGE, lost);
        assert_int_equal(fault_peer_spans(wire.peer).taken, spans - lost);
        assert_true(fault_peer_spans(wire.peer).largest_request <= 64 * KIB);
        wire_fini(&wire);
    }
}
