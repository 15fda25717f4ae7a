/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/propagate_jaeger_test.c - specification of api/propagators/jaeger.c, and of how
 * the W3C Baggage propagator and it share a baggage. */
#include "tests/support/carrier.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <otel/baggage.h>
#include <stdio.h>
#include <string.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

static struct carrier in;
static struct carrier out;

static int begin(void **state)
{
    in.count = out.count = 0;
    return recorder_setup_without_sdk(state);
}

static otel_context extract(const otel_propagator *propagator)
{
    const otel_carrier_reader reader = {carrier_get, carrier_list, &in};
    const otel_context empty = {0};
    return otel_propagator_extract_from(propagator, &empty, &reader);
}

/* The baggage of a context: "name=value;metadata " for each entry. */
static bool write_entry(void *text, const char *name, const char *value, const char *metadata)
{
    const size_t at = strlen(text);
    snprintf((char *)text + at, 1000 - at, "%s=%s%s%s ", name, value, metadata != NULL ? ";" : "",
             metadata != NULL ? metadata : "");
    return true;
}

static const char *baggage_of(const otel_context *context)
{
    static char text[1000];
    text[0] = '\0';
    otel_baggage_each(otel_context_baggage(context), write_entry, text);
    return text;
}

static const struct {
    const char *header;
    const char *sent; /* NULL: not valid */
} rows[] = {
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

AROUND_EACH(begin, recorder_teardown);

/* spec: C14 context/api-propagators.md#propagators-distribution MAY stable */
TEST(C14_headers_good_and_bad)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        in.count = out.count = 0;
        carrier_add(&in, "Uber-Trace-Id", rows[i].header);
        const otel_context context = extract(otel_propagator_jaeger());
        otel_propagator_inject(otel_propagator_jaeger(), &context, carrier_set, &out);
        const char *sent = carrier_sent(&out, "uber-trace-id");
        if ((sent == NULL) != (rows[i].sent == NULL) ||
            (sent != NULL && strcmp(sent, rows[i].sent) != 0))
            fail_msg("\"%s\" became \"%s\"", rows[i].header, sent ? sent : "nothing");
    }
    char endless[CARRIER_VALUE - 1];
    memset(endless, '1', sizeof endless);
    in.count = 0;
    carrier_put(&in, "uber-trace-id", endless, sizeof endless);
    assert_true(extract(otel_propagator_jaeger()).span.opaque[2] == 0);
}

/* spec: C14 context/api-propagators.md#propagators-distribution MAY stable */
TEST(C14_debug_is_the_same_flag_as_that_of_B3)
{
    carrier_add(&in, "uber-trace-id", TRACE ":" SPAN ":0:3");
    const otel_context context = extract(otel_propagator_jaeger());
    const otel_span_context span = otel_span_get_context(context.span);
    assert_int_equal(span.flags, OTEL_TRACE_FLAG_SAMPLED);
    otel_propagator_inject(otel_propagator_b3(), &context, carrier_set, &out);
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
    const otel_context context = extract(otel_propagator_jaeger());
    assert_string_equal(baggage_of(&context), "user=alice City=Z\xc3\xbcrich % ");

    otel_propagator_inject(otel_propagator_jaeger(), &context, carrier_set, &out);
    assert_string_equal(carrier_text(&out), "uberctx-user: alice\n"
                                            "uberctx-City: Z%C3%BCrich%20%25\n");
}

TEST(a_carrier_that_cannot_list_gives_no_baggage)
{
    carrier_add(&in, "uber-trace-id", TRACE ":" SPAN ":0:1");
    carrier_add(&in, "uberctx-user", "alice");
    const otel_context context =
        otel_propagator_extract(otel_propagator_jaeger(), NULL, carrier_get, &in);
    assert_string_equal(baggage_of(&context), "");
    assert_true(context.span.opaque[2] != 0);
}

TEST(what_is_no_header_is_not_sent)
{
    otel_baggage baggage = otel_baggage_set((otel_baggage){0}, "a b", "1", NULL);
    baggage = otel_baggage_set(baggage, "\xc3\xbc", "1", NULL);
    baggage = otel_baggage_set(baggage, "a:b", "1", NULL);
    baggage = otel_baggage_set(baggage, "good", "1+1\r\n", "meta=1");
    const otel_context context = otel_context_with_baggage((otel_context){0}, baggage);
    otel_propagator_inject(otel_propagator_jaeger(), &context, carrier_set, &out);
    assert_string_equal(carrier_text(&out), "uberctx-good: 1%2B1%0D%0A\n");
}

/* The limits of baggage hold, however many headers there are. */
TEST(too_many_headers_are_cut)
{
    char name[32];
    for (int i = 0; i < CARRIER_HEADERS; i++) {
        snprintf(name, sizeof name, "uberctx-k%d", i);
        carrier_add(&in, name, "v");
    }
    const otel_context context = extract(otel_propagator_jaeger());
    assert_int_equal(otel_baggage_count(otel_context_baggage(&context)), 64);
    char value[5000];
    memset(value, 'v', sizeof value);
    in.count = 0;
    carrier_put(&in, "uberctx-a", value, sizeof value);
    carrier_put(&in, "uberctx-b", value, sizeof value);
    const otel_context two = extract(otel_propagator_jaeger());
    assert_int_equal(otel_baggage_count(otel_context_baggage(&two)), 1);
}

/* spec: C11 baggage/api.md#propagation MUST stable */
TEST(C11_the_baggage_header_goes_through)
{
    carrier_add(&in, "Baggage", "user=alice ; a=b , city=Z%C3%BCrich");
    carrier_add(&in, "baggage", "k=%20v%2C");
    const otel_context context = extract(otel_propagator_baggage());
    assert_string_equal(baggage_of(&context), "user=alice;a=b city=Z\xc3\xbcrich k= v, ");
    otel_propagator_inject(otel_propagator_baggage(), &context, carrier_set, &out);
    in.count = 0;
    carrier_add(&in, "baggage", carrier_sent(&out, "baggage"));
    const otel_context again = extract(otel_propagator_baggage());
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
        const otel_context after =
            otel_propagator_extract(otel_propagator_baggage(), &context, carrier_get, &in);
        assert_memory_equal(&after, &context, sizeof after);
    }
    in.count = 0;
    carrier_add(&in, "baggage", "b=2");
    const otel_context after =
        otel_propagator_extract(otel_propagator_baggage(), &context, carrier_get, &in);
    assert_string_equal(baggage_of(&after), "b=2 ");
    assert_string_equal(baggage_of(&context), "a=1 ");
}

TEST(no_baggage_is_no_header)
{
    const otel_context empty = {0};
    otel_propagator_inject(otel_propagator_baggage(), &empty, carrier_set, &out);
    otel_propagator_inject(otel_propagator_jaeger(), &empty, carrier_set, &out);
    assert_int_equal(out.count, 0);
}
