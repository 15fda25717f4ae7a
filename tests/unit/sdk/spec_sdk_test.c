/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/spec_sdk_test.c - the rows of the specification that are about what the SDK asks
 * when a span starts: samplers and ids. Processors are in spec_processor_test.c. */
#include "sdk/lifecycle/lifecycle.h"
#include "tests/support/traced.h"
#include "tests/support/unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- a sampler of the program's, and ids, that write down what they are asked --- */

static struct {
    otel_sampling_decision decision;
    const otel_attribute *attributes;
    size_t attribute_count;
    const char *tracestate; /* NULL: it says nothing about it */

    uint32_t asked;
    uint32_t freed;
    char order[256];
    uint8_t trace_id[16];
    bool is_random;
    void *value; /* under `key` of the context */
    char told[300];
} judge;
static otel_context_key key;

static void note(const char *what)
{
    const size_t length = strlen(judge.order);
    snprintf(judge.order + length, sizeof judge.order - length, "%s ", what);
}

static void answer(otel_sampling_result *result)
{
    result->decision = judge.decision;
    result->attributes = judge.attributes;
    result->attribute_count = judge.attribute_count;
    result->has_tracestate = judge.tracestate != NULL;
    if (judge.tracestate != NULL)
        snprintf(result->tracestate, sizeof result->tracestate, "%s", judge.tracestate);
}

static void sample(const void *state, const otel_sampling_query *query,
                   otel_sampling_result *result)
{
    assert_ptr_equal(state, &judge);
    assert_int_equal(result->decision, OTEL_SAMPLING_DROP);
    assert_false(result->has_tracestate);
    note("sampler");
    judge.asked++;
    memcpy(judge.trace_id, query->trace_id, sizeof judge.trace_id);
    judge.is_random = query->trace_id_is_random;
    judge.value = otel_context_get_value(query->context, key);
    snprintf(judge.told, sizeof judge.told,
             "%.*s, kind %d, below %d%s \"%s\", attributes %zu: %" PRId64 ", links %zu: %d",
             (int)query->name.length, query->name.data, (int)query->kind, query->parent->span_id[0],
             query->parent->is_remote ? " remote" : "", query->parent_tracestate,
             query->attribute_count,
             query->attribute_count != 0 ? query->attributes[0].value.as.integer : 0,
             query->link_count, query->link_count != 0 ? query->links[0].context.span_id[0] : 0);
    answer(result);
}

static size_t describe(const void *state, char *text, size_t size)
{
    (void)state;
    return (size_t)snprintf(text, size, "Judge{1}");
}

static void free_judge(void *state)
{
    assert_ptr_equal(state, &judge);
    judge.freed++;
}

static otel_sampler sampler_of_ours(void)
{
    return OTEL_SAMPLER(.state = &judge, .sample = sample, .describe = describe,
                        .free = free_judge);
}

static struct {
    uint64_t next;
    unsigned zeros; /* to be answered first */
    unsigned asked;
} ids;

static void generate_ids(void *state, uint8_t *trace_id, uint8_t *span_id)
{
    assert_ptr_equal(state, &ids);
    assert_true((trace_id == NULL) != (span_id == NULL));
    note(trace_id != NULL ? "trace" : "span");
    ids.asked++;
    if (ids.zeros != 0) {
        ids.zeros--;
        memset(trace_id != NULL ? trace_id : span_id, 0, trace_id != NULL ? 16 : 8);
        return;
    }
    ids.next++;
    memcpy(trace_id != NULL ? trace_id + 8 : span_id, &ids.next, sizeof ids.next);
}

static void start_with_result(otel_sampling_decision decision)
{
    const otel_sampler sampler = sampler_of_ours();
    memset(&judge, 0, sizeof judge);
    memset(&ids, 0, sizeof ids);
    judge.decision = decision;
    traced_start(&(otel_sdk_options){.simple = true,
                                     .sampler = &sampler,
                                     .generate_ids = generate_ids,
                                     .generate_ids_state = &ids});
}

static otel_context remote(const char *tracestate)
{
    const uint8_t trace_id[16] = {7};
    const uint8_t span_id[8] = {9};
    const otel_span_context parent = otel_span_context_make(
        trace_id, span_id, OTEL_TRACE_FLAG_SAMPLED | OTEL_TRACE_FLAG_RANDOM, true, tracestate);
    return (otel_context){.span = otel_span_wrap(&parent)};
}

static bool is_sampled(otel_span span)
{
    return (otel_span_get_context(span).flags & OTEL_TRACE_FLAG_SAMPLED) != 0;
}

static const char *tracestate_of(otel_span span)
{
    static char text[600];
    const otel_span_context context = otel_span_get_context(span);
    otel_span_context_tracestate(&context, text, sizeof text);
    return text;
}

/* --- S: sampling --- */

AROUND_EACH(traced_setup_without_sdk, traced_teardown);

/* spec: S1 trace/sdk.md#sdk-span-creation MUST stable */
TEST(S1_the_trace_id_then_the_sampler_then_the_span_id)
{
    start_with_result(OTEL_SAMPLING_RECORD_AND_SAMPLE);

    const otel_span root = otel_span_enter(traced.tracer, "root", NULL);
    assert_string_equal(judge.order, "trace sampler span ");
    judge.order[0] = '\0';
    otel_span_end(otel_span_start(traced.tracer, "child", NULL));
    otel_span_end(root);

    assert_string_equal(judge.order, "sampler span ");
    assert_memory_equal(judge.trace_id, otel_span_get_context(root).trace_id, 16);
    assert_string_equal(traced_tree(), "root(child)");
}

/* spec: S1 trace/sdk.md#shouldsample MUST stable */
TEST(S1_the_sampler_is_told_all_that_is_known_at_the_start)
{
    int value;
    otel_context_value place;
    key = otel_context_create_key("k");
    start_with_result(OTEL_SAMPLING_RECORD_AND_SAMPLE);
    const otel_context parent = otel_context_with_value(remote("a=1"), key, &value, &place);
    const otel_attribute attribute = otel_attribute_of("k", otel_value_int(5));
    const otel_link link = {.context = otel_span_get_context(parent.span)};

    otel_span_end(
        otel_span_start(traced.tracer, "name",
                        OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_SERVER, .parent = &parent,
                                          .attributes = &attribute, .attribute_count = 1,
                                          .links = &link, .link_count = 1)));

    assert_string_equal(judge.told,
                        "name, kind 1, below 9 remote \"a=1\", attributes 1: 5, links 1: 9");
    assert_true(judge.is_random);
    assert_ptr_equal(judge.value, &value);

    const otel_span_kind none = (otel_span_kind)(OTEL_SPAN_KIND_CONSUMER + 1);
    otel_span_end(otel_span_start(traced.tracer, "name", OTEL_SPAN_OPTIONS(.kind = none)));
    assert_string_equal(judge.told, /* internal, as on the wire */
                        "name, kind 0, below 0 \"\", attributes 0: 0, links 0: 0");
}

/* spec: S1 trace/sdk.md#sdk-span-creation MUST stable */
TEST(S1_a_span_that_is_dropped_has_a_new_span_id)
{
    start_with_result(OTEL_SAMPLING_DROP);
    const otel_context parent = remote(NULL);
    const otel_span_options *under = OTEL_SPAN_OPTIONS(.parent = &parent);

    const otel_span_context first =
        otel_span_get_context(otel_span_start(traced.tracer, "a", under));
    const otel_span second = otel_span_enter(traced.tracer, "b", under);
    otel_span_end(second);
    const otel_span_context of_second = otel_span_get_context(second);

    assert_int_equal(first.span_id[0], 1);
    assert_int_equal(of_second.span_id[0], 2);
    assert_int_equal(first.trace_id[0], 7);
    assert_int_equal(first.flags, OTEL_TRACE_FLAG_RANDOM);
    assert_string_equal(traced_tree(), "");
}

/* spec: S2 trace/sdk.md#sampling MUST stable */
TEST(S2_three_decisions_and_no_other_state)
{
    static const struct {
        otel_sampling_decision decision;
        bool records;
        bool samples;
    } rows[] = {{OTEL_SAMPLING_DROP, false, false},
                {OTEL_SAMPLING_RECORD_ONLY, true, false},
                {OTEL_SAMPLING_RECORD_AND_SAMPLE, true, true},
                {(otel_sampling_decision)3, false, false}};
    start_with_result(OTEL_SAMPLING_DROP);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        judge.decision = rows[i].decision;
        const otel_span entered = otel_span_enter(traced.tracer, "entered", NULL);
        const otel_span started = otel_span_start(traced.tracer, "started", NULL);
        assert_int_equal(otel_span_is_recording(entered), rows[i].records);
        assert_int_equal(otel_span_is_recording(started), rows[i].records);
        assert_int_equal(is_sampled(entered), rows[i].samples);
        assert_int_equal(is_sampled(started), rows[i].samples);
        otel_span_set_int(entered, "k", 1);
        otel_span_end(started);
        otel_span_end(entered);
        assert_false(otel_span_is_recording(entered));
    }
    assert_string_equal(traced_tree(), "entered(started)");
    assert_string_equal(traced_sums(), "8 started, 6 unsampled, 2 ended: delivered 2, dropped 0");
}

static struct {
    uint32_t started;
    uint32_t ended;
    uint32_t sampled;
} seen;

static void on_start(void *state, otel_span span, const otel_context *parent)
{
    (void)state;
    (void)parent;
    assert_true(otel_span_is_recording(span));
    seen.started++;
}

static void on_end(void *state, const otel_span_view *span)
{
    (void)state;
    seen.ended++;
    seen.sampled += (span->flags & OTEL_TRACE_FLAG_SAMPLED) != 0;
}

/* spec: S3 trace/sdk.md#recording-sampled-reaction-table MUST stable */
TEST(S3_recorded_only_is_for_processors_and_not_for_exporters)
{
    const otel_sampler sampler = sampler_of_ours();
    const otel_processor processor = OTEL_PROCESSOR(.on_start = on_start, .on_end = on_end);
    memset(&judge, 0, sizeof judge);
    memset(&seen, 0, sizeof seen);
    traced_start(
        &(otel_sdk_options){.sampler = &sampler, .processors = &processor, .processor_count = 1});

    judge.decision = OTEL_SAMPLING_RECORD_ONLY;
    const otel_span only = otel_span_enter(traced.tracer, "only", NULL);
    const otel_span open = otel_span_start(traced.tracer, "open", NULL);
    otel_span_end(open);
    judge.decision = OTEL_SAMPLING_RECORD_AND_SAMPLE;
    traced_touch("child");
    judge.decision = OTEL_SAMPLING_DROP;
    traced_touch("dropped");
    otel_span_end(only);

    assert_string_equal(traced_tree(), "?child");
    assert_int_equal(seen.started, 3);
    assert_int_equal(seen.ended, 3);
    assert_int_equal(seen.sampled, 1);
    assert_string_equal(traced_sums(), "4 started, 3 unsampled, 1 ended: delivered 1, dropped 0");
}

static void *leave_open(void *unused)
{
    (void)otel_span_enter(traced.tracer, "left open", NULL);
    return unused;
}

/* spec: S3 trace/sdk.md#recording-sampled-reaction-table MUST stable */
TEST(S3_what_is_recorded_only_is_lost_without_being_counted_as_lost)
{
    start_with_result(OTEL_SAMPLING_RECORD_ONLY);
    otel_span_cancel(otel_span_enter(traced.tracer, "cancelled", NULL));
    otel_span_cancel(otel_span_start(traced.tracer, "cancelled", NULL));
    traced_thread(leave_open, NULL);
    assert_string_equal(traced_sums(), "3 started, 3 unsampled, 0 ended: delivered 0, dropped 0");
}

/* spec: S4 trace/sdk.md#shouldsample MUST stable */
TEST(S4_attributes_and_tracestate_of_the_sampler_are_the_spans)
{
    static const otel_attribute added[] = {
        {.key = "of.sampler", .value = {.type = OTEL_VALUE_INT, .as.integer = 3}}};
    start_with_result(OTEL_SAMPLING_RECORD_AND_SAMPLE);
    judge.attributes = added;
    judge.attribute_count = 1;
    judge.tracestate = "ot=th:0";
    const otel_attribute given = otel_attribute_of("of.caller", otel_value_int(1));

    otel_span_end(otel_span_enter(traced.tracer, "a",
                                  OTEL_SPAN_OPTIONS(.attributes = &given, .attribute_count = 1)));
    judge.decision = OTEL_SAMPLING_DROP;
    traced_touch("b");

    otel_span_view span;
    otel_attribute_view attribute;
    assert_int_equal(otel_memory_count(traced.memory), 1);
    assert_true(otel_memory_span(traced.memory, 0, &span));
    assert_true(otel_attribute_next(&span.attributes, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute));
    assert_memory_equal(attribute.key.data, "of.caller", 9);
    assert_true(otel_attribute_next(&span.attributes, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute));
    assert_memory_equal(attribute.key.data, "of.sampler", 10);
    assert_int_equal(attribute.value.integer, 3);
    assert_int_equal(span.tracestate.length, 7);
    assert_memory_equal(span.tracestate.data, "ot=th:0", 7);
}

/* spec: S4 trace/sdk.md#shouldsample MUST stable */
TEST(S4_the_tracestate_is_the_samplers_or_else_the_parents)
{
    static const struct {
        const char *said;
        const char *expected;
    } rows[] = {{NULL, "parent=1"},
                {"ot=th:8,parent=1", "ot=th:8,parent=1"},
                {"", ""},
                {"no tracestate", "parent=1"}};
    start_with_result(OTEL_SAMPLING_DROP);
    const otel_context parent = remote("parent=1");
    const otel_span_options *under = OTEL_SPAN_OPTIONS(.parent = &parent);
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        judge.decision = i % 2 ? OTEL_SAMPLING_RECORD_AND_SAMPLE : OTEL_SAMPLING_DROP;
        judge.tracestate = rows[i / 2].said;
        const otel_span entered = otel_span_enter(traced.tracer, "entered", under);
        const otel_span child = otel_span_start(traced.tracer, "started", under);
        assert_string_equal(tracestate_of(entered), rows[i / 2].expected);
        assert_string_equal(tracestate_of(child), rows[i / 2].expected);
        otel_span_end(child);
        otel_span_end(entered);
    }
    assert_int_equal(traced_stats().delivered, 8);
}

/* spec: S5 trace/sdk.md#sampler MUST stable */
TEST(S5_a_sampler_of_the_program_lives_until_the_shutdown)
{
    start_with_result(OTEL_SAMPLING_RECORD_AND_SAMPLE);
    char text[64];
    const otel_sampler sampler = sampler_of_ours();
    assert_int_equal(sampler.describe(sampler.state, text, sizeof text), 8);
    traced_touch("a");
    assert_int_equal(judge.asked, 1);
    assert_int_equal(judge.freed, 0);

    traced_stop();

    assert_int_equal(judge.freed, 1);
    traced_touch("b");
    assert_int_equal(judge.asked, 1);
    oteli_lifecycle_reset();
    assert_int_equal(judge.freed, 1);
}

/* spec: S5 trace/sdk.md#sampler MUST stable */
TEST(S5_a_sampler_is_adopted_also_when_nothing_is_started)
{
    start_with_result(OTEL_SAMPLING_RECORD_AND_SAMPLE);
    const otel_sampler sampler = sampler_of_ours();
    const otel_status status = otel_start_with(OTEL_SDK_OPTIONS(.sampler = &sampler));
    assert_int_equal(status, OTEL_ERROR_ALREADY_STARTED);
    assert_int_equal(judge.freed, 1);
    traced_touch("goes on");
    assert_int_equal(judge.asked, 1);
}

static void sample_by_starting_spans(const void *state, const otel_sampling_query *query,
                                     otel_sampling_result *result)
{
    (void)query;
    (void)state;
    judge.asked++;
    traced_touch("inner");
    result->decision = OTEL_SAMPLING_RECORD_AND_SAMPLE;
}

/* spec: S5 trace/sdk.md#sampler MUST stable */
TEST(S5_spans_that_a_sampler_starts_are_refused_and_counted)
{
    const otel_sampler sampler = OTEL_SAMPLER(.sample = sample_by_starting_spans);
    memset(&judge, 0, sizeof judge);
    traced_start(&(otel_sdk_options){.simple = true, .sampler = &sampler});
    traced_touch("outer");
    assert_int_equal(judge.asked, 1);
    assert_string_equal(traced_tree(), "outer");
    assert_only_lost(OTEL_DROP_REENTRANT, 1);
}

/* --- ids --- */

static void start_with_ids(bool are_random)
{
    memset(&ids, 0, sizeof ids);
    traced_start(&(otel_sdk_options){.simple = true,
                                     .generate_ids = generate_ids,
                                     .generate_ids_state = &ids,
                                     .generated_ids_are_random = are_random});
}

static uint8_t flags_of_root(void)
{
    const otel_span root = otel_span_start(traced.tracer, "root", OTEL_SPAN_OPTIONS(.root = true));
    otel_span_end(root);
    return otel_span_get_context(root).flags;
}

/* spec: S13 trace/sdk.md#id-generators SHOULD stable */
TEST(S13_the_random_flag_says_that_the_trace_id_is)
{
    traced_start(&(otel_sdk_options){.simple = true});
    assert_int_equal(flags_of_root() & OTEL_TRACE_FLAG_RANDOM, OTEL_TRACE_FLAG_RANDOM);
    traced_stop();

    start_with_result(OTEL_SAMPLING_RECORD_AND_SAMPLE);
    assert_int_equal(flags_of_root() & OTEL_TRACE_FLAG_RANDOM, 0);
    assert_false(judge.is_random);
    traced_stop();

    start_with_ids(true);
    assert_int_equal(flags_of_root() & OTEL_TRACE_FLAG_RANDOM, OTEL_TRACE_FLAG_RANDOM);
}

/* spec: L1 trace/sdk.md#id-generators MUST stable */
TEST(L1_ids_are_the_programs)
{
    start_with_ids(false);

    const otel_span root = otel_span_enter(traced.tracer, "root", NULL);
    traced_touch("child");
    otel_span_end(root);

    otel_span_view child;
    assert_true(otel_memory_span(traced.memory, 0, &child));
    assert_int_equal(child.trace_id[8], 1);
    assert_int_equal(child.span_id[0], 3);
    assert_int_equal(child.parent_span_id[0], 2);
    assert_string_equal(traced_tree(), "root(child)");
    assert_int_equal(ids.asked, 3);
}

/* spec: L1 trace/api.md#spancontext MUST stable */
TEST(L1_an_id_of_zeros_is_asked_for_again_and_never_used)
{
    start_with_ids(false);
    ids.zeros = 3; /* both tries for the trace, and the first for the span */

    const otel_span span = otel_span_start(traced.tracer, "a", NULL);
    otel_span_end(span);

    const otel_span_context context = otel_span_get_context(span);
    assert_true(otel_span_context_is_valid(&context));
    assert_int_equal(ids.asked, 4);
    assert_int_equal(context.span_id[0], 1);
    assert_int_equal(context.flags, OTEL_TRACE_FLAG_SAMPLED | OTEL_TRACE_FLAG_RANDOM);
}
