/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/announce.c - the contract is in sdk/lifecycle/announce.h. Start/stop only; owns
 * nothing. */
#include "sdk/lifecycle/announce.h"

#include "common/log.h"
#include "common/text/secrets.h"
#include "common/text/text.h"
#include "sdk/engine/processors.h"
#include "sdk/worker/simple_processor.h"

#include <string.h>

struct announcement {
    struct oteli_text_builder text;
    size_t ways; /* exporters and processors that are in it */
    bool has_default;
};

/* "to URL (origin) by otlp_http_span_exporter (origin)" */
static void put_way(struct announcement *message, const otel_exporter *exporter, const char *origin,
                    const char *name_origin)
{
    const bool says = exporter->size >= offsetof(otel_exporter, destination_is_default) +
                                            sizeof exporter->destination_is_default &&
                      exporter->destination != NULL;
    const bool is_default = says && exporter->destination_is_default;
    oteli_build(&message->text, "%s", message->ways++ == 0 ? "spans go" : ",");
    if (says)
        oteli_build(&message->text, " to %.200s (%.100s) by", exporter->destination,
                    is_default ? "default" : origin);
    else
        oteli_build(&message->text, " to");
    oteli_build(&message->text, " %.60s (%.100s)",
                exporter->name != NULL ? exporter->name : "an exporter", name_origin);
    message->has_default = message->has_default || is_default;
}

static void put_exporters(struct announcement *message, const struct oteli_engine_options *options)
{
    const struct oteli_start_origins *origins = &options->origins;
    const struct oteli_config *config = options->config;
    for (size_t i = 0; i < options->program.exporter_count; i++) {
        const char *endpoint = i < OTELI_NAMED_EXPORTERS ? origins->endpoints[i] : NULL;
        const char *origin = "code";
        if (origins->file != NULL && i < origins->file->exporters)
            origin = origins->file->path;
        else if (i < origins->exporters_named)
            origin = oteli_config_origin(config, &config->traces_exporter);
        if (endpoint != NULL)
            put_way(message, &options->program.exporters[i], endpoint,
                    oteli_config_origin(config, &config->exporter_otlp_traces_protocol));
        else
            put_way(message, &options->program.exporters[i], origin, origin);
        message->has_default =
            message->has_default || (endpoint != NULL && strcmp(endpoint, "default") == 0);
    }
}

static void put_processors(struct announcement *message, const struct oteli_engine_options *options)
{
    const struct oteli_start_file *file = options->origins.file;
    for (size_t i = 0; i < options->program.processor_count; i++) {
        const otel_processor processor = oteli_processors_known(&options->program, i);
        const otel_exporter *exporter = oteli_simple_processor_exporter(&processor);
        const otel_exporter by_name = {.name = processor.name};
        const char *origin = file != NULL && i < file->processors ? file->path : "code";
        put_way(message, exporter != NULL ? exporter : &by_name, origin, origin);
    }
}

static void put_sampler(struct announcement *message, const struct oteli_engine_options *options)
{
    const struct oteli_config *config = options->config;
    const struct oteli_start_file *file = options->origins.file;
    const otel_sampler *sampler = options->program.sampler;
    if (sampler != NULL && !options->origins.is_sampler_named) {
        char text[200] = "of the program";
        if (sampler->describe != NULL)
            sampler->describe(sampler->state, text, sizeof text);
        oteli_build(&message->text, "; sampler %s (%.100s)", text,
                    file != NULL && file->has_sampler ? file->path : "code");
        return;
    }
    oteli_build(&message->text, "; sampler %s", config->traces_sampler);
    const bool takes_argument = strstr(config->traces_sampler, "always_") == NULL;
    if (takes_argument && config->traces_sampler_arg != NULL) {
        char shown[101];
        oteli_build(&message->text, " %s",
                    oteli_hide_in_setting(config->traces_sampler_arg, shown, sizeof shown));
    }
    oteli_build(&message->text, " (%s)", oteli_config_origin(config, &config->traces_sampler));
}

/* Where an attribute of the resource called service.name comes from, as far as that is known. */
static const char *attribute_origin(const struct oteli_engine_options *options)
{
    const struct oteli_config *config = options->config;
    for (size_t i = 0; i < options->program.resource_count; i++)
        if (oteli_is_text(oteli_key_of(&options->program.resource[i]), "service.name"))
            return "code";
    if (config->resource_attributes != NULL && strstr(config->resource_attributes, "service.name"))
        return oteli_config_origin(config, &config->resource_attributes);
    return oteli_config_origin(config, &config->entities);
}

static void put_service(struct announcement *message, const struct oteli_engine_options *options,
                        const char *service)
{
    const struct oteli_config *config = options->config;
    const struct oteli_start_file *file = options->origins.file;
    const char *origin = NULL;
    if (strncmp(service, "unknown_service", strlen("unknown_service")) == 0)
        origin = "default";
    else if (config->service_name != NULL && strcmp(service, config->service_name) == 0)
        origin = oteli_config_origin(config, &config->service_name);
    else
        origin = attribute_origin(options);
    if (file != NULL && strcmp(origin, "code") == 0)
        origin = file->path;
    oteli_build(&message->text, "; service %.100s (%.100s)", service, origin);
}

void oteli_announce(const struct oteli_engine_options *options, const char *service,
                    char text[OTELI_ANNOUNCEMENT_SIZE])
{
    struct announcement message = {.text = {.text = text, .size = OTELI_ANNOUNCEMENT_SIZE}};
    const struct oteli_config *config = options->config;
    const struct oteli_start_file *file = options->origins.file;
    if (config->sdk_disabled) {
        oteli_build(&message.text, "no span is recorded: the SDK is disabled (%.200s)",
                    file != NULL ? file->path : oteli_config_origin(config, &config->sdk_disabled));
    } else {
        put_exporters(&message, options);
        put_processors(&message, options);
        if (message.ways == 0)
            oteli_build(&message.text, "spans go nowhere: there is no exporter (%.200s)",
                        file != NULL ? file->path
                                     : oteli_config_origin(config, &config->traces_exporter));
        put_sampler(&message, options);
        put_service(&message, options, service);
    }
    oteli_log_tell(message.has_default, "%s", text);
}
