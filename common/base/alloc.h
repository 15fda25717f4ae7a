/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/alloc.h - the C library's allocators, which here leave errno as it was: a program
 * that starts a span between a call of its own and a look at errno must not see ours.
 *
 * Threads:  any. */
#ifndef OTELI_ALLOC_H
#define OTELI_ALLOC_H

#include <errno.h>
#include <stdlib.h>

static inline void *oteli_calloc(size_t count, size_t size)
{
    const int saved_errno = errno;
    void *memory = calloc(count, size);
    errno = saved_errno;
    return memory;
}

/* From NULL: new memory. */
static inline void *oteli_realloc(void *before, size_t size)
{
    const int saved_errno = errno;
    void *memory = realloc(before, size);
    errno = saved_errno;
    return memory;
}

static inline void *oteli_malloc(size_t size)
{
    return oteli_realloc(NULL, size);
}

static inline void *oteli_aligned_alloc(size_t alignment, size_t size)
{
    const int saved_errno = errno;
    void *memory = aligned_alloc(alignment, size);
    errno = saved_errno;
    return memory;
}

#endif
