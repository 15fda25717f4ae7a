/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/propagate_test.c - specification of the propagators W3C Trace Context, W3C Baggage
 * and Jaeger. */
#include "tests/support/passing.h"

#include <otel/baggage.h>
#include <stdio.h>

#define PARENT "00-" TRACE "-" SPAN "-01"

/* --- W3C Trace Context --- */

static const struct row parents[] = {
    {PARENT, PARENT},
    {"00-" TRACE "-" SPAN "-00", "00-" TRACE "-" SPAN "-00"},
    {"00-" TRACE "-" SPAN "-02", "00-" TRACE "-" SPAN "-02"},
    {"00-" TRACE "-" SPAN "-03", "00-" TRACE "-" SPAN "-03"},
    {"00-" TRACE "-" SPAN "-ff", "00-" TRACE "-" SPAN "-03"},
    {"00-" TRACE "-" SPAN "-fc", "00-" TRACE "-" SPAN "-00"},
    {"00-00000000000000000000000000000001-0000000000000001-01",
     "00-00000000000000000000000000000001-0000000000000001-01"},
    {"", NULL},
    {"00", NULL},
    {"ff-" TRACE "-" SPAN "-01", NULL},
    {"FE-" TRACE "-" SPAN "-01", NULL},
    {"0-" TRACE "-" SPAN "-01", NULL},
    {"0x-" TRACE "-" SPAN "-01", NULL},
    {"..-" TRACE "-" SPAN "-01", NULL},
    {PARENT "-", NULL},
    {PARENT " \t", PARENT},
    {" \t" PARENT, PARENT},
    {"00 -" TRACE "-" SPAN "-01", NULL},
    {PARENT "0", NULL},
    {PARENT "-00", NULL},
    {"01-" TRACE "-" SPAN "-01.what", NULL},
    {"01-" TRACE "-" SPAN "-0100", NULL},
    {"00-" TRACE "-" SPAN "-1", NULL},
    {"00-" TRACE "-" SPAN "-", NULL},
    {"00-" TRACE "-" SPAN, NULL},
    {"00-" TRACE "-" SPAN "-0g", NULL},
    {"00-" TRACE "-" SPAN "-0A", NULL},
    {"00-" TRACE "_" SPAN "-01", NULL},
    {"00_" TRACE "-" SPAN "-01", NULL},
    {"00-" TRACE "-" SPAN "_01", NULL},
    {"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01", NULL},
    {"00-" TRACE "-B7AD6B7169203331-01", NULL},
    {"00-0af7651916cd43dd8448eb211c80319g-" SPAN "-01", NULL},
    {"00-00000000000000000000000000000000-" SPAN "-01", NULL},
    {"00-" TRACE "-0000000000000000-01", NULL},
    {"00-0af7651916cd43dd8448eb211c80319-" SPAN "-011", NULL},
    {"00-" TRACE "-" SPAN "-\xff\xff", NULL},
};

AROUND_EACH(passing_begin, recorder_teardown);

/* spec: C8 context/api-propagators.md#w3c-trace-context-requirements MUST stable */
TEST(C8_traceparents_good_and_bad)
{
    for (size_t i = 0; i < sizeof parents / sizeof parents[0]; i++) {
        check_row(W3C, "traceparent", &parents[i]);
        if (parents[i].sent == NULL)
            continue;
        assert_string_equal(carrier_sent(&out, "tracestate"), "k=v");
        const otel_context context = extract(W3C);
        assert_true(otel_span_get_context(context.span).is_remote);
    }
}

/* spec: C6 context/api-propagators.md#extract MUST stable */
TEST(C6_what_is_extracted_changes_the_span_only)
{
    const otel_context_key key = otel_context_create_key("k");
    otel_context_value place;
    const otel_context before = otel_context_with_value((otel_context){0}, key, &place, &place);
    const otel_context same = otel_propagator_extract(W3C, &before, carrier_get, &in);
    assert_memory_equal(&same, &before, sizeof same);

    carrier_add(&in, "traceparent", PARENT);
    const otel_context after = otel_propagator_extract(W3C, &before, carrier_get, &in);
    assert_ptr_equal(otel_context_get_value(&after, key), &place);
    assert_string_equal(sent(W3C, &after), "traceparent: " PARENT "\n");
}

/* spec: C8 context/api-propagators.md#w3c-trace-context-requirements MUST stable */
TEST(C8_two_traceparents_are_none)
{
    carrier_add(&in, "traceparent", PARENT);
    carrier_add(&in, "traceparent", "00-" TRACE "-" SPAN "-00");
    assert_string_equal(passed_on(W3C, W3C), "");
}

/* Getters that do not look at the index give the same header again and again. */
TEST(a_header_that_is_there_again_is_the_same_one)
{
    for (size_t i = 0; i < 5; i++) {
        carrier_add(&in, "traceparent", PARENT);
        carrier_add(&in, "tracestate", i < 4 ? "a=1,b=2" : "c=3");
    }
    assert_string_equal(passed_on(W3C, W3C), "traceparent: " PARENT "\ntracestate: a=1,b=2,c=3\n");
}

static const struct {
    const char *headers[4];
    const char *sent;
} states[] = {
    {{"a=1"}, "a=1"},
    {{"a=1", "b=2", "c=3"}, "a=1,b=2,c=3"},
    {{"a=1,", " ,b=2"}, "a=1,b=2"},
    {{"", "b=2"}, "b=2"},
    {{"a=1", "", "b=2"}, "a=1,b=2"},
    {{"a=1,b=2", "a=3"}, "a=1,b=2"},
    {{"a=1", "bad", "c=3"}, ""},
    {{"a=1", "B=2"}, ""},
    {{NULL}, ""},
    {{" \t "}, ""},
};

/* spec: C10 context/api-propagators.md#w3c-trace-context-requirements MUST stable */
TEST(C10_several_tracestates_are_one_and_a_bad_one_spoils_no_traceparent)
{
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        char expected[128];
        in.count = 0;
        carrier_add(&in, "traceparent", PARENT);
        for (size_t k = 0; k < 4 && states[i].headers[k] != NULL; k++)
            carrier_add(&in, "tracestate", states[i].headers[k]);
        snprintf(expected, sizeof expected, "traceparent: " PARENT "\n%s%s%s",
                 states[i].sent[0] != '\0' ? "tracestate: " : "", states[i].sent,
                 states[i].sent[0] != '\0' ? "\n" : "");
        assert_string_equal(passed_on(W3C, W3C), expected);
    }
}

/* spec: C10 context/api-propagators.md#w3c-trace-context-requirements MUST stable */
TEST(C10_a_tracestate_that_is_too_long_loses_whole_members)
{
    carrier_add(&in, "traceparent", PARENT);
    char member[64];
    for (int i = 0; i < 32; i++) {
        snprintf(member, sizeof member, "key%02d=%040d", i, i);
        carrier_add(&in, "tracestate", member);
    }
    (void)passed_on(W3C, W3C);

    const char *kept = carrier_sent(&out, "tracestate");
    assert_int_equal(strlen(kept), 10 * 46 + 9);
    assert_memory_equal(kept, "key00=", 6);
    assert_memory_equal(kept + 9 * 47, "key09=", 6);
}

/* spec: C8 context/api-propagators.md#w3c-trace-context-requirements MUST stable */
TEST_WITH(passing_begin_recorded, recorder_teardown, C8_a_trace_goes_on_through_a_span)
{
    carrier_add(&in, "traceparent", "00-" TRACE "-" SPAN "-03");
    carrier_add(&in, "tracestate", "vendor=value");
    const otel_context context = extract(W3C);
    const otel_span span = otel_span_enter(tracer, "server", OTEL_SPAN_OPTIONS(.parent = &context));
    const char *headers = sent(W3C, NULL);
    otel_span_end(span);

    char hex[17];
    const otel_span_context own = otel_span_get_context(span);
    otel_span_id_hex(&own, hex);
    char expected[128];
    snprintf(expected, sizeof expected,
             "traceparent: 00-" TRACE "-%s-03\ntracestate: vendor=value\n", hex);
    assert_string_equal(headers, expected);
    assert_memory_equal(recorder_field(0, 3).bytes, "vendor=value", 12);
}

TEST(without_an_sdk_headers_pass_through)
{
    carrier_add(&in, "traceparent", PARENT);
    carrier_add(&in, "tracestate", "k=v");
    const otel_context context = extract(W3C);
    const otel_span server = otel_span_enter(NULL, "server", OTEL_SPAN_OPTIONS(.parent = &context));
    const otel_span client = otel_span_enter(NULL, "client", NULL);
    assert_string_equal(sent(W3C, NULL), "traceparent: " PARENT "\ntracestate: k=v\n");
    otel_span_end(client);
    otel_span_end(server);
    assert_string_equal(sent(W3C, NULL), "");
}

static const struct row future[] = {
    {"01-" TRACE "-" SPAN "-01", PARENT},
    {"cc-" TRACE "-" SPAN "-01", PARENT},
    {"fe-" TRACE "-" SPAN "-01-", PARENT},
    {"cc-" TRACE "-" SPAN "-01-what-the-future-will-be-like", PARENT},
    {"fe-" TRACE "-" SPAN "-01-more-of-it", PARENT},
};

/* spec: C9 https://www.w3.org/TR/trace-context-2/#versioning-of-traceparent MUST stable */
TEST(C9_future_versions_are_read_and_sent_as_00)
{
    for (size_t i = 0; i < sizeof future / sizeof future[0]; i++)
        check_row(W3C, "traceparent", &future[i]);
}

/* One traceparent and one tracestate of any length. */
struct texts {
    const char *const *headers;
    const size_t *lengths;
};

static const char *get_text(void *state, const char *name, size_t index, size_t *length)
{
    const struct texts *texts = state;
    const size_t which = strcmp(name, "tracestate") == 0;
    if (index != 0)
        return NULL;
    *length = texts->lengths[which];
    return texts->headers[which];
}

static const char *get_endless(void *state, const char *name, size_t index, size_t *length)
{
    if (strcmp(name, "tracestate") != 0)
        return get_text(state, name, index, length);
    *length = 1 + index % 2; /* the same header again would be the end */
    return ",,";
}

/* What is behind the first 8 KiB is not looked at; whole members before it are. */
TEST(C10_only_members_count_and_those_in_front_are_looked_at)
{
    static char endless[100000];
    memset(endless, ',', sizeof endless);
    memcpy(endless, "a=1 , b=2", 9);
    memcpy(endless + sizeof endless - 4, "c=3,", 4);
    const char *const headers[] = {PARENT, endless};
    size_t lengths[] = {sizeof PARENT - 1, sizeof endless};
    const struct texts texts = {headers, lengths};
    otel_context context = otel_propagator_extract(W3C, NULL, get_text, (void *)(uintptr_t)&texts);
    (void)sent(W3C, &context);
    assert_string_equal(carrier_sent(&out, "tracestate"), "a=1,b=2,c=3");
    context = otel_propagator_extract(W3C, NULL, get_endless, (void *)(uintptr_t)&texts);
    assert_true(context.span.opaque[2] != 0);

    char *end = endless;
    for (int i = 0; i < 40; i++)
        end += sprintf(end, "k%02d=%0*d,", i, i != 32 ? 250 : 28, i); /* 32 bytes are left then */
    lengths[1] = (size_t)(end - endless);
    context = otel_propagator_extract(W3C, NULL, get_text, (void *)(uintptr_t)&texts);
    (void)sent(W3C, &context);
    assert_int_equal(strlen(carrier_sent(&out, "tracestate")), 2 * 254 + 1);
}

/* spec: C10 context/api-propagators.md#w3c-trace-context-requirements MUST stable */
TEST(C10_33_members_are_too_many_in_as_many_lines_too)
{
    for (int members = 32; members <= 33; members++) {
        in.count = 0;
        carrier_add(&in, "traceparent", PARENT);
        for (int i = 0; i < members; i++) {
            char member[16];
            snprintf(member, sizeof member, "k%d=1", i);
            carrier_add(&in, "tracestate", member);
        }
        (void)passed_on(W3C, W3C);
        assert_int_equal(carrier_sent(&out, "tracestate") != NULL, members == 32);
    }
}

/* --- Jaeger, and how W3C Baggage and it share a baggage --- */

/* The baggage of a context: "name=value;metadata " for each entry. */
static bool write_entry(void *text, const otel_baggage_entry *entry)
{
    const size_t at = strlen(text);
    snprintf((char *)text + at, 1000 - at, "%s=%s%s%s ", entry->name.data, entry->value.data,
             entry->metadata.length != 0 ? ";" : "", entry->metadata.data);
    return true;
}

static const char *baggage_of(const otel_context *context)
{
    static char text[1000];
    text[0] = '\0';
    otel_baggage_each(otel_context_baggage(context), write_entry, text);
    return text;
}

static const struct row jaegers[] = {
    {TRACE ":" SPAN ":0:1", TRACE ":" SPAN ":0:1"},
    {TRACE ":" SPAN ":0:0", TRACE ":" SPAN ":0:0"},
    {TRACE ":" SPAN ":0:01", TRACE ":" SPAN ":0:1"},
    {TRACE ":" SPAN ":0:3", TRACE ":" SPAN ":0:3"},
    {TRACE ":" SPAN ":0:2", TRACE ":" SPAN ":0:0"},
    {TRACE ":" SPAN ":0:fd", TRACE ":" SPAN ":0:1"},
    {TRACE ":" SPAN ":0:F8", TRACE ":" SPAN ":0:0"},
    {TRACE ":" SPAN "::1", TRACE ":" SPAN ":0:1"},
    {TRACE ":" SPAN ":5e3ac9a4f6e3b90:1", TRACE ":" SPAN ":0:1"},
    {"48485a3953bb6124:" SPAN ":0:1", "000000000000000048485a3953bb6124:" SPAN ":0:1"},
    {"1:2:0:1", "00000000000000000000000000000001:0000000000000002:0:1"},
    {"0AF7651916CD43DD8448EB211C80319C:B7AD6B7169203331:0:1", TRACE ":" SPAN ":0:1"},
    {TRACE "%3A" SPAN "%3a0%3A1", TRACE ":" SPAN ":0:1"},
    {"%31:%32:0:1", "00000000000000000000000000000001:0000000000000002:0:1"},
    {"", NULL},
    {":::", NULL},
    {TRACE, NULL},
    {TRACE ":" SPAN ":0", NULL},
    {TRACE ":" SPAN ":0:", NULL},
    {TRACE ":" SPAN ":0:1:", NULL},
    {TRACE ":" SPAN ":0:1:1", NULL},
    {TRACE ":" SPAN ":0:001", NULL},
    {TRACE ":" SPAN ":0:g", NULL},
    {TRACE ":" SPAN ":x:1", TRACE ":" SPAN ":0:1"},
    {TRACE ":" SPAN ":00000000000000000:1", TRACE ":" SPAN ":0:1"},
    {"0:" SPAN ":0:1", NULL},
    {TRACE ":0:0:1", NULL},
    {TRACE "0:" SPAN ":0:1", NULL},
    {TRACE ":" SPAN "0:0:1", NULL},
    {TRACE ":" SPAN ":0:1%", NULL},
    {TRACE ":" SPAN ":0:%3", NULL},
    {" \t" TRACE ":" SPAN ":0:1 ", TRACE ":" SPAN ":0:1"},
    {TRACE ": " SPAN ":0:1", NULL},
    {TRACE "-" SPAN "-0-1", NULL},
};

/* spec: C14 context/api-propagators.md#propagators-distribution MAY stable */
TEST(C14_headers_good_and_bad)
{
    for (size_t i = 0; i < sizeof jaegers / sizeof jaegers[0]; i++)
        check_row(JAEGER, "Uber-Trace-Id", &jaegers[i]);
    char endless[CARRIER_VALUE - 1];
    memset(endless, '1', sizeof endless);
    in.count = 0;
    carrier_put(&in, "uber-trace-id", endless, sizeof endless);
    assert_true(extract(JAEGER).span.opaque[2] == 0);
}

/* spec: C14 context/api-propagators.md#propagators-distribution MAY stable */
TEST(C14_debug_is_the_same_flag_as_that_of_B3)
{
    carrier_add(&in, "uber-trace-id", TRACE ":" SPAN ":0:3");
    const otel_context context = extract(JAEGER);
    const otel_span_context span = otel_span_get_context(context.span);
    assert_int_equal(span.flags, OTEL_TRACE_FLAG_SAMPLED);
    otel_propagator_inject(B3, &context, carrier_set, &out);
    assert_string_equal(carrier_sent(&out, "b3"), TRACE "-" SPAN "-d");
}

/* spec: C14 context/api-propagators.md#propagators-distribution MAY stable */
TEST(C14_baggage_has_a_header_for_each_entry)
{
    carrier_add(&in, "host", "a=b");
    carrier_add(&in, "uberctx-user", "alice");
    carrier_add(&in, "UberCtx-City", "Z%C3%BCrich%20%25");
    carrier_add(&in, "uberctx-", "nameless");
    carrier_add(&in, "uberctx", "nothing");
    const otel_context context = extract(JAEGER);
    assert_string_equal(baggage_of(&context), "user=alice City=Z\xc3\xbcrich % ");

    assert_string_equal(sent(JAEGER, &context), "uberctx-user: alice\n"
                                                "uberctx-City: Z%C3%BCrich%20%25\n");
}

TEST(a_value_with_a_nul_goes_on_whole)
{
    carrier_add(&in, "uberctx-key", "a%00b");
    const otel_context context = extract(JAEGER);
    assert_string_equal(sent(JAEGER, &context), "uberctx-key: a%00b\n");
}

TEST(a_carrier_that_cannot_list_gives_no_baggage)
{
    carrier_add(&in, "uber-trace-id", TRACE ":" SPAN ":0:1");
    carrier_add(&in, "uberctx-user", "alice");
    const otel_context context = otel_propagator_extract(JAEGER, NULL, carrier_get, &in);
    assert_string_equal(baggage_of(&context), "");
    assert_true(context.span.opaque[2] != 0);
}

TEST(what_is_no_header_is_not_sent)
{
    otel_baggage entries = otel_baggage_set((otel_baggage){0}, "a b", "1", NULL);
    entries = otel_baggage_set(entries, "\xc3\xbc", "1", NULL);
    entries = otel_baggage_set(entries, "a:b", "1", NULL);
    entries = otel_baggage_set(entries, "good", "1+1\r\n", "meta=1");
    const otel_context context = otel_context_with_baggage((otel_context){0}, entries);
    assert_string_equal(sent(JAEGER, &context), "uberctx-good: 1%2B1%0D%0A\n");
}

/* The limits of baggage hold, however many headers there are. */
TEST(too_many_headers_are_cut)
{
    char name[32];
    for (int i = 0; i < CARRIER_HEADERS; i++) {
        snprintf(name, sizeof name, "uberctx-k%d", i);
        carrier_add(&in, name, "v");
    }
    const otel_context context = extract(JAEGER);
    assert_int_equal(otel_baggage_count(otel_context_baggage(&context)), 64);
    char value[5000];
    memset(value, 'v', sizeof value);
    in.count = 0;
    carrier_put(&in, "uberctx-a", value, sizeof value);
    carrier_put(&in, "uberctx-b", value, sizeof value);
    const otel_context two = extract(JAEGER);
    assert_int_equal(otel_baggage_count(otel_context_baggage(&two)), 1);
}

/* spec: C11 baggage/api.md#propagation MUST stable */
TEST(C11_the_baggage_goes_through)
{
    carrier_add(&in, "Baggage", "user=alice ; a=b , city=Z%C3%BCrich");
    carrier_add(&in, "baggage", "k=%20v%2C");
    const otel_context context = extract(BAGGAGE);
    assert_string_equal(baggage_of(&context), "user=alice;a=b city=Z\xc3\xbcrich k= v, ");
    otel_propagator_inject(BAGGAGE, &context, carrier_set, &out);
    in.count = 0;
    carrier_add(&in, "baggage", carrier_sent(&out, "baggage"));
    const otel_context again = extract(BAGGAGE);
    assert_string_equal(baggage_of(&again), "user=alice;a=b city=Z\xc3\xbcrich k= v, ");
}

/* spec: C11 baggage/api.md#propagation MUST stable */
TEST(C11_without_a_header_or_with_a_bad_one_the_context_stays)
{
    const otel_baggage before = otel_baggage_set((otel_baggage){0}, "a", "1", NULL);
    const otel_context context = otel_context_with_baggage((otel_context){0}, before);
    static const char *const headers[] = {NULL, "", " ", ",", "bad", "=v", "a b=c"};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        in.count = 0;
        if (headers[i] != NULL)
            carrier_add(&in, "baggage", headers[i]);
        const otel_context after = otel_propagator_extract(BAGGAGE, &context, carrier_get, &in);
        assert_memory_equal(&after, &context, sizeof after);
    }
    in.count = 0;
    carrier_add(&in, "baggage", "b=2");
    const otel_context after = otel_propagator_extract(BAGGAGE, &context, carrier_get, &in);
    assert_string_equal(baggage_of(&after), "b=2 ");
    assert_string_equal(baggage_of(&context), "a=1 ");
}

TEST(no_baggage_is_no_header)
{
    const otel_context empty = {0};
    otel_propagator_inject(BAGGAGE, &empty, carrier_set, &out);
    const otel_baggage no_token = otel_baggage_set((otel_baggage){0}, "a b", "1", NULL);
    const otel_context unsent = otel_context_with_baggage(empty, no_token);
    otel_propagator_inject(BAGGAGE, &unsent, carrier_set, &out);
    otel_propagator_inject(JAEGER, &empty, carrier_set, &out);
    assert_int_equal(out.count, 0);
}
