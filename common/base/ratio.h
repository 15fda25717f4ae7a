/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/ratio.h - TraceIdRatioBased's decision: the low 64 bits of the trace id, as a big
 * number, are below the ratio's part of 2^64. The same as in the SDKs for Go and Python.
 *
 * Threads:  any; no state. */
#ifndef OTELI_RATIO_H
#define OTELI_RATIO_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct oteli_ratio {
    uint64_t threshold; /* sampled are the trace ids whose low 64 bits are below it … */
    bool all;           /* … or all of them */
};

/* Of a ratio from 0 to 1. */
static inline struct oteli_ratio oteli_ratio_of(double ratio)
{
    const double two_to_64 = 18446744073709551616.0;
    const double threshold = ratio * two_to_64 + 0.5;
    struct oteli_ratio of;
    of.all = threshold >= two_to_64;
    of.threshold = of.all ? UINT64_MAX : (uint64_t)threshold;
    return of;
}

/* The number that decides, of the second half of a trace id as a word of memory. */
static inline uint64_t oteli_ratio_number(uint64_t half)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    half = __builtin_bswap64(half);
#endif
    return half;
}

static inline bool oteli_ratio_samples(const struct oteli_ratio *ratio, const uint8_t trace_id[16])
{
    uint64_t half;
    memcpy(&half, trace_id + 8, sizeof half);
    return ratio->all || oteli_ratio_number(half) < ratio->threshold;
}

#endif
