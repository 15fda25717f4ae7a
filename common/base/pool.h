/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/pool.h - memory that is taken piece by piece and given back at once.
 *
 * A configuration file, a resource, the rules of a sampler: many small pieces with one end of life.
 * A pool has a most that it gives out, so a hostile file cannot take more.
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_POOL_H
#define OTELI_POOL_H

#include "common/base/internal_api.h"
#include <stddef.h>

struct oteli_pool_block;
struct oteli_pool {
    struct oteli_pool_block *blocks; /* the newest first */
    size_t taken;                    /* bytes, of all blocks */
};

enum { OTELI_POOL_MOST = 16 << 20 };

/* Zeroed and aligned for anything. NULL: no memory, or the pool has given out its most. */
OTELI_INTERNAL_API void *oteli_pool_take(struct oteli_pool *pool, size_t size);

/* `count` of them; a product that does not fit in a size is no memory. */
OTELI_INTERNAL_API void *oteli_pool_array(struct oteli_pool *pool, size_t count, size_t size);

/* A copy with a NUL behind it. */
OTELI_INTERNAL_API char *oteli_pool_text(struct oteli_pool *pool, const char *data, size_t length);

/* Let `pool` have all that another has, which is empty then. */
OTELI_INTERNAL_API void oteli_pool_adopt(struct oteli_pool *pool, struct oteli_pool *other);

OTELI_INTERNAL_API void oteli_pool_fini(struct oteli_pool *pool);

#endif
