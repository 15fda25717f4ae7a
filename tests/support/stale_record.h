/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/stale_record.h - the worst place to look for labels: a function whose frame lies
 * where a trampoline's has been, that writes nothing into it, and breaks the chain of frames.
 *
 * Threads:  any thread. */
#ifndef OTELI_TESTS_STALE_RECORD_H
#define OTELI_TESTS_STALE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

/* Whether there is one for this machine. */
bool stale_is_possible(void);

/* Call function(NULL) through a trampoline, which is over then; and after it count so many steps in a
 * frame that covers the same piece of the stack. */
void stale_apply_and_count(void *(*trampoline)(void *, void *(*)(void *)),
                           void *(*function)(void *), uint64_t steps);

/* Whether an address is in the function that counts. */
bool stale_is_counting(uint64_t address);

#endif
