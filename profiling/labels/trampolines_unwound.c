/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/labels/trampolines_unwound.c - what unwinds past a trampoline. App threads. It is
 * called by the trampolines alone, and does not know where they are. */
#include "common/base/internal_api.h"
#include "profiling/labels/trampolines_shape.h"

#include <stddef.h>
#include <stdint.h>

#if OTELI_HAS_TRAMPOLINES

/* The interface of the unwinder (Itanium C++ ABI), as far as it is used here. The unwinder belongs
 * to the code that throws: a program that never does need not have one. */
enum { UNWIND_CONTINUE = 8, UNWIND_CLEANUP_PHASE = 2 };
struct _Unwind_Context;
extern uintptr_t _Unwind_GetCFA(struct _Unwind_Context *context) __attribute__((weak));
extern uintptr_t _Unwind_GetIP(struct _Unwind_Context *context) __attribute__((weak));

OTELI_NOT_LENT int oteli_trampoline_unwound(int version, int actions, uint64_t kind,
                                            void *exception, struct _Unwind_Context *context);

/* An exception, or the end of the thread, leaves the function by way of its trampoline, which
 * therefore will not wipe its record. What the unwinder calls the canonical frame address is, of
 * the frame that it asks about, the stack pointer at the call: there the record is. Its marker is a
 * little behind where the function returns to. */
int oteli_trampoline_unwound(int version, int actions, uint64_t kind, void *exception,
                             struct _Unwind_Context *context)
{
    (void)kind;
    (void)exception;
    if (version != 1 || (actions & UNWIND_CLEANUP_PHASE) == 0 || _Unwind_GetCFA == NULL ||
        _Unwind_GetIP == NULL)
        return UNWIND_CONTINUE;
    uint64_t *record = (uint64_t *)_Unwind_GetCFA(context);
    if (record != NULL && record[0] == (uint64_t)(uintptr_t)record + OTELI_TRAMPOLINE_RECORD &&
        record[1] - (uint64_t)_Unwind_GetIP(context) < OTELI_TRAMPOLINE_STRIDE)
        record[1] = 0;
    return UNWIND_CONTINUE;
}

#endif
