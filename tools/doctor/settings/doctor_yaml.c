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
    struct oteli_pool pool;
    struct oteli_faults faults;
    struct oteli_settings settings;
    struct oteli_processor_setting processor; /* the one that sends OTLP */
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

/* The first exporter of OTLP; it will be exported to in batches, because those are counted. */
static bool find_exporter(struct doctor_yaml *yaml)
{
    for (size_t i = 0; i < yaml->settings.processor_count; i++) {
        const struct oteli_processor_setting *one = &yaml->settings.processors[i];
        if (one->kind == OTELI_PROCESSOR_REGISTERED || one->exporter.kind != OTELI_EXPORTER_OTLP)
            continue;
        yaml->processor = *one;
        yaml->processor.kind = OTELI_PROCESSOR_BATCH;
        return true;
    }
    return false;
}

static bool take_route(const struct doctor_yaml *yaml, struct doctor_route *route,
                       struct doctor_record *record)
{
    const otel_otlp_options *otlp = &yaml->processor.exporter.otlp;
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
    if (oteli_file_read(path, &yaml->pool, &yaml->faults, &yaml->settings) != OTEL_OK) {
        snprintf(record->faults.file, sizeof record->faults.file, "%s", doctor_log_after(0));
        doctor_yaml_free(yaml);
        return NULL;
    }
    examine(yaml, path, &record->faults);
    if (!find_exporter(yaml)) {
        snprintf(record->faults.exporter_is, sizeof record->faults.exporter_is, "%.300s", path);
    } else if (!take_route(yaml, route, record)) {
        doctor_yaml_free(yaml);
        return NULL;
    }
    return yaml;
}

void doctor_yaml_free(struct doctor_yaml *yaml)
{
    if (yaml == NULL)
        return;
    oteli_pool_fini(&yaml->pool);
    free(yaml);
}

otel_status doctor_yaml_start(struct doctor_yaml *yaml, unsigned timeout_ms)
{
    struct oteli_settings settings = yaml->settings;
    yaml->processor.exporter.otlp.timeout_ms = timeout_ms;
    settings.processors = &yaml->processor;
    settings.processor_count = 1;
    settings.sampler = NULL; /* the default takes every root */
    settings.has_tracer_rules = false;
    settings.options.log_level = "info";
    settings.options.profiler = "off";
    struct oteli_creation creation;
    const otel_status status = oteli_create(&settings, NULL, &yaml->faults, &creation);
    if (status != OTEL_OK)
        return status;
    const otel_status started = otel_start(&creation.options);
    oteli_creation_free(&creation);
    return started;
}
