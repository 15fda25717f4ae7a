/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/plain_test.c - specification of api/record/raw_record.h: a record that is written
 * raw and finished later is byte for byte the one that is composed at once. */
#include "api/record/raw_record.h"
#include "api/record/set_roots.h"
#include "api/span/tracer.h"
#include "common/clock/clock.h"
#include "sdk/pipeline/batch.h"
#include "tests/support/unit.h"

#include <stdlib.h>
#include <string.h>

enum {
    LONGEST_NAME = OTELI_NAME_INLINE,
    TICKS_OF_EVENT = 1300,
    MOST_ATTRIBUTES = 300,
    BEHIND = 64
};
enum { ROOT, CHILD, CHILD_OF_REMOTE, ORIGINS };

static struct oteli_active_span open_span;
static uint8_t attributes[MOST_ATTRIBUTES + 2 * OTELI_COMPOSE_PIECE];
static uint64_t composed[256];
static otel_tracer *const tracer = &oteli_tracer_nameless;

static int setup(void **state)
{
    (void)state;
    oteli_fake_clock = (struct oteli_fake_clock){.ticks = 1000,
                                                 .monotonic_ns = UINT64_C(10000000000),
                                                 .wall_ns = UINT64_C(1700000000000000000)};
    assert_null(oteli_clock_start("fake"));
    memset(&open_span, 0xa5, sizeof open_span); /* what was there before is nobody's business */
    memset(&open_span.unusual, 0, sizeof open_span.unusual);
    for (size_t i = 0; i < sizeof attributes; i++)
        attributes[i] = (uint8_t)(i * 7 + 1);
    return 0;
}

/* A span that is not unusual. */
static void describe(unsigned origin, uint32_t name_length, uint32_t attributes_length,
                     uint8_t wire_kind)
{
    const unsigned flags = 0x103 | (origin == CHILD_OF_REMOTE ? OTELI_FLAG_IS_REMOTE : 0);
    open_span.self = (otel_span){{UINT64_C(0x1011121314151617), UINT64_C(0x2021222324252627),
                                  UINT64_C(0x3031323334353637),
                                  oteli_ref_make(3, OTELI_SPAN_ON_STACK, true, 5, 0)}};
    open_span.tracer = tracer;
    open_span.parent_id = origin == ROOT ? 0 : UINT64_C(0x4041424344454647);
    open_span.epoch = oteli_clock_epoch();
    open_span.name_length = name_length;
    open_span.traits = (struct oteli_traits){.wire_flags = (uint16_t)flags, .wire_kind = wire_kind};
    open_span.start = 1100;
    open_span.attributes = (struct oteli_buffer){attributes, sizeof attributes, attributes_length};
    for (uint32_t i = 0; i < OTELI_NAME_INLINE; i++)
        open_span.name[i] = (char)(i < name_length ? 'a' + i % 26 : '#');
}

/* A record as a field, in exactly the memory that it takes. The record stays as it is. The caller
 * frees it. */
static uint8_t *put_field(struct oteli_record *record, size_t size, size_t *length)
{
    uint8_t *before = malloc(size);
    assert_non_null(before);
    memcpy(before, record, size);
    assert_int_equal(oteli_records_measure(&record, 1, SIZE_MAX, length), 1);
    size_t less;
    assert_int_equal(oteli_records_measure(&record, 1, *length - 1, &less), 0);
    assert_int_equal(less, 0);
    uint8_t *field = malloc(*length);
    assert_non_null(field);
    assert_ptr_equal(oteli_records_put(&record, 1, field), field + *length);
    assert_memory_equal(record, before, size);
    free(before);
    return field;
}

static void check_field(const uint8_t *field, size_t length, struct oteli_record *expected)
{
    const uint8_t *at = field;
    struct oteli_field spans;
    assert_true(oteli_next_field(&at, field + length, &spans));
    assert_ptr_equal(at, field + length);
    assert_int_equal(spans.number, 2);
    assert_int_equal(spans.length, expected->length);
    assert_memory_equal(spans.bytes, oteli_record_message(expected), expected->length);
}

/* Written with exactly the room that it may want and something behind it, and finished; before
 * that as a field. The caller frees `*memory`. */
static struct oteli_record *finish_raw(uint64_t end, uint8_t **memory)
{
    const bool has_more = open_span.traits.is_unusual != 0;
    uint32_t size = oteli_raw_size(&open_span);
    const size_t bound = (has_more ? oteli_raw_more_bound(&open_span) : size) + OTELI_RAW_SLACK;
    uint8_t *at = malloc(bound + BEHIND);
    assert_non_null(at);
    memset(at, 0xee, bound + BEHIND);
    struct oteli_raw *raw = (struct oteli_raw *)(void *)at;
    if (has_more)
        size = oteli_raw_write_more(raw, &open_span, end);
    else
        oteli_raw_write(raw, &open_span, size, end);
    assert_true(size + OTELI_RAW_SLACK <= bound);
    assert_int_equal(size % 8, 0);
    for (size_t i = bound; i < bound + BEHIND; i++)
        assert_int_equal(at[i], 0xee);

    memset(at + size, 0xdd, bound + BEHIND - size); /* the next record */
    size_t length;
    uint8_t *field = put_field((struct oteli_record *)(void *)raw, size, &length);
    struct oteli_record *record = oteli_raw_finish(raw);
    check_field(field, length, record);
    free(field);
    for (size_t i = size; i < bound + BEHIND; i++)
        assert_int_equal(at[i], 0xdd);
    assert_int_equal(raw->size, size);
    assert_int_equal((uintptr_t)record % 8, 0);
    assert_true((uint8_t *)record >= at &&
                oteli_record_message(record) + record->length <= at + size);
    *memory = at;
    return record;
}

static void check_against_composed(uint64_t end)
{
    uint8_t *memory;
    struct oteli_record *const finished = finish_raw(end, &memory);
    struct oteli_record *const expected = (struct oteli_record *)(void *)composed;
    assert_true(oteli_compose_bound(&open_span) <= sizeof composed);
    oteli_compose(expected, &open_span, end | OTELI_TICKS_BIT);
    size_t length;
    uint8_t *field = put_field(expected, expected->size, &length);
    oteli_record_convert(expected);
    check_field(field, length, expected);
    free(field);

    assert_int_equal(finished->length, expected->length);
    assert_memory_equal(oteli_record_message(finished), oteli_record_message(expected),
                        expected->length);
    assert_int_equal(finished->times_at, expected->times_at);
    assert_int_equal(finished->events_at, expected->events_at);
    assert_int_equal(finished->epoch, expected->epoch);
    assert_ptr_equal(finished->tracer, expected->tracer);
    assert_int_equal(finished->what & (OTELI_RECORD_RAW | OTELI_RECORD_ADDRESS |
                                       OTELI_RECORD_OUTERMOST | OTELI_RECORD_MOUNT),
                     0);
    free(memory);
}

AROUND_EACH(setup, NULL);

TEST(names_of_every_length_with_attributes_of_every_length)
{
    for (uint32_t i = 0; i <= LONGEST_NAME; i++)
        for (uint32_t k = 0; k <= MOST_ATTRIBUTES; k++) {
            describe((i + k) % ORIGINS, i, k, (uint8_t)(1 + k % 5));
            check_against_composed(1500);
        }
}

TEST(times_of_any_order)
{
    static const uint64_t ticks[] = {1000, 1001, 1100, 1000000};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++) {
            describe(ROOT, 4, 20, 1);
            open_span.start = ticks[i];
            check_against_composed(ticks[k]);
        }
}

/* Two events, one in ticks and one in nanoseconds. */
static uint32_t put_events(uint8_t *at)
{
    static const uint64_t times[] = {TICKS_OF_EVENT | OTELI_TICKS_BIT,
                                     UINT64_C(1700000000000000001)};
    const uint8_t *start = at;
    for (size_t i = 0; i < 2; i++) {
        at = oteli_put_bytes_head(at, 11, 9 + 4);
        at = oteli_put_fixed64(oteli_put_tag(at, 1, OTELI_WIRE_FIXED64), times[i]);
        at = oteli_put_bytes_field(at, 2, "ev", 2);
    }
    return (uint32_t)(at - start);
}

/* Each of what may be more, with and without the others. */
TEST(spans_that_have_more)
{
    enum { NAMES = OTELI_RAW_NAME_MOST - LONGEST_NAME + 1 };
    static uint8_t name[OTELI_RAW_NAME_MOST];
    uint8_t events[64];
    uint8_t link[640];
    uint8_t message[] = "why";
    const otel_span_context to =
        otel_span_context_make((const uint8_t[16]){1}, (const uint8_t[8]){2}, 1, true, NULL);
    const otel_link linked = {to, NULL, 0};
    const uint32_t events_length = put_events(events);
    const uint32_t link_length = oteli_put_link(link, &linked);
    memset(name, 'n', sizeof name);
    for (unsigned bits = 0; bits < 64 * NAMES; bits++) {
        const uint32_t name_length = bits / 64 == 0 ? 7 : LONGEST_NAME + bits / 64;
        struct oteli_unusual *unusual = &open_span.unusual;
        describe(bits % ORIGINS, name_length, bits % 50, 1);
        open_span.traits.is_unusual = OTELI_HAS_MORE;
        *unusual = (struct oteli_unusual){
            .name = {name, sizeof name, bits / 64 == 0 ? 0 : name_length},
            .dropped_attributes = (bits & 1) != 0 ? UINT32_MAX : 0,
            .events = {events, sizeof events, (bits & 2) != 0 ? events_length : 0},
            .dropped_events = (bits & 4) != 0 ? UINT32_MAX : 0,
            .links = {link, sizeof link, (bits & 8) != 0 ? link_length : 0},
            .dropped_links = (bits & 16) != 0 ? UINT32_MAX : 0,
            .status = (bits & 32) != 0 ? OTEL_SPAN_STATUS_ERROR : OTEL_SPAN_STATUS_UNSET,
            .message = {message, sizeof message, (bits & 32) != 0 ? sizeof message : 0}};

        check_against_composed(1500);
    }
}
