/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/worker_pending_test.c - specification of sdk/worker.c where an exporter has to be
 * waited for: the next batch is prepared meanwhile, and who may not wait leaves the pass and goes
 * on with it later. The test is the worker, and the clock stands still unless it is moved. */
#include "sdk/engine.h"

#include "tests/support/fake_exporter.h"
#include "tests/support/hand_engine.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <string.h>

static struct fake_exporter fake;
static struct hand_engine hand;

static int begin(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    hand_stop(&hand);
    assert_int_equal(fake.frees, 1);
    oteli_leaks_check();
    return 0;
}

/* Queue and batch of this size, a tick of 1000 ms. */
static void start(int64_t queue, int64_t batch)
{
    const otel_exporter exporter = fake_exporter(&fake);
    hand_start(&hand, OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                       .bsp_max_queue_size = queue, .bsp_schedule_delay = 1000,
                                       .bsp_max_export_batch_size = batch, .clock = "fake"));
}

static enum oteli_round go_on(void)
{
    return oteli_worker_round(hand.engine, false, &hand.wanted, &hand.deadline_ns);
}

static uint64_t ask_for_a_flush(void)
{
    return oteli_add_full_64(&hand.engine->flush_wanted, 1) + 1;
}

/* Rounds until nothing is left to do, each export being polled as often as it wants to be. */
static void go_on_to_the_end(void)
{
    for (unsigned i = 0; i < 1000 && go_on() != OTELI_ROUND_IDLE; i++)
        continue;
    assert_int_equal(go_on(), OTELI_ROUND_IDLE);
    assert_int_equal(fake.overlaps, 0);
    assert_int_equal(fake.unprepared, 0);
}

AROUND_EACH(begin, end);

TEST(the_next_batch_is_prepared_while_one_is_in_flight)
{
    fake.pending = 2;
    start(1000, 5);
    hand_spans(&hand, "a", 5);
    hand_spans(&hand, "b", 5);

    (void)ask_for_a_flush();
    assert_int_equal(go_on(), OTELI_ROUND_PENDING);

    assert_string_equal(fake.calls, "EPo");
    assert_string_equal(fake.text, "a a a a a|");
    assert_string_equal(fake.prepared_text, "b b b b b|");
    go_on_to_the_end();
    assert_string_equal(fake.calls, "EPooEooF");
    assert_string_equal(fake.text, "a a a a a|b b b b b|");
}

TEST(a_batch_is_prepared_once_and_is_what_is_exported_next)
{
    fake.pending = 3;
    start(1000, 5);
    hand_spans(&hand, "a", 5);
    hand_spans(&hand, "b", 5);
    hand_spans(&hand, "c", 2);

    (void)ask_for_a_flush();
    go_on_to_the_end();

    assert_string_equal(fake.calls, "EPoooEPoooEoooF");
    assert_string_equal(fake.text, "a a a a a|b b b b b|c c|");
    assert_string_equal(fake.prepared_text, "c c|");
}

TEST(with_nothing_behind_it_nothing_is_prepared)
{
    fake.pending = 3;
    start(1000, 5);
    hand_spans(&hand, "a", 5);

    (void)ask_for_a_flush();
    go_on_to_the_end();

    assert_string_equal(fake.calls, "EoooF");
}

TEST(a_batch_that_is_not_full_is_not_prepared_when_only_whole_ones_go)
{
    fake.pending = 2;
    start(1000, 60);
    hand_round(&hand);
    hand_spans(&hand, "a", 100);

    assert_int_equal(go_on(), OTELI_ROUND_PENDING);
    go_on_to_the_end();

    assert_string_equal(fake.calls, "Eoo");
    assert_int_equal(fake.spans, 60);
}

TEST(exports_that_are_done_at_once_are_not_prepared)
{
    start(1000, 5);
    hand_spans(&hand, "a", 12);

    hand_flush(&hand);

    assert_string_equal(fake.calls, "EEEF");
}

/* The worker of a thread waits; the order is the same. */
TEST(a_worker_that_waits_prepares_before_it_does)
{
    fake.pending = 2;
    start(1000, 5);
    hand_spans(&hand, "a", 8);

    hand_flush(&hand);

    assert_string_equal(fake.calls, "EPooEooF");
    assert_int_equal(fake.waits, 4);
}

/* spec: P9 */
TEST(who_may_not_wait_never_does)
{
    fake.pending = 20;
    start(1000, 5);
    hand_spans(&hand, "a", 23);

    (void)ask_for_a_flush();
    go_on_to_the_end();

    assert_int_equal(fake.waits, 0);
    assert_int_equal(fake.spans, 23);
}

TEST(what_ends_during_an_export_is_of_the_next_pass)
{
    fake.pending = 2;
    start(1000, 10);
    hand_spans(&hand, "a", 3);
    const uint64_t ticket = ask_for_a_flush();
    assert_int_equal(go_on(), OTELI_ROUND_PENDING);

    hand_spans(&hand, "b", 3);
    go_on_to_the_end();

    assert_true(hand.engine->flush_done == ticket);
    assert_string_equal(fake.text, "a a a|");
    hand_flush(&hand);
    assert_string_equal(fake.text, "a a a|b b b|");
}

/* spec: P10 */
TEST(a_flush_that_is_asked_for_during_an_export_has_what_ended_before_it)
{
    fake.pending = 3;
    start(1000, 10);
    hand_spans(&hand, "a", 3);
    const uint64_t first = ask_for_a_flush();
    assert_int_equal(go_on(), OTELI_ROUND_PENDING);

    hand_spans(&hand, "b", 3);
    const uint64_t second = ask_for_a_flush();
    while (hand.engine->flush_done < first)
        assert_int_not_equal(go_on(), OTELI_ROUND_IDLE);
    assert_string_equal(fake.text, "a a a|");
    assert_true(hand.engine->flush_done == first);
    go_on_to_the_end();

    assert_true(hand.engine->flush_done == second);
    assert_string_equal(fake.text, "a a a|b b b|");
}

TEST(no_batch_is_larger_than_its_limit_also_when_passes_are_left)
{
    fake.pending = 2;
    start(1000, 7);
    hand_spans(&hand, "a", 40);
    (void)ask_for_a_flush();

    while (go_on() == OTELI_ROUND_PENDING)
        hand_spans(&hand, "b", 3);
    hand_flush(&hand);

    assert_int_equal(fake.largest, 7);
    assert_int_equal(fake.unprepared, 0);
    const struct counted counts = hand_counts(&hand);
    assert_int_equal(fake.spans + counts.dropped[OTEL_DROP_QUEUE_FULL], counts.ended);
}

TEST(a_shutdown_during_an_export_delivers_the_rest)
{
    fake.pending = 2;
    start(1000, 5);
    hand_spans(&hand, "a", 8);
    (void)ask_for_a_flush();
    assert_int_equal(go_on(), OTELI_ROUND_PENDING);
    hand_spans(&hand, "b", 3);

    hand_ask_to_stop(&hand, UINT64_MAX - 1);
    for (unsigned i = 0; i < 100 && !hand.has_stopped; i++)
        hand.has_stopped = go_on() == OTELI_ROUND_STOPPED;

    assert_true(hand.has_stopped);
    assert_string_equal(fake.text, "a a a a a|a a a|b b b|");
    assert_int_equal(fake.unprepared, 0);
    assert_int_equal(hand.engine->pipelines[0].delivered, 11);
}

TEST(a_shutdown_with_no_time_left_drops_what_was_prepared)
{
    fake.pending = 100;
    start(1000, 5);
    hand_spans(&hand, "a", 8);
    (void)ask_for_a_flush();
    assert_int_equal(go_on(), OTELI_ROUND_PENDING);
    assert_int_equal(fake.prepares, 1);

    hand_ask_to_stop(&hand, oteli_fake_clock.monotonic_ns);
    for (unsigned i = 0; i < 100 && !hand.has_stopped; i++)
        hand.has_stopped = go_on() == OTELI_ROUND_STOPPED;

    assert_true(hand.has_stopped);
    assert_string_equal(fake.calls, "EPoAFF");
    assert_int_equal(hand.engine->pipelines[0].dropped[OTEL_DROP_SHUTDOWN_TIMEOUT], 3);
}

static size_t write_name(const void *address, char *name, size_t size)
{
    (void)address;
    if (size > 4)
        memcpy(name, "main", 4);
    return 4;
}

TEST(a_batch_has_its_names_when_it_is_prepared)
{
    otel_name_resolver *const before = NULL;
    fake.pending = 2;
    start(1000, 2);
    otel_set_name_resolver(write_name);
    hand_spans(&hand, "a", 2);
    otel_span_end(otel_span_enter_address(hand.tracer, (const void *)&fake));

    (void)ask_for_a_flush();
    assert_int_equal(go_on(), OTELI_ROUND_PENDING);

    assert_string_equal(fake.prepared_text, "main|");
    otel_set_name_resolver(before);
    go_on_to_the_end();
    assert_string_equal(fake.text, "a a|main|");
}
