/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/expand_test.c - specification of sdk/pipeline/mount_expand.h: which bytes the
 * spans of a mount have, and those of a span whose name is an address; and of
 * sdk/view/address_names.h. protobuf-c says what is right. */
#include "api/context/tracestate_pool.h"
#include "common/text/utf8.h"
#include "common/wire.h"
#include "opentelemetry/proto/trace/v1/trace.pb-c.h"
#include "sdk/pipeline/mount_expand.h"
#include "sdk/view/address_names.h"

#include "tests/support/faked.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <string.h>

typedef Opentelemetry__Proto__Trace__V1__Span pb_span;
typedef Opentelemetry__Proto__Trace__V1__Span__Link pb_link;

enum { CAPACITY = 64, HAS_IS_REMOTE = 0x100, IS_REMOTE = 0x200 };

static const uint8_t remote_trace_id[16] = {0xa1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const uint8_t remote_span_id[8] = {0xb1, 2, 3, 4, 5, 6, 7, 8};

static otel_batch batch;
static otel_lines *lines; /* freed at the end */

static int begin(void **state)
{
    faked_begin(state);
    by_hand(1, &(otel_sdk_options){0});
    assert_true(oteli_batch_init(&batch, CAPACITY, NULL));
    return 0;
}

static int end(void **state)
{
    otel_set_name_resolver(NULL);
    otel_lines_free(lines);
    lines = NULL;
    oteli_batch_fini(&batch);
    return by_hand_end(state);
}

static otel_span enter(const char *name)
{
    return otel_span_enter(hand.tracer, name, NULL);
}

/* Two trees: a bare span; and one with everything a span can have, over two others. */
static void collect_all_kinds(void)
{
    const otel_span_context elsewhere = otel_span_context_make(
        remote_trace_id, remote_span_id, OTEL_TRACE_FLAG_SAMPLED, true, "k=v");
    const otel_attribute attribute = otel_attribute_of("key", otel_value_string("value"));
    const otel_link link = {elsewhere, &attribute, 1};
    static char text[400];
    memset(text, 'x', sizeof text - 1);

    otel_lines_begin();
    otel_span_end(enter(""));
    const otel_span all = otel_span_enter(
        hand.tracer, "all",
        OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_CLIENT, .links = &link, .link_count = 1,
                          .attributes = &attribute, .attribute_count = 1));
    oteli_fake_clock.ticks += 1000;
    otel_span_add_event(all, "first", &attribute, 1);
    otel_span_add_event(all, "second", NULL, 0);
    const otel_span child = enter("a child whose name is too long to be kept inline, by far");
    otel_span_set_string(child, "text", text);
    otel_span_fail(child, "it went wrong");
    const otel_span eventful = enter("grandchild");
    otel_span_add_event(eventful, "third", NULL, 0);
    oteli_fake_clock.ticks += 1000;
    otel_span_end(eventful);
    otel_span_end(child);
    otel_span_set_status(all, OTEL_SPAN_STATUS_OK, NULL);
    for (int i = 0; i < 200; i++)
        otel_span_add_link(all, &link);
    otel_span_end(all);
    lines = otel_lines_end();
    assert_int_equal(otel_lines_size(lines), 4);
}

/* What a test says of a mount. */
struct mounting {
    const char *tracestate;
    uint64_t key;
    bool is_remote;
    bool has_link;
};

static const struct mounting bare = {NULL, 0x0123456789abcdef, false, false};

static struct oteli_record *write_mount(const struct mounting *as)
{
    static _Alignas(8) uint8_t bytes[1024];
    memset(bytes, 0, sizeof bytes);
    struct oteli_record *record = (struct oteli_record *)(void *)bytes;
    struct oteli_mount *mount = (struct oteli_mount *)(void *)oteli_record_message(record);
    record->size = sizeof bytes;
    record->what = OTELI_RECORD_MOUNT;
    oteli_hold_join(lines);
    mount->lines = lines;
    memset(mount->trace_id, 0x77, sizeof mount->trace_id);
    mount->parent_id = 0x1122334455667788;
    mount->key = as->key;
    mount->wire_flags = HAS_IS_REMOTE | OTEL_TRACE_FLAG_SAMPLED;
    mount->outer_flags = mount->wire_flags | (as->is_remote ? (uint32_t)IS_REMOTE : 0);
    if (as->tracestate != NULL)
        mount->tracestate = oteli_tracestate_retain(oteli_tracestate_make(
            as->tracestate, strlen(as->tracestate), (const uint8_t *)mount->trace_id));
    if (as->has_link) {
        uint8_t link[32];
        uint8_t *at = oteli_put_bytes_field(link, 1, remote_trace_id, 16);
        at = oteli_put_bytes_field(at, 2, remote_span_id, 8);
        const size_t length = (size_t)(at - link);
        mount->link_length =
            (uint32_t)(oteli_put_bytes_field(mount->link, 13, link, length) - mount->link);
    }
    return record;
}

static const struct oteli_record *record_at(size_t index)
{
    const uint8_t *at = lines->records.data;
    for (; index != 0; index--)
        at += ((const struct oteli_record *)(const void *)at)->size;
    return (const struct oteli_record *)(const void *)at;
}

static const uint8_t *message_of(const struct oteli_record *record)
{
    return oteli_record_message((struct oteli_record *)(uintptr_t)record);
}

static pb_span *unpack(const struct oteli_record *record)
{
    pb_span *span = opentelemetry__proto__trace__v1__span__unpack(NULL, record->length,
                                                                  (const uint8_t *)(record + 1));
    assert_non_null(span);
    return span;
}

static void free_span(pb_span *span)
{
    opentelemetry__proto__trace__v1__span__free_unpacked(span, NULL);
}

/* Where the first field of a number begins in the message; 0: it has none. */
static uint32_t place_of(const struct oteli_record *record, uint32_t number)
{
    const uint8_t *const message = message_of(record);
    const uint8_t *at = message;
    struct oteli_field field;
    while (oteli_next_field(&at, message + record->length, &field))
        if (field.number == number)
            return (uint32_t)(field.start - message);
    return 0;
}

static void check_bytes(const struct oteli_record *copy, const pb_span *span)
{
    static uint8_t packed[1 << 16];
    assert_true(protobuf_c_message_get_packed_size(&span->base) <= sizeof packed);
    const size_t length = protobuf_c_message_pack(&span->base, packed);
    assert_int_equal(copy->length, length);
    assert_memory_equal(message_of(copy), packed, length);
    assert_int_equal(copy->times_at, place_of(copy, 7));
    assert_int_equal(copy->events_at, place_of(copy, 11));
}

/* Exactly the bytes that protobuf-c gives for the same span with what the mount changes. */
static void check_copy(const struct oteli_record *copy, const struct oteli_record *from,
                       const struct oteli_mount *mount, const struct mounting *as)
{
    const bool is_outermost = (from->what & OTELI_RECORD_OUTERMOST) != 0;
    pb_span *const original = unpack(from);
    pb_span span = *original;
    uint64_t ids[2] = {0, mount->parent_id};
    memcpy(&ids[0], span.span_id.data, 8);
    ids[0] ^= mount->key;
    if (!is_outermost) {
        memcpy(&ids[1], span.parent_span_id.data, 8);
        ids[1] ^= mount->key;
    }
    span.trace_id.data = (uint8_t *)(uintptr_t)mount->trace_id;
    span.span_id.data = (uint8_t *)&ids[0];
    span.parent_span_id = (ProtobufCBinaryData){8, (uint8_t *)&ids[1]};
    span.trace_state = (char *)(uintptr_t)(as->tracestate != NULL ? as->tracestate : "");
    span.flags = is_outermost ? mount->outer_flags : mount->wire_flags;
    pb_link added = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__LINK__INIT;
    pb_link *links[256];
    added.trace_id = (ProtobufCBinaryData){16, (uint8_t *)(uintptr_t)remote_trace_id};
    added.span_id = (ProtobufCBinaryData){8, (uint8_t *)(uintptr_t)remote_span_id};
    if (as->has_link && is_outermost) {
        if (span.n_links != 0)
            memcpy(links, span.links, span.n_links * sizeof *links);
        links[span.n_links++] = &added;
        span.links = links;
    }

    check_bytes(copy, &span);
    assert_int_equal(copy->what, 0);
    assert_ptr_equal(copy->tracer, from->tracer);
    free_span(original);
}

static void expand_all(const struct mounting *as)
{
    struct oteli_record *record = write_mount(as);
    const struct oteli_mount *mount = oteli_record_mount(record);
    uint64_t lost = 0;
    const size_t first = batch.count;
    assert_int_equal(oteli_record_spans(record), otel_lines_size(lines));

    assert_true(oteli_expand_mount(&batch, record, &lost));

    assert_int_equal(lost, 0);
    assert_int_equal(batch.count - first, otel_lines_size(lines));
    for (size_t i = first; i < batch.count; i++)
        check_copy(batch.records[i], record_at(i - first), mount, as);
}

AROUND_EACH(begin, end);

TEST(the_spans_of_a_mount_are_what_protobuf_packs)
{
    char longest[OTELI_TRACESTATE_BYTES + 1] = "";
    for (int i = 0; i < 4; i++) /* with 512 bytes in all */
        snprintf(longest + strlen(longest), sizeof longest - strlen(longest), "%s%c=%0*d",
                 i == 0 ? "" : ",", 'a' + i, i == 0 ? 126 : 125, i);
    assert_int_equal(strlen(longest), OTELI_TRACESTATE_BYTES);
    const struct mounting rows[] = {
        bare,
        {"a=1,b=2", 1, false, false},
        {NULL, UINT64_MAX - 1, true, false},
        {NULL, 3, false, true},
        {"a=1", UINT64_C(1) << 63, true, true},
        {longest, 4, true, true},
    };
    collect_all_kinds();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        batch.count = 0;
        expand_all(&rows[i]);
    }
}

/* A trace that was taken in process has a parent, flags and a tracestate of its own. */
TEST(a_trace_that_was_taken_moves_into_the_new_one)
{
    const struct mounting rows[] = {
        bare,
        {"new=1", 1, true, true},
        {"a=1,b=2,c=3,d=4,e=5,f=6", 1, false, false},
    };
    const otel_span_context remote = otel_span_context_make(
        remote_trace_id, remote_span_id, OTEL_TRACE_FLAG_SAMPLED, true, "old=1,older=2");
    const otel_context context =
        otel_context_with_span(otel_current_context(), otel_span_wrap(&remote));
    const otel_span root =
        otel_span_enter(hand.tracer, "root", OTEL_SPAN_OPTIONS(.parent = &context, .hold = true));
    otel_span_end(enter("child"));
    otel_span_add_event(root, "event", NULL, 0);
    lines = otel_span_collect(root);
    assert_int_equal(otel_lines_size(lines), 2);
    pb_span *span = unpack(record_at(1));
    assert_string_equal(span->trace_state, "old=1,older=2");
    free_span(span);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expand_all(&rows[i]);
}

/* The place of a tracestate that nobody retains is taken again in time. */
TEST(a_mount_lets_go_of_its_tracestate_when_it_is_done)
{
    collect_all_kinds();
    const struct mounting as = {"a=1", 1, false, false};
    struct oteli_record *record = write_mount(&as);
    const struct oteli_mount mount = *oteli_record_mount(record);
    uint64_t lost = 0;
    char text[OTELI_TRACESTATE_BYTES + 1];
    const uint8_t *const trace_id = (const uint8_t *)mount.trace_id;

    for (unsigned i = 0; i < 20000; i++)
        oteli_tracestate_make("b=2", 3, trace_id);
    assert_int_equal(oteli_tracestate_copy(mount.tracestate, trace_id, text, sizeof text), 3);
    assert_true(oteli_expand_mount(&batch, record, &lost));
    for (unsigned i = 0; i < 20000; i++)
        oteli_tracestate_make("b=2", 3, trace_id);

    assert_int_equal(oteli_tracestate_copy(mount.tracestate, trace_id, text, sizeof text), 0);
}

static const char *answer; /* for all addresses but 0x1000 */
static size_t answer_length;

static size_t resolve(const void *address, char *name, size_t size)
{
    if (address == (const void *)0x1000)
        return 0;
    memcpy(name, answer, answer_length < size ? answer_length : size);
    return answer_length;
}

static void will_answer(const char *text, size_t length)
{
    answer = text;
    answer_length = length;
    otel_set_name_resolver(resolve);
}

static void collect_addresses(void)
{
    otel_lines_begin();
    const otel_span known = otel_span_enter_address(hand.tracer, (const void *)0x2000);
    otel_span_set_int(known, "n", 1);
    otel_span_add_event(known, "event", NULL, 0);
    otel_span_end(otel_span_enter_address(hand.tracer, (const void *)0x1000));
    otel_span_end(enter("by name"));
    otel_span_end(known);
    lines = otel_lines_end();
}

static void check_name(size_t index, const char *name)
{
    pb_span *span = unpack(batch.records[index]);
    assert_string_equal(span->name, name);
    check_bytes(batch.records[index], span);
    assert_int_equal(batch.records[index]->what, 0);
    free_span(span);
}

TEST(addresses_get_names)
{
    collect_addresses();
    uint64_t lost = 0;
    will_answer("charge", 6);
    otel_span_view span_in_set; /* the resolver belongs to the exporter thread */
    size_t cursor = 0;
    assert_true(otel_lines_next(lines, &cursor, &span_in_set));
    assert_int_equal(span_in_set.name.length, 6);
    assert_memory_equal(span_in_set.name.data, "0x1000", 6);
    assert_true(oteli_expand_mount(&batch, write_mount(&bare), &lost));
    assert_int_equal(batch.address_count, 2);

    assert_int_equal(oteli_expand_names(&batch), 0);

    assert_int_equal(batch.address_count, 0);
    check_name(0, "0x1000");
    check_name(1, "by name");
    check_name(2, "charge");
    pb_span *span = unpack(batch.records[2]);
    assert_int_equal(span->n_attributes, 1);
    assert_int_equal(span->n_events, 1);
    free_span(span);
}

/* ---- sdk/view/address_names.h
 * --------------------------------------------------------------------------------- */

static size_t look_up(uintptr_t address, char name[OTELI_NAME_MOST])
{
    return oteli_name_look_up(&address, sizeof address, name);
}

static void assert_name(uintptr_t address, const char *expected)
{
    char name[OTELI_NAME_MOST];
    assert_int_equal(look_up(address, name), strlen(expected));
    assert_memory_equal(name, expected, strlen(expected));
}

TEST(a_name_is_the_resolvers_and_otherwise_a_number)
{
    static const uintptr_t addresses[] = {
        0, 9, 0x10, 0xabc, 0x401136, UINTPTR_MAX >> 4 | 1, UINTPTR_MAX};
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "0x%llx", (unsigned long long)addresses[i]);
        assert_name(addresses[i], expected);
    }
    will_answer("charge", 6);
    assert_name(0x1000, "0x1000"); /* which it does not know */
    assert_name(0x1234, "charge");
}

TEST(a_long_name_is_cut_between_characters)
{
    static const char *const characters[] = {"x", "\xc3\xbc", "\xe0\xa4\xa9", "\xe2\x82\xac",
                                             "\xf0\x9f\x98\x80"};
    static char text[OTELI_NAME_MOST + 8];
    for (size_t i = 0; i < sizeof characters / sizeof characters[0]; i++) {
        const size_t size = strlen(characters[i]);
        for (size_t before = 0; before <= 5; before++) {
            char name[OTELI_NAME_MOST];
            memset(text, 'a', sizeof text);
            memcpy(text + OTELI_NAME_MOST - before, characters[i], size);
            will_answer(text, OTELI_NAME_MOST - before + size);

            const size_t length = look_up(1, name);

            const bool fits = size <= before;
            assert_int_equal(length, OTELI_NAME_MOST - before + (fits ? size : 0));
            assert_memory_equal(name, text, length);
        }
    }
}

/* spec: X19 trace.proto MUST stable */
TEST(bad_utf8_in_a_name_is_replaced)
{
    static char text[2 * OTELI_NAME_MOST];
    char name[OTELI_NAME_MOST];
    will_answer("a\xff"
                "b",
                3);
    assert_name(1, "a\xef\xbf\xbd"
                   "b");
    memset(text, 0x80, sizeof text); /* nothing good, and too long */
    will_answer(text, sizeof text);

    const size_t length = look_up(1, name);

    assert_int_equal(length, OTELI_NAME_MOST / 3 * 3);
    assert_true(oteli_utf8_is_valid(name, length));
}
