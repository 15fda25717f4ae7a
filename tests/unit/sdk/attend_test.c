/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/attend_test.c - specification of sdk/attend.c: when exporters that have something to
 * do without a batch are called. The test is the worker, and the clock stands still unless it is
 * moved. */
#include "sdk/engine.h"

#include "tests/support/fake_exporter.h"
#include "tests/support/hand_engine.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <limits.h>
#include <otel/otel.h>
#include <string.h>

enum { NS_PER_MS = 1000000, TICK_MS = 1000 };

static struct fake_exporter fakes[2];
static struct fake_exporter *const fake = &fakes[0];
static struct hand_engine hand;

static int begin(void **state)
{
    (void)state;
    memset(fakes, 0, sizeof fakes);
    fake->attends = true;
    fake->attend_ms = -1;
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    hand_stop(&hand);
    assert_int_equal(fake->frees, 1);
    assert_int_equal(fake->overlaps, 0);
    oteli_leaks_check();
    return 0;
}

/* Batches of 5, a tick of TICK_MS. */
static void start_with(size_t count, bool simple)
{
    const otel_exporter exporters[] = {fake_exporter(&fakes[0]), fake_exporter(&fakes[1])};
    hand_start(&hand, OTEL_SDK_OPTIONS(.exporters = exporters, .exporter_count = count,
                                       .simple = simple, .bsp_schedule_delay = TICK_MS,
                                       .bsp_max_export_batch_size = 5, .clock = "fake"));
}

static void start(void)
{
    start_with(1, false);
}

static uint64_t now(void)
{
    return oteli_fake_clock.monotonic_ns;
}

static enum oteli_round go_on(void)
{
    return oteli_worker_round(hand.engine, false, &hand.wanted, &hand.deadline_ns);
}

AROUND_EACH(begin, end);

TEST(without_it_there_is_nothing_to_wake_up_for)
{
    fake->attends = false;
    start();

    hand_round(&hand);

    assert_true(hand.deadline_ns == UINT64_MAX);
    assert_string_equal(fake->calls, "");
}

TEST(an_exporter_is_attended_to_before_the_first_export)
{
    start();

    hand_round(&hand);

    assert_string_equal(fake->calls, "T");
    assert_true(hand.deadline_ns == UINT64_MAX);
}

TEST(one_that_wants_nothing_is_left_alone_until_the_next_export)
{
    start();

    hand_round(&hand);
    hand_round(&hand);
    assert_string_equal(fake->calls, "T");
    hand_spans(&hand, "a", 1);
    hand_flush(&hand);
    hand_round(&hand);

    assert_string_equal(fake->calls, "TEFT");
}

TEST(its_time_is_a_deadline_of_the_worker)
{
    fake->attend_ms = 250;
    start();

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

TEST(the_earlier_of_tick_and_its_time_counts)
{
    fake->attend_ms = 10 * TICK_MS;
    start();
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

TEST(at_once_is_after_the_batches_that_wait)
{
    fake->attend_ms = 0;
    start();
    hand_round(&hand);
    assert_true(hand.deadline_ns <= now());

    hand_spans(&hand, "a", 10);
    hand_round(&hand);
    hand_round(&hand);

    assert_string_equal(fake->calls, "TEETT");
}

TEST(it_comes_between_exports_and_not_during_one)
{
    fake->attend_ms = 0;
    fake->pending = 3;
    start();
    assert_int_equal(go_on(), OTELI_ROUND_IDLE);

    hand_spans(&hand, "a", 1);
    (void)oteli_add_full_64(&hand.engine->flush_wanted, 1);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(go_on(), OTELI_ROUND_PENDING);
    assert_int_equal(go_on(), OTELI_ROUND_WORKED);

    assert_string_equal(fake->calls, "TEoooFT");
}

TEST(the_longest_time_is_not_taken_for_a_short_one)
{
    fake->attend_ms = INT_MAX;
    start();

    hand_round(&hand);

    assert_true(hand.deadline_ns == now() + (uint64_t)INT_MAX * NS_PER_MS);
}

TEST(once_the_sdk_stops_it_is_not_called_any_more)
{
    fake->attend_ms = 0;
    start();
    hand_round(&hand);
    hand_spans(&hand, "a", 1);

    hand_ask_to_stop(&hand, UINT64_MAX - 1);
    assert_false(hand_round(&hand));

    assert_string_equal(fake->calls, "TEF");
}

TEST(a_stop_that_is_asked_for_during_an_export_is_noticed)
{
    fake->pending = 1;
    start();
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

TEST(a_stop_that_is_asked_for_in_the_middle_of_an_export_comes_next)
{
    fake->during = ask_to_stop;
    start();
    hand_round(&hand);
    hand_spans(&hand, "a", 1);

    hand_flush(&hand);
    assert_false(hand_round(&hand));

    assert_string_equal(fake->calls, "TEFF");
}

TEST(each_exporter_has_its_own_time)
{
    fakes[0].attend_ms = 300;
    fakes[1].attends = true;
    fakes[1].attend_ms = 200;
    start_with(2, false);

    hand_round(&hand);
    assert_true(hand.deadline_ns == now() + 200 * NS_PER_MS);
    hand_tick(&hand);
    assert_true(hand.deadline_ns == now() + 100 * NS_PER_MS);
    hand_tick(&hand);

    assert_string_equal(fakes[0].calls, "TT");
    assert_string_equal(fakes[1].calls, "TT");
}

TEST(one_with_a_descriptor_is_called_whenever_the_worker_is_awake)
{
    fake->attend_ms = 5000;
    fake->has_descriptor = true;
    fake->descriptor_fd = 1; /* never waited for here */
    fake->descriptor_timeout_ms = 40;
    start();

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

TEST(an_exporter_made_before_there_was_such_a_thing_is_not_called)
{
    otel_exporter exporter = fake_exporter(fake);
    exporter.size = offsetof(otel_exporter, attend);
    hand_start(&hand,
               OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1, .clock = "fake"));

    hand_round(&hand);

    assert_string_equal(fake->calls, "");
}

/* There is no thread to call it at other times. */
TEST(in_a_simple_pipeline_it_comes_after_exports_at_its_time)
{
    fake->attend_ms = 100;
    start_with(1, true);

    hand_spans(&hand, "a", 2);
    assert_string_equal(fake->calls, "ETET");
    fake->attend_ms = -1;
    hand_spans(&hand, "b", 1);

    assert_string_equal(fake->calls, "ETETET");
}
