/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/pipeline/arena.c - the contracts are in sdk/pipeline/arena.h. Worker, or one thread at a
 * time. */
#include "sdk/pipeline/arena.h"

#include <stdlib.h>

static struct oteli_arena_chunk *make_chunk(size_t least)
{
    const size_t capacity = least > OTELI_ARENA_CHUNK ? least : OTELI_ARENA_CHUNK;
    struct oteli_arena_chunk *chunk = malloc(sizeof *chunk + capacity);
    if (chunk != NULL)
        chunk->capacity = capacity;
    return chunk;
}

static size_t room_in(const struct oteli_arena *arena)
{
    return arena->current != NULL ? arena->current->capacity - arena->used : 0;
}

uint8_t *oteli_arena_room(struct oteli_arena *arena, size_t most)
{
    most = (most + 7) & ~(size_t)7;
    if (room_in(arena) < most || arena->current == NULL) {
        struct oteli_arena_chunk **link =
            arena->current != NULL ? &arena->current->next : &arena->first;
        if (*link == NULL || (*link)->capacity < most) {
            struct oteli_arena_chunk *chunk = make_chunk(most);
            if (chunk == NULL)
                return NULL;
            chunk->next = *link;
            *link = chunk;
        }
        arena->current = *link;
        arena->used = 0;
    }
    return arena->current->bytes + arena->used;
}

void oteli_arena_reset(struct oteli_arena *arena)
{
    if (arena->current == NULL)
        return;
    size_t kept = 0;
    for (struct oteli_arena_chunk **link = &arena->first; *link != NULL;) {
        struct oteli_arena_chunk *chunk = *link;
        if (kept + chunk->capacity <= OTELI_ARENA_KEPT) {
            kept += chunk->capacity;
            link = &chunk->next;
        } else {
            *link = chunk->next;
            free(chunk);
        }
    }
    arena->current = NULL;
    arena->used = 0;
}

void oteli_arena_fini(struct oteli_arena *arena)
{
    for (struct oteli_arena_chunk *chunk = arena->first; chunk != NULL;) {
        struct oteli_arena_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    *arena = (struct oteli_arena){0};
}
