/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/signal/unwind_scratch.c - see unwind_scratch.h. Owns the slots. */
#include "profiling/signal/unwind_scratch.h"

#include "common/base/atomic.h"

#include <sys/mman.h>
#include <unistd.h>

bool oteli_unwind_scratch_init(struct oteli_unwind_scratch *scratch, unsigned count)
{
    if (count > OTELI_UNWIND_SLOTS_MOST)
        count = OTELI_UNWIND_SLOTS_MOST;
    void *all = mmap(NULL, count * sizeof *scratch->all, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (all == MAP_FAILED)
        return false;
    *scratch = (struct oteli_unwind_scratch){.all = all, .count = count};
    for (unsigned i = 0; i < count; i++)
        scratch->all[i].view.process = getpid();
    return true;
}

void oteli_unwind_scratch_fini(struct oteli_unwind_scratch *scratch)
{
    if (scratch->all != NULL)
        munmap(scratch->all, scratch->count * sizeof *scratch->all);
    *scratch = (struct oteli_unwind_scratch){0};
}

struct oteli_unwind_slot *oteli_unwind_scratch_take(struct oteli_unwind_scratch *scratch)
{
    for (;;) {
        const uint64_t taken = oteli_load_relaxed_64(&scratch->taken);
        if (taken == UINT64_MAX)
            return NULL;
        const unsigned first = (unsigned)__builtin_ctzll(~taken);
        if (first >= scratch->count)
            return NULL;
        if (oteli_cas_full_64(&scratch->taken, taken, taken | UINT64_C(1) << first))
            return &scratch->all[first];
    }
}

void oteli_unwind_scratch_give(struct oteli_unwind_scratch *scratch,
                               const struct oteli_unwind_slot *slot)
{
    (void)oteli_add_full_64(&scratch->taken, -(UINT64_C(1) << (slot - scratch->all)));
}
