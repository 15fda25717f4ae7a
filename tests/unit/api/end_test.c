/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/end_test.c - specification of ending spans: once, in any order, on the right
 * thread; and of the way of a record into lines, quotas and the ring. */
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"
#include <otel/lines.h>

#include <string.h>

enum { NAME = 5, END = 8 };

static otel_tracer *tracer(void)
{
    return otel_tracer_get("end", NULL);
}

static otel_span enter(const char *name)
{
    return otel_span_enter(tracer(), name, NULL);
}

static void check_name(size_t index, const char *name)
{
    const struct oteli_field field = recorder_field(index, NAME);
    assert_int_equal(field.length, strlen(name));
    assert_memory_equal(field.bytes, name, field.length);
}

AROUND_EACH(recorder_setup_queued, recorder_teardown);

TEST_QUEUED_FAST_TOO(lots_are_asked_for_when_the_last_is_used_up)
{
    recorder.quota = 3;
    for (int i = 0; i < 7; i++)
        otel_span_end(enter("span"));
    recorder_collect();

    assert_int_equal(recorder.count, 7);
    assert_int_equal(recorder.lots_taken, 3);
    assert_int_equal(recorder.last_ended, 3);
}

TEST_QUEUED_FAST_TOO(without_a_quota_the_newest_span_is_dropped)
{
    recorder.quota = 1;
    otel_span_end(enter("first"));
    recorder.quota = 0;
    otel_span_end(enter("second"));
    otel_span_end(enter("third"));
    recorder.quota = 1;
    otel_span_end(enter("fourth"));
    recorder_collect();

    const struct counted counts = recorder_counts();
    assert_int_equal(recorder.count, 2);
    check_name(1, "fourth");
    assert_int_equal(counts.ended, 4);
    assert_int_equal(counts.dropped[OTEL_DROP_QUEUE_FULL], 2);
}

TEST_QUEUED_FAST_TOO(a_full_line_is_handed_over_and_every_record_arrives)
{
    enum { COUNT = 2000 };
    static const uint64_t later = UINT64_C(1) << 62; /* than any start, also of fast spans */
    recorder.quota = 100;
    for (int i = 0; i < COUNT; i++) {
        const otel_span span =
            i % 2 ? enter("entered") : otel_span_start(tracer(), "started", NULL);
        otel_span_set_int(span, "number", i);
        if (i % 100 == 0)
            otel_span_fail(span, "every hundredth");
        otel_span_end_at(span, later + (uint64_t)i);
    }
    assert_true(recorder.lines_handed_over > 5);
    recorder_collect();

    assert_int_equal(recorder.count, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(recorder_field(i, END).value - later, i);
}

TEST_QUEUED_FAST_TOO(records_fill_a_line_to_its_last_byte)
{
    static char text[OTELI_LINE_BYTES];
    memset(text, 'x', sizeof text);
    recorder.quota = 10000;
    size_t expected = 0;
    for (size_t length = 0; length < 12000; length += 37) {
        const otel_span span = enter("span");
        otel_span_set_string_n(otel_span_ref_of(&span), "text", 4, text, length);
        otel_span_end(span);
        expected++;
    }
    recorder_collect();
    assert_int_equal(recorder.count, expected);
    for (size_t i = 0; i < expected; i++)
        assert_true(recorder_field(i, 9).length >= i * 37);
}

TEST_QUEUED_FAST_TOO(a_span_larger_than_a_line_has_one_of_its_own)
{
    static char text[100000];
    memset(text, 'x', sizeof text);
    otel_span_end(enter("before"));
    const otel_span large = enter("large");
    otel_span_set_string_n(otel_span_ref_of(&large), "text", 4, text, sizeof text);
    otel_span_end(large);
    otel_span_end(enter("after"));

    assert_int_equal(recorder.lines_handed_over, 1);
    assert_true(oteli_lines_bytes() >= sizeof text + OTELI_LINE_BYTES);
    recorder_collect();
    assert_int_equal(recorder.count, 3);
    assert_true(recorder_field(0, 9).length > sizeof text);
    assert_int_equal(oteli_lines_bytes(), OTELI_LINE_BYTES);
}

TEST_QUEUED_FAST_TOO(without_room_for_lines_spans_are_dropped)
{
    static char text[100000];
    memset(text, 'x', sizeof text);
    oteli_lines_set_limit(2 * OTELI_LINE_BYTES);
    recorder.quota = 1000;
    const otel_span large = enter("large");
    otel_span_set_string_n(otel_span_ref_of(&large), "text", 4, text, sizeof text);
    otel_span_end(large);
    for (int i = 0; i < 1000; i++)
        otel_span_end(enter("small"));
    oteli_lines_set_limit(UINT64_C(64) << 20);

    const struct counted counts = recorder_counts();
    recorder_collect();
    assert_true(recorder.count > 100);
    assert_int_equal(counts.ended, 1001);
    assert_int_equal(counts.dropped[OTEL_DROP_BYTE_LIMIT], 1001 - recorder.count);
}

TEST_QUEUED_FAST_TOO(an_end_without_memory_is_counted)
{
    for (size_t nth = 1;; nth++) {
        recorder_stop();
        oteli_api_reset();
        oteli_leaks_check();
        oteli_leaks_begin();
        if (nth % 2 == 0)
            recorder_start();
        else
            recorder_start_queued();
        const otel_span span = enter("span");
        oteli_leaks_fail_at((nth + 1) / 2);
        otel_span_end(span);
        const bool failed = oteli_leaks_failed();
        if (nth % 2 != 0)
            recorder_collect();

        const struct counted counts = recorder_counts();
        uint64_t dropped = 0;
        for (size_t i = 0; i < OTEL_DROP_REASON_COUNT; i++)
            dropped += counts.dropped[i];
        assert_int_equal(counts.ended, 1);
        assert_int_equal(recorder.count + dropped, 1);
        if (!failed && nth > 8)
            break;
    }
}

TEST_QUEUED_FAST_TOO(a_worker_that_sleeps_is_woken_once)
{
    otel_span_end(enter("before"));
    assert_int_equal(recorder.wakes, 0);
    assert_true(oteli_sdk_set_asleep(&recorder.sdk, true));
    const otel_span span = enter("while it sleeps");
    otel_span_set_int(span, "k", 1);
    assert_true(otel_span_is_recording(span));
    assert_int_equal(recorder.wakes, 0);
    otel_span_end(span);
    otel_span_end(otel_span_start(tracer(), "after", NULL));

    assert_int_equal(recorder.wakes, 1);
    assert_true(oteli_generation == recorder.sdk.generation);
    recorder_collect();
    assert_int_equal(recorder.count, 3);
}

static void *end_one(void *span)
{
    otel_span_end(*(otel_span *)span);
    return NULL;
}

TEST_WITH(recorder_setup, recorder_teardown, a_thread_that_is_new_after_the_shutdown_counts_too)
{
    otel_span started = otel_span_start(tracer(), "started", NULL);
    recorder_stop();
    recorder_on_thread(end_one, &started);

    assert_int_equal(recorder_counts().dropped[OTEL_DROP_ALREADY_SHUTDOWN], 1);
    assert_int_equal(recorder_counts().ended, 1);
}

TEST_QUEUED_FAST_TOO(spans_of_a_former_sdk_do_not_reach_the_next)
{
    const otel_span entered = enter("entered");
    const otel_span started = otel_span_start(tracer(), "started", NULL);
    const otel_span first = enter("first");
    recorder_stop();
    assert_false(otel_span_is_recording(entered) || otel_span_is_recording(started));
    recorder_start_queued();
    assert_false(otel_span_is_recording(entered) || otel_span_is_recording(started));
    otel_span_end(first);
    otel_span_end(enter("of the new one"));
    otel_span_end(started);
    otel_span_end(entered);
    recorder_collect();

    assert_int_equal(recorder.count, 1);
    check_name(0, "of the new one");
    const struct counted counts = recorder_counts();
    assert_int_equal(counts.recorded, 1);
    assert_int_equal(counts.ended, 1);
}

/* Another SDK, whose spans are where one with an attribute was. Whoever ends what is current has a
 * handle that does not record. */
static int next_has_attributes(const void *unused)
{
    (void)unused;
    recorder_start_queued();
    otel_span_end(enter("between")); /* from here on this thread's state is for the new one */
    otel_span_end(otel_current_span());
    otel_span_end(enter("next"));
    recorder_collect();
    return recorder.count != 2 || recorder_has_field(1, 9);
}

TEST_QUEUED_FAST_TOO(attributes_of_a_former_sdks_span_are_not_those_of_the_next)
{
    otel_span_set_int(enter("former"), "k", 1);
    recorder_stop();
    assert_false(next_has_attributes(NULL));
}

TEST_QUEUED_FAST_TOO(attributes_of_a_parents_span_are_not_those_of_its_childs)
{
    const otel_span span = enter("the parent's");
    otel_span_set_int(span, "k", 1);
    recorder_in_child(next_has_attributes, NULL);
    otel_span_end(span);
    recorder_collect();
    assert_true(recorder_has_field(0, 9));
}

static int place_has_attributes(const void *unused)
{
    (void)unused;
    recorder_start_queued();
    const otel_span outer = enter("outer");
    otel_span_end(enter("inner"));
    otel_span_end(outer);
    recorder_collect();
    return recorder.count != 2 || recorder_has_field(0, 9);
}

TEST_QUEUED_FAST_TOO(attributes_that_a_parent_collects_are_not_those_of_its_childs)
{
    otel_lines_begin();
    const otel_span outer = enter("outer");
    const otel_span inner = enter("inner");
    otel_span_set_int(outer, "k", 1); /* where the child's inner one will be, above a stretch */
    recorder_in_child(place_has_attributes, NULL);
    otel_span_end(inner);
    otel_span_end(outer);
    otel_lines_free(otel_lines_end());
}

/* The first span gets a line. */
TEST_QUEUED_FAST_TOO(a_plain_span_is_left_to_the_worker_to_finish)
{
    otel_span_end(enter("first"));
    const otel_span plain = enter("plain");
    otel_span_set_int(plain, "k", 1);
    otel_span_end(plain);
    otel_span_end(otel_span_start(tracer(), "started", NULL));
    const otel_span failed = enter("failed");
    otel_span_fail(failed, "why");
    otel_span_end(failed);
    const otel_span started = otel_span_start(tracer(), "eventful", NULL);
    otel_span_add_event(started, "event", NULL, 0);
    otel_span_end(started);
    otel_span_end(enter("a name that is so long that it does not fit into the span itself"));
    otel_span_end_at(enter("unusual"), 1);
    recorder_collect();

    assert_int_equal(recorder.count, 7);
    assert_int_equal(recorder.raw, 5);
    check_name(1, "plain");
    assert_true(recorder_has_field(1, 9));
}
