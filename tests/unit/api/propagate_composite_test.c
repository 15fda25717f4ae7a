/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/propagate_composite_test.c - specification of composite propagators, of the
 * global one, and of how an SDK that starts chooses it. */
#include "api/propagators/composite_propagator.h"
#include "sdk/engine/engine.h"
#include "sdk/lifecycle/lifecycle.h"
#include "tests/support/carrier.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <stdio.h>
#include <string.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

static struct carrier in;
static struct carrier out;
static char calls[200];

static int begin(void **state)
{
    (void)state;
    in.count = out.count = 0;
    calls[0] = '\0';
    otel_propagator_set(NULL);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)!otel_shutdown(INT32_MAX);
    oteli_lifecycle_reset();
    oteli_api_reset();
    otel_propagator_set(NULL);
    oteli_leaks_check();
    return 0;
}

static void note(const void *state, const char *what)
{
    snprintf(calls + strlen(calls), sizeof calls - strlen(calls), "%s %s,", what,
             (const char *)state);
}

static void inject(const void *state, const otel_context *context, otel_set_header *set,
                   void *carrier)
{
    (void)context;
    note(state, "inject");
    set(carrier, state, "1", 1);
}

static otel_context extract(const void *state, const otel_context *context,
                            const otel_carrier_reader *reader)
{
    (void)reader;
    note(state, "extract");
    return *context;
}

static const char *const fields_a[] = {"a", "common", NULL};
static const char *const fields_b[] = {"Common", "b", NULL};
static const otel_propagator a = OTEL_PROPAGATOR(.name = "a", .state = "a", .inject = inject,
                                                 .extract = extract, .fields = fields_a);
static const otel_propagator b = OTEL_PROPAGATOR(.name = "b", .state = "b", .inject = inject,
                                                 .extract = extract, .fields = fields_b);

static const char *fields_of(const otel_propagator *propagator)
{
    static char text[300];
    text[0] = '\0';
    for (const char *const *at = otel_propagator_fields(propagator); *at != NULL; at++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", *at);
    return text;
}

AROUND_EACH(begin, end);

/* spec: C6 context/api-propagators.md#composite-propagator MUST stable */
TEST(C6_parts_are_called_in_their_order_and_each_once)
{
    otel_composite_propagator composite;
    const otel_propagator *const parts[] = {&b, &a, NULL, &b};
    const otel_propagator *both = otel_propagator_compose(&composite, parts, 4);
    otel_propagator_inject(both, NULL, carrier_set, &out);
    (void)otel_propagator_extract(both, NULL, carrier_get, &in);
    assert_string_equal(calls, "inject b,inject a,extract b,extract a,");
    assert_string_equal(carrier_text(&out), "b: 1\na: 1\n");
    assert_string_equal(fields_of(both), "Common b a ");
}

/* spec: C6 context/api-propagators.md#composite-propagator MUST stable */
TEST(C6_composites_can_be_empty_and_parts_of_others)
{
    otel_composite_propagator inner;
    otel_composite_propagator outer;
    const otel_propagator *const none[] = {NULL};
    otel_propagator_compose(&inner, none, 0);
    assert_string_equal(fields_of(&inner.propagator), "");
    const otel_propagator *const parts[] = {&a};
    otel_propagator_compose(&inner, parts, 1);
    const otel_propagator *const wrapped[] = {&inner.propagator, &b};
    otel_propagator_inject(otel_propagator_compose(&outer, wrapped, 2), NULL, carrier_set, &out);
    assert_string_equal(calls, "inject a,inject b,");
}

TEST(there_is_a_most_of_parts)
{
    otel_composite_propagator composite;
    otel_propagator many[OTEL_PROPAGATORS_MOST + 1];
    const otel_propagator *parts[OTEL_PROPAGATORS_MOST + 1];
    for (size_t i = 0; i <= OTEL_PROPAGATORS_MOST; i++) {
        many[i] = a;
        parts[i] = &many[i];
    }
    otel_propagator_compose(&composite, parts, OTEL_PROPAGATORS_MOST + 1);
    assert_int_equal(composite.count, OTEL_PROPAGATORS_MOST);
}

/* spec: C6 context/api-propagators.md#extract MUST stable */
TEST(C6_what_cannot_be_parsed_leaves_the_context_as_it_was)
{
    static const char *const names[] = {"tracecontext", "baggage", "b3",
                                        "b3multi",      "jaeger",  "none"};
    static const char *const headers[] = {"traceparent",  "tracestate",   "baggage",
                                          "b3",           "x-b3-traceid", "x-b3-spanid",
                                          "x-b3-sampled", "x-b3-flags",   "uber-trace-id"};
    const uint8_t id[16] = {1};
    const otel_span_context span = otel_span_context_make(id, id, 1, false, NULL);
    const otel_context before = otel_context_with_span((otel_context){0}, otel_span_wrap(&span));
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        carrier_add(&in, headers[i], "\xff\x01, =;%%%");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const otel_context after =
            otel_propagator_extract(otel_propagator_named(names[i]), &before, carrier_get, &in);
        assert_memory_equal(&after, &before, sizeof after);
    }
}

/* spec: C5 context/api-propagators.md#fields MUST stable */
TEST(C5_fields_are_the_headers_that_are_set)
{
    assert_string_equal(fields_of(otel_propagator_trace_context()), "traceparent tracestate ");
    assert_string_equal(fields_of(otel_propagator_baggage()), "baggage ");
    assert_string_equal(fields_of(otel_propagator_jaeger()), "uber-trace-id ");
    assert_string_equal(fields_of(otel_propagator_none()), "");
}

/* spec: E-OTEL_PROPAGATORS */
TEST(names_are_those_of_the_environment)
{
    assert_ptr_equal(otel_propagator_named("tracecontext"), otel_propagator_trace_context());
    assert_ptr_equal(otel_propagator_named("baggage"), otel_propagator_baggage());
    assert_ptr_equal(otel_propagator_named("b3"), otel_propagator_b3());
    assert_ptr_equal(otel_propagator_named("b3multi"), otel_propagator_b3_multi());
    assert_ptr_equal(otel_propagator_named("jaeger"), otel_propagator_jaeger());
    assert_ptr_equal(otel_propagator_named("none"), otel_propagator_none());
    assert_null(otel_propagator_named(""));
    assert_null(otel_propagator_named(NULL));
}

TEST(a_propagator_that_is_not_there_does_nothing)
{
    const otel_propagator *unknown = otel_propagator_named("xray");
    carrier_add(&in, "traceparent", "00-" TRACE "-" SPAN "-01");
    const otel_context context =
        otel_propagator_extract(otel_propagator_trace_context(), NULL, carrier_get, &in);
    otel_propagator_inject(unknown, &context, carrier_set, &out);
    assert_string_equal(carrier_text(&out), "");
    const otel_context extracted = otel_propagator_extract(unknown, &context, carrier_get, &in);
    assert_memory_equal(&extracted, &context, sizeof context);
    assert_null(otel_propagator_fields(unknown)[0]);
}

/* spec: C16 context/api-propagators.md#propagators-distribution MUST_NOT stable */
TEST(C16_formats_of_vendors_are_not_here)
{
    assert_null(otel_propagator_named("xray"));
    assert_null(otel_propagator_named("ottrace"));
}

/* spec: C7 context/api-propagators.md#global-propagators MUST stable */
TEST(C7_the_global_propagator_does_nothing_until_one_is_chosen)
{
    carrier_add(&in, "traceparent", "00-" TRACE "-" SPAN "-01");
    assert_ptr_equal(otel_propagator_get(), otel_propagator_none());
    assert_true(otel_extract(NULL, carrier_get, &in).span.opaque[2] == 0);

    otel_propagator_set(otel_propagator_trace_context());
    const otel_context context = otel_extract(NULL, carrier_get, &in);
    otel_inject(&context, carrier_set, &out);
    assert_string_equal(carrier_sent(&out, "traceparent"), "00-" TRACE "-" SPAN "-01");

    otel_propagator_set(NULL);
    assert_ptr_equal(otel_propagator_get(), otel_propagator_none());
    out.count = 0;
    otel_inject(&context, carrier_set, &out);
    assert_int_equal(out.count, 0);
}

static void start(const otel_sdk_options *options)
{
    assert_int_equal(otel_start_with(options), OTEL_OK);
    assert_int_equal(otel_shutdown(INT32_MAX), OTEL_OK);
}

/* spec: C7 configuration/sdk-environment-variables.md#general-sdk-configuration MUST stable */
TEST(C7_each_propagator_of_the_list_is_there_once)
{
    start(OTEL_SDK_OPTIONS(.propagators = "b3, Jaeger,b3,jaeger,tracecontext"));
    assert_string_equal(fields_of(otel_propagator_get()),
                        "b3 uber-trace-id traceparent tracestate ");
    start(OTEL_SDK_OPTIONS(.propagators = "b3multi"));
    assert_ptr_equal(otel_propagator_get(), otel_propagator_b3_multi());
    start(OTEL_SDK_OPTIONS(.propagators = "none"));
    assert_ptr_equal(otel_propagator_get(), otel_propagator_none());
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.propagators = "xray")),
                     OTEL_ERROR_UNSUPPORTED);
}

/* A thread may be using it while the SDK starts again. */
TEST(the_same_list_is_the_same_propagator)
{
    start(OTEL_SDK_OPTIONS(.propagators = "b3,jaeger"));
    const otel_propagator *first = otel_propagator_get();
    start(OTEL_SDK_OPTIONS(.propagators = "jaeger,b3"));
    assert_ptr_not_equal(otel_propagator_get(), first);
    start(OTEL_SDK_OPTIONS(.propagators = "b3,b3,jaeger"));
    assert_ptr_equal(otel_propagator_get(), first);
    assert_string_equal(fields_of(first), "b3 uber-trace-id ");
}

TEST(a_propagator_of_the_programs_own_comes_before_the_list)
{
    start(OTEL_SDK_OPTIONS(.propagators = "b3", .propagator = &a));
    assert_ptr_equal(otel_propagator_get(), &a);
    otel_inject(NULL, carrier_set, &out);
    assert_string_equal(calls, "inject a,");
}

TEST(without_memory_for_a_list_nothing_starts)
{
    oteli_leaks_fail_at(1);
    assert_null(oteli_propagator_of_list("b3,jaeger"));
    oteli_leaks_fail_at(0);
    assert_non_null(oteli_propagator_of_list("b3,jaeger"));
    assert_non_null(oteli_propagator_of_list("tracecontext,baggage"));
    assert_ptr_equal(oteli_propagator_of_list("what,none"), otel_propagator_none());
}
