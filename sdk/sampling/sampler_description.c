/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/sampler_description.c - the contracts are in sampler_description.h. Any thread;
 * owns nothing. */
#include "sdk/sampling/sampler_description.h"

#include <stdio.h>
#include <stdlib.h>

enum { LEAST_PLACES = 6, MOST_PLACES = 120, RATIO_SIZE = 128 };

/* Between the first digit and the places stands the point of the locale, of one byte or more. */
static const char *ratio_text(double ratio, char text[RATIO_SIZE])
{
    int places = LEAST_PLACES;
    int length = snprintf(text, RATIO_SIZE, "%.*f", places, ratio);
    while (places < MOST_PLACES && strtod(text, NULL) != ratio)
        length = snprintf(text, RATIO_SIZE, "%.*f", ++places, ratio);
    text[1] = '.';
    memmove(text + 2, text + length - places, (size_t)places + 1);
    return text;
}

size_t oteli_describe_ratio(const char *name, double ratio, char *text, size_t size)
{
    char digits[RATIO_SIZE];
    return (size_t)snprintf(text, size, "%s{%s}", name, ratio_text(ratio, digits));
}

/* Let a describe function append to the text. */
static void put_described(struct oteli_text_builder *builder,
                          size_t (*describe)(const void *, char *, size_t), const void *state)
{
    if (describe == NULL) {
        oteli_build(builder, "custom");
        return;
    }
    const bool fits = builder->length < builder->size;
    builder->length += describe(state, fits ? builder->text + builder->length : NULL,
                                fits ? builder->size - builder->length : 0);
}

void oteli_describe_sampler(struct oteli_text_builder *builder, const otel_sampler *sampler)
{
    put_described(builder, sampler->describe, sampler->state);
}

void oteli_describe_composable(struct oteli_text_builder *builder,
                               const otel_composable *composable)
{
    put_described(builder, composable->describe, composable->state);
}
