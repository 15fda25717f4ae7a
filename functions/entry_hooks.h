/* SPDX-License-Identifier: Apache-2.0 */
/* functions/entry_hooks.h - what the hooks of the compiler need before they do anything.
 *
 * Threads:  start/stop only. */
#ifndef OTELI_ENTRY_HOOKS_H
#define OTELI_ENTRY_HOOKS_H

#include "functions/frames.h"

/* Make spans from now on, with this tracer and these limits. */
void oteli_custom_start(otel_tracer *tracer, const struct oteli_frames_limits *limits);

#endif
