/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/thread.h - helpers: threads of ours beside the exporter thread, for who has to wait for
 * something else than spans.
 *
 * Threads:  start/stop only, but for the count. A helper does not exist in a forked child. */
#ifndef OTELI_SDK_THREAD_H
#define OTELI_SDK_THREAD_H

#include "common/lent.h"
#include <pthread.h>
#include <stdbool.h>

/* Start a helper, with all signals blocked. False: the system refuses. */
OTELI_LENT bool oteli_helper_start(pthread_t *thread, void *(*main)(void *), void *argument);

/* Wait for its end; somebody has asked for it. */
OTELI_LENT void oteli_helper_join(pthread_t thread);

/* How many there are. No program goes on for their sake alone. */
unsigned oteli_helpers(void);

#endif
