/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otel_start.h - the parts of otel_start, one of which is for library otel-config.
 * Start/stop only. */
#ifndef OTELI_OTEL_START_H
#define OTELI_OTEL_START_H

#include "sdk/lifecycle/sdk_start.h"

/* otel_start without a look at OTEL_CONFIG_FILE; `file` (NULL: none) is for the message of the
 * start. */
OTELI_INTERNAL_API otel_status oteli_start_as(const otel_sdk_options *options,
                                              const struct oteli_start_file *file);

/* Start the profiler if the configuration has one, loading library otel-profiling where the program
 * was not linked with it. A program does not fail for the want of a profiler: why there is none is
 * one line in the log. */
void oteli_start_profiler(const struct oteli_config *config);

/* Make the sampler that the configuration names, if it is one that has to ask a server, which the
 * SDK cannot make itself; else `sampler->sample` is NULL. A bad argument from the
 * environment is left out, with a warning; one from code is OTEL_ERROR_INVALID_ARGUMENT. */
otel_status oteli_start_sampler(const struct oteli_engine_options *start, otel_sampler *sampler);

#endif
