/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/leaks.h - count allocations, and make one of them fail.
 *
 * The test program is linked with --wrap for malloc and its kin, so that every call from
 * our sources and from the test itself passes here before it reaches the real allocator
 * (or a sanitizer's). What libc allocates inside itself is not seen.
 *
 *     oteli_leaks_begin();
 *     ...
 *     oteli_leaks_check();        the test fails, here, if anything is still allocated
 *
 * To visit every way out of a function that allocates:
 *
 *     for (size_t nth = 1;; nth++) {
 *         oteli_leaks_begin();
 *         oteli_leaks_fail_at(nth);
 *         bool done = thing_works();
 *         bool all_tried = !oteli_leaks_failed();
 *         oteli_leaks_check();
 *         if (all_tried) { assert_true(done); break; }
 *     }
 *
 * Threads:  allocations are counted on all of them; begin, fail_at and check one thread
 *           at a time. */
#ifndef OTELI_TESTS_LEAKS_H
#define OTELI_TESTS_LEAKS_H

#include <stdbool.h>
#include <stddef.h>

/* Forget what was allocated so far, start counting, and let every allocation succeed. */
void oteli_leaks_begin(void);

/* Fail the running cmocka test when memory that was allocated since oteli_leaks_begin is
 * still live, and say how large and which allocation each piece was. Counting ends. */
#define oteli_leaks_check() oteli_leaks_check_at(__FILE__, __LINE__)
void oteli_leaks_check_at(const char *file, int line);

/* Let the nth allocation from now on (1: the next) fail with ENOMEM, once. 0: none. */
void oteli_leaks_fail_at(size_t nth);

/* Whether the allocation that was to fail has been asked for; from now on it is not to. */
bool oteli_leaks_failed(void);

/* Since oteli_leaks_begin: pieces that are live, and allocations that were made. */
size_t oteli_leaks_live(void);
size_t oteli_leaks_count(void);

#endif
