/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/pool.c - see pool.h: blocks in a list, and a place in the newest. */
#include "common/base/pool.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_BYTES = 1 << 10, BLOCK_BYTES = 16 << 10, ALIGNMENT = 16 };

struct oteli_pool_block {
    struct oteli_pool_block *older;
    size_t size;
    size_t used;
    _Alignas(ALIGNMENT) char bytes[];
};

static struct oteli_pool_block *add_block(struct oteli_pool *pool, size_t least)
{
    const size_t usual = pool->taken == 0 ? LEAST_BYTES : BLOCK_BYTES;
    const size_t size = least > usual ? least : usual;
    if (size > OTELI_POOL_MOST - pool->taken)
        return NULL;
    struct oteli_pool_block *block = malloc(sizeof *block + size);
    if (block == NULL)
        return NULL;
    *block = (struct oteli_pool_block){.older = pool->blocks, .size = size};
    pool->blocks = block;
    pool->taken += size;
    return block;
}

void *oteli_pool_take(struct oteli_pool *pool, size_t size)
{
    if (size > OTELI_POOL_MOST)
        return NULL;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct oteli_pool_block *block = pool->blocks;
    if (block == NULL || block->size - block->used < size)
        block = add_block(pool, size);
    if (block == NULL)
        return NULL;
    void *piece = block->bytes + block->used;
    block->used += size;
    return memset(piece, 0, size);
}

void *oteli_pool_array(struct oteli_pool *pool, size_t count, size_t size)
{
    return count > OTELI_POOL_MOST / size ? NULL : oteli_pool_take(pool, count * size);
}

char *oteli_pool_text(struct oteli_pool *pool, const char *data, size_t length)
{
    char *text = length < OTELI_POOL_MOST ? oteli_pool_take(pool, length + 1) : NULL;
    if (text != NULL && length != 0)
        memcpy(text, data, length);
    return text;
}

void oteli_pool_adopt(struct oteli_pool *pool, struct oteli_pool *other)
{
    struct oteli_pool_block **last = &pool->blocks;
    while (*last != NULL)
        last = &(*last)->older;
    *last = other->blocks;
    pool->taken += other->taken;
    *other = (struct oteli_pool){.blocks = NULL};
}

void oteli_pool_fini(struct oteli_pool *pool)
{
    while (pool->blocks != NULL) {
        struct oteli_pool_block *block = pool->blocks;
        pool->blocks = block->older;
        free(block);
    }
    *pool = (struct oteli_pool){.blocks = NULL};
}
