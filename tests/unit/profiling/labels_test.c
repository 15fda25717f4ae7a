/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/labels_test.c - specification of otel/profile.h,
 * profiling/labels/labels.h. */
#include "profiling/labels/labels.h"
#include "profiling/labels/trampolines.h"
#include "profiling/labels/trampolines_shape.h"
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <otel/lines.h>
#include <otel/thread_context.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int setup(void **state)
{
    const int failed = recorder_setup(state);
    oteli_labels_switch(true);
    return failed;
}

static int teardown(void **state)
{
    oteli_labels_switch(false);
    return recorder_teardown(state);
}

static otel_profile_label named(const char *value)
{
    const otel_profile_kv kv = {"query", value};
    return otel_profile_label_acquire(&kv, 1);
}

/* The label now has this text, where + stands for NUL. */
static void assert_text(const otel_profile_label *label, const char *expected)
{
    struct oteli_label found;
    char text[OTEL_PROFILE_LABEL_BYTES + 1] = {0};
    assert_true(oteli_labels_find(label->index - 1, oteli_monotonic_ns(), &found));
    for (unsigned i = 0; i < found.text_length; i++)
        text[i] = found.text[i] != 0 ? found.text[i] : '+';
    assert_string_equal(text, expected);
}

static void assert_empty(const otel_profile_label *label)
{
    assert_int_equal(label->index, 0);
    assert_non_null(label->trampoline);
}

static void *by_return_address(void *argument)
{
    int *index = argument;
    *index = oteli_trampoline_of(
        (uint64_t)(uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)));
    return argument;
}

/* --- labels --- */

AROUND_EACH(setup, teardown);

static void assert_applies_without_a_trampoline(const otel_profile_label *label)
{
    int index = 4711;
    assert_ptr_equal(otel_profile_apply(label, by_return_address, &index), &index);
    assert_int_equal(index, OTELI_NO_TRAMPOLINE);
}

TEST(without_a_profiler_labels_are_empty_and_call)
{
    const otel_profile_label zeroed = {0};
    oteli_labels_switch(false);
    otel_profile_label label = named("A");
    const uint64_t refused = oteli_labels_counts().refused;

    assert_empty(&label);
    assert_applies_without_a_trampoline(&label);
    assert_applies_without_a_trampoline(&zeroed);

    otel_profile_label_release(&label);
    otel_profile_label_release(NULL);
    assert_empty(&label);
    assert_int_equal(oteli_labels_counts().refused, refused);
}

TEST(a_label_copies_its_keys_and_values)
{
    char value[] = "one";
    const otel_profile_kv kv[] = {{"a", value}, {NULL, "x"}, {"", "x"}, {"b", NULL}, {"c", ""}};
    otel_profile_label label = otel_profile_label_acquire(kv, 5);
    memset(value, 'x', 3);

    assert_text(&label, "a+one+b++c++");
    otel_profile_label_release(&label);
    label = otel_profile_label_acquire(NULL, 0);
    assert_text(&label, "");
    otel_profile_label_release(&label);
}

TEST(what_does_not_fit_is_left_out_and_counted)
{
    char expected[OTEL_PROFILE_LABEL_BYTES + 1] = "a+";
    char longest[2 * OTEL_PROFILE_LABEL_BYTES] = "";
    memset(longest, 'x', sizeof longest - 1);
    memset(expected + 2, 'x', sizeof expected - 4);
    expected[sizeof expected - 2] = '+';
    const otel_profile_kv kv[] = {{"a", longest}, {"b", "no room"}, {longest, "v"}};
    const uint64_t cut = oteli_labels_counts().cut;

    otel_profile_label label = otel_profile_label_acquire(kv, 3);
    assert_text(&label, expected);
    assert_int_equal(oteli_labels_counts().cut - cut, 3);
    otel_profile_label_release(&label);

    /* Between characters: one of three bytes would end behind the room. */
    memcpy(longest + sizeof expected - 5, "\xe2\x82\xac", 3);
    memcpy(expected + sizeof expected - 3, "+", 2);
    label = otel_profile_label_acquire(kv, 1);
    assert_text(&label, expected);
    otel_profile_label_release(&label);
}

static otel_profile_label all[OTELI_TRAMPOLINES];

static void take_all(void)
{
    for (unsigned i = 0; i < OTELI_TRAMPOLINES; i++)
        all[i] = named("B");
}

static void release_all(void)
{
    for (unsigned i = 0; i < OTELI_TRAMPOLINES; i++)
        otel_profile_label_release(&all[i]);
}

TEST(releasing_again_or_a_copy_is_harmless)
{
    otel_profile_label label = named("A");
    otel_profile_label copy = label;
    otel_profile_label_release(&label);
    take_all();

    otel_profile_label_release(&label);
    otel_profile_label_release(&copy);

    otel_profile_label none = named("C");
    assert_empty(&none);
    release_all();
}

TEST(when_all_are_in_use_labels_are_empty_and_counted)
{
    static bool seen[OTELI_TRAMPOLINES];
    take_all();
    for (unsigned i = 0; i < OTELI_TRAMPOLINES; i++) {
        assert_in_range(all[i].index, 1, OTELI_TRAMPOLINES);
        assert_false(seen[all[i].index - 1]);
        seen[all[i].index - 1] = true;
    }
    const uint64_t refused = oteli_labels_counts().refused;

    otel_profile_label none = named("B");

    assert_empty(&none);
    assert_int_equal(oteli_labels_counts().refused, refused + 1);
    otel_profile_label_release(&all[17]);
    none = named("B");
    assert_int_not_equal(none.index, 0);
    otel_profile_label_release(&none);
    release_all();
}

static void assert_is_next_but_for_all_others(uint32_t index)
{
    for (unsigned i = 0; i < OTELI_TRAMPOLINES; i++) {
        otel_profile_label label = named("B");
        assert_int_equal(label.index == index, i == OTELI_TRAMPOLINES - 1);
        otel_profile_label_release(&label);
    }
}

TEST(the_trampoline_that_was_idle_for_longest_is_next)
{
    const size_t before = oteli_leaks_count();
    int on_stack = 4711;
    otel_profile_label first = named("A");
    const uint32_t index = first.index;
    assert_ptr_equal(otel_profile_apply(&first, by_return_address, &on_stack), &on_stack);
    assert_int_equal(on_stack, index - 1);
    otel_profile_label_release(&first);
    assert_is_next_but_for_all_others(index);
    assert_int_equal(oteli_leaks_count(), before); /* and no label allocates */
}

/* --- spans --- */

static struct oteli_label label_of(const otel_span *span)
{
    struct oteli_label found;
    otel_profile_label label = otel_profile_label_for_span(span);
    assert_true(oteli_labels_find(label.index - 1, oteli_monotonic_ns(), &found));
    otel_profile_label_release(&label);
    return found;
}

static const uint8_t nobody[8];

TEST(a_label_of_a_span_has_its_ids_and_route)
{
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    otel_span span = otel_span_enter(tracer, "GET", NULL);
    otel_span_set_string(span, "url.path", "/users/1");
    otel_span_set_string(span, "http.route", "/users/{id}");
    const otel_profile_kv kv = {"query", "A"};
    otel_profile_label label = otel_profile_label_make(&span, &kv, 1);
    const otel_span_context context = otel_span_get_context(span);

    const struct oteli_label found = label_of(&span);

    assert_memory_equal(found.span.trace_id, context.trace_id, 16);
    assert_memory_equal(found.span.span_id, context.span_id, 8);
    assert_memory_equal(found.span.root_id, context.span_id, 8);
    assert_memory_equal(found.around_id, context.span_id, 8);
    assert_text(&label, "query+A+http.route+/users/{id}+");
    otel_profile_label_release(&label);
    otel_span_end(span);
    assert_memory_equal(label_of(&span).span.span_id, context.span_id, 8);
    assert_memory_equal(label_of(&span).span.root_id, nobody, 8);
    assert_int_equal(label_of(&span).text_length, 0);
}

TEST(a_route_that_is_no_string_is_none_and_one_that_is_too_long_is_cut)
{
    char route[300] = "";
    otel_span span = otel_span_enter(otel_tracer_get("test", NULL), "GET", NULL);
    otel_span_set_int(span, "http.route", 5);
    assert_int_equal(label_of(&span).text_length, 0);
    memset(route, 'r', sizeof route - 1);
    otel_span_set_string(span, "http.route", route);
    assert_int_equal(label_of(&span).text_length, OTEL_PROFILE_LABEL_BYTES);
    otel_span_end(span);
}

TEST(the_local_root_is_the_first_of_its_trace_on_the_thread)
{
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    const uint8_t trace_id[16] = {1};
    const uint8_t remote_id[8] = {2};
    const otel_span_context remote = otel_span_context_make(trace_id, remote_id, 1, true, NULL);
    const otel_span other = otel_span_enter(tracer, "another trace", NULL);
    const otel_context_token token =
        otel_context_attach((otel_context){.span = otel_span_wrap(&remote)});
    const otel_span root = otel_span_enter(tracer, "root", NULL);
    const otel_span child = otel_span_enter(tracer, "child", NULL);
    const otel_span grandchild = otel_span_enter(tracer, "grandchild", NULL);

    const struct oteli_label found = label_of(&grandchild);

    assert_memory_equal(found.span.root_id, otel_span_get_context(root).span_id, 8);
    assert_memory_equal(label_of(&root).span.root_id, otel_span_get_context(root).span_id, 8);
    assert_memory_equal(label_of(&other).span.root_id, otel_span_get_context(other).span_id, 8);
    otel_span_end(grandchild);
    otel_span_end(child);
    otel_span_end(root);
    (void)otel_context_detach(token);
    otel_span_end(other);
}

TEST(the_local_root_of_detached_spans)
{
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    const otel_span root = otel_span_start(tracer, "root", NULL);
    const otel_context under = {.span = root};
    const otel_span child = otel_span_start(
        tracer, "child", &(otel_span_options){.size = sizeof(otel_span_options), .parent = &under});
    const uint8_t *root_id = (const uint8_t *)&root.opaque[2];

    assert_memory_equal(label_of(&root).span.root_id, root_id, 8);
    assert_memory_equal(label_of(&child).span.root_id, nobody, 8);
    const otel_context_token token = otel_context_attach(under);
    assert_memory_equal(label_of(&child).span.root_id, root_id, 8);
    const otel_span entered = otel_span_enter(tracer, "entered", NULL);
    assert_memory_equal(label_of(&entered).span.root_id, root_id, 8);
    otel_span_end(entered);
    (void)otel_context_detach(token);
    otel_span_end(child);
    otel_span_end(root);
}

TEST(labels_have_the_ids_that_others_know)
{
    static const otel_thread_context_record invalid = {.trace_id = {1}, .span_id = {2}};
    const uint8_t trace_id[16] = {1};
    const uint8_t span_id[8] = {2};
    const otel_span_context context = otel_span_context_make(trace_id, span_id, 0, true, NULL);
    const otel_span only_ids = otel_span_wrap(&context);
    const otel_span none = {{0}};
    assert_memory_equal(label_of(&only_ids).span.span_id, span_id, 8);
    assert_memory_equal(label_of(&only_ids).span.root_id, nobody, 8);
    assert_memory_equal(label_of(&none).span.span_id, nobody, 8);

    const otel_thread_context_record *before = otel_thread_ctx_v1;
    otel_thread_ctx_v1 = &invalid;
    const struct oteli_label found = label_of(&none);
    otel_thread_ctx_v1 = before;
    assert_memory_equal(found.around_id, nobody, 8);

    otel_lines_begin(); /* what is collected may never be known */
    const otel_span span = otel_span_enter(otel_tracer_get("test", NULL), "in a stretch", NULL);
    assert_memory_equal(label_of(&span).span.span_id, nobody, 8);
    otel_span_end(span);
    otel_lines_free(otel_lines_end());
}

/* --- running for a span --- */

static void *current_and_label(void *argument)
{
    int index;
    struct oteli_label *found = argument;
    (void)by_return_address(&index);
    (void)oteli_labels_find((unsigned)found->text_length, oteli_monotonic_ns(), found);
    otel_span current = otel_current_span();
    memcpy(found->around_id, &current.opaque[2], 8);
    return argument;
}

TEST(a_function_runs_for_a_span)
{
    struct oteli_label seen = {0};
    const otel_span span = otel_span_start(otel_tracer_get("test", NULL), "work", NULL);
    otel_profile_label before = named("before");
    seen.text_length = (uint16_t)(before.index % OTELI_TRAMPOLINES); /* the next one in the pool */
    otel_profile_label_release(&before);

    assert_ptr_equal(otel_span_run(span, current_and_label, &seen), &seen);

    assert_memory_equal(seen.around_id, &span.opaque[2], 8);
    assert_false(otel_current_span().opaque[2] == span.opaque[2]);
    oteli_labels_switch(false);
    assert_ptr_equal(otel_span_run(span, current_and_label, &seen), &seen);
    assert_memory_equal(seen.around_id, &span.opaque[2], 8);
    otel_span_end(span);
}

/* --- mistakes --- */

static void *release_inside(void *argument)
{
    otel_profile_label copy = *(otel_profile_label *)argument;
    otel_profile_label_release(&copy);
    return argument;
}

static void *nested_checked(void *argument)
{
    int index;
    return otel_profile_apply_checked(argument, by_return_address, &index) == &index ? argument
                                                                                     : NULL;
}

TEST(checked_calls_nest_and_return)
{
    otel_profile_label label = named("A");
    otel_profile_label none = {0};
    assert_ptr_equal(otel_profile_apply_checked(&label, nested_checked, &label), &label);
    assert_ptr_equal(otel_profile_apply_checked(&none, nested_checked, &none), &none);
    const uint32_t index = label.index;
    otel_profile_label_release(&label);
    assert_is_next_but_for_all_others(index); /* it came back */
}

/* In a child, because a debug build of the library aborts. */
static void assert_is_reported(void (*mistake)(void))
{
    int status = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        oteli_labels_switch(true);
        (void)!freopen("/dev/null", "w", stderr);
        signal(SIGABRT, SIG_DFL);
        mistake();
        _exit(recorder.logs != 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
#ifdef NDEBUG
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
#else
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
#endif
}

static void release_while_applied(void)
{
    otel_profile_label label = named("A");
    (void)otel_profile_apply_checked(&label, release_inside, &label);
}

static void apply_after_release(void)
{
    int index;
    otel_profile_label label = named("A");
    const otel_profile_label copy = label;
    otel_profile_label_release(&label);
    (void)otel_profile_apply_checked(&copy, by_return_address, &index);
}

TEST(checked_calls_notice_mistakes)
{
    assert_is_reported(release_while_applied);
    assert_is_reported(apply_after_release);
}

/* --- fork --- */

static otel_profile_label held;

static int use_all(void)
{
    otel_profile_label label = named("off");
    bool well = label.index == 0;
    oteli_labels_switch(true);
    unsigned count = 0;
    for (; (label = named("A")).index != 0; count++)
        well = well && label.index != held.index;
    well = well && count == OTELI_TRAMPOLINES - 1;
    otel_profile_label_release(&held);
    return well && named("B").index != 0 ? 0 : 1;
}

TEST(a_child_has_all_labels_but_those_in_use)
{
    held = named("in use");
    check_child(use_all);
    otel_profile_label_release(&held);
}
