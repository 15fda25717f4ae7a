/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/signal/signal_source.h - samples by timers of processor time and a signal, for where
 * the kernel gives no perf events (sample.h).
 *
 * What a program notices: the signal has a handler of ours (SA_RESTART, on the alternate stack
 * where there is one) from start to stop, and a call that SA_RESTART does not go on with may come
 * back with EINTR, if its thread has used up a period of processor time inside of it. A handler of
 * the program's is never replaced, and if the program installs one later, sampling ends.
 *
 * Threads:  the profiler's; the handler on every other one that does not block the signal. */
#ifndef OTELI_SIGNAL_SOURCE_H
#define OTELI_SIGNAL_SOURCE_H

#include "profiling/signal/sample_buffer.h"

enum { OTELI_SIGNAL_SAMPLE_BYTES = sizeof(struct oteli_sample_slot) }; /* of its buffer */

/* Whether a signal can be used for this at all: it exists, is not libc's own, and stands for no
 * fault. */
bool oteli_signal_is_usable(int signal_number);

#endif
