/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/interrupted_test.c - specification of calls of the API that a signal handler interrupts
 * which traces itself: after any instruction. */
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/single_steps.h"
#include "tests/support/unit.h"

#include <string.h>

#if defined(__x86_64__)

static otel_tracer *tracer;
static otel_context_token outer_context;
static otel_context_token inner_context;
static otel_span outer;
static otel_span inner;

static otel_context wrapped(uint8_t number)
{
    otel_span_context context = {.flags = 1};
    memset(context.trace_id, number, sizeof context.trace_id);
    memset(context.span_id, number, sizeof context.span_id);
    return (otel_context){.span = otel_span_wrap(&context)};
}

static void trace_in_handler(void)
{
    const otel_span before = otel_current_span();
    const otel_span span = otel_span_enter(tracer, "in the handler", NULL);
    otel_span_add_event(span, "event", NULL, 0);
    otel_span_end(span);
    single_steps_check_current(before);
    const otel_context_token token = otel_context_attach(wrapped(3));
    if (token.opaque != 0)
        single_steps_check_current(wrapped(3).span);
    single_steps_check(otel_context_detach(token) || token.opaque == 0);
    single_steps_check_current(before);
}

/* --- contexts --- */

static void attach_outer(void)
{
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

static void detach_inner(void)
{
    single_steps_check(otel_context_detach(inner_context));
}

static void detach_outer(void)
{
    single_steps_check_current(wrapped(1).span);
    single_steps_check(otel_context_detach(outer_context));
    single_steps_check_current((otel_span){{0}});
}

static void detach_both(void)
{
    single_steps_check_current(wrapped(2).span);
    detach_inner();
    detach_outer();
}

static int set_up(void **state)
{
    const int status = recorder_setup_queued_fast(state);
    tracer = otel_tracer_get("t", NULL);
    trace_in_handler(); /* so that the interrupted thread has a state */
    return status;
}

static void interrupt_each_step(void (*prepare)(void), void (*act)(void), void (*finish)(void))
{
    single_steps_interrupt(&(struct single_steps){prepare, act, finish}, trace_in_handler);
}

AROUND_EACH(set_up, recorder_teardown);

TEST(a_context_is_attached)
{
    interrupt_each_step(attach_outer, attach_inner, detach_both);
}

TEST(a_context_is_detached)
{
    interrupt_each_step(attach_both, detach_inner, detach_outer);
}

/* --- spans --- */

static void enter_outer(void)
{
    outer = otel_span_enter(tracer, "outer", NULL);
}

static void enter_inner(void)
{
    inner = otel_span_enter(tracer, "inner", NULL);
}

static void enter_both(void)
{
    enter_outer();
    enter_inner();
}

static void end_inner(void)
{
    otel_span_end(inner);
}

static void end_outer(void)
{
    single_steps_check_current(outer);
    otel_span_end(outer);
    single_steps_check_current((otel_span){{0}});
}

static void end_both(void)
{
    single_steps_check_current(inner);
    end_inner();
    end_outer();
}

TEST(a_span_is_entered)
{
    interrupt_each_step(enter_outer, enter_inner, end_both);
}

TEST(a_span_is_ended)
{
    interrupt_each_step(enter_both, end_inner, end_outer);
}

static void sample_nothing(void)
{
    recorder_stop();
    recorder_start_queued();
    memset(recorder.sdk.decide, OTELI_DECIDE_DROP, sizeof recorder.sdk.decide);
}

TEST(an_unsampled_span_is_entered)
{
    sample_nothing();
    interrupt_each_step(enter_outer, enter_inner, end_both);
}

TEST(an_unsampled_span_is_ended)
{
    sample_nothing();
    interrupt_each_step(enter_both, end_inner, end_outer);
}

#else

TEST(single_steps_are_for_x86_64)
{
    skip();
}

#endif
