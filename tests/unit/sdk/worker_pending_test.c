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

static uint64_t ask_for_a_flush(void)
{
    return oteli_add_full_64(&hand.engine->flush_wanted, 1) + 1;
}

/* Rounds until nothing is left to do, each export being polled as often as it wants to be. */
static void go_on_to_the_end(void)
{
    for (unsigned i = 0; i < 1000 && by_hand_go_on() != OTELI_ROUND_IDLE; i++)
        continue;
    assert_int_equal(by_hand_go_on(), OTELI_ROUND_IDLE);
}

static void go_on_until_stopped(void)
{
    for (unsigned i = 0; i < 100 && !hand.has_stopped; i++)
        hand.has_stopped = by_hand_go_on() == OTELI_ROUND_STOPPED;
    assert_true(hand.has_stopped);
}

AROUND_EACH(faked_begin, by_hand_end);

TEST(the_next_batch_is_prepared_once_while_one_is_in_flight)
{
    fake->pending = 3;
    start(1000, 5);
    hand_spans(&hand, "a", 5);
    hand_spans(&hand, "b", 5);
    hand_spans(&hand, "c", 2);

    (void)ask_for_a_flush();
    assert_int_equal(by_hand_go_on(), OTELI_ROUND_PENDING);
    assert_string_equal(fake->calls, "EPo");
    assert_string_equal(fake->text, "a a a a a|");
    assert_string_equal(fake->prepared_text, "b b b b b|");
    go_on_to_the_end();

    assert_string_equal(fake->calls, "EPoooEPoooEoooF");
    assert_string_equal(fake->text, "a a a a a|b b b b b|c c|");
    assert_string_equal(fake->prepared_text, "c c|");
}

TEST(nothing_is_prepared_where_nothing_is_behind_or_nothing_is_waited_for)
{
    static const struct {
        uint64_t pending;
        size_t spans;
        const char *calls;
    } rows[] = {{3, 5, "EoooF"}, {0, 12, "EEEF"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fake->pending = rows[i].pending;
        start(1000, 5);
        hand_spans(&hand, "a", rows[i].spans);
        (void)ask_for_a_flush();
        go_on_to_the_end();
        assert_string_equal(fake->calls, rows[i].calls);
        by_hand_end(NULL);
        faked_begin(NULL);
    }
}

TEST(a_batch_that_is_not_full_is_not_prepared_when_only_whole_ones_go)
{
    fake->pending = 2;
    start(1000, 60);
    hand_round(&hand);
    hand_spans(&hand, "a", 100);

    assert_int_equal(by_hand_go_on(), OTELI_ROUND_PENDING);
    go_on_to_the_end();

    assert_string_equal(fake->calls, "Eoo");
    assert_int_equal(fake->spans, 60);
}

/* The worker of a thread waits; the order is the same. */
TEST(a_worker_that_waits_prepares_before_it_does)
{
    fake->pending = 2;
    start(1000, 5);
    hand_spans(&hand, "a", 8);

    hand_flush(&hand);

    assert_string_equal(fake->calls, "EPooEooF");
    assert_int_equal(fake->waits, 4);
}

/* spec: P9 */
TEST(who_may_not_wait_never_does)
{
    fake->pending = 20;
    start(1000, 5);
    hand_spans(&hand, "a", 23);

    (void)ask_for_a_flush();
    go_on_to_the_end();

    assert_int_equal(fake->waits, 0);
    assert_int_equal(fake->spans, 23);
}

/* spec: P10 */
TEST(a_flush_that_is_asked_for_during_an_export_has_what_ended_before_it)
{
    fake->pending = 3;
    start(1000, 10);
    hand_spans(&hand, "a", 3);
    const uint64_t first = ask_for_a_flush();
    assert_int_equal(by_hand_go_on(), OTELI_ROUND_PENDING);

    hand_spans(&hand, "b", 3);
    const uint64_t second = ask_for_a_flush();
    while (hand.engine->flush_done < first)
        assert_int_not_equal(by_hand_go_on(), OTELI_ROUND_IDLE);
    assert_string_equal(fake->text, "a a a|");
    assert_true(hand.engine->flush_done == first);
    go_on_to_the_end();

    assert_true(hand.engine->flush_done == second);
    assert_string_equal(fake->text, "a a a|b b b|");
}

TEST(no_batch_is_larger_than_its_limit_also_when_passes_are_left)
{
    fake->pending = 2;
    start(1000, 7);
    hand_spans(&hand, "a", 40);
    (void)ask_for_a_flush();

    while (by_hand_go_on() == OTELI_ROUND_PENDING)
        hand_spans(&hand, "b", 3);
    hand_flush(&hand);

    assert_int_equal(fake->largest, 7);
    const struct counted counts = hand_counts(&hand);
    assert_int_equal(fake->spans + counts.dropped[OTEL_DROP_QUEUE_FULL], counts.ended);
}

TEST(a_shutdown_during_an_export_delivers_the_rest)
{
    fake->pending = 2;
    start(1000, 5);
    hand_spans(&hand, "a", 8);
    (void)ask_for_a_flush();
    assert_int_equal(by_hand_go_on(), OTELI_ROUND_PENDING);
    hand_spans(&hand, "b", 3);

    hand_ask_to_stop(&hand, UINT64_MAX - 1);
    go_on_until_stopped();

    assert_string_equal(fake->text, "a a a a a|a a a|b b b|");
    assert_int_equal(hand.engine->pipelines[0].delivered, 11);
}

TEST(a_shutdown_with_no_time_left_drops_what_was_prepared)
{
    fake->pending = 100;
    start(1000, 5);
    hand_spans(&hand, "a", 8);
    (void)ask_for_a_flush();
    assert_int_equal(by_hand_go_on(), OTELI_ROUND_PENDING);
    assert_int_equal(fake->prepares, 1);

    hand_ask_to_stop(&hand, oteli_fake_clock.monotonic_ns);
    go_on_until_stopped();

    assert_string_equal(fake->calls, "EPoAFF");
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
    fake->pending = 2;
    start(1000, 2);
    otel_set_name_resolver(write_name);
    hand_spans(&hand, "a", 2);
    otel_span_end(otel_span_enter_address(hand.tracer, (const void *)fakes));

    (void)ask_for_a_flush();
    assert_int_equal(by_hand_go_on(), OTELI_ROUND_PENDING);

    assert_string_equal(fake->prepared_text, "main|");
    otel_set_name_resolver(NULL);
    go_on_to_the_end();
    assert_string_equal(fake->text, "a a|main|");
}

/* ---- exporters that are attended to ------------------------------------------------------------ */

enum { TICK_MS = 1000 };

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

static uint64_t now(void)
{
    return oteli_fake_clock.monotonic_ns;
}

ATTENDED(one_that_wants_nothing_is_attended_to_at_first_and_after_exports)
{
    start_with(1, false);

    hand_round(&hand);
    assert_true(hand.deadline_ns == UINT64_MAX);
    hand_round(&hand);
    assert_string_equal(fake->calls, "T");
    hand_spans(&hand, "a", 1);
    hand_flush(&hand);
    hand_round(&hand);

    assert_string_equal(fake->calls, "TEFT");
}

ATTENDED(its_time_is_a_deadline_of_the_worker)
{
    fake->attend_ms = 250;
    start_with(1, false);

    hand_round(&hand);
    assert_true(hand.deadline_ns == now() + 250 * NS_PER_MS);
    oteli_fake_clock.monotonic_ns = hand.deadline_ns - 1;
    hand_round(&hand);
    assert_string_equal(fake->calls, "T");
    hand_tick(&hand);

    assert_string_equal(fake->calls, "TT");
    assert_true(hand.deadline_ns == now() + 250 * NS_PER_MS);
    assert_true(oteli_asleep == hand.engine->sdk.generation); /* spans wake the worker as always */
}

ATTENDED(the_earlier_of_tick_and_its_time_counts)
{
    fake->attend_ms = 10 * TICK_MS;
    start_with(1, false);
    hand_round(&hand);
    const uint64_t its_ns = hand.deadline_ns;

    hand_spans(&hand, "a", 1);
    hand_round(&hand);

    assert_true(hand.deadline_ns == now() + (uint64_t)TICK_MS * NS_PER_MS);
    hand_tick(&hand);
    assert_string_equal(fake->text, "a|");
    while (hand.deadline_ns < its_ns)
        hand_tick(&hand);
    assert_true(hand.deadline_ns != UINT64_MAX);
}

ATTENDED(at_once_is_after_the_batches_that_wait)
{
    fake->attend_ms = 0;
    start_with(1, false);
    hand_round(&hand);
    assert_true(hand.deadline_ns <= now());

    hand_spans(&hand, "a", 10);
    hand_round(&hand);
    hand_round(&hand);

    assert_string_equal(fake->calls, "TEETT");
}

ATTENDED(it_comes_between_exports_and_not_during_one)
{
    fake->attend_ms = 0;
    fake->pending = 3;
    start_with(1, false);
    assert_int_equal(by_hand_go_on(), OTELI_ROUND_IDLE);

    hand_spans(&hand, "a", 1);
    (void)oteli_add_full_64(&hand.engine->flush_wanted, 1);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(by_hand_go_on(), OTELI_ROUND_PENDING);
    assert_int_equal(by_hand_go_on(), OTELI_ROUND_WORKED);

    assert_string_equal(fake->calls, "TEoooFT");
}

ATTENDED(once_the_sdk_stops_it_is_not_called_any_more)
{
    fake->attend_ms = 0;
    start_with(1, false);
    hand_round(&hand);
    hand_spans(&hand, "a", 1);

    hand_ask_to_stop(&hand, UINT64_MAX - 1);
    assert_false(hand_round(&hand));

    assert_string_equal(fake->calls, "TEF");
}

ATTENDED(a_stop_that_is_asked_for_during_an_export_is_noticed)
{
    fake->pending = 1;
    start_with(1, false);
    hand_round(&hand);
    hand_spans(&hand, "a", 5);
    (void)oteli_add_full_64(&hand.engine->flush_wanted, 1);

    oteli_store_release_64(&hand.engine->stop_deadline_ns, UINT64_MAX - 1);
    oteli_sdk_uninstall();
    assert_false(hand_round(&hand));

    assert_string_equal(fake->calls, "TEoF");
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
    hand_round(&hand);
    hand_spans(&hand, "a", 1);

    hand_flush(&hand);
    assert_false(hand_round(&hand));

    assert_string_equal(fake->calls, "TEFF");
}

ATTENDED(each_exporter_has_its_own_time_however_long)
{
    fakes[0].attend_ms = 300;
    fakes[1].attends = true;
    fakes[1].attend_ms = 200;
    start_with(2, false);

    hand_round(&hand);
    assert_true(hand.deadline_ns == now() + 200 * NS_PER_MS);
    fakes[0].attend_ms = fakes[1].attend_ms = INT_MAX;
    hand_tick(&hand);
    assert_true(hand.deadline_ns == now() + 100 * NS_PER_MS);
    hand_tick(&hand);

    assert_true(hand.deadline_ns == now() + ((uint64_t)INT_MAX - 100) * NS_PER_MS);
    assert_string_equal(fakes[0].calls, "TT");
    assert_string_equal(fakes[1].calls, "TT");
}

ATTENDED(one_with_a_descriptor_is_called_whenever_the_worker_is_awake)
{
    fake->attend_ms = 5000;
    fake->has_descriptor = true;
    fake->descriptor_fd = 1; /* never waited for here */
    fake->descriptor_timeout_ms = 40;
    start_with(1, false);

    hand_round(&hand);
    assert_true(hand.deadline_ns == now() + 40 * NS_PER_MS);
    hand_round(&hand);
    assert_string_equal(fake->calls, "TT");
    fake->descriptor_fd = -1;
    hand_round(&hand);
    hand_round(&hand);

    assert_string_equal(fake->calls, "TTT");
    assert_true(hand.deadline_ns == now() + UINT64_C(5000) * NS_PER_MS);
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

    hand_spans(&hand, "a", 2);
    assert_string_equal(fake->calls, "ETET");
    fake->attend_ms = -1;
    hand_spans(&hand, "b", 1);

    assert_string_equal(fake->calls, "ETETET");
}
