/* SPDX-License-Identifier: Apache-2.0 */
/* common/config/config_text.h - read the text of one setting by the rules of its row.
 *
 * Only for common/config/configuration.c. Threads: any; no state, no locale, no errno. */
#ifndef OTELI_CONFIG_TEXT_H
#define OTELI_CONFIG_TEXT_H

#include "common/config/configuration.h"
#include "common/text/text.h"

/* What a text means: one of the three, by the type of the row. */
struct oteli_setting {
    bool boolean;
    int64_t number;
    char *text; /* heap, the caller's; STRING, ENUM, LIST */
};

/* Read `text`, which is not empty, as a value of `row`; `in_code` says that it comes from
 * otel_sdk_options.
 * OTEL_ERROR_INVALID_ARGUMENT: it is none. OTEL_ERROR_UNSUPPORTED: it is one that this
 * build has not. In both cases `culprit` is the part of `text` to blame, and a list still
 * gives its good words, if it has any, in setting->text. OTEL_ERROR_NO_MEMORY. */
otel_status oteli_setting_parse(const struct oteli_config_row *row, otel_slice text, bool in_code,
                                struct oteli_setting *setting, otel_slice *culprit);

/* Write the words that a row's values can have as "a, b, c"; as much of it as `size` has room for,
 * NUL-terminated. */
void oteli_setting_words(const struct oteli_config_row *row, bool in_code, char *out, size_t size);

/* A value as it may be shown, without secrets: in at most `size` bytes of `out`, or elsewhere.
 * NULL: unset. */
const char *oteli_config_show(const struct oteli_config *config, const struct oteli_config_row *row,
                              char *out, size_t size);

#endif
