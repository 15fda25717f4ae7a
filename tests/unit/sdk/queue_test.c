/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/queue_test.c - specification of how much the queue takes by default, and of what
 * the log says when it is full. The receiver is stalled: the worker does nothing until a test says
 * so. */
#include "common/log.h"
#include "tests/support/faked.h"
#include "tests/support/said.h"
#include "tests/support/unit.h"

enum { BURST = 20000, DEFAULT_BYTES = 16 * 1024 * 1024, LARGE = 3900, MIB = 1024 * 1024 };

static char large[LARGE + 1];

static int begin(void **state)
{
    const int status = faked_begin(state);
    memset(large, 'x', LARGE);
    said_begin(OTEL_LOG_WARN);
    return status;
}

static int end(void **state)
{
    said_end();
    return by_hand_end(state);
}

AROUND_EACH(begin, end);

/* The worker is the test. */
static void start(otel_sdk_options options)
{
    by_hand(1, &options);
    oteli_log_set_level(OTEL_LOG_WARN);
}

static uint64_t dropped(otel_drop_reason reason)
{
    return hand_counts(&hand).dropped[reason];
}

static void end_large_spans(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const otel_span span = otel_span_enter(hand.tracer, "large", NULL);
        otel_span_set_string(span, "text", large);
        otel_span_end(span);
    }
}

TEST(by_default_a_burst_of_small_spans_finds_room)
{
    start((otel_sdk_options){.bsp_max_queue_size = 0});
    hand_spans(&hand, "a", BURST);
    hand_flush(&hand);
    assert_int_equal(fake->spans, BURST);
    assert_int_equal(said_lines, 0);
}

/* spec: P4 */
/* spec: E-OTEL_BSP_MAX_QUEUE_SIZE */
TEST(a_size_that_is_given_is_kept_and_named_when_it_is_reached)
{
    start((otel_sdk_options){.bsp_max_queue_size = 2048});
    hand_spans(&hand, "a", BURST);
    assert_int_equal(dropped(OTEL_DROP_QUEUE_FULL), BURST - 2048);
    hand_flush(&hand);
    assert_int_equal(fake->spans, 2048);
    assert_int_equal(said_lines, 1);
    assert_string_equal(
        said, "losing spans: the queue is full with 2048 spans; 17952 spans are lost so far "
              "(OTEL_BSP_MAX_QUEUE_SIZE makes room for more)\n");
}

TEST(large_spans_are_bounded_by_their_bytes_which_are_named)
{
    start((otel_sdk_options){.bsp_max_queue_size = 0});
    end_large_spans(BURST);
    assert_int_equal(dropped(OTEL_DROP_QUEUE_FULL), 0);
    assert_in_range(BURST - dropped(OTEL_DROP_BYTE_LIMIT), 2048, DEFAULT_BYTES / LARGE);
    hand_flush(&hand);
    assert_int_equal(said_lines, 1);
    assert_non_null(strstr(said, "losing spans: the queue is full with 16777216 bytes; "));
    assert_non_null(strstr(said, "(OTEL_C_QUEUE_MAX_BYTES makes room for more)\n"));
    assert_null(strstr(said, "OTEL_BSP_MAX_QUEUE_SIZE"));
}

/* A receiver that takes everything is no reason to lose spans. */
TEST(the_worker_is_woken_before_the_bytes_are_used_up)
{
    start((otel_sdk_options){.queue_max_bytes = MIB, .bsp_max_export_batch_size = 4096});
    hand_spans(&hand, "first", 1); /* it is woken for the first one */
    hand_round(&hand);
    (void)oteli_waker_arm(&hand.engine->waker, 4096);
    const uint64_t before = hand.engine->waker.wakes;
    end_large_spans(MIB / 4 / LARGE);
    assert_int_equal(hand.engine->waker.wakes, before);
    end_large_spans(MIB / 2 / LARGE);
    assert_int_equal(hand.engine->waker.wakes, before + 1);
    hand_round(&hand);
    assert_true(fake->spans >= MIB / 2 / LARGE);
    assert_int_equal(dropped(OTEL_DROP_BYTE_LIMIT), 0);
}
