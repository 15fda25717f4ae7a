/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/labels/trampolines.c - see trampolines.h. Any thread; constant. */
#include "profiling/labels/trampolines.h"
#include "common/base/internal_api.h"
#include "profiling/labels/trampolines_shape.h"
#include <otel/base.h>

#include <string.h>

_Static_assert(OTELI_TRAMPOLINES == OTELI_TRAMPOLINE_COUNT, "as many as there is code for");

enum { STRIDE = OTELI_TRAMPOLINE_STRIDE, WORD = 8, RECORD_DISTANCE = 16 };

#if OTELI_HAS_TRAMPOLINES

/* The block's name is exported, so that symbolizers know it in a stripped library too. */
OTEL_API extern const uint8_t otel_profile_trampoline[];

static inline uint64_t block(void)
{
    return (uint64_t)(uintptr_t)otel_profile_trampoline;
}

oteli_trampoline *oteli_trampoline_at(unsigned index)
{
    return (oteli_trampoline *)(uintptr_t)(block() + (uint64_t)index * STRIDE);
}

/* --- what unwinds past a trampoline --- */

/* The interface of the unwinder (Itanium C++ ABI), as far as it is used here. The unwinder
 * belongs to whoever throws: a program that never does need not have one. */
enum { UNWIND_CONTINUE = 8, UNWIND_CLEANUP_PHASE = 2 };
struct _Unwind_Context;
extern uintptr_t _Unwind_GetCFA(struct _Unwind_Context *context) __attribute__((weak));

OTELI_NOT_LENT int oteli_trampoline_unwound(int version, int actions, uint64_t kind,
                                            void *exception, struct _Unwind_Context *context);

/* An exception, or the end of the thread, leaves the function by way of its trampoline, which
 * therefore will not wipe its record. What the unwinder calls the canonical frame address is, of
 * the frame that it asks about, the stack pointer at the call: there the record is. */
int oteli_trampoline_unwound(int version, int actions, uint64_t kind, void *exception,
                             struct _Unwind_Context *context)
{
    (void)kind;
    (void)exception;
    if (version != 1 || (actions & UNWIND_CLEANUP_PHASE) == 0 || _Unwind_GetCFA == NULL)
        return UNWIND_CONTINUE;
    uint64_t *record = (uint64_t *)_Unwind_GetCFA(context);
    if (record != NULL && record[0] == (uint64_t)(uintptr_t)record + RECORD_DISTANCE &&
        oteli_trampoline_of_marker(record[1]) != OTELI_NO_TRAMPOLINE)
        record[1] = 0;
    return UNWIND_CONTINUE;
}

#else

static inline uint64_t block(void)
{
    return UINT64_MAX; /* no address is above it */
}

oteli_trampoline *oteli_trampoline_at(unsigned index)
{
    (void)index;
    return NULL;
}

#endif

/* How far into the block an address is; none: at least its size. */
static inline uint64_t offset_of(uint64_t address)
{
    return OTELI_HAS_TRAMPOLINES ? address - block() : UINT64_MAX;
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
        if (record[0] != address + at + RECORD_DISTANCE)
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
