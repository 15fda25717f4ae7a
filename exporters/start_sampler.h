/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/start_sampler.h - the samplers of OTEL_TRACES_SAMPLER that have to ask somebody: those
 * that the SDK cannot make itself. Start/stop only. */
#ifndef OTELI_START_SAMPLER_H
#define OTELI_START_SAMPLER_H

#include "sdk/lifecycle/sdk_start.h"

/* Make the sampler that the configuration names, if it is of that kind; else `sampler->sample` is
 * NULL. A bad argument is one warning, and then as if it were not there. */
otel_status oteli_start_sampler(const struct oteli_engine_options *start, otel_sampler *sampler);

#endif
