/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/worker_test.c - specification of sdk/worker/worker.c: when the batch span
 * processor exports; also where an exporter has to be waited for: the next batch is prepared
 * meanwhile, and who may not wait leaves the pass and goes on with it later; and of
 * sdk/worker/on_idle.c: when exporters that have something to do without a batch are called. The
 * test is the worker, and the clock stands still unless it is moved. */
#include "tests/support/faked.h"
#include "tests/support/unit.h"

#include <limits.h>
#include <string.h>

static void start(int64_t queue, int64_t batch)
{
    by_hand(1,
            &(otel_sdk_options){.bsp_max_queue_size = queue, .bsp_max_export_batch_size = batch});
}

static bool is_marked_asleep(void)
{
    return oteli_asleep == hand.engine->sdk.generation;
}

static uint64_t rings(void)
{
    return hand.engine->waker.wakes;
}

AROUND_EACH(faked_begin, by_hand_end);

/* spec: P5 */
TEST(the_first_span_wakes_the_worker_once_and_the_tick_runs_from_it)
{
    start(100, 10);
    assert_string_equal(by_hand_play("round"), "never asleep");
    assert_int_equal(rings(), 0);
    oteli_fake_clock.monotonic_ns += 700 * NS_PER_MS;
    assert_string_equal(by_hand_play("a3"), "");
    assert_int_equal(rings(), 1);
    assert_false(is_marked_asleep());
    assert_string_equal(by_hand_play("round almost round tick"), "1000 ms; 1 ms; E 1000 ms");
    assert_string_equal(fake->text, "a a a|");
}

/* spec: P5 */
TEST(whole_batches_do_not_wait_for_the_tick_and_the_rest_does)
{
    start(4000, 10);
    hand_round(&hand);

    hand_spans(&hand, "a", 105);
    hand_round(&hand);

    assert_true(fake->batches >= 6);
    assert_int_equal(fake->spans, 10 * fake->batches);
    assert_int_equal(fake->largest, 10);
    assert_true(hand.wanted > 0 && hand.wanted <= 10);
    hand_tick(&hand);
    assert_int_equal(fake->spans, 105);
    assert_int_equal(fake->batches, 11);
    assert_int_equal(fake->sizes[10], 5);
}

/* spec: P7 */
TEST(no_batch_is_larger_than_its_limit_also_in_a_flush_and_a_shutdown)
{
    start(1000, 7);
    hand_spans(&hand, "a", 100);
    hand_flush(&hand);
    assert_int_equal(fake->batches, 15);

    hand_spans(&hand, "a", 100);
    hand_ask_to_stop(&hand, UINT64_MAX - 1);
    assert_false(hand_round(&hand));

    assert_int_equal(fake->spans, 200);
    assert_int_equal(fake->batches, 30);
    assert_int_equal(fake->largest, 7);
    assert_int_equal(fake->flushes, 2);
}

/* The worker marked itself asleep while a thread was about to look at the mark. */
TEST(a_span_that_crossed_the_mark_is_found_a_tick_later)
{
    start(100, 10);
    assert_string_equal(by_hand_play("a1 round tick tick"), "1000 ms; E 1000 ms; 1000 ms asleep");
    oteli_sdk_set_asleep(&hand.engine->sdk, false);
    hand_spans(&hand, "late", 1);
    oteli_sdk_set_asleep(&hand.engine->sdk, true);

    assert_string_equal(by_hand_play("tick"), "E 1000 ms");
    assert_string_equal(fake->text, "a|late|");
}

TEST(after_a_pause_a_full_batch_rings_again_and_is_exported_before_the_tick)
{
    start(400, 10);
    assert_string_equal(by_hand_play("a1 round tick tick tick b1 round"),
                        "1000 ms; E 1000 ms; 1000 ms asleep; never asleep; 1000 ms");
    assert_true(hand.wanted <= 10);
    const uint64_t before = rings();
    (void)oteli_waker_arm(&hand.engine->waker, hand.wanted); /* as oteli_waker_sleep does */

    hand_spans(&hand, "b", 200);
    assert_int_equal(rings(), before + 1);
    hand_round(&hand);

    assert_true(fake->spans >= 100);
}

TEST(a_full_queue_is_exported_before_the_tick_though_no_batch_is_full)
{
    start(10, 10);
    assert_string_equal(by_hand_play("a10 round b1 round"), "1000 ms; E 1000 ms");
    assert_string_equal(faked_sums(0), "11 started, 11 ended: delivered 10, dropped 1 "
                                       "(queue_full 1)");
}

TEST(a_thread_that_stops_has_kept_an_eighth_of_its_share_of_the_queue_at_most)
{
    start(64, 64);
    hand_spans(&hand, "a", 8);
    assert_in_range(hand.engine->reserved, 8, 8 + 64 / 2 / 8);
}

/* All of the room is in quotas of threads that do nothing: dropping must not become a
 * wake-up for each span. */
TEST(a_queue_full_of_promises_wakes_the_worker_once)
{
    start(10, 10);
    hand_round(&hand);
    hand.engine->reserved = 10;
    hand_spans(&hand, "a", 1);
    for (unsigned i = 0; i < 20; i++) {
        hand_round(&hand);
        (void)oteli_waker_arm(&hand.engine->waker, hand.wanted);
        hand_spans(&hand, "a", 1);
    }

    assert_true(rings() <= 3);
    assert_int_equal(hand_counts(&hand).dropped[OTEL_DROP_QUEUE_FULL], 21);
    hand.engine->reserved = 0;
}

/* As before, but now a promise is kept: that is worth a wake-up. */
TEST(a_queue_full_of_quotas_is_drained_when_one_is_used)
{
    start(20, 20);
    hand_round(&hand);
    hand_spans(&hand, "a", 1); /* holds a quota */
    hand_flush(&hand);
    const uint64_t promised = 20 - hand.engine->reserved;
    hand.engine->reserved = 20;
    struct oteli_thread *const self = oteli_self;
    const uint32_t quota = (uint32_t)(self->quota_end - self->counts.ended);
    self->quota_end = self->counts.ended; /* another thread's spans find no room … */
    self->quota_size = 0;
    hand_spans(&hand, "x", 1);
    hand_round(&hand);
    hand_round(&hand);
    self->quota_end =
        self->counts.ended + quota; /* … then the quota is used up, the next has none */
    self->quota_size = quota + 1;
    hand_spans(&hand, "b", quota + 1);
    hand_round(&hand);

    assert_int_equal(fake->spans, 1 + quota);
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
    fake->during = ask_for_flush;
    start(1000, 10);
    hand_spans(&hand, "a", 100);

    for (unsigned i = 0; i < 5 && hand.engine->flush_done == 0; i++)
        hand_round(&hand);

    assert_true(flush_during < FAKE_BATCHES);
    assert_int_equal(hand.engine->flush_done, 1);
    fake->during = NULL;
}

TEST(a_shutdown_drops_what_it_has_no_time_for)
{
    start(100, 10);
    hand_spans(&hand, "a", 25);
    fake->export_takes_ns = 60 * NS_PER_MS;

    hand_ask_to_stop(&hand, oteli_fake_clock.monotonic_ns + 100 * NS_PER_MS);
    assert_false(hand_round(&hand));

    assert_string_equal(faked_sums(0), "25 started, 25 ended: delivered 20, dropped 5 "
                                       "(shutdown_timeout 5)");
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
    assert_int_equal(counts.dropped[OTEL_DROP_ALREADY_SHUTDOWN] + oteli_drain_leftover(hand.engine),
                     2);
}

/* Spans came within `ns` of the worker's last look, and so many are in its batch now: what it
 * makes of it. */
static void spans_came(uint64_t ns, unsigned spans, unsigned in_batch)
{
    oteli_fake_clock.monotonic_ns += ns;
    hand.engine->pace.look_ns = UINT64_MAX; /* it has looked */
    hand.engine->drain.taken += spans;
    hand.engine->batch->count = in_batch;
    hand.wanted = 160 - in_batch;
    hand.deadline_ns = UINT64_MAX;
    oteli_worker_pace(hand.engine, oteli_fake_clock.monotonic_ns, &hand.wanted, &hand.deadline_ns);
    hand.engine->batch->count = 0;
}

/* How long it waits; 0: until somebody rings. */
static uint64_t waits(void)
{
    return hand.deadline_ns != UINT64_MAX ? hand.deadline_ns - oteli_fake_clock.monotonic_ns : 0;
}

/* A batch is full at 160 spans; two more are waited for, because they do not come evenly. */
TEST(a_batch_is_looked_for_when_it_should_be_full_whatever_the_queue)
{
    static const struct {
        uint64_t came_within_ns;
        unsigned spans, in_batch;
        int64_t wanted;
        uint64_t waited_ns;
    } rows[] = {
        /* a steady load of one span in 0.1 ms: a batch and a little more */
        {32 * NS_PER_MS, 320, 0, 200, 16200000},
        /* what is there is not waited for */
        {32 * NS_PER_MS, 320, 60, 140, 10200000},
        /* so many that a timer is too coarse: what comes meanwhile, or a quarter of the queue */
        {NS_PER_MS / 2, 320, 0, 0, NS_PER_MS / 2},
        /* so few that they are not steady */
        {UINT64_C(4000) * NS_PER_MS, 320, 0, 160, 0},
        /* few say nothing */
        {NS_PER_MS, 5, 0, 160, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int64_t queue = 200; queue <= 65536; queue += 65336) {
            start(queue, 160);
            spans_came(5000, 160, 0); /* the first of all have no look before them */
            spans_came(rows[i].came_within_ns, rows[i].spans, rows[i].in_batch);
            const int64_t quarter = queue / 4 > 160 ? queue / 4 : 160;
            if (hand.wanted != (rows[i].wanted != 0 ? rows[i].wanted : quarter) ||
                waits() != rows[i].waited_ns)
                fail_msg("row %zu: wants %lld, waits %llu", i, (long long)hand.wanted,
                         (unsigned long long)waits());
            by_hand_end(NULL);
            faked_begin(NULL);
        }
    start(200, 160);
}

TEST(a_batch_that_is_not_full_yet_is_looked_for_once_more_and_one_that_does_not_come_is_rung_for)
{
    start(65536, 160);
    spans_came(0, 160, 0);
    spans_came(32 * NS_PER_MS, 320, 0);
    spans_came(17 * NS_PER_MS, 150, 150);
    assert_true(waits() > NS_PER_MS && waits() < 2 * NS_PER_MS);
    spans_came(17 * NS_PER_MS, 0, 150);
    assert_true(waits() != 0);
    spans_came(32 * NS_PER_MS, 0, 150);
    assert_true(waits() == 0);
    assert_int_equal(hand.wanted, 10);
}

/* Before half a batch has come, since nobody knows how many spans there are that threads have not
 * announced. */
TEST(the_first_spans_after_a_pause_say_how_fast_they_come)
{
    start(65536, 160);
    hand_round(&hand);
    assert_string_equal(by_hand_play("a9"), "");
    hand_round(&hand);
    oteli_worker_pace(hand.engine, oteli_fake_clock.monotonic_ns, &hand.wanted, &hand.deadline_ns);
    const uint64_t first = waits();
    assert_true(first > 0 && first < 100 * NS_PER_MS);
    oteli_fake_clock.monotonic_ns += first;
    hand_round(&hand);
    assert_int_equal(hand.engine->batch->count, 9);
    oteli_worker_pace(hand.engine, oteli_fake_clock.monotonic_ns, &hand.wanted, &hand.deadline_ns);
    assert_true(waits() > 10 * first && waits() < 20 * first);
}

/* ---- plays
 * --------------------------------------------------------------------------------------- */

enum { AT_ONCE = INT_MAX };

/* spec: P9 P13 */
TEST(the_worker_does_what_is_played)
{
    static const struct {
        const char *name, *steps, *expected;
        uint64_t pending;
        int attend_ms; /* 0: the exporter does not attend; AT_ONCE */
        int64_t batch; /* 0: 5 */
        int64_t delay; /* 0: 1000 ms */
        size_t waits;
        bool simple;
    } rows[] = {
        {"asleep after two ticks, and it stays so", "flush a1 round tick tick tick",
         "F; 1000 ms; E 1000 ms; 1000 ms asleep; never asleep", .batch = 10},
        {"with no delay at all there is still a grace before sleep", "a1 round round tick",
         "E 1 ms asleep; 1 ms asleep; never asleep", .batch = 10, .delay = OTEL_ZERO},
        {"nothing is prepared where nothing is waited for", "a12 ask end", "EEEF idle",
         .pending = 0},
        {"nor where nothing is behind", "a5 ask end", "EoooF idle", .pending = 3},
        {"nor what is not full when only whole batches go", "round a100 go end",
         "never asleep; Eo pending; o idle", .pending = 2, .batch = 60},
        {"who waits prepares before", "a8 flush", "EPooEooF", .pending = 2, .waits = 4},
        {"who may not wait never does", "a8 ask end", "EPooooEooooF idle", .pending = 4},
        /* exporters that are attended to */
        {"at first and after exports", "round round a1 flush round",
         "T never asleep; never asleep; EFT; 1000 ms", .attend_ms = -1},
        {"its time is a deadline", "round almost round tick",
         "T 250 ms asleep; 1 ms asleep; T 250 ms asleep", .attend_ms = 250},
        {"the earlier of tick and its time", "round a1 round tick tick tick",
         "T 2500 ms asleep; 1000 ms; ET 1000 ms; 1000 ms asleep; 500 ms asleep", .attend_ms = 2500},
        {"at once is after the batches that wait", "round a10 round round",
         "T 0 ms asleep; EET 0 ms; T 0 ms", .attend_ms = AT_ONCE},
        {"between exports and not during one", "go a1 ask go go go",
         "T idle; Eo pending; o pending; oFT worked", .pending = 3, .attend_ms = AT_ONCE},
        {"not once the SDK stops", "round a1 stop round", "T 0 ms asleep; EF stopped",
         .attend_ms = AT_ONCE},
        {"a stop during an export", "round a5 ask stop round", "T never asleep; EoF stopped",
         .pending = 1, .attend_ms = -1, .waits = 1},
        {"a simple pipeline, at its time", "a2", "ETET", .attend_ms = 100, .simple = true},
        {"a simple pipeline, without one", "a1", "ET", .attend_ms = -1, .simple = true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake->pending = rows[i].pending;
        fake->attends = rows[i].attend_ms != 0;
        fake->attend_ms = rows[i].attend_ms == AT_ONCE ? 0 : rows[i].attend_ms;
        by_hand(1, &(otel_sdk_options){.bsp_max_queue_size = 1000,
                                       .bsp_max_export_batch_size =
                                           rows[i].batch != 0 ? rows[i].batch : 5,
                                       .bsp_schedule_delay = rows[i].delay,
                                       .simple = rows[i].simple});
        const char *const seen = by_hand_play(rows[i].steps);
        if (strcmp(seen, rows[i].expected) != 0 || fake->waits != rows[i].waits)
            fail_msg("%s: \"%s\", %zu waits", rows[i].name, seen, fake->waits);
        by_hand_end(NULL);
        faked_begin(NULL);
    }
}

/* ---- an exporter that has to be waited for
 * ------------------------------------------------------- */

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

/* ---- exporters that are attended to
 * ------------------------------------------------------------ */

static int attended_begin(void **state)
{
    faked_begin(state);
    fake->attends = true;
    fake->attend_ms = -1;
    return 0;
}

#define ATTENDED(name) TEST_WITH(attended_begin, by_hand_end, name)

static void start_with(size_t count)
{
    by_hand(count, &(otel_sdk_options){.bsp_max_export_batch_size = 5});
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
    start_with(1);
    assert_string_equal(by_hand_play("round a1 flush round"), "T never asleep; EF; F stopped");
}

ATTENDED(each_exporter_has_its_own_time_however_long)
{
    fakes[0].attend_ms = 300;
    fakes[1].attends = true;
    fakes[1].attend_ms = 200;
    start_with(2);
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
    start_with(1);
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
