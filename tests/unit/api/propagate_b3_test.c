/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/propagate_b3_test.c - specification of api/propagators/b3.c. */
#include "api/propagators/composite.h"
#include "tests/support/carrier.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <string.h>

#define TRACE "463ac35c9f6413ad48485a3953bb6124"
#define SHORT "48485a3953bb6124"
#define PADDED "0000000000000000" SHORT
#define SPAN "a2fb4a1d1a96d312"
#define PARENT "0020000000000001"

static struct carrier in;
static struct carrier out;

static int begin(void **state)
{
    in.count = out.count = 0;
    return recorder_setup_without_sdk(state);
}

static int begin_recorded(void **state)
{
    in.count = out.count = 0;
    return recorder_setup(state);
}

static otel_context extract(void)
{
    return otel_propagator_extract(otel_propagator_b3(), NULL, carrier_get, &in);
}

/* What comes in, as it goes out in one header: the two go through the same context. */
static const char *sent_as_single(void)
{
    const otel_context context = extract();
    out.count = 0;
    otel_propagator_inject(otel_propagator_b3(), &context, carrier_set, &out);
    return carrier_sent(&out, "b3");
}

static const char *sent_as_several(void)
{
    const otel_context context = extract();
    out.count = 0;
    otel_propagator_inject(otel_propagator_b3_multi(), &context, carrier_set, &out);
    return carrier_text(&out);
}

static const struct {
    const char *header;
    const char *sent; /* NULL: not valid */
} singles[] = {
    {TRACE "-" SPAN "-1", TRACE "-" SPAN "-1"},
    {TRACE "-" SPAN "-0", TRACE "-" SPAN "-0"},
    {TRACE "-" SPAN "-d", TRACE "-" SPAN "-d"},
    {TRACE "-" SPAN, TRACE "-" SPAN},
    {TRACE "-" SPAN "-1-" PARENT, TRACE "-" SPAN "-1"},
    {TRACE "-" SPAN "-d-" PARENT, TRACE "-" SPAN "-d"},
    {TRACE "-" SPAN "-" PARENT, TRACE "-" SPAN},
    {SHORT "-" SPAN "-1", PADDED "-" SPAN "-1"},
    {PADDED "-" SPAN "-0", PADDED "-" SPAN "-0"},
    {"0", "0"},
    {"1", "1"},
    {"d", "d"},
    {"", NULL},
    {"2", NULL},
    {"D", NULL},
    {"true", NULL},
    {"-", NULL},
    {"--", NULL},
    {TRACE, NULL},
    {TRACE "-", NULL},
    {TRACE "-" SPAN "-", NULL},
    {TRACE "-" SPAN "-2", NULL},
    {TRACE "-" SPAN "-11", NULL},
    {TRACE "-" SPAN "-1-", NULL},
    {TRACE "-" SPAN "-1-0020", NULL},
    {TRACE "-" SPAN "-1-" PARENT "-", NULL},
    {TRACE "-" SPAN "-1-" PARENT "-1", NULL},
    {TRACE "-" SPAN "-" PARENT "-1", NULL},
    {TRACE "-" SPAN "-1-0020000000000001"
           "0",
     NULL},
    {TRACE "-" SPAN "0-1", NULL},
    {TRACE "0-" SPAN "-1", NULL},
    {"0" SHORT "-" SPAN "-1", NULL},
    {"463AC35C9F6413AD48485A3953BB6124-" SPAN "-1", NULL},
    {TRACE "-A2FB4A1D1A96D312-1", NULL},
    {"463ac35c9f6413ad48485a3953bb612g-" SPAN "-1", NULL},
    {"00000000000000000000000000000000-" SPAN "-1", NULL},
    {"0000000000000000-" SPAN "-1", NULL},
    {TRACE "-0000000000000000-1", NULL},
    {" \t" TRACE "-" SPAN "-1", TRACE "-" SPAN "-1"},
    {TRACE "-" SPAN "-1 ", TRACE "-" SPAN "-1"},
    {TRACE "- " SPAN "-1", NULL},
    {TRACE "_" SPAN "_1", NULL},
};

AROUND_EACH(begin, recorder_teardown);

/* spec: C13 context/api-propagators.md#b3-extract MUST stable */
TEST(C13_single_headers_good_and_bad)
{
    for (size_t i = 0; i < sizeof singles / sizeof singles[0]; i++) {
        in.count = 0;
        carrier_add(&in, "b3", singles[i].header);
        const char *sent = sent_as_single();
        if (singles[i].sent == NULL && sent != NULL)
            fail_msg("\"%s\" was taken for \"%s\"", singles[i].header, sent);
        if (singles[i].sent != NULL && (sent == NULL || strcmp(sent, singles[i].sent) != 0))
            fail_msg("\"%s\" became \"%s\"", singles[i].header, sent ? sent : "nothing");
    }
}

static const struct {
    const char *trace;
    const char *span;
    const char *sampled;
    const char *flags;
    const char *sent; /* as one header; NULL: not valid */
} several[] = {
    {TRACE, SPAN, "1", NULL, TRACE "-" SPAN "-1"},
    {TRACE, SPAN, "0", NULL, TRACE "-" SPAN "-0"},
    {TRACE, SPAN, "true", NULL, TRACE "-" SPAN "-1"},
    {TRACE, SPAN, "False", NULL, TRACE "-" SPAN "-0"},
    {TRACE, SPAN, NULL, NULL, TRACE "-" SPAN},
    {TRACE, SPAN, " 1\t", NULL, TRACE "-" SPAN "-1"},
    {" " TRACE " ", "\t" SPAN, "0", " 1 ", TRACE "-" SPAN "-d"},
    {TRACE, SPAN, "3", NULL, NULL},
    {TRACE, SPAN, "", NULL, TRACE "-" SPAN},
    {TRACE, SPAN, NULL, "1", TRACE "-" SPAN "-d"},
    {TRACE, SPAN, "0", "1", TRACE "-" SPAN "-d"},
    {TRACE, SPAN, "1", "0", TRACE "-" SPAN "-1"},
    {TRACE, SPAN, "0", "2", TRACE "-" SPAN "-0"},
    {SHORT, SPAN, "1", NULL, PADDED "-" SPAN "-1"},
    {NULL, NULL, "0", NULL, "0"},
    {NULL, NULL, "1", NULL, "1"},
    {NULL, NULL, NULL, "1", "d"},
    {NULL, NULL, NULL, NULL, NULL},
    {NULL, NULL, "x", "x", NULL},
    {TRACE, NULL, "1", NULL, NULL},
    {NULL, SPAN, "1", NULL, NULL},
    {"", SPAN, "1", NULL, NULL},
    {TRACE, "", "1", NULL, NULL},
    {TRACE "00", SPAN, "1", NULL, NULL},
    {"463AC35C9F6413AD48485A3953BB6124", SPAN, "1", NULL, NULL},
    {"00000000000000000000000000000000", SPAN, "1", NULL, NULL},
    {TRACE, "0000000000000000", "1", NULL, NULL},
    {TRACE, "a2fb4a1d1a96d3", "1", NULL, NULL},
};

/* spec: C13 context/api-propagators.md#b3-extract MUST stable */
TEST(C13_several_headers_good_and_bad)
{
    for (size_t i = 0; i < sizeof several / sizeof several[0]; i++) {
        const struct {
            const char *name;
            const char *value;
        } headers[] = {{"X-B3-TraceId", several[i].trace},
                       {"X-B3-SpanId", several[i].span},
                       {"X-B3-ParentSpanId", PARENT},
                       {"X-B3-Sampled", several[i].sampled},
                       {"X-B3-Flags", several[i].flags}};
        in.count = 0;
        for (size_t k = 0; k < sizeof headers / sizeof headers[0]; k++)
            if (headers[k].value != NULL)
                carrier_add(&in, headers[k].name, headers[k].value);
        const char *sent = sent_as_single();
        const char *expected = several[i].sent;
        if ((sent == NULL) != (expected == NULL) || (sent != NULL && strcmp(sent, expected) != 0))
            fail_msg("case %zu became \"%s\"", i, sent ? sent : "nothing");
    }
}

/* spec: C13 context/api-propagators.md#b3-extract MUST stable */
TEST(C13_the_single_header_comes_before_the_several)
{
    carrier_add(&in, "X-B3-TraceId", TRACE);
    carrier_add(&in, "X-B3-SpanId", SPAN);
    carrier_add(&in, "X-B3-Sampled", "0");
    assert_string_equal(sent_as_single(), TRACE "-" SPAN "-0");

    carrier_add(&in, "b3", PADDED "-" PARENT "-1");
    assert_string_equal(sent_as_single(), PADDED "-" PARENT "-1");

    in.count = 3;
    carrier_add(&in, "b3", "malformed");
    assert_string_equal(sent_as_single(), TRACE "-" SPAN "-0");
}

/* spec: C13 context/api-propagators.md#b3-inject MUST stable */
TEST(C13_several_headers_say_0_or_1_and_never_the_parent)
{
    static const struct {
        const char *single;
        const char *sent;
    } table[] = {
        {TRACE "-" SPAN "-1-" PARENT,
         "x-b3-traceid: " TRACE "\nx-b3-spanid: " SPAN "\nx-b3-sampled: 1\n"},
        {TRACE "-" SPAN "-0", "x-b3-traceid: " TRACE "\nx-b3-spanid: " SPAN "\nx-b3-sampled: 0\n"},
        {TRACE "-" SPAN "-d", "x-b3-traceid: " TRACE "\nx-b3-spanid: " SPAN "\nx-b3-flags: 1\n"},
        {TRACE "-" SPAN, "x-b3-traceid: " TRACE "\nx-b3-spanid: " SPAN "\n"},
        {"0", "x-b3-sampled: 0\n"},
        {"d", "x-b3-flags: 1\n"},
        {"what", ""},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        in.count = 0;
        carrier_add(&in, "b3", table[i].single);
        assert_string_equal(sent_as_several(), table[i].sent);
    }
    /* A trace id that is random makes no third value of it. */
    const uint8_t id[16] = {1};
    const otel_span_context random = otel_span_context_make(id, id, 3, false, NULL);
    const otel_context context = otel_context_with_span((otel_context){0}, otel_span_wrap(&random));
    out.count = 0;
    otel_propagator_inject(otel_propagator_b3_multi(), &context, carrier_set, &out);
    assert_string_equal(carrier_sent(&out, "x-b3-sampled"), "1");
}

/* spec: C13 context/api-propagators.md#b3-extract MUST stable */
TEST_WITH(begin_recorded, recorder_teardown, C13_debug_is_sampled_and_stays_with_the_trace)
{
    carrier_add(&in, "b3", TRACE "-" SPAN "-d");
    const otel_context remote = extract();
    const otel_span_context seen = otel_span_get_context(remote.span);
    assert_int_equal(seen.flags, OTEL_TRACE_FLAG_SAMPLED);

    otel_tracer *const tracer = otel_tracer_get("t", NULL);
    const otel_span server =
        otel_span_enter(tracer, "server", OTEL_SPAN_OPTIONS(.parent = &remote));
    const otel_span client = otel_span_enter(tracer, "client", NULL);
    const otel_span other = otel_span_start(tracer, "other", NULL);
    otel_propagator_inject(otel_propagator_b3(), NULL, carrier_set, &out);
    const char *single = carrier_sent(&out, "b3");
    assert_memory_equal(single, TRACE "-", 33);
    assert_memory_not_equal(single + 33, SPAN, 16);
    assert_string_equal(single + 49, "-d");

    /* Nor is it lost where a span context is kept aside. */
    const otel_span_context kept = otel_span_get_context(other);
    const otel_context again = otel_context_with_span((otel_context){0}, otel_span_wrap(&kept));
    out.count = 0;
    otel_propagator_inject(otel_propagator_b3_multi(), &again, carrier_set, &out);
    assert_string_equal(carrier_sent(&out, "x-b3-flags"), "1");

    /* W3C has no such flag, and the record has none either. */
    out.count = 0;
    otel_propagator_inject(otel_propagator_trace_context(), NULL, carrier_set, &out);
    assert_string_equal(carrier_sent(&out, "traceparent") + 52, "-01");
    otel_span_end(other);
    otel_span_end(client);
    otel_span_end(server);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(recorder_field(i, 16).value & 0xff, OTEL_TRACE_FLAG_SAMPLED);
}

/* spec: C13 context/api-propagators.md#b3-extract MUST stable */
TEST_WITH(begin_recorded, recorder_teardown, C13_the_span_id_of_the_header_is_the_parents)
{
    carrier_add(&in, "b3", TRACE "-" SPAN "-1-" PARENT);
    const otel_context remote = extract();
    otel_span_end(otel_span_start(otel_tracer_get("t", NULL), "server",
                                  OTEL_SPAN_OPTIONS(.parent = &remote)));
    static const uint8_t sent_id[8] = {0xa2, 0xfb, 0x4a, 0x1d, 0x1a, 0x96, 0xd3, 0x12};
    assert_memory_equal(recorder_field(0, 4).bytes, sent_id, 8);
    assert_memory_not_equal(recorder_field(0, 2).bytes, sent_id, 8);
}

/* A decision without a trace: what starts under it is a root, and the sampler is told. */
static void decide_by_parent(void)
{
    memset(recorder.sdk.decide, OTELI_DECIDE_SAMPLE, sizeof recorder.sdk.decide);
    recorder.sdk.decide[OTELI_PARENT_REMOTE_UNSAMPLED] = OTELI_DECIDE_DROP;
}

/* spec: C13 context/api-propagators.md#b3-extract MUST stable */
TEST_WITH(begin_recorded, recorder_teardown, C13_a_lone_0_denies)
{
    decide_by_parent();
    carrier_add(&in, "b3", "0");
    const otel_context denied = extract();
    const otel_span_context none = otel_span_get_context(denied.span);
    assert_false(otel_span_context_is_valid(&none));

    const otel_context_token token = otel_context_attach(denied);
    otel_tracer *const tracer = otel_tracer_get("t", NULL);
    const otel_span entered = otel_span_enter(tracer, "entered", NULL);
    assert_false(otel_span_is_recording(entered));
    otel_propagator_inject(otel_propagator_b3(), NULL, carrier_set, &out);
    assert_string_equal(carrier_sent(&out, "b3") + 49, "-0");
    otel_span_end(entered);
    otel_span_end(otel_span_start(tracer, "started", NULL));
    assert_true(otel_context_detach(token));
    assert_int_equal(recorder.count, 0);

    /* Without it, the same sampler keeps roots. */
    otel_span_end(otel_span_enter(tracer, "root", NULL));
    assert_int_equal(recorder.count, 1);
}

/* spec: C13 context/api-propagators.md#b3-extract MUST stable */
TEST_WITH(begin_recorded, recorder_teardown, C13_under_a_lone_d_a_root_is_debugged)
{
    memset(recorder.sdk.decide, OTELI_DECIDE_DROP, sizeof recorder.sdk.decide);
    recorder.sdk.decide[OTELI_PARENT_REMOTE_SAMPLED] = OTELI_DECIDE_SAMPLE;
    carrier_add(&in, "b3", "d");
    const otel_context debugged = extract();
    const otel_span span =
        otel_span_enter(otel_tracer_get("t", NULL), "root", OTEL_SPAN_OPTIONS(.parent = &debugged));
    otel_propagator_inject(otel_propagator_b3(), NULL, carrier_set, &out);
    otel_span_end(span);

    const char *single = carrier_sent(&out, "b3");
    assert_memory_not_equal(single, "00000000000000000000000000000000", 32);
    assert_string_equal(single + 49, "-d");
    assert_int_equal(recorder.count, 1);
    assert_false(recorder_has_field(0, 4)); /* no parent */
    assert_int_equal(recorder_field(0, 16).value, 0x103);
}

TEST(a_lone_decision_does_not_hide_a_trace_that_was_found)
{
    otel_composite_propagator both;
    const otel_propagator *const parts[] = {otel_propagator_trace_context(), otel_propagator_b3()};
    carrier_add(&in, "traceparent", "00-" TRACE "-" SPAN "-01");
    carrier_add(&in, "b3", "0");
    const otel_context context =
        otel_propagator_extract(otel_propagator_compose(&both, parts, 2), NULL, carrier_get, &in);
    otel_propagator_inject(otel_propagator_trace_context(), &context, carrier_set, &out);
    assert_string_equal(carrier_sent(&out, "traceparent"), "00-" TRACE "-" SPAN "-01");
}

/* Two formats that name the same span complete each other, in either order. */
TEST(what_only_one_format_knows_is_not_lost)
{
    static const char *const lists[] = {"tracecontext,b3", "b3,tracecontext",
                                        "jaeger,tracecontext,b3multi"};
    carrier_add(&in, "traceparent", "00-" TRACE "-" SPAN "-03");
    carrier_add(&in, "tracestate", "k=v");
    carrier_add(&in, "b3", TRACE "-" SPAN "-d");
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const otel_context context =
            otel_propagator_extract(oteli_propagator_of_list(lists[i]), NULL, carrier_get, &in);
        out.count = 0;
        otel_propagator_inject(otel_propagator_trace_context(), &context, carrier_set, &out);
        otel_propagator_inject(otel_propagator_b3(), &context, carrier_set, &out);
        assert_string_equal(carrier_text(&out), "traceparent: 00-" TRACE "-" SPAN "-03\n"
                                                "tracestate: k=v\n"
                                                "b3: " TRACE "-" SPAN "-d\n");
    }
    in.count = 2;
    carrier_add(&in, "b3", TRACE "-" PARENT "-d");
    const otel_context other = otel_propagator_extract(oteli_propagator_of_list("b3,tracecontext"),
                                                       NULL, carrier_get, &in);
    out.count = 0;
    otel_propagator_inject(otel_propagator_b3(), &other, carrier_set, &out);
    assert_string_equal(carrier_text(&out), "b3: " TRACE "-" SPAN "-1\n");
}

/* Where nobody has decided, the sampler decides as for a root. */
TEST_WITH(begin_recorded, recorder_teardown, C13_an_open_decision_is_made_as_for_a_root)
{
    decide_by_parent();
    carrier_add(&in, "b3", TRACE "-" SPAN);
    const otel_context remote = extract();
    const otel_context child =
        otel_context_with_span(remote, otel_span_start(otel_tracer_get("t", NULL), "server",
                                                       OTEL_SPAN_OPTIONS(.parent = &remote)));
    otel_propagator_inject(otel_propagator_b3(), &child, carrier_set, &out);
    assert_memory_equal(carrier_sent(&out, "b3"), TRACE, 32);
    assert_string_equal(carrier_sent(&out, "b3") + 49, "-1");
}

/* spec: C13 context/api-propagators.md#fields-1 MUST stable */
TEST(C13_fields_are_those_of_the_format_that_is_written)
{
    const char *const *single = otel_propagator_fields(otel_propagator_b3());
    assert_string_equal(single[0], "b3");
    assert_null(single[1]);
    const char *const *multi = otel_propagator_fields(otel_propagator_b3_multi());
    static const char *const expected[] = {"x-b3-traceid", "x-b3-spanid", "x-b3-sampled",
                                           "x-b3-flags"};
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(multi[i], expected[i]);
    assert_null(multi[4]);
}
