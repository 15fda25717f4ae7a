/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/values_test.c - specification of api/encode/key_value.h, with protobuf-c as the
 * oracle. */
#include "api/encode/key_index.h"
#include "api/encode/key_value.h"
#include "api/encode/plain_value.h"
#include "opentelemetry/proto/common/v1/common.pb-c.h"
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/strict.h"
#include "tests/support/unit.h"

#include <otel/context.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD = 9, ROOM = 256 * 1024, GUARD = 0xA5, DEPTH = 500 };

/* That the way in one pass writes `size` bytes that are those of a plan, or that it is not for this
 * attribute. Returns whether it is. */
static bool check_plain(const char *key, const otel_value *value, size_t limit,
                        const uint8_t *planned, size_t size)
{
    static uint8_t plain[ROOM];
    const otel_slice slice = otel_slice_of(key);
    const size_t room = oteli_plain_room(slice, value, limit);
    if (room == 0)
        return false;
    assert_true(room < ROOM);
    memset(plain, GUARD, sizeof plain);
    const uint8_t *end = oteli_plain_put(plain, FIELD, slice, value);
    for (size_t i = room; i < ROOM; i++)
        assert_int_equal(plain[i], GUARD);
    if (end == NULL)
        return false;
    assert_int_equal(end - plain, size);
    assert_memory_equal(plain, planned, size);
    return true;
}

/* The KeyValue message that we write for a value, without the field's head. */
static size_t write_value(const char *key, otel_value value, size_t limit, uint8_t *out)
{
    static uint8_t field_bytes[ROOM];
    struct oteli_key_value plan;
    assert_true(oteli_key_value_plan(&plan, key, strlen(key), &value, limit, 31));
    assert_true(plan.bytes < ROOM);
    memset(field_bytes, GUARD, sizeof field_bytes);
    const uint8_t *end = oteli_key_value_put(field_bytes, FIELD, &plan);
    assert_int_equal(end - field_bytes, plan.bytes);
    assert_int_equal(*end, GUARD);
    const bool is_kept = plan.key_bytes == plan.key_length && plan.value.type == value.type &&
                         plan.value.length == value.length;
    const bool is_plain = value.type <= OTEL_VALUE_DOUBLE && is_kept &&
                          (value.type != OTEL_VALUE_STRING || value.as.string != NULL);
    assert_int_equal(check_plain(key, &value, limit, field_bytes, plan.bytes), is_plain);

    const uint8_t *at = field_bytes;
    struct oteli_field field = {0};
    assert_true(oteli_next_field(&at, end, &field));
    assert_ptr_equal(at, end);
    assert_int_equal(field.number, FIELD);
    memcpy(out, field.bytes, field.length);
    return field.length;
}

/* As protobuf-c packs it, by way of its structs. */
static size_t oracle_pack_key_value(const char *key, const otel_value *value, uint8_t *out)
{
    Opentelemetry__Proto__Common__V1__KeyValue pair =
        OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE__INIT;
    const struct strict_bytes any = strict_value(value, SIZE_MAX, DEPTH);
    pair.key = (char *)(uintptr_t)key;
    pair.value = opentelemetry__proto__common__v1__any_value__unpack(NULL, any.length, any.data);
    assert_non_null(pair.value);
    const size_t size = protobuf_c_message_pack(&pair.base, out);
    opentelemetry__proto__common__v1__any_value__free_unpacked(pair.value, NULL);
    free(any.data);
    return size;
}

/* That a value is written as protobuf-c packs what `kept` says. */
static void check_kept(const char *key, otel_value value, size_t limit, const char *kept_key,
                       otel_value kept)
{
    static uint8_t ours[ROOM];
    static uint8_t theirs[ROOM];
    const size_t size = write_value(key, value, limit, ours);
    assert_int_equal(size, oracle_pack_key_value(kept_key, &kept, theirs));
    assert_memory_equal(ours, theirs, size);
}

static void check_same(const char *key, otel_value value)
{
    check_kept(key, value, SIZE_MAX, key, value);
}

static char *filled(char *text, size_t length)
{
    memset(text, 'x', length);
    text[length] = '\0';
    return text;
}

TEST(lengths_on_both_sides_of_a_longer_varint)
{
    static const size_t lengths[] = {1, 119, 120, 121, 126, 127, 128, 4095, 4096, 16383, 16384};
    static char text[16400];
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        check_same("key", otel_value_string(filled(text, lengths[i])));
        check_same("key", otel_value_bytes(text, lengths[i]));
        check_same(text, otel_value_int(1));
    }
}

/* Messages in messages, whose lengths are just before and just behind a longer varint. */
TEST(nested_values_are_what_protobuf_c_packs)
{
    static const int64_t integers[] = {1, -1, 300};
    static char text[16400];
    for (size_t length = 0; length < 16390; length += length < 140 || length > 16370 ? 1 : 180) {
        const otel_value inner[] = {otel_value_string(filled(text, length)), otel_value_empty(),
                                    otel_value_int_array(integers, 3)};
        const otel_attribute entries[] = {
            otel_attribute_of("", otel_value_double(2.5)),
            otel_attribute_of("array", otel_value_array(inner, 3)),
            otel_attribute_of("empty", otel_value_map(NULL, 0)),
            otel_attribute_of(length < 200 && length != 0 ? text : "b", otel_value_bool(false))};
        const otel_value outer[] = {otel_value_map(entries, 4), otel_value_array(NULL, 0),
                                    otel_value_map(&entries[1], 2)};
        check_same("array", otel_value_array(inner, 3));
        check_same("map", otel_value_map(entries, 4));
        check_same("both", otel_value_array(outer, 3));
    }
}

TEST(a_value_that_branches_for_ever_has_no_plan)
{
    static otel_value endless[1000];
    for (size_t i = 0; i < 1000; i++)
        endless[i] = otel_value_array(endless, 1000);
    struct oteli_key_value plan;

    assert_false(oteli_key_value_plan(&plan, "key", 3, &endless[0], SIZE_MAX, 31));
}

TEST(a_key_that_is_not_utf8_is_made_so)
{
    check_kept("a\xff", otel_value_int(1), SIZE_MAX, "a\xef\xbf\xbd", otel_value_int(1));
    check_kept("\xc3", otel_value_int(1), SIZE_MAX, "\xef\xbf\xbd", otel_value_int(1));
}

TEST(an_unknown_type_is_an_empty_value)
{
    otel_value value = otel_value_int(1);
    value.type = (otel_value_type)77;
    check_kept("key", value, SIZE_MAX, "key", otel_value_empty());
}

TEST(an_empty_key_and_what_is_too_large_have_no_plan)
{
    struct oteli_key_value plan;
    const otel_value one = otel_value_int(1);
    const otel_value large = otel_value_bytes("x", SIZE_MAX / 2);

    assert_false(oteli_key_value_plan(&plan, "", 0, &one, SIZE_MAX, 31));
    assert_false(oteli_key_value_plan(&plan, "key", 3, &large, SIZE_MAX, 31));
}

TEST(a_list_has_each_key_once_and_no_more_than_its_limit)
{
    const otel_attribute attributes[] = {
        otel_attribute_of("a", otel_value_int(1)),  otel_attribute_of("", otel_value_int(2)),
        otel_attribute_of("b", otel_value_int(3)),  otel_attribute_of("a", otel_value_int(4)),
        otel_attribute_of(NULL, otel_value_int(5)), otel_attribute_of("c", otel_value_int(6)),
    };
    static const struct {
        uint32_t limit;
        uint32_t dropped;
        const char *kept;
    } rows[] = {{128, 0, "a=4 b=3 c=6 "},
                {3, 0, "a=4 b=3 c=6 "},
                {2, 1, "a=4 b=3 "},
                {1, 2, "a=4 "},
                {0, 3, ""}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t bytes[256];
        uint32_t dropped = 99;

        const size_t size = oteli_key_values_size(attributes, 6, rows[i].limit, SIZE_MAX, &dropped);
        const uint8_t *end = oteli_key_values_put(bytes, 3, attributes, 6, rows[i].limit, SIZE_MAX);

        assert_int_equal(end - bytes, size);
        assert_int_equal(dropped, rows[i].dropped);
        assert_string_equal(recorder_attributes(bytes, size, 3), rows[i].kept);
    }
}

TEST(keys_of_a_list_that_become_the_same_are_the_same)
{
    const otel_attribute attributes[] = {
        otel_attribute_of("a\xff", otel_value_int(1)),
        otel_attribute_of("a\xff\xff", otel_value_int(2)),
        otel_attribute_of("a\xef\xbf\xbd", otel_value_int(3)),
        otel_attribute_of("a\xfe", otel_value_int(4)),
    };
    uint8_t bytes[256];
    uint32_t dropped;

    const size_t size = oteli_key_values_size(attributes, 4, 8, SIZE_MAX, &dropped);
    oteli_key_values_put(bytes, 3, attributes, 4, 8, SIZE_MAX);

    assert_string_equal(recorder_attributes(bytes, size, 3),
                        "a\xef\xbf\xbd=4 a\xef\xbf\xbd\xef\xbf\xbd=2 ");
    assert_int_equal(dropped, 0);
}

enum { MANY = 1000, DIFFERENT = 100 };

/* 100 keys that come again and again, among them an empty one, one that is missing, and two that
 * become the same. */
static void fill_many(otel_attribute many[MANY])
{
    static char names[DIFFERENT][8];
    for (int i = 0; i < MANY; i++) {
        const int name = i * 7 % DIFFERENT;
        snprintf(names[name], sizeof names[name], "%d", name);
        many[i] = otel_attribute_of(names[name], otel_value_int(i));
        if (name >= DIFFERENT - 4)
            many[i] = otel_attribute_of(
                (const char *const[]){"", NULL, "a\xff", "a\xfe"}[DIFFERENT - 1 - name],
                otel_value_int(i));
    }
}

/* A list that is long enough for an index of its keys, with one and without memory for one. */
TEST(long_lists_are_as_short_ones)
{
    static uint8_t with[ROOM];
    static uint8_t without[ROOM];
    otel_attribute many[MANY];
    fill_many(many);
    for (uint32_t limit = 90; limit < 100; limit++) {
        uint32_t dropped;
        oteli_leaks_begin();
        const size_t size = oteli_key_values_size(many, MANY, limit, SIZE_MAX, &dropped);
        assert_int_equal(dropped, limit < 97 ? 97 - limit : 0);
        assert_int_equal(oteli_key_values_put(with, 3, many, MANY, limit, SIZE_MAX) - with, size);
        for (size_t nth = 1; nth <= 2; nth++) {
            uint32_t still_dropped;
            oteli_leaks_fail_at(nth);
            assert_int_equal(oteli_key_values_size(many, MANY, limit, SIZE_MAX, &still_dropped),
                             size);
            assert_int_equal(still_dropped, dropped);
            oteli_leaks_fail_at(nth);
            oteli_key_values_put(without, 3, many, MANY, limit, SIZE_MAX);
            assert_true(oteli_leaks_failed());
            assert_memory_equal(with, without, size);
        }
        oteli_leaks_check();
    }
}

TEST(long_maps_are_as_short_ones)
{
    static uint8_t with[ROOM];
    static uint8_t without[ROOM];
    otel_attribute many[MANY];
    fill_many(many);
    oteli_leaks_begin();
    const size_t size = write_value("map", otel_value_map(many, MANY), SIZE_MAX, with);
    oteli_leaks_fail_at(1);
    assert_int_equal(write_value("map", otel_value_map(many, MANY), SIZE_MAX, without), size);
    assert_true(oteli_leaks_failed());
    oteli_leaks_check();
    assert_memory_equal(with, without, size);
}

TEST(an_empty_list_is_nothing)
{
    uint32_t dropped = 9;
    uint8_t byte = GUARD;

    assert_int_equal(oteli_key_values_size(NULL, 0, 8, SIZE_MAX, &dropped), 0);
    assert_int_equal(dropped, 0);
    assert_ptr_equal(oteli_key_values_put(&byte, 3, NULL, 0, 8, SIZE_MAX), &byte);
}

TEST(text_is_copied_as_utf8)
{
    uint8_t out[16];

    assert_int_equal(oteli_text_size("ab\xff", 3), 5);
    assert_ptr_equal(oteli_text_put(out, "ab\xff", 3, 5), out + 5);
    assert_memory_equal(out, "ab\xef\xbf\xbd", 5);
    assert_int_equal(oteli_text_size(NULL, 0), 0);
    assert_ptr_equal(oteli_text_put(out, NULL, 0, 0), out);
}

/* One bad byte, anywhere in a text of any length, is seen while it is copied. */
TEST(texts_are_looked_at_while_they_are_copied)
{
    enum { LONGEST = 150 };
    char text[LONGEST];
    uint8_t out[LONGEST + 1];
    for (size_t length = 0; length <= LONGEST; length++)
        for (size_t bad = 0; bad <= length; bad++) {
            for (size_t i = 0; i < length; i++)
                text[i] = (char)('a' + i % 26);
            if (bad < length)
                text[bad] = (char)0x80;
            memset(out, GUARD, sizeof out);
            const uint8_t *end = oteli_text_copy(out, text, length);
            assert_ptr_equal(end, bad < length ? NULL : out + length);
            assert_memory_equal(out, text, length);
            assert_int_equal(out[length], GUARD);
            if (bad + 1 >= length)
                continue;
            memcpy(text + bad, "\xc3\xa4", 2);
            assert_ptr_equal(oteli_text_copy(out, text, length), out + length);
        }
}

/* --- attributes of contexts: api/span/context_attributes.c --- */

/* Three places with keys that come again and again; with memory for an index of the keys and
 * without. Without memory for a list of them there are none. */
TEST(many_attributes_are_as_few)
{
    static char names[DIFFERENT][8];
    otel_attribute many[MANY];
    otel_attribute with[MANY];
    otel_attribute without[MANY];
    for (int i = 0; i < MANY; i++) {
        const int name = i * 7 % DIFFERENT;
        snprintf(names[name], sizeof names[name], "%d", name);
        many[i] = otel_attribute_of(i % 9 != 0 ? names[name] : NULL, otel_value_int(i));
    }
    otel_context_attributes places[4];
    otel_context context =
        otel_context_with_attributes((otel_context){.values = NULL}, many, 300, &places[0]);
    context = otel_context_with_attributes(context, many + 300, 610, &places[1]);
    context = otel_context_with_attributes(context, NULL, 0, &places[2]);
    context = otel_context_with_attributes(context, many + 910, 55, &places[3]);
    oteli_leaks_fail_at(1);
    assert_int_equal(otel_context_get_attributes(&context, without, MANY), 0);
    for (size_t nth = 2; nth <= 3; nth++) {
        assert_int_equal(otel_context_get_attributes(&context, with, MANY), DIFFERENT);
        oteli_leaks_fail_at(nth);
        assert_int_equal(otel_context_get_attributes(&context, without, MANY), DIFFERENT);
        assert_true(oteli_leaks_failed());
        for (size_t i = 0; i < DIFFERENT; i++) {
            assert_string_equal(with[i].key, without[i].key);
            assert_int_equal(with[i].value.as.integer, without[i].value.as.integer);
        }
    }
    assert_int_equal(with[0].value.as.integer, 910);
    assert_int_equal(otel_context_get_attributes(&context, with, 3), DIFFERENT);
}

/* Of lists, maps and contexts. Each key compared with each, this would not come back. */
TEST(very_many_keys_come_to_an_end)
{
    enum { COUNT = 300000 };
    char(*names)[12] = malloc(COUNT * sizeof *names);
    otel_attribute *all = malloc(COUNT * sizeof *all);
    otel_context_attributes *places = malloc(COUNT / 1000 * sizeof *places);
    assert_true(names != NULL && all != NULL && places != NULL);
    otel_context context = {.values = NULL};
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "%07zu", i);
        all[i] = otel_attribute_of(names[i], otel_value_bool(true));
        if (i % 1000 == 999)
            context = otel_context_with_attributes(context, all + i - 999, 1000, &places[i / 1000]);
    }
    uint32_t dropped;
    oteli_key_values_size(all, COUNT, 128, SIZE_MAX, &dropped);
    assert_int_equal(dropped, COUNT - 128);
    struct oteli_key_value plan;
    const otel_value map = otel_value_map(all, COUNT);
    assert_true(oteli_key_value_plan(&plan, "map", 3, &map, SIZE_MAX, 31));
    assert_int_equal(plan.bytes, 1 + 4 + 5 + 1 + 4 + 1 + 4 + COUNT * 15);
    assert_int_equal(otel_context_get_attributes(&context, NULL, 0), COUNT);
    free(places);
    free(all);
    free(names);
}
