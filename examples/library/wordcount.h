/* SPDX-License-Identifier: Apache-2.0 */
/* examples/library/wordcount.h - a small library that can be traced and need not be. */
#ifndef WORDCOUNT_H
#define WORDCOUNT_H

#include <stddef.h>

/* How many words there are in a text. Any thread. */
size_t wordcount(const char *text);

#endif
