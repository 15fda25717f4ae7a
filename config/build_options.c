/* SPDX-License-Identifier: Apache-2.0 */
/* config/build_options.c - settings and the program's own options as the options of otel_start; see
 * build_options.h. What both say, the file says; what neither says is a default, as with
 * `ignore_environment` the environment says nothing. Start/stop only. */
#include "config/build_options.h"

#include "common/config/configuration.h"
#include "common/text/pattern.h"
#include "common/text/text.h"
#include "sdk/lifecycle/sdk_start.h"

#include <string.h>

/* The defaults of the program, of which there may be none, or those of an older header. */
static otel_sdk_options defaults_of(const otel_sdk_options *options)
{
    return oteli_start_options(options->defaults).program;
}

/* --- Tracers --- */

bool oteli_file_enables_tracer(void *state, const otel_scope_view *scope)
{
    const struct oteli_node *configurator = state;
    size_t count;
    const struct oteli_item *item = oteli_read_list(configurator, "tracers", &count);
    for (; item != NULL; item = item->next)
        if (oteli_pattern_matches(oteli_read_text(item->value, "name"), scope->name.data,
                                  scope->name.length))
            return oteli_read_bool(oteli_node_value(item->value, "config"), "enabled", true);
    return oteli_read_bool(oteli_node_value(configurator, "default_config"), "enabled", true);
}

/* --- Processors --- */

/* Put those of the file before those of the program. On failure all are freed. */
static otel_status make_processors(const struct oteli_settings *settings, struct oteli_file *file,
                                   struct oteli_creation *creation)
{
    otel_sdk_options *options = &creation->options;
    const otel_sdk_options own = *options;
    const struct oteli_node *list = settings->processors;
    const size_t count = list != NULL ? list->count : 0;
    otel_exporter *exporters = oteli_file_take(file, count + own.exporter_count, sizeof *exporters);
    otel_processor *processors =
        oteli_file_take(file, count + own.processor_count, sizeof *processors);
    if (exporters == NULL || processors == NULL)
        return OTEL_ERROR_NO_MEMORY;
    options->exporters = exporters;
    options->exporter_count = 0;
    options->processors = processors;
    options->processor_count = 0;
    otel_status status = OTEL_OK;
    const struct oteli_item *item = count != 0 && !settings->is_disabled ? list->items : NULL;
    for (; item != NULL && status == OTEL_OK; item = item->next) {
        bool is_batch;
        otel_exporter exporter = {.size = 0};
        status = oteli_make_processor(item->value, file, &is_batch, &exporter,
                                      &processors[options->processor_count]);
        if (status == OTEL_OK && is_batch)
            exporters[options->exporter_count++] = exporter;
        options->processor_count += status == OTEL_OK && !is_batch;
    }
    creation->file_exporters = options->exporter_count;
    creation->file_processors = options->processor_count;
    for (size_t i = 0; i < own.exporter_count; i++)
        exporters[options->exporter_count++] = own.exporters[i];
    for (size_t i = 0; i < own.processor_count; i++)
        processors[options->processor_count++] = own.processors[i];
    return status;
}

/* --- The resource --- */

/* The name that the file itself has for the service, in *name; false: it has none. It has no
 * end of its own. */
static bool find_service_name(const struct oteli_settings *settings, otel_slice *name)
{
    static const char service_name[] = "service.name";
    for (size_t i = settings->attribute_count; i-- > 0;) {
        const otel_attribute *attribute = &settings->attributes[i];
        if (!oteli_is_text(oteli_key_of(attribute), service_name))
            continue;
        const bool is_text = attribute->value.type == OTEL_VALUE_STRING;
        *name = oteli_slice_of(is_text ? attribute->value.as.string : "");
        return true;
    }
    otel_slice rest = oteli_slice_of(settings->options.resource_attributes);
    otel_slice pair, key, value;
    bool is_there = false;
    while (oteli_list_next(&rest, &pair)) {
        if (!oteli_cut(pair, '=', &key, &value) || !oteli_is_word(key, service_name))
            continue;
        *name = value;
        is_there = true;
    }
    return is_there;
}

/* Of two attributes with one key the later counts, so the file's come last. */
static otel_status set_resource(const struct oteli_settings *settings, struct oteli_file *file,
                                otel_sdk_options *options)
{
    const size_t own = options->resource != NULL ? options->resource_count : 0;
    otel_attribute *attributes =
        oteli_file_take(file, own + settings->attribute_count, sizeof *attributes);
    if (attributes == NULL)
        return OTEL_ERROR_NO_MEMORY;
    for (size_t i = 0; i < own; i++)
        attributes[i] = options->resource[i];
    for (size_t i = 0; i < settings->attribute_count; i++)
        attributes[own + i] = settings->attributes[i];
    options->resource = attributes;
    options->resource_count = own + settings->attribute_count;
    otel_slice name;
    if (find_service_name(settings, &name))
        options->service_name = NULL;
    else if (settings->detects_service && options->service_name == NULL)
        options->service_name = oteli_env_get("OTEL_SERVICE_NAME");
    if (settings->options.resource_schema_url != NULL)
        options->resource_schema_url = settings->options.resource_schema_url;
    if (options->resource_detectors == NULL && defaults_of(options).resource_detectors == NULL)
        options->resource_detectors = "none";
    return OTEL_OK;
}

/* --- The sampler --- */

static otel_status make_sampler(const struct oteli_settings *settings, struct oteli_file *file,
                                struct oteli_creation *creation)
{
    otel_sdk_options *options = &creation->options;
    if (settings->sampler == NULL)
        return OTEL_OK;
    if (options->sampler != NULL && options->sampler->free != NULL)
        options->sampler->free(options->sampler->state);
    options->sampler = NULL;
    if (settings->is_disabled)
        return OTEL_OK;
    const char *own =
        options->service_name != NULL ? options->service_name : defaults_of(options).service_name;
    otel_slice name = oteli_slice_of(own);
    (void)find_service_name(settings, &name);
    const char *service_name = name.length != 0 ? oteli_file_copy(file, name) : NULL;
    if (name.length != 0 && service_name == NULL)
        return OTEL_ERROR_NO_MEMORY;
    const otel_status status = oteli_make_sampler(settings, service_name, file, &creation->sampler);
    if (status == OTEL_OK)
        options->sampler = &creation->sampler;
    return status;
}

/* --- Words --- */

static void set_words(const struct oteli_settings *settings, otel_sdk_options *options)
{
    options->ignore_environment = true;
    options->traces_exporter = "none";
    options->sdk_disabled = settings->is_disabled ? "true" : "false";
    if (settings->options.propagators != NULL)
        options->propagator = NULL;
    else if (options->propagators == NULL && defaults_of(options).propagators == NULL)
        options->propagators = "none";
    if (settings->configurator != NULL) {
        options->tracer_enabled = oteli_file_enables_tracer;
        options->tracer_enabled_state = (void *)(uintptr_t)settings->configurator;
    }
}

otel_status oteli_create(const struct oteli_settings *settings, const otel_sdk_options *own,
                         struct oteli_file *file, struct oteli_creation *creation)
{
    *creation = (struct oteli_creation){.file_exporters = 0};
    otel_sdk_options *options = &creation->options;
    if (own != NULL && own->size == 0)
        return OTEL_ERROR_INVALID_ARGUMENT;
    *options = oteli_start_options(own).program;
    options->size = sizeof *options;
    oteli_config_put_over(options, &settings->options);
    set_words(settings, options);
    otel_status status = make_processors(settings, file, creation);
    if (status == OTEL_OK)
        status = set_resource(settings, file, options);
    if (status == OTEL_OK)
        status = make_sampler(settings, file, creation);
    if (status != OTEL_OK) {
        const struct oteli_engine_options unused = {.program = *options};
        oteli_start_discard(&unused);
    }
    return status;
}
