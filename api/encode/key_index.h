/* SPDX-License-Identifier: Apache-2.0 */
/* api/encode/key_index.h - which attributes of a long list have the same key. Of short lists each
 * is compared with each, which needs no memory; of long ones that would hold the program up for
 * seconds.
 *
 * Threads:  any; an index belongs to its caller. */
#ifndef OTELI_KEY_INDEX_H
#define OTELI_KEY_INDEX_H

#include "common/base/atomic.h"
#include <otel/value.h>

enum { OTELI_KEYS_MANY = 128 };
#define OTELI_KEYS_LEFT_OUT UINT32_MAX

/* Of attributes, whose place is that of their key's first: by the number of that one, the number
 * of the last one, which has the value. Of the entries of a map, whose place is that of the last:
 * its own number. All others are OTELI_KEYS_LEFT_OUT, attributes without a key as well.
 * NULL: there is no index. */
struct oteli_keys {
    uint32_t *last;
};

/* Make the index of a long list, if there is memory for it. */
OTELI_COLD void oteli_keys_make(struct oteli_keys *keys, const otel_attribute *attributes,
                                size_t count, bool is_map);
OTELI_COLD void oteli_keys_free(struct oteli_keys *keys);

static inline void oteli_keys_init(struct oteli_keys *keys, const otel_attribute *attributes,
                                   size_t count, bool is_map)
{
    keys->last = NULL;
    if (OTELI_UNLIKELY(count >= OTELI_KEYS_MANY))
        oteli_keys_make(keys, attributes, count, is_map);
}

static inline void oteli_keys_fini(struct oteli_keys *keys)
{
    if (OTELI_UNLIKELY(keys->last != NULL))
        oteli_keys_free(keys);
}

/* Whether a later entry of a map has the key of this one; `keys` is its index, if it is long. */
bool oteli_key_is_overwritten(const struct oteli_keys *keys, const otel_attribute *entries,
                              size_t count, size_t index);

/* Whether two keys are the same as they will be written. */
bool oteli_key_is_same(otel_slice a, otel_slice b);

#endif
