/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/span_test.c - specification of starting spans: ids, parents, sampling, and
 * what happens where nothing can be recorded. */
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"

#include "api/context/handle.h"
#include "api/context/tracestate_pool.h"
#include "tests/support/unit.h"
#include <errno.h>
#include <string.h>

enum { PARENT_SPAN_ID = 4, START = 7, END = 8, FLAGS = 16 };

static const uint8_t remote_trace_id[16] = {0xaa, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const uint8_t remote_span_id[8] = {0xbb, 2, 3, 4, 5, 6, 7, 8};

static otel_tracer *tracer(void)
{
    return otel_tracer_get("span", NULL);
}

static otel_context remote_parent(uint8_t flags)
{
    const otel_span_context context =
        otel_span_context_make(remote_trace_id, remote_span_id, flags, true, NULL);
    const otel_context empty = {{{0}}, NULL, 0};
    return otel_context_with_span(empty, otel_span_wrap(&context));
}

static bool same_trace(otel_span a, otel_span b)
{
    return a.opaque[0] == b.opaque[0] && a.opaque[1] == b.opaque[1];
}

static bool same_span(otel_span a, otel_span b)
{
    return same_trace(a, b) && a.opaque[2] == b.opaque[2];
}

static bool is_none(otel_span span)
{
    return same_span(span, (otel_span){{0}});
}

static void unsampled(void)
{
    memset(recorder.sdk.decide, OTELI_DECIDE_DROP, sizeof recorder.sdk.decide);
}

AROUND_EACH(recorder_setup, recorder_teardown);

/* spec: A8 */
TEST_FAST_TOO(a_started_span_is_not_current)
{
    const otel_span outer = otel_span_enter(tracer(), "outer", NULL);
    const otel_span started = otel_span_start(tracer(), "started", NULL);
    assert_true(same_span(otel_current_span(), outer));
    otel_span_end(started);
    assert_true(same_span(otel_current_span(), outer));
    otel_span_end(outer);

    assert_memory_equal(recorder_field(0, PARENT_SPAN_ID).bytes, &outer.opaque[2], 8);
}

/* spec: A7 */
TEST_FAST_TOO(a_root_ignores_what_is_current)
{
    const otel_context parent = remote_parent(1);
    const otel_span outer = otel_span_enter(tracer(), "outer", NULL);
    const otel_span root =
        otel_span_enter(tracer(), "root", OTEL_SPAN_OPTIONS(.root = true, .parent = &parent));
    assert_false(same_trace(outer, root));
    otel_span_end(root);
    assert_true(same_span(otel_current_span(), outer));
    otel_span_end(outer);

    assert_false(recorder_has_field(0, PARENT_SPAN_ID));
}

/* spec: A9 */
TEST(an_ended_span_is_still_a_parent)
{
    const otel_span ended = otel_span_enter(tracer(), "ended", NULL);
    const otel_span_context before = otel_span_get_context(ended);
    otel_span_end(ended);
    const otel_span_context after = otel_span_get_context(ended);
    assert_memory_equal(&before, &after, sizeof before);

    const otel_context parent = otel_context_with_span(otel_current_context(), ended);
    otel_span_end(otel_span_start(tracer(), "late child", OTEL_SPAN_OPTIONS(.parent = &parent)));

    assert_memory_equal(recorder_field(1, PARENT_SPAN_ID).bytes, after.span_id, 8);
}

TEST_FAST_TOO(ids_are_all_different_and_never_zero)
{
    otel_span spans[200];
    for (size_t i = 0; i < 200; i++) {
        spans[i] = otel_span_enter(tracer(), "span", OTEL_SPAN_OPTIONS(.root = true));
        otel_span_end(spans[i]);
        assert_true(spans[i].opaque[2] != 0);
        for (size_t k = 0; k < i; k++) {
            assert_false(same_trace(spans[i], spans[k]));
            assert_true(spans[i].opaque[2] != spans[k].opaque[2]);
        }
    }
}

/* spec: X18 opentelemetry-proto/trace.proto SHOULD stable */
TEST_FAST_TOO(flags_say_sampled_and_keep_random_as_it_came)
{
    static const struct {
        uint8_t parent;
        uint8_t child;
    } rows[] = {{0x00, 0x01}, {0x01, 0x01}, {0x02, 0x03}, {0x03, 0x03}, {0xfd, 0x01}, {0xff, 0x03}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const otel_context parent = remote_parent(rows[i].parent);
        const otel_span span = otel_span_start(tracer(), "s", OTEL_SPAN_OPTIONS(.parent = &parent));
        otel_span_end(span);
        assert_int_equal(otel_span_get_context(span).flags, rows[i].child);
        assert_false(otel_span_get_context(span).is_remote);
        assert_int_equal(recorder_field(2 * i, FLAGS).value, rows[i].child | 0x300);

        const otel_span entered =
            otel_span_enter(tracer(), "e", OTEL_SPAN_OPTIONS(.parent = &parent));
        const otel_span below = otel_span_start(tracer(), "below", NULL);
        otel_span_end(below);
        otel_span_cancel(entered);
        assert_int_equal(otel_span_get_context(below).flags, rows[i].child);
        assert_int_equal(recorder_field(2 * i + 1, FLAGS).value, rows[i].child | 0x100);
    }
    const otel_span root = otel_span_start(tracer(), "root", NULL);
    otel_span_end(root);
    assert_int_equal(otel_span_get_context(root).flags, 0x03);
}

/* spec: A11 */
TEST(explicit_times_are_taken_as_they_are)
{
    const otel_span span = otel_span_start(tracer(), "s", OTEL_SPAN_OPTIONS(.start_ns = 2000));
    otel_span_end_at(span, 1000);
    otel_span_end_at(otel_span_enter(tracer(), "e", NULL), 1000);

    assert_true(recorder_field(0, START).value == 2000);
    assert_true(recorder_field(0, END).value == 1000);
    assert_true(recorder_field(1, START).value == RECORDER_WALL_NS);
    assert_true(recorder_field(1, END).value == 1000);
}

/* Another core's counter may be a little behind: a plain span, one that has more, and one that is
 * composed. */
TEST_WITH(recorder_setup_queued, recorder_teardown, no_span_takes_less_than_no_time)
{
    char long_name[200] = {0};
    memset(long_name, 'n', sizeof long_name - 1);
    otel_span_end(otel_span_enter(tracer(), "gets a line", NULL));
    for (size_t i = 0; i < 3; i++) {
        recorder_at(100);
        const otel_span span = otel_span_enter(tracer(), "s", NULL);
        recorder_at(50);
        if (i == 1)
            otel_span_fail(span, NULL);
        else if (i == 2)
            otel_span_update_name(span, long_name);
        otel_span_end(span);
    }
    recorder_collect();

    assert_int_equal(recorder.raw, 2);
    for (size_t i = 1; i < 4; i++) {
        assert_int_equal(recorder_field(i, START).value - RECORDER_WALL_NS, 100);
        assert_int_equal(recorder_field(i, END).value - RECORDER_WALL_NS, 100);
    }
}

TEST_FAST_TOO(a_scope_ends_on_every_way_out)
{
    for (int i = 0; i < 3; i++) {
        OTEL_SCOPED(span, tracer(), "scope");
        otel_span_set_int(span, "i", i);
        if (i == 1)
            continue;
    }
    assert_int_equal(recorder.count, 3);
    assert_true(is_none(otel_current_span()));
}

TEST_FAST_TOO(without_a_tracer_a_span_has_an_empty_scope)
{
    otel_span_end(otel_span_enter(NULL, "entered", NULL));
    otel_span_end(otel_span_start(NULL, "started", NULL));

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(recorder_span(i).scope->name.length, 0);
        assert_int_equal(recorder_span(i).scope->otlp.length, 0);
    }
}

/* spec: A28 */
TEST_FAST_TOO(an_unsampled_span_has_an_id_of_its_own_and_nothing_else)
{
    unsampled();
    const otel_context parent = remote_parent(OTEL_TRACE_FLAG_SAMPLED | OTEL_TRACE_FLAG_RANDOM);
    const otel_span entered = otel_span_enter(tracer(), "e", OTEL_SPAN_OPTIONS(.parent = &parent));
    const otel_span started = otel_span_start(tracer(), "s", NULL);

    assert_true(same_trace(entered, parent.span) && same_trace(started, parent.span));
    assert_true(entered.opaque[2] != parent.span.opaque[2] && entered.opaque[2] != 0);
    assert_true(started.opaque[2] != entered.opaque[2] && started.opaque[2] != 0);
    assert_int_equal(otel_span_get_context(entered).flags, OTEL_TRACE_FLAG_RANDOM);
    assert_false(otel_span_is_recording(entered) || otel_span_is_recording(started));
    assert_true(same_span(otel_current_span(), entered));
    otel_span_set_int(entered, "k", 1);
    otel_span_end(started);
    otel_span_end(entered);
    assert_true(is_none(otel_current_span()));

    const struct counted counts = recorder_counts();
    assert_int_equal(counts.recorded, 0);
    assert_int_equal(counts.unsampled, 2);
    assert_int_equal(counts.ended, 0);
    assert_int_equal(recorder.count, 0);
}

static struct {
    struct oteli_sampling about;
    char name[16];
    uint64_t trace_id[2];
    uint64_t parent_id;
    bool answer;
    unsigned asked;
} sampler;

static bool sample(const struct oteli_sdk *sdk, const struct oteli_sampling *about)
{
    assert_ptr_equal(sdk, &recorder.sdk);
    sampler.asked++;
    sampler.about = *about;
    memcpy(sampler.name, about->name, about->name_length);
    memcpy(sampler.trace_id, about->trace_id, sizeof sampler.trace_id);
    sampler.parent_id = about->parent->opaque[2];
    return sampler.answer;
}

/* spec: A10 */
TEST_FAST_TOO(a_sampler_sees_the_trace_id_the_parent_and_the_options)
{
    memset(recorder.sdk.decide, OTELI_DECIDE_ASK, sizeof recorder.sdk.decide);
    recorder.sdk.sample = sample;
    memset(&sampler, 0, sizeof sampler);
    const otel_context parent = remote_parent(1);
    const otel_attribute attribute = otel_attribute_of("k", otel_value_int(1));
    const otel_span_options *options =
        OTEL_SPAN_OPTIONS(.parent = &parent, .attributes = &attribute, .attribute_count = 1);

    const otel_span no = otel_span_start(tracer(), "name", options);
    assert_false(otel_span_is_recording(no));
    sampler.answer = true;
    const otel_span yes = otel_span_start(tracer(), "name", options);
    assert_true(otel_span_is_recording(yes));
    otel_span_end(yes);

    assert_int_equal(sampler.asked, 2);
    assert_string_equal(sampler.name, "name");
    assert_memory_equal(sampler.trace_id, remote_trace_id, 16);
    assert_memory_equal(&sampler.parent_id, remote_span_id, 8);
    assert_ptr_equal(sampler.about.options, options);
}

/* Under the parent that is current, without options, and under one that is given. */
static void check_entered(unsigned kind, unsigned parent_kind)
{
    const bool is_remote = parent_kind >= OTELI_PARENT_REMOTE_UNSAMPLED;
    const uint8_t flags = parent_kind % 2 == 0 ? 1 : 0;
    const otel_span_context context =
        otel_span_context_make(remote_trace_id, remote_span_id, flags, is_remote, NULL);
    otel_context parent = {.span = otel_span_wrap(&context)};
    if (parent_kind == OTELI_PARENT_NONE)
        parent.span = (otel_span){{0}};
    const otel_span started = otel_span_start(tracer(), "s", OTEL_SPAN_OPTIONS(.parent = &parent));
    const otel_context_token token = otel_context_attach(parent);
    const otel_span span = otel_span_enter(tracer(), "s", NULL);

    assert_int_equal(otel_span_is_recording(started), kind == parent_kind);
    assert_int_equal(otel_span_is_recording(span), kind == parent_kind);
    assert_int_equal(same_trace(span, parent.span), parent_kind != OTELI_PARENT_NONE);
    assert_int_equal(otel_span_get_context(span).flags & 1, kind == parent_kind);
    assert_false(otel_span_get_context(span).is_remote);
    otel_span_end(span);
    if (kind == parent_kind) {
        assert_int_equal(recorder_has_field(0, PARENT_SPAN_ID), parent_kind != OTELI_PARENT_NONE);
        assert_int_equal(recorder_field(0, FLAGS).value & 0x300, is_remote ? 0x300 : 0x100);
    }
    assert_true(otel_context_detach(token));
    otel_span_end(started);
}

TEST_FAST_TOO(an_entered_span_follows_each_kind_of_parent)
{
    for (unsigned kind = 0; kind < OTELI_PARENT_KINDS; kind++) {
        recorder_stop();
        recorder_start();
        unsampled();
        recorder.sdk.decide[kind] = OTELI_DECIDE_SAMPLE;
        for (unsigned parent_kind = 0; parent_kind < OTELI_PARENT_KINDS; parent_kind++)
            check_entered(kind, parent_kind);
    }
}

/* spec: Q1 */
TEST_WITH(recorder_setup_without_sdk, recorder_teardown,
          without_an_sdk_the_parent_passes_through_and_nothing_is_allocated)
{
    otel_tracer *const scope = tracer();
    const size_t before = oteli_leaks_count();
    assert_false(otel_tracer_enabled(scope));
    assert_true(is_none(otel_span_enter(scope, "none", NULL)));

    const otel_context parent = remote_parent(0x01);
    const otel_span started = otel_span_start(scope, "s", OTEL_SPAN_OPTIONS(.parent = &parent));
    assert_true(same_span(started, parent.span));
    assert_true(otel_span_get_context(started).is_remote);
    assert_int_equal(otel_span_get_context(started).flags, 0x01);
    assert_false(otel_span_is_recording(started));
    otel_span_set_string(started, "k", "v");
    otel_span_end(started);
    assert_true(is_none(otel_span_start(scope, "r", OTEL_SPAN_OPTIONS(.root = true))));
    assert_int_equal(oteli_leaks_count(), before);
}

static otel_span inside_entered;
static otel_span inside_started;
static otel_span inside_outer;

static void use_the_api(void)
{
    inside_entered = otel_span_enter(tracer(), "inside", NULL);
    otel_span_set_int(inside_outer, "k", 1);
    assert_false(otel_span_is_recording(inside_outer));
    otel_span_end(inside_outer);
    otel_span_end(inside_entered);
    inside_started = otel_span_start(tracer(), "inside", NULL);
    otel_span_end(inside_started);
}

TEST_FAST_TOO(a_call_inside_a_call_is_refused_and_counted)
{
    recorder.inside = use_the_api;
    inside_outer = otel_span_enter(tracer(), "outer", NULL);
    const otel_span span = otel_span_enter(tracer(), "span", NULL);
    otel_span_end(span);
    recorder.inside = NULL;
    assert_true(otel_span_is_recording(inside_outer));
    otel_span_end(inside_outer);

    const struct counted counts = recorder_counts();
    assert_true(same_span(inside_entered, span) && same_span(inside_started, span));
    assert_int_equal(recorder.count, 2);
    assert_int_equal(counts.dropped[OTEL_DROP_REENTRANT], 2);
    assert_int_equal(counts.recorded, 4);
    assert_int_equal(counts.ended, 4);
}

static void restart_and_use_the_api(void)
{
    recorder_stop();
    recorder_start_queued();
    inside_entered = otel_span_enter(tracer(), "inside", NULL);
    inside_started = otel_span_start(tracer(), "inside", NULL);
    otel_span_set_int(inside_outer, "k", 1);
    otel_span_end(inside_started);
    otel_span_end(inside_entered);
}

TEST_WITH(recorder_setup_queued, recorder_teardown, a_call_inside_a_call_does_not_change_the_sdk)
{
    inside_outer = otel_span_start(tracer(), "outer", NULL);
    recorder.inside = restart_and_use_the_api;
    otel_span_end(otel_span_enter(tracer(), "first", NULL));

    assert_false(otel_span_is_recording(inside_entered));
    assert_false(otel_span_is_recording(inside_started));
    otel_span_end(inside_outer);
    otel_span_end(otel_span_enter(tracer(), "of the other sdk", NULL));
    recorder_collect();
    assert_int_equal(recorder.count, 1);
    assert_int_equal(recorder_counts().recorded, 1);
}

static void work(void)
{
    const otel_span outer = otel_span_enter(tracer(), "outer", NULL);
    const otel_span started = otel_span_start(
        tracer(), "a name that is so long that it does not fit into the span itself", NULL);
    otel_span_end(started);
    otel_span_end(outer);
}

/* spec: Q3 */
TEST_FAST_TOO(without_memory_spans_pass_their_parent_on)
{
    for (size_t nth = 1;; nth++) {
        recorder_stop();
        oteli_api_reset();
        oteli_leaks_check();
        oteli_leaks_begin();
        recorder_start();
        tracer();
        oteli_leaks_fail_at(nth);
        errno = EPIPE;
        work();
        const bool failed = oteli_leaks_failed();
        assert_int_equal(errno, EPIPE);
        work();
        assert_true(is_none(otel_current_span()));
        assert_true(recorder.count >= 2);
        const struct counted counts = recorder_counts();
        assert_int_equal(counts.ended, recorder.count + counts.dropped[OTEL_DROP_NO_MEMORY]);
        if (!failed)
            break;
    }
}

static void five_attributes(otel_span span)
{
    otel_span_set_string(span, "http.request.method", "GET");
    otel_span_set_string(span, "url.path", "/api/users/12345");
    otel_span_set_string(span, "server.address", "example.com");
    otel_span_set_int(span, "http.response.status_code", 200);
    otel_span_set_int(span, "server.port", 8080);
}

static void work_of_every_kind(otel_tracer *scope)
{
    const otel_span outer = otel_span_enter(scope, "outer", NULL);
    five_attributes(outer);
    const otel_span inner = otel_span_enter(scope, "inner", NULL);
    const otel_span started = otel_span_start(scope, "started", NULL);
    five_attributes(started);
    otel_span_add_event(inner, "event", NULL, 0);
    otel_span_fail(inner, "failed");
    otel_span_end(inner);
    otel_span_end(outer);
    otel_span_end(started);
}

TEST_FAST_TOO(the_steady_state_allocates_nothing)
{
    otel_tracer *const scope = tracer();
    for (int sampled = 1; sampled >= 0; sampled--) {
        if (!sampled) {
            recorder_stop();
            recorder_start();
            unsampled();
        }
        work_of_every_kind(scope);
        const size_t before = oteli_leaks_count();
        for (int i = 0; i < 300; i++) /* more than a part of each pool has */
            work_of_every_kind(scope);
        assert_int_equal(oteli_leaks_count(), before);
    }
}

TEST_FAST_TOO(unwinding_ends_what_was_entered_after_the_mark)
{
    const otel_span_mark below_all = otel_span_mark_here();
    const otel_span outer = otel_span_enter(tracer(), "outer", NULL);
    const otel_span_mark mark = otel_span_mark_here();
    otel_span_enter(tracer(), "a", NULL);
    otel_span_enter(tracer(), "b", NULL);
    otel_span_unwind(mark);
    assert_int_equal(recorder.count, 2);
    assert_true(same_span(otel_current_span(), outer));
    otel_span_unwind(below_all);
    assert_int_equal(recorder.count, 3);
}

/* --- handles: api/context/handle.h --- */

TEST_WITH(NULL, NULL, each_part_of_a_handle_comes_back_and_touches_no_other)
{
    static const uint8_t flags[] = {0, 1, 2, 3, 0xff};
    static const uint32_t numbers[] = {0, 1, 0x55555, 0xaaaaa, OTELI_INDEX_MAX};
    static const uint32_t tracestates[] = {0, 1, 0x555555, 0xaaaaaa, 0xffffff};
    for (size_t f = 0; f < sizeof flags; f++) {
        for (size_t s = 0; s < 5; s++) {
            for (size_t t = 0; t < 5; t++) {
                const uint64_t ref =
                    oteli_ref_make(flags[f], OTELI_SPAN_IN_POOL, true, numbers[s], tracestates[t]);

                assert_int_equal(oteli_ref_flags(ref), flags[f] & 3);
                assert_int_equal(oteli_ref_where(ref), OTELI_SPAN_IN_POOL);
                assert_int_equal(oteli_ref_index(ref), numbers[s]);
                assert_int_equal(oteli_ref_tracestate(ref), tracestates[t]);
                assert_false(oteli_ref_is_remote(ref));
                assert_true(oteli_ref_is_remote(ref | OTELI_REF_REMOTE));
                assert_int_equal(oteli_ref_index(ref | OTELI_REF_REMOTE), numbers[s]);
            }
        }
    }
}
