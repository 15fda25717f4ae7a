/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/start_profiler.c - OTEL_C_PROFILER: the contract is in otel_start.h. Start/stop only;
 * owns nothing: the profiler stops with otel_shutdown. */
#include "exporters/otel_start.h"

#include "common/log.h"
#include "common/os/library.h"
#include "exporters/start_otlp.h"

#include <otel/profiler.h>
#include <string.h>

/* There where the program is linked with otel-profiling itself, above all statically. */
#pragma weak otel_profiler_start_by_words

typedef otel_status start_by_words(const otel_profiler_words *words);

static start_by_words *find(void)
{
    if (&otel_profiler_start_by_words != NULL)
        return otel_profiler_start_by_words;
    return (start_by_words *)oteli_load(OTELI_LIBRARY("otel-profiling"),
                                        "otel_profiler_start_by_words", OTELI_LIBRARY("otel-api"),
                                        (oteli_code *)otel_log_set_handler);
}

static otel_status start(start_by_words *start_with, const struct oteli_config *config)
{
    otel_profiler_words words = {.size = sizeof words,
                                 .source = config->profiler,
                                 .frequency_hz = (uint32_t)config->profiler_hz,
                                 .out = config->profiler_out,
                                 .label_style = config->pprof_label_style,
                                 .names = config->profiler_names,
                                 .signal_number = (int)config->profiler_signal};
    struct oteli_start_otlp otlp;
    if (strcmp(config->profiler_out, "otlp") != 0)
        return start_with(&words);
    if (!oteli_start_otlp_init(&otlp, OTELI_SIGNAL_PROFILES, config))
        return OTEL_ERROR_NO_MEMORY;
    words.otlp = &otlp.options;
    const otel_status status = start_with(&words);
    oteli_start_otlp_fini(&otlp);
    return status;
}

void oteli_start_profiler(const struct oteli_config *config)
{
    if (strcmp(config->profiler, "off") == 0)
        return;
    start_by_words *start_with = find();
    if (start_with == NULL) {
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                         "no profiler: OTEL_C_PROFILER is \"%s\", and library %s cannot be loaded "
                         "into this program: put it beside %s, or link the program with it",
                         config->profiler, OTELI_LIBRARY("otel-profiling"),
                         OTELI_LIBRARY("otel-api"));
        return;
    }
    const otel_status status = start(start_with, config);
    if (status != OTEL_OK)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "no profiler: %s", otel_status_string(status));
}
