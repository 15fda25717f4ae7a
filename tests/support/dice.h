/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/dice.h - chance that can be repeated, and every shape of text and value.
 *
 * Threads:  each thread has its own dice. What is returned by pointer lives in the dice's
 *           own memory until dice_forget. */
#ifndef OTELI_TESTS_DICE_H
#define OTELI_TESTS_DICE_H

#include <otel/value.h>

struct dice {
    uint64_t state;
    char *memory; /* DICE_MEMORY bytes */
    size_t used;
};

void dice_init(struct dice *dice, uint64_t seed);
void dice_fini(struct dice *dice);

/* Everything that was returned by pointer may be overwritten from here on. */
void dice_forget(struct dice *dice);

uint64_t dice_next(struct dice *dice);
uint32_t dice_below(struct dice *dice, uint32_t limit);
bool dice_one_in(struct dice *dice, uint32_t odds);

/* A text: empty, short, 4 KiB; ASCII, two to four bytes a character, control characters,
 * or no UTF-8 at all. Without a zero byte, but with a final NUL. */
const char *dice_text(struct dice *dice);

/* A key: often one that was used before, seldom none at all. */
const char *dice_key(struct dice *dice);

/* A value of any type, strings with zero bytes included, nested up to four deep. */
otel_value dice_value(struct dice *dice);

/* Up to `most` attributes. */
const otel_attribute *dice_attributes(struct dice *dice, uint32_t most, size_t *count);

#endif
