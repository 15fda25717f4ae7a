/* SPDX-License-Identifier: Apache-2.0 */
/* config/build_options.h - from settings to the parts of an SDK, and to the options that otel_start
 * takes them with. Start/stop only. */
#ifndef OTELI_BUILD_OPTIONS_H
#define OTELI_BUILD_OPTIONS_H

#include "config/settings.h"

#include <otel/exporter.h>
#include <otel/processor.h>
#include <otel/sampler.h>

/* What otel_start is given. */
struct oteli_creation {
    otel_sdk_options options; /* exporters and processors of the file first, then the program's */
    size_t file_exporters, file_processors; /* how many of them are of the file */
    otel_sampler sampler;
};

/* `own` is of the program, or NULL; its exporters, processors and sampler are adopted, also on
 * failure. What the options point to is in the pool of the file until otel_start, which adopts
 * exporters, processors and sampler; the file has to stay while the SDK runs where it has rules
 * about tracers. */
otel_status oteli_create(const struct oteli_settings *settings, const otel_sdk_options *own,
                         struct oteli_file *file, struct oteli_creation *creation);

/* For otel_sdk_options.tracer_enabled; `state` is the configurator of the settings. */
bool oteli_file_enables_tracer(void *state, const otel_scope_view *scope);

#endif
