/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/spec_context_test.c - what the specification says about contexts, baggage and its
 * header, and attributes of a context, one case a statement. */
#include "api/baggage/baggage_pool.h"
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <string.h>

enum { SPAN_PARENT = 4, SPAN_DROPPED_ATTRIBUTES = 10 };

static const otel_context empty; /* no span, no values, no baggage */

/* --- contexts --- */

AROUND_EACH(recorder_setup_without_sdk, recorder_teardown);

/* spec: C1 context/README.md#overview MUST stable */
TEST(C1_a_context_does_not_change_when_another_is_made_of_it)
{
    int one = 1;
    int two = 2;
    otel_context_value places[2];
    const otel_context_key key = otel_context_create_key("number");
    const otel_context first = otel_context_with_value(empty, key, &one, &places[0]);
    const otel_context before = first;
    const otel_context second = otel_context_with_value(first, key, &two, &places[1]);
    const otel_context third =
        otel_context_with_baggage(second, otel_baggage_set(otel_baggage_none(), "k", "v", NULL));

    assert_memory_equal(&first, &before, sizeof first);
    assert_ptr_equal(otel_context_get_value(&empty, key), NULL);
    assert_ptr_equal(otel_context_get_value(&first, key), &one);
    assert_ptr_equal(otel_context_get_value(&second, key), &two);
    assert_ptr_equal(otel_context_get_value(&third, key), &two);
    assert_int_equal(otel_context_baggage(&second).opaque, 0);
}

/* spec: C1 context/README.md#create-a-key SHOULD stable */
TEST(C1_keys_of_one_name_are_different)
{
    int value;
    otel_context_value place;
    const otel_context_key one = otel_context_create_key("name");
    const otel_context_key other = otel_context_create_key("name");
    const otel_context context = otel_context_with_value(empty, one, &value, &place);
    assert_ptr_equal(otel_context_get_value(&context, one), &value);
    assert_null(otel_context_get_value(&context, other));
}

/* spec: C2 context/README.md#detach-context MAY stable */
TEST(C2_a_wrong_order_is_said_and_harms_nothing)
{
    const otel_baggage inner = otel_baggage_set(otel_baggage_none(), "k", "inner", NULL);
    const otel_context_token one = otel_context_attach(empty);
    const otel_context_token two = otel_context_attach(otel_context_with_baggage(empty, inner));
    assert_false(otel_context_detach(one));
    assert_int_equal(recorder.logs, 1);
    assert_int_equal(otel_context_baggage(NULL).opaque, inner.opaque);
    assert_true(otel_context_detach(two));
    assert_false(otel_context_detach(two));
    assert_false(otel_context_detach(one));
    assert_int_equal(otel_context_baggage(NULL).opaque, 0);
}

/* Whether a recorded span's parent is this one. */
static bool is_child_of(size_t index, otel_span parent)
{
    return memcmp(recorder_field(index, SPAN_PARENT).bytes, &parent.opaque[2], 8) == 0;
}

/* spec: C3 context/README.md#overview SHOULD stable */
TEST_WITH(recorder_setup, recorder_teardown,
          C3_requests_that_share_a_thread_need_no_current_context)
{
    enum { REQUESTS = 8 };
    otel_tracer *tracer = otel_tracer_get("c3", NULL);
    otel_context requests[REQUESTS];
    char user[REQUESTS][8];
    for (size_t i = 0; i < REQUESTS; i++) {
        snprintf(user[i], sizeof user[i], "u%zu", i);
        const otel_baggage baggage = otel_baggage_set(otel_baggage_none(), "user", user[i], NULL);
        requests[i] = otel_context_with_baggage(
            otel_context_with_span(empty, otel_span_start(tracer, "request", NULL)),
            otel_baggage_keep(baggage));
    }
    for (size_t i = 0; i < REQUESTS; i++) {
        char value[8];
        otel_span_end(otel_span_start(tracer, "step", OTEL_SPAN_OPTIONS(.parent = &requests[i])));
        assert_true(is_child_of(i, requests[i].span));
        otel_baggage_get(otel_context_baggage(&requests[i]), "user", value, sizeof value);
        assert_string_equal(value, user[i]);
    }
    assert_false(otel_span_is_recording(otel_current_span()));
    assert_int_equal(otel_context_baggage(NULL).opaque, 0);
    for (size_t i = 0; i < REQUESTS; i++) {
        otel_span_end(requests[i].span);
        otel_baggage_let_go(otel_context_baggage(&requests[i]));
    }
}

/* --- baggage --- */

static const char *get(otel_baggage baggage, const char *name)
{
    static char value[OTELI_BAGGAGE_BYTES + 1];
    return otel_baggage_get(baggage, name, value, sizeof value) != SIZE_MAX ? value : NULL;
}

/* spec: C12 baggage/api.md#overview MUST stable */
TEST(C12_names_and_values_are_any_utf8_and_have_case)
{
    otel_baggage baggage = otel_baggage_set(otel_baggage_none(), "a", "B% \xf0\x9f\x92\xbc", NULL);
    baggage = otel_baggage_set(baggage, "A", "c", NULL);
    baggage = otel_baggage_set(baggage, "n\xc3\xa4me with blanks,;=", "", NULL);
    assert_string_equal(get(baggage, "a"), "B% \xf0\x9f\x92\xbc");
    assert_string_equal(get(baggage, "A"), "c");
    assert_string_equal(get(baggage, "n\xc3\xa4me with blanks,;="), "");
    assert_null(get(baggage, "b"));
    assert_int_equal(otel_baggage_count(baggage), 3);
}

/* spec: C12 baggage/api.md#conflict-resolution MUST stable */
TEST(C12_a_new_value_takes_the_place_of_the_old_one)
{
    otel_baggage baggage = otel_baggage_set(otel_baggage_none(), "k", "old", "metadata");
    baggage = otel_baggage_set(baggage, "l", "other", NULL);
    baggage = otel_baggage_set(baggage, "k", "a longer new one", NULL);
    char metadata[16];
    assert_int_equal(otel_baggage_count(baggage), 2);
    assert_string_equal(get(baggage, "k"), "a longer new one");
    assert_int_equal(otel_baggage_get_metadata(baggage, "k", metadata, sizeof metadata), 0);
    assert_string_equal(get(baggage, "l"), "other");
}

struct seen {
    char text[128];
    size_t stop_after;
};

static bool see(void *state, const otel_baggage_entry *entry)
{
    struct seen *seen = state;
    const size_t at = strlen(seen->text);
    snprintf(seen->text + at, sizeof seen->text - at, "%s=%s;%s ", entry->name.data,
             entry->value.data, entry->metadata.length != 0 ? entry->metadata.data : "-");
    return --seen->stop_after != 0;
}

/* spec: C12 baggage/api.md#get-all-values MUST stable */
TEST(C12_all_entries_can_be_looked_at)
{
    struct seen all = {"", 0};
    struct seen first = {"", 1};
    otel_baggage baggage = otel_baggage_set(otel_baggage_none(), "a", "1", NULL);
    baggage = otel_baggage_set(baggage, "b", "2", "p=q");
    otel_baggage_each(baggage, see, &all);
    otel_baggage_each(baggage, see, &first);
    assert_string_equal(all.text, "a=1;- b=2;p=q ");
    assert_string_equal(first.text, "a=1;- ");
}

/* spec: C12 baggage/api.md#remove-value MUST stable */
TEST(C12_an_entry_can_be_removed)
{
    otel_baggage baggage = otel_baggage_set(otel_baggage_none(), "a", "1", NULL);
    baggage = otel_baggage_set(baggage, "b", "2", NULL);
    baggage = otel_baggage_set(baggage, "c", "3", NULL);
    const otel_baggage less = otel_baggage_remove(baggage, "b");
    assert_null(get(less, "b"));
    assert_string_equal(get(less, "a"), "1");
    assert_string_equal(get(less, "c"), "3");
    assert_int_equal(otel_baggage_remove(less, "b").opaque, less.opaque);
}

/* spec: C12 baggage/api.md#set-value MUST stable */
TEST(C12_what_is_no_name_or_no_utf8_is_defined)
{
    const otel_baggage none = {0};
    char text[4] = "xyz";
    assert_int_equal(otel_baggage_set(none, "", "v", NULL).opaque, 0);
    assert_int_equal(otel_baggage_set(none, NULL, "v", NULL).opaque, 0);
    assert_int_equal(otel_baggage_set(none, "\xff", "v", NULL).opaque, 0);
    const otel_baggage bad = otel_baggage_set(none, "k", "a\xff\xc3z", "m\xe2\x82");
    assert_string_equal(get(bad, "k"), "a\xef\xbf\xbd\xef\xbf\xbdz");
    const otel_baggage null = otel_baggage_set(none, "k", NULL, NULL);
    assert_string_equal(get(null, "k"), "");
    assert_int_equal(otel_baggage_get(bad, "k", NULL, 0), 8);
    assert_int_equal(otel_baggage_get(bad, "k", text, 2), 8);
    assert_string_equal(text, "a");
    assert_int_equal(otel_baggage_get(bad, "other", text, sizeof text), SIZE_MAX);
    assert_string_equal(text, "");
    assert_int_equal(otel_baggage_get(bad, NULL, text, sizeof text), SIZE_MAX);
    otel_baggage_each(none, see, NULL);
}

/* --- its header --- */

/* What is written of what was read. */
static const char *pass_on(const char *header)
{
    static char text[OTELI_BAGGAGE_BYTES + 1];
    struct oteli_baggage_builder builder;
    oteli_baggage_begin(&builder, otel_baggage_none());
    oteli_baggage_parse(&builder, header, strlen(header));
    oteli_baggage_format(oteli_baggage_finish(&builder), text, sizeof text);
    return text;
}

static otel_baggage parse(const char *text, size_t length)
{
    struct oteli_baggage_builder builder;
    oteli_baggage_begin(&builder, otel_baggage_none());
    oteli_baggage_parse(&builder, text, length);
    return oteli_baggage_finish(&builder);
}

/* spec: C11 w3c/baggage#value MUST stable */
TEST(C11_values_are_percent_encoded)
{
    static const struct {
        const char *value;
        const char *text;
    } cases[] = {
        {"DF 28", "k=DF%2028"},
        {"Am\xc3\xa9lie", "k=Am%C3%A9lie"},
        {"a+b", "k=a+b"},
        {"100%", "k=100%25"},
        {"\",;\\", "k=%22%2C%3B%5C"},
        {"a=b==", "k=a=b=="},
        {"\r\n\t\x7f", "k=%0D%0A%09%7F"},
        {"!#$&'()*+-./:<=>?@[]^_`{|}~", "k=!#$&'()*+-./:<=>?@[]^_`{|}~"},
        {"\xe2\x82\xac\xf0\x9f\x92\xbc", "k=%E2%82%AC%F0%9F%92%BC"},
        {"", "k="},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        const otel_baggage baggage =
            otel_baggage_set(otel_baggage_none(), "k", cases[i].value, NULL);
        oteli_baggage_format(baggage, text, sizeof text);
        assert_string_equal(text, cases[i].text);
        assert_string_equal(get(parse(text, strlen(text)), "k"), cases[i].value);
    }
}

/* spec: C11 w3c/baggage#definition MUST stable */
TEST(C11_headers_are_passed_on_clean)
{
    static const struct {
        const char *what;
        const char *header;
        const char *passed_on;
    } rows[] = {
        {"no UTF-8", "k=%ff", "k=%EF%BF%BD"},
        {"no UTF-8", "k=a%C3z", "k=a%EF%BF%BDz"},
        {"a surrogate", "k=%ED%A0%80", "k=%EF%BF%BD%EF%BF%BD%EF%BF%BD"},
        {"cut UTF-8", "k=%F0%9F%92", "k=%EF%BF%BD%EF%BF%BD%EF%BF%BD"},
        {"lower-case digits", "k=%c3%a9", "k=%C3%A9"},
        {"bytes as they are", "k=\xc3%a9,l=\xc3\xa9", "k=%C3%A9,l=%C3%A9"},
        {"percent signs without two digits", "a=%,b=100%;m,c=%4,d=%zz,e=%%41",
         "a=%25,b=100%25;m,c=%254,d=%25zz,e=%25A"},
        {"a plus is a plus", "k=a+b,l=a%2Bb", "k=a+b,l=a+b"},
        {"blanks around everything", " key1 =\tvalue1 ; p1 = x ; p2\t, key2 = value2 ,,\t, ",
         "key1=value1;p1=x;p2,key2=value2"},
        {"malformed members", "novalue,=v,a b=c,\"k\"=v,k(1)=v,x\xc3\xa9=v,;m,k;m=v,good=1",
         "good=1"},
        {"control characters", "a=\x01,b=\r\n,c=\x7f,d=1;\x02,good=1", "good=1"},
        {"what is to be encoded", "a=x y,b=\"q\",c=\\", "a=x%20y,b=%22q%22,c=%5C"},
        {"of one name the last value counts", "k=1,l=2,k=3,K=4", "l=2,k=3,K=4"},
        {"metadata as it is", "k=v;a=%20b;c;d=1;e=+", "k=v;a=%20b;c;d=1;e=+"},
        {"empty metadata", "k=v;", "k=v"},
        {"blanks in metadata", "k=v; a = 1\t2 ;\t; b  c ;5%=%4;%g4;",
         "k=v;a=1%202;;b%20%20c;5%25=%254;%25g4;"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(pass_on(rows[i].header), rows[i].passed_on) != 0)
            fail_msg("%s: %s", rows[i].what, pass_on(rows[i].header));
}

/* spec: C11 w3c/baggage#value MUST stable */
TEST(C11_an_encoded_nul_stays_in_its_value)
{
    char value[8] = "xxxxxxx";
    assert_int_equal(otel_baggage_get(parse("k=a%00b", 7), "k", value, sizeof value), 3);
    assert_memory_equal(value, "a\0b", 4);
    assert_string_equal(pass_on("k=a%00b"), "k=a%00b");
}

/* spec: C11 w3c/baggage#property MUST stable */
TEST(C11_metadata_cannot_break_a_header)
{
    char text[64];
    const otel_baggage baggage =
        otel_baggage_set(otel_baggage_none(), "k", "v", "p\r\nx: y,l=w\"\xc3\xa9");
    oteli_baggage_format(baggage, text, sizeof text);
    assert_string_equal(text, "k=v;p%0D%0Ax:%20y%2Cl=w%22%C3%A9");
}

/* spec: C11 w3c/baggage#key MUST stable */
TEST(C11_names_on_the_wire_are_tokens)
{
    char text[64];
    otel_baggage baggage = otel_baggage_set(otel_baggage_none(), "a b", "1", NULL);
    baggage = otel_baggage_set(baggage, "!#$%&'*+-.^_`|~09azAZ", "2", NULL);
    baggage = otel_baggage_set(baggage, "n\xc3\xa9", "3", NULL);
    oteli_baggage_format(baggage, text, sizeof text);
    assert_string_equal(text, "!#$%&'*+-.^_`|~09azAZ=2");
    assert_string_equal(get(parse("%41=1", 5), "%41"), "1"); /* a percent sign is one there */
}

/* spec: C11 w3c/baggage#limits MUST stable */
TEST(C11_what_has_64_members_and_8192_bytes_is_passed_on_whole)
{
    static char header[OTELI_BAGGAGE_BYTES + 1];
    size_t at = 0;
    for (unsigned i = 0; i < OTELI_BAGGAGE_MEMBERS; i++) {
        const int length =
            snprintf(header + at, sizeof header - at, "%skey%02u=", i != 0 ? "," : "", i);
        at += (size_t)length;
        const size_t wanted = OTELI_BAGGAGE_BYTES * (i + 1) / OTELI_BAGGAGE_MEMBERS;
        memset(header + at, 'v', wanted - at);
        at = wanted;
    }
    assert_int_equal(at, OTELI_BAGGAGE_BYTES);
    assert_string_equal(pass_on(header), header);
}

/* spec: C11 w3c/baggage#limits MUST stable */
TEST(C11_what_is_too_much_goes_by_whole_members)
{
    static char header[2 * OTELI_BAGGAGE_BYTES];
    size_t at = 0;
    for (unsigned i = 0; i < 100; i++)
        at += (size_t)snprintf(header + at, sizeof header - at, "k%u=v,", i);
    assert_int_equal(otel_baggage_count(parse(header, at)), OTELI_BAGGAGE_MEMBERS);

    at = 0;
    for (unsigned i = 0; i < 20; i++)
        at += (size_t)snprintf(header + at, sizeof header - at, "k%02u=%0500u,", i, 7u);
    const otel_baggage most = parse(header, at);
    assert_int_equal(otel_baggage_count(most), OTELI_BAGGAGE_BYTES / 505);
    assert_int_equal(strlen(get(most, "k15")), 500);
}

/* spec: C11 w3c/baggage#header-content MUST stable */
TEST(C11_several_headers_are_one)
{
    struct oteli_baggage_builder builder;
    oteli_baggage_begin(&builder, otel_baggage_none());
    assert_int_equal(oteli_baggage_parse(&builder, "userId=alice", 12), 1);
    assert_int_equal(oteli_baggage_parse(&builder, "a=1,b=2", 7), 2);
    assert_int_equal(otel_baggage_count(oteli_baggage_finish(&builder)), 3);
}

/* --- attributes of a context --- */

static otel_attribute string(const char *key, const char *value)
{
    return otel_attribute_of(key, otel_value_string(value));
}

/* spec: A29 oteps/4931-context-scoped-attributes.md MUST development */
TEST_FAST_TOO(A29_every_span_under_a_context_has_its_attributes)
{
    otel_tracer *tracer = otel_tracer_get("a29", NULL);
    const otel_attribute app[] = {string("http.app", "shop"),
                                  otel_attribute_of("n", otel_value_int(3))};
    otel_context_attributes place;
    const otel_context context = otel_context_with_attributes(empty, app, 2, &place);
    const otel_context_token token = otel_context_attach(context);
    const otel_span outer = otel_span_enter(tracer, "outer", NULL);
    const otel_span inner = otel_span_enter(tracer, "inner", NULL);
    otel_span_end(inner);
    otel_span_end(outer);
    otel_span_end(otel_span_start(tracer, "detached", NULL));
    assert_true(otel_context_detach(token));
    otel_span_end(otel_span_enter(tracer, "after", NULL));
    otel_span_end(otel_span_start(tracer, "explicit", OTEL_SPAN_OPTIONS(.parent = &context)));

    assert_int_equal(recorder.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(recorder_span_attributes(i), i != 3 ? "http.app=shop n=3 " : "");
}

/* spec: A29 oteps/4931-context-scoped-attributes.md MUST development */
TEST_WITH(recorder_setup, recorder_teardown, A29_the_spans_own_attributes_have_precedence)
{
    otel_tracer *tracer = otel_tracer_get("a29", NULL);
    const otel_attribute outer[] = {string("a", "outer"), string("b", "outer"),
                                    string("c", "outer"), string("c", "outer, again")};
    const otel_attribute inner[] = {string("b", "inner"), string("d", "inner")};
    const otel_attribute own[] = {string("d", "own"), string("e", "own")};
    otel_context_attributes places[2];
    otel_context context = otel_context_with_attributes(empty, outer, 4, &places[0]);
    context = otel_context_with_attributes(context, inner, 2, &places[1]);
    const otel_span span = otel_span_enter(
        tracer, "span",
        OTEL_SPAN_OPTIONS(.parent = &context, .attributes = own, .attribute_count = 2));
    otel_span_set_string(span, "a", "set");
    otel_span_end(span);

    assert_string_equal(recorder_span_attributes(0), "d=own e=own b=inner c=outer, again a=set ");

    otel_attribute listed[8];
    assert_int_equal(otel_context_get_attributes(&context, listed, 8), 4);
    assert_int_equal(otel_context_get_attributes(&context, listed, 1), 4);
    assert_string_equal(listed[0].key, "b");
    assert_int_equal(otel_context_get_attributes(NULL, listed, 8), 0);
}

/* spec: A29 oteps/4931-context-scoped-attributes.md MUST development */
TEST_WITH(recorder_setup, recorder_teardown, A29_the_limit_of_attributes_drops_the_contexts_first)
{
    enum { OF_CONTEXT = 100, OWN = 100, LIMIT = 128 };
    otel_tracer *tracer = otel_tracer_get("a29", NULL);
    static char keys[OF_CONTEXT + OWN][8];
    otel_attribute attributes[OF_CONTEXT + OWN];
    for (size_t i = 0; i < OF_CONTEXT + OWN; i++) {
        snprintf(keys[i], sizeof keys[i], "k%zu", i);
        attributes[i] = otel_attribute_of(keys[i], otel_value_int((int64_t)i));
    }
    otel_context_attributes place;
    const otel_context context =
        otel_context_with_attributes(empty, attributes, OF_CONTEXT, &place);
    otel_span_end(
        otel_span_start(tracer, "span",
                        OTEL_SPAN_OPTIONS(.parent = &context, .attributes = attributes + OF_CONTEXT,
                                          .attribute_count = OWN)));
    assert_non_null(strstr(recorder_span_attributes(0), "k199=199 "));
    assert_int_equal(recorder_count(0, RECORDER_ATTRIBUTES), LIMIT);
    assert_int_equal(recorder_field(0, SPAN_DROPPED_ATTRIBUTES).value, OF_CONTEXT + OWN - LIMIT);
}

static size_t seen_by_sampler;

static bool sample(const struct oteli_sdk *sdk, const struct oteli_sampling *about)
{
    (void)sdk;
    seen_by_sampler = about->options != NULL ? about->options->attribute_count : 0;
    return seen_by_sampler != 0;
}

/* spec: A29 oteps/4931-context-scoped-attributes.md MUST development */
TEST_WITH(recorder_setup, recorder_teardown, A29_samplers_see_them)
{
    memset(recorder.sdk.decide, OTELI_DECIDE_ASK, sizeof recorder.sdk.decide);
    recorder.sdk.sample = sample;
    otel_tracer *tracer = otel_tracer_get("a29", NULL);
    const otel_attribute app = string("http.app", "shop");
    otel_context_attributes place;
    const otel_context context = otel_context_with_attributes(empty, &app, 1, &place);
    otel_span_end(otel_span_start(tracer, "without", NULL));
    assert_int_equal(seen_by_sampler, 0);
    otel_span_end(otel_span_start(tracer, "with", OTEL_SPAN_OPTIONS(.parent = &context)));
    assert_int_equal(seen_by_sampler, 1);
    const otel_context_token token = otel_context_attach(context);
    otel_span_end(otel_span_enter(tracer, "attached", NULL));
    assert_int_equal(seen_by_sampler, 1);
    assert_true(otel_context_detach(token));
    assert_int_equal(recorder.count, 2);
}

/* spec: A29 oteps/4931-context-scoped-attributes.md MUST development */
TEST_WITH(recorder_setup, recorder_teardown, A29_another_sdk_and_no_memory_change_nothing)
{
    otel_tracer *tracer = otel_tracer_get("a29", NULL);
    otel_attribute many[20];
    for (size_t i = 0; i < 20; i++)
        many[i] = string(i != 0 ? "same" : "k", "v");
    otel_context_attributes place;
    const otel_context_token token =
        otel_context_attach(otel_context_with_attributes(empty, many, 2, &place));
    recorder_stop();
    otel_span_end(otel_span_enter(tracer, "nobody's", NULL));
    recorder_start();
    otel_span_end(otel_span_enter(tracer, "the next one's", NULL));
    assert_string_equal(recorder_span_attributes(0), "k=v same=v ");
    oteli_leaks_fail_at(1);
    otel_span_end(otel_span_enter(
        tracer, "no memory", OTEL_SPAN_OPTIONS(.attributes = many + 1, .attribute_count = 19)));
    assert_true(oteli_leaks_failed());
    assert_string_equal(recorder_span_attributes(1), "same=v ");
    assert_true(otel_context_detach(token));
}
