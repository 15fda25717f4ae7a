/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/labels/trampolines.c - see trampolines.h. Any thread; constant. */
#include "profiling/labels/trampolines.h"
#include <otel/base.h>

#include <string.h>

enum { STRIDE = OTELI_TRAMPOLINE_STRIDE, WORD = 8 };

#if OTELI_HAS_TRAMPOLINES

/* The block's name is exported, so that symbolizers know it in a stripped library too. */
OTEL_API_DATA extern const uint8_t otel_profile_trampoline[];

oteli_trampoline *oteli_trampoline_at(unsigned index)
{
    return (oteli_trampoline *)(uintptr_t)(otel_profile_trampoline + (size_t)index * STRIDE);
}

#else

oteli_trampoline *oteli_trampoline_at(unsigned index)
{
    (void)index;
    return NULL;
}

#endif

/* How far into the block an address is; none: at least its size. */
static inline uint64_t offset_of(uint64_t address)
{
#if OTELI_HAS_TRAMPOLINES
    return address - (uint64_t)(uintptr_t)otel_profile_trampoline;
#else
    (void)address;
    return UINT64_MAX;
#endif
}

static inline bool is_inside(uint64_t offset)
{
    return offset < (uint64_t)OTELI_TRAMPOLINES * STRIDE;
}

int oteli_trampoline_of(uint64_t address)
{
    const uint64_t offset = offset_of(address);
    return is_inside(offset) ? (int)(offset / STRIDE) : OTELI_NO_TRAMPOLINE;
}

int oteli_trampoline_of_marker(uint64_t address)
{
    const uint64_t offset = offset_of(address);
    return is_inside(offset) && offset % STRIDE == OTELI_TRAMPOLINE_MARKER ? (int)(offset / STRIDE)
                                                                           : OTELI_NO_TRAMPOLINE;
}

uint64_t oteli_trampoline_unify(uint64_t address)
{
    const uint64_t offset = offset_of(address);
    return is_inside(offset) ? address - offset / STRIDE * STRIDE : address;
}

size_t oteli_trampolines_scan(const void *bytes, size_t size, uint64_t address, int *found,
                              size_t most)
{
    size_t count = 0;
    const size_t first = (size_t)(-address % WORD); /* frames are aligned, the copy need not be */
    for (size_t at = first; at + (size_t)2 * WORD <= size; at += WORD) {
        uint64_t record[2];
        memcpy(record, (const uint8_t *)bytes + at, sizeof record);
        if (record[0] != address + at + OTELI_TRAMPOLINE_RECORD)
            continue;
        const int index = oteli_trampoline_of_marker(record[1]);
        if (index == OTELI_NO_TRAMPOLINE)
            continue;
        if (count < most)
            found[count] = index;
        count++;
    }
    return count;
}
