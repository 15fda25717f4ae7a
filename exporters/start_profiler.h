/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/start_profiler.h - the profiler that OTEL_C_PROFILER asks for. Start/stop only. */
#ifndef OTELI_START_PROFILER_H
#define OTELI_START_PROFILER_H

#include "common/config/configuration.h"

/* Start it if the configuration has one, loading library otel-profiling where the program was not
 * linked with it. A program does not fail for the want of a profiler: why there is none is one line
 * in the log. */
void oteli_start_profiler(const struct oteli_config *config);

#endif
