/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/composable/probability.h - which ratios are probabilities. Any thread; no state. */
#ifndef OTELI_PROBABILITY_H
#define OTELI_PROBABILITY_H

#include <stdbool.h>

/* From 2^-56 to 1, or 0: never. */
bool oteli_probability_is_valid(double ratio);

#endif
