/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/trend.h - whether something grows: the slope of samples, which a few of them that
 * are far off do not change (Theil and Sen: the median of the slopes between any two).
 *
 * Threads:  any. */
#ifndef OTELI_TESTS_TREND_H
#define OTELI_TESTS_TREND_H

#include <stddef.h>
#include <stdint.h>

struct trend_sample {
    double at_s;
    double value;
    uint32_t kind; /* only samples of the same kind are compared */
};

/* Units of value an hour, by pairs at least that far apart in time; 0 where there is no such
 * pair. */
double trend_per_hour(const struct trend_sample *samples, size_t count, double apart_s);

#endif
