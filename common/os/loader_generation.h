/* SPDX-License-Identifier: Apache-2.0 */
/* common/os/loader_generation.h - whether the dynamic loader has loaded or unloaded something, by
 * its counters.
 *
 * Threads:  any; a count has one user at a time. Waits for the loader's lock. */
#ifndef OTELI_LOADER_GENERATION_H
#define OTELI_LOADER_GENERATION_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* All zero: nothing has been seen yet. */
struct oteli_loader_count {
    unsigned long long loaded, unloaded;
};

static inline int oteli_loader_read(struct dl_phdr_info *info, size_t size, void *state)
{
    struct oteli_loader_count *count = state;
    (void)size;
    *count = (struct oteli_loader_count){info->dlpi_adds, info->dlpi_subs};
    return 1;
}

/* Whether libraries were loaded or unloaded since `known`, which is set to the counts of now. */
static inline bool oteli_loader_has_moved(struct oteli_loader_count *known)
{
    struct oteli_loader_count now = {0, 0};
    dl_iterate_phdr(oteli_loader_read, &now);
    if (now.loaded == known->loaded && now.unloaded == known->unloaded)
        return false;
    *known = now;
    return true;
}

#endif
