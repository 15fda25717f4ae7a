/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/samplers/ratio.h - what TraceIdRatioBased says about its use below a parent. Any thread. */
#ifndef OTELI_SAMPLERS_RATIO_H
#define OTELI_SAMPLERS_RATIO_H

#include <stdint.h>

/* Warn once for each flag, which was 0. */
void oteli_ratio_warn(uint32_t *has_warned, const char *parent_tracestate);

#endif
