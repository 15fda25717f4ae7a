/* SPDX-License-Identifier: Apache-2.0 */
/* otel/config.h - declarative configuration: start the SDK from a YAML file.
 *
 * In a library of its own, `otel-config`, because it needs libfyaml. otel_start does the same
 * when OTEL_CONFIG_FILE is set: it loads that library then, and where it is not installed answers
 * OTEL_ERROR_UNSUPPORTED. A program that has otel-c as static libraries cannot load one that
 * belongs to it; it calls otel_start_from_file itself, and when that is linked into it, otel_start
 * finds it there.
 *
 * docs/DECLARATIVE.md has what a file may say.
 *
 * Threads:  start/stop only; otel_properties_* in the call of `create` that was given them.
 * Signals:  never in a handler: they read files and allocate.
 * Errors:   otel_status, and in the log a line for each fault of a file.
 * Source:   OpenTelemetry specification, configuration/{data-model,sdk}.md; schema of
 *           opentelemetry-configuration, file_format "1.1". */
#ifndef OTEL_CONFIG_H
#define OTEL_CONFIG_H

#include <otel/sdk.h>

OTEL_BEGIN_DECLS

/* Start the SDK as the file says. `options` (or NULL) may give what a file cannot: exporters,
 * processors, samplers of your own, the hooks of the thread; what both say, the file says, and
 * exporters and processors come after those of the file. The environment counts only where the
 * file refers to it (${NAME}). When the file cannot be used, nothing has been started, and the
 * log has one line for each fault: file, line and column, and the reason.
 * OTEL_ERROR_INVALID_ARGUMENT: the file; OTEL_ERROR_SYSTEM: it cannot be read. */
OTEL_API OTEL_MUST_USE otel_status otel_start_from_file(const char *path,
                                                        const otel_sdk_options *options);

/* Whether otel_start_from_file could use a file: read it, say what is wrong, and start nothing. */
OTEL_API OTEL_MUST_USE otel_status otel_check_file(const char *path);

/* --- Components of your own, by name ---
 *
 *     processors:
 *       - batch:
 *           exporter:
 *             my_exporter:            a name that has been registered, and its properties
 *               directory: /tmp */

/* What stands under the name: a mapping. Valid during the call that it was given to. */
typedef struct otel_properties otel_properties;

/* Read a property: true, and *value is set, if it is there, is not null and has the type; texts are
 * valid during the call. Otherwise false, and *value is what it was. */
OTEL_API bool otel_properties_text(const otel_properties *properties, const char *name,
                                   const char **value);
OTEL_API bool otel_properties_bool(const otel_properties *properties, const char *name,
                                   bool *value);
OTEL_API bool otel_properties_int(const otel_properties *properties, const char *name,
                                  int64_t *value);
OTEL_API bool otel_properties_double(const otel_properties *properties, const char *name,
                                     double *value);

/* A property that is a mapping, or NULL. */
OTEL_API const otel_properties *otel_properties_map(const otel_properties *properties,
                                                    const char *name);

/* The name of property number `index`; NULL behind the last. `*is_null` (or NULL) says whether it
 * is there without a value. */
OTEL_API const char *otel_properties_name(const otel_properties *properties, size_t index,
                                          bool *is_null);

/* Element `index` of a property that is a list of texts, numbers or mappings: as a mapping with the
 * one property "value", for the functions above. NULL: no list, or not that many elements. */
OTEL_API const otel_properties *otel_properties_element(const otel_properties *properties,
                                                        const char *name, size_t index);

typedef enum otel_component_type {
    OTEL_COMPONENT_EXPORTER = 1,  /* makes an otel_exporter */
    OTEL_COMPONENT_PROCESSOR = 2, /* makes an otel_processor */
    OTEL_COMPONENT_SAMPLER = 3    /* makes an otel_sampler */
} otel_component_type;

typedef struct otel_component_provider {
    size_t size; /* sizeof(otel_component_provider) */
    otel_component_type type;
    const char *name; /* in the file. Static text */
    void *state;

    /* Make a component of the type in *component. An error refuses the whole file, with a line
     * that names the place; say more about it in a log of your own. */
    otel_status (*create)(void *state, const otel_properties *properties, void *component);
} otel_component_provider;

#define OTEL_COMPONENT_PROVIDER(...) \
    (&(otel_component_provider){.size = sizeof(otel_component_provider), __VA_ARGS__})

/* Make a name known to the files that are read from now on. What it points to has to stay.
 * OTEL_ERROR_INVALID_ARGUMENT: the type has this name already, or something is missing.
 * OTEL_ERROR_NO_MEMORY: there are 64 of them. */
OTEL_API OTEL_MUST_USE otel_status otel_component_register(const otel_component_provider *provider);

OTEL_END_DECLS
#endif
