/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/ratio_sampler.h - what TraceIdRatioBased says about its use below a parent. Any
 * thread. */
#ifndef OTELI_RATIO_SAMPLER_H
#define OTELI_RATIO_SAMPLER_H

#include <stdint.h>

/* Warn once for each flag, which was 0. */
void oteli_ratio_warn(uint32_t *has_warned, const char *parent_tracestate);

#endif
