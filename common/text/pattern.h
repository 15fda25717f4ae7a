/* SPDX-License-Identifier: Apache-2.0 */
/* common/text/pattern.h - patterns with wildcards: `?` is one character, a code point of UTF-8,
 * `*` any number of them, and everything else is itself. Any thread; no state. */
#ifndef OTELI_PATTERN_H
#define OTELI_PATTERN_H

#include "common/base/internal_api.h"
#include <stdbool.h>
#include <stddef.h>

/* Whether the whole text is like the pattern. Takes time in proportion to the product of their
 * lengths at most. */
OTELI_INTERNAL_API bool oteli_pattern_matches(const char *pattern, const char *text, size_t length);

#endif
