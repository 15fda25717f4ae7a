/* SPDX-License-Identifier: Apache-2.0 */
/* functions/functions_settings.c - three rows of common/config/config_table.h. Runs when the
 * library is loaded. */
#include "functions/functions_settings.h"

#include "common/clock/time_units.h"
#include "common/config/configuration.h"
#include "common/text/text.h"

struct row {
    const char *variable;
    const char *default_text;
    int64_t min, max;
};
#define ROW(name, variable, type, default_text, min, max, words, option, doc) \
    static const struct row name = {variable, default_text, min, max};
OTELI_CONFIG_FUNCTIONS(ROW)

_Static_assert(OTELI_MAX_FUNCTION_DEPTH == OTELI_FRAMES_MOST, "the table says what fits");

static bool is_number(const struct row *row, const char *text, int64_t *number)
{
    return text != NULL && oteli_parse_whole(oteli_slice_of(text), number) && *number >= row->min &&
           *number <= row->max;
}

static int64_t read_number(const struct row *row)
{
    int64_t number = 0;
    if (!is_number(row, oteli_env_get(row->variable), &number))
        is_number(row, row->default_text, &number);
    return number;
}

void oteli_function_settings_read(struct oteli_function_settings *settings)
{
    settings->limits.min_ns = (uint64_t)read_number(&functions_min_duration) * OTELI_NS_PER_US;
    settings->limits.max_depth = (uint32_t)read_number(&functions_max_depth);
    const char *exclude = oteli_env_get(functions_exclude.variable);
    settings->exclude = exclude != NULL ? oteli_slice_copy(oteli_slice_of(exclude)) : NULL;
}
