/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_yaml.c - the contracts are in tools/doctor/settings/doctor_yaml.h.
 * Built where libfyaml is; doctor_no_yaml.c stands in its place where it is not. */
#include "tools/doctor/settings/doctor_yaml.h"

#include "common/text/secrets.h"
#include "config/build_options.h"
#include "config/yaml_file.h"
#include "tools/doctor/doctor_log.h"
#include "tools/doctor/settings/doctor_redact.h"

#include <inttypes.h>
#include <otel/otel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 500, LONGEST_PATH = 512 };

struct doctor_yaml {
    struct oteli_pool pool;
    struct oteli_faults faults;
    struct oteli_settings settings;
    struct oteli_processor_setting processor; /* the one that sends OTLP */
    struct oteli_made_otlp otlp;
};

/* ---- the lines ------------------------------------------------------------------------ */

/* One level of the tree that is being walked: what comes next in it, and the path so far. */
struct level {
    const struct oteli_item *next;
    bool is_sequence;
    size_t index;
    size_t path_length;
};

static const char *show(const char *path, const char *key, const struct oteli_node *node, char *out,
                        size_t size)
{
    if (node->kind == OTELI_NODE_NULL)
        return NULL;
    if (strcmp(key, "headers_list") == 0)
        return oteli_hide_header_values(node->text, out, size);
    if (strstr(path, ".headers[") != NULL && strcmp(key, "value") == 0)
        return "***";
    return strcmp(key, "endpoint") == 0 ? oteli_hide_in_setting(node->text, out, size)
                                        : oteli_hide_in_words(node->text, out, size);
}

static bool add_leaf(struct doctor_settings *settings, const char *path, const char *key,
                     const struct oteli_node *node)
{
    char value[1024];
    char from[DOCTOR_SHORT];
    snprintf(from, sizeof from, "line %" PRIu32, node->place.line);
    return doctor_settings_add(settings, path, show(path, key, node, value, sizeof value), from,
                               "");
}

/* Every scalar of a document, in its order. */
static bool add_leaves(struct doctor_settings *settings, const struct oteli_node *root)
{
    struct level levels[OTELI_DOCUMENT_DEPTH + 1] = {{.next = root->items}};
    char path[LONGEST_PATH] = "";
    size_t depth = 1;
    while (depth != 0 && settings->count < MOST_LINES) {
        struct level *level = &levels[depth - 1];
        const struct oteli_item *item = level->next;
        if (item == NULL) {
            depth--;
            continue;
        }
        level->next = item->next;
        char *end = path + level->path_length;
        const size_t room = sizeof path - level->path_length;
        if (level->is_sequence)
            snprintf(end, room, "[%zu]", level->index++);
        else
            snprintf(end, room, "%s%s", level->path_length != 0 ? "." : "", item->key);
        const struct oteli_node *node = item->value;
        const bool is_inner = node->kind == OTELI_NODE_MAPPING || node->kind == OTELI_NODE_SEQUENCE;
        if (is_inner && depth <= OTELI_DOCUMENT_DEPTH)
            levels[depth++] = (struct level){.next = node->items,
                                             .is_sequence = node->kind == OTELI_NODE_SEQUENCE,
                                             .path_length = strlen(path)};
        else if (!is_inner && !add_leaf(settings, path, item->key ? item->key : "", node))
            return false;
    }
    return true;
}

/* The file once more, as a tree: what was read of it keeps no order. */
static bool add_lines(const char *path, struct doctor_yaml *yaml, struct doctor_settings *settings)
{
    char *text = malloc(OTELI_DOCUMENT_BYTES);
    FILE *stream = fopen(path, "re");
    bool fine = text != NULL && stream != NULL;
    if (fine) {
        const size_t length = fread(text, 1, OTELI_DOCUMENT_BYTES, stream);
        const struct oteli_node *root =
            oteli_document_read(text, length, &yaml->pool, &yaml->faults);
        fine = root != NULL && add_leaves(settings, root);
    }
    if (stream != NULL)
        fclose(stream);
    free(text);
    return fine;
}

/* ---- what it says --------------------------------------------------------------------- */

static void examine(const struct doctor_yaml *yaml, const char *path,
                    struct doctor_settings_seen *seen)
{
    const struct oteli_settings *settings = &yaml->settings;
    if (settings->is_disabled)
        snprintf(seen->disabled_by, sizeof seen->disabled_by,
                 "%.300s, which says disabled or has no tracer_provider", path);
    if (settings->sampler != NULL && strcmp(settings->sampler->items->key, "always_off") == 0)
        snprintf(seen->sampler_is, sizeof seen->sampler_is, "the sampler always_off in %.300s",
                 path);
    if (yaml->processor.exporter.kind != OTELI_EXPORTER_OTLP ||
        yaml->processor.kind != OTELI_PROCESSOR_BATCH)
        snprintf(seen->exporter_is, sizeof seen->exporter_is, "%.300s", path);
}

/* The first exporter of OTLP; it will be exported to in batches, because those are counted. */
static bool find_exporter(struct doctor_yaml *yaml)
{
    yaml->processor.kind = OTELI_PROCESSOR_REGISTERED;
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

static bool take_route(struct doctor_yaml *yaml, const char *path, struct doctor_route *route,
                       struct doctor_record *record)
{
    const struct oteli_exporter_setting *exporter = &yaml->processor.exporter;
    struct doctor_target *target = &record->target;
    snprintf(target->url_from, sizeof target->url_from, "the file's endpoint");
    snprintf(target->protocol_from, sizeof target->protocol_from, "the exporter's protocol");
    target->url_is_whole = true;
    target->url_is_default = exporter->endpoint == NULL;
    doctor_log_forget();
    const bool is_usable = oteli_make_otlp_options(exporter, &yaml->otlp);
    snprintf(record->settings.header_fault, sizeof record->settings.header_fault, "%s",
             doctor_log_last());
    if (!is_usable && exporter->endpoint != NULL) {
        snprintf(record->settings.url_fault, sizeof record->settings.url_fault,
                 "endpoint in %.300s", path);
        doctor_url_hint(exporter->endpoint, record->settings.url_hint,
                        sizeof record->settings.url_hint);
    }
    if (!is_usable)
        return exporter->endpoint != NULL;
    const struct doctor_tls_files files = {
        .ca = exporter->ca_file,
        .ca_name = "tls.ca_file",
        .certificate = exporter->certificate_file,
        .certificate_name = "tls.cert_file",
        .key = exporter->key_file,
        .key_name = "tls.key_file",
    };
    return doctor_route_take(route, &yaml->otlp.options, &files, record);
}

struct doctor_yaml *doctor_yaml_load(const char *path, struct doctor_settings *settings,
                                     struct doctor_route *route, struct doctor_record *record)
{
    struct doctor_yaml *yaml = calloc(1, sizeof *yaml);
    if (yaml == NULL)
        return NULL;
    doctor_log_forget();
    if (oteli_file_read(path, &yaml->pool, &yaml->faults, &yaml->settings) != OTEL_OK) {
        snprintf(record->settings.file_fault, sizeof record->settings.file_fault, "%s",
                 doctor_log_last());
        doctor_yaml_free(yaml);
        return NULL;
    }
    bool fine = add_lines(path, yaml, settings);
    const bool has_exporter = find_exporter(yaml);
    examine(yaml, path, &record->settings);
    if (fine && has_exporter)
        fine = take_route(yaml, path, route, record);
    if (!fine) {
        doctor_yaml_free(yaml);
        return NULL;
    }
    return yaml;
}

void doctor_yaml_free(struct doctor_yaml *yaml)
{
    if (yaml == NULL)
        return;
    oteli_made_otlp_fini(&yaml->otlp);
    oteli_pool_fini(&yaml->pool);
    free(yaml);
}

otel_status doctor_yaml_start(struct doctor_yaml *yaml, unsigned timeout_ms)
{
    struct oteli_settings settings = yaml->settings;
    yaml->processor.exporter.timeout_ms = timeout_ms;
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
