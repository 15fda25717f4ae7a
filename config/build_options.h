/* SPDX-License-Identifier: Apache-2.0 */
/* config/build_options.h - from settings to the parts of an SDK, and to the options that otel_start
 * takes them with. Start/stop only. What is made here belongs to the caller. */
#ifndef OTELI_BUILD_OPTIONS_H
#define OTELI_BUILD_OPTIONS_H

#include "config/settings.h"

#include <otel/exporter.h>
#include <otel/processor.h>
#include <otel/sampler.h>

/* What otel_start is given. */
struct oteli_creation {
    otel_sdk_options options;
    otel_exporter *exporters; /* those of the file, then the program's */
    otel_processor *processors;
    size_t file_exporters, file_processors; /* how many of them are of the file */
    otel_sampler sampler;
    otel_attribute *attributes;
};

/* `own` is of the program, or NULL; its exporters, processors and sampler are adopted, also on
 * failure. `settings` has to stay while the SDK runs where it has rules about tracers. On
 * OTEL_OK, oteli_creation_free comes after otel_start, which adopts what the options have. */
otel_status oteli_create(const struct oteli_settings *settings, const otel_sdk_options *own,
                         struct oteli_file *file, struct oteli_creation *creation);
void oteli_creation_free(struct oteli_creation *creation);

/* For otel_sdk_options.tracer_enabled; `state` is the configurator of the settings. */
bool oteli_file_enables_tracer(void *state, const otel_scope_view *scope);

#endif
