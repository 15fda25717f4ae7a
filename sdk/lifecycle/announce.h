/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/announce.h - one message at the start: where spans go, by which sampler, of which
 * service, and what said so. Start/stop only. */
#ifndef OTELI_ANNOUNCE_H
#define OTELI_ANNOUNCE_H

#include "sdk/lifecycle/sdk_start.h"

enum { OTELI_ANNOUNCEMENT_SIZE = 800, OTELI_SERVICE_SIZE = 256 };

/* Once the SDK has started, with the name of the service, or has found itself disabled. The level
 * is info; on stderr it appears only where a destination is a default, or at OTEL_LOG_DEBUG.
 * Secrets are not in it. */
void oteli_announce(const struct oteli_engine_options *options, const char *service,
                    char text[OTELI_ANNOUNCEMENT_SIZE]);

#endif
