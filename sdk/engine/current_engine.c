/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/engine/current_engine.c - the contracts are in sdk/engine/current_engine.h. */
#include "sdk/engine/current_engine.h"

struct oteli_current oteli_current;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t holder; /* of the lock: its pthread_self(); 0: no thread. Atomic */

static uint64_t self(void)
{
    return (uint64_t)(uintptr_t)pthread_self();
}

void oteli_current_lock(void)
{
    oteli_fork_notice();
    pthread_mutex_lock(&lock);
    oteli_store_relaxed_64(&holder, self());
}

bool oteli_current_try_lock(void)
{
    if (pthread_mutex_trylock(&lock) != 0)
        return false;
    oteli_store_relaxed_64(&holder, self());
    return true;
}

void oteli_current_unlock(void)
{
    oteli_store_relaxed_64(&holder, 0);
    pthread_mutex_unlock(&lock);
}

bool oteli_current_is_locked_here(void)
{
    return oteli_load_relaxed_64(&holder) == self();
}

void oteli_current_forget(void)
{
    if (oteli_current.is_running || oteli_current.is_disabled) {
        oteli_current.is_inherited = true;
        oteli_current.inherited = oteli_current.is_running ? oteli_current.engine : NULL;
    }
    oteli_current.engine = NULL;
    oteli_current.is_running = false;
    oteli_current.is_disabled = false;
    oteli_store_relaxed_64(&holder, 0);
    pthread_mutex_init(&lock, NULL);
}

struct oteli_engine *oteli_current_use_locked(otel_status *status)
{
    struct oteli_engine *used = oteli_current.is_running ? oteli_current.engine : NULL;
    if (used != NULL)
        used->users++;
    *status = used != NULL || oteli_current.is_disabled || oteli_current.is_inherited
                  ? OTEL_OK
                  : OTEL_ERROR_NOT_STARTED;
    return used;
}

struct oteli_engine *oteli_current_use(otel_status *status)
{
    oteli_current_lock();
    struct oteli_engine *used = oteli_current_use_locked(status);
    oteli_current_unlock();
    return used;
}

/* The engine stays until the next start, for its statistics. Its descriptors go now, if no thread
 * can be waking its worker any more; those that otel_poll_fd has lent stay with it. */
void oteli_current_leave(struct oteli_engine *used)
{
    oteli_current_lock();
    used->users--;
    if (used->users == 0 && oteli_load_acquire_32(&used->done) != 0 && !used->event_fds.is_chosen &&
        oteli_sdk_wait_until_left(0))
        oteli_event_fds_close(&used->event_fds);
    oteli_current_unlock();
}
