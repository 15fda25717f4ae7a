/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/worker_test.c - specification of sdk/worker.c: when the batch span processor
 * exports. The test is the worker, and the clock stands still unless it is moved. */
#include "sdk/engine.h"

#include "tests/support/fake_exporter.h"
#include "tests/support/hand_engine.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <string.h>

enum { NS_PER_MS = 1000000 };

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

static bool is_marked_asleep(void)
{
    return oteli_asleep == hand.engine->sdk.generation;
}

/* Ticks until there is nothing more to wait for. */
static void let_sleep(void)
{
    for (unsigned i = 0; i < 10 && hand.deadline_ns != UINT64_MAX; i++)
        hand_tick(&hand);
    assert_true(hand.deadline_ns == UINT64_MAX);
}

AROUND_EACH(begin, end);

TEST(without_spans_there_is_no_tick)
{
    start(100, 10);

    hand_round(&hand);

    assert_true(hand.deadline_ns == UINT64_MAX);
    assert_true(is_marked_asleep());
    assert_int_equal(hand.engine->bell.rings, 0);
}

TEST(the_first_span_wakes_the_worker_once)
{
    start(100, 10);
    hand_round(&hand);

    hand_spans(&hand, "a", 5);

    assert_int_equal(hand.engine->bell.rings, 1);
    assert_false(is_marked_asleep());
}

/* spec: P5 */
TEST(the_tick_runs_from_the_first_span)
{
    start(100, 10);
    hand_round(&hand);
    oteli_fake_clock.monotonic_ns += 700 * NS_PER_MS;
    const uint64_t first_ns = oteli_fake_clock.monotonic_ns;

    hand_spans(&hand, "a", 1);
    hand_round(&hand);

    assert_true(hand.deadline_ns == first_ns + 1000 * NS_PER_MS);
    assert_int_equal(fake.batches, 0);
}

TEST(a_tick_exports_a_batch_that_is_not_full)
{
    start(100, 10);
    hand_spans(&hand, "a", 3);
    hand_round(&hand);

    hand_tick(&hand);

    assert_string_equal(fake.text, "a a a|");
}

TEST(a_moment_before_the_tick_nothing_is_exported)
{
    start(100, 10);
    hand_spans(&hand, "a", 3);
    hand_round(&hand);
    oteli_fake_clock.monotonic_ns = hand.deadline_ns - 1;

    hand_round(&hand);

    assert_int_equal(fake.batches, 0);
}

/* spec: P5 */
TEST(whole_batches_do_not_wait_for_the_tick)
{
    start(4000, 10);
    hand_round(&hand);

    hand_spans(&hand, "a", 100);
    hand_round(&hand);

    assert_true(fake.batches >= 6);
    for (size_t i = 0; i < fake.batches; i++)
        assert_int_equal(fake.sizes[i], 10);
    assert_true(hand.wanted > 0 && hand.wanted <= 10);
}

TEST(what_is_left_of_a_batch_goes_with_the_tick)
{
    start(4000, 10);
    hand_spans(&hand, "a", 105);
    hand_round(&hand);

    hand_tick(&hand);

    assert_int_equal(fake.spans, 105);
    assert_int_equal(fake.batches, 11);
    assert_int_equal(fake.sizes[10], 5);
}

/* spec: P7 */
TEST(no_batch_is_larger_than_its_limit_also_in_a_flush)
{
    start(1000, 7);
    hand_spans(&hand, "a", 100);

    hand_flush(&hand);

    assert_int_equal(fake.spans, 100);
    assert_int_equal(fake.largest, 7);
    assert_int_equal(fake.batches, 15);
}

/* spec: P7 */
TEST(no_batch_is_larger_than_its_limit_also_in_a_shutdown)
{
    start(1000, 7);
    hand_spans(&hand, "a", 100);

    hand_ask_to_stop(&hand, UINT64_MAX - 1);
    assert_false(hand_round(&hand));

    assert_int_equal(fake.spans, 100);
    assert_int_equal(fake.largest, 7);
    assert_int_equal(fake.frees, 1);
    assert_int_equal(fake.flushes, 1);
}

TEST(a_flush_of_nothing_exports_nothing)
{
    start(100, 10);

    hand_flush(&hand);

    assert_int_equal(fake.batches, 0);
    assert_int_equal(fake.flushes, 1);
    assert_true(is_marked_asleep());
}

/* spec: P13 */
TEST(an_idle_worker_is_asleep_after_two_ticks_and_stays_so)
{
    start(100, 10);
    hand_spans(&hand, "a", 1);
    hand_round(&hand);

    hand_tick(&hand);
    assert_false(is_marked_asleep());
    hand_tick(&hand);
    assert_true(is_marked_asleep());
    hand_tick(&hand);

    assert_true(hand.deadline_ns == UINT64_MAX);
    assert_int_equal(hand.engine->bell.rings, 1);
    assert_int_equal(fake.batches, 1);
}

/* The worker marked itself asleep while a thread was about to look at the mark. */
TEST(a_span_that_crossed_the_mark_is_found_a_tick_later)
{
    start(100, 10);
    hand_spans(&hand, "a", 1);
    hand_round(&hand);
    hand_tick(&hand);
    hand_tick(&hand);
    assert_true(is_marked_asleep());
    oteli_sdk_set_asleep(&hand.engine->sdk, false);
    hand_spans(&hand, "late", 1);
    oteli_sdk_set_asleep(&hand.engine->sdk, true);

    hand_tick(&hand);

    assert_string_equal(fake.text, "a|late|");
    assert_false(is_marked_asleep());
    assert_true(hand.deadline_ns != UINT64_MAX);
}

TEST(after_a_pause_whole_batches_are_exported_before_the_tick)
{
    start(400, 10);
    hand_spans(&hand, "a", 1);
    hand_round(&hand);
    let_sleep();
    hand_spans(&hand, "b", 1);
    hand_round(&hand);

    assert_true(hand.wanted <= 10);
    hand_spans(&hand, "b", 200);
    hand_round(&hand);

    assert_true(fake.spans >= 100);
}

TEST(after_a_pause_a_full_batch_rings_again)
{
    start(400, 10);
    hand_spans(&hand, "a", 1);
    hand_round(&hand);
    let_sleep();
    hand_spans(&hand, "b", 1);
    hand_round(&hand);
    const uint64_t rings = hand.engine->bell.rings;
    (void)oteli_bell_arm(&hand.engine->bell, hand.wanted); /* as oteli_bell_sleep does */

    hand_spans(&hand, "b", 200);

    assert_int_equal(hand.engine->bell.rings, rings + 1);
}

TEST(a_full_queue_is_exported_before_the_tick_though_no_batch_is_full)
{
    start(10, 10);
    hand_spans(&hand, "a", 10);
    hand_round(&hand);
    assert_int_equal(hand_counts(&hand).dropped[OTEL_DROP_QUEUE_FULL], 0);

    hand_spans(&hand, "b", 1);
    hand_round(&hand);

    assert_int_equal(hand_counts(&hand).dropped[OTEL_DROP_QUEUE_FULL], 1);
    assert_int_equal(fake.spans, 10);
}

/* All of the room is in lots of threads that do nothing: dropping must not become a
 * wake-up for each span. */
TEST(a_queue_full_of_promises_wakes_the_worker_once)
{
    start(10, 10);
    hand_round(&hand);
    hand.engine->reserved = 10;
    hand_spans(&hand, "a", 1);
    for (unsigned i = 0; i < 20; i++) {
        hand_round(&hand);
        (void)oteli_bell_arm(&hand.engine->bell, hand.wanted);
        hand_spans(&hand, "a", 1);
    }

    assert_true(hand.engine->bell.rings <= 3);
    assert_int_equal(hand_counts(&hand).dropped[OTEL_DROP_QUEUE_FULL], 21);
    hand.engine->reserved = 0;
}

/* As before, but now a promise is kept: that is worth a wake-up. */
TEST(a_queue_full_of_promises_is_harvested_when_one_is_kept)
{
    start(20, 20);
    hand_round(&hand);
    hand_spans(&hand, "a", 1); /* holds a lot */
    hand_flush(&hand);
    const uint64_t promised = 20 - hand.engine->reserved;
    hand.engine->reserved = 20;
    struct oteli_thread *const self = oteli_self;
    const uint32_t lot = (uint32_t)(self->lot_end - self->counts.ended);
    self->lot_end = self->counts.ended; /* another thread's spans find no room … */
    self->lot_size = 0;
    hand_spans(&hand, "x", 1);
    hand_round(&hand);
    hand_round(&hand);
    self->lot_end = self->counts.ended + lot; /* … then the lot is used up, the next has none */
    self->lot_size = lot + 1;
    hand_spans(&hand, "b", lot + 1);
    hand_round(&hand);

    assert_int_equal(fake.spans, 1 + lot);
    hand.engine->reserved -= promised;
}

static uint64_t flush_during;

static void ask_for_flush(void *context, otel_export *call)
{
    (void)context;
    (void)call;
    if (flush_during++ == 0)
        oteli_add_full_64(&hand.engine->flush_wanted, 1);
    hand_spans(&hand, "more", 10); /* as many as go: the load never ends */
}

TEST(a_flush_is_not_kept_waiting_by_a_load_that_never_ends)
{
    flush_during = 0;
    fake.during = ask_for_flush;
    start(1000, 10);
    hand_spans(&hand, "a", 100);

    for (unsigned i = 0; i < 5 && hand.engine->flush_done == 0; i++)
        hand_round(&hand);

    assert_true(flush_during < FAKE_BATCHES);
    assert_int_equal(hand.engine->flush_done, 1);
    fake.during = NULL;
}

TEST(a_shutdown_drops_what_it_has_no_time_for)
{
    start(100, 10);
    hand_spans(&hand, "a", 25);
    fake.export_takes_ns = 60 * NS_PER_MS;

    hand_ask_to_stop(&hand, oteli_fake_clock.monotonic_ns + 100 * NS_PER_MS);
    assert_false(hand_round(&hand));

    assert_int_equal(fake.spans, 20);
    assert_int_equal(hand.engine->pipelines[0].delivered, 20);
    assert_int_equal(hand.engine->pipelines[0].dropped[OTEL_DROP_SHUTDOWN_TIMEOUT], 5);
    assert_int_equal(hand.engine->reserved % 10, hand.engine->reserved);
}

/* spec: P11 */
TEST(spans_that_end_after_the_shutdown_are_counted_as_such)
{
    start(100, 10);
    hand_spans(&hand, "a", 1);
    const otel_span local = otel_span_enter(hand.tracer, "local", NULL);
    const otel_span detached = otel_span_start(hand.tracer, "detached", NULL);

    hand_ask_to_stop(&hand, UINT64_MAX - 1);
    assert_false(hand_round(&hand));
    otel_span_end(detached);
    otel_span_end(local);

    const struct counted counts = hand_counts(&hand);
    assert_int_equal(counts.ended, 3);
    assert_int_equal(hand.engine->pipelines[0].delivered, 1);
    assert_int_equal(
        counts.dropped[OTEL_DROP_ALREADY_SHUTDOWN] + oteli_harvest_leftover(hand.engine), 2);
}

TEST(with_no_delay_at_all_there_is_still_a_grace_before_sleep)
{
    const otel_exporter exporter = fake_exporter(&fake);
    hand_start(&hand, OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                       .bsp_schedule_delay = OTEL_ZERO, .clock = "fake"));
    hand_spans(&hand, "a", 1);
    for (unsigned i = 0; i < 5 && !is_marked_asleep(); i++)
        hand_round(&hand);

    assert_true(is_marked_asleep());
    assert_string_equal(fake.text, "a|");
    assert_true(hand.deadline_ns > oteli_fake_clock.monotonic_ns);
    let_sleep();
}

enum { MILLISECOND = 1000000 };

/* Two batches of ten that came within `ns`, and what the worker makes of it. */
static void two_batches_came(struct oteli_pace *pace, uint64_t ns)
{
    start(100, 10);
    *pace = (struct oteli_pace){.since_ns = 5000};
    hand.engine->harvest.taken = 20;
    hand.wanted = 10;
    hand.deadline_ns = UINT64_MAX;
    oteli_worker_pace(hand.engine, pace, 5000 + ns, &hand.wanted, &hand.deadline_ns);
}

/* Five batches of ten and an eighth of one, at 0.4 ms a span. */
TEST(a_steady_load_is_waited_for_and_rings_beyond_what_is_expected)
{
    struct oteli_pace pace;
    two_batches_came(&pace, 8 * MILLISECOND);

    assert_int_equal(hand.deadline_ns, 5000 + 8 * MILLISECOND + 51 * 2 * MILLISECOND / 5);
    assert_int_equal(hand.wanted, 56);
}

TEST(what_waits_already_is_not_waited_for)
{
    struct oteli_pace pace = {.since_ns = 5000};
    start(100, 10);
    hand.engine->harvest.taken = 20;
    hand.engine->batch->count = 4;
    oteli_bell_announce(&hand.engine->bell, 7);
    hand.wanted = 6;
    hand.deadline_ns = UINT64_MAX;
    oteli_worker_pace(hand.engine, &pace, 5000 + 8 * MILLISECOND, &hand.wanted, &hand.deadline_ns);
    hand.engine->batch->count = 0;
    oteli_bell_taken(&hand.engine->bell, 7);

    assert_int_equal(hand.deadline_ns, 5000 + 8 * MILLISECOND + 40 * 2 * MILLISECOND / 5);
    assert_int_equal(hand.wanted, 52);
}

/* What waits is lost in a crash. */
TEST(no_more_is_waited_for_than_comes_in_a_second)
{
    struct oteli_pace pace;
    two_batches_came(&pace, 900 * MILLISECOND);

    assert_int_equal(hand.deadline_ns, 5000 + 900 * MILLISECOND + (uint64_t)21 * 45 * MILLISECOND);
    assert_int_equal(hand.wanted, 26);
}

TEST(a_batch_that_is_late_is_rung_for)
{
    struct oteli_pace pace;
    two_batches_came(&pace, 8 * MILLISECOND);
    hand.wanted = 10;
    hand.deadline_ns = UINT64_MAX;

    oteli_worker_pace(hand.engine, &pace, 20 * MILLISECOND, &hand.wanted, &hand.deadline_ns);

    assert_int_equal(hand.wanted, 10);
    assert_true(hand.deadline_ns == UINT64_MAX);
}

/* A timer would be too coarse. */
TEST(a_fast_load_rings_at_half_a_queue)
{
    struct oteli_pace pace;
    two_batches_came(&pace, 40000);

    assert_int_equal(hand.wanted, 50);
    assert_true(hand.deadline_ns == UINT64_MAX);
    assert_int_equal(pace.batch_ns, 20000);
}

TEST(a_slow_load_is_rung_for)
{
    struct oteli_pace pace;
    two_batches_came(&pace, 4000 * (uint64_t)MILLISECOND);

    assert_int_equal(hand.wanted, 10);
    assert_true(hand.deadline_ns == UINT64_MAX);
}
