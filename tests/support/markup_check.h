/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/markup_check.h - is a page that was made from hostile names still the page that it
 * was meant to be? It has to be well-formed XML of the elements and attributes that otel-flame uses
 * and of no others, with its own style and script, in valid UTF-8.
 *
 * Pure functions. */
#ifndef OTELI_TESTS_MARKUP_CHECK_H
#define OTELI_TESTS_MARKUP_CHECK_H

#include <stddef.h>

/* What is wrong, with the place in *at; NULL: nothing. */
const char *markup_fault(const char *text, size_t length, const char *style, const char *script,
                         size_t *at);

#endif
