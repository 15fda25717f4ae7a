/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/interrupted_deep_test.c - specification of calls of the API that a signal handler
 * interrupts, after any instruction, which traces so deeply that the stack of places is moved. Each
 * time there is another stack, with room for three places before it has to grow. */
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/single_steps.h"
#include "api/compose.h"
#include "tests/support/unit.h"
#include <otel/fibre.h>
#include <otel/record.h>

#include <string.h>

#if defined(__x86_64__)

enum { ROOM = 3, DEEP = 9 };
enum { ATTRIBUTES = 9, EVENTS = 11 };

static otel_tracer *tracer;
static otel_stack *stack;
static unsigned filler_count;
static otel_span fillers[ROOM];
static otel_context_token outer_context;
static otel_context_token inner_context;
static otel_span outer;
static otel_span inner;
static otel_span other;
static size_t seen;          /* of what is recorded */
static uint32_t field;       /* that the inner span should have; 0: any */
static unsigned inner_count; /* how often it should be recorded */

static otel_context wrapped(uint8_t number)
{
    otel_span_context context = {.flags = 1, .is_remote = number == 4};
    memset(context.trace_id, number, sizeof context.trace_id);
    memset(context.span_id, number, sizeof context.span_id);
    return (otel_context){.span = otel_span_wrap(&context)};
}

/* --- the handler --- */

static void trace_deeply(void)
{
    const otel_span before = otel_current_span();
    otel_span spans[DEEP];
    otel_context_token tokens[DEEP];
    for (unsigned i = 0; i < DEEP; i++)
        spans[i] = otel_span_enter(tracer, "in the handler", NULL);
    for (unsigned i = DEEP; i-- > 0;)
        otel_span_end(spans[i]);
    single_steps_check_current(before);
    for (unsigned i = 0; i < DEEP; i++)
        tokens[i] = otel_context_attach(wrapped(3));
    for (unsigned i = DEEP; i-- > 0;)
        single_steps_check(otel_context_detach(tokens[i]) || tokens[i].opaque == 0);
    single_steps_check_current(before);
}

/* --- before and after --- */

/* A stack that has places, as many of them taken as are to be. */
static void begin_stack(void)
{
    stack = otel_stack_new();
    (void)otel_stack_switch(stack);
    otel_span_end(otel_span_enter(tracer, "first", NULL));
    single_steps_check(oteli_self->last - oteli_self->top == ROOM);
    for (unsigned i = 0; i < filler_count; i++)
        fillers[i] = otel_span_enter(tracer, "filler", NULL);
}

static bool is_inner(size_t index)
{
    struct oteli_field name;
    const struct recorded_span span = recorder_span(index);
    return recorder_find(span.message, span.length, OTELI_SPAN_NAME, 0, &name) &&
           name.length == 5 && memcmp(name.bytes, "inner", 5) == 0;
}

static void check_records(void)
{
    unsigned found = 0;
    recorder_collect();
    for (; seen < recorder.count; seen++) {
        if (!is_inner(seen))
            continue;
        found++;
        single_steps_check(field == 0 || recorder_has_field(seen, field));
    }
    single_steps_check(found == inner_count);
    const struct counted counts = recorder_counts();
    single_steps_check(counts.recorded == counts.ended);
}

static void end_stack(void)
{
    for (unsigned i = filler_count; i-- > 0;) {
        single_steps_check_current(fillers[i]);
        otel_span_end(fillers[i]);
    }
    const struct oteli_thread *thread = oteli_self;
    single_steps_check_current((otel_span){{0}});
    single_steps_check(thread->top == thread->stack);
    single_steps_check(thread->last == thread->stack + thread->open_capacity - 1);
    check_records();
    if (!single_steps_are_wrong)
        otel_stack_free(stack);
}

static int set_up(void **state)
{
    const int status = recorder_setup_queued_fast(state);
    tracer = otel_tracer_get("t", NULL);
    seen = 0;
    field = 0;
    inner_count = 1;
    trace_deeply(); /* so that the interrupted thread has a state */
    return status;
}

/* With as many places taken before as leave the scene the `uses` that it needs; where it needs none,
 * with none taken, too: a root has nothing below it. */
static void interrupt_deeply(struct single_steps steps, unsigned uses)
{
    filler_count = ROOM - uses;
    single_steps_interrupt(&steps, trace_deeply);
    filler_count = 0;
    if (uses == 0)
        single_steps_interrupt(&steps, trace_deeply);
}

/* --- spans --- */

static void enter_outer(void)
{
    begin_stack();
    outer = otel_span_enter(tracer, "outer", NULL);
}

static void enter_inner(void)
{
    inner = otel_span_enter(tracer, "inner", NULL);
}

static void enter_inner_of_a_kind(void)
{
    inner = otel_span_enter(tracer, "inner", OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_SERVER));
}

static void enter_inner_of_remote(void)
{
    const otel_context parent = wrapped(4);
    inner = otel_span_enter(tracer, "inner", OTEL_SPAN_OPTIONS(.parent = &parent));
}

static void start_inner(void)
{
    inner = otel_span_start(tracer, "inner", NULL);
}

static void enter_both(void)
{
    enter_outer();
    enter_inner();
}

static void enter_both_and_describe(void)
{
    enter_both();
    otel_span_set_string(inner, "key of it", "value");
}

static void enter_inner_below_other(void)
{
    begin_stack();
    enter_inner();
    other = otel_span_enter(tracer, "other", NULL);
}

static void enter_address(void)
{
    inner = otel_span_enter_address(tracer, (const void *)(uintptr_t)0x1234);
}

static void enter_short(void)
{
    enter_outer();
    enter_address();
}

static void end_inner(void)
{
    otel_span_end(inner);
}

static void end_inner_at_a_time(void)
{
    otel_span_end_at(inner, RECORDER_WALL_NS);
}

static void end_inner_unless_shorter(void)
{
    otel_span_end_unless_shorter(inner, 1000000000);
}

static void cancel_inner(void)
{
    otel_span_cancel(inner);
}

static void end_outer(void)
{
    single_steps_check_current(outer);
    otel_span_end(outer);
    end_stack();
}

static void end_other(void)
{
    otel_span_end(other);
    end_stack();
}

static void end_inner_only(void)
{
    single_steps_check_current(inner);
    end_inner();
    end_stack();
}

static void end_both(void)
{
    single_steps_check_current(inner);
    end_inner();
    end_outer();
}

static void end_started(void)
{
    end_inner();
    end_outer();
}

AROUND_EACH(set_up, recorder_teardown);

TEST(a_root_is_entered)
{
    interrupt_deeply((struct single_steps){begin_stack, enter_inner, end_inner_only}, 0);
}

TEST(a_child_is_entered)
{
    interrupt_deeply((struct single_steps){enter_outer, enter_inner, end_both}, 1);
}

TEST(a_child_of_a_kind_is_entered)
{
    interrupt_deeply((struct single_steps){enter_outer, enter_inner_of_a_kind, end_both}, 1);
}

TEST(a_child_of_a_remote_parent_is_entered)
{
    interrupt_deeply((struct single_steps){enter_outer, enter_inner_of_remote, end_both}, 1);
}

TEST(a_detached_child_is_started)
{
    interrupt_deeply((struct single_steps){enter_outer, start_inner, end_started}, 1);
}

TEST(a_function_is_entered)
{
    inner_count = 0;
    interrupt_deeply((struct single_steps){enter_outer, enter_address, end_both}, 1);
}

TEST(a_span_is_ended)
{
    interrupt_deeply((struct single_steps){enter_both, end_inner, end_outer}, 2);
}

TEST(a_larger_span_is_ended)
{
    field = ATTRIBUTES;
    interrupt_deeply((struct single_steps){enter_both_and_describe, end_inner, end_outer}, 2);
}

TEST(a_span_is_ended_at_a_time)
{
    interrupt_deeply((struct single_steps){enter_both, end_inner_at_a_time, end_outer}, 2);
}

TEST(a_span_that_is_not_current_is_ended)
{
    interrupt_deeply((struct single_steps){enter_inner_below_other, end_inner, end_other}, 2);
}

TEST(a_short_function_is_left)
{
    inner_count = 0;
    interrupt_deeply((struct single_steps){enter_short, end_inner_unless_shorter, end_outer}, 2);
}

TEST(a_span_is_cancelled)
{
    inner_count = 0;
    interrupt_deeply((struct single_steps){enter_both, cancel_inner, end_outer}, 2);
}

static void sample_nothing(void)
{
    recorder_stop();
    recorder_start_queued();
    memset(recorder.sdk.decide, OTELI_DECIDE_DROP, sizeof recorder.sdk.decide);
    inner_count = 0;
}

TEST(an_unsampled_root_is_entered)
{
    sample_nothing();
    interrupt_deeply((struct single_steps){begin_stack, enter_inner, end_inner_only}, 0);
}

TEST(an_unsampled_child_is_entered)
{
    sample_nothing();
    interrupt_deeply((struct single_steps){enter_outer, enter_inner, end_both}, 1);
}

TEST(an_unsampled_span_is_ended)
{
    sample_nothing();
    interrupt_deeply((struct single_steps){enter_both, end_inner, end_outer}, 2);
}

/* --- what is said of a span --- */

static void set_string(void)
{
    otel_span_set_string(inner, "key of it", "value");
}

static void set_int(void)
{
    otel_span_set_int(inner, "key of it", 42);
}

static void add_event(void)
{
    otel_span_add_event(inner, "event", NULL, 0);
}

static void ask_whether_it_records(void)
{
    single_steps_check(otel_span_is_recording(inner));
}

static void ask_what_is_current(void)
{
    single_steps_check_current(inner);
    single_steps_check(otel_context_get_attributes(NULL, NULL, 0) == 0);
}

static void describe_current(void (*act)(void), uint32_t expected)
{
    field = expected;
    interrupt_deeply((struct single_steps){enter_both, act, end_both}, 2);
}

static void end_inner_below_other(void)
{
    otel_span_end(other);
    end_inner_only();
}

TEST(the_current_span_is_described)
{
    describe_current(set_string, ATTRIBUTES);
    describe_current(set_int, ATTRIBUTES);
    describe_current(add_event, EVENTS);
}

TEST(the_current_span_is_asked_for)
{
    describe_current(ask_whether_it_records, 0);
    describe_current(ask_what_is_current, 0);
}

TEST(another_span_is_described)
{
    const struct single_steps string = {enter_inner_below_other, set_string, end_inner_below_other};
    const struct single_steps event = {enter_inner_below_other, add_event, end_inner_below_other};
    field = ATTRIBUTES;
    interrupt_deeply(string, 2);
    field = EVENTS;
    interrupt_deeply(event, 2);
}

/* --- contexts --- */

static void attach_outer(void)
{
    begin_stack();
    outer_context = otel_context_attach(wrapped(1));
}

static void attach_inner(void)
{
    inner_context = otel_context_attach(wrapped(2));
}

static void attach_both(void)
{
    attach_outer();
    attach_inner();
}

static void attach_inner_in_span(void)
{
    enter_outer();
    attach_inner();
}

static void attach_the_current_span(void)
{
    const otel_context context = {.span = outer};
    inner_context = otel_context_attach(context);
}

static void detach_inner(void)
{
    single_steps_check(otel_context_detach(inner_context));
}

static void detach_outer(void)
{
    single_steps_check_current(wrapped(1).span);
    single_steps_check(otel_context_detach(outer_context));
    end_stack();
}

static void detach_outer_first(void)
{
    (void)otel_context_detach(outer_context);
}

static void detach_inner_last(void)
{
    single_steps_check_current(wrapped(2).span);
    detach_inner();
    end_stack();
}

static void detach_both(void)
{
    single_steps_check_current(wrapped(2).span);
    detach_inner();
    detach_outer();
}

static void detach_inner_and_end(void)
{
    detach_inner();
    end_outer();
}

TEST(a_context_is_attached)
{
    inner_count = 0;
    interrupt_deeply((struct single_steps){attach_outer, attach_inner, detach_both}, 1);
}

TEST(an_open_span_is_attached)
{
    inner_count = 0;
    interrupt_deeply(
        (struct single_steps){enter_outer, attach_the_current_span, detach_inner_and_end}, 1);
}

TEST(a_context_is_detached)
{
    inner_count = 0;
    interrupt_deeply((struct single_steps){attach_both, detach_inner, detach_outer}, 2);
    interrupt_deeply((struct single_steps){attach_inner_in_span, detach_inner, end_outer}, 2);
}

TEST(a_context_is_detached_that_is_not_current)
{
    inner_count = 0;
    interrupt_deeply((struct single_steps){attach_both, detach_outer_first, detach_inner_last}, 2);
}

/* --- others --- */

static void record_inner(void)
{
    otel_span_record(tracer, OTEL_FINISHED_SPAN(.name = "inner", .flags = OTEL_TRACE_FLAG_SAMPLED));
}

static void begin_lines(void)
{
    otel_lines_begin();
}

static void begin_stretch(void)
{
    begin_stack();
    otel_lines_begin();
}

static void end_lines(void)
{
    otel_lines_free(otel_lines_end());
}

static void end_lines_and_stack(void)
{
    end_lines();
    end_stack();
}

static void switch_stacks(void)
{
    single_steps_check(otel_stack_switch(NULL) == stack);
}

static void switch_back(void)
{
    single_steps_check(otel_stack_switch(stack) == NULL);
    end_outer();
}

TEST(a_finished_span_is_recorded)
{
    interrupt_deeply((struct single_steps){enter_outer, record_inner, end_outer}, 1);
}

TEST(a_stretch_is_collected)
{
    inner_count = 0;
    interrupt_deeply((struct single_steps){begin_stack, begin_lines, end_lines_and_stack}, 0);
    interrupt_deeply((struct single_steps){begin_stretch, end_lines, end_stack}, 1);
}

TEST(a_fibre_is_left)
{
    inner_count = 0;
    interrupt_deeply((struct single_steps){enter_outer, switch_stacks, switch_back}, 1);
}

#else

TEST(single_steps_are_for_x86_64)
{
    skip();
}

#endif
