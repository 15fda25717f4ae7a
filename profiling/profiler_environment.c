/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profiler_environment.c - the profiler that OTEL_C_PROFILER asks for, or otel_start:
 * from words to options, and from otel_shutdown to the profiler's end.
 *
 * Start/stop only, but for otel_profiler_of_environment. Owns that profiler. */
#include "common/base/atomic.h"
#include "common/log.h"
#include "common/os/fork.h"
#include "profiling/signal/signal_source.h"
#include "sdk/lifecycle/lifecycle.h"

#include <otel/profiler.h>
#include <string.h>

static otel_profiler *started; /* atomic; NULL: none */

otel_profiler *otel_profiler_of_environment(void)
{
    oteli_fork_notice();
    return OTELI_LOAD_ACQUIRE_PTR(&started);
}

static void stop(int64_t timeout_ms)
{
    otel_profiler *profiler = otel_profiler_of_environment();
    if (profiler == NULL)
        return;
    OTELI_STORE_RELEASE_PTR(&started, NULL);
    const otel_status status = otel_profiler_stop(profiler, timeout_ms);
    if (status != OTEL_OK)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "the last profile did not arrive: %s",
                         otel_status_string(status));
}

/* A child has no profiler. */
static void forget(void)
{
    OTELI_STORE_RELEASE_PTR(&started, NULL);
}

static bool is_word(const char *given, const char *word)
{
    return given != NULL && strcmp(given, word) == 0;
}

static otel_profile_exporter exporter_of(const otel_profiler_words *words)
{
    const otel_pprof_style style = is_word(words->label_style, "datadog")     ? OTEL_PPROF_DATADOG
                                   : is_word(words->label_style, "pyroscope") ? OTEL_PPROF_PYROSCOPE
                                                                              : OTEL_PPROF_OTEL;
    otel_profile_exporter exporter = words->out == NULL || is_word(words->out, "otlp")
                                         ? otel_otlp_profile_exporter(words->otlp)
                                         : otel_pprof_file_exporter(words->out, style);
    if (is_word(words->names, "on") || is_word(words->names, "off"))
        exporter.wants_names = is_word(words->names, "on");
    return exporter;
}

static otel_status start(const otel_profiler_words *words)
{
    otel_profiler_options options = {.size = sizeof options,
                                     .frequency_hz = words->frequency_hz,
                                     .signal_number = words->signal_number};
    if (is_word(words->source, "perf"))
        options.source = OTEL_PROFILER_PERF;
    else if (is_word(words->source, "signal"))
        options.source = OTEL_PROFILER_SIGNAL;
    else if (!is_word(words->source, "on") && !is_word(words->source, "auto"))
        return OTEL_ERROR_INVALID_ARGUMENT;
    if (otel_profiler_of_environment() != NULL)
        return OTEL_ERROR_ALREADY_STARTED;
    if (words->signal_number != 0 && !oteli_signal_is_usable(words->signal_number)) {
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                         "OTEL_C_PROFILER_SIGNAL is %d: a profiler cannot take this signal",
                         words->signal_number);
        return OTEL_ERROR_INVALID_ARGUMENT;
    }
    options.exporter = exporter_of(words);
    if (options.exporter.state == NULL)
        return OTEL_ERROR_NO_MEMORY;
    otel_profiler *profiler = NULL;
    const otel_status status = otel_profiler_start(&options, &profiler);
    if (status != OTEL_OK)
        return status;
    OTELI_STORE_RELEASE_PTR(&started, profiler);
    oteli_fork_add(forget);
    oteli_before_shutdown(stop);
    return OTEL_OK;
}

otel_status otel_profiler_start_by_words(const otel_profiler_words *words)
{
    otel_profiler_words known = {.size = sizeof known};
    if (words == NULL || words->size < sizeof words->size)
        return OTEL_ERROR_INVALID_ARGUMENT;
    memcpy(&known, words, words->size < sizeof known ? words->size : sizeof known);
    return start(&known);
}
