/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/ending.h - a process whose main thread has left ends with its last thread, and the
 * exporter thread is not one of the program's.
 *
 * After pthread_exit in main, the C library calls exit(0) when the last thread ends. With an
 * exporter thread that would be never, and as it blocks all signals, SIGTERM would not help
 * either. So when the main thread ends while an SDK runs, another thread looks from time to
 * time whether only ours are left, and then does what the C library would have done.
 *
 * Threads:  start/stop only. */
#ifndef OTELI_SDK_ENDING_H
#define OTELI_SDK_ENDING_H

#include <stdbool.h>

/* An exporter thread was started, by this thread. It is known only of the main thread when it
 * ends, so a program that means to leave it calls otel_start there. */
void oteli_ending_watch(void);

/* The SDK has stopped, and this thread called for it. Whether nothing of this file runs or
 * will. */
bool oteli_ending_unwatch(void);

/* This library is unloaded. */
void oteli_ending_fini(void);

#endif
