/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/trend.c - the contract is in trend.h. */
#include "tests/support/trend.h"

#include <stdlib.h>

enum { HOUR_S = 3600 };

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

double trend_per_hour(const struct trend_sample *samples, size_t count, double apart_s)
{
    double *slopes = calloc(count * count / 2 + 1, sizeof *slopes);
    size_t used = 0;
    if (slopes == NULL)
        abort();
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++) {
            const double time_s = samples[j].at_s - samples[i].at_s;
            if (samples[i].kind == samples[j].kind && time_s >= apart_s)
                slopes[used++] = (samples[j].value - samples[i].value) / time_s * HOUR_S;
        }
    qsort(slopes, used, sizeof *slopes, compare);
    const double slope = used == 0 ? 0 : (slopes[(used - 1) / 2] + slopes[used / 2]) / 2;
    free(slopes);
    return slope;
}
