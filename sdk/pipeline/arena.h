/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/pipeline/arena.h - memory that is taken piece by piece and given up all at once.
 *
 *     uint8_t *at = oteli_arena_room(arena, most);     room for that much; NULL: no memory
 *     ... write some of it ...
 *     oteli_arena_keep(arena, written);                so much of it is taken
 *     oteli_arena_reset(arena);                        everything is free again
 *
 * Chunks are used again after a reset, so that a batch like the last one allocates nothing;
 * what is more than OTELI_ARENA_KEPT is given back. Worker, or one thread at a time. */
#ifndef OTELI_ARENA_H
#define OTELI_ARENA_H

#include <stddef.h>
#include <stdint.h>

enum { OTELI_ARENA_CHUNK = 64 * 1024, OTELI_ARENA_KEPT = 1024 * 1024 };

struct oteli_arena_chunk {
    struct oteli_arena_chunk *next;
    size_t capacity; /* of the bytes */
    _Alignas(16) uint8_t bytes[];
};

/* Zeros are an empty one. Chunks behind `current` are free. */
struct oteli_arena {
    struct oteli_arena_chunk *first;
    struct oteli_arena_chunk *current; /* NULL: none is in use */
    size_t used;                       /* bytes of the current one */
};

/* Room for `most` bytes, aligned to 8; valid until the next call. NULL: no memory. */
uint8_t *oteli_arena_room(struct oteli_arena *arena, size_t most);

/* Keep the first `size` bytes of the room that was given last. */
static inline void oteli_arena_keep(struct oteli_arena *arena, size_t size)
{
    arena->used += (size + 7) & ~(size_t)7;
}

void oteli_arena_reset(struct oteli_arena *arena);
void oteli_arena_fini(struct oteli_arena *arena);

#endif
