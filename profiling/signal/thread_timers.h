/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/signal/thread_timers.h - a timer of the processor time of each thread of this process,
 * whose signal goes to that thread; made from outside, the thread does nothing for it.
 *
 * Threads are looked for in /proc/self/task. A timer's first turn comes after a random part of a
 * period, so that threads of every length are sampled for what they use, and those that start
 * together not together. A thread that blocks the signal gets no timer: it might be waiting for
 * signals in sigwait, and would get one that it does not know.
 *
 * Threads:  the profiler's, which itself gets none. */
#ifndef OTELI_THREAD_TIMERS_H
#define OTELI_THREAD_TIMERS_H

#include "common/base/random.h"
#include "profiling/base/thread_list.h"

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

/* In so many scans, one after the other, a thread has to block the signal to be taken for one that
 * does. Each thread begins with all signals blocked, and blocks them while it makes another one. */
enum { OTELI_TIMER_LOOKS = 3 };

struct oteli_timed_thread {
    pid_t thread;
    bool has_timer;
    unsigned char looks; /* at which it blocked the signal, until they are enough */
    timer_t timer;
};

struct oteli_thread_timers {
    uint64_t period_ns;
    int signal_number;
    uint32_t tag; /* in the upper half of each signal's value; in the lower one its thread */
    struct oteli_random random;
    struct oteli_timed_thread *threads; /* upward */
    size_t count;
    size_t next_check; /* whose timer, */
    size_t next_mask;  /* and whose signals are looked at next */
    uint64_t blocking; /* threads that have no timer because they block the signal */
    uint64_t armed;    /* timers that were made since the start */
};

/* False: no random numbers. */
bool oteli_thread_timers_init(struct oteli_thread_timers *timers, uint64_t period_ns,
                              int signal_number, uint32_t tag);

/* Give a timer to each thread that has none, and take back those of threads that have ended. 0, or
 * an errno where not all could be done; the rest has been. */
int oteli_thread_timers_scan(struct oteli_thread_timers *timers);

/* Take all of them back, and the memory. Signals that are under way still come. */
void oteli_thread_timers_fini(struct oteli_thread_timers *timers);

/* Whether a thread of this process blocks a signal; false also where it has ended. */
bool oteli_thread_blocks(pid_t thread, int signal_number);

#endif
