/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/export_test.c - specification of sdk/export.c: how exporters are driven, and
 * how their answers are counted. */
#include "common/log.h"
#include "sdk/stats.h"

#include "tests/support/fake_exporter.h"
#include "tests/support/hand_engine.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <string.h>

enum { NS_PER_MS = 1000000 };

static struct fake_exporter fakes[2];
static struct fake_exporter *const fake = &fakes[0];
static struct hand_engine hand;

/* Two pipelines, 100 ms for an export; 10 spans have ended. */
static int begin(void **state)
{
    (void)state;
    memset(fakes, 0, sizeof fakes);
    oteli_leaks_begin();
    const otel_exporter exporters[] = {fake_exporter(&fakes[0]), fake_exporter(&fakes[1])};
    hand_start(&hand,
               OTEL_SDK_OPTIONS(.exporters = exporters, .exporter_count = 2,
                                .bsp_export_timeout = 100, .clock = "fake", .log_level = "none"));
    hand_spans(&hand, "a", 10);
    return 0;
}

static int end(void **state)
{
    (void)state;
    hand_stop(&hand);
    assert_int_equal(fakes[0].frees, 1);
    assert_int_equal(fakes[1].frees, 1);
    oteli_leaks_check();
    return 0;
}

static const struct oteli_pipeline *pipeline(size_t index)
{
    return &hand.engine->pipelines[index];
}

static uint64_t dropped(size_t index)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        sum += pipeline(index)->dropped[i];
    return sum;
}

AROUND_EACH(begin, end);

/* spec: P16 */
TEST(what_is_not_reported_otherwise_is_delivered)
{
    hand_flush(&hand);

    assert_int_equal(pipeline(0)->delivered, 10);
    assert_int_equal(pipeline(0)->batches, 1);
    assert_int_equal(dropped(0), 0);
}

/* spec: P15 */
TEST(each_pipeline_gets_every_batch_and_counts_for_itself)
{
    fakes[0].reject = 4;
    fakes[1].drop = 3;
    fakes[1].drop_reason = OTEL_DROP_PERMANENT_ERROR;

    hand_flush(&hand);

    assert_string_equal(fakes[0].text, fakes[1].text);
    assert_int_equal(pipeline(0)->rejected, 4);
    assert_int_equal(pipeline(0)->delivered, 6);
    assert_int_equal(pipeline(1)->dropped[OTEL_DROP_PERMANENT_ERROR], 3);
    assert_int_equal(pipeline(1)->delivered, 7);
    assert_int_equal(pipeline(1)->rejected, 0);
}

TEST(nobody_can_lose_more_spans_than_there_are)
{
    fake->reject = 8;
    fake->drop = 8;
    fake->drop_reason = OTEL_DROP_RETRY_EXHAUSTED;

    hand_flush(&hand);

    assert_int_equal(pipeline(0)->rejected, 8);
    assert_int_equal(pipeline(0)->dropped[OTEL_DROP_RETRY_EXHAUSTED], 2);
    assert_int_equal(pipeline(0)->delivered, 0);
}

/* Nor does a flush that has spooled them say that spans were lost. */
TEST(what_is_spooled_is_neither_delivered_nor_lost)
{
    const uint64_t lost = oteli_stats_lost(hand.engine);
    fake->reject = 1;
    fake->spool = 7;

    hand_flush(&hand);

    assert_int_equal(pipeline(0)->spooled, 7);
    assert_int_equal(pipeline(0)->delivered, 2);
    assert_int_equal(dropped(0), 0);
    assert_true(oteli_stats_lost(hand.engine) == lost + 1); /* which was rejected */
}

static otel_export_result spool_and_be_pending(void *state, otel_export *call)
{
    (void)state;
    otel_export_spool(call, 4);
    return OTEL_EXPORT_PENDING;
}

TEST(what_is_spooled_has_not_run_out_of_time)
{
    hand.engine->pipelines[0].exporter.export_batch = spool_and_be_pending;
    hand.engine->pipelines[0].exporter.poll = NULL;

    hand_flush(&hand);

    assert_int_equal(pipeline(0)->spooled, 4);
    assert_int_equal(pipeline(0)->dropped[OTEL_DROP_EXPORT_TIMEOUT], 6);
}

/* Of an exporter that was built for a later version, for instance. */
TEST(a_drop_for_an_unknown_reason_is_a_drop)
{
    fakes[0].drop = 1;
    fakes[0].drop_reason = OTEL_DROP_REASON_COUNT;
    fakes[1].drop = 2;
    fakes[1].drop_reason = (otel_drop_reason)-1;

    hand_flush(&hand);

    assert_int_equal(pipeline(0)->dropped[OTEL_DROP_PERMANENT_ERROR], 1);
    assert_int_equal(pipeline(0)->delivered, 9);
    assert_int_equal(pipeline(1)->dropped[OTEL_DROP_PERMANENT_ERROR], 2);
    assert_int_equal(pipeline(1)->delivered, 8);
}

TEST(a_pending_export_is_polled_until_it_is_done)
{
    fake->pending = 5;
    fake->poll_takes_ns = 10 * NS_PER_MS;

    hand_flush(&hand);

    assert_int_equal(fake->polls, 5);
    assert_int_equal(fake->abandoned, 0);
    assert_int_equal(pipeline(0)->delivered, 10);
}

/* spec: P6 P16 */
TEST(an_export_that_takes_too_long_is_abandoned_and_may_say_why)
{
    fake->pending = 1000;
    fake->poll_takes_ns = 30 * NS_PER_MS;
    fake->drop = 10;
    fake->drop_reason = OTEL_DROP_UNCONFIRMED;

    hand_flush(&hand);

    assert_int_equal(fake->abandoned, 1);
    assert_int_equal(fake->polls, 5);
    assert_int_equal(pipeline(0)->dropped[OTEL_DROP_UNCONFIRMED], 10);
    assert_int_equal(pipeline(1)->delivered, 10);
}

TEST(an_exporter_that_ignores_that_has_timed_out)
{
    fake->pending = 1000;
    fake->ignores_abandon = true;
    fake->poll_takes_ns = 30 * NS_PER_MS;

    hand_flush(&hand);

    assert_int_equal(fake->abandoned, 1);
    assert_int_equal(pipeline(0)->dropped[OTEL_DROP_EXPORT_TIMEOUT], 10);
    assert_int_equal(pipeline(1)->delivered, 10);
}

static otel_export_result always_pending(void *state, otel_export *call)
{
    (void)state;
    otel_export_reject(call, 4);
    return OTEL_EXPORT_PENDING;
}

TEST(pending_without_a_poll_is_a_timeout)
{
    hand.engine->pipelines[0].exporter.export_batch = always_pending;
    hand.engine->pipelines[0].exporter.poll = NULL;

    hand_flush(&hand);

    assert_int_equal(pipeline(0)->rejected, 4);
    assert_int_equal(pipeline(0)->dropped[OTEL_DROP_EXPORT_TIMEOUT], 6);
}

TEST(an_export_has_the_time_of_the_timeout)
{
    const uint64_t now_ns = oteli_fake_clock.monotonic_ns;

    hand_flush(&hand);

    assert_true(fake->deadline_ns == now_ns + 100 * NS_PER_MS);
}

TEST(each_pipeline_has_that_time_for_itself)
{
    fakes[0].export_takes_ns = 70 * NS_PER_MS;
    const uint64_t now_ns = oteli_fake_clock.monotonic_ns;

    hand_flush(&hand);

    assert_true(fakes[1].deadline_ns == now_ns + 170 * NS_PER_MS);
}

TEST(a_shutdown_makes_the_deadline_earlier)
{
    const uint64_t stop_ns = oteli_fake_clock.monotonic_ns + 5 * NS_PER_MS;

    hand_ask_to_stop(&hand, stop_ns);
    assert_false(hand_round(&hand));

    assert_true(fake->deadline_ns == stop_ns);
}

static void stop_soon(void *context, otel_export *call)
{
    (void)context;
    (void)call;
    hand_ask_to_stop(&hand, oteli_fake_clock.monotonic_ns + 5 * NS_PER_MS);
}

TEST(a_shutdown_makes_also_a_running_export_end_early)
{
    fake->during = stop_soon;
    fake->pending = 1000;
    fake->poll_takes_ns = 2 * NS_PER_MS;
    const uint64_t now_ns = oteli_fake_clock.monotonic_ns;

    hand_flush(&hand);

    assert_int_equal(fake->abandoned, 1);
    assert_true(oteli_fake_clock.monotonic_ns <= now_ns + 10 * NS_PER_MS);
}

TEST(waking_reaches_every_exporter)
{
    oteli_export_wake(hand.engine);

    assert_int_equal(fakes[0].wakes, 1);
    assert_int_equal(fakes[1].wakes, 1);
}

/* spec: P16 */
TEST(a_flush_reaches_every_exporter_and_failures_are_seen)
{
    fakes[0].flush_status = OTEL_ERROR_SYSTEM;
    hand_flush(&hand);

    assert_int_equal(fakes[0].flushes, 1);
    assert_int_equal(fakes[1].flushes, 1);
    assert_int_equal(fakes[1].flush_timeout_ms, 100);
    assert_int_equal(hand.engine->flush_failures, 1);
}

static size_t news;
static char last_news[256];

static void note(void *state, otel_log_level level, const char *message)
{
    (void)state;
    news += level == OTEL_LOG_WARN;
    strncpy(last_news, message, sizeof last_news - 1);
}

/* spec: P8 O6 */
TEST(a_loss_is_said_when_it_begins_and_when_it_is_over)
{
    oteli_log_set_level(OTEL_LOG_INFO);
    otel_log_set_handler(note, NULL);
    news = 0;
    fake->drop = 10;
    fake->drop_reason = OTEL_DROP_RETRY_EXHAUSTED;

    hand_flush(&hand);
    assert_int_equal(news, 1);
    assert_string_equal(last_news, "fake_exporter: losing spans (retry_exhausted)");
    hand_spans(&hand, "a", 10);
    hand_flush(&hand);
    assert_int_equal(news, 1);
    fake->drop = 0;
    hand_spans(&hand, "a", 10);
    hand_flush(&hand);

    assert_int_equal(news, 2);
    assert_string_equal(last_news, "fake_exporter: delivering again");
    otel_log_set_handler(NULL, NULL);
}

/* ---- exporters that have to be waited for, by somebody who may not wait ------------------- */

static void begin_export(void)
{
    oteli_harvest_begin(hand.engine);
    assert_true(oteli_harvest_continue(hand.engine));
    oteli_export_begin(hand.engine, hand.engine->batch);
}

static void finish_export(void)
{
    assert_true(oteli_export_continue(hand.engine, true));
    oteli_harvest_release(hand.engine, hand.engine->batch);
}

TEST(a_pending_export_is_looked_at_without_waiting)
{
    fake->pending = 3;
    begin_export();

    assert_false(oteli_export_continue(hand.engine, false));
    assert_false(oteli_export_continue(hand.engine, false));
    assert_true(oteli_export_continue(hand.engine, false));

    assert_string_equal(fakes[0].calls, "Eooo");
    assert_string_equal(fakes[1].calls, "E");
    assert_int_equal(fake->waits, 0);
    assert_int_equal(pipeline(0)->delivered, 10);
    finish_export();
}

TEST(the_second_pipeline_has_its_turn_when_the_first_is_done)
{
    fakes[0].pending = 1;
    fakes[1].pending = 2;
    begin_export();
    assert_int_equal(fakes[1].batches, 0);

    assert_false(oteli_export_continue(hand.engine, false));
    assert_string_equal(fakes[0].calls, "Eo");
    assert_string_equal(fakes[1].calls, "Eo");
    assert_true(oteli_export_continue(hand.engine, false));

    assert_int_equal(pipeline(0)->delivered, 10);
    assert_int_equal(pipeline(1)->delivered, 10);
    finish_export();
}

/* Nobody was there when the deadline came. */
TEST(an_export_whose_time_is_over_is_abandoned_when_somebody_comes)
{
    fake->pending = 1000;
    fake->drop = 10;
    fake->drop_reason = OTEL_DROP_UNCONFIRMED;
    begin_export();
    assert_false(oteli_export_continue(hand.engine, false));

    oteli_fake_clock.monotonic_ns += 100 * NS_PER_MS - 1;
    assert_false(oteli_export_continue(hand.engine, false));
    assert_int_equal(fake->abandoned, 0);
    oteli_fake_clock.monotonic_ns += 1;
    assert_true(oteli_export_continue(hand.engine, false));

    assert_string_equal(fake->calls, "EooA");
    assert_int_equal(pipeline(0)->dropped[OTEL_DROP_UNCONFIRMED], 10);
    assert_int_equal(pipeline(1)->delivered, 10);
    finish_export();
}

/* What an exporter is shown is what it is given next: not before it has this batch. */
TEST(an_exporter_is_shown_the_next_batch_once_it_has_this_one)
{
    fakes[0].pending = 2;
    fakes[1].pending = 2;
    begin_export();

    oteli_export_prepare(hand.engine, &hand.engine->batches[1]);
    assert_false(oteli_export_continue(hand.engine, false));
    assert_string_equal(fakes[0].calls, "EPo");
    assert_string_equal(fakes[1].calls, "");
    while (!oteli_export_continue(hand.engine, false))
        continue;

    assert_string_equal(fakes[0].calls, "EPoo");
    assert_string_equal(fakes[1].calls, "EPoo");
    finish_export();
}

TEST(an_exporter_that_was_quick_is_shown_it_while_another_is_waited_for)
{
    fakes[1].pending = 2;
    begin_export();

    oteli_export_prepare(hand.engine, &hand.engine->batches[1]);
    assert_false(oteli_export_continue(hand.engine, false));

    assert_string_equal(fakes[0].calls, "EP");
    assert_string_equal(fakes[1].calls, "EPo");
    finish_export();
}

/* An exporter's own flush may take its time, but not that of a program that only looks in. */
TEST(a_flush_has_no_more_time_than_who_drives)
{
    hand.engine->driving.is_chosen = true;
    hand.engine->driving.deadline_ns = oteli_fake_clock.monotonic_ns + 30 * NS_PER_MS;

    hand_flush(&hand);

    assert_int_equal(fakes[0].flush_timeout_ms, 30);
    hand.engine->driving.is_chosen = false;
}
