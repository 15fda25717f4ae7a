/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/composable/sampler_description.h - the text of a description, put together piece by piece.
 *
 * What does not fit is counted and not written, as snprintf does it, so that a describe function
 * answers how much room it needs. Numbers look the same in every locale.
 *
 * Threads:  any; no state. */
#ifndef OTELI_SAMPLER_DESCRIPTION_H
#define OTELI_SAMPLER_DESCRIPTION_H

#include <otel/sampler.h>

struct oteli_words {
    char *text; /* ends with a NUL wherever there is room for one */
    size_t size;
    size_t length; /* of the whole text, written or not */
};

struct oteli_words oteli_words_begin(char *text, size_t size);
void oteli_words_put(struct oteli_words *words, const char *piece);
void oteli_words_put_n(struct oteli_words *words, const char *piece, size_t length);

/* A ratio from 0 to 1 without an exponent: as many places as tell it from all others, and six at
 * least. */
void oteli_words_put_ratio(struct oteli_words *words, double ratio);

/* Any number, as short as tells it from all others: 404, 0.5, 1e+21, -1e-7, NaN, -Infinity. */
void oteli_words_put_double(struct oteli_words *words, double number);
void oteli_words_put_int(struct oteli_words *words, int64_t number);

/* Their own descriptions. */
void oteli_words_put_sampler(struct oteli_words *words, const otel_sampler *sampler);
void oteli_words_put_composable(struct oteli_words *words, const otel_composable *composable);

#endif
