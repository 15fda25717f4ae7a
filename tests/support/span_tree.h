/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/span_tree.h - the spans of a memory exporter as one line of text.
 *
 *     "a(b c(d)) e"      two roots; b and c are children of a, d is one of c
 *
 * Siblings stand in the order of their export. A span whose parent is not there is a root,
 * with a '?' in front of its name.
 *
 * Threads:  those of the memory exporter. */
#ifndef OTELI_TESTS_SPAN_TREE_H
#define OTELI_TESTS_SPAN_TREE_H

#include <otel/memory.h>

/* Write the text, cut to `size`, with a final NUL. */
void span_tree_text(const otel_memory *memory, char *text, size_t size);

#endif
