/* SPDX-License-Identifier: Apache-2.0 */
/* Errors that leave functions by longjmp, as in PostgreSQL, Lua and Ruby: what they jumped past is
 * over, and the next request gets a trace of its own. */
#include "blackbox.h"
#include <malloc.h>
#include <otel/baggage.h>
#include <otel/lines.h>

enum { JUMPS = 100000, BETWEEN_FLUSHES = 10, NESTED = 3, MOST_GROWTH = 1 << 20 };

static otel_tracer *tracer;
static sigjmp_buf error_handler;
static uint64_t answered; /* how many lost spans the flushes have answered for */

static int start(void **state)
{
    (void)state;
    answered = 0;
    tracer = otel_tracer_get("unwind", NULL);
    return start_with_memory(OTEL_SDK_OPTIONS(.threadless = false)) != OTEL_OK;
}

/* Spans that are abandoned are lost, and a shutdown answers for all lost spans. */
static int stop(void **state)
{
    (void)state;
    const otel_status status = otel_shutdown(PATIENCE_MS);
    const otel_stats stats = stats_now();
    assert_sums_close(&stats);
    otel_memory_free(memory);
    return status != (all_lost(&stats) == 0 ? OTEL_OK : OTEL_ERROR_EXPORT_FAILED);
}

/* A flush answers for the spans that were lost since the flush before. */
static void flush(void)
{
    const otel_status status = otel_flush(5000);
    const otel_stats stats = stats_now();
    const uint64_t lost = all_lost(&stats);
    assert_int_equal(status, lost == answered ? OTEL_OK : OTEL_ERROR_EXPORT_FAILED);
    answered = lost;
}

static otel_span_view exported(size_t index)
{
    otel_span_view span;
    assert_true(otel_memory_span(memory, index, &span));
    return span;
}

static bool is_named(const otel_span_view *span, const char *name)
{
    return span->name.length == strlen(name) && memcmp(span->name.data, name, strlen(name)) == 0;
}

static otel_span_view exported_as(const char *name)
{
    for (size_t i = 0;; i++) {
        const otel_span_view span = exported(i);
        if (is_named(&span, name))
            return span;
    }
}

static bool is_root(const otel_span_view *span)
{
    return span->parent_span_id == NULL;
}

static bool is_child_of(const otel_span_view *child, const otel_span_view *parent)
{
    return child->parent_span_id != NULL &&
           memcmp(child->parent_span_id, parent->span_id, sizeof parent->span_id) == 0 &&
           memcmp(child->trace_id, parent->trace_id, sizeof parent->trace_id) == 0;
}

static bool is_nothing_current(void)
{
    const otel_span_context context = otel_span_get_context(otel_current_span());
    return !otel_span_context_is_valid(&context);
}

static bool is_current(otel_span span)
{
    const otel_span_context now = otel_span_get_context(otel_current_span());
    const otel_span_context wanted = otel_span_get_context(span);
    return memcmp(now.span_id, wanted.span_id, sizeof now.span_id) == 0;
}

/* --- scopes --- */

static void fail_at_depth(int depth)
{
    OTEL_SCOPED(step, tracer, "step");
    if (depth == 1)
        siglongjmp(error_handler, 1);
    fail_at_depth(depth - 1);
}

static void serve_scoped(void)
{
    OTEL_SCOPED(request, tracer, "request");
    if (sigsetjmp(error_handler, 0) == 0)
        fail_at_depth(NESTED);
}

/* How many spans are above one in its trace; they are exported in any order. */
static size_t depth_of(otel_span_view span)
{
    size_t depth = 0;
    for (size_t i = 0; !is_root(&span); i++) {
        const otel_span_view parent = exported(i);
        if (!is_child_of(&span, &parent))
            continue;
        assert_true(span.end_ns >= span.start_ns && span.end_ns <= parent.end_ns);
        span = parent;
        depth++;
        i = SIZE_MAX;
    }
    return depth;
}

static void assert_requests(size_t requests)
{
    size_t with_depth[NESTED + 1] = {0};
    assert_int_equal(otel_memory_count(memory), requests * (NESTED + 1));
    for (size_t i = 0; i < requests * (NESTED + 1); i++) {
        const otel_span_view span = exported(i);
        const size_t depth = depth_of(span);
        assert_true(depth <= NESTED && is_named(&span, depth == 0 ? "request" : "step"));
        with_depth[depth]++;
    }
    for (size_t depth = 0; depth <= NESTED; depth++)
        assert_int_equal(with_depth[depth], requests);
}

static void serve_and_look(int requests)
{
    for (int done = 0; done < requests; done += BETWEEN_FLUSHES) {
        for (int i = 0; i < BETWEEN_FLUSHES; i++)
            serve_scoped();
        flush();
        assert_requests(BETWEEN_FLUSHES);
        otel_memory_clear(memory);
    }
}

static void a_scope_ends_what_was_jumped_past(void **state)
{
    (void)state;
    serve_and_look(BETWEEN_FLUSHES);
    const size_t before = mallinfo2().uordblks;
    serve_and_look(JUMPS);
    const size_t after = mallinfo2().uordblks;
    assert_true(after < before + MOST_GROWTH);
    assert_true(is_nothing_current());
    assert_int_equal(stats_now().open, 0);
    assert_int_equal(stats_now().delivered, (NESTED + 1) * (JUMPS + BETWEEN_FLUSHES));
}

static void a_scope_detaches_what_was_attached_in_it(void **state)
{
    (void)state;
    OTEL_SCOPED(outer, tracer, "outer");
    otel_context_token token;
    {
        OTEL_SCOPED(request, tracer, "request");
        const otel_span other = otel_span_start(tracer, "other", OTEL_SPAN_OPTIONS(.root = true));
        token = otel_context_attach(otel_context_with_span(otel_current_context(), other));
        assert_true(is_current(other));
        otel_span_end(other);
    }
    assert_true(is_current(outer));
    assert_false(otel_context_detach(token));
}

/* --- explicit ends --- */

static otel_span fail_inside(otel_span request)
{
    static otel_span inner;
    if (sigsetjmp(error_handler, 0) == 0) {
        inner = otel_span_enter(tracer, "inner", NULL);
        siglongjmp(error_handler, 1);
    }
    otel_span_end(request);
    return inner;
}

static void the_end_of_a_span_leaves_those_inside_open_but_not_current(void **state)
{
    (void)state;
    const otel_span inner = fail_inside(otel_span_enter(tracer, "request", NULL));
    assert_true(is_nothing_current());
    const otel_span next = otel_span_enter(tracer, "next", NULL);
    otel_span_set_int(inner, "late", 1);
    otel_span_end(inner);
    assert_true(is_current(next));
    otel_span_end(next);
    flush();
    const otel_span_view first = exported_as("request");
    const otel_span_view late = exported_as("inner");
    const otel_span_view second = exported_as("next");
    assert_true(is_child_of(&late, &first));
    assert_true(late.attributes.length != 0);
    assert_true(is_root(&second));
}

static void the_end_of_a_span_lets_another_trace_be_current(void **state)
{
    (void)state;
    const otel_span first = otel_span_enter(tracer, "first", NULL);
    const otel_span second = otel_span_enter(tracer, "second", OTEL_SPAN_OPTIONS(.root = true));
    otel_span_end(first);
    assert_true(is_current(second));
    otel_span_end(second);
    assert_true(is_nothing_current());
}

static void spans_that_are_never_ended_stay_within_bounds(void **state)
{
    (void)state;
    const size_t before = mallinfo2().uordblks;
    for (int i = 0; i < JUMPS; i++) {
        (void)fail_inside(otel_span_enter(tracer, "request", NULL));
        assert_true(is_nothing_current());
        if (i % BETWEEN_FLUSHES != 0)
            continue;
        flush();
        for (size_t at = 0; at < otel_memory_count(memory); at++) {
            const otel_span_view request = exported(at);
            assert_true(is_named(&request, "request") && is_root(&request));
        }
        otel_memory_clear(memory);
    }
    flush();
    const size_t after = mallinfo2().uordblks;
    assert_true(after < before + MOST_GROWTH);
    const otel_stats stats = stats_now();
    assert_int_equal(stats.delivered, JUMPS);
    assert_int_equal(stats.open + stats.dropped[OTEL_DROP_ABANDONED], JUMPS);
    assert_int_equal(stats.dropped[OTEL_DROP_NO_MEMORY], 0);
}

/* --- marks --- */

static void enter_everything_and_fail(void)
{
    static otel_context_value place;
    (void)otel_span_enter(tracer, "scan", NULL);
    const otel_baggage baggage = otel_baggage_set((otel_baggage){0}, "tenant", "42", NULL);
    otel_context context = otel_context_with_baggage(otel_current_context(), baggage);
    context = otel_context_with_value(context, otel_context_create_key("key"), &place, &place);
    (void)otel_context_attach(context);
    (void)otel_span_enter(tracer, "sort", NULL);
    otel_lines_begin();
    (void)otel_span_enter(tracer, "shared", NULL);
    siglongjmp(error_handler, 1);
}

static void a_mark_ends_everything_after_it(void **state)
{
    (void)state;
    const otel_span session = otel_span_enter(tracer, "session", NULL);
    const size_t before = mallinfo2().uordblks;
    for (int i = 0; i < JUMPS / 100; i++) {
        const otel_span_mark mark = otel_span_mark_here();
        if (sigsetjmp(error_handler, 0) == 0)
            enter_everything_and_fail();
        otel_span_unwind(mark);
        const otel_context context = otel_current_context();
        assert_true(is_current(session));
        assert_null(context.values);
        assert_true(context.baggage == 0);
        flush();
        const otel_span_view sort = exported_as("sort");
        const otel_span_view scan = exported_as("scan");
        assert_true(is_child_of(&sort, &scan));
        assert_int_equal(otel_memory_count(memory), 2);
        otel_memory_clear(memory);
    }
    assert_true(mallinfo2().uordblks < before + MOST_GROWTH);
    otel_span_end(session);
    assert_int_equal(stats_now().open, 0);
    assert_int_equal(stats_now().withheld[OTEL_WITHHELD_UNMOUNTED], JUMPS / 100);
}

static void a_mark_counts_where_nothing_is_current(void **state)
{
    (void)state;
    const otel_span_mark mark = otel_span_mark_here();
    if (sigsetjmp(error_handler, 0) == 0) {
        (void)otel_span_enter(tracer, "request", NULL);
        fail_at_depth(NESTED);
    }
    otel_span_unwind(mark);
    assert_true(is_nothing_current());
    flush();
    assert_requests(1);
}

static void a_mark_touches_nothing_from_before_it(void **state)
{
    (void)state;
    const otel_span outer = otel_span_enter(tracer, "outer", NULL);
    const otel_span inner = otel_span_enter(tracer, "inner", NULL);
    const otel_span_mark here = otel_span_mark_here();
    otel_span_unwind(here);
    assert_true(is_current(inner));
    otel_span_unwind((otel_span_mark){0});
    assert_true(is_current(inner));
    otel_span_end(inner);
    const otel_span another = otel_span_enter(tracer, "another", NULL);
    const otel_span deeper = otel_span_enter(tracer, "deeper", NULL);
    otel_span_unwind(here); /* what was marked is over: nothing is after it */
    assert_true(is_current(deeper));
    otel_span_end(deeper);
    otel_span_end(another);
    assert_true(is_current(outer));
    otel_span_end(outer);
}

static void a_mark_works_without_an_sdk(void **state)
{
    (void)state;
    const uint8_t id[16] = {1};
    const otel_span_context remote =
        otel_span_context_make(id, id, OTEL_TRACE_FLAG_SAMPLED, true, NULL);
    const otel_span_mark mark = otel_span_mark_here();
    (void)otel_context_attach(
        otel_context_with_span(otel_current_context(), otel_span_wrap(&remote)));
    assert_false(is_nothing_current());
    otel_span_unwind(mark);
    assert_true(is_nothing_current());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mark_works_without_an_sdk),
        AROUND(a_scope_ends_what_was_jumped_past),
        AROUND(a_scope_detaches_what_was_attached_in_it),
        AROUND(the_end_of_a_span_leaves_those_inside_open_but_not_current),
        AROUND(the_end_of_a_span_lets_another_trace_be_current),
        AROUND(spans_that_are_never_ended_stay_within_bounds),
        AROUND(a_mark_ends_everything_after_it),
        AROUND(a_mark_counts_where_nothing_is_current),
        AROUND(a_mark_touches_nothing_from_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
