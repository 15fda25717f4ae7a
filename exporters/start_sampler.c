/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/start_sampler.c - OTEL_TRACES_SAMPLER=jaeger_remote and parentbased_jaeger_remote.
 * Start/stop only; owns nothing. */
#include "exporters/otel_start.h"

#include "common/log.h"
#include "common/text/secrets.h"
#include "common/text/text.h"
#include "exporters/jaeger_sampler/jaeger_url.h"

#include <errno.h>
#include <otel/jaeger_remote.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 256 };

static void copy_name(otel_slice name, char out[NAME_SIZE])
{
    const size_t length = name.length < NAME_SIZE ? name.length : NAME_SIZE - 1;
    memcpy(out, name.data, length);
    out[length] = '\0';
}

/* service.name of OTEL_RESOURCE_ATTRIBUTES. */
static bool find_in_text(const char *attributes, char out[NAME_SIZE])
{
    otel_slice rest = oteli_slice_of(attributes);
    otel_slice pair;
    bool is_found = false;
    while (oteli_list_next(&rest, &pair)) {
        otel_slice key;
        otel_slice value;
        if (!oteli_cut(pair, '=', &key, &value) || !oteli_is_word(key, "service.name"))
            continue;
        copy_name(value, out);
        size_t length;
        if (!oteli_percent_decode(out, strlen(out), out, &length))
            return false;
        out[length] = '\0';
        is_found = true;
    }
    return is_found;
}

static bool find_in_attributes(const otel_attribute *attributes, size_t count, char out[NAME_SIZE])
{
    for (size_t i = attributes != NULL ? count : 0; i-- > 0;) {
        const otel_attribute *attribute = &attributes[i];
        if (!oteli_is_text(oteli_key_of(attribute), "service.name") ||
            attribute->value.type != OTEL_VALUE_STRING)
            continue;
        copy_name((otel_slice){attribute->value.as.string, attribute->value.length}, out);
        return true;
    }
    return false;
}

/* What one place says: code with the environment, or the program's defaults. */
static bool find_said(const struct oteli_config *config, bool is_default, char out[NAME_SIZE])
{
    char *const *list = &config->resource_attributes;
    char *const *name = &config->service_name;
    if (*name == NULL || oteli_config_is_program_default(config, name) != is_default)
        return oteli_config_is_program_default(config, list) == is_default &&
               find_in_text(*list, out);
    copy_name(oteli_slice_of(*name), out);
    return true;
}

/* The name under which the server knows this program: that of the resource. */
static void find_service_name(const struct oteli_engine_options *start, char out[NAME_SIZE])
{
    const struct oteli_config *config = start->config;
    if (!find_in_attributes(start->program.resource, start->program.resource_count, out) &&
        !find_said(config, false, out) &&
        !find_in_attributes(config->program.resource, config->program.resource_count, out) &&
        !find_said(config, true, out))
        snprintf(out, NAME_SIZE, "unknown_service:%s", program_invocation_short_name);
}

static otel_status make_remote(const struct oteli_engine_options *start, otel_sampler *sampler)
{
    const char *text = start->config->traces_sampler_arg;
    struct oteli_jaeger_argument argument;
    char name[NAME_SIZE];
    find_service_name(start, name);
    if (!oteli_jaeger_argument_parse(text, &argument)) {
        char shown[256];
        const char *called = oteli_config_called(start->config, &start->config->traces_sampler_arg);
        const bool in_code =
            oteli_config_is_in_code(start->config, &start->config->traces_sampler_arg);
        OTELI_LOG_ALWAYS(in_code ? OTEL_LOG_ERROR : OTEL_LOG_WARN,
                         "%s is \"%s\", which is no list of endpoint=URL, "
                         "pollingIntervalMs=NUMBER and initialSamplingRate=RATIO%s",
                         called, oteli_hide_in_setting(text, shown, sizeof shown),
                         in_code ? "" : "; it is left out");
        if (in_code) {
            free(argument.endpoint);
            return OTEL_ERROR_INVALID_ARGUMENT;
        }
    }
    otel_jaeger_remote_options options = {.size = sizeof options,
                                          .endpoint = argument.endpoint,
                                          .service_name = name,
                                          .polling_interval_ms = argument.polling_interval_ms};
    otel_status status = OTEL_OK;
    if (argument.initial_ratio >= 0)
        status = otel_sampler_trace_id_ratio(argument.initial_ratio, &options.initial);
    if (status == OTEL_OK)
        status = otel_sampler_jaeger_remote(&options, sampler);
    free(argument.endpoint);
    return status;
}

otel_status oteli_start_sampler(const struct oteli_engine_options *start, otel_sampler *sampler)
{
    memset(sampler, 0, sizeof *sampler);
    const char *name = start->config->traces_sampler;
    const bool is_parent_based = strcmp(name, "parentbased_jaeger_remote") == 0;
    if (!is_parent_based && strcmp(name, "jaeger_remote") != 0)
        return OTEL_OK;
    otel_sampler remote;
    otel_status status = make_remote(start, &remote);
    if (status == OTEL_OK && is_parent_based)
        status = otel_sampler_parent_based(
            &(otel_parent_based_options){.size = sizeof(otel_parent_based_options), .root = remote},
            sampler);
    else if (status == OTEL_OK)
        *sampler = remote;
    return status;
}
