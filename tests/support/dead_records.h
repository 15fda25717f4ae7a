/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/dead_records.h - what trampolines leave behind on a stack.
 *
 * Threads:  one at a time. */
#ifndef OTELI_TESTS_DEAD_RECORDS_H
#define OTELI_TESTS_DEAD_RECORDS_H

#include <stddef.h>
#include <stdint.h>

/* Run `work` on a thread whose stack is kept, and scan what is left of that stack when the thread
 * has ended. Gives how many records of trampolines it finds. */
size_t dead_records_after(void *(*work)(void *), void *argument);

/* Call functions through many trampolines, nested up to a depth, with frames and without. */
void *dead_records_work(void *unused);

/* How many return addresses into trampolines that work has left behind: that there was anything to
 * find. Of the last dead_records_after. */
size_t dead_records_returns(void);

#endif
