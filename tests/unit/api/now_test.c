/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/now_test.c - specification of otel_now_ns: a time that the program takes itself
 * stands in the order of those that spans take, with every clock, while clocks are renewed and the
 * wall clock is set. */
#include "common/clock/clock.h"
#include "tests/support/traced.h"
#include "tests/support/unit.h"

#include <string.h>
#include <time.h>

enum { ROUNDS = 200, A_FLUSH_IN = 16 };
#define SECOND_NS UINT64_C(1000000000)
#define HOUR_NS (3600 * SECOND_NS)
#define WALL_NS UINT64_C(1700000000000000000)

static uint64_t real_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* The played clock belongs to one thread. */
static void start_with_clock(const char *clock)
{
    traced_stop();
    oteli_fake_clock = (struct oteli_fake_clock){
        .ticks = UINT64_C(1) << 40, .monotonic_ns = HOUR_NS, .wall_ns = WALL_NS, .counts = true};
    traced_start(&(otel_sdk_options){
        .clock = clock, .log_level = "error", .threadless = strcmp(clock, "fake") == 0});
}

/* A counter of 3 GHz that is slow by a thousandth, so that the curve bends at each renewal. */
static void pass(uint64_t ns)
{
    oteli_fake_clock.ticks += 3 * ns - ns / 333;
    oteli_fake_clock.monotonic_ns += ns;
    oteli_fake_clock.wall_ns += ns;
}

static otel_span_view exported(const char *name)
{
    otel_span_view view = {.size = sizeof view};
    assert_int_equal(otel_flush(5000), OTEL_OK);
    for (size_t i = 0; otel_memory_span(traced.memory, i, &view); i++)
        if (view.name.length == strlen(name) && memcmp(view.name.data, name, view.name.length) == 0)
            return view;
    fail_msg("%s was not exported", name);
    return view;
}

static uint64_t event_ns(const otel_span_view *view)
{
    otel_slice rest = view->events;
    otel_event_view event;
    assert_true(otel_event_next(&rest, &event));
    return event.time_ns;
}

/* A child that ends at a time of the program's, with an event at one, in a parent that ends by
 * itself; between the two the exporter may have converted other times, and renewed the clocks. */
static void assert_child_in_parent(void (*meanwhile)(void))
{
    otel_memory_clear(traced.memory);
    const otel_span parent = otel_span_enter(traced.tracer, "parent", NULL);
    pass(1000);
    const otel_span child = otel_span_enter(traced.tracer, "child", NULL);
    meanwhile();
    otel_span_add_event_at(child, "event", otel_now_ns(), NULL, 0);
    pass(1000);
    const uint64_t end_ns = otel_now_ns();
    otel_span_end_at(child, end_ns);
    meanwhile();
    const otel_span next = otel_span_enter(traced.tracer, "next", NULL);
    otel_span_end(next);
    otel_span_end(parent);

    const otel_span_view outside = exported("parent");
    const otel_span_view inside = exported("child");
    assert_true(outside.start_ns <= inside.start_ns);
    assert_true(inside.start_ns <= event_ns(&inside));
    assert_true(event_ns(&inside) <= inside.end_ns);
    assert_true(inside.end_ns == end_ns);
    assert_true(inside.end_ns <= exported("next").start_ns);
    assert_true(inside.end_ns <= outside.end_ns);
}

static void sometimes_flush(void)
{
    static unsigned calls;
    pass(10000000);
    if (++calls % A_FLUSH_IN == 0)
        assert_int_equal(otel_flush(5000), OTEL_OK);
}

AROUND_EACH(traced_setup_queued, traced_teardown);

TEST(a_child_that_ends_now_ends_before_its_parent_with_every_clock)
{
    static const char *const clocks[] = {"auto", "monotonic", "coarse", "fake"};
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        start_with_clock(clocks[i]);
        for (int round = 0; round < ROUNDS; round++)
            assert_child_in_parent(sometimes_flush);
    }
}

static int64_t step_ns;

static void step_and_flush(void)
{
    oteli_fake_clock.wall_ns += (uint64_t)step_ns;
    assert_int_equal(otel_flush(5000), OTEL_OK);
    (void)otel_now_ns();
}

TEST(a_child_that_ends_now_ends_before_its_parent_when_the_wall_clock_is_set)
{
    start_with_clock("fake");
    for (int round = 0; round < ROUNDS; round++) {
        step_ns = round % 2 == 0 ? -(int64_t)HOUR_NS : (int64_t)(HOUR_NS / 2);
        assert_child_in_parent(step_and_flush);
    }
}

TEST(it_is_the_time_of_an_attached_spans_trace)
{
    start_with_clock("fake");
    const otel_span request = otel_span_start(traced.tracer, "request", NULL);
    step_ns = -(int64_t)HOUR_NS;
    pass(1000);
    step_and_flush();
    const uint64_t of_no_trace = otel_now_ns();
    const otel_context_token token = otel_context_attach((otel_context){.span = request});
    const uint64_t of_its_trace = otel_now_ns();
    (void)otel_context_detach(token);
    otel_span_end(request);

    assert_true(of_its_trace == exported("request").end_ns);
    assert_in_range(of_its_trace, WALL_NS, WALL_NS + 2000);
    assert_in_range(of_no_trace, WALL_NS - HOUR_NS, WALL_NS - HOUR_NS + 2000);
}

TEST(it_follows_the_wall_clock_while_nothing_is_exported)
{
    start_with_clock("fake");
    for (int i = 0; i < 4; i++) {
        pass(10 * SECOND_NS);
        oteli_fake_clock.wall_ns -= HOUR_NS;
        assert_in_range(otel_now_ns(), oteli_fake_clock.wall_ns - 500,
                        oteli_fake_clock.wall_ns + 500);
    }
}

TEST(it_can_be_the_start_of_a_span)
{
    const uint64_t now_ns = otel_now_ns();
    const otel_span span =
        otel_span_start(traced.tracer, "span", OTEL_SPAN_OPTIONS(.start_ns = now_ns));
    otel_span_end(span);
    assert_true(exported("span").start_ns == now_ns);
    assert_true(exported("span").end_ns >= now_ns);
}

TEST_WITH(NULL, NULL, without_an_sdk_it_is_the_wall_clock)
{
    const uint64_t before_ns = real_ns();
    const uint64_t now_ns = otel_now_ns();
    assert_in_range(now_ns, before_ns, real_ns());
}

TEST(after_the_sdk_it_is_the_wall_clock)
{
    start_with_clock("fake");
    traced_stop();
    const uint64_t before_ns = real_ns();
    const uint64_t now_ns = otel_now_ns();
    assert_in_range(now_ns, before_ns, real_ns());
    traced_start(&(otel_sdk_options){0});
}
