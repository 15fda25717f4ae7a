/* SPDX-License-Identifier: Apache-2.0 */
/* common/os/huge_page.h - memory in pieces of 2 MiB, in one page each where the kernel has such
 * pages to give (transparent huge pages). To touch 2 MiB of ordinary memory for the first time
 * costs 512 page faults, which is several times what clearing it does.
 *
 * Any thread. The piece is full of zeros, and is the caller's until it gives it back. */
#ifndef OTELI_HUGE_PAGE_H
#define OTELI_HUGE_PAGE_H

enum { OTELI_HUGE_PAGE_BYTES = 2 * 1024 * 1024 };

/* NULL: no memory. */
void *oteli_huge_page_new(void);
void oteli_huge_page_free(void *page);

#endif
