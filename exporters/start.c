/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/start.c - the composition root: otel_start reads the configuration, makes the
 * exporters that it names, and starts the SDK with them. The only place that knows both
 * the SDK and the exporters. With OTEL_CONFIG_FILE it leaves all that to library otel-config,
 * which comes back here with what the file says. Start/stop only. */
#include "common/log.h"
#include "common/pin.h"
#include "common/text.h"
#include "exporters/otlp/endpoint.h"
#include "exporters/start_sampler.h"
#include "sdk/start.h"

#include <otel/config.h>
#include <otel/console.h>
#include <otel/file.h>
#include <otel/otlp.h>
#include <stdlib.h>
#include <string.h>

/* There where the program is linked with otel-config itself, above all statically. */
#pragma weak otel_start_from_file

#define TEXT_OF(number) #number
#define LIBRARY(name, major) "lib" name ".so." TEXT_OF(major)

enum { BUILT_IN = 3 }; /* exporters that a name stands for */

static otel_status make_otlp(const struct oteli_config *config, otel_exporter *exporter)
{
    char *url = NULL;
    const bool has_url = oteli_otlp_endpoint(config->exporter_otlp_endpoint,
                                             config->exporter_otlp_traces_endpoint, &url);
    if (!has_url) {
        const bool is_traces = config->exporter_otlp_traces_endpoint != NULL;
        OTELI_LOG_ALWAYS(
            OTEL_LOG_WARN, "%s is \"%s\", which is no http or https URL; using %s",
            is_traces ? "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" : "OTEL_EXPORTER_OTLP_ENDPOINT",
            is_traces ? config->exporter_otlp_traces_endpoint : config->exporter_otlp_endpoint,
            OTELI_OTLP_DEFAULT_ENDPOINT);
    }
    otel_otlp_header *headers = NULL;
    size_t header_count = 0;
    otel_status status = OTEL_OK;
    /* The configuration has put the general list where there was none for traces. */
    if (config->exporter_otlp_traces_headers != NULL &&
        !oteli_otlp_headers_parse("OTEL_EXPORTER_OTLP_HEADERS",
                                  config->exporter_otlp_traces_headers, &headers, &header_count))
        status = OTEL_ERROR_NO_MEMORY;
    const int64_t timeout = config->exporter_otlp_traces_timeout;
    if (status == OTEL_OK)
        status = otel_otlp_exporter_new(
            OTEL_OTLP_OPTIONS(.endpoint = url, .headers = headers, .header_count = header_count,
                              .timeout_ms = timeout == OTELI_UNLIMITED ? OTEL_ZERO : timeout),
            exporter);
    oteli_otlp_headers_free(headers, header_count);
    free(url);
    return status;
}

/* Make the exporter of a name behind those in `list`; "none" makes none. */
static otel_status make_named(otel_slice name, const struct oteli_config *config,
                              otel_exporter *list, size_t *count)
{
    otel_status status = OTEL_OK;
    if (oteli_is_word(name, "none"))
        return OTEL_OK;
    if (oteli_is_word(name, "otlp"))
        status = make_otlp(config, &list[*count]);
    else if (oteli_is_word(name, "otlp/stdout"))
        status = otel_file_exporter_new(NULL, &list[*count]);
    else
        status = otel_console_exporter_new(NULL, &list[*count]);
    *count += status == OTEL_OK;
    return status;
}

static void free_exporters(const otel_exporter *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].free != NULL)
            list[i].free(list[i].state);
}

/* The exporters of OTEL_TRACES_EXPORTER, then those of the options. On failure all of
 * them are freed: an adopted exporter is never the caller's again. */
static otel_status gather(const struct oteli_config *config, const otel_exporter *own,
                          size_t own_count, otel_exporter **list_out, size_t *count_out)
{
    otel_exporter *list = calloc(own_count + BUILT_IN, sizeof *list);
    if (list == NULL) {
        free_exporters(own, own_count);
        return OTEL_ERROR_NO_MEMORY;
    }
    size_t count = 0;
    otel_status status = OTEL_OK;
    otel_slice rest = oteli_slice_of(config->traces_exporter);
    otel_slice name;
    while (status == OTEL_OK && count < BUILT_IN && oteli_list_next(&rest, &name))
        status = make_named(name, config, list, &count);
    if (own_count != 0)
        memcpy(list + count, own, own_count * sizeof *list);
    count += own_count;
    if (status != OTEL_OK) {
        free_exporters(list, count);
        free(list);
        return status;
    }
    *list_out = list;
    *count_out = count;
    return OTEL_OK;
}

/* --- OTEL_CONFIG_FILE --- */

/* The file that is to say everything; NULL: none. */
static const char *config_file(const otel_sdk_options *options)
{
    const size_t end = offsetof(otel_sdk_options, ignore_environment) + sizeof(bool);
    if (options != NULL && options->size >= end && options->ignore_environment)
        return NULL;
    const char *path = oteli_env_get("OTEL_CONFIG_FILE");
    return path != NULL ? path : oteli_env_get("OTEL_EXPERIMENTAL_CONFIG_FILE");
}

typedef otel_status start_from_file(const char *path, const otel_sdk_options *options);

static otel_status start_with_file(const char *path, const otel_sdk_options *options)
{
    start_from_file *start = NULL;
    if (&otel_start_from_file != NULL)
        start = otel_start_from_file;
    else
        start = (start_from_file *)oteli_load(
            LIBRARY("otel-config", OTEL_VERSION_MAJOR), "otel_start_from_file",
            LIBRARY("otel", OTEL_VERSION_MAJOR), (oteli_code *)otel_start);
    if (start != NULL) {
        char *copy = oteli_slice_copy(oteli_slice_of(path));
        if (copy != NULL) {
            const otel_status status = start(copy, options);
            free(copy);
            return status;
        }
    } else {
        OTELI_LOG_ALWAYS(OTEL_LOG_ERROR,
                         "not started: OTEL_CONFIG_FILE is \"%.200s\", and library %s, which reads "
                         "such files, cannot be loaded into this program",
                         path, LIBRARY("otel-config", OTEL_VERSION_MAJOR));
    }
    const struct oteli_engine_options own = oteli_start_options(options);
    free_exporters(own.exporters, own.exporter_count);
    oteli_start_discard(&own);
    return start != NULL ? OTEL_ERROR_NO_MEMORY : OTEL_ERROR_UNSUPPORTED;
}

otel_status otel_start(const otel_sdk_options *options)
{
    const char *file = config_file(options);
    if (file != NULL)
        return start_with_file(file, options);
    struct oteli_config config;
    struct oteli_engine_options start = oteli_start_options(options);
    start.config = &config;
    const otel_exporter *own = start.exporters;
    const size_t own_count = start.exporter_count;
    otel_status status = oteli_config_load(&config, options, true);
    if (status != OTEL_OK) {
        free_exporters(own, own_count);
        oteli_start_discard(&start);
        return status;
    }
    otel_exporter *exporters = NULL;
    size_t count = 0;
    otel_sampler sampler;
    if (!config.sdk_disabled && start.sampler == NULL) {
        status = oteli_start_sampler(&start, &sampler);
        start.sampler = sampler.sample != NULL ? &sampler : NULL;
    }
    if (status == OTEL_OK && !config.sdk_disabled)
        status = gather(&config, own, own_count, &exporters, &count);
    else
        free_exporters(own, own_count);
    if (status == OTEL_OK) {
        start.exporters = exporters;
        start.exporter_count = count;
        status = oteli_start(&start);
    } else {
        oteli_start_discard(&start);
    }
    free(exporters);
    oteli_config_fini(&config);
    return status;
}
