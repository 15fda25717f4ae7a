/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_yaml.c - the contracts are in tools/doctor/settings/doctor_yaml.h.
 * Built where libfyaml is; doctor_no_yaml.c stands in its place where it is not. */
#include "tools/doctor/settings/doctor_yaml.h"

#include "config/build_options.h"
#include "config/yaml_file.h"
#include "tools/doctor/findings/doctor_log.h"

#include <otel/otel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct doctor_yaml {
    struct oteli_file file;
    struct oteli_settings settings;
    otel_otlp_options otlp; /* of the exporter that sends OTLP */
};

static void examine(const struct doctor_yaml *yaml, const char *path, struct doctor_faults *faults)
{
    const struct oteli_settings *settings = &yaml->settings;
    if (settings->is_disabled)
        snprintf(faults->disabled_by, sizeof faults->disabled_by,
                 "%.300s, which says disabled or has no tracer_provider", path);
    if (settings->sampler != NULL && strcmp(settings->sampler->items->key, "always_off") == 0)
        snprintf(faults->sampler_is, sizeof faults->sampler_is, "the sampler always_off in %.300s",
                 path);
}

/* The first exporter of OTLP. */
static bool find_exporter(struct doctor_yaml *yaml)
{
    const struct oteli_node *processors = yaml->settings.processors;
    const struct oteli_item *item = processors != NULL ? processors->items : NULL;
    for (; item != NULL; item = item->next) {
        const struct oteli_item *exporter = oteli_exporter_of(item->value);
        if (exporter != NULL && oteli_read_otlp(exporter, &yaml->file, &yaml->otlp))
            return !yaml->file.has_no_memory;
    }
    return false;
}

static bool take_route(const struct doctor_yaml *yaml, struct doctor_route *route,
                       struct doctor_record *record)
{
    const otel_otlp_options *otlp = &yaml->otlp;
    struct doctor_target *target = &record->target;
    snprintf(target->url_from, sizeof target->url_from, "the file's endpoint");
    snprintf(target->protocol_from, sizeof target->protocol_from, "the exporter's protocol");
    target->url_is_whole = true;
    target->url_is_default = otlp->endpoint == NULL;
    return doctor_route_take(route, otlp, record);
}

struct doctor_yaml *doctor_yaml_load(const char *path, struct doctor_route *route,
                                     struct doctor_record *record)
{
    struct doctor_yaml *yaml = calloc(1, sizeof *yaml);
    if (yaml == NULL)
        return NULL;
    yaml->file.path = path;
    if (oteli_file_read(&yaml->file, &yaml->settings) != OTEL_OK) {
        snprintf(record->faults.file, sizeof record->faults.file, "%s", doctor_log_after(0));
        doctor_yaml_free(yaml);
        return NULL;
    }
    examine(yaml, path, &record->faults);
    const bool is_found = find_exporter(yaml);
    if (!is_found && !yaml->file.has_no_memory) {
        snprintf(record->faults.exporter_is, sizeof record->faults.exporter_is, "%.300s", path);
    } else if (!is_found || !take_route(yaml, route, record)) {
        doctor_yaml_free(yaml);
        return NULL;
    }
    return yaml;
}

void doctor_yaml_free(struct doctor_yaml *yaml)
{
    if (yaml == NULL)
        return;
    oteli_pool_fini(&yaml->file.pool);
    free(yaml);
}

/* The exporter is exported to in batches, because those are counted. */
otel_status doctor_yaml_start(struct doctor_yaml *yaml, unsigned timeout_ms)
{
    struct oteli_settings settings = yaml->settings;
    otel_exporter exporter;
    yaml->otlp.timeout_ms = timeout_ms;
    settings.processors = NULL;
    settings.sampler = NULL; /* the default takes every root */
    settings.configurator = NULL;
    settings.options.log_level = "info";
    settings.options.profiler = "off";
    otel_status status = otel_otlp_exporter_new(&yaml->otlp, &exporter);
    if (status != OTEL_OK)
        return status;
    struct oteli_creation creation;
    status = oteli_create(&settings, OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1),
                          &yaml->file, &creation);
    return status == OTEL_OK ? otel_start(&creation.options) : status;
}
