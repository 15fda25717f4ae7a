/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/interrupted_test.c - specification of calls of the API that a signal handler interrupts
 * which traces itself: after any instruction. The processor takes each step alone, and says so by a
 * signal. */
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#if defined(__x86_64__)

enum { TRAP_FLAG = 0x100, RED_ZONE = 128, MANY_STEPS = 64, MOST_STEPS = 10000 };

static otel_tracer *tracer;
static otel_context_token outer_context;
static otel_context_token inner_context;
static otel_span outer;
static otel_span inner;

static void (*handle)(void);
static unsigned step;
static unsigned chosen; /* after which the handler has its turn */
static volatile sig_atomic_t is_stepping;
static bool is_wrong; /* something was not as it should be: said when nobody steps any more */

static void on_step(int number, siginfo_t *info, void *context)
{
    ucontext_t *const interrupted = context;
    (void)number;
    (void)info;
    if (++step == chosen)
        handle();
    if (is_stepping == 0)
        interrupted->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static __attribute__((noinline)) void begin_to_step(void)
{
    is_stepping = 1;
    __asm__ volatile("leaq -%c0(%%rsp), %%rsp\n\tpushfq\n\torq %1, (%%rsp)\n\tpopfq\n\t"
                     "leaq %c0(%%rsp), %%rsp"
                     :
                     : "i"(RED_ZONE), "i"(TRAP_FLAG)
                     : "memory", "cc");
}

/* Do it once for each of its steps, and let the handler have its turn there; sanitizers make so many
 * of them that some are left out. */
static void interrupt_each_step(void (*prepare)(void), void (*act)(void), void (*finish)(void))
{
    const struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    struct sigaction before;
    assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
    chosen = step = 0;
    do {
        prepare();
        chosen += 1 + step / MANY_STEPS;
        step = 0;
        begin_to_step();
        act();
        is_stepping = 0;
        finish();
    } while (chosen < step && !is_wrong && chosen < MOST_STEPS);
    assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
    if (is_wrong)
        print_error("after step %u of %u\n", chosen, step);
    assert_false(is_wrong);
    assert_true(chosen > 5 && chosen < MOST_STEPS);
}

static otel_context wrapped(uint8_t number)
{
    otel_span_context context = {.flags = 1};
    memset(context.trace_id, number, sizeof context.trace_id);
    memset(context.span_id, number, sizeof context.span_id);
    return (otel_context){.span = otel_span_wrap(&context)};
}

static void check_current(otel_span span)
{
    const otel_span now = otel_current_span();
    is_wrong |= memcmp(now.opaque, span.opaque, 3 * sizeof now.opaque[0]) != 0;
}

static void trace_in_handler(void)
{
    const otel_span before = otel_current_span();
    const otel_span span = otel_span_enter(tracer, "in the handler", NULL);
    otel_span_add_event(span, "event", NULL, 0);
    otel_span_end(span);
    check_current(before);
    const otel_context_token token = otel_context_attach(wrapped(3));
    if (token.opaque != 0)
        check_current(wrapped(3).span);
    is_wrong |= !otel_context_detach(token) && token.opaque != 0;
    check_current(before);
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
    is_wrong |= !otel_context_detach(inner_context);
}

static void detach_outer(void)
{
    check_current(wrapped(1).span);
    is_wrong |= !otel_context_detach(outer_context);
    check_current((otel_span){{0}});
}

static void detach_both(void)
{
    check_current(wrapped(2).span);
    detach_inner();
    detach_outer();
}

static int set_up(void **state)
{
    const int status = recorder_setup_queued_fast(state);
    tracer = otel_tracer_get("t", NULL);
    handle = trace_in_handler;
    is_wrong = false;
    trace_in_handler(); /* so that the interrupted thread has a state */
    return status;
}

static void test_a_context_is_attached(void **state)
{
    (void)state;
    interrupt_each_step(attach_outer, attach_inner, detach_both);
}

static void test_a_context_is_detached(void **state)
{
    (void)state;
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
    check_current(outer);
    otel_span_end(outer);
    check_current((otel_span){{0}});
}

static void end_both(void)
{
    check_current(inner);
    end_inner();
    end_outer();
}

static void test_a_span_is_entered(void **state)
{
    (void)state;
    interrupt_each_step(enter_outer, enter_inner, end_both);
}

static void test_a_span_is_ended(void **state)
{
    (void)state;
    interrupt_each_step(enter_both, end_inner, end_outer);
}

static void sample_nothing(void)
{
    recorder_stop();
    recorder_start_queued();
    memset(recorder.sdk.decide, OTELI_DECIDE_DROP, sizeof recorder.sdk.decide);
}

static void test_an_unsampled_span_is_entered(void **state)
{
    (void)state;
    sample_nothing();
    interrupt_each_step(enter_outer, enter_inner, end_both);
}

static void test_an_unsampled_span_is_ended(void **state)
{
    (void)state;
    sample_nothing();
    interrupt_each_step(enter_both, end_inner, end_outer);
}

#define INTERRUPTED(test) cmocka_unit_test_setup_teardown(test, set_up, recorder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        INTERRUPTED(test_a_context_is_attached),
        INTERRUPTED(test_a_context_is_detached),
        INTERRUPTED(test_a_span_is_entered),
        INTERRUPTED(test_a_span_is_ended),
        INTERRUPTED(test_an_unsampled_span_is_entered),
        INTERRUPTED(test_an_unsampled_span_is_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 0;
}

#endif
