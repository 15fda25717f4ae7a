/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/queue_test.c - specification of sdk/queue.c: how much may wait. */
#include "common/log.h"
#include "tests/support/faked.h"
#include "tests/support/unit.h"

#include <stdlib.h>
#include <string.h>

static void start(int64_t queue, int64_t batch, int64_t bytes)
{
    by_hand(1, &(otel_sdk_options){.bsp_max_queue_size = queue,
                                   .bsp_max_export_batch_size = batch,
                                   .queue_max_bytes = bytes});
}

/* For the next row. */
static void start_again(int64_t queue, int64_t batch)
{
    if (hand.engine != NULL) {
        by_hand_end(NULL);
        faked_begin(NULL);
    }
    start(queue, batch, 0);
}

static void assert_dropped(otel_drop_reason reason, uint64_t count)
{
    assert_int_equal(hand_counts(&hand).dropped[reason], count);
}

AROUND_EACH(faked_begin, by_hand_end);

/* spec: P4 */
TEST(one_thread_fills_the_queue_exactly_and_again)
{
    static const int64_t sizes[] = {1, 2, 31, 32, 33, 100, 2048};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const uint64_t size = (uint64_t)sizes[i];
        start_again(sizes[i], 1);
        for (unsigned k = 1; k <= 5; k++) {
            hand_spans(&hand, "a", (size_t)size);
            assert_dropped(OTEL_DROP_QUEUE_FULL, 5 * (k - 1));
            hand_spans(&hand, "a", 5);
            assert_dropped(OTEL_DROP_QUEUE_FULL, 5 * k);
            hand_flush(&hand);
            assert_int_equal(fake->spans, size * k);
        }
    }
}

static size_t news;
static char last_news[200];

static void note(void *state, otel_log_level level, const char *message)
{
    (void)state;
    news += level == OTEL_LOG_WARN;
    strncpy(last_news, message, sizeof last_news - 1);
}

/* spec: P8 performance.md#trade-off-between-non-blocking-and-memory-consumption SHOULD stable */
/* spec: O6 performance.md#trade-off-between-non-blocking-and-memory-consumption SHOULD stable */
TEST(O6_a_full_queue_is_said_when_it_begins_to_lose_and_when_it_does_not)
{
    start(50, 10, 0);
    oteli_log_set_level(OTEL_LOG_INFO);
    otel_log_set_handler(note, NULL);
    news = 0;

    for (unsigned i = 0; i < 3; i++) {
        hand_spans(&hand, "a", 70);
        hand_flush(&hand);
        assert_int_equal(news, 1);
        assert_non_null(strstr(last_news, "losing spans: the queue of 50"));
        assert_non_null(strstr(last_news, "20 spans are lost so far"));
    }
    hand_spans(&hand, "a", 1);
    hand_flush(&hand);

    assert_int_equal(news, 2);
    assert_non_null(strstr(last_news, "60 spans were lost"));
    assert_dropped(OTEL_DROP_QUEUE_FULL, 60);
    otel_log_set_handler(NULL, NULL);
}

/* What a thread that stops keeps from the others is at most as much as it has used. */
TEST(lots_grow_with_what_a_thread_uses)
{
    start(2048, 512, 0);
    struct oteli_sdk *sdk = &hand.engine->sdk;
    uint32_t lot = 0;
    static const uint32_t expected[] = {1, 2, 4, 8, 16, 32};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        lot = oteli_queue_take_lot(sdk, lot);
        assert_int_equal(lot, expected[i]);
    }
    assert_int_equal(oteli_queue_take_lot(sdk, 0), 1);
    oteli_queue_give_room_back(sdk, 64);
}

TEST(spans_in_a_batch_still_count_until_it_is_exported)
{
    start(100, 60, 0);
    hand_spans(&hand, "a", 100);
    oteli_harvest_begin(hand.engine);
    assert_false(oteli_harvest_continue(hand.engine));

    hand_spans(&hand, "b", 10);

    assert_dropped(OTEL_DROP_QUEUE_FULL, 10);
    oteli_harvest_release(hand.engine, hand.engine->batch);
    hand_spans(&hand, "b", 60);
    assert_dropped(OTEL_DROP_QUEUE_FULL, 10);
}

TEST(lots_leave_room_for_every_thread)
{
    start(640, 10, 0);
    hand.engine->sdk.threads = 16;

    assert_int_equal(oteli_queue_take_lot(&hand.engine->sdk, 64), 640 / 8 / 16);

    hand.engine->sdk.threads = 1;
    assert_int_equal(oteli_queue_take_lot(&hand.engine->sdk, 64), 635 / 8 / 2);
    hand.engine->reserved = 0;
}

static void large_span(size_t length)
{
    char *text = malloc(length + 1);
    assert_non_null(text);
    memset(text, 'x', length);
    text[length] = '\0';
    const otel_span span = otel_span_enter(hand.tracer, "large", NULL);
    otel_span_set_string(span, "text", text);
    otel_span_end(span);
    free(text);
}

TEST(a_large_span_counts_with_all_of_its_bytes_and_one_above_the_limit_is_dropped_alone)
{
    start(1000, 10, 1 << 20);

    large_span(600 * 1024);
    assert_dropped(OTEL_DROP_BYTE_LIMIT, 0);
    large_span(600 * 1024);
    assert_dropped(OTEL_DROP_BYTE_LIMIT, 1);
    assert_true(oteli_lines_queued_bytes() <= 1 << 20);
    hand_flush(&hand);
    large_span(600 * 1024);
    assert_dropped(OTEL_DROP_BYTE_LIMIT, 1);
    hand_flush(&hand);
    large_span(2 << 20);
    hand_spans(&hand, "a", 1);
    hand_flush(&hand);

    assert_dropped(OTEL_DROP_BYTE_LIMIT, 2);
    assert_string_equal(fake->text, "large|large|a|");
}
