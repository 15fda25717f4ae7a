/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/unwind/unwind_scratch.c - see unwind_scratch.h. Owns the rooms. */
#include "profiling/unwind/unwind_scratch.h"

#include "common/base/atomic.h"

#include <sys/mman.h>
#include <unistd.h>

bool oteli_walk_rooms_init(struct oteli_walk_rooms *rooms, unsigned count)
{
    if (count > OTELI_WALK_ROOMS_MOST)
        count = OTELI_WALK_ROOMS_MOST;
    void *all = mmap(NULL, count * sizeof *rooms->all, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (all == MAP_FAILED)
        return false;
    *rooms = (struct oteli_walk_rooms){.all = all, .count = count};
    for (unsigned i = 0; i < count; i++)
        rooms->all[i].view.process = getpid();
    return true;
}

void oteli_walk_rooms_fini(struct oteli_walk_rooms *rooms)
{
    if (rooms->all != NULL)
        munmap(rooms->all, rooms->count * sizeof *rooms->all);
    *rooms = (struct oteli_walk_rooms){0};
}

struct oteli_walk_room *oteli_walk_rooms_take(struct oteli_walk_rooms *rooms)
{
    for (;;) {
        const uint64_t taken = oteli_load_relaxed_64(&rooms->taken);
        if (taken == UINT64_MAX)
            return NULL;
        const unsigned first = (unsigned)__builtin_ctzll(~taken);
        if (first >= rooms->count)
            return NULL;
        if (oteli_cas_full_64(&rooms->taken, taken, taken | UINT64_C(1) << first))
            return &rooms->all[first];
    }
}

void oteli_walk_rooms_give(struct oteli_walk_rooms *rooms, const struct oteli_walk_room *room)
{
    (void)oteli_add_full_64(&rooms->taken, -(UINT64_C(1) << (room - rooms->all)));
}
