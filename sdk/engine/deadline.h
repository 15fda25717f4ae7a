/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/engine/deadline.h - what is to be done until a monotonic time, in nanoseconds; UINT64_MAX:
 * without such a time. Any thread; no state. */
#ifndef OTELI_DEADLINE_H
#define OTELI_DEADLINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Lock a mutex; false: the deadline has come first. */
bool oteli_deadline_lock(pthread_mutex_t *mutex, uint64_t deadline_ns);

/* Wait, the mutex being held, for a change; false: the deadline has come. UINT64_MAX: none. The
 * condition's clock is the monotonic one. */
bool oteli_deadline_wait(pthread_cond_t *changed, pthread_mutex_t *mutex, uint64_t deadline_ns);

/* Sleep until then, on the monotonic clock. */
void oteli_deadline_sleep(uint64_t deadline_ns);

#endif
