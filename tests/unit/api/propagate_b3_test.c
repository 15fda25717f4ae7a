/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/propagate_b3_test.c - specification of api/propagators/b3.c. */
#include "api/propagators/composite_propagator.h"
#include "tests/support/passing.h"

#define SHORT "8448eb211c80319c"
#define PADDED "0000000000000000" SHORT
#define ABOVE "0020000000000001"

static const struct row singles[] = {
    {TRACE "-" SPAN "-1", TRACE "-" SPAN "-1"},
    {TRACE "-" SPAN "-0", TRACE "-" SPAN "-0"},
    {TRACE "-" SPAN "-d", TRACE "-" SPAN "-d"},
    {TRACE "-" SPAN, TRACE "-" SPAN},
    {TRACE "-" SPAN "-1-" ABOVE, TRACE "-" SPAN "-1"},
    {TRACE "-" SPAN "-d-" ABOVE, TRACE "-" SPAN "-d"},
    {TRACE "-" SPAN "-" ABOVE, TRACE "-" SPAN},
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
    {TRACE "-" SPAN "-1-" ABOVE "-", NULL},
    {TRACE "-" SPAN "-1-" ABOVE "-1", NULL},
    {TRACE "-" SPAN "-" ABOVE "-1", NULL},
    {TRACE "-" SPAN "-1-0020000000000001"
           "0",
     NULL},
    {TRACE "-" SPAN "0-1", NULL},
    {TRACE "0-" SPAN "-1", NULL},
    {"0" SHORT "-" SPAN "-1", NULL},
    {"0AF7651916CD43DD8448EB211C80319C-" SPAN "-1", NULL},
    {TRACE "-B7AD6B7169203331-1", NULL},
    {"0af7651916cd43dd8448eb211c80319g-" SPAN "-1", NULL},
    {"00000000000000000000000000000000-" SPAN "-1", NULL},
    {"0000000000000000-" SPAN "-1", NULL},
    {TRACE "-0000000000000000-1", NULL},
    {" \t" TRACE "-" SPAN "-1", TRACE "-" SPAN "-1"},
    {TRACE "-" SPAN "-1 ", TRACE "-" SPAN "-1"},
    {TRACE "- " SPAN "-1", NULL},
    {TRACE "_" SPAN "_1", NULL},
};

AROUND_EACH(passing_begin, recorder_teardown);

/* spec: C13 context/api-propagators.md#b3-extract MUST stable */
TEST(C13_single_headers_good_and_bad)
{
    for (size_t i = 0; i < sizeof singles / sizeof singles[0]; i++)
        check_row(B3, "b3", &singles[i]);
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
    {"0AF7651916CD43DD8448EB211C80319C", SPAN, "1", NULL, NULL},
    {"00000000000000000000000000000000", SPAN, "1", NULL, NULL},
    {TRACE, "0000000000000000", "1", NULL, NULL},
    {TRACE, "b7ad6b71692033", "1", NULL, NULL},
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
                       {"X-B3-ParentSpanId", ABOVE},
                       {"X-B3-Sampled", several[i].sampled},
                       {"X-B3-Flags", several[i].flags}};
        in.count = 0;
        for (size_t k = 0; k < sizeof headers / sizeof headers[0]; k++)
            if (headers[k].value != NULL)
                carrier_add(&in, headers[k].name, headers[k].value);
        (void)passed_on(B3, B3);
        const char *value = carrier_sent(&out, "b3");
        const char *expected = several[i].sent;
        if ((value == NULL) != (expected == NULL) ||
            (value != NULL && strcmp(value, expected) != 0))
            fail_msg("case %zu became \"%s\"", i, value ? value : "nothing");
    }
}

/* spec: C13 context/api-propagators.md#b3-extract MUST stable */
TEST(C13_the_single_header_comes_before_the_several)
{
    carrier_add(&in, "X-B3-TraceId", TRACE);
    carrier_add(&in, "X-B3-SpanId", SPAN);
    carrier_add(&in, "X-B3-Sampled", "0");
    assert_string_equal(passed_on(B3, B3), "b3: " TRACE "-" SPAN "-0\n");

    carrier_add(&in, "b3", PADDED "-" ABOVE "-1");
    assert_string_equal(passed_on(B3, B3), "b3: " PADDED "-" ABOVE "-1\n");

    in.count = 3;
    carrier_add(&in, "b3", "malformed");
    assert_string_equal(passed_on(B3, B3), "b3: " TRACE "-" SPAN "-0\n");
}

/* spec: C13 context/api-propagators.md#b3-inject MUST stable */
TEST(C13_several_headers_say_0_or_1_and_never_the_parent)
{
    static const struct {
        const char *single;
        const char *sent;
    } table[] = {
        {TRACE "-" SPAN "-1-" ABOVE,
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
        assert_string_equal(passed_on(B3, B3_MULTI), table[i].sent);
    }
    /* A trace id that is random makes no third value of it. */
    const uint8_t id[16] = {1};
    const otel_span_context random = otel_span_context_make(id, id, 3, false, NULL);
    const otel_context context = otel_context_with_span((otel_context){0}, otel_span_wrap(&random));
    (void)sent(B3_MULTI, &context);
    assert_string_equal(carrier_sent(&out, "x-b3-sampled"), "1");
}

/* spec: C13 context/api-propagators.md#b3-extract MUST stable */
TEST_WITH(passing_begin_recorded, recorder_teardown, C13_debug_is_sampled_and_stays_with_the_trace)
{
    carrier_add(&in, "b3", TRACE "-" SPAN "-d");
    const otel_context remote = extract(B3);
    const otel_span_context seen = otel_span_get_context(remote.span);
    assert_int_equal(seen.flags, OTEL_TRACE_FLAG_SAMPLED);

    const otel_span server =
        otel_span_enter(tracer, "server", OTEL_SPAN_OPTIONS(.parent = &remote));
    const otel_span client = otel_span_enter(tracer, "client", NULL);
    const otel_span other = otel_span_start(tracer, "other", NULL);
    (void)sent(B3, NULL);
    const char *single = carrier_sent(&out, "b3");
    assert_memory_equal(single, TRACE "-", 33);
    assert_memory_not_equal(single + 33, SPAN, 16);
    assert_string_equal(single + 49, "-d");

    /* Nor is it lost where a span context is kept aside. */
    const otel_span_context kept = otel_span_get_context(other);
    const otel_context again = otel_context_with_span((otel_context){0}, otel_span_wrap(&kept));
    (void)sent(B3_MULTI, &again);
    assert_string_equal(carrier_sent(&out, "x-b3-flags"), "1");

    /* W3C has no such flag, and the record has none either. */
    (void)sent(W3C, NULL);
    assert_string_equal(carrier_sent(&out, "traceparent") + 52, "-01");
    otel_span_end(other);
    otel_span_end(client);
    otel_span_end(server);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(recorder_field(i, 16).value & 0xff, OTEL_TRACE_FLAG_SAMPLED);
}

/* A decision without a trace: what starts under it is a root, and the sampler is told. */
static void decide_by_parent(void)
{
    memset(recorder.sdk.decide, OTELI_DECIDE_SAMPLE, sizeof recorder.sdk.decide);
    recorder.sdk.decide[OTELI_PARENT_REMOTE_UNSAMPLED] = OTELI_DECIDE_DROP;
}

/* spec: C13 context/api-propagators.md#b3-extract MUST stable */
TEST_WITH(passing_begin_recorded, recorder_teardown, C13_a_lone_0_denies)
{
    decide_by_parent();
    carrier_add(&in, "b3", "0");
    const otel_context denied = extract(B3);
    const otel_span_context none = otel_span_get_context(denied.span);
    assert_false(otel_span_context_is_valid(&none));

    const otel_context_token token = otel_context_attach(denied);
    const otel_span entered = otel_span_enter(tracer, "entered", NULL);
    assert_false(otel_span_is_recording(entered));
    (void)sent(B3, NULL);
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
TEST_WITH(passing_begin_recorded, recorder_teardown, C13_under_a_lone_d_a_root_is_debugged)
{
    memset(recorder.sdk.decide, OTELI_DECIDE_DROP, sizeof recorder.sdk.decide);
    recorder.sdk.decide[OTELI_PARENT_REMOTE_SAMPLED] = OTELI_DECIDE_SAMPLE;
    carrier_add(&in, "b3", "d");
    const otel_context debugged = extract(B3);
    const otel_span span = otel_span_enter(tracer, "root", OTEL_SPAN_OPTIONS(.parent = &debugged));
    (void)sent(B3, NULL);
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
    const otel_propagator *const parts[] = {W3C, B3};
    carrier_add(&in, "traceparent", "00-" TRACE "-" SPAN "-01");
    carrier_add(&in, "b3", "0");
    const otel_context context = extract(otel_propagator_compose(&both, parts, 2));
    (void)sent(W3C, &context);
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
        const otel_context context = extract(oteli_propagator_of_list(lists[i]));
        out.count = 0;
        (void)sent(W3C, &context);
        otel_propagator_inject(B3, &context, carrier_set, &out);
        assert_string_equal(carrier_text(&out), "traceparent: 00-" TRACE "-" SPAN "-03\n"
                                                "tracestate: k=v\n"
                                                "b3: " TRACE "-" SPAN "-d\n");
    }
    in.count = 2;
    carrier_add(&in, "b3", TRACE "-" ABOVE "-d");
    const otel_context other = extract(oteli_propagator_of_list("b3,tracecontext"));
    (void)sent(B3, &other);
    assert_string_equal(carrier_text(&out), "b3: " TRACE "-" SPAN "-1\n");
    in.count = 0;
    carrier_add(&in, "traceparent", "00-" TRACE "-" SPAN "-00");
    carrier_add(&in, "b3", TRACE "-" SPAN "-0");
    const otel_context unsampled = extract(oteli_propagator_of_list("b3,tracecontext"));
    assert_int_equal(otel_span_get_context(unsampled.span).flags, 0);

    otel_span_context own = otel_span_get_context(unsampled.span);
    own.is_remote = false;
    own.flags = OTEL_TRACE_FLAG_SAMPLED | OTEL_TRACE_FLAG_RANDOM;
    const otel_context local = {.span = otel_span_wrap(&own)};
    const otel_context found = otel_propagator_extract(B3, &local, carrier_get, &in);
    assert_int_equal(otel_span_get_context(found.span).flags, 0); /* that was found by none */
}

/* Where nobody has decided, the sampler decides as for a root. */
TEST_WITH(passing_begin_recorded, recorder_teardown, C13_an_open_decision_is_made_as_for_a_root)
{
    decide_by_parent();
    carrier_add(&in, "b3", TRACE "-" SPAN);
    const otel_context remote = extract(B3);
    const otel_context child = otel_context_with_span(remote, start_under(&remote));
    (void)sent(B3, &child);
    assert_memory_equal(carrier_sent(&out, "b3"), TRACE, 32);
    assert_string_equal(carrier_sent(&out, "b3") + 49, "-1");
}

/* spec: C13 context/api-propagators.md#fields-1 MUST stable */
TEST(C13_fields_are_those_of_the_format_that_is_written)
{
    const char *const *single = otel_propagator_fields(B3);
    assert_string_equal(single[0], "b3");
    assert_null(single[1]);
    const char *const *multi = otel_propagator_fields(B3_MULTI);
    static const char *const expected[] = {"x-b3-traceid", "x-b3-spanid", "x-b3-sampled",
                                           "x-b3-flags"};
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(multi[i], expected[i]);
    assert_null(multi[4]);
}
