/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/sampler_description.h - pieces of the descriptions of samplers. They look the same
 * in every locale.
 *
 * Threads:  any; no state. */
#ifndef OTELI_SAMPLER_DESCRIPTION_H
#define OTELI_SAMPLER_DESCRIPTION_H

#include "common/text/text.h"
#include <otel/sampler.h>

/* Write "name{ratio}", as a sampler's describe function does, and return its length. The ratio is
 * 0, or from 2^-56 to 1, and is written without an exponent: as many places as tell it from all
 * others, and six at least. */
size_t oteli_describe_ratio(const char *name, double ratio, char *text, size_t size);

/* Add the description of another sampler. */
void oteli_describe_sampler(struct oteli_text_builder *builder, const otel_sampler *sampler);
void oteli_describe_composable(struct oteli_text_builder *builder,
                               const otel_composable *composable);

#endif
