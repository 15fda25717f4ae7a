/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/compose_test.c - specification of the records of ended spans: byte for byte
 * what protobuf-c packs for the same span, whatever was said about it. */
#include "opentelemetry/proto/trace/v1/trace.pb-c.h"
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Opentelemetry__Proto__Trace__V1__Span pb_span;

enum { HAS_IS_REMOTE = 0x100, IS_REMOTE = 0x200, LONG = 4096 };

static const uint8_t remote_trace_id[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static const uint8_t remote_span_id[8] = {21, 22, 23, 24, 25, 26, 27, 28};

static otel_tracer *tracer(void)
{
    return otel_tracer_get("compose", NULL);
}

/* A recorded span, after a check that protobuf-c, packing it again, gets the same bytes: no field
 * twice, none in another order, none that need not be there. */
static pb_span *oracle_unpack(size_t index)
{
    static uint8_t again[1 << 20];
    const struct recorded_span recorded = recorder_span(index);
    pb_span *span =
        opentelemetry__proto__trace__v1__span__unpack(NULL, recorded.length, recorded.message);
    assert_non_null(span);
    assert_int_equal(protobuf_c_message_get_packed_size(&span->base), recorded.length);
    assert_true(recorded.length <= sizeof again);
    assert_int_equal(protobuf_c_message_pack(&span->base, again), recorded.length);
    assert_memory_equal(again, recorded.message, recorded.length);
    assert_true(protobuf_c_message_check(&span->base));
    return span;
}

static void oracle_free(pb_span *span)
{
    opentelemetry__proto__trace__v1__span__free_unpacked(span, NULL);
}

static void check_ids(const pb_span *span, otel_span handle)
{
    const otel_span_context context = otel_span_get_context(handle);
    assert_int_equal(span->trace_id.len, 16);
    assert_memory_equal(span->trace_id.data, context.trace_id, 16);
    assert_int_equal(span->span_id.len, 8);
    assert_memory_equal(span->span_id.data, context.span_id, 8);
}

AROUND_EACH(recorder_setup, recorder_teardown);

TEST(a_bare_root)
{
    recorder_at(4000);
    const otel_span handle = otel_span_enter(tracer(), "bare", NULL);
    recorder_at(6000);
    otel_span_end(handle);

    pb_span *span = oracle_unpack(0);
    check_ids(span, handle);
    assert_int_equal(span->parent_span_id.len, 0);
    assert_string_equal(span->name, "bare");
    assert_string_equal(span->trace_state, "");
    assert_int_equal(span->kind, 1);
    assert_true(span->start_time_unix_nano == RECORDER_WALL_NS + 4000);
    assert_true(span->end_time_unix_nano == RECORDER_WALL_NS + 6000);
    assert_int_equal(span->n_attributes + span->n_events + span->n_links, 0);
    assert_null(span->status);
    assert_int_equal(span->flags, HAS_IS_REMOTE | OTEL_TRACE_FLAG_SAMPLED | OTEL_TRACE_FLAG_RANDOM);
    oracle_free(span);
}

/* spec: X18 trace.proto SHOULD stable */
TEST(a_child_of_a_remote_span_with_a_tracestate)
{
    char longest[513];
    for (size_t i = 0; i < 4; i++)
        snprintf(longest + i * 128, 129, "k%zu=%0*d,", i, 124, 7);
    longest[511] = '\0'; /* the last comma */
    const char *const tracestates[] = {NULL, "a=1,b=2", longest};
    for (size_t i = 0; i < 3; i++) {
        const otel_span_context remote = otel_span_context_make(
            remote_trace_id, remote_span_id, OTEL_TRACE_FLAG_SAMPLED, true, tracestates[i]);
        const otel_context parent =
            otel_context_with_span(otel_current_context(), otel_span_wrap(&remote));

        otel_span_end(otel_span_start(tracer(), "served", OTEL_SPAN_OPTIONS(.parent = &parent)));

        pb_span *span = oracle_unpack(i);
        assert_memory_equal(span->trace_id.data, remote_trace_id, 16);
        assert_memory_equal(span->parent_span_id.data, remote_span_id, 8);
        assert_string_equal(span->trace_state, tracestates[i] != NULL ? tracestates[i] : "");
        assert_int_equal(span->flags, HAS_IS_REMOTE | IS_REMOTE | OTEL_TRACE_FLAG_SAMPLED);
        oracle_free(span);
    }
}

/* spec: A23 trace/api.md#spankind MUST stable */
TEST_FAST_TOO(every_kind)
{
    for (int kind = OTEL_SPAN_KIND_INTERNAL; kind <= OTEL_SPAN_KIND_CONSUMER; kind++) {
        otel_span_end(
            otel_span_enter(tracer(), "kind", OTEL_SPAN_OPTIONS(.kind = (otel_span_kind)kind)));
        pb_span *span = oracle_unpack((size_t)kind);
        assert_int_equal(span->kind, kind + 1);
        oracle_free(span);
    }
    otel_span_end(otel_span_enter(tracer(), "odd", OTEL_SPAN_OPTIONS(.kind = (otel_span_kind)9)));
    pb_span *span = oracle_unpack(5);
    assert_int_equal(span->kind, 1);
    oracle_free(span);
}

TEST_FAST_TOO(names_of_all_lengths)
{
    static const size_t lengths[] = {0,  1,  3,  4,  7,  8,  9,   15,  16,  17,
                                     31, 32, 33, 47, 48, 49, 127, 128, 129, 4096};
    static char name[LONG + 1];
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        for (size_t k = 0; k < lengths[i]; k++)
            name[k] = (char)('a' + k % 26);
        name[lengths[i]] = '\0';

        otel_span_end(otel_span_enter(tracer(), name, NULL));

        pb_span *span = oracle_unpack(i);
        assert_string_equal(span->name, name);
        oracle_free(span);
    }
}

TEST_FAST_TOO(names_that_are_not_ascii_or_not_utf8)
{
    static const struct {
        const char *given;
        const char *kept;
    } rows[] = {
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\xff", "\xef\xbf\xbd"},
        {"123456789 123456789 123456789 123456789 12345\xff\xff",
         "123456789 123456789 123456789 123456789 12345\xef\xbf\xbd\xef\xbf\xbd"},
        {NULL, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        otel_span_end(otel_span_enter(tracer(), rows[i].given, NULL));
        pb_span *span = oracle_unpack(i);
        assert_string_equal(span->name, rows[i].kept);
        oracle_free(span);
    }
}

/* spec: X18 opentelemetry-proto/trace.proto SHOULD stable */
TEST_FAST_TOO(everything_at_once)
{
    const otel_span_context remote =
        otel_span_context_make(remote_trace_id, remote_span_id, 0xff, true, "k=v");
    const otel_context parent =
        otel_context_with_span(otel_current_context(), otel_span_wrap(&remote));
    const otel_attribute attributes[] = {otel_attribute_of("n", otel_value_int(1)),
                                         otel_attribute_of("s", otel_value_string("t"))};
    const otel_link links[] = {{remote, attributes, 2}, {remote, NULL, 0}};
    recorder.sdk.limits.attributes = 2;
    recorder.sdk.limits.events = 2;
    recorder.sdk.limits.links = 2;
    recorder.sdk.limits.event_attributes = 1;
    recorder.sdk.limits.link_attributes = 1;

    const otel_span handle =
        otel_span_enter(tracer(), "all",
                        OTEL_SPAN_OPTIONS(.parent = &parent, .kind = OTEL_SPAN_KIND_SERVER,
                                          .attributes = attributes, .attribute_count = 2,
                                          .links = links, .link_count = 2, .start_ns = 77));
    otel_span_set_int(handle, "too many", 1);
    otel_span_add_event_at(handle, "first", 88, attributes, 2);
    otel_span_add_event(handle, NULL, NULL, 0);
    otel_span_add_event(handle, "too many", NULL, 0);
    otel_span_add_link(handle, &links[0]);
    otel_span_fail(handle, "why \xff");
    otel_span_end_at(handle, 99);

    pb_span *span = oracle_unpack(0);
    assert_true(span->start_time_unix_nano == 77 && span->end_time_unix_nano == 99);
    assert_string_equal(span->trace_state, "k=v");
    assert_int_equal(span->n_attributes, 2);
    assert_int_equal(span->dropped_attributes_count, 1);
    assert_int_equal(span->n_events, 2);
    assert_int_equal(span->dropped_events_count, 1);
    assert_true(span->events[0]->time_unix_nano == 88);
    assert_string_equal(span->events[0]->name, "first");
    assert_int_equal(span->events[0]->n_attributes, 1);
    assert_int_equal(span->events[0]->dropped_attributes_count, 1);
    assert_string_equal(span->events[1]->name, "");
    assert_int_equal(span->n_links, 2);
    assert_int_equal(span->dropped_links_count, 1);
    assert_memory_equal(span->links[0]->trace_id.data, remote_trace_id, 16);
    assert_memory_equal(span->links[0]->span_id.data, remote_span_id, 8);
    assert_string_equal(span->links[0]->trace_state, "k=v");
    assert_int_equal(span->links[0]->flags, 0xff | HAS_IS_REMOTE | IS_REMOTE);
    assert_int_equal(span->links[0]->n_attributes, 1);
    assert_int_equal(span->links[0]->dropped_attributes_count, 1);
    assert_int_equal(span->links[1]->n_attributes, 0);
    assert_int_equal(span->status->code, 2);
    assert_string_equal(span->status->message, "why \xef\xbf\xbd");
    assert_int_equal(span->flags,
                     HAS_IS_REMOTE | IS_REMOTE | OTEL_TRACE_FLAG_SAMPLED | OTEL_TRACE_FLAG_RANDOM);
    oracle_free(span);
}

/* Lengths of all messages on both sides of a longer varint, in one event after another; texts that
 * are UTF-8, and that are not; a key that comes again. */
TEST_FAST_TOO(events_of_all_lengths)
{
    enum { EVENTS = 40 };
    static char text[17000];
    static const size_t around[] = {0, 70, 16320};
    memset(text, 't', sizeof text);
    const otel_span handle = otel_span_enter(tracer(), "eventful", NULL);
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < EVENTS; k++) {
            const otel_attribute attributes[] = {
                otel_attribute_of("number", otel_value_int(-1)),
                otel_attribute_of("text", otel_value_string_n(text, around[i] + k)),
                otel_attribute_of(k % 3 == 0 ? "number" : "truth", otel_value_bool(true)),
                otel_attribute_of("last", otel_value_string(k % 5 == 0 ? "\xff" : "\xc3\xa4"))};
            otel_span_add_event(handle, k % 7 == 0 ? "bad \xff" : "f\xc3\xbcnf", attributes, k % 5);
        }
    otel_span_end(handle);

    pb_span *span = oracle_unpack(0);
    assert_int_equal(span->n_events, 3 * EVENTS);
    for (size_t i = 0; i < 3 * EVENTS; i++) {
        const size_t k = i % EVENTS;
        const Opentelemetry__Proto__Trace__V1__Span__Event *event = span->events[i];
        const bool comes_again = k % 3 == 0 && k % 5 > 2;
        assert_string_equal(event->name, k % 7 == 0 ? "bad \xef\xbf\xbd" : "f\xc3\xbcnf");
        assert_int_equal(event->n_attributes, k % 5 - comes_again);
        assert_int_equal(event->dropped_attributes_count, 0);
        if (event->n_attributes > 0)
            assert_true(comes_again ? event->attributes[0]->value->bool_value
                                    : event->attributes[0]->value->int_value == -1);
        if (event->n_attributes > 1)
            assert_int_equal(strlen(event->attributes[1]->value->string_value),
                             around[i / EVENTS] + k);
    }
    oracle_free(span);
}

TEST(a_record_says_where_its_times_and_events_are)
{
    const otel_span plain = otel_span_enter(tracer(), "plain", NULL);
    otel_span_set_int(plain, "n", 1);
    otel_span_end(plain);
    const otel_span eventful = otel_span_enter(tracer(), "eventful", NULL);
    otel_span_set_int(eventful, "n", 1);
    otel_span_add_event(eventful, "e", NULL, 0);
    otel_span_end(eventful);

    for (size_t i = 0; i < 2; i++) {
        const struct recorded_span span = recorder_span(i);
        assert_ptr_equal(span.tracer, tracer());
        assert_ptr_equal(span.message + span.times_at, recorder_field(i, 7).start);
    }
    assert_int_equal(recorder_span(0).events_at, 0);
    assert_ptr_equal(recorder_span(1).message + recorder_span(1).events_at,
                     recorder_field(1, 11).start);
}

TEST(a_slot_keeps_nothing_of_the_span_before)
{
    for (size_t i = 0; i < 2; i++) {
        const otel_span full =
            otel_span_start(tracer(), "the name of this span is a rather long one",
                            OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_CLIENT));
        otel_span_set_string(full, "key", "value");
        otel_span_add_event(full, "event", NULL, 0);
        otel_span_fail(full, "failed");
        otel_span_end(full);
        otel_span_end(otel_span_start(tracer(), "bare", NULL));
    }
    const struct recorded_span bare = recorder_span(1);
    const struct recorded_span after = recorder_span(3);
    assert_int_equal(bare.length, after.length);
    pb_span *span = oracle_unpack(3);
    assert_string_equal(span->name, "bare");
    assert_int_equal(span->kind, 1);
    assert_int_equal(span->n_attributes + span->n_events, 0);
    assert_null(span->status);
    oracle_free(span);
}

enum { HUGE = 100 * 1024 };

TEST(a_slot_gives_huge_buffers_back)
{
    char *huge = calloc(1, HUGE);
    memset(huge, 'x', HUGE - 1);
    size_t live[2];
    for (size_t i = 0; i < 2; i++) {
        const otel_span span = otel_span_start(tracer(), i == 0 ? "n" : huge, NULL);
        otel_span_set_string(span, "k", huge);
        otel_span_end(span);
        live[i] = oteli_leaks_live();
    }
    assert_int_equal(live[1], live[0]);
    free(huge);
}

TEST(a_complaint_names_the_beginning_of_the_name)
{
    char name[] = "a name of more than sixty-three characters, of which the log says the first";
    recorder.sdk.limits.attributes = 0;
    const otel_span span = otel_span_enter(tracer(), name, NULL);
    otel_span_set_int(span, "k", 1);
    otel_span_end(span);
    name[63] = '\0';
    char expected[200];
    snprintf(expected, sizeof expected,
             "span \"%s\" has more attributes than its limit; they are left out", name);
    assert_string_equal(recorder.last_log, expected);
}
