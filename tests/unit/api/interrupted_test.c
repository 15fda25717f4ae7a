/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/interrupted_test.c - specification of calls of the API that a signal handler
 * interrupts which traces itself: after some of their instructions, and with OTEL_TEST_LONG=1 after
 * any. The handler enters one span, or so many that the stack of places is moved; or it calls what
 * it may always call. Each time there is another stack, with room for
 * three places before it has to grow. */
#include "api/record/span_encoder.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"
#include <otel/fibre.h>
#include <otel/record.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#if defined(__x86_64__)

/* --- steps: the processor takes each alone, and says so by a signal --- */

enum { TRAP_FLAG = 0x100, RED_ZONE = 128, MANY_STEPS = 200, FEW_OF_THEM = 8, MOST_STEPS = 100000 };

static void (*handle_step)(void);
static unsigned step;
static unsigned chosen; /* after which the handler has its turn */
static volatile sig_atomic_t is_stepping;

static bool single_steps_are_wrong; /* said when nobody steps any more */

static void single_steps_check(bool is_right)
{
    single_steps_are_wrong |= !is_right;
}

/* This span is the current one. */
static void single_steps_check_current(otel_span span)
{
    const otel_span now = otel_current_span();
    single_steps_check(memcmp(now.opaque, span.opaque, 3 * sizeof now.opaque[0]) == 0);
}

static void on_step(int number, siginfo_t *info, void *context)
{
    ucontext_t *const interrupted = context;
    (void)number;
    (void)info;
    if (++step == chosen) {
        handle_step();
        is_stepping = 0;
    }
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

/* What is interrupted, and what comes before and after it, each time. */
struct single_steps {
    void (*prepare)(void);
    void (*act)(void);
    void (*finish)(void);
};

/* Do it again and again, and let the handler have its turn after some of its steps, the more of
 * them the earlier; with OTEL_TEST_LONG=1 after each, but for later ones of calls with many steps,
 * as sanitizers make them. */
static void single_steps_interrupt(const struct single_steps *steps, void (*handle)(void))
{
    const struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    struct sigaction before;
    assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
    handle_step = handle;
    single_steps_are_wrong = false;
    chosen = step = 0;
    const bool is_long_form = getenv("OTEL_TEST_LONG") != NULL;
    do {
        steps->prepare();
        chosen += !is_long_form ? 1 + chosen / 2 : chosen < MANY_STEPS ? 1 : chosen / FEW_OF_THEM;
        step = 0;
        begin_to_step();
        steps->act();
        is_stepping = 0;
        steps->finish();
    } while (step == chosen && !single_steps_are_wrong && chosen < MOST_STEPS);
    assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
    if (single_steps_are_wrong)
        print_error("after step %u\n", chosen);
    assert_false(single_steps_are_wrong);
    assert_true(chosen > 5 && chosen < MOST_STEPS);
}

/* --- scenes --- */

enum { ROOM = 3, DEEP = 9, PARENTS = 4 };

static otel_tracer *tracer;
static otel_stack *stack;
static unsigned filler_count;
static otel_span fillers[ROOM];
static otel_context_token outer_context;
static otel_context_token inner_context;
static otel_span outer;
static otel_span inner;
static otel_span other;
static size_t seen; /* of what is recorded */

/* The call that is interrupted, and what is done before and after it. */
struct scene {
    const char *name;
    unsigned places;                                               /* that it needs */
    enum { ANY, ATTRIBUTES = 9, EVENTS = 11, NOTHING = 99 } inner; /* what is recorded of it */
    void (*act)(void);
    void (*before[3])(void);
    void (*after[3])(void);
};
static const struct scene *scene;

static otel_context wrapped(uint8_t number)
{
    otel_span_context context = {.flags = 1, .is_remote = number == 4};
    memset(context.trace_id, number, sizeof context.trace_id);
    memset(context.span_id, number, sizeof context.span_id);
    return (otel_context){.span = otel_span_wrap(&context)};
}

/* --- the handler --- */

static unsigned depth; /* of what the handler enters, and attaches */

static void trace_in_handler(void)
{
    const otel_span before = otel_current_span();
    otel_span spans[DEEP];
    otel_context_token tokens[DEEP];
    for (unsigned i = 0; i < depth; i++)
        spans[i] = otel_span_enter(tracer, "in the handler", NULL);
    otel_span_add_event(spans[0], "event", NULL, 0);
    for (unsigned i = depth; i-- > 0;)
        otel_span_end(spans[i]);
    single_steps_check_current(before);
    for (unsigned i = 0; i < depth; i++)
        tokens[i] = otel_context_attach(wrapped(3));
    if (tokens[depth - 1].opaque != 0)
        single_steps_check_current(wrapped(3).span);
    for (unsigned i = depth; i-- > 0;)
        single_steps_check(otel_context_detach(tokens[i]) || tokens[i].opaque == 0);
    single_steps_check_current(before);
}

static otel_parents *parents;

/* All that docs/THREADS.md says a handler may call whatever it has interrupted. */
static void read_in_handler(void)
{
    const otel_span now = otel_current_span();
    const otel_context current = otel_current_context();
    const otel_span_context ids = otel_span_get_context(now);
    const otel_span_context again = otel_span_get_context(otel_span_wrap(&ids));
    const otel_context_key key = otel_context_create_key("key");
    otel_context_value place;
    const otel_context with_value =
        otel_context_with_value(otel_context_with_span(current, now), key, &place, &place);
    char hex[33];
    char text[8];
    otel_trace_id_hex(&ids, hex);
    single_steps_check(strlen(hex) == 32);
    otel_span_id_hex(&ids, hex);
    single_steps_check(strlen(hex) == 16);
    single_steps_check(otel_span_context_tracestate(&ids, text, sizeof text) == 0);
    single_steps_check(memcmp(&ids, &again, sizeof ids) == 0);
    single_steps_check(otel_span_context_is_valid(&ids) == (now.opaque[2] != 0));
    single_steps_check(otel_context_get_value(&with_value, key) == &place);
    single_steps_check(memcmp(current.span.opaque, now.opaque, sizeof now) == 0);
    single_steps_check(otel_span_mark_here().opaque != 0);
    single_steps_check(otel_now_ns() == RECORDER_WALL_NS);
    (void)otel_parents_add(parents, &now);
}

/* --- before and after --- */

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
        single_steps_check(scene->inner == ANY || recorder_has_field(seen, scene->inner));
    }
    single_steps_check(found == (scene->inner != NOTHING));
    const struct counted counts = recorder_counts();
    single_steps_check(counts.recorded == counts.ended);
}

/* A stack that has places, as many of them taken as are to be. */
static void prepare(void)
{
    stack = otel_stack_new();
    (void)otel_stack_switch(stack);
    otel_span_end(otel_span_enter(tracer, "first", NULL));
    single_steps_check(oteli_self->last - oteli_self->top == ROOM);
    for (unsigned i = 0; i < filler_count; i++)
        fillers[i] = otel_span_enter(tracer, "filler", NULL);
    for (size_t i = 0; scene->before[i] != NULL; i++)
        scene->before[i]();
}

static void finish(void)
{
    for (size_t i = 0; scene->after[i] != NULL; i++)
        scene->after[i]();
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
    depth = DEEP;
    trace_in_handler(); /* so that the interrupted thread has a state */
    parents = otel_parents_new(PARENTS);
    return status;
}

static int tear_down(void **state)
{
    otel_parents_free(parents);
    return recorder_teardown(state);
}

static void interrupt_to(void (*handle)(void), unsigned fillers_before)
{
    const struct single_steps steps = {prepare, scene->act, finish};
    filler_count = fillers_before;
    single_steps_interrupt(&steps, handle);
}

static void interrupt(unsigned fillers_before, unsigned depth_of_handler)
{
    depth = depth_of_handler;
    interrupt_to(trace_in_handler, fillers_before);
}

/* Deeply, with as many places taken before as leave each scene those that it needs; where it needs
 * none, with none taken, too: a root has nothing below it. */
static void interrupt_each(const struct scene *scenes, size_t count)
{
    for (scene = scenes; scene < scenes + count; scene++) {
        print_message("%s\n", scene->name);
        interrupt_to(read_in_handler, 0);
        interrupt(0, 1);
        interrupt(ROOM - scene->places, DEEP);
        if (scene->places == 0)
            interrupt(0, DEEP);
    }
}

#define INTERRUPT_EACH(scenes) interrupt_each(scenes, sizeof scenes / sizeof *scenes)

AROUND_EACH(set_up, tear_down);

/* --- spans --- */

static void enter_outer(void)
{
    outer = otel_span_enter(tracer, "outer", NULL);
}

static void enter_inner(void)
{
    inner = otel_span_enter(tracer, "inner", NULL);
}

static void enter_below(void)
{
    enter_inner();
    other = otel_span_enter(tracer, "other", NULL);
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

static void enter_address(void)
{
    inner = otel_span_enter_address(tracer, (const void *)(uintptr_t)0x1234);
}

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

static void end_inner(void)
{
    otel_span_end(inner);
}

static void end_inner_at_a_time(void)
{
    otel_span_end_at(inner, RECORDER_WALL_NS);
}

static void end_if_long(void)
{
    otel_span_end_unless_shorter(inner, 1000000000);
}

static void cancel_inner(void)
{
    otel_span_cancel(inner);
}

static void end_other(void)
{
    otel_span_end(other);
}

static void end_outer(void)
{
    single_steps_check_current(outer);
    otel_span_end(outer);
}

static void end_current(void)
{
    single_steps_check_current(inner);
    end_inner();
}

static void enter_both(void)
{
    enter_outer();
    enter_inner();
}

static void end_both(void)
{
    end_current();
    end_outer();
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

static void record_inner(void)
{
    otel_span_record(tracer, OTEL_FINISHED_SPAN(.name = "inner", .flags = OTEL_TRACE_FLAG_SAMPLED));
}

TEST(spans_are_entered_and_started)
{
    static const struct scene scenes[] = {
        {"a root", 0, ANY, enter_inner, {NULL}, {end_current}},
        {"a child", 1, ANY, enter_inner, {enter_outer}, {end_both}},
        {"a child of a kind", 1, ANY, enter_inner_of_a_kind, {enter_outer}, {end_both}},
        {"a remote one's", 1, ANY, enter_inner_of_remote, {enter_outer}, {end_both}},
        {"a detached child", 1, ANY, start_inner, {enter_outer}, {end_inner, end_outer}},
        {"a function", 1, NOTHING, enter_address, {enter_outer}, {end_both}},
        {"a finished span", 1, ANY, record_inner, {enter_outer}, {end_outer}},
    };
    INTERRUPT_EACH(scenes);
}

TEST(spans_are_ended)
{
    static const struct scene scenes[] = {
        {"the current one", 2, ANY, end_inner, {enter_both}, {end_outer}},
        {"a large one", 2, ATTRIBUTES, end_inner, {enter_both, set_string}, {end_outer}},
        {"at a time", 2, ANY, end_inner_at_a_time, {enter_both}, {end_outer}},
        {"not the current one", 2, ANY, end_inner, {enter_below}, {end_other}},
        {"a function", 2, NOTHING, end_if_long, {enter_outer, enter_address}, {end_outer}},
        {"cancelled", 2, NOTHING, cancel_inner, {enter_both}, {end_outer}},
    };
    INTERRUPT_EACH(scenes);
}

TEST(unsampled_spans_are_entered_and_ended)
{
    static const struct scene scenes[] = {
        {"a root", 0, NOTHING, enter_inner, {NULL}, {end_current}},
        {"a child", 1, NOTHING, enter_inner, {enter_outer}, {end_both}},
        {"the end", 2, NOTHING, end_inner, {enter_both}, {end_outer}},
    };
    recorder_stop();
    recorder_start_queued();
    memset(recorder.sdk.decide, OTELI_DECIDE_DROP, sizeof recorder.sdk.decide);
    INTERRUPT_EACH(scenes);
}

TEST(spans_are_described_and_asked_for)
{
    static const struct scene scenes[] = {
        {"a string", 2, ATTRIBUTES, set_string, {enter_both}, {end_both}},
        {"an integer", 2, ATTRIBUTES, set_int, {enter_both}, {end_both}},
        {"an event", 2, EVENTS, add_event, {enter_both}, {end_both}},
        {"whether it records", 2, ANY, ask_whether_it_records, {enter_both}, {end_both}},
        {"what is current", 2, ANY, ask_what_is_current, {enter_both}, {end_both}},
        {"a string", 2, ATTRIBUTES, set_string, {enter_below}, {end_other, end_current}},
        {"an event", 2, EVENTS, add_event, {enter_below}, {end_other, end_current}},
    };
    INTERRUPT_EACH(scenes);
}

/* --- what a handler may always call, interrupted --- */

static void tell_time(void)
{
    single_steps_check(otel_now_ns() == RECORDER_WALL_NS);
}

static void renew_clock(void)
{
    (void)oteli_clock_renew();
}

static void rest_clock(void)
{
    oteli_clock_rest();
}

static void add_parent(void)
{
    (void)otel_parents_add(parents, &inner);
}

static void forget_parents(void)
{
    otel_parents_mount(parents, NULL, NULL);
}

/* Each place is there again. */
static void fill_parents(void)
{
    forget_parents();
    for (int i = 0; i < PARENTS; i++)
        single_steps_check(otel_parents_add(parents, &inner));
    single_steps_check(!otel_parents_add(parents, &inner));
    forget_parents();
}

static void make_tracestate(void)
{
    const uint8_t id[16] = {1};
    char text[8];
    const otel_span_context made =
        otel_span_context_make(id, id, OTEL_TRACE_FLAG_SAMPLED, true, "a=1");
    single_steps_check(otel_span_context_tracestate(&made, text, sizeof text) == 3);
}

TEST(what_handlers_may_call_is_interrupted_by_itself)
{
    static const struct scene scenes[] = {
        {"the time", 0, NOTHING, tell_time, {NULL}, {NULL}},
        {"the time after a rest", 0, NOTHING, tell_time, {rest_clock}, {NULL}},
        {"clocks are followed", 0, NOTHING, renew_clock, {rest_clock}, {tell_time}},
        {"a parent is added", 2, ANY, add_parent, {enter_both}, {fill_parents, end_both}},
        {"parents are forgotten",
         2,
         ANY,
         forget_parents,
         {enter_both, add_parent},
         {fill_parents, end_both}},
        {"a tracestate is made", 0, NOTHING, make_tracestate, {NULL}, {NULL}},
    };
    INTERRUPT_EACH(scenes);
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

static void attach_outer_span(void)
{
    inner_context = otel_context_attach((otel_context){.span = outer});
}

static void detach_inner(void)
{
    single_steps_check(otel_context_detach(inner_context));
}

static void detach_outer(void)
{
    single_steps_check_current(wrapped(1).span);
    single_steps_check(otel_context_detach(outer_context));
}

static void detach_outer_first(void)
{
    (void)otel_context_detach(outer_context);
}

static void detach_current(void)
{
    single_steps_check_current(wrapped(2).span);
    detach_inner();
}

TEST(contexts_are_attached_and_detached)
{
    static const struct scene scenes[] = {
        {"attached", 1, NOTHING, attach_inner, {attach_outer}, {detach_current, detach_outer}},
        {"a span's", 1, NOTHING, attach_outer_span, {enter_outer}, {detach_inner, end_outer}},
        {"detached", 2, NOTHING, detach_inner, {attach_outer, attach_inner}, {detach_outer}},
        {"in a span", 2, NOTHING, detach_inner, {enter_outer, attach_inner}, {end_outer}},
        {"other order",
         2,
         NOTHING,
         detach_outer_first,
         {attach_outer, attach_inner},
         {detach_current}},
    };
    INTERRUPT_EACH(scenes);
}

/* --- stretches and fibres --- */

static void begin_lines(void)
{
    otel_lines_begin();
}

static void end_lines(void)
{
    otel_lines_free(otel_lines_end());
}

static void switch_stacks(void)
{
    single_steps_check(otel_stack_switch(NULL) == stack);
}

static void switch_back(void)
{
    single_steps_check(otel_stack_switch(stack) == NULL);
}

TEST(stretches_and_fibres_begin_and_end)
{
    static const struct scene scenes[] = {
        {"a stretch", 0, NOTHING, begin_lines, {NULL}, {end_lines}},
        {"the end of one", 1, NOTHING, end_lines, {begin_lines}, {NULL}},
        {"a fibre is left", 1, NOTHING, switch_stacks, {enter_outer}, {switch_back, end_outer}},
    };
    INTERRUPT_EACH(scenes);
}

#else

TEST(single_steps_are_for_x86_64)
{
    skip();
}

#endif
