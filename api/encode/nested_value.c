/* SPDX-License-Identifier: Apache-2.0 */
/* api/encode/nested_value.c - measure and write values in values. Any thread, no state.
 *
 * A protobuf message stands behind its own length, so what is written from the front has to
 * be measured once for each level that it is in. This is written from the back: the last
 * element first, and the head of a message when all of it stands there. One walk does both
 * the measuring and the writing, with a stack of its own in place of recursion.
 *
 * Source: opentelemetry/proto/common/v1/common.proto (field numbers);
 * OpenTelemetry specification, common/README.md "AnyValue" and "Attribute Limits". */
#include "api/encode/nested_value.h"
#include "api/encode/key_index.h"
#include "api/encode/key_value.h"
#include "common/text/text.h"
#include "common/wire.h"

enum { ARRAY = 5, MAP = 6 };             /* AnyValue */
enum { LARGEST = 64 << 20 };             /* what no request can hold is not worth measuring */
enum { ELEMENTS = 1 };                   /* ArrayValue.values, KeyValueList.values */
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 }; /* KeyValue */

/* An array or a map on the way to where we are. */
struct level {
    const otel_value *of;
    size_t left;            /* elements that have yet to come, from the front */
    size_t behind;          /* bytes that stand behind it */
    struct oteli_keys keys; /* of a long map */
};

struct walk {
    uint8_t *end; /* NULL: only measure */
    size_t used;  /* bytes in front of it */
    size_t length_limit;
    uint32_t depth_limit;
    uint32_t depth;
    struct level levels[OTELI_VALUE_DEPTH_MOST];
};

static void descend(struct walk *walk, const otel_value *container)
{
    struct level *level = &walk->levels[walk->depth++];
    const bool is_there = container->as.bytes != NULL;
    *level = (struct level){container, is_there ? container->length : 0, walk->used, {NULL}};
    if (container->type == OTEL_VALUE_MAP)
        oteli_keys_init(&level->keys, container->as.entries, level->left, true);
}

static void ascend(struct walk *walk)
{
    oteli_keys_fini(&walk->levels[--walk->depth].keys);
}

/* Put the head of a message in front of its bytes, which end where `behind` bytes follow. */
static void wrap(struct walk *walk, uint32_t field, size_t behind)
{
    const size_t length = walk->used - behind;
    walk->used += oteli_bytes_field_size(field, length) - length;
    if (walk->end != NULL)
        oteli_put_bytes_head(walk->end - walk->used, field, length);
}

static void put_key(struct walk *walk, otel_slice key)
{
    const size_t size = oteli_text_size(key.data, key.length);
    const size_t behind = walk->used;
    if (key.length == 0)
        return;
    walk->used += size;
    if (walk->end != NULL)
        oteli_text_put(walk->end - walk->used, key.data, key.length, size);
    wrap(walk, ENTRY_KEY, behind);
}

/* An AnyValue message stands there: make it the next element of the level. */
static void finish_element(struct walk *walk, size_t behind)
{
    const struct level *level = &walk->levels[walk->depth - 1];
    if (level->of->type == OTEL_VALUE_MAP) {
        wrap(walk, ENTRY_VALUE, behind);
        put_key(walk, oteli_key_of(&level->of->as.entries[level->left]));
    }
    wrap(walk, ELEMENTS, behind);
}

/* The next element, or what it is replaced by; NULL: it is left out. */
static const otel_value *next_element(struct walk *walk)
{
    static const otel_value empty;
    struct level *level = &walk->levels[walk->depth - 1];
    const size_t index = --level->left;
    const otel_value *element;
    if (level->of->type == OTEL_VALUE_MAP) {
        if (oteli_key_is_overwritten(&level->keys, level->of->as.entries, level->of->length, index))
            return NULL;
        element = &level->of->as.entries[index].value;
    } else {
        element = &level->of->as.values[index];
    }
    const bool is_too_deep = oteli_value_has_elements(element) && walk->depth == walk->depth_limit;
    return is_too_deep ? &empty : element;
}

/* False: too large. */
static bool go_on(struct walk *walk)
{
    const otel_value *element = next_element(walk);
    if (element == NULL)
        return true;
    if (oteli_value_is_nested(element)) {
        descend(walk, element);
        return true;
    }
    const size_t behind = walk->used;
    const otel_value leaf = oteli_value_cut(element, walk->length_limit);
    const size_t size = oteli_leaf_size(&leaf, walk->length_limit);
    if (size == SIZE_MAX)
        return false;
    walk->used += size;
    if (walk->end != NULL)
        oteli_leaf_put(walk->end - walk->used, &leaf, walk->length_limit);
    finish_element(walk, behind);
    return true;
}

static size_t walk_all(uint8_t *end, const otel_value *value, size_t length_limit,
                       uint32_t depth_limit)
{
    struct walk walk; /* without its levels being cleared */
    walk.end = end;
    walk.used = 0;
    walk.length_limit = length_limit;
    walk.depth_limit = depth_limit;
    walk.depth = 0;
    descend(&walk, value);
    for (;;) {
        const struct level level = walk.levels[walk.depth - 1];
        if (walk.used > LARGEST || (level.left != 0 && !go_on(&walk))) {
            while (walk.depth != 0)
                ascend(&walk);
            return SIZE_MAX;
        }
        if (level.left != 0)
            continue;
        wrap(&walk, level.of->type == OTEL_VALUE_MAP ? MAP : ARRAY, level.behind);
        ascend(&walk);
        if (walk.depth == 0)
            return walk.used;
        finish_element(&walk, level.behind);
    }
}

size_t oteli_nested_size(const otel_value *value, size_t length_limit, uint32_t depth_limit)
{
    return walk_all(NULL, value, length_limit, depth_limit);
}

void oteli_nested_put(uint8_t *end, const otel_value *value, size_t length_limit,
                      uint32_t depth_limit)
{
    (void)walk_all(end, value, length_limit, depth_limit);
}
