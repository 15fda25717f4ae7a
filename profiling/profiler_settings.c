/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profiler_settings.c - see profiler_settings.h. Start/stop only; owns nothing. */
#include "profiling/profiler_settings.h"

#include <string.h>

bool oteli_profiler_source_of_word(const char *word, otel_profiler_source *source)
{
    static const struct {
        const char *word;
        otel_profiler_source source;
    } sources[] = {{"on", OTEL_PROFILER_AUTO},
                   {"auto", OTEL_PROFILER_AUTO},
                   {"perf", OTEL_PROFILER_PERF},
                   {"signal", OTEL_PROFILER_SIGNAL}};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        if (word != NULL && strcmp(word, sources[i].word) == 0) {
            *source = sources[i].source;
            return true;
        }
    }
    return false;
}

otel_pprof_style oteli_pprof_style_of_word(const char *word)
{
    if (word != NULL && strcmp(word, "datadog") == 0)
        return OTEL_PPROF_DATADOG;
    if (word != NULL && strcmp(word, "pyroscope") == 0)
        return OTEL_PPROF_PYROSCOPE;
    return OTEL_PPROF_OTEL;
}

bool oteli_profiler_names_of_word(const char *word, bool by_itself)
{
    if (word != NULL && strcmp(word, "on") == 0)
        return true;
    if (word != NULL && strcmp(word, "off") == 0)
        return false;
    return by_itself;
}
