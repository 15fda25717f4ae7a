/* SPDX-License-Identifier: Apache-2.0 */
/* functions/entry_hooks.h - what the hooks of the compiler need before they do anything.
 *
 * Threads:  oteli_custom_start start/stop only; oteli_custom_enable any thread. */
#ifndef OTELI_ENTRY_HOOKS_H
#define OTELI_ENTRY_HOOKS_H

#include "functions/frames.h"

/* Make spans from now on, with this tracer and these limits. */
void oteli_custom_start(otel_tracer *tracer, const struct oteli_frames_limits *limits);

/* Let functions that begin from now on have spans, or not. */
void oteli_custom_enable(bool enabled);

#endif
