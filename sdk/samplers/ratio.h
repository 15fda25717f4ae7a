/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/samplers/ratio.h - TraceIdRatioBased's decision: the low 64 bits of the trace id, as a big
 * number, are below the ratio's part of 2^64. The same as in the SDKs for Go and Python.
 *
 * Threads:  any; no state. */
#ifndef OTELI_SAMPLERS_RATIO_H
#define OTELI_SAMPLERS_RATIO_H

#include <stdbool.h>
#include <stdint.h>

struct oteli_ratio {
    uint64_t threshold; /* sampled are the trace ids whose low 64 bits are below it … */
    bool all;           /* … or all of them */
};

/* Of a ratio from 0 to 1. */
struct oteli_ratio oteli_ratio_of(double ratio);

bool oteli_ratio_samples(const struct oteli_ratio *ratio, const uint8_t trace_id[16]);

#endif
