/* SPDX-License-Identifier: Apache-2.0 */
/* common/os/thread_fence.h - a full fence in every thread of the process at once, for protocols in
 * which one side must pay nothing: membarrier() of Linux.
 *
 * What a thread has stored before the fence the caller sees behind it, and what the caller has
 * stored before it the thread sees from then on. */
#ifndef OTELI_THREAD_FENCE_H
#define OTELI_THREAD_FENCE_H

#include "common/base/internal_api.h"
#include <stdbool.h>

/* Before the first thread is made: later the kernel would take some 15 ms, and nothing is done. */
OTELI_INTERNAL_API void oteli_thread_fence_prepare(void);

/* Whether there are such fences in this process. */
bool oteli_thread_fence_is_ready(void);

/* Any thread; about a microsecond. */
void oteli_thread_fence(void);

#endif
