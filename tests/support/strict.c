/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/strict.c - the contracts are in strict.h. Written for being right: it recurses,
 * allocates and copies as it likes. */
#include "tests/support/strict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 500 };

/* ---- UTF-8, by way of code points ------------------------------------------------------- */

/* How many bytes the character at the front has; 0: none. */
static size_t character(const uint8_t *at, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t size = at[0] < 0x80             ? 1
                        : (at[0] & 0xe0) == 0xc0 ? 2
                        : (at[0] & 0xf0) == 0xe0 ? 3
                        : (at[0] & 0xf8) == 0xf0 ? 4
                                                 : 0;
    if (size == 0 || size > left)
        return 0;
    uint32_t point = size == 1 ? at[0] : at[0] & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (at[i] & 0x3fu);
    }
    const bool is_surrogate = point >= 0xd800 && point <= 0xdfff;
    return point >= least[size] && point <= 0x10ffff && !is_surrogate ? size : 0;
}

/* How many bytes so many characters are; SIZE_MAX: what is no UTF-8 is among them. */
static size_t strict_characters(const void *bytes, size_t length, size_t characters)
{
    const uint8_t *at = bytes;
    size_t used = 0;
    for (; characters > 0 && used < length; characters--) {
        const size_t size = character(at + used, length - used);
        if (size == 0)
            return SIZE_MAX;
        used += size;
    }
    return used;
}

static bool strict_is_utf8(const void *bytes, size_t length)
{
    return strict_characters(bytes, length, length) == length;
}

/* ---- the receiver ------------------------------------------------------------------------ */

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
};

static bool read_varint(struct cursor *cursor, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (cursor->at == cursor->end)
            return false;
        const uint8_t byte = *cursor->at++;
        if (shift == 63 && byte > 1)
            return false;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static unsigned wire_type_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return 5;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 1;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return 2;
    default:
        return 0;
    }
}

struct piece {
    const uint8_t *data;
    size_t length;
};

/* The key of a KeyValue, which has been checked. */
static struct piece key_of(struct piece pair)
{
    struct cursor cursor = {pair.data, pair.data + pair.length};
    uint64_t tag;
    uint64_t length;
    if (!read_varint(&cursor, &tag) || tag != (1 << 3 | 2) || !read_varint(&cursor, &length))
        return (struct piece){NULL, 0};
    return (struct piece){cursor.at, (size_t)length};
}

/* Keys seen in one message: a table, for lists may be long. */
struct keys {
    struct piece *seen;
    size_t count, room;
};

static bool is_seen_before(struct keys *keys, struct piece key)
{
    for (size_t i = 0; i < keys->count; i++)
        if (keys->seen[i].length == key.length &&
            (key.length == 0 || memcmp(keys->seen[i].data, key.data, key.length) == 0))
            return true;
    if (keys->count == keys->room) {
        keys->room = keys->room != 0 ? keys->room * 2 : 16;
        keys->seen = realloc(keys->seen, keys->room * sizeof *keys->seen);
        if (keys->seen == NULL)
            abort();
    }
    keys->seen[keys->count++] = key;
    return false;
}

static const char *problem_of(const ProtobufCMessageDescriptor *type, struct piece message,
                              unsigned depth);

static const char *problem_in_bytes(const ProtobufCFieldDescriptor *field, struct piece content,
                                    struct keys *keys, unsigned depth)
{
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return strict_is_utf8(content.data, content.length) ? NULL : "a string is no UTF-8";
    if (field->type != PROTOBUF_C_TYPE_MESSAGE)
        return NULL;
    const char *problem = problem_of(field->descriptor, content, depth + 1);
    if (problem != NULL)
        return problem;
    if (strcmp(((const ProtobufCMessageDescriptor *)field->descriptor)->short_name, "KeyValue") ==
            0 &&
        is_seen_before(keys, key_of(content)))
        return "a key is there twice";
    return NULL;
}

static const char *problem_in_field(const ProtobufCMessageDescriptor *type, struct cursor *cursor,
                                    unsigned *last, struct keys *keys, unsigned depth)
{
    uint64_t tag;
    uint64_t value;
    if (!read_varint(cursor, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return "a tag is none";
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
    if (field == NULL)
        return "a field is unknown";
    if ((tag & 7) != wire_type_of(field->type))
        return "a field has another wire type";
    if (field->label != PROTOBUF_C_LABEL_REPEATED && *last == field->id)
        return "a single field comes twice";
    if (field->id < *last)
        return "fields are not in their order";
    *last = field->id;
    if ((tag & 7) == 0)
        return read_varint(cursor, &value) ? NULL : "a number does not end";
    if ((tag & 7) == 2) {
        if (!read_varint(cursor, &value) || value > (uint64_t)(cursor->end - cursor->at))
            return "a length is beyond the end";
    } else {
        value = (tag & 7) == 1 ? 8 : 4;
        if (value > (uint64_t)(cursor->end - cursor->at))
            return "a number is beyond the end";
    }
    const struct piece content = {cursor->at, (size_t)value};
    cursor->at += value;
    return (tag & 7) == 2 ? problem_in_bytes(field, content, keys, depth) : NULL;
}

static const char *problem_of(const ProtobufCMessageDescriptor *type, struct piece message,
                              unsigned depth)
{
    if (depth > DEPTH)
        return "it is nested too deeply";
    struct cursor cursor = {message.data, message.data + message.length};
    struct keys keys = {0};
    unsigned last = 0;
    const char *problem = NULL;
    while (problem == NULL && cursor.at != cursor.end)
        problem = problem_in_field(type, &cursor, &last, &keys, depth);
    free(keys.seen);
    return problem;
}

const char *strict_problem(const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                           size_t length)
{
    return problem_of(type, (struct piece){bytes, length}, 0);
}

/* ---- values ------------------------------------------------------------------------------ */

static void add(struct strict_bytes *bytes, const void *data, size_t length)
{
    if (length == 0)
        return;
    bytes->data = realloc(bytes->data, bytes->length + length);
    if (bytes->data == NULL)
        abort();
    memcpy(bytes->data + bytes->length, data, length);
    bytes->length += length;
}

static void add_varint(struct strict_bytes *bytes, uint64_t value)
{
    uint8_t encoded[10];
    size_t size = 0;
    do {
        encoded[size++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value != 0);
    add(bytes, encoded, size);
}

static void add_field(struct strict_bytes *bytes, unsigned field, const void *data, size_t length)
{
    add_varint(bytes, field << 3 | 2);
    add_varint(bytes, length);
    add(bytes, data, length);
}

/* Add a message as a field, and free it. */
static void add_message(struct strict_bytes *bytes, unsigned field, struct strict_bytes message)
{
    add_field(bytes, field, message.data, message.length);
    free(message.data);
}

struct strict_bytes strict_text(const char *text, size_t length)
{
    struct strict_bytes made = {0};
    for (size_t i = 0; i < length;) {
        const size_t size = character((const uint8_t *)text + i, length - i);
        add(&made, size != 0 ? text + i : "\xEF\xBF\xBD", size != 0 ? size : 3);
        i += size != 0 ? size : 1;
    }
    return made;
}

static bool is_same(struct strict_bytes a, struct strict_bytes b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

static struct strict_bytes key_at(const otel_value *map, size_t index)
{
    const otel_attribute *entry = &map->as.entries[index];
    const size_t length = entry->key != NULL ? strlen(entry->key) : 0;
    return strict_text(entry->key, entry->key_length != 0 ? entry->key_length : length);
}

static bool comes_again(const otel_value *map, size_t index)
{
    const struct strict_bytes key = key_at(map, index);
    bool found = false;
    for (size_t i = index + 1; i < map->length && !found; i++) {
        const struct strict_bytes other = key_at(map, i);
        found = is_same(key, other);
        free(other.data);
    }
    free(key.data);
    return found;
}

static struct strict_bytes map_message(const otel_value *map, size_t limit, unsigned depth)
{
    struct strict_bytes list = {0};
    for (size_t i = 0; map->as.entries != NULL && i < map->length; i++) {
        if (comes_again(map, i))
            continue;
        struct strict_bytes pair = {0};
        struct strict_bytes key = key_at(map, i);
        if (key.length != 0)
            add_message(&pair, 1, key);
        add_message(&pair, 2, strict_value(&map->as.entries[i].value, limit, depth - 1));
        add_message(&list, 1, pair);
    }
    return list;
}

static otel_value element(const otel_value *array, size_t i)
{
    switch (array->type) {
    case OTEL_VALUE_STRING_ARRAY:
        return array->as.strings[i] != NULL ? otel_value_string(array->as.strings[i])
                                            : otel_value_empty();
    case OTEL_VALUE_BOOL_ARRAY:
        return otel_value_bool(array->as.booleans[i]);
    case OTEL_VALUE_INT_ARRAY:
        return otel_value_int(array->as.integers[i]);
    case OTEL_VALUE_DOUBLE_ARRAY:
        return otel_value_double(array->as.reals[i]);
    default:
        return array->as.values[i];
    }
}

static struct strict_bytes array_message(const otel_value *array, size_t limit, unsigned depth)
{
    struct strict_bytes list = {0};
    for (size_t i = 0; array->as.bytes != NULL && i < array->length; i++) {
        const otel_value one = element(array, i);
        add_message(&list, 1, strict_value(&one, limit, depth - 1));
    }
    return list;
}

static void add_text(struct strict_bytes *any, const otel_value *value, size_t limit)
{
    const size_t length = value->as.bytes != NULL ? value->length : 0;
    const size_t cut = length < limit ? length : limit;
    if (value->type == OTEL_VALUE_STRING && strict_is_utf8(value->as.string, length))
        add_field(any, 1, value->as.string, strict_characters(value->as.string, length, limit));
    else
        add_field(any, 7, value->as.bytes, cut);
}

struct strict_bytes strict_value(const otel_value *value, size_t length_limit, unsigned depth)
{
    struct strict_bytes any = {0};
    const bool is_deep = value->type >= OTEL_VALUE_STRING_ARRAY && value->type <= OTEL_VALUE_MAP;
    if (is_deep && depth == 0)
        return any;
    if (is_deep && value->type == OTEL_VALUE_MAP)
        add_message(&any, 6, map_message(value, length_limit, depth));
    else if (is_deep)
        add_message(&any, 5, array_message(value, length_limit, depth));
    else if (value->type == OTEL_VALUE_STRING || value->type == OTEL_VALUE_BYTES)
        add_text(&any, value, length_limit);
    else if (value->type == OTEL_VALUE_BOOL)
        add(&any, value->as.boolean ? "\x10\1" : "\x10\0", 2);
    else if (value->type == OTEL_VALUE_INT) {
        add(&any, "\x18", 1);
        add_varint(&any, (uint64_t)value->as.integer);
    } else if (value->type == OTEL_VALUE_DOUBLE) {
        uint64_t bits;
        memcpy(&bits, &value->as.real, sizeof bits);
        add(&any, "\x21", 1);
        for (unsigned i = 0; i < 8; i++)
            add(&any, &(uint8_t){(uint8_t)(bits >> 8 * i)}, 1);
    }
    return any;
}
