/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otel_start.c - the composition root: otel_start reads the configuration, makes the
 * exporters that it names, and starts the SDK with them. The only place that knows both
 * the SDK and the exporters. With OTEL_CONFIG_FILE it leaves all that to library otel-config,
 * which comes back here with what the file says. Start/stop only. */
#include "exporters/otel_start.h"
#include "common/log.h"
#include "common/os/library.h"
#include "common/text/error_text.h"
#include "common/text/text.h"
#include "exporters/start_otlp.h"
#include "sdk/lifecycle/sdk_start.h"

#include <errno.h>
#include <otel/config.h>
#include <otel/console.h>
#include <otel/file.h>
#include <stdlib.h>
#include <string.h>

/* There where the program is linked with otel-config itself, above all statically. */
#pragma weak otel_start_from_file

static otel_status make_stdout(otel_exporter *exporter)
{
    const otel_status status = otel_file_exporter_new(NULL, exporter);
    struct oteli_error_text text;
    if (status == OTEL_ERROR_SYSTEM)
        OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "not started: otlp/stdout cannot write to stdout: %s",
                         oteli_error_text(errno, &text));
    return status;
}

/* Make the exporter of a name behind those in `list`; "none" makes none. */
static otel_status make_named(otel_slice name, const struct oteli_config *config,
                              otel_exporter *list, size_t *count,
                              struct oteli_start_origins *origins)
{
    otel_status status = OTEL_OK;
    bool is_made = true;
    const char *endpoint_origin = NULL;
    if (oteli_is_word(name, "none"))
        return OTEL_OK;
    if (oteli_is_word(name, "otlp"))
        status = oteli_start_otlp_exporter(config, &list[*count], &is_made, &endpoint_origin);
    else if (oteli_is_word(name, "otlp/stdout"))
        status = make_stdout(&list[*count]);
    else
        status = otel_console_exporter_new(NULL, &list[*count]);
    if (status != OTEL_OK || !is_made)
        return status;
    origins->endpoints[(*count)++] = endpoint_origin;
    origins->exporters_named = *count;
    return status;
}

/* The exporters of OTEL_TRACES_EXPORTER, then those of the options, in *list, which is the
 * caller's. On failure there is no list, and those of the options are as they were. */
static otel_status gather(struct oteli_engine_options *start, otel_exporter **list_out,
                          size_t *count_out)
{
    otel_exporter *list =
        calloc(start->program.exporter_count + OTELI_NAMED_EXPORTERS, sizeof *list);
    if (list == NULL)
        return OTEL_ERROR_NO_MEMORY;
    size_t count = 0;
    otel_status status = OTEL_OK;
    otel_slice rest = oteli_slice_of(start->config->traces_exporter);
    otel_slice name;
    while (status == OTEL_OK && count < OTELI_NAMED_EXPORTERS && oteli_list_next(&rest, &name))
        status = make_named(name, start->config, list, &count, &start->origins);
    if (status != OTEL_OK) {
        for (size_t i = 0; i < count; i++)
            list[i].free(list[i].state);
        free(list);
        return status;
    }
    if (start->program.exporter_count != 0)
        memcpy(list + count, start->program.exporters,
               start->program.exporter_count * sizeof *list);
    *list_out = list;
    *count_out = count + start->program.exporter_count;
    return OTEL_OK;
}

/* --- OTEL_CONFIG_FILE --- */

/* The file that is to say everything; NULL: none. */
static const char *config_file(const otel_sdk_options *options, const char **variable)
{
    static const char *const variables[] = {"OTEL_CONFIG_FILE", "OTEL_EXPERIMENTAL_CONFIG_FILE"};
    const char *path = NULL;
    for (size_t i = 0; i < 2 && path == NULL && !oteli_config_ignores_environment(options); i++) {
        *variable = variables[i];
        path = oteli_env_get(*variable);
    }
    return path;
}

typedef otel_status start_from_file(const char *path, const otel_sdk_options *options);

static otel_status start_with_file(const char *variable, const char *path,
                                   const otel_sdk_options *options)
{
    start_from_file *start = NULL;
    if (&otel_start_from_file != NULL)
        start = otel_start_from_file;
    else
        start = (start_from_file *)oteli_load(OTELI_LIBRARY("otel-config"), "otel_start_from_file",
                                              OTELI_LIBRARY("otel"), (oteli_code *)otel_start);
    if (start != NULL) {
        char *copy = oteli_slice_copy(oteli_slice_of(path));
        if (copy != NULL) {
            const otel_status status = start(copy, options);
            const bool is_said = /* what is wrong with the file, by the code that reads it */
                status == OTEL_ERROR_INVALID_ARGUMENT || status == OTEL_ERROR_SYSTEM;
            if (status != OTEL_OK)
                OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "not started%s%s, with %s=\"%.200s\"",
                                 is_said ? "" : ": ", is_said ? "" : otel_status_string(status),
                                 variable, copy);
            free(copy);
            return status;
        }
    } else {
        OTELI_LOG_ALWAYS(
            OTEL_LOG_ERROR,
            "not started: %s is \"%.200s\", and library %s, which reads such files, "
            "cannot be loaded into this program (a static one links otel::config_static)",
            variable, path, OTELI_LIBRARY("otel-config"));
    }
    const struct oteli_engine_options own = oteli_start_options(options);
    oteli_start_discard(&own);
    return start != NULL ? OTEL_ERROR_NO_MEMORY : OTEL_ERROR_UNSUPPORTED;
}

otel_status otel_start(const otel_sdk_options *options)
{
    const char *variable;
    const char *file = config_file(options, &variable);
    return file != NULL ? start_with_file(variable, file, options) : oteli_start_as(options, NULL);
}

otel_status oteli_start_as(const otel_sdk_options *options, const struct oteli_start_file *file)
{
    struct oteli_config config;
    struct oteli_engine_options start = oteli_start_options(options);
    start.config = &config;
    start.origins.file = file;
    otel_status status = oteli_config_load(&config, options, true);
    if (status != OTEL_OK) {
        oteli_start_discard(&start);
        return status;
    }
    otel_exporter *exporters = NULL;
    otel_sampler sampler;
    if (!config.sdk_disabled && start.program.sampler == NULL) {
        status = oteli_start_sampler(&start, &sampler);
        start.program.sampler = sampler.sample != NULL ? &sampler : NULL;
        start.origins.is_sampler_named = true;
    }
    if (status == OTEL_OK && !config.sdk_disabled) {
        status = gather(&start, &exporters, &start.program.exporter_count);
        if (status == OTEL_OK)
            start.program.exporters = exporters;
    }
    if (status == OTEL_OK)
        status = oteli_start(&start);
    else
        oteli_start_discard(&start);
    free(exporters);
    if (status == OTEL_OK && !config.sdk_disabled)
        oteli_start_profiler(&config);
    oteli_config_fini(&config);
    return status;
}
