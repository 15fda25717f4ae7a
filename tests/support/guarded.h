/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/guarded.h - memory that ends where a page begins that cannot be touched: who reads
 * or writes behind it is killed. */
#ifndef OTELI_TESTS_GUARDED_H
#define OTELI_TESTS_GUARDED_H

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

enum { GUARDED_PAGE = 4096 };

/* A copy of these bytes, at most a page, which stays until the end of the test's process. The size
 * is a multiple of the alignment that the copy needs. */
static inline void *guarded_copy(const void *from, size_t size)
{
    char *pages = mmap(NULL, (size_t)2 * GUARDED_PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(pages != MAP_FAILED && size <= GUARDED_PAGE);
    const int status = mprotect(pages + GUARDED_PAGE, GUARDED_PAGE, PROT_NONE);
    assert(status == 0);
    (void)status;
    return memcpy(pages + GUARDED_PAGE - size, from, size);
}

#endif
