/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/propagate_test.c - specification of the W3C Trace Context propagator. */
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <string.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
#define PARENT "00-" TRACE "-" SPAN "-01"

enum { HEADERS = 40 };

/* Headers as they came, or as they are to be sent. */
struct carrier {
    struct {
        const char *name;
        char value[600];
        size_t length;
    } headers[HEADERS];
    size_t count;
};

static void put(struct carrier *carrier, const char *name, const char *value, size_t length)
{
    assert_true(carrier->count < HEADERS && length < sizeof carrier->headers[0].value);
    carrier->headers[carrier->count].name = name;
    memset(carrier->headers[carrier->count].value, '#', sizeof carrier->headers[0].value);
    memcpy(carrier->headers[carrier->count].value, value, length); /* no NUL behind it */
    carrier->headers[carrier->count].length = length;
    carrier->count++;
}

static void add(struct carrier *carrier, const char *name, const char *value)
{
    put(carrier, name, value, strlen(value));
}

static const char *get_header(void *state, const char *name, size_t index, size_t *length)
{
    struct carrier *carrier = state;
    for (size_t i = 0; i < carrier->count; i++)
        if (strcmp(carrier->headers[i].name, name) == 0 && index-- == 0) {
            *length = carrier->headers[i].length;
            return carrier->headers[i].value;
        }
    return NULL;
}

static void set_header(void *state, const char *name, const char *value, size_t length)
{
    assert_int_equal(strlen(value), length);
    put(state, name, value, length);
}

static const char *sent(struct carrier *carrier, const char *name)
{
    static char text[600];
    size_t length;
    const char *value = get_header(carrier, name, 0, &length);
    if (value == NULL)
        return NULL;
    memcpy(text, value, length);
    text[length] = '\0';
    return text;
}

static otel_context extract(struct carrier *carrier)
{
    return otel_propagator_extract(otel_propagator_trace_context(), NULL, get_header, carrier);
}

static void inject(const otel_context *context, struct carrier *carrier)
{
    otel_propagator_inject(otel_propagator_trace_context(), context, set_header, carrier);
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

static const struct {
    const char *header;
    const char *sent; /* NULL: not valid */
} parents[] = {
    {PARENT, PARENT},
    {"00-" TRACE "-" SPAN "-00", "00-" TRACE "-" SPAN "-00"},
    {"00-" TRACE "-" SPAN "-02", "00-" TRACE "-" SPAN "-02"},
    {"00-" TRACE "-" SPAN "-03", "00-" TRACE "-" SPAN "-03"},
    {"00-" TRACE "-" SPAN "-ff", "00-" TRACE "-" SPAN "-03"},
    {"00-" TRACE "-" SPAN "-fc", "00-" TRACE "-" SPAN "-00"},
    {"00-00000000000000000000000000000001-0000000000000001-01",
     "00-00000000000000000000000000000001-0000000000000001-01"},
    {"01-" TRACE "-" SPAN "-01", PARENT},
    {"cc-" TRACE "-" SPAN "-01", PARENT},
    {"fe-" TRACE "-" SPAN "-01-", PARENT},
    {"cc-" TRACE "-" SPAN "-01-what-the-future-will-be-like", PARENT},
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

AROUND_EACH(recorder_setup_without_sdk, recorder_teardown);

/* spec: C8 context/api-propagators.md#w3c-trace-context-requirements MUST stable */
TEST(C8_traceparents_good_and_bad)
{
    for (size_t i = 0; i < sizeof parents / sizeof parents[0]; i++) {
        static struct carrier in;
        static struct carrier out;
        in.count = out.count = 0;
        add(&in, "traceparent", parents[i].header);
        add(&in, "tracestate", "k=v");

        const otel_context context = extract(&in);
        inject(&context, &out);

        const char *header = sent(&out, "traceparent");
        if (parents[i].sent == NULL) {
            if (header != NULL)
                fail_msg("\"%s\" was taken for \"%s\"", parents[i].header, header);
            continue;
        }
        if (header == NULL || strcmp(header, parents[i].sent) != 0)
            fail_msg("\"%s\" became \"%s\"", parents[i].header, header ? header : "nothing");
        assert_string_equal(sent(&out, "tracestate"), "k=v");
        assert_true(otel_span_get_context(context.span).is_remote);
    }
}

/* spec: C6 context/api-propagators.md#extract MUST stable */
TEST(C6_what_is_extracted_changes_the_span_only)
{
    static struct carrier carrier;
    carrier.count = 0;
    const otel_context_key key = otel_context_create_key("k");
    otel_context_value place;
    const otel_context empty = {{{0}}, NULL, 0};
    const otel_context before = otel_context_with_value(empty, key, &place, &place);

    const otel_context same =
        otel_propagator_extract(otel_propagator_trace_context(), &before, get_header, &carrier);
    assert_memory_equal(&same, &before, sizeof same);
    add(&carrier, "traceparent", PARENT);
    const otel_context after =
        otel_propagator_extract(otel_propagator_trace_context(), &before, get_header, &carrier);
    assert_ptr_equal(otel_context_get_value(&after, key), &place);
    char hex[33];
    const otel_span_context span = otel_span_get_context(after.span);
    otel_trace_id_hex(&span, hex);
    assert_string_equal(hex, TRACE);
}

/* spec: C8 context/api-propagators.md#w3c-trace-context-requirements MUST stable */
TEST(C8_two_traceparents_are_none)
{
    static struct carrier carrier;
    carrier.count = 0;
    add(&carrier, "traceparent", PARENT);
    add(&carrier, "traceparent", "00-" TRACE "-" SPAN "-00");
    const otel_context context = extract(&carrier);
    assert_true(context.span.opaque[2] == 0);
}

/* Getters that do not look at the index give the same header again and again. */
TEST(a_header_that_is_there_again_is_the_same_one)
{
    static struct carrier in;
    static struct carrier out;
    in.count = out.count = 0;
    for (size_t i = 0; i < 5; i++) {
        add(&in, "traceparent", PARENT);
        add(&in, "tracestate", i < 4 ? "a=1,b=2" : "c=3");
    }
    const otel_context context = extract(&in);
    inject(&context, &out);
    assert_string_equal(sent(&out, "traceparent"), PARENT);
    assert_string_equal(sent(&out, "tracestate"), "a=1,b=2,c=3");
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
    {{"a=1", "bad", "c=3"}, NULL},
    {{"a=1", "B=2"}, NULL},
    {{NULL}, NULL},
    {{" \t "}, NULL},
};

/* spec: C10 context/api-propagators.md#w3c-trace-context-requirements MUST stable */
TEST(C10_several_tracestates_are_one_and_a_bad_one_spoils_no_traceparent)
{
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        static struct carrier in;
        static struct carrier out;
        in.count = out.count = 0;
        add(&in, "traceparent", PARENT);
        for (size_t k = 0; k < 4 && states[i].headers[k] != NULL; k++)
            add(&in, "tracestate", states[i].headers[k]);

        const otel_context context = extract(&in);
        inject(&context, &out);

        assert_string_equal(sent(&out, "traceparent"), PARENT);
        if (states[i].sent == NULL)
            assert_null(sent(&out, "tracestate"));
        else
            assert_string_equal(sent(&out, "tracestate"), states[i].sent);
    }
}

/* spec: C10 context/api-propagators.md#w3c-trace-context-requirements MUST stable */
TEST(C10_a_tracestate_that_is_too_long_loses_whole_members)
{
    static struct carrier in;
    static struct carrier out;
    in.count = out.count = 0;
    add(&in, "traceparent", PARENT);
    char member[64];
    for (int i = 0; i < 32; i++) {
        snprintf(member, sizeof member, "key%02d=%040d", i, i);
        add(&in, "tracestate", member);
    }
    const otel_context context = extract(&in);
    inject(&context, &out);

    const char *kept = sent(&out, "tracestate");
    assert_int_equal(strlen(kept), 10 * 46 + 9);
    assert_memory_equal(kept, "key00=", 6);
    assert_memory_equal(kept + 9 * 47, "key09=", 6);
}

/* spec: C8 context/api-propagators.md#w3c-trace-context-requirements MUST stable */
TEST_WITH(recorder_setup, recorder_teardown, C8_a_trace_goes_on_through_a_span)
{
    static struct carrier in;
    static struct carrier out;
    in.count = out.count = 0;
    add(&in, "traceparent", "00-" TRACE "-" SPAN "-03");
    add(&in, "tracestate", "vendor=value");
    const otel_context context = extract(&in);

    const otel_span span = otel_span_enter(otel_tracer_get("p", NULL), "server",
                                           OTEL_SPAN_OPTIONS(.parent = &context));
    inject(NULL, &out);
    otel_span_end(span);

    char hex[17];
    const otel_span_context own = otel_span_get_context(span);
    otel_span_id_hex(&own, hex);
    char expected[64];
    snprintf(expected, sizeof expected, "00-" TRACE "-%s-03", hex);
    assert_string_equal(sent(&out, "traceparent"), expected);
    assert_string_equal(sent(&out, "tracestate"), "vendor=value");
    assert_memory_equal(recorder_field(0, 3).bytes, "vendor=value", 12);
}

TEST_WITH(recorder_setup, recorder_teardown, an_unsampled_span_says_so)
{
    static struct carrier in;
    static struct carrier out;
    in.count = out.count = 0;
    memset(recorder.sdk.decide, OTELI_DECIDE_DROP, sizeof recorder.sdk.decide);
    add(&in, "traceparent", PARENT);
    add(&in, "tracestate", "k=v");
    const otel_context context = extract(&in);
    const otel_span span = otel_span_start(otel_tracer_get("p", NULL), "server",
                                           OTEL_SPAN_OPTIONS(.parent = &context));
    const otel_context child = otel_context_with_span(context, span);
    inject(&child, &out);

    const char *header = sent(&out, "traceparent");
    assert_memory_equal(header, "00-" TRACE "-", 36);
    assert_memory_not_equal(header + 36, SPAN, 16);
    assert_string_equal(header + 52, "-00");
    assert_string_equal(sent(&out, "tracestate"), "k=v");
}

TEST(without_an_sdk_headers_pass_through)
{
    static struct carrier in;
    static struct carrier out;
    in.count = out.count = 0;
    add(&in, "traceparent", PARENT);
    add(&in, "tracestate", "k=v");
    const otel_context context = extract(&in);
    const otel_span server = otel_span_enter(otel_tracer_get("p", NULL), "server",
                                             OTEL_SPAN_OPTIONS(.parent = &context));
    const otel_span client = otel_span_enter(otel_tracer_get("p", NULL), "client", NULL);
    inject(NULL, &out);
    otel_span_end(client);
    otel_span_end(server);

    assert_string_equal(sent(&out, "traceparent"), PARENT);
    assert_string_equal(sent(&out, "tracestate"), "k=v");
}

static const struct {
    const char *header;
    uint8_t flags; /* of what starts under it, with and without being sampled */
} randoms[] = {
    {"00-" TRACE "-" SPAN "-00", 0},
    {"00-" TRACE "-" SPAN "-01", 0},
    {"00-" TRACE "-" SPAN "-02", OTEL_TRACE_FLAG_RANDOM},
    {"00-" TRACE "-" SPAN "-03", OTEL_TRACE_FLAG_RANDOM},
    {"00-" TRACE "-" SPAN "-fd", 0},
    {"00-" TRACE "-" SPAN "-fe", OTEL_TRACE_FLAG_RANDOM},
};

/* spec: C8 context/api-propagators.md#w3c-trace-context-requirements MUST stable */
TEST_WITH(recorder_setup, recorder_teardown, C8_the_random_flag_goes_on_as_it_came_set_or_not)
{
    for (size_t i = 0; i < sizeof randoms / sizeof randoms[0]; i++) {
        static struct carrier in;
        in.count = 0;
        add(&in, "traceparent", randoms[i].header);
        const otel_context remote = extract(&in);
        for (int sampled = 0; sampled < 2; sampled++) {
            memset(recorder.sdk.decide, sampled ? OTELI_DECIDE_SAMPLE : OTELI_DECIDE_DROP,
                   sizeof recorder.sdk.decide);
            const otel_span span = otel_span_start(otel_tracer_get("p", NULL), "server",
                                                   OTEL_SPAN_OPTIONS(.parent = &remote));
            assert_int_equal(otel_span_get_context(span).flags & OTEL_TRACE_FLAG_RANDOM,
                             randoms[i].flags);
            otel_span_end(span);
        }
    }
}

/* spec: C9 https://www.w3.org/TR/trace-context-2/#versioning-of-traceparent MUST stable */
TEST(C9_future_versions_are_read_and_sent_as_00)
{
    static const char *const future[] = {"01-" TRACE "-" SPAN "-01", "cc-" TRACE "-" SPAN "-01-",
                                         "fe-" TRACE "-" SPAN "-01-more-of-it"};
    for (size_t i = 0; i < sizeof future / sizeof future[0]; i++) {
        static struct carrier in;
        static struct carrier out;
        in.count = out.count = 0;
        add(&in, "traceparent", future[i]);
        const otel_context context = extract(&in);
        inject(&context, &out);
        assert_string_equal(sent(&out, "traceparent"), PARENT);
    }
}

/* What is behind the first 8 KiB is not looked at; whole members before it are. */
TEST(C10_only_members_count_and_those_in_front_are_looked_at)
{
    static char endless[100000];
    static struct carrier out;
    out.count = 0;
    memset(endless, ',', sizeof endless);
    memcpy(endless, "a=1 , b=2", 9);
    memcpy(endless + sizeof endless - 4, "c=3,", 4);
    const char *const headers[] = {PARENT, endless};
    size_t lengths[] = {sizeof PARENT - 1, sizeof endless};
    const struct texts texts = {headers, lengths};
    otel_context context = otel_propagator_extract(otel_propagator_trace_context(), NULL, get_text,
                                                   (void *)(uintptr_t)&texts);
    inject(&context, &out);
    assert_string_equal(sent(&out, "tracestate"), "a=1,b=2,c=3");

    char *end = endless;
    for (int i = 0; i < 40; i++)
        end += sprintf(end, "k%02d=%0250d,", i, i);
    lengths[1] = (size_t)(end - endless);
    out.count = 0;
    context = otel_propagator_extract(otel_propagator_trace_context(), NULL, get_text,
                                      (void *)(uintptr_t)&texts);
    inject(&context, &out);
    assert_int_equal(strlen(sent(&out, "tracestate")), 2 * 254 + 1);
}

/* spec: C10 context/api-propagators.md#w3c-trace-context-requirements MUST stable */
TEST(C10_33_members_are_too_many_in_as_many_lines_too)
{
    static struct carrier in;
    static struct carrier out;
    for (int members = 32; members <= 33; members++) {
        in.count = out.count = 0;
        add(&in, "traceparent", PARENT);
        for (int i = 0; i < members; i++) {
            char member[16];
            snprintf(member, sizeof member, "k%d=1", i);
            add(&in, "tracestate", member);
        }
        const otel_context context = extract(&in);
        inject(&context, &out);
        assert_int_equal(sent(&out, "tracestate") != NULL, members == 32);
    }
}

TEST(nothing_is_injected_without_a_span)
{
    static struct carrier out;
    out.count = 0;
    inject(NULL, &out);
    assert_int_equal(out.count, 0);
}

TEST(the_global_propagator_is_none_until_another_is_set)
{
    static struct carrier carrier;
    carrier.count = 0;
    add(&carrier, "traceparent", PARENT);
    assert_ptr_equal(otel_propagator_get(), otel_propagator_none());
    assert_true(otel_extract(NULL, get_header, &carrier).span.opaque[2] == 0);

    otel_propagator_set(otel_propagator_trace_context());
    const otel_context context = otel_extract(NULL, get_header, &carrier);
    assert_true(context.span.opaque[2] != 0);
    carrier.count = 0;
    otel_inject(&context, set_header, &carrier);
    assert_string_equal(sent(&carrier, "traceparent"), PARENT);

    otel_propagator_set(NULL);
    assert_ptr_equal(otel_propagator_get(), otel_propagator_none());
    carrier.count = 0;
    otel_inject(&context, set_header, &carrier);
    assert_int_equal(carrier.count, 0);
}
