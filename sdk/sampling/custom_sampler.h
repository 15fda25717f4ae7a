/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/custom_sampler.h - the program's own sampler. Asked by app threads, concurrently. */
#ifndef OTELI_CUSTOM_SAMPLER_H
#define OTELI_CUSTOM_SAMPLER_H

#include "api/thread/sdk_slot.h"

/* The sampler of the options (or NULL), whose program may know less of it. Its function `sample` is
 * NULL: there is none. */
otel_sampler oteli_custom_sampler_known(const otel_sampler *sampler);

void oteli_custom_sample(const otel_sampler *sampler,
                         const struct oteli_sampling_question *question,
                         otel_sampling_result *result);

#endif
