/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/announce.c - the contract is in sdk/lifecycle/announce.h. Start/stop only; owns
 * nothing. */
#include "sdk/lifecycle/announce.h"

#include "common/log.h"
#include "common/text/secrets.h"
#include "sdk/processors/processors.h"
#include "sdk/processors/simple_processor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void put(struct oteli_announcement *message,
                                                      const char *format, ...)
{
    const size_t room = sizeof message->text - message->length;
    va_list arguments;
    va_start(arguments, format);
    const int wanted = vsnprintf(message->text + message->length, room, format, arguments);
    va_end(arguments);
    if (wanted > 0)
        message->length += (size_t)wanted < room ? (size_t)wanted : room - 1;
}

/* "to URL (origin) by otlp_http_span_exporter (origin)" */
static void put_way(struct oteli_announcement *message, const otel_exporter *exporter,
                    const char *origin, const char *name_origin)
{
    const bool says = exporter->size >= offsetof(otel_exporter, destination_is_default) +
                                            sizeof exporter->destination_is_default &&
                      exporter->destination != NULL;
    const bool is_default = says && exporter->destination_is_default;
    put(message, message->ways++ == 0 ? "spans go" : ",");
    if (says)
        put(message, " to %.200s (%.100s) by", exporter->destination,
            is_default ? "default" : origin);
    else
        put(message, " to");
    put(message, " %.60s (%.100s)", exporter->name != NULL ? exporter->name : "an exporter",
        name_origin);
    message->has_default = message->has_default || is_default;
}

static void put_exporters(struct oteli_announcement *message,
                          const struct oteli_engine_options *options)
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

static void put_processors(struct oteli_announcement *message,
                           const struct oteli_engine_options *options)
{
    const struct oteli_start_file *file = options->origins.file;
    for (size_t i = 0; i < options->program.processor_count; i++) {
        const otel_processor processor = oteli_processors_known(options, i);
        const otel_exporter *exporter = oteli_simple_processor_exporter(&processor);
        const otel_exporter by_name = {.name = processor.name};
        const char *origin = file != NULL && i < file->processors ? file->path : "code";
        put_way(message, exporter != NULL ? exporter : &by_name, origin, origin);
    }
}

static void put_sampler(struct oteli_announcement *message,
                        const struct oteli_engine_options *options)
{
    const struct oteli_config *config = options->config;
    const struct oteli_start_file *file = options->origins.file;
    const otel_sampler *sampler = options->program.sampler;
    if (sampler != NULL && !options->origins.is_sampler_named) {
        char text[200] = "of the program";
        if (sampler->describe != NULL)
            sampler->describe(sampler->state, text, sizeof text);
        put(message, "; sampler %s (%.100s)", text,
            file != NULL && file->has_sampler ? file->path : "code");
        return;
    }
    put(message, "; sampler %s", config->traces_sampler);
    const bool takes_argument = strstr(config->traces_sampler, "always_") == NULL;
    if (takes_argument && config->traces_sampler_arg != NULL) {
        char shown[101];
        put(message, " %s", oteli_hide_in_setting(config->traces_sampler_arg, shown, sizeof shown));
    }
    put(message, " (%s)", oteli_config_origin(config, &config->traces_sampler));
}

void oteli_announce(const struct oteli_engine_options *options, struct oteli_announcement *message)
{
    const struct oteli_config *config = options->config;
    const struct oteli_start_file *file = options->origins.file;
    *message = (struct oteli_announcement){.length = 0};
    if (config->sdk_disabled) {
        put(message, "no span is recorded: the SDK is disabled (%.200s)",
            file != NULL ? file->path : oteli_config_origin(config, &config->sdk_disabled));
    } else {
        put_exporters(message, options);
        put_processors(message, options);
        if (message->ways == 0)
            put(message, "spans go nowhere: there is no exporter (%.200s)",
                file != NULL ? file->path : oteli_config_origin(config, &config->traces_exporter));
        put_sampler(message, options);
    }
    oteli_log_tell(message->has_default, "%s", message->text);
}
