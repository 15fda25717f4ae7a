/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/worker_pending_test.c - specification of sdk/worker.c where an exporter has to be
 * waited for: the next batch is prepared meanwhile, and who may not wait leaves the pass and goes
 * on with it later; and of sdk/attend.c: when exporters that have something to do without a batch
 * are called. The test is the worker, and the clock stands still unless it is moved. */
#include "tests/support/faked.h"
#include "tests/support/unit.h"

#include <limits.h>
#include <string.h>

static void start(int64_t queue, int64_t batch)
{
    by_hand(1,
            &(otel_sdk_options){.bsp_max_queue_size = queue, .bsp_max_export_batch_size = batch});
}

AROUND_EACH(faked_begin, by_hand_end);

TEST(the_next_batch_is_prepared_once_while_one_is_in_flight)
{
    fake->pending = 3;
    start(1000, 5);

    assert_string_equal(by_hand_play("a5 b5 c2 ask go"), "EPo pending");
    assert_string_equal(fake->text, "a a a a a|");
    assert_string_equal(fake->prepared_text, "b b b b b|");

    assert_string_equal(by_hand_play("end"), "ooEPoooEoooF idle");
    assert_string_equal(fake->text, "a a a a a|b b b b b|c c|");
    assert_string_equal(fake->prepared_text, "c c|");
}

TEST(nothing_is_prepared_where_nothing_is_behind_or_nothing_is_waited_for)
{
    start(1000, 5);
    assert_string_equal(by_hand_play("a12 ask end"), "EEEF idle");
    fake->pending = 3;
    assert_string_equal(by_hand_play("a5 ask end"), "EoooF idle");
}

TEST(a_batch_that_is_not_full_is_not_prepared_when_only_whole_ones_go)
{
    fake->pending = 2;
    start(1000, 60);
    assert_string_equal(by_hand_play("round a100 go end"), "never asleep; Eo pending; o idle");
    assert_int_equal(fake->spans, 60);
}

/* The worker of a thread waits; the order is the same. */
TEST(a_worker_that_waits_prepares_before_it_does)
{
    fake->pending = 2;
    start(1000, 5);
    assert_string_equal(by_hand_play("a8 flush"), "EPooEooF");
    assert_int_equal(fake->waits, 4);
}

/* spec: P9 */
TEST(who_may_not_wait_never_does)
{
    fake->pending = 20;
    start(1000, 5);
    (void)by_hand_play("a23 ask end");
    assert_int_equal(fake->waits, 0);
    assert_int_equal(fake->spans, 23);
}

/* spec: P10 */
TEST(a_flush_that_is_asked_for_during_an_export_has_what_ended_before_it)
{
    fake->pending = 3;
    start(1000, 10);
    assert_string_equal(by_hand_play("a3 ask go b3 ask go go"), "Eo pending; o pending; oF worked");
    assert_string_equal(fake->text, "a a a|");
    assert_true(hand.engine->flush_done == 1);

    assert_string_equal(by_hand_play("end"), "EoooF idle");
    assert_string_equal(fake->text, "a a a|b b b|");
    assert_true(hand.engine->flush_done == 2);
}

TEST(no_batch_is_larger_than_its_limit_also_when_passes_are_left)
{
    fake->pending = 2;
    start(1000, 7);
    (void)by_hand_play("a40 ask");
    while (by_hand_go_on() == OTELI_ROUND_PENDING)
        hand_spans(&hand, "b", 3);
    hand_flush(&hand);

    assert_int_equal(fake->largest, 7);
    const struct counted counts = hand_counts(&hand);
    assert_int_equal(fake->spans + counts.dropped[OTEL_DROP_QUEUE_FULL], counts.ended);
}

TEST(a_shutdown_during_an_export_delivers_the_rest_if_it_has_time)
{
    fake->pending = 2;
    start(1000, 5);
    assert_string_equal(by_hand_play("a8 ask go b3 stop end"), "EPo pending; oEooFEooF stopped");
    assert_string_equal(fake->text, "a a a a a|a a a|b b b|");
    assert_string_equal(faked_sums(0), "11 started, 11 ended: delivered 11, dropped 0");
}

TEST(a_shutdown_with_no_time_left_drops_what_was_prepared)
{
    fake->pending = 100;
    start(1000, 5);
    assert_string_equal(by_hand_play("a8 ask go stop! end"), "EPo pending; AFF stopped");
    assert_int_equal(faked_stats(0).dropped[OTEL_DROP_SHUTDOWN_TIMEOUT], 3);
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
    fake->pending = 2;
    start(1000, 2);
    otel_set_name_resolver(write_name);
    hand_spans(&hand, "a", 2);
    otel_span_end(otel_span_enter_address(hand.tracer, (const void *)fakes));

    assert_string_equal(by_hand_play("ask go"), "EPo pending");

    assert_string_equal(fake->prepared_text, "main|");
    otel_set_name_resolver(NULL);
    (void)by_hand_play("end");
    assert_string_equal(fake->text, "a a|main|");
}

/* ---- exporters that are attended to ------------------------------------------------------------ */

static int attended_begin(void **state)
{
    faked_begin(state);
    fake->attends = true;
    fake->attend_ms = -1;
    return 0;
}

#define ATTENDED(name) TEST_WITH(attended_begin, by_hand_end, name)

static void start_with(size_t count, bool simple)
{
    by_hand(count, &(otel_sdk_options){.simple = simple, .bsp_max_export_batch_size = 5});
}

ATTENDED(one_that_wants_nothing_is_attended_to_at_first_and_after_exports)
{
    start_with(1, false);
    assert_string_equal(by_hand_play("round round a1 flush round"),
                        "T never asleep; never asleep; EFT; 1000 ms");
}

ATTENDED(its_time_is_a_deadline_of_the_worker_and_spans_wake_it_as_always)
{
    fake->attend_ms = 250;
    start_with(1, false);
    assert_string_equal(by_hand_play("round almost round tick"),
                        "T 250 ms asleep; 1 ms asleep; T 250 ms asleep");
}

ATTENDED(the_earlier_of_tick_and_its_time_counts)
{
    fake->attend_ms = 2500;
    start_with(1, false);
    assert_string_equal(by_hand_play("round a1 round tick tick tick"),
                        "T 2500 ms asleep; 1000 ms; ET 1000 ms; 1000 ms asleep; 500 ms asleep");
}

ATTENDED(at_once_is_after_the_batches_that_wait)
{
    fake->attend_ms = 0;
    start_with(1, false);
    assert_string_equal(by_hand_play("round a10 round round"), "T 0 ms asleep; EET 0 ms; T 0 ms");
}

ATTENDED(it_comes_between_exports_and_not_during_one)
{
    fake->attend_ms = 0;
    fake->pending = 3;
    start_with(1, false);
    assert_string_equal(by_hand_play("go a1 ask go go go"),
                        "T idle; Eo pending; o pending; oFT worked");
}

ATTENDED(once_the_sdk_stops_it_is_not_called_any_more)
{
    fake->attend_ms = 0;
    start_with(1, false);
    assert_string_equal(by_hand_play("round a1 stop round"), "T 0 ms asleep; EF stopped");
}

ATTENDED(a_stop_that_is_asked_for_during_an_export_is_noticed)
{
    fake->pending = 1;
    start_with(1, false);
    assert_string_equal(by_hand_play("round a5 ask stop round"), "T never asleep; EoF stopped");
}

static void ask_to_stop(void *context, otel_export *call)
{
    (void)context;
    (void)call;
    hand_ask_to_stop(&hand, UINT64_MAX - 1);
}

ATTENDED(a_stop_that_is_asked_for_in_the_middle_of_an_export_comes_next)
{
    fake->during = ask_to_stop;
    start_with(1, false);
    assert_string_equal(by_hand_play("round a1 flush round"), "T never asleep; EF; F stopped");
}

ATTENDED(each_exporter_has_its_own_time_however_long)
{
    fakes[0].attend_ms = 300;
    fakes[1].attends = true;
    fakes[1].attend_ms = 200;
    start_with(2, false);
    assert_string_equal(by_hand_play("round"), "T 200 ms asleep");
    fakes[0].attend_ms = fakes[1].attend_ms = INT_MAX;
    assert_string_equal(by_hand_play("tick tick"), "100 ms asleep; T 2147483547 ms asleep");
    assert_string_equal(fakes[1].calls, "TT");
}

ATTENDED(one_with_a_descriptor_is_called_whenever_the_worker_is_awake)
{
    fake->attend_ms = 5000;
    fake->has_descriptor = true;
    fake->descriptor_fd = 1; /* never waited for here */
    fake->descriptor_timeout_ms = 40;
    start_with(1, false);
    assert_string_equal(by_hand_play("round round"), "T 40 ms asleep; T 40 ms asleep");
    fake->descriptor_fd = -1;
    assert_string_equal(by_hand_play("round round"), "T 5000 ms asleep; 5000 ms asleep");
}

ATTENDED(without_it_or_made_before_there_was_such_a_thing_it_is_not_called)
{
    otel_exporter older = fake_exporter(&fakes[0]);
    older.size = offsetof(otel_exporter, attend);
    const otel_exporter exporters[] = {older, fake_exporter(&fakes[1])};
    hand_start(&hand,
               OTEL_SDK_OPTIONS(.exporters = exporters, .exporter_count = 2, .clock = "fake"));

    hand_round(&hand);

    assert_true(hand.deadline_ns == UINT64_MAX);
    assert_string_equal(fakes[0].calls, "");
    assert_string_equal(fakes[1].calls, "");
}

/* There is no thread to call it at other times. */
ATTENDED(in_a_simple_pipeline_it_comes_after_exports_at_its_time)
{
    fake->attend_ms = 100;
    start_with(1, true);

    assert_string_equal(by_hand_play("a2"), "ETET");
    fake->attend_ms = -1;
    assert_string_equal(by_hand_play("a1"), "ET");
}
