/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_typos.c - the contracts are in
 * tools/doctor/settings/doctor_typos.h. */
#include "tools/doctor/settings/doctor_typos.h"

#include "common/config/configuration.h"
#include "common/text/text.h"

#include <stdio.h>

enum { LONGEST = 80, NEAR = 2 };

/* Of the specification or of another language's SDK: right, only not for us. */
static const char *const foreign[] = {
    "OTEL_BLRP_",
    "OTEL_LOGS_",
    "OTEL_LOGRECORD_",
    "OTEL_METRIC",
    "OTEL_EXPORTER_OTLP_METRICS_",
    "OTEL_EXPORTER_OTLP_LOGS_",
    "OTEL_EXPORTER_OTLP_PROFILES_",
    "OTEL_EXPORTER_ZIPKIN_",
    "OTEL_EXPORTER_JAEGER_",
    "OTEL_EXPORTER_PROMETHEUS_",
    "OTEL_INSTRUMENTATION_",
    "OTEL_SEMCONV_",
    "OTEL_PYTHON_",
    "OTEL_JAVA",
    "OTEL_NODE_",
    "OTEL_GO_",
    "OTEL_DOTNET_",
    "OTEL_PHP_",
    "OTEL_RUBY_",
};

static size_t smallest(size_t a, size_t b, size_t c)
{
    const size_t less = a < b ? a : b;
    return less < c ? less : c;
}

size_t doctor_distance(const char *a, const char *b, size_t limit)
{
    const size_t rows = strlen(a);
    const size_t columns = strlen(b);
    if (rows > LONGEST || columns > LONGEST)
        return limit + 1;
    /* Three rows of the table of distances between beginnings are enough. */
    size_t table[3][LONGEST + 1];
    for (size_t j = 0; j <= columns; j++)
        table[0][j] = j;
    for (size_t i = 1; i <= rows; i++) {
        size_t *row = table[i % 3];
        const size_t *above = table[(i - 1) % 3];
        const size_t *before = table[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            const bool same = oteli_to_lower(a[i - 1]) == oteli_to_lower(b[j - 1]);
            row[j] = smallest(above[j] + 1, row[j - 1] + 1, above[j - 1] + !same);
            const bool swapped = i > 1 && j > 1 &&
                                 oteli_to_lower(a[i - 1]) == oteli_to_lower(b[j - 2]) &&
                                 oteli_to_lower(a[i - 2]) == oteli_to_lower(b[j - 1]);
            if (swapped && before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
    }
    const size_t distance = table[rows % 3][columns];
    return distance <= limit ? distance : limit + 1;
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

static bool is_foreign(const char *name)
{
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        if (strncmp(name, foreign[i], strlen(foreign[i])) == 0)
            return true;
    }
    return false;
}

const char *doctor_slip(const char *name, size_t length)
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
        size_t near = doctor_distance(own, variable, NEAR);
        if (near > NEAR && lacks_one_word(own, variable))
            near = NEAR;
        if (near < distance) {
            distance = near;
            nearest = variable;
        }
    }
    return is_foreign(own) ? NULL : nearest;
}
