/* SPDX-License-Identifier: Apache-2.0 */
/* A time that the program gives to a span stays as it is, also an end before the start: in
 * whatever way the span comes to its end, and for all who see it. */
#include "blackbox.h"
#include <otel/lines.h>
#include <otel/record.h>

static otel_tracer *tracer;

struct times {
    uint64_t start_ns; /* 0: measured */
    uint64_t end_ns;
};
static const struct times cases[] = {{5000, 1000}, {0, 1000}, {5000, 5000}, {1000, 5000}};
static struct times given;

/* Who has seen the span with these times. */
static size_t seen_ending, seen_ended, seen_by_rule;

static void see(const otel_span_view *view)
{
    if (given.start_ns != 0)
        assert_int_equal(view->start_ns, given.start_ns);
    assert_int_equal(view->end_ns, given.end_ns);
}

static void see_ending(void *state, otel_span span, uint64_t end_ns)
{
    (void)state;
    (void)span;
    assert_int_equal(end_ns, given.end_ns);
    seen_ending++;
}

static void see_ended(void *state, const otel_span_view *view)
{
    (void)state;
    see(view);
    seen_ended++;
}

static bool see_root(void *state, const otel_tail *tail)
{
    (void)state;
    const bool is_forwards = given.start_ns != 0 && given.end_ns > given.start_ns;
    assert_int_equal(tail->duration_ns, is_forwards ? given.end_ns - given.start_ns : 0);
    seen_by_rule++;
    return true;
}

/* --- the ways to an end --- */

static void entered(void)
{
    const otel_span span =
        otel_span_enter(tracer, "entered", OTEL_SPAN_OPTIONS(.start_ns = given.start_ns));
    otel_span_end_at(span, given.end_ns);
}

static void started(void)
{
    const otel_span span =
        otel_span_start(tracer, "started", OTEL_SPAN_OPTIONS(.start_ns = given.start_ns));
    otel_span_set_int(span, "number", 1);
    otel_span_end_at(span, given.end_ns);
}

static void held(void)
{
    const otel_span root = otel_span_enter(
        tracer, "root", OTEL_SPAN_OPTIONS(.hold = true, .start_ns = given.start_ns));
    entered();
    otel_span_end_at(root, given.end_ns);
}

static void mounted(void)
{
    otel_lines_begin();
    entered();
    otel_lines *lines = otel_lines_end();
    otel_span_view view = {.size = sizeof view};
    size_t cursor = 0;
    assert_true(otel_lines_next(lines, &cursor, &view));
    see(&view);
    const otel_span parent =
        otel_span_enter(tracer, "parent", OTEL_SPAN_OPTIONS(.start_ns = given.start_ns));
    otel_lines_mount(lines, &parent, 1, NULL);
    otel_span_end_at(parent, given.end_ns);
    otel_lines_free(lines);
}

static void recorded(void)
{
    otel_span_record(tracer,
                     OTEL_FINISHED_SPAN(.flags = OTEL_TRACE_FLAG_SAMPLED, .name = "recorded",
                                        .start_ns = given.start_ns, .end_ns = given.end_ns));
}

static const struct {
    void (*run)(void);
    size_t spans;
} ways[] = {{entered, 1}, {started, 1}, {held, 2}, {mounted, 2}, {recorded, 1}};

static void go_all_ways(const otel_processor *processor, bool has_rule)
{
    assert_int_equal(start_with_memory(OTEL_SDK_OPTIONS(.processors = processor,
                                                        .processor_count = processor != NULL,
                                                        .tail_keep = has_rule ? see_root : NULL)),
                     OTEL_OK);
    tracer = otel_tracer_get("end_times", NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            otel_span_view view = {.size = sizeof view};
            given = cases[i];
            if (given.start_ns == 0 && ways[k].run == recorded)
                continue;
            ways[k].run();
            assert_int_equal(otel_flush(5000), OTEL_OK);
            assert_int_equal(otel_memory_count(memory), ways[k].spans);
            for (size_t at = 0; otel_memory_span(memory, at, &view); at++)
                see(&view);
            otel_memory_clear(memory);
        }
    assert_int_equal(stop_memory(NULL), 0);
}

static void given_times_stay_in_what_is_exported(void **state)
{
    (void)state;
    go_all_ways(NULL, false);
}

static void given_times_stay_for_processors(void **state)
{
    (void)state;
    const otel_processor processor =
        OTEL_PROCESSOR(.name = "watch", .on_ending = see_ending, .on_end = see_ended);
    go_all_ways(&processor, false);
    assert_true(seen_ending > 0);
    assert_true(seen_ended > seen_ending);
}

static void given_times_stay_where_a_rule_decides(void **state)
{
    (void)state;
    go_all_ways(NULL, true);
    assert_true(seen_by_rule > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(given_times_stay_in_what_is_exported),
                                       cmocka_unit_test(given_times_stay_for_processors),
                                       cmocka_unit_test(given_times_stay_where_a_rule_decides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
