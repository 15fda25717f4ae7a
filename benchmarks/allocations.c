/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/allocations.c - count what each thread allocates, in the whole program.
 *
 * A program's own malloc comes before that of libc, for its shared libraries too. These
 * count and hand on to glibc's, which is there under a second name. Any thread. */
#include "benchmarks/bench.h"

#include <errno.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nmemb, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static __thread uint64_t allocations;

uint64_t bench_allocations(void)
{
    return allocations;
}

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t nmemb, size_t size)
{
    allocations++;
    return __libc_calloc(nmemb, size);
}

void *realloc(void *ptr, size_t size)
{
    allocations++;
    return __libc_realloc(ptr, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    allocations++;
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **memptr, size_t alignment, size_t size)
{
    allocations++;
    *memptr = __libc_memalign(alignment, size);
    return *memptr != NULL ? 0 : ENOMEM;
}
