/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_typos.c - the contracts are in
 * tools/doctor/settings/doctor_typos.h. */
#include "tools/doctor/settings/doctor_typos.h"

#include "common/config/configuration.h"
#include "common/text/text.h"

#include <stdint.h>
#include <stdio.h>

enum { LONGEST = 80, NEAR = 2 };

static size_t smallest(size_t a, size_t b, size_t c)
{
    const size_t less = a < b ? a : b;
    return less < c ? less : c;
}

size_t doctor_distance(const char *a, const char *b)
{
    const size_t rows = strlen(a);
    const size_t columns = strlen(b);
    if (rows > LONGEST || columns > LONGEST)
        return SIZE_MAX;
    size_t table[LONGEST + 1][LONGEST + 1]; /* distances between beginnings */
    for (size_t i = 0; i <= rows; i++) {
        for (size_t j = 0; j <= columns; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = i + j;
                continue;
            }
            const char last_a = oteli_to_lower(a[i - 1]);
            const char last_b = oteli_to_lower(b[j - 1]);
            table[i][j] = smallest(table[i - 1][j] + 1, table[i][j - 1] + 1,
                                   table[i - 1][j - 1] + (last_a != last_b));
            const bool swapped = i > 1 && j > 1 && last_a == oteli_to_lower(b[j - 2]) &&
                                 oteli_to_lower(a[i - 2]) == last_b;
            if (swapped && table[i - 2][j - 2] + 1 < table[i][j])
                table[i][j] = table[i - 2][j - 2] + 1;
        }
    }
    return table[rows][columns];
}

/* Whether `name` is `variable` with one of its words left out: OTEL_OTLP_ENDPOINT. */
static bool lacks_one_word(const char *name, const char *variable)
{
    const size_t length = strlen(name);
    const size_t whole = strlen(variable);
    if (length >= whole)
        return false;
    size_t same = 0;
    while (same < length && name[same] == variable[same])
        same++;
    while (same > 0 && variable[same - 1] != '_')
        same--;
    const size_t gap = whole - length;
    return gap > 1 && same > 0 && variable[same + gap - 1] == '_' &&
           memchr(variable + same, '_', gap - 1) == NULL &&
           strcmp(variable + same + gap, name + same) == 0;
}

const char *doctor_typo(const char *name, size_t length)
{
    char own[LONGEST + 1];
    if (length < 8 || length >= sizeof own || oteli_to_lower(name[0]) != 'o')
        return NULL;
    snprintf(own, sizeof own, "%.*s", (int)length, name);
    const char *nearest = NULL;
    size_t distance = NEAR + 1;
    for (size_t i = 0; i < oteli_config_row_count; i++) {
        const char *variable = oteli_config_rows[i].variable;
        if (strcmp(own, variable) == 0)
            return NULL;
        size_t near = doctor_distance(own, variable);
        if (near > NEAR && lacks_one_word(own, variable))
            near = NEAR;
        if (near < distance) {
            distance = near;
            nearest = variable;
        }
    }
    /* Of the processor of log records: right, and near to OTEL_BSP_. */
    return strncmp(own, "OTEL_BLRP_", strlen("OTEL_BLRP_")) == 0 ? NULL : nearest;
}
