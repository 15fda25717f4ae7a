/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/sampler_description.h - pieces of the descriptions of samplers. They look the same
 * in every locale.
 *
 * Threads:  any; no state. */
#ifndef OTELI_SAMPLER_DESCRIPTION_H
#define OTELI_SAMPLER_DESCRIPTION_H

#include "common/text/text.h"
#include <otel/sampler.h>

/* A ratio that is 0, or from 2^-56 to 1, without an exponent: as many places as tell it from all
 * others, and six at least. */
enum { OTELI_RATIO_SIZE = 128 };
const char *oteli_ratio_text(double ratio, char text[OTELI_RATIO_SIZE]);

/* Add the description of another sampler. */
void oteli_describe_sampler(struct oteli_text_builder *builder, const otel_sampler *sampler);
void oteli_describe_composable(struct oteli_text_builder *builder,
                               const otel_composable *composable);

#endif
