/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/engine/current_engine.h - the engine that is running, and the lock that keeps it.
 *
 * Threads:  any. No thread waits for anything else while it holds the lock. */
#ifndef OTELI_CURRENT_ENGINE_H
#define OTELI_CURRENT_ENGINE_H

#include "sdk/engine/engine.h"

/* Under the lock. */
struct oteli_current {
    struct oteli_engine *engine; /* running, or the last that was; NULL: none ever */
    bool is_running;
    bool is_disabled; /* started by OTEL_SDK_DISABLED, to do nothing */

    /* A forked child, in which nothing has been decided yet: its SDK comes back with its first
     * span, unless it is started or shut down before. */
    bool is_inherited;
    struct oteli_engine *inherited; /* the parent's; never written. NULL: was disabled */
};
extern struct oteli_current oteli_current;

void oteli_current_lock(void);
bool oteli_current_try_lock(void);
void oteli_current_unlock(void);

/* Whether this thread has the lock: a signal handler over one of our own calls. */
bool oteli_current_is_locked_here(void);

/* In a forked child: what ran is the parent's, and no thread has the lock. */
void oteli_current_forget(void);

/* The running engine, which stays while the caller uses it. NULL: none, and what to answer. */
struct oteli_engine *oteli_current_use(otel_status *status);
struct oteli_engine *oteli_current_use_locked(otel_status *status); /* under the lock */
void oteli_current_leave(struct oteli_engine *used);

#endif
