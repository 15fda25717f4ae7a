/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/leaf_test.c - specification of leaves (api/active/active_span.h): whatever happens
 * while the current span has its name and attributes in the line, what is exported of it and of all
 * others is whole. */
#include "common/text/text.h"
#include "tests/support/leaks.h"
#include "tests/support/traced.h"
#include "tests/support/unit.h"
#include <otel/fibre.h>
#include <otel/lines.h>
#include <otel/record.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MADE = 1024, NAME_ROOM = 64, LARGE = 20 * 1024, DEEP = 40, SIGNATURES = 3 };

/* --- other spans: what each has follows from its number --- */

static unsigned made_count;
static unsigned wanted[MOST_MADE]; /* how often it is exported */
static unsigned seen[MOST_MADE];

static void name_of(unsigned number, char name[NAME_ROOM])
{
    static const char padding[] = "abcdefghijklmnopqrstuvwxyz__";
    snprintf(name, NAME_ROOM, "d%u%s", number, padding + number % (sizeof padding - 1));
}

static void describe(otel_span span, unsigned number)
{
    char name[NAME_ROOM];
    name_of(number, name);
    if (number % SIGNATURES > 0)
        otel_span_set_string(span, "of.name", name);
    if (number % SIGNATURES > 1)
        otel_span_set_int(span, "of.number", number);
}

static unsigned next_number(void)
{
    wanted[made_count] = 1;
    return made_count++;
}

static otel_span enter_made(const otel_span_options *options)
{
    char name[NAME_ROOM];
    const unsigned number = next_number();
    name_of(number, name);
    const otel_span span = otel_span_enter(traced.tracer, name, options);
    describe(span, number);
    return span;
}

static otel_span start_made(const otel_span_options *options)
{
    char name[NAME_ROOM];
    const unsigned number = next_number();
    name_of(number, name);
    const otel_span span = otel_span_start(traced.tracer, name, options);
    describe(span, number);
    return span;
}

/* As many as there are kinds of them, one after the other. */
static void make(void)
{
    for (unsigned i = 0; i < SIGNATURES; i++)
        otel_span_end(enter_made(NULL));
}

static bool is_made(const otel_span_view *view)
{
    char name[NAME_ROOM];
    otel_slice rest = view->attributes;
    otel_attribute_view attribute;
    unsigned count = 0;
    const unsigned number = (unsigned)strtoul(view->name.data + 1, NULL, 10);
    name_of(number, name);
    if (number >= made_count || !oteli_is_text(view->name, name))
        return false;
    seen[number]++;
    for (; otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute); count++)
        if (count == 0
                ? !oteli_is_text(attribute.key, "of.name") ||
                      !oteli_is_text(attribute.value.slice, name)
                : !oteli_is_text(attribute.key, "of.number") || attribute.value.integer != number)
            return false;
    return count == number % SIGNATURES && view->dropped_attributes_count == 0;
}

/* --- the leaf --- */

static struct leaf {
    otel_span span;
    const char *name;
    bool is_described; /* before something happens */
    bool has_event;
    size_t large; /* of the value of "large.key"; 0: it has none */
    otel_span_status status;
    unsigned seen;
} leaf;

static bool is_known(const otel_attribute_view *attribute)
{
    const otel_value_view *value = &attribute->value;
    if (oteli_is_text(attribute->key, "first.key"))
        return oteli_is_text(value->slice, "again");
    if (oteli_is_text(attribute->key, "later.key"))
        return oteli_is_text(value->slice, "later");
    if (oteli_is_text(attribute->key, "second.key"))
        return leaf.is_described && value->integer == -2;
    if (!oteli_is_text(attribute->key, "large.key") || leaf.large == 0 ||
        value->slice.length != leaf.large)
        return false;
    for (size_t i = 0; i < leaf.large; i++)
        if (value->slice.data[i] != 'l')
            return false;
    return true;
}

static bool is_leaf(const otel_span_view *view)
{
    otel_slice rest = view->attributes;
    otel_slice events = view->events;
    otel_attribute_view attribute;
    otel_event_view event;
    unsigned count = 0;
    leaf.seen++;
    for (; otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute); count++)
        if (!is_known(&attribute))
            return false;
    return oteli_is_text(view->name, leaf.name) && view->status == leaf.status &&
           otel_event_next(&events, &event) == leaf.has_event &&
           count == 2 + (unsigned)leaf.is_described + (unsigned)(leaf.large != 0) &&
           view->dropped_attributes_count == 0;
}

/* What was exported since the last time is what was made, and `leaves` leaves. */
static bool is_right(unsigned leaves)
{
    otel_span_view view;
    bool is_fine = otel_flush(60000) != OTEL_ERROR_TIMEOUT;
    for (size_t i = 0; is_fine && otel_memory_span(traced.memory, i, &view); i++)
        is_fine = view.name.length > 0 && *view.name.data == 'd' ? is_made(&view) : is_leaf(&view);
    for (unsigned i = 0; is_fine && i < made_count; i++)
        is_fine = seen[i] == wanted[i];
    is_fine = is_fine && leaf.seen == leaves;
    otel_memory_clear(traced.memory);
    memset(seen, 0, sizeof seen);
    made_count = 0;
    leaf.seen = 0;
    return is_fine;
}

static void enter_leaf(const char *name, bool is_described)
{
    leaf = (struct leaf){.name = name, .is_described = is_described};
    leaf.span = otel_span_enter(traced.tracer, name, NULL);
    if (!is_described)
        return;
    otel_span_set_string(leaf.span, "first.key", "a value that is longer than the next one");
    otel_span_set_int(leaf.span, "second.key", -2);
}

static void end_leaf(void)
{
    otel_span_set_string(leaf.span, "later.key", "later");
    otel_span_set_string(leaf.span, "first.key", "again");
    otel_span_end(leaf.span);
}

/* --- what happens to it --- */

static otel_span outer;
static otel_span early;
static otel_context_token token;

static void nothing(void)
{
}

static void unsampled_child(void)
{
    const otel_span_context ids =
        otel_span_context_make((const uint8_t[16]){7}, (const uint8_t[8]){8}, 0, true, NULL);
    const otel_context context = {.span = otel_span_wrap(&ids)};
    const unsigned number = made_count;
    const otel_span span = enter_made(OTEL_SPAN_OPTIONS(.parent = &context));
    wanted[number] = 0;
    const unsigned child = made_count;
    make();
    for (unsigned i = child; i < made_count; i++)
        wanted[i] = 0;
    otel_span_end(span);
}

static void kind_and_attributes(void)
{
    char name[NAME_ROOM];
    const unsigned number = next_number();
    name_of(number, name);
    const otel_attribute attributes[] = {otel_attribute_of("of.name", otel_value_string(name)),
                                         otel_attribute_of("of.number", otel_value_int(number))};
    otel_span_end(
        otel_span_enter(traced.tracer, name,
                        OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_SERVER, .attributes = attributes,
                                          .attribute_count = number % SIGNATURES)));
}

static void child_with_children(void)
{
    const otel_span child = enter_made(NULL);
    make();
    otel_span_end(child);
    kind_and_attributes();
}

static void held_children(void)
{
    const otel_span root = enter_made(OTEL_SPAN_OPTIONS(.hold = true));
    make();
    otel_span_end(root);
}

static void detached(void)
{
    for (unsigned i = 0; i < SIGNATURES; i++)
        otel_span_end(start_made(NULL));
}

static void start_early(void)
{
    early = start_made(NULL);
}

static void start_early_and_hold(void)
{
    early = start_made(OTEL_SPAN_OPTIONS(.hold = true));
    const otel_context context = {.span = early};
    otel_span_end(enter_made(OTEL_SPAN_OPTIONS(.parent = &context)));
}

static void end_early(void)
{
    otel_span_end(early);
}

static void finished(void)
{
    for (unsigned i = 0; i < SIGNATURES; i++) {
        char name[NAME_ROOM];
        const unsigned number = next_number();
        name_of(number, name);
        const otel_attribute attributes[] = {
            otel_attribute_of("of.name", otel_value_string(name)),
            otel_attribute_of("of.number", otel_value_int(number))};
        otel_span_record(traced.tracer, OTEL_FINISHED_SPAN(.flags = OTEL_TRACE_FLAG_SAMPLED,
                                                           .name = name, .attributes = attributes,
                                                           .attribute_count = number % SIGNATURES));
    }
}

static otel_lines *lines;

static void collect(void)
{
    otel_lines_begin();
    make();
    lines = otel_lines_end();
}

static void mount(void)
{
    otel_lines_mount(lines, &leaf.span, 1, NULL);
    otel_lines_free(lines);
}

static void stretch(void)
{
    collect();
    mount();
}

static void attach(void)
{
    token = otel_context_attach((otel_context){.span = leaf.span});
    make();
    (void)otel_context_detach(token);
}

static void attach_early(void)
{
    start_early();
    token = otel_context_attach((otel_context){.span = early});
}

static void detach_early(void)
{
    (void)otel_context_detach(token);
    make();
    otel_span_end(early);
}

static void fibre(void)
{
    otel_stack *stack = otel_stack_new();
    otel_stack *before = otel_stack_switch(stack);
    make();
    const otel_span of_fibre = enter_made(NULL);
    (void)otel_stack_switch(before);
    make();
    (void)otel_stack_switch(stack);
    make();
    otel_span_end(of_fibre);
    (void)otel_stack_switch(before);
    otel_stack_free(stack);
}

static void *flush(void *unused)
{
    (void)unused;
    return (void *)(intptr_t)(otel_flush(60000) == OTEL_OK);
}

static void flushed_elsewhere(void)
{
    make();
    traced_thread(flush, NULL);
    assert_int_equal(otel_memory_count(traced.memory), made_count);
}

static void set_large(size_t length)
{
    static char large[LARGE];
    memset(large, 'l', sizeof large);
    otel_span_set_string_n(otel_span_ref_of(&leaf.span), "large.key", 9, large, length);
    leaf.large = length;
}

static void large_attribute(void)
{
    set_large(LARGE);
}

static void shorter_name(void)
{
    otel_span_update_name(leaf.span, leaf.name = "new");
}

static void longer_name(void)
{
    leaf.name = "a name that is longer than what a place has room for, by far";
    otel_span_update_name(leaf.span, leaf.name);
}

static void status(void)
{
    otel_span_set_status(leaf.span, leaf.status = OTEL_SPAN_STATUS_ERROR, "why");
}

static void event(void)
{
    otel_span_add_event(leaf.span, "event", NULL, 0);
    leaf.has_event = true;
}

static void event_and_child(void)
{
    event();
    make();
}

static void deep(void)
{
    otel_span spans[DEEP];
    for (unsigned i = 0; i < DEEP; i++)
        spans[i] = enter_made(NULL);
    for (unsigned i = DEEP; i-- > 0;)
        otel_span_end(spans[i]);
}

static void enter_outer(void)
{
    outer = enter_made(NULL);
}

/* Its children inherit that the trace id is not random. */
static void enter_outer_under_remote(void)
{
    const otel_span_context ids = otel_span_context_make(
        (const uint8_t[16]){7}, (const uint8_t[8]){8}, OTEL_TRACE_FLAG_SAMPLED, true, NULL);
    const otel_context context = {.span = otel_span_wrap(&ids)};
    outer = enter_made(OTEL_SPAN_OPTIONS(.parent = &context));
}

static void end_outer(void)
{
    otel_span_end(outer);
}

static void end_outer_and_make(void)
{
    otel_span_end(outer);
    make();
}

static void on_signal(int number)
{
    (void)number;
    child_with_children();
    detached();
}

static void in_handler(void)
{
    struct sigaction before;
    assert_int_equal(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, &before), 0);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

static void cancelled_child(void)
{
    const unsigned number = made_count;
    otel_span_cancel(enter_made(NULL));
    wanted[number] = 0;
}

static void address(void)
{
    const otel_span span = otel_span_enter_address(traced.tracer, NULL);
    otel_span_cancel(span);
    make();
}

static int trace_in_child(void)
{
    made_count = 0;
    make();
    end_leaf();
    make();
    const bool is_fine = is_right(0);
    return otel_shutdown(60000) == OTEL_OK && is_fine ? 0 : 1;
}

static void fork_child(void)
{
    const unsigned count = made_count;
    check_child(trace_in_child);
    assert_int_equal(made_count, count);
}

static const struct disturbance {
    const char *name;
    void (*before)(void);
    void (*happen)(void);
} disturbances[] = {
    {"nothing", nothing, nothing},
    {"children", nothing, make},
    {"children of a child", nothing, child_with_children},
    {"children that are held", nothing, held_children},
    {"a child that is not sampled", nothing, unsampled_child},
    {"a child that is cancelled", nothing, cancelled_child},
    {"a child with an address", nothing, address},
    {"detached spans", nothing, detached},
    {"a detached span that was there", start_early, end_early},
    {"a detached span that held", start_early_and_hold, end_early},
    {"finished spans", nothing, finished},
    {"a mount", collect, mount},
    {"a stretch", nothing, stretch},
    {"a context", nothing, attach},
    {"the context around it", attach_early, detach_early},
    {"fibres", nothing, fibre},
    {"a flush", nothing, flushed_elsewhere},
    {"a large attribute", nothing, large_attribute},
    {"a shorter name", nothing, shorter_name},
    {"a longer name", nothing, longer_name},
    {"a status", nothing, status},
    {"an event", nothing, event},
    {"an event, and children", nothing, event_and_child},
    {"a deep stack", nothing, deep},
    {"the end of its parent", enter_outer, end_outer},
    {"the end of its parent, and more", enter_outer, end_outer_and_make},
    {"children, of a trace that is not random", enter_outer_under_remote, make},
    {"a signal handler", nothing, in_handler},
};

/* Names of every length that goes another way, in ASCII and not. */
#define WORDS                                                         \
    "leaf, whose name ends with these words, which a place may have " \
    "no room for; all have 128 bytes, so this one is made up -"
static const char whole[2][129] = {WORDS "as well.", WORDS "größer"};
static const size_t lengths[] = {4, 8, 10, 49, 30, 127, 49, 128, 127, 48, 0};
enum { NAMES = sizeof lengths / sizeof lengths[0], FORMS = 2 * NAMES };

static const char *leaf_name(unsigned name)
{
    return whole[name % 2] + sizeof whole[0] - 1 - lengths[name];
}

AROUND_EACH(traced_setup_queued, traced_teardown);

static void disturb(const struct disturbance *by)
{
    for (unsigned form = 0; form < FORMS; form++) {
        make(); /* so that there is a line */
        by->before();
        enter_leaf(leaf_name(form / 2), form % 2 != 0);
        by->happen();
        end_leaf();
        otel_span_end(outer);
        if (is_right(1))
            continue;
        print_error("%s, \"%s\", %u\n", by->name, leaf.name, form % 2);
        fail();
    }
}

TEST(whatever_happens_it_is_whole)
{
    for (size_t i = 0; i < sizeof disturbances / sizeof disturbances[0]; i++)
        disturb(&disturbances[i]);
}

/* Not where the child can start no exporter thread. */
TEST(a_fork_leaves_it_whole)
{
    if (getenv("OTEL_TEST_EMULATED") == NULL)
        disturb(&(struct disturbance){"a fork", nothing, fork_child});
}

TEST(a_name_that_is_not_utf8_is_mended)
{
    make();
    enter_leaf("bad \xff", true);
    leaf.name = "bad \xef\xbf\xbd";
    end_leaf();
    assert_true(is_right(1));
}

/* The last one before a line is full has any room that is left. */
TEST(the_line_may_be_nearly_full)
{
    enum { STEPS = 64, STEP = 8, LEAVES = 100, WAYS = 2 };
    static const char filler[STEPS * STEP];
    for (unsigned step = 0; step < STEPS * WAYS; step++) {
        traced_stop();
        traced_start(&(otel_sdk_options){.bsp_schedule_delay = 60000});
        const otel_span first = otel_span_enter(traced.tracer, "fill", NULL);
        otel_span_set_string_n(otel_span_ref_of(&first), "fill", 4, filler,
                               step / WAYS * (size_t)STEP);
        otel_span_end(first);
        assert_int_equal(otel_flush(60000), OTEL_OK);
        otel_memory_clear(traced.memory);
        for (unsigned i = 0; i < LEAVES; i++) {
            enter_leaf(leaf_name(step % NAMES), true);
            if (i % 4 == 0)
                make();
            if (step % WAYS != 0)
                status();
            else
                set_large(300);
            end_leaf();
        }
        assert_true(is_right(LEAVES));
    }
}

static bool has_all(otel_slice rest, size_t length, unsigned *count)
{
    otel_attribute_view attribute;
    for (*count = 0; otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute); ++*count)
        if (oteli_is_text(attribute.key, "first.key")
                ? attribute.value.slice.length != length
                : !oteli_is_text(attribute.key, "third.key") &&
                      !oteli_is_text(attribute.key, "second.key"))
            return false;
    return rest.length == 0;
}

/* What it had is dropped, and counted, and what it gets then is there. Each time it is in a place
 * that never had memory. */
TEST(it_is_taken_back_without_memory)
{
    enum { HALVES = 15, TIMES = 3 };
    static char large[LARGE];
    const otel_span_mark mark = otel_span_mark_here();
    memset(large, 'l', sizeof large);
    traced_touch("so that there is a line");
    assert_int_equal(otel_flush(60000), OTEL_OK);
    for (unsigned depth = 0; depth < HALVES * TIMES; depth++) {
        const size_t length = LARGE >> depth / TIMES;
        otel_span_view view;
        unsigned count;
        (void)otel_span_enter(traced.tracer, "below", NULL);
        enter_leaf(leaf_name(2), true);
        oteli_leaks_fail_at(1 + depth % TIMES);
        otel_span_set_string_n(otel_span_ref_of(&leaf.span), "first.key", 9, large, length);
        oteli_leaks_fail_at(0);
        otel_span_set_bool(leaf.span, "third.key", true);
        otel_memory_clear(traced.memory);
        otel_span_end(leaf.span);

        assert_int_equal(otel_flush(60000), OTEL_OK);
        assert_true(otel_memory_span(traced.memory, 0, &view));
        assert_true(oteli_is_text(view.name, leaf.name));
        assert_true(has_all(view.attributes, length, &count));
        assert_int_equal(count, view.dropped_attributes_count == 2 ? 2 : 3);
    }
    otel_span_unwind(mark);
}

/* Its name is cut, or its attributes are dropped, whichever had no memory. */
TEST(a_child_is_entered_without_memory)
{
    const otel_span_mark mark = otel_span_mark_here();
    for (unsigned nth = 1; nth <= 2; nth++) {
        otel_span_view view;
        otel_attribute_view each;
        unsigned count = 0;
        traced_touch("so that there is a line");
        (void)otel_span_enter(traced.tracer, "so that the place is new", NULL);
        enter_leaf(leaf_name(5), true);
        oteli_leaks_fail_at(nth);
        traced_touch("child");
        assert_true(oteli_leaks_failed());
        end_leaf();

        assert_int_equal(otel_flush(60000), OTEL_OK);
        assert_true(otel_memory_span(traced.memory, 2, &view));
        for (; otel_attribute_next(&view.attributes, OTEL_FIELD_SPAN_ATTRIBUTE, &each); count++)
            assert_true(is_known(&each));
        assert_int_equal(view.name.length, nth == 1 ? 48 : lengths[5]);
        assert_memory_equal(view.name.data, leaf.name, view.name.length);
        assert_int_equal(view.dropped_attributes_count, nth == 1 ? 0 : 2);
        assert_int_equal(count, nth == 1 ? 3 : 2);
        otel_memory_clear(traced.memory);
    }
    otel_span_unwind(mark);
}

/* Its end is counted, where it began. */
TEST(it_is_open_when_the_sdk_goes_away)
{
    for (unsigned form = 0; form < FORMS; form++) {
        make();
        enter_leaf(leaf_name(form / 2), form % 2 != 0);
        assert_true(is_right(0));
        traced_stop();
        assert_int_equal(traced_stats().open, 1);
        make(); /* of no SDK */
        made_count = 0;
        traced_start(&(otel_sdk_options){.bsp_schedule_delay = 60000});
        make();
        otel_span_set_string(leaf.span, "later.key", "later");
        child_with_children();
        end_leaf();
        make();
        assert_true(is_right(0));
        assert_int_equal(traced_stats().open, 0);
    }
}

TEST(it_ends_after_the_shutdown)
{
    for (unsigned form = 0; form < FORMS; form++) {
        enter_leaf(leaf_name(form / 2), form % 2 != 0);
        traced_stop();
        end_leaf();
        assert_only_lost(OTEL_DROP_ALREADY_SHUTDOWN, 1);
        assert_int_equal(otel_memory_count(traced.memory), 0);
        traced_start(&(otel_sdk_options){.bsp_schedule_delay = 60000});
        make();
        assert_true(is_right(0));
    }
}

static void *leave_open(void *unused)
{
    enter_leaf(leaf_name(2), true);
    return unused;
}

static void *trace_as_another(void *unused)
{
    child_with_children();
    return unused;
}

TEST(its_thread_ends)
{
    traced_thread(leave_open, NULL);
    traced_thread(trace_as_another, NULL);
    assert_true(is_right(0));
    assert_only_lost(OTEL_DROP_ABANDONED, 1);
}
