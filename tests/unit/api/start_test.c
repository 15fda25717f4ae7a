/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/start_test.c - specification of starting spans: whichever way a start takes, with
 * options or without, fast or slow, it makes the same span. */
#include "tests/support/recorder.h"

#include "api/thread/thread_state.h"
#include "common/base/ratio.h"
#include "tests/support/unit.h"
#include <string.h>

#define LONG_NAME "a name that is longer than those that are copied at once"
#define QUARTER (UINT64_C(1) << 62)

enum { ROUNDS = 200, PARENT_SPAN_ID = 4, KIND = 6, FLAGS = 16 };

static otel_tracer *tracer(void)
{
    return otel_tracer_get("start", NULL);
}

AROUND_EACH(recorder_setup, recorder_teardown);

/* --- the ways of starting a span under a parent, or a root --- */

static const otel_attribute *attribute(void)
{
    static otel_attribute one;
    one = otel_attribute_of("key", otel_value_int(1));
    return &one;
}

static otel_span enter_simply(const otel_context *parent)
{
    return otel_span_enter(tracer(), "s", OTEL_SPAN_OPTIONS(.parent = parent));
}

static otel_span enter_with_attribute(const otel_context *parent)
{
    return otel_span_enter(tracer(), "s",
                           OTEL_SPAN_OPTIONS(.parent = parent, .kind = OTEL_SPAN_KIND_SERVER,
                                             .attributes = attribute(), .attribute_count = 1));
}

static otel_span enter_by_long_name(const otel_context *parent)
{
    return otel_span_enter(tracer(), LONG_NAME, OTEL_SPAN_OPTIONS(.parent = parent));
}

static otel_span enter_in_the_past(const otel_context *parent)
{
    return otel_span_enter(tracer(), "s", OTEL_SPAN_OPTIONS(.parent = parent, .start_ns = 1));
}

static otel_span start_simply(const otel_context *parent)
{
    return otel_span_start(tracer(), "s", OTEL_SPAN_OPTIONS(.parent = parent));
}

static otel_span start_with_attribute(const otel_context *parent)
{
    return otel_span_start(tracer(), "s",
                           OTEL_SPAN_OPTIONS(.parent = parent, .kind = OTEL_SPAN_KIND_SERVER,
                                             .attributes = attribute(), .attribute_count = 1));
}

static otel_span start_by_long_name(const otel_context *parent)
{
    return otel_span_start(tracer(), LONG_NAME, OTEL_SPAN_OPTIONS(.parent = parent));
}

static otel_span start_in_the_past(const otel_context *parent)
{
    return otel_span_start(tracer(), "s", OTEL_SPAN_OPTIONS(.parent = parent, .start_ns = 1));
}

typedef otel_span way(const otel_context *parent);
static way *const ways[] = {enter_simply,       enter_with_attribute, enter_by_long_name,
                            enter_in_the_past,  start_simply,         start_with_attribute,
                            start_by_long_name, start_in_the_past};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* --- a ratio --- */

static unsigned asked;

static bool sample(const struct oteli_sdk *sdk, const struct oteli_sampling *about)
{
    const struct oteli_ratio ratio = {.threshold = sdk->ratio_below};
    asked++;
    return oteli_ratio_samples(&ratio, about->trace_id);
}

static void start_by_ratio(uint64_t below)
{
    recorder_stop();
    recorder_start();
    recorder.sdk.decide[OTELI_PARENT_NONE] = OTELI_DECIDE_RATIO;
    recorder.sdk.decide[OTELI_PARENT_LOCAL_UNSAMPLED] = OTELI_DECIDE_DROP;
    recorder.sdk.ratio_below = below;
    recorder.sdk.sample = sample;
    asked = 0;
}

/* By the last eight bytes of its trace id, as one number. */
static void check_by_ratio(otel_span span, uint64_t below)
{
    const otel_span_context context = otel_span_get_context(span);
    uint64_t number = 0;
    for (unsigned i = 8; i < 16; i++)
        number = number << 8 | context.trace_id[i];
    assert_true(otel_span_context_is_valid(&context));
    assert_int_equal(otel_span_is_recording(span), number < below);
    assert_int_equal(context.flags, OTEL_TRACE_FLAG_RANDOM | (number < below ? 1 : 0));
}

/* A root, and spans below it. Returns whether they were sampled. */
static bool check_root(way *start, uint64_t below)
{
    const otel_context none = {{{0}}, NULL, 0};
    const otel_span root = start(&none);
    check_by_ratio(root, below);
    const otel_context context = otel_context_with_span(none, root);
    const otel_span child = otel_span_start(tracer(), "child", NULL);
    const otel_span other = otel_span_enter(tracer(), "o", OTEL_SPAN_OPTIONS(.parent = &context));
    check_by_ratio(child, below);
    check_by_ratio(other, below);
    assert_int_equal(otel_span_is_recording(other), otel_span_is_recording(root));
    otel_span_end(other);
    otel_span_end(child);
    otel_span_end(root);
    return otel_span_get_context(root).flags % 2 != 0;
}

/* spec: S7 trace/sdk.md#traceidratiobased MUST stable */
TEST_FAST_TOO(S7_a_ratio_decides_by_the_trace_id_whichever_way_a_root_starts)
{
    for (unsigned i = 0; i < WAYS; i++) {
        start_by_ratio(QUARTER);
        unsigned sampled = 0;
        for (unsigned k = 0; k < ROUNDS; k++)
            sampled += check_root(ways[i], QUARTER);
        assert_in_range(sampled, ROUNDS / 4 - 42, ROUNDS / 4 + 42); /* seven deviations */
    }
}

TEST_FAST_TOO(S7_ratios_of_all_and_of_nothing_do_so)
{
    for (unsigned i = 0; i < WAYS; i++) {
        start_by_ratio(0);
        assert_false(check_root(ways[i], 0));
        start_by_ratio(UINT64_MAX);
        assert_true(check_root(ways[i], UINT64_MAX));
    }
}

TEST_WITH(recorder_setup_fast, recorder_teardown, no_sampler_is_asked_for_roots_that_a_ratio_drops)
{
    start_by_ratio(0);
    otel_span_end(otel_span_start(tracer(), "the thread gets to know the SDK", NULL));
    asked = 0;
    for (unsigned k = 0; k < ROUNDS; k++) {
        otel_span_end(otel_span_enter(tracer(), LONG_NAME, NULL));
        otel_span_end(otel_span_start(tracer(), LONG_NAME, NULL));
    }
    assert_int_equal(asked, 0);
}

/* --- parents --- */

static otel_context remote(uint8_t flags, const char *tracestate)
{
    static const uint8_t trace_id[16] = {0xaa, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    static const uint8_t span_id[8] = {0xbb, 2, 3, 4, 5, 6, 7, 8};
    const otel_span_context context =
        otel_span_context_make(trace_id, span_id, flags, true, tracestate);
    const otel_context empty = {{{0}}, NULL, 0};
    return otel_context_with_span(empty, otel_span_wrap(&context));
}

static const char *b3_of(void *carrier, const char *name, size_t index, size_t *length)
{
    if (index != 0 || strcmp(name, "b3") != 0)
        return NULL;
    *length = strlen(carrier);
    return carrier;
}

static otel_context extracted(const char *b3)
{
    const otel_context empty = {{{0}}, NULL, 0};
    return otel_propagator_extract(otel_propagator_b3(), &empty, b3_of, (char *)(uintptr_t)b3);
}

/* What is left of a span once it has ended, but for its own ids. */
struct made {
    otel_span_context context;
    bool is_recording;
    bool has_parent;
    uint64_t flags;
    uint64_t recorded[OTELI_ORIGINS];
    uint64_t unsampled[OTELI_ORIGINS];
};

static struct made make(way *start, const otel_context *parent)
{
    const struct oteli_thread_counts before = oteli_self->counts;
    struct made made;
    memset(&made, 0, sizeof made);
    recorder.count = 0;
    const otel_span span = start(parent);
    made.context = otel_span_get_context(span);
    made.is_recording = otel_span_is_recording(span);
    assert_memory_not_equal(made.context.span_id, otel_span_get_context(parent->span).span_id, 8);
    memset(made.context.span_id, 0, sizeof made.context.span_id);
    if (otel_span_get_context(parent->span).span_id[0] == 0)
        memset(made.context.trace_id, 0, sizeof made.context.trace_id);
    for (unsigned i = 0; i < OTELI_ORIGINS; i++) {
        made.recorded[i] = oteli_self->counts.recorded[i] - before.recorded[i];
        made.unsampled[i] = oteli_self->counts.unsampled[i] - before.unsampled[i];
    }
    otel_span_end(span);
    if (made.is_recording) {
        made.has_parent = recorder_has_field(0, PARENT_SPAN_ID);
        made.flags = recorder_field(0, FLAGS).value;
    }
    return made;
}

/* Under each kind of parent, the ways of which some are fast make what a slow one does. */
static void check_parents(void)
{
    const otel_span entered = otel_span_enter(tracer(), "entered", NULL);
    const otel_span started = otel_span_start(tracer(), "started", NULL);
    const otel_context empty = {{{0}}, NULL, 0};
    const otel_context parents[] = {
        empty,
        otel_context_with_span(empty, entered),
        otel_context_with_span(empty, started),
        remote(OTEL_TRACE_FLAG_SAMPLED, NULL),
        remote(OTEL_TRACE_FLAG_SAMPLED | OTEL_TRACE_FLAG_RANDOM, NULL),
        remote(0, NULL),
        remote(OTEL_TRACE_FLAG_RANDOM, NULL),
        remote(OTEL_TRACE_FLAG_SAMPLED, "a=b"),
        remote(0, "a=b"),
        extracted("80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-1"),
        extracted("80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-d"),
        extracted("80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1"),
        extracted("d"),
        extracted("0"),
    };
    for (unsigned i = 0; i < sizeof parents / sizeof parents[0]; i++) {
        const struct made expected = make(start_in_the_past, &parents[i]);
        for (unsigned k = 0; k < WAYS; k++) {
            const struct made made = make(ways[k], &parents[i]);
            assert_memory_equal(&made, &expected, sizeof made);
        }
    }
    otel_span_end(started);
    otel_span_end(entered);
}

TEST_FAST_TOO(spans_of_a_parent_are_alike_whichever_way_they_start)
{
    for (unsigned dropped = 0; dropped < 1 << OTELI_PARENT_KINDS; dropped++) {
        recorder_stop();
        recorder_start();
        for (unsigned kind = 0; kind < OTELI_PARENT_KINDS; kind++)
            recorder.sdk.decide[kind] =
                (dropped >> kind & 1) != 0 ? OTELI_DECIDE_DROP : OTELI_DECIDE_SAMPLE;
        check_parents();
    }
}

TEST_FAST_TOO(options_are_in_the_record_of_a_detached_span)
{
    const otel_span first = start_simply(NULL);
    otel_span_end(first); /* its slot is at hand now */
    recorder.count = 0;

    const otel_span span = start_with_attribute(NULL);
    otel_span_set_int(span, "other", 2);
    otel_span_end(span);
    otel_span_end(start_simply(NULL));

    assert_string_equal(recorder_span_attributes(0), "key=1 other=2 ");
    assert_int_equal(recorder_field(0, KIND).value, 2);
    assert_string_equal(recorder_span_attributes(1), "");
    assert_int_equal(recorder_field(1, KIND).value, 1);
}

static void *current_value(otel_context_key key)
{
    const otel_context current = otel_current_context();
    return otel_context_get_value(&current, key);
}

TEST_FAST_TOO(the_context_of_options_is_current_in_an_entered_span)
{
    const otel_context_key key = otel_context_create_key("start");
    otel_context_value value;
    const otel_context parent = remote(OTEL_TRACE_FLAG_SAMPLED, NULL);
    const otel_context with_value = otel_context_with_value(parent, key, &value, &value);

    const otel_span outer = enter_simply(&with_value);
    assert_ptr_equal(current_value(key), &value);
    const otel_span inner = enter_simply(&parent);
    assert_null(current_value(key));
    otel_span_end(inner);
    assert_ptr_equal(current_value(key), &value);
    otel_span_end(outer);

    assert_null(current_value(key));
}
