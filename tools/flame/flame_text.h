/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_text.h - words and numbers for people, and as XML wants them.
 *
 * Threads:  one. */
#ifndef FLAME_TEXT_H
#define FLAME_TEXT_H

#include <stdint.h>
#include <stdio.h>

struct flame_tree;

enum { FLAME_NUMBER_SIZE = 48 };

/* Text between tags or in an attribute: escaped, on one line, and without what XML does not allow
 * or what changes more than itself. */
void flame_put_text(FILE *out, const char *text);

/* The same for a terminal. */
void flame_put_plain(FILE *out, const char *text);

/* 12,345 */
const char *flame_count(uint64_t count, char text[FLAME_NUMBER_SIZE]);

/* 12.3 % */
const char *flame_share(int64_t part, int64_t whole, char text[FLAME_NUMBER_SIZE]);

/* 1.23 s, or the number with the unit of the profiles. */
const char *flame_value(const struct flame_tree *tree, int64_t value, char text[FLAME_NUMBER_SIZE]);

/* What all of it is: samples, time, profiles, when. */
void flame_put_summary(FILE *out, const struct flame_tree *tree);

#endif
