/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/simple_test.c - specification of sdk/simple.c. */
#include "sdk/engine.h"

#include "tests/support/fake_exporter.h"
#include "tests/support/hand_engine.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <pthread.h>
#include <string.h>

static struct fake_exporter fake;
static struct hand_engine hand;

static int begin(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    oteli_leaks_begin();
    const otel_exporter exporter = fake_exporter(&fake);
    hand_start(&hand, OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1, .simple = true,
                                       .clock = "fake", .log_level = "none"));
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

AROUND_EACH(begin, end);

TEST(each_span_is_exported_when_it_ends)
{
    const otel_span outer = otel_span_enter(hand.tracer, "outer", NULL);
    const otel_span inner = otel_span_start(hand.tracer, "inner", NULL);
    assert_string_equal(fake.text, "");

    otel_span_end(inner);
    assert_string_equal(fake.text, "inner|");
    otel_span_end(outer);
    assert_string_equal(fake.text, "inner|outer|");
}

static uint64_t start_ns;
static uint64_t end_ns;

static void note_times(void *context, otel_export *call)
{
    otel_span_view span;
    (void)context;
    otel_batch_span(call->batch, 0, &span);
    start_ns = span.start_ns;
    end_ns = span.end_ns;
}

TEST(times_are_unix_times)
{
    fake.during = note_times;
    const uint64_t wall_ns = oteli_fake_clock.wall_ns;
    const otel_span span = otel_span_enter(hand.tracer, "a", NULL);
    oteli_fake_clock.ticks += 500;
    oteli_fake_clock.wall_ns += 500;

    otel_span_end(span);

    assert_true(start_ns == wall_ns);
    assert_true(end_ns == wall_ns + 500);
}

TEST(neither_lines_nor_the_queue_are_used)
{
    hand_spans(&hand, "a", 10000);

    assert_int_equal(fake.spans, 10000);
    assert_int_equal(oteli_lines_bytes(), 0);
    assert_int_equal(hand.engine->reserved, 0);
    assert_int_equal(hand.engine->bell.rings, 0);
}

static void *trace(void *argument)
{
    (void)argument;
    hand_spans(&hand, "t", 500);
    return NULL;
}

/* spec: P3 */
TEST(threads_take_turns)
{
    pthread_t threads[8];
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, trace, NULL), 0);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);

    assert_int_equal(fake.spans, 4000);
    assert_int_equal(fake.largest, 1);
    assert_int_equal(hand.engine->pipelines[0].delivered, 4000);
}

static void end_another(void *context, otel_export *call)
{
    (void)context;
    (void)call;
    otel_span_end(otel_span_enter(hand.tracer, "of the exporter", NULL));
}

TEST(what_the_exporter_traces_is_refused_and_counted)
{
    fake.during = end_another;

    hand_spans(&hand, "a", 1);

    assert_string_equal(fake.text, "a|");
    assert_int_equal(hand_counts(&hand).dropped[OTEL_DROP_REENTRANT], 1);
    assert_int_equal(hand_counts(&hand).ended, 2);
}

TEST(a_span_that_waited_for_its_turn_through_the_shutdown_is_counted)
{
    hand.engine->done = 1;

    hand_spans(&hand, "a", 1);

    assert_int_equal(fake.batches, 0);
    assert_int_equal(hand.engine->pipelines[0].dropped[OTEL_DROP_ALREADY_SHUTDOWN], 1);
}

TEST(a_mount_is_exported_at_once)
{
    otel_lines_begin();
    hand_spans(&hand, "m", 1100);
    otel_lines *lines = otel_lines_end();
    const otel_span parents[] = {otel_span_start(hand.tracer, "p", NULL),
                                 otel_span_start(hand.tracer, "q", NULL)};
    assert_int_equal(fake.spans, 0);

    otel_lines_mount(lines, parents, 2, NULL);

    assert_int_equal(fake.spans, 2200);
    assert_int_equal(fake.batches, 6); /* of 512 at most */
    assert_int_equal(hand.engine->reserved, 0);
    otel_lines_free(lines);
    otel_span_cancel(parents[0]);
    otel_span_cancel(parents[1]);
}

TEST(a_mount_that_waited_through_the_shutdown_is_counted)
{
    otel_lines_begin();
    hand_spans(&hand, "m", 7);
    otel_lines *lines = otel_lines_end();
    const otel_span parent = otel_span_start(hand.tracer, "p", NULL);
    hand.engine->done = 1;

    otel_lines_mount(lines, &parent, 1, NULL);

    assert_int_equal(fake.batches, 0);
    assert_int_equal(hand.engine->pipelines[0].dropped[OTEL_DROP_ALREADY_SHUTDOWN], 7);
    otel_lines_free(lines);
    otel_span_cancel(parent);
}

TEST(addresses_have_names)
{
    otel_span_end(otel_span_enter_address(hand.tracer, (const void *)0x1000));

    assert_string_equal(fake.text, "0x1000|");
}
