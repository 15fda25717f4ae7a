/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/helper_thread.h - helpers: threads of ours beside the exporter thread, for parts that
 * wait for something else than spans.
 *
 * Threads:  start/stop only. A helper does not exist in a forked child. */
#ifndef OTELI_HELPER_THREAD_H
#define OTELI_HELPER_THREAD_H

#include "common/base/internal_api.h"
#include <pthread.h>
#include <stdbool.h>

/* The only place where a thread is made: all signals are blocked in it. 0, or an errno.
 * `stack_bytes` 0: enough. */
int oteli_thread_create(pthread_t *thread, size_t stack_bytes, void *(*main)(void *),
                        void *argument);

/* Start a helper, with all signals blocked. False: the system refuses. */
OTELI_INTERNAL_API bool oteli_helper_start(pthread_t *thread, void *(*main)(void *),
                                           void *argument);

/* The first thing that it does: its name, and that what it calls of the program's starts no
 * spans. */
OTELI_INTERNAL_API void oteli_helper_begin(const char *name);

#endif
