/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/started/record_oracle_test.c - specification of what otel_span_record sends: field by
 * field as protobuf-c reads it, and byte by byte what the same span is when it is started and ended
 * here. */
#include "tests/support/dice.h"
#include "tests/support/received.h"
#include "tests/support/unit.h"

#include <otel/record.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const uint8_t trace_id[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static const uint8_t span_id[8] = {0xa1, 2, 3, 4, 5, 6, 7, 8};
static const uint8_t parent_id[8] = {0xb1, 2, 3, 4, 5, 6, 7, 8};
static const uint8_t no_id[16];

static otel_tracer *tracer(void)
{
    return otel_tracer_get("record", "1.2");
}

/* Record it, and what was received of it. */
static const received_pb_span *sent(const otel_finished_span *span)
{
    const size_t index = received_count();
    otel_span_record(tracer(), span);
    assert_int_equal(received_count(), index + 1);
    return received_span(index);
}

TEST(what_is_not_said_is_not_there)
{
    const received_pb_span *span = sent(OTEL_FINISHED_SPAN(.trace_id = trace_id, .flags = 1));
    assert_memory_equal(span->trace_id.data, trace_id, 16);
    assert_int_equal(span->span_id.len, 8);
    assert_int_equal(span->parent_span_id.len, 0);
    assert_int_equal(span->flags, 0x101);
    assert_string_equal(span->trace_state, "");
    assert_string_equal(span->name, "");
    assert_int_equal(span->kind,
                     OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_INTERNAL);
    assert_null(span->status);
    assert_int_equal(span->n_attributes + span->n_events + span->n_links, 0);
    assert_true(span->start_time_unix_nano == span->end_time_unix_nano);
    assert_true(span->end_time_unix_nano > UINT64_C(1600000000000000000));
}

/* spec: L1 */
TEST(L1_ids_that_are_not_there_are_made)
{
    const received_pb_span *span =
        sent(OTEL_FINISHED_SPAN(.trace_id = no_id, .span_id = no_id, .parent_span_id = parent_id,
                                .flags = 1));
    const received_pb_span *other = sent(OTEL_FINISHED_SPAN(.flags = 1, .parent_is_remote = true));

    assert_memory_not_equal(span->trace_id.data, no_id, 16);
    assert_memory_not_equal(span->span_id.data, no_id, 8);
    assert_memory_not_equal(span->trace_id.data, other->trace_id.data, 16);
    assert_memory_not_equal(span->span_id.data, other->span_id.data, 8);
    assert_int_equal(span->parent_span_id.len, 0); /* a trace of its own has no parent */
    assert_int_equal(span->flags, 0x103);          /* and its id is random */
    assert_int_equal(other->flags, 0x103);
}

TEST(a_parent_of_zeros_is_none_and_not_remote)
{
    static const uint8_t short_id[16] = {[15] = 1};
    const received_pb_span *span =
        sent(OTEL_FINISHED_SPAN(.trace_id = short_id, .span_id = span_id, .parent_span_id = no_id,
                                .parent_is_remote = true, .flags = 0xff));
    assert_memory_equal(span->trace_id.data, short_id, 16);
    assert_int_equal(span->parent_span_id.len, 0);
    assert_int_equal(span->flags, 0x103);
}

TEST(times_are_what_the_caller_says)
{
    const received_pb_span *backwards =
        sent(OTEL_FINISHED_SPAN(.flags = 1, .start_ns = 5000, .end_ns = 1000));
    assert_int_equal(backwards->start_time_unix_nano, 5000);
    assert_int_equal(backwards->end_time_unix_nano, 1000);

    const received_pb_span *without_start = sent(OTEL_FINISHED_SPAN(.flags = 1, .end_ns = 1000));
    assert_int_equal(without_start->start_time_unix_nano, 1000);
    assert_int_equal(without_start->end_time_unix_nano, 1000);

    const otel_finished_event event = {.name = "e"};
    const received_pb_span *until_now =
        sent(OTEL_FINISHED_SPAN(.flags = 1, .start_ns = 1000, .events = &event, .event_count = 1));
    assert_int_equal(until_now->start_time_unix_nano, 1000);
    assert_true(until_now->end_time_unix_nano > UINT64_C(1600000000000000000));
    assert_true(until_now->events[0]->time_unix_nano == until_now->end_time_unix_nano);

    const received_pb_span *largest =
        sent(OTEL_FINISHED_SPAN(.flags = 1, .start_ns = 1, .end_ns = (UINT64_C(1) << 63) - 1));
    assert_true(largest->end_time_unix_nano == (UINT64_C(1) << 63) - 1);
}

TEST(what_cannot_be_is_mended)
{
    const received_pb_span *span =
        sent(OTEL_FINISHED_SPAN(.flags = 1, .trace_id = trace_id, .tracestate = "not a tracestate",
                                .name = "a\xffXX", .name_length = 2, .kind = (otel_span_kind)77,
                                .status = (otel_span_status)9, .status_message = "x",
                                .attribute_count = 3, .event_count = 3, .link_count = 3));
    assert_string_equal(span->trace_state, "");
    assert_string_equal(span->name, "a\xef\xbf\xbd");
    assert_int_equal(span->kind,
                     OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_INTERNAL);
    assert_null(span->status);
    assert_int_equal(span->n_attributes + span->n_events + span->n_links, 0);

    span = sent(OTEL_FINISHED_SPAN(.flags = 1, .status = OTEL_SPAN_STATUS_OK,
                                   .status_message = "of an error only"));
    assert_int_equal(span->status->code,
                     OPENTELEMETRY__PROTO__TRACE__V1__STATUS__STATUS_CODE__STATUS_CODE_OK);
    assert_string_equal(span->status->message, "");
}

TEST(a_program_with_a_smaller_struct_is_understood)
{
    otel_finished_span span = {.size = offsetof(otel_finished_span, attributes),
                               .flags = 1,
                               .name = "small",
                               .start_ns = 1,
                               .end_ns = 2};
    memset((uint8_t *)&span + span.size, 0xff, sizeof span - span.size);
    assert_string_equal(sent(&span)->name, "small");
}

/* --- the same span, started and ended here --- */

enum { EVENTS = 3, LINKS = 2, TIMES = 2000 };

struct likeness {
    otel_finished_span span;
    otel_finished_event events[EVENTS];
    otel_link links[LINKS];
    otel_span_context parent;
};

static void roll(struct dice *dice, struct likeness *made)
{
    otel_finished_span *span = &made->span;
    char tracestate[64];
    dice_forget(dice);
    snprintf(tracestate, sizeof tracestate, "k=%u", dice_below(dice, 1000));
    made->parent =
        otel_span_context_make(trace_id, parent_id, dice_one_in(dice, 2) ? 1 : 3,
                               dice_one_in(dice, 2), dice_one_in(dice, 4) ? tracestate : NULL);
    *span = (otel_finished_span){.size = sizeof *span,
                                 .trace_id = made->parent.trace_id,
                                 .parent_span_id = made->parent.span_id,
                                 .parent_is_remote = made->parent.is_remote,
                                 .flags = made->parent.flags,
                                 .name = dice_text(dice),
                                 .kind = (otel_span_kind)dice_below(dice, 6),
                                 .start_ns = 1 + dice_below(dice, 1000000),
                                 .end_ns = 1 + dice_below(dice, 1000000),
                                 .status = (otel_span_status)dice_below(dice, 3),
                                 .status_message = dice_text(dice),
                                 .events = made->events,
                                 .event_count = dice_below(dice, EVENTS + 1),
                                 .links = made->links,
                                 .link_count = dice_below(dice, LINKS + 1)};
    span->attributes = dice_attributes(dice, 8, &span->attribute_count);
    for (size_t i = 0; i < span->event_count; i++) {
        otel_finished_event *event = &made->events[i];
        *event = (otel_finished_event){.name = dice_text(dice), .time_ns = 1 + i};
        event->attributes = dice_attributes(dice, 4, &event->attribute_count);
    }
    for (size_t i = 0; i < span->link_count; i++) {
        made->links[i] = (otel_link){.context = made->parent};
        made->links[i].attributes = dice_attributes(dice, 4, &made->links[i].attribute_count);
    }
}

static void trace(const struct likeness *made)
{
    const otel_finished_span *of = &made->span;
    const otel_context parent = {.span = otel_span_wrap(&made->parent)};
    const otel_span span = otel_span_enter(
        tracer(), of->name,
        OTEL_SPAN_OPTIONS(.parent = &parent, .kind = of->kind, .attributes = of->attributes,
                          .attribute_count = of->attribute_count, .start_ns = of->start_ns));
    for (size_t i = 0; i < of->event_count; i++)
        otel_span_add_event_at(span, of->events[i].name, of->events[i].time_ns,
                               of->events[i].attributes, of->events[i].attribute_count);
    for (size_t i = 0; i < of->link_count; i++)
        otel_span_add_link(span, &of->links[i]);
    otel_span_set_status(span, of->status, of->status_message);
    otel_span_end_at(span, of->end_ns);
}

/* Also where limits leave out and count. spec: X18 L2 L6 */
TEST(it_is_the_same_as_a_span_that_was_started_and_ended)
{
    static struct likeness made;
    struct dice dice;
    dice_init(&dice, 20261121);
    for (size_t i = 0; i < TIMES; i++) {
        char text[64];
        if (i == TIMES / 2) {
            received_stop();
            received_start(
                OTEL_SDK_OPTIONS(.attribute_count_limit = 2, .attribute_value_length_limit = 3,
                                 .span_event_count_limit = 1, .span_link_count_limit = 1));
        }
        const size_t at = received_count();
        roll(&dice, &made);
        trace(&made);
        const otel_slice wanted = received_bytes(at);
        otel_span_context_tracestate(&made.parent, text, sizeof text);
        made.span.tracestate = text;
        made.span.span_id = received_span(at)->span_id.data;
        otel_span_record(tracer(), &made.span);

        const otel_slice got = received_bytes(at + 1);
        assert_int_equal(got.length, wanted.length);
        assert_memory_equal(got.data, wanted.data, wanted.length);
    }
    dice_fini(&dice);
}

AROUND_EACH(received_begin, received_end);
