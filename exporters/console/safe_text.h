/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/safe_text.h - text that grows, and text from strangers made harmless.
 *
 * Threads:  one thread at a time.
 * Errors:   without memory a text stops growing and remembers it in `failed`, so that
 *           only the end result has to be checked.
 * Columns are those of a terminal: a CJK character takes two, a combining one none. */
#ifndef OTELI_SAFE_TEXT_H
#define OTELI_SAFE_TEXT_H

#include "exporters/json/json_text.h"

/* Append as it is. */
void oteli_text_add_string(struct oteli_text *text, const char *string);
void oteli_text_add_format(struct oteli_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void oteli_text_add_spaces(struct oteli_text *text, size_t count);

/* Append what came from elsewhere: whatever could move a terminal's cursor, change its
 * state or turn the direction of writing is shown as an escape, and so is every byte
 * that is not UTF-8. Cut to `columns`, then ending in an ellipsis. Returns the columns
 * that it took. */
size_t oteli_text_add_safe(struct oteli_text *text, otel_slice unsafe, size_t columns);

/* Whether the character at the front of a text, which is not empty, is shown as it is; and its
 * bytes. */
bool oteli_text_is_safe(otel_slice unsafe, size_t *bytes);

/* How many columns that takes uncut; counting stops above `limit`. */
size_t oteli_text_safe_columns(otel_slice unsafe, size_t limit);

/* Append a string value of an attribute, in quotes where its end would not be clear. */
void oteli_text_add_quoted(struct oteli_text *text, otel_slice value);

#endif
