/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/lifecycle.h - what otel_start has started beside the SDK, and otel_shutdown stops
 * first.
 *
 * Threads:  start/stop only. */
#ifndef OTELI_LIFECYCLE_H
#define OTELI_LIFECYCLE_H

#include "common/base/internal_api.h"

#include <stdint.h>

/* From now on otel_shutdown calls it before anything else, with half of its own time. It is
 * harmless when there is nothing to stop: after a first call, and in a forked child. NULL:
 * nothing is called. */
OTELI_INTERNAL_API void oteli_before_shutdown(void (*stop)(int64_t timeout_ms));

/* Free the engines that stopped, as the end of the process does. For tests. */
void oteli_lifecycle_reset(void);

#endif
