/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/short_test.c - specification of api/active/fast_attribute.h: the short way to an
 * attribute writes what the way for any attribute does, or nothing at all. */
#include "api/active/fast_attribute.h"
#include "tests/support/unit.h"

#include <math.h>
#include <string.h>

enum { LONGEST = 140 };
static const struct oteli_limits wide = {SIZE_MAX, 128, 128, 128, 128, 128, false, 64};

/* A place with room, as it is once it has had attributes. */
static void make_place(struct oteli_active_span *active)
{
    const otel_value value = otel_value_int(1);
    static char large[1024];
    memset(active, 0, sizeof *active);
    const otel_value text = otel_value_string_n(large, sizeof large);
    oteli_active_set(active, &wide, "large", 5, &text);
    active->attributes.length = 0;
    active->attribute_count = 0;
    active->attribute_filter = 0;
    oteli_active_set(active, &wide, "first", 5, &value);
}

static void check_same_attributes(const struct oteli_active_span *one,
                                  const struct oteli_active_span *other)
{
    assert_int_equal(one->attribute_count, other->attribute_count);
    assert_int_equal(one->attributes.length, other->attributes.length);
    assert_memory_equal(one->attributes.data, other->attributes.data, one->attributes.length);
    assert_true(one->attribute_filter == other->attribute_filter);
}

static bool set_short_number(struct oteli_active_span *active, const struct oteli_limits *limits,
                             const char *key, size_t key_length, uint64_t bits, uint32_t any)
{
    oteli_short_put *const put = any != OTELI_SHORT_DOUBLE && bits <= OTELI_SHORT_NUMBER_MOST
                                     ? oteli_short_small
                                     : oteli_short_number;
    return oteli_set_short_number(active, limits, key, key_length, bits, any, put);
}

static bool set_short(struct oteli_active_span *active, const char *key, size_t key_length,
                      const otel_value *value)
{
    if (value->type == OTEL_VALUE_STRING)
        return oteli_set_short_string(active, &wide, key, key_length, value->as.string,
                                      value->length) == OTELI_SHORT;
    if (value->type == OTEL_VALUE_INT)
        return set_short_number(active, &wide, key, key_length, (uint64_t)value->as.integer,
                                OTELI_SHORT_INT);
    if (value->type == OTEL_VALUE_DOUBLE)
        return set_short_number(active, &wide, key, key_length, oteli_double_bits(value->as.real),
                                OTELI_SHORT_DOUBLE);
    return set_short_number(active, &wide, key, key_length, value->as.boolean, OTELI_SHORT_BOOL);
}

/* Set by the short way, which says whether it could, or wrote nothing; and by the other. */
static void check_both_ways(struct oteli_active_span *brief, struct oteli_active_span *full,
                            const char *key, size_t key_length, const otel_value *value,
                            bool is_short)
{
    const struct oteli_buffer attributes = brief->attributes;
    const bool done = set_short(brief, key, key_length, value);
    assert_int_equal(done, is_short);
    if (is_short) {
        oteli_active_set(full, &wide, key, key_length, value);
        check_same_attributes(brief, full);
    } else {
        assert_int_equal(brief->attributes.length, attributes.length);
        assert_int_equal(brief->attribute_count, 1);
    }
    brief->attributes.length = full->attributes.length = attributes.length;
    brief->attribute_count = full->attribute_count = 1;
    brief->attribute_filter = full->attribute_filter = oteli_key_bit("first", 5);
}

static bool is_new_to_the_filter(const struct oteli_active_span *active, const char *key,
                                 size_t length)
{
    return (active->attribute_filter & oteli_key_bit(key, length)) == 0;
}

TEST(short_strings_are_the_same_bytes_as_any)
{
    struct oteli_active_span brief;
    struct oteli_active_span full;
    make_place(&brief);
    make_place(&full);
    char key[LONGEST + 1];
    char value[LONGEST + 1];
    size_t shorts = 0;
    for (size_t i = 0; i <= LONGEST; i++) {
        key[i] = (char)('a' + i * 7 % 26);
        value[i] = (char)('A' + i * 11 % 26);
    }
    for (size_t key_length = 0; key_length <= LONGEST; key_length++)
        for (size_t length = 0; length <= LONGEST; length++) {
            const bool is_short = key_length >= 4 && key_length <= 100 &&
                                  6 + key_length + length <= 127 &&
                                  is_new_to_the_filter(&brief, key, key_length);
            const otel_value any = otel_value_string_n(value, length);
            check_both_ways(&brief, &full, key, key_length, &any, is_short);
            shorts += is_short;
        }
    assert_true(shorts > 4000);
    oteli_active_fini(&brief);
    oteli_active_fini(&full);
}

TEST(short_integers_are_the_same_bytes_as_any)
{
    struct oteli_active_span brief;
    struct oteli_active_span full;
    make_place(&brief);
    make_place(&full);
    char key[LONGEST + 1];
    for (size_t i = 0; i <= LONGEST; i++)
        key[i] = (char)('a' + i * 7 % 26);
    for (size_t key_length = 0; key_length <= LONGEST; key_length++)
        for (unsigned bits = 0; bits <= 64; bits++)
            for (int64_t near = -1; near <= 1; near++) {
                const uint64_t power = bits == 64 ? 0 : UINT64_C(1) << bits;
                const otel_value any = otel_value_int((int64_t)(power + (uint64_t)near));
                const bool is_short = key_length >= 4 && key_length <= 100 &&
                                      is_new_to_the_filter(&brief, key, key_length);
                check_both_ways(&brief, &full, key, key_length, &any, is_short);
            }
    oteli_active_fini(&brief);
    oteli_active_fini(&full);
}

TEST(short_bools_and_doubles_are_the_same_bytes_as_any)
{
    struct oteli_active_span brief;
    struct oteli_active_span full;
    make_place(&brief);
    make_place(&full);
    static const double reals[] = {0.0, -0.0, 1.0, -2.5, 1e300, 5e-324, INFINITY, NAN};
    otel_value values[2 + sizeof reals / sizeof *reals] = {otel_value_bool(false),
                                                           otel_value_bool(true)};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        values[2 + i] = otel_value_double(reals[i]);
    char key[LONGEST + 1];
    for (size_t i = 0; i <= LONGEST; i++)
        key[i] = (char)('a' + i * 7 % 26);
    for (size_t key_length = 0; key_length <= LONGEST; key_length++)
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            check_both_ways(&brief, &full, key, key_length, &values[i],
                            key_length >= 4 && key_length <= 100 &&
                                is_new_to_the_filter(&brief, key, key_length));
    oteli_active_fini(&brief);
    oteli_active_fini(&full);
}

TEST(what_is_not_ascii_is_not_short)
{
    struct oteli_active_span brief;
    struct oteli_active_span full;
    make_place(&brief);
    make_place(&full);
    char key[20];
    char value[40];
    for (size_t at = 0; at < sizeof key + sizeof value; at++) {
        memset(key, 'k', sizeof key);
        memset(value, 'v', sizeof value);
        *(at < sizeof key ? &key[at] : &value[at - sizeof key]) = (char)0xc3;
        const otel_value text = otel_value_string_n(value, sizeof value);
        const otel_value number = otel_value_int(3);
        check_both_ways(&brief, &full, key, sizeof key, &text, false);
        check_both_ways(&brief, &full, key, sizeof key, &number, at >= sizeof key);
    }
    oteli_active_fini(&brief);
    oteli_active_fini(&full);
}

/* One character of two bytes, or half of it, anywhere in the key or the value. */
TEST(short_strings_that_are_utf8_are_kept_afterwards)
{
    struct oteli_active_span brief;
    struct oteli_active_span full;
    make_place(&brief);
    make_place(&full);
    char key[20];
    char value[40];
    for (size_t at = 0; at < 2 * (sizeof key + sizeof value); at++) {
        const bool is_half = at % 2 != 0;
        const size_t in_key = at / 2;
        const bool is_last = in_key == sizeof key - 1 || in_key == sizeof key + sizeof value - 1;
        memset(key, 'k', sizeof key);
        memset(value, 'v', sizeof value);
        char *place = in_key < sizeof key ? &key[in_key] : &value[in_key - sizeof key];
        place[0] = (char)0xc3;
        if (!is_half && !is_last)
            place[1] = (char)0xa4;
        const uint32_t length = brief.attributes.length;
        const uint64_t filter = brief.attribute_filter;
        if (!is_new_to_the_filter(&brief, key, sizeof key))
            continue;

        assert_true(oteli_set_short_string(&brief, &wide, key, sizeof key, value, sizeof value) ==
                    OTELI_SHORT_BUT_NOT_ASCII);
        assert_int_equal(brief.attributes.length, length);
        const bool is_kept = oteli_keep_short_utf8(&brief, sizeof key, sizeof value);

        assert_int_equal(is_kept, !is_half && !is_last);
        const otel_value text = otel_value_string_n(value, sizeof value);
        if (is_kept)
            oteli_active_set(&full, &wide, key, sizeof key, &text);
        else
            full.attribute_filter |=
                brief.attribute_filter & ~filter; /* may know it all the same */
        assert_true((brief.attribute_filter & ~filter & ~oteli_key_bit(key, sizeof key)) == 0);
        check_same_attributes(&brief, &full);
        brief.attributes.length = full.attributes.length = length;
        brief.attribute_count = full.attribute_count = 1;
        brief.attribute_filter = full.attribute_filter = oteli_key_bit("first", 5);
    }
    oteli_active_fini(&brief);
    oteli_active_fini(&full);
}

TEST(without_room_nothing_is_short)
{
    struct oteli_active_span active;
    make_place(&active);
    const struct oteli_limits one = {SIZE_MAX, 1, 1, 1, 1, 1, false, 64};
    const struct oteli_limits brief = {4, 128, 1, 1, 1, 1, false, 64};
    assert_false(set_short_number(&active, &one, "key.a", 5, 1, OTELI_SHORT_INT));
    assert_false(oteli_set_short_string(&active, &one, "key.a", 5, "v", 1));
    assert_false(oteli_set_short_string(&active, &brief, "key.a", 5, "value", 5));
    assert_true(oteli_set_short_string(&active, &brief, "key.a", 5, "valu", 4) == OTELI_SHORT);
    assert_false(
        set_short_number(&active, &wide, "key.a", 5, 1, OTELI_SHORT_INT)); /* there is one */
    const uint32_t length = active.attributes.length;
    active.attributes.length = active.attributes.capacity - OTELI_SHORT_ROOM + 1;
    assert_false(set_short_number(&active, &wide, "key.b", 5, 1, OTELI_SHORT_INT));
    active.attributes.length = length;
    assert_true(set_short_number(&active, &wide, "key.b", 5, 1, OTELI_SHORT_INT));
    oteli_active_fini(&active);
}

/* Set all of these, which have spaces between them; how many did not go the short way. */
static size_t count_not_short(const char *keys)
{
    struct oteli_active_span active;
    make_place(&active);
    active.attribute_count = 0;
    active.attribute_filter = 0;
    size_t count = 0;
    while (*keys != '\0') {
        const size_t length = strcspn(keys, " ");
        active.attributes.length = 0; /* room */
        if (!set_short_number(&active, &wide, keys, length, 1, OTELI_SHORT_INT)) {
            print_error("%.*s is taken for one that is there\n", (int)length, keys);
            count++;
        }
        keys += length + strspn(keys + length, " ");
    }
    oteli_active_fini(&active);
    return count;
}

TEST(keys_of_one_convention_are_told_apart)
{
    static const char *const spans[] = {
        "http.request.method http.request.method_original url.path url.scheme url.query "
        "server.address server.port client.address client.port network.protocol.name "
        "network.protocol.version network.transport network.peer.address network.peer.port "
        "network.local.address network.local.port user_agent.original http.response.status_code "
        "http.request.body.size http.response.body.size http.route error.type",
        "http.request.method http.request.method_original server.address server.port url.full "
        "url.scheme url.template http.response.status_code error.type network.protocol.name "
        "network.protocol.version network.transport network.peer.address network.peer.port "
        "http.request.resend_count user_agent.original http.request.body.size "
        "http.response.body.size",
        "db.system.name db.namespace db.collection.name db.operation.name "
        "db.operation.batch.size db.query.text db.query.summary db.stored_procedure.name "
        "db.response.status_code db.response.returned_rows server.address server.port "
        "network.peer.address network.peer.port error.type",
        "rpc.system rpc.service rpc.method rpc.grpc.status_code server.address server.port "
        "client.address client.port network.peer.address network.peer.port network.transport "
        "network.type error.type",
        "messaging.system messaging.operation.name messaging.operation.type "
        "messaging.destination.name messaging.destination.template "
        "messaging.destination.partition.id messaging.consumer.group.name messaging.message.id "
        "messaging.message.conversation_id messaging.message.body.size "
        "messaging.batch.message_count messaging.client.id network.peer.address "
        "network.peer.port server.address server.port error.type",
        "exception.type exception.message exception.stacktrace thread.id thread.name "
        "code.function.name code.file.path "
        "code.line.number code.column.number",
    };
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        assert_int_equal(count_not_short(spans[i]), 0);
}
