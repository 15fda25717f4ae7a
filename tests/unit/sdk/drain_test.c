/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/drain_test.c - specification of sdk/engine/queue.c and sdk/engine/drain.c:
 * how much may wait, how ended spans are taken out of lines, and when lines are given back. */
#include "api/record/mount.h"
#include "common/log.h"
#include "tests/support/faked.h"
#include "tests/support/unit.h"
#include "tests/support/warnings.h"

#include <stdlib.h>
#include <string.h>

static void start(int64_t queue, int64_t batch)
{
    by_hand(1,
            &(otel_sdk_options){.bsp_max_queue_size = queue, .bsp_max_export_batch_size = batch});
}

/* End a span with a text of this length in it. */
static void large_span(const char *name, size_t length)
{
    char *text = malloc(length + 1);
    assert_non_null(text);
    memset(text, 'x', length);
    text[length] = '\0';
    const otel_span span = otel_span_enter(hand.tracer, name, NULL);
    otel_span_set_string(span, "text", text);
    otel_span_end(span);
    free(text);
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
        start(sizes[i], 1);
        for (unsigned k = 1; k <= 5; k++) {
            hand_spans(&hand, "a", (size_t)size);
            assert_dropped(OTEL_DROP_QUEUE_FULL, 5 * (k - 1));
            hand_spans(&hand, "a", 5);
            assert_dropped(OTEL_DROP_QUEUE_FULL, 5 * k);
            hand_flush(&hand);
            assert_int_equal(fake->spans, size * k);
        }
        by_hand_end(NULL);
        faked_begin(NULL);
    }
}

/* spec: P8 performance.md#trade-off-between-non-blocking-and-memory-consumption SHOULD stable */
/* spec: O6 performance.md#trade-off-between-non-blocking-and-memory-consumption SHOULD stable */
TEST(O6_a_full_queue_is_said_when_it_begins_to_lose_and_when_it_does_not)
{
    start(50, 10);
    oteli_log_set_level(OTEL_LOG_INFO);
    otel_log_set_handler(warnings_count, NULL);
    warnings = 0;

    for (unsigned i = 0; i < 3; i++) {
        hand_spans(&hand, "a", 70);
        if (i == 0)
            hand_round(&hand); /* it is full */
        else
            hand_flush(&hand);
        assert_int_equal(warnings, 1);
        assert_non_null(strstr(last_warning, "losing spans: the queue is full with 50 spans; "));
        assert_non_null(strstr(last_warning, "20 spans are lost so far"));
    }
    hand_spans(&hand, "a", 1);
    hand_tick(&hand);

    assert_int_equal(warnings, 2);
    assert_non_null(strstr(last_warning, "60 spans were lost"));
    assert_dropped(OTEL_DROP_QUEUE_FULL, 60);
    otel_log_set_handler(NULL, NULL);
}

TEST(full_lines_come_through_the_ring_and_are_used_again)
{
    size_t allocated = 0;
    start(100000, 512);
    for (unsigned i = 1; i <= 10; i++) {
        hand_spans(&hand, "a", i == 1 ? 10000 : 9000);
        assert_true(oteli_lines_bytes() > 10 * OTELI_LINE_BYTES);
        assert_true(oteli_ring_head(&hand.engine->ring) > 10 * i);

        hand_flush(&hand);

        assert_int_equal(fake->spans, 9000 * i + 1000);
        assert_int_equal(oteli_lines_bytes(), OTELI_LINE_BYTES);
        assert_true(hand.engine->ring.tail == oteli_ring_head(&hand.engine->ring));
        if (i == 1)
            allocated = oteli_leaks_count();
    }
    assert_int_equal(oteli_leaks_count(), allocated);
}

/* A producer took its ticket, was preempted, and publishes its line now. */
static void publish(uint64_t ticket, struct oteli_line *late)
{
    struct oteli_ring *const ring = &hand.engine->ring;
    ring->slots[ticket & ring->mask].line = late;
    oteli_store_release_64(&ring->slots[ticket & ring->mask].sequence, ticket + 1);
}

/* Before it could publish: the others' lines behind it are delivered all the same. */
TEST(a_preempted_producer_delays_nobody)
{
    start(10000, 100);
    const uint64_t ticket = oteli_add_full_64(&hand.engine->ring.head, 1);
    hand_spans(&hand, "a", 1000);

    hand_flush(&hand);
    assert_int_equal(fake->spans, 1000);

    publish(ticket, oteli_line_get(oteli_self, 8));
    hand_spans(&hand, "b", 1);
    hand_flush(&hand);
    assert_int_equal(fake->spans, 1001);
    assert_int_equal(oteli_lines_bytes(), OTELI_LINE_BYTES);
}

/* The lines behind the preempted one, a large one among them, are empty before they can
 * leave the ring: when they leave, nobody may look at them again. */
TEST(lines_that_left_the_ring_are_not_looked_at_again)
{
    start(10000, 100);
    struct oteli_line *late = oteli_line_get(oteli_self, 8);
    const uint64_t ticket = oteli_add_full_64(&hand.engine->ring.head, 1);
    large_span("large", 1 << 20);
    large_span("large", 1 << 20);
    hand_flush(&hand);
    assert_int_equal(fake->spans, 2);

    publish(ticket, late);
    hand_flush(&hand);

    assert_int_equal(fake->spans, 2);
    assert_int_equal(oteli_lines_bytes(), 0);
}

/* Its thread was inside the SDK until the shutdown's deadline. */
TEST(a_line_that_came_too_late_is_not_lost_for_the_pool)
{
    start(1000, 10);
    hand_spans(&hand, "a", 1);
    hand_ask_to_stop(&hand, UINT64_MAX - 1);
    assert_false(hand_round(&hand));

    struct oteli_line *late = oteli_line_get(oteli_self, 1 << 20);
    assert_non_null(late);
    oteli_ring_put(&hand.engine->ring, late);

    /* hand_stop and the count of allocations say the rest. */
}

/* A collected stretch of `count` spans of this name. */
static otel_lines *collect(const char *name, size_t count)
{
    otel_lines_begin();
    hand_spans(&hand, name, count);
    otel_lines *lines = otel_lines_end();
    assert_int_equal(otel_lines_size(lines), count);
    return lines;
}

/* Mount it under a span that is open, and let go of it. */
static void mount_once(const char *name, size_t count)
{
    otel_lines *lines = collect(name, count);
    const otel_span parent = otel_span_start(hand.tracer, "parent", NULL);
    otel_lines_mount(lines, &parent, 1, NULL);
    otel_span_cancel(parent);
    otel_lines_free(lines);
}

static void mount_twice(otel_lines *lines)
{
    const otel_span parents[] = {otel_span_start(hand.tracer, "p", NULL),
                                 otel_span_start(hand.tracer, "q", NULL)};
    otel_lines_mount(lines, parents, 2, NULL);
    otel_span_cancel(parents[0]);
    otel_span_cancel(parents[1]);
}

TEST(a_mount_alone_wakes_the_worker)
{
    start(100, 10);
    const otel_span parent = otel_span_start(hand.tracer, "parent", NULL);
    otel_lines *lines = collect("m", 10);
    (void)by_hand_play("round tick tick"); /* it is asleep then */
    const uint64_t rings = hand.engine->waker.wakes;
    otel_lines_mount(lines, &parent, 1, NULL);
    assert_int_equal(hand.engine->waker.wakes, rings + 1);
    otel_span_cancel(parent);
    otel_lines_free(lines);
}

/* The worker is in the middle of a mount when its line goes into the ring; it goes on with
 * other lines, which have mounts too, and comes back. */
static void trace_lines_full(void *context, otel_export *call)
{
    size_t *left = context;
    (void)call;
    if (*left == 0)
        return;
    --*left;
    hand_spans(&hand, "x", 200);
    mount_once("n", 15);
}

TEST(mounts_are_finished_whatever_comes_in_between)
{
    size_t left = 4;
    fake->during = trace_lines_full;
    fake->context = &left;
    start(10000, 10);
    mount_once("m", 35);

    hand_flush(&hand);
    hand_flush(&hand);

    assert_int_equal(left, 0);
    assert_int_equal(fake->spans, 35 + 4 * (200 + 15));
    assert_int_equal(hand_counts(&hand).dropped[OTEL_DROP_QUEUE_FULL], 0);
}

TEST(spans_of_a_mount_without_memory_are_counted)
{
    start(100, 20);
    mount_once("m", 3);
    const uint64_t reserved = hand.engine->reserved;
    oteli_leaks_fail_at(1);

    hand_flush(&hand);

    assert_string_equal(fake->text, "m m|");
    assert_int_equal(hand.engine->pipelines[0].dropped[OTEL_DROP_NO_MEMORY], 1);
    assert_int_equal(hand.engine->reserved, reserved - 3);
    assert_int_equal(oteli_waker_waiting(&hand.engine->waker), 0);
}

TEST(a_mount_is_left_over_with_all_of_its_spans)
{
    start(1000, 10);
    mount_once("m", 25);
    hand_spans(&hand, "a", 2);
    assert_int_equal(oteli_drain_leftover(hand.engine), 27);

    oteli_drain_begin(hand.engine);
    assert_false(oteli_drain_continue(hand.engine));

    assert_int_equal(oteli_drain_leftover(hand.engine), 17);
}

/* It came too late for the worker. */
TEST(a_line_that_is_given_back_lets_go_of_its_mounts)
{
    start(1000, 10);
    otel_lines *lines = collect("m", 5);
    mount_twice(lines);
    assert_int_equal(lines->members, 3);
    hand_spans(&hand, "x", 200); /* the line goes into the ring */

    oteli_drain_fini(hand.engine);

    assert_int_equal(lines->members, 1);
    otel_lines_free(lines);
}

TEST(a_span_that_cannot_be_named_is_counted)
{
    start(100, 10);
    otel_span_end(otel_span_enter_address(hand.tracer, (const void *)0x1000));
    const uint64_t reserved = hand.engine->reserved;
    oteli_leaks_fail_at(1);

    hand_flush(&hand);

    assert_int_equal(fake->batches, 0);
    assert_int_equal(hand.engine->pipelines[0].dropped[OTEL_DROP_NO_MEMORY], 1);
    assert_int_equal(hand.engine->reserved, reserved - 1);
}
