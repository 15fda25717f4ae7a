/* SPDX-License-Identifier: Apache-2.0 */
/* common/text/secrets.h - show texts without what is secret in them: asterisks stand for the users,
 * passwords and queries of URLs, also where a password has characters in it that a URL cannot have
 * there, and in front of a host without a scheme.
 *
 * Threads:  any thread; no state.
 * Each writes at most `size` bytes, not 0, cuts what does not fit, and returns `out`. What is
 * shown already stays as it is. */
#ifndef OTELI_SECRETS_H
#define OTELI_SECRETS_H

#include "common/base/internal_api.h"

#include <stddef.h>

/* Words with URLs among them. */
const char *oteli_hide_in_words(const char *text, char *out, size_t size);

/* One setting, in which blanks and quotation marks may be part of a password. */
OTELI_INTERNAL_API const char *oteli_hide_in_setting(const char *text, char *out, size_t size);

/* A list of headers, with asterisks for their values. */
const char *oteli_hide_header_values(const char *list, char *out, size_t size);

#endif
