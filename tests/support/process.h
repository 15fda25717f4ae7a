/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/process.h - what the kernel says about this process and its threads: memory,
 * and how often and how long a thread has run.
 *
 * Threads:  any thread. */
#ifndef OTELI_TESTS_PROCESS_H
#define OTELI_TESTS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* Memory as the kernel counts it, in KiB: now, and the most there was at any moment since
 * the start or since process_forget_peak (which is false where it cannot be forgotten). */
uint64_t process_resident_kib(void);
uint64_t process_peak_kib(void);
bool process_forget_peak(void);

int process_this_thread(void);

/* What a thread has had of the processors so far. All zero when the thread is gone. */
struct process_turns {
    uint64_t ran_ns;
    uint64_t waited_ns; /* it could have run, but others did */
    uint64_t turns;     /* times it was given a processor */
};
struct process_turns process_turns(int thread);

/* Whether the memory of this process is its own: a sanitizer's shadow is not. */
bool process_memory_is_ours(void);

uint64_t process_now_ns(void); /* monotonic */

#endif
