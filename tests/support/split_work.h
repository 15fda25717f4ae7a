/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/split_work.h - work for a processor, in code of several kinds: one source that is
 * compiled with frame pointers and without.
 *
 * Threads:  any thread. */
#ifndef OTELI_TESTS_SPLIT_WORK_H
#define OTELI_TESTS_SPLIT_WORK_H

#include <stdint.h>

/* Some tenths of a millisecond each. */
uint32_t split_work_framed(uint32_t seed);
uint32_t split_work_frameless(uint32_t seed);

/* Inside of libc: sorting, copying. */
uint32_t split_work_libc_framed(uint32_t seed);
uint32_t split_work_libc_frameless(uint32_t seed);

/* The register of the frame pointer holds something else; elsewhere than on x86-64 as without. */
uint32_t split_work_clobber(uint32_t seed);

#endif
