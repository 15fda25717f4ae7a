/* SPDX-License-Identifier: Apache-2.0 */
/* api/encode/key_index.c - the contracts are in api/encode/key_index.h. Any thread; an index is
 * memory of its own. */
#include "api/encode/key_index.h"
#include "common/base/alloc.h"
#include "common/text/text.h"
#include "common/text/utf8.h"

#include <string.h>

enum { MOST = 1 << 28 }; /* of a longer list the numbers would not fit */

/* A text being read as it will be written, bad UTF-8 replaced. */
struct reading {
    const char *at;
    size_t left;
    const char *piece; /* good bytes of the text, or the replacement of a bad one */
    size_t piece_left;
};

static int next_byte(struct reading *reading)
{
    if (reading->piece_left == 0) {
        if (reading->left == 0)
            return -1;
        const size_t good = oteli_utf8_valid_prefix(reading->at, reading->left);
        reading->piece = good != 0 ? reading->at : "\xEF\xBF\xBD";
        reading->piece_left = good != 0 ? good : 3;
        reading->at += good != 0 ? good : 1;
        reading->left -= good != 0 ? good : 1;
    }
    reading->piece_left--;
    return (uint8_t)*reading->piece++;
}

/* A key that is not UTF-8 is known by what it becomes. Where the first difference is between
 * two ASCII characters, what is before it becomes the same, and they become themselves. */
bool oteli_key_is_same(otel_slice a, otel_slice b)
{
    const size_t shorter = a.length < b.length ? a.length : b.length;
    size_t same = 0;
    while (same < shorter && a.data[same] == b.data[same])
        same++;
    const uint8_t next_a = same < a.length ? (uint8_t)a.data[same] : 0;
    const uint8_t next_b = same < b.length ? (uint8_t)b.data[same] : 0;
    if ((next_a | next_b) < 0x80)
        return same == a.length && same == b.length;
    struct reading one = {a.data, a.length, NULL, 0};
    struct reading other = {b.data, b.length, NULL, 0};
    int byte;
    do {
        byte = next_byte(&one);
        if (byte != next_byte(&other))
            return false;
    } while (byte >= 0);
    return true;
}

/* --- the index --- */

#define FREE UINT32_MAX

static uint64_t hash_of(otel_slice key)
{
    struct reading reading = {key.data, key.length, NULL, 0};
    uint64_t hash = OTELI_HASH_BEGIN;
    int next;
    while ((next = next_byte(&reading)) >= 0) {
        const uint8_t byte = (uint8_t)next;
        hash = oteli_hash(hash, &byte, 1);
    }
    return hash ^ hash >> 32;
}

/* `table` is at least twice as large as the list, and has of each key the attribute whose place
 * it takes. */
static void fill(struct oteli_keys *keys, uint32_t *table, size_t size,
                 const otel_attribute *attributes, size_t count, bool is_map)
{
    memset(table, 0xff, size * sizeof *table);
    for (size_t i = 0; i < count; i++) {
        const uint32_t number = (uint32_t)(is_map ? count - 1 - i : i);
        const otel_slice key = oteli_key_of(&attributes[number]);
        keys->last[number] = OTELI_KEYS_LEFT_OUT;
        if (key.length == 0 && !is_map)
            continue;
        size_t at = hash_of(key) & (size - 1);
        while (table[at] != FREE && !oteli_key_is_same(oteli_key_of(&attributes[table[at]]), key))
            at = (at + 1) & (size - 1);
        if (table[at] == FREE)
            table[at] = keys->last[number] = number;
        else if (!is_map)
            keys->last[table[at]] = number;
    }
}

void oteli_keys_make(struct oteli_keys *keys, const otel_attribute *attributes, size_t count,
                     bool is_map)
{
    if (count > MOST)
        return;
    size_t size = 2 * OTELI_KEYS_MANY;
    while (size < 2 * count)
        size *= 2;
    uint32_t *table = oteli_malloc(size * sizeof *table);
    keys->last = table != NULL ? oteli_malloc(count * sizeof *keys->last) : NULL;
    if (keys->last != NULL)
        fill(keys, table, size, attributes, count, is_map);
    free(table);
}

void oteli_keys_free(struct oteli_keys *keys)
{
    free(keys->last);
    keys->last = NULL;
}

bool oteli_key_is_overwritten(const struct oteli_keys *keys, const otel_attribute *entries,
                              size_t count, size_t index)
{
    if (keys->last != NULL)
        return keys->last[index] == OTELI_KEYS_LEFT_OUT;
    const otel_slice key = oteli_key_of(&entries[index]);
    for (size_t i = index + 1; i < count; i++)
        if (oteli_key_is_same(oteli_key_of(&entries[i]), key))
            return true;
    return false;
}
