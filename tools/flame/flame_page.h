/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_page.h - trees as a page or a picture to look at: one file, which needs nothing
 * else, shows everything without its script, and is well-formed XML.
 *
 * Threads:  one. */
#ifndef FLAME_PAGE_H
#define FLAME_PAGE_H

#include "tools/flame/flame_tree.h"

#include <stdio.h>

/* Groups that have a graph of their own in a page; the others are in its table. */
enum { FLAME_GRAPHS_MAX = 40 };

/* tools/flame.css and flame.js, as they are. */
extern const char flame_style[];
extern const char flame_script[];

/* A page with a graph of all samples and one for each value of the label, to choose from. */
void flame_page_write(FILE *out, const struct flame_tree *tree, const char *title);

/* One graph of all samples. */
void flame_svg_write(FILE *out, const struct flame_tree *tree, const char *title);

#endif
