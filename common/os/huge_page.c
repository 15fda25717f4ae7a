/* SPDX-License-Identifier: Apache-2.0 */
/* common/os/huge_page.c - aligned pieces of anonymous memory. Any thread, seldom. */
#include "common/os/huge_page.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

void *oteli_huge_page_new(void)
{
    enum { SIZE = OTELI_HUGE_PAGE_BYTES };
    const int saved_errno = errno;
    uint8_t *const whole =
        mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED) {
        errno = saved_errno;
        return NULL;
    }
    const size_t before = (size_t)(-(uintptr_t)whole) % SIZE;
    uint8_t *const page = whole + before;
    if (before != 0)
        (void)munmap(whole, before);
    (void)munmap(page + SIZE, SIZE - before);
    (void)madvise(page, SIZE, MADV_HUGEPAGE); /* ordinary pages do as well */
    errno = saved_errno;
    return page;
}

void oteli_huge_page_free(void *page)
{
    (void)munmap(page, OTELI_HUGE_PAGE_BYTES);
}
