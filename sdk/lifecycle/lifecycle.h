/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/lifecycle.h - the engine that is running, and the lock that keeps it.
 *
 * Threads:  any. */
#ifndef OTELI_LIFECYCLE_H
#define OTELI_LIFECYCLE_H

#include "common/base/internal_api.h"

#include <otel/sdk.h>

struct oteli_engine;

/* The running engine, which stays while the caller uses it. NULL: none, and what to answer. */
struct oteli_engine *oteli_lifecycle_use(bool stop, otel_status *status);
void oteli_lifecycle_leave(struct oteli_engine *used);

/* The engine that runs, or ran last; NULL: none ever. Under oteli_lifecycle_lock. */
struct oteli_engine *oteli_lifecycle_engine(void);
void oteli_lifecycle_lock(void);
void oteli_lifecycle_unlock(void);

/* Whether this is a forked child whose parent had such a pipeline, and nothing has happened
 * in it yet. Under oteli_lifecycle_lock. */
bool oteli_lifecycle_inherits(size_t pipeline);

/* Free the engines that stopped, as the end of the process does. For tests. */
void oteli_lifecycle_reset(void);

#endif
