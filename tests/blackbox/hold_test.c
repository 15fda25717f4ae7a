/* SPDX-License-Identifier: Apache-2.0 */
/* A span of the program's own that holds its descendants back (.hold), inside of a root that holds
 * all of its trace back because a tail rule is set: the program's word still counts. */
#include "blackbox.h"
#include <otel/lines.h>
#include <stdlib.h>

static otel_tracer *tracer;

static int start(void **state)
{
    (void)state;
    setenv("OTEL_C_TAIL_KEEP_ERRORS", "true", 1); /* as an operator would */
    memory = otel_memory_new();
    const otel_exporter exporters[] = {otel_memory_exporter(memory)};
    tracer = otel_tracer_get("hold", NULL);
    return otel_start(OTEL_SDK_OPTIONS(.traces_exporter = "none", .exporters = exporters,
                                       .exporter_count = 1)) != OTEL_OK;
}

static int stop(void **state)
{
    const int is_bad = stop_memory(state);
    assert_int_equal(stats_now().open, 0);
    return is_bad;
}

/* Whether these, separated by blanks, are the names of what was exported, and nothing else. */
static bool are_exported(const char *names)
{
    assert_int_equal(otel_flush(5000), OTEL_OK);
    size_t length = 0;
    otel_span_view span;
    for (size_t i = 0; otel_memory_span(memory, i, &span); i++) {
        if (memmem(names, strlen(names), span.name.data, span.name.length) == NULL)
            return false;
        length += span.name.length + 1;
    }
    return length == strlen(names) + (*names != '\0');
}

static otel_span enter(const char *name)
{
    return otel_span_enter(tracer, name, NULL);
}

static otel_span enter_holding(const char *name)
{
    return otel_span_enter(tracer, name, OTEL_SPAN_OPTIONS(.hold = true));
}

static void cancelling_it_withholds_what_is_below_it(void **state)
{
    (void)state;
    const otel_span root = enter("root");
    const otel_span attempt = enter_holding("attempt");
    const otel_span call = enter("call");
    otel_span_end(call);
    otel_span_cancel(attempt);
    const otel_span other = enter("other");
    otel_span_end(other);
    otel_span_fail(root, NULL);
    otel_span_end(root);
    assert_true(are_exported("root other"));
}

static void ending_it_leaves_the_decision_to_the_root(void **state)
{
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        const otel_span root = enter("root");
        const otel_span attempt = enter_holding("attempt");
        const otel_span call = enter("call");
        if (fails)
            otel_span_fail(call, NULL);
        otel_span_end(call);
        otel_span_end(attempt);
        assert_true(are_exported(""));
        otel_span_end(root);
        assert_true(are_exported(fails ? "call attempt root" : ""));
    }
}

static void collecting_it_takes_what_is_below_it(void **state)
{
    (void)state;
    const otel_span root = enter("root");
    const otel_span attempt = enter_holding("attempt");
    otel_span_end(enter("call"));
    otel_lines *lines = otel_span_collect(attempt);
    assert_int_equal(otel_lines_size(lines), 2);
    otel_lines_free(lines);
    otel_span_fail(root, NULL);
    otel_span_end(root);
    assert_true(are_exported("root"));
}

static void *start_and_end_a_child(void *parent)
{
    const otel_context context = otel_context_with_span((otel_context){0}, *(otel_span *)parent);
    otel_span_end(otel_span_start(tracer, "elsewhere", OTEL_SPAN_OPTIONS(.parent = &context)));
    return NULL;
}

static void descendants_of_other_threads_belong_to_it(void **state)
{
    (void)state;
    otel_span root = enter("root");
    otel_span attempt = enter_holding("attempt");
    run_in_thread(start_and_end_a_child, &attempt);
    otel_span_cancel(attempt);
    otel_span_fail(root, NULL);
    otel_span_end(root);
    assert_true(are_exported("root"));
}

static void descendants_that_end_after_it_go_to_the_root(void **state)
{
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        const otel_span root = enter("root");
        otel_span attempt = enter_holding("attempt");
        const otel_span late = otel_span_start(tracer, "late", NULL);
        otel_span_end(attempt);
        otel_span_end(late);
        run_in_thread(start_and_end_a_child, &attempt);
        assert_true(are_exported(""));
        if (fails)
            otel_span_fail(root, NULL);
        otel_span_end(root);
        assert_true(are_exported(fails ? "attempt late elsewhere root" : ""));
    }
}

/* Whether the span that it is started below is still open or not. */
static void once_the_root_has_decided_it_holds_nothing(void **state)
{
    (void)state;
    const otel_span root = enter("root");
    const otel_span open = otel_span_start(tracer, "open", NULL);
    otel_context parent = {.span = open};
    otel_span_end(root);
    for (int has_ended = 0; has_ended < 2; has_ended++) {
        const otel_span_options *options = OTEL_SPAN_OPTIONS(.hold = true, .parent = &parent);
        const otel_span attempt = otel_span_enter(tracer, "attempt", options);
        otel_span_end(enter("call"));
        assert_null(otel_span_collect(attempt));
        otel_span_end(open);
    }
    assert_int_equal(stats_now().withheld[OTEL_WITHHELD_LATE], 5);
    assert_true(are_exported(""));
}

static void they_may_be_nested(void **state)
{
    (void)state;
    const otel_span root = enter("root");
    const otel_span outer = enter_holding("outer");
    const otel_span inner = enter_holding("inner");
    otel_span_end(enter("call"));
    otel_span_end(inner);
    const otel_span cancelled = enter_holding("cancelled");
    otel_span_end(enter("within"));
    otel_span_cancel(cancelled);
    otel_span_end(outer);
    otel_span_fail(root, NULL);
    otel_span_end(root);
    assert_true(are_exported("call inner outer root"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AROUND(cancelling_it_withholds_what_is_below_it),
        AROUND(ending_it_leaves_the_decision_to_the_root),
        AROUND(collecting_it_takes_what_is_below_it),
        AROUND(descendants_of_other_threads_belong_to_it),
        AROUND(descendants_that_end_after_it_go_to_the_root),
        AROUND(once_the_root_has_decided_it_holds_nothing),
        AROUND(they_may_be_nested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
