/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/start_profiler.c - see start_profiler.h. Start/stop only; owns nothing: the profiler
 * stops with otel_shutdown. */
#include "exporters/start_profiler.h"

#include "common/log.h"
#include "common/pin.h"

#include <otel/profiler.h>
#include <string.h>

/* There where the program is linked with otel-profiling itself, above all statically. */
#pragma weak otel_profiler_start_by_name

typedef otel_status start_by_name(const char *source, uint32_t frequency_hz, const char *out,
                                  const char *label_style);

void oteli_start_profiler(const struct oteli_config *config)
{
    if (strcmp(config->profiler, "off") == 0)
        return;
    start_by_name *start = NULL;
    if (&otel_profiler_start_by_name != NULL)
        start = otel_profiler_start_by_name;
    else
        start = (start_by_name *)oteli_load(
            OTELI_LIBRARY("otel-profiling", OTEL_VERSION_MAJOR), "otel_profiler_start_by_name",
            OTELI_LIBRARY("otel-api", OTEL_VERSION_MAJOR), (oteli_code *)otel_log_set_handler);
    if (start == NULL) {
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                         "no profiler: OTEL_C_PROFILER is \"%s\", and library %s cannot be loaded "
                         "into this program",
                         config->profiler, OTELI_LIBRARY("otel-profiling", OTEL_VERSION_MAJOR));
        return;
    }
    const otel_status status = start(config->profiler, (uint32_t)config->profiler_hz,
                                     config->profiler_out, config->pprof_label_style);
    if (status != OTEL_OK)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "no profiler: %s", otel_status_string(status));
}
