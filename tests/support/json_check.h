/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/json_check.h - is this text one JSON value, to the letter of RFC 8259?
 *
 * Stricter than most parsers: strings are valid UTF-8 without lone surrogates, and nothing
 * stands behind the value. Any thread. */
#ifndef OTELI_TESTS_JSON_CHECK_H
#define OTELI_TESTS_JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>

enum { JSON_CHECK_DEPTH = 1024 };

bool json_is_valid(const char *text, size_t length);

#endif
