/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_settings.c - the contracts are in
 * tools/doctor/settings/doctor_settings.h. */
#include "tools/doctor/settings/doctor_settings.h"

#include "common/text/secrets.h"
#include "common/text/text.h"
#include "tools/doctor/settings/doctor_redact.h"
#include "tools/doctor/settings/doctor_typos.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const the_default = "the default";

/* ---- one row -------------------------------------------------------------------------- */

static const void *field_of(const struct doctor_settings *settings,
                            const struct oteli_config_row *row)
{
    return (const char *)&settings->config + row->offset;
}

static const char *source_of(const struct doctor_settings *settings, size_t index)
{
    const void *field = field_of(settings, &oteli_config_rows[index]);
    const char *origin = oteli_config_origin(&settings->config, field);
    return strcmp(origin, "default") == 0 ? the_default : origin;
}

/* What the report says of its origin. */
static const char *describe_source(const struct doctor_settings *settings, size_t index)
{
    const char *source = source_of(settings, index);
    const char *variable = oteli_config_rows[index].variable;
    if (source == the_default)
        return strcmp(variable, "OTEL_TRACES_SAMPLER_ARG") == 0 ? "default: every trace"
                                                                : "default";
    if (settings->endpoint != NULL && strcmp(source, "OTEL_EXPORTER_OTLP_ENDPOINT") == 0)
        return "--endpoint";
    return strcmp(source, variable) == 0 ? "environment" : source;
}

/* NAME="..." is not a whole number; using 5000 */
static void describe_problem(const struct doctor_settings *settings, size_t index, char *out,
                             size_t size)
{
    out[0] = '\0';
    const char *problem = settings->problems[index].text;
    if (problem[0] == '\0')
        return;
    const char *variable = oteli_config_rows[index].variable;
    const char *given = oteli_env_get(variable);
    char shown[200];
    if (given != NULL)
        snprintf(out, size, "%s=\"%s\" %s", variable,
                 oteli_hide_in_setting(given, shown, sizeof shown), problem);
    else
        snprintf(out, size, "%s %s", variable, problem);
}

/* ---- all of them ---------------------------------------------------------------------- */

bool doctor_settings_add(struct doctor_settings *settings, const char *name, const char *value,
                         const char *from, const char *problem)
{
    struct doctor_setting *larger =
        realloc(settings->list, (settings->count + 1) * sizeof *settings->list);
    if (larger == NULL)
        return false;
    settings->list = larger;
    struct doctor_setting *setting = &larger[settings->count];
    setting->name = strdup(name);
    setting->value = value != NULL ? strdup(value) : NULL;
    if (setting->name == NULL || (value != NULL && setting->value == NULL)) {
        free(setting->name);
        free(setting->value);
        return false;
    }
    snprintf(setting->from, sizeof setting->from, "%s", from);
    snprintf(setting->problem, sizeof setting->problem, "%s", problem);
    settings->count++;
    return true;
}

bool doctor_settings_load(struct doctor_settings *settings, const char *endpoint)
{
    settings->endpoint = endpoint;
    settings->problems = calloc(oteli_config_row_count, sizeof *settings->problems);
    if (settings->problems == NULL)
        return false;
    if (oteli_config_load_with_problems(&settings->config, NULL, true, settings->problems) !=
        OTEL_OK)
        return false;
    bool fine = true;
    for (size_t i = 0; fine && i < oteli_config_row_count; i++) {
        char value[1024];
        char problem[DOCTOR_TEXT];
        describe_problem(settings, i, problem, sizeof problem);
        fine = doctor_settings_add(
            settings, oteli_config_rows[i].variable,
            oteli_config_show(&settings->config, &oteli_config_rows[i], value, sizeof value),
            describe_source(settings, i), problem);
    }
    return fine;
}

void doctor_settings_fini(struct doctor_settings *settings)
{
    if (settings->problems != NULL)
        oteli_config_fini(&settings->config);
    free(settings->problems);
    for (size_t i = 0; i < settings->count; i++) {
        free(settings->list[i].name);
        free(settings->list[i].value);
    }
    free(settings->list);
    for (size_t i = 0; i < settings->slip_count; i++)
        free(settings->slips[i]);
    free(settings->slips);
    memset(settings, 0, sizeof *settings);
}

static size_t find_row(const char *variable)
{
    size_t i = 0;
    while (i < oteli_config_row_count && strcmp(oteli_config_rows[i].variable, variable) != 0)
        i++;
    return i;
}

const char *doctor_settings_text(const struct doctor_settings *settings, const char *variable)
{
    const size_t index = find_row(variable);
    if (index == oteli_config_row_count)
        return NULL;
    const struct oteli_config_row *row = &oteli_config_rows[index];
    const bool is_text = row->type == OTELI_TYPE_STRING || row->type == OTELI_TYPE_ENUM ||
                         row->type == OTELI_TYPE_LIST;
    return is_text ? *(char *const *)field_of(settings, row) : NULL;
}

const char *doctor_settings_source(const struct doctor_settings *settings, const char *variable)
{
    const size_t index = find_row(variable);
    return index == oteli_config_row_count ? the_default : source_of(settings, index);
}

/* ---- what is wrong -------------------------------------------------------------------- */

static bool add_slip(struct doctor_settings *settings, const char *line)
{
    char **larger = realloc(settings->slips, (settings->slip_count + 1) * sizeof *larger);
    if (larger == NULL)
        return false;
    settings->slips = larger;
    larger[settings->slip_count] = strdup(line);
    return larger[settings->slip_count] != NULL && ++settings->slip_count != 0;
}

/* The path of the traces is put behind the general endpoint, also if it is there. */
static bool find_double_path(struct doctor_settings *settings)
{
    static const char path[] = "/v1/traces";
    const char *endpoint = settings->config.exporter_otlp_endpoint;
    size_t length = endpoint != NULL ? strlen(endpoint) : 0;
    while (length > 0 && endpoint[length - 1] == '/')
        length--;
    if (settings->config.exporter_otlp_traces_endpoint != NULL || length < sizeof path - 1 ||
        memcmp(endpoint + length - (sizeof path - 1), path, sizeof path - 1) != 0)
        return true;
    return add_slip(settings,
                    "OTEL_EXPORTER_OTLP_ENDPOINT ends in /v1/traces, which is put behind it "
                    "once more: take it away, or use OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
}

bool doctor_settings_find_slips(struct doctor_settings *settings, struct doctor_settings_seen *seen)
{
    for (const char *const *entry = oteli_env_all(); *entry != NULL; entry++) {
        const size_t length = strcspn(*entry, "=");
        const char *meant = doctor_slip(*entry, length);
        if (meant == NULL)
            continue;
        char line[2 * DOCTOR_SHORT + 64];
        snprintf(line, sizeof line, "%.*s: did you mean %s?", (int)length, *entry, meant);
        if (!add_slip(settings, line))
            return false;
        /* Of several, one that decides where spans go. */
        const bool is_export = strstr(meant, "EXPORTER") != NULL;
        if (seen->slip[0] == '\0' || (is_export && !seen->slip_is_export)) {
            snprintf(seen->slip, sizeof seen->slip, "%.*s", (int)length, *entry);
            snprintf(seen->meant, sizeof seen->meant, "%s", meant);
            seen->slip_is_export = is_export;
        }
    }
    return find_double_path(settings);
}

static void examine_exporter(const struct doctor_settings *settings,
                             struct doctor_settings_seen *seen)
{
    const char *exporters = settings->config.traces_exporter;
    otel_slice rest = oteli_slice_of(exporters);
    otel_slice name;
    while (oteli_list_next(&rest, &name)) {
        if (oteli_is_word(name, "otlp"))
            return;
    }
    seen->exporter_is_none = strcmp(exporters, "none") == 0;
    snprintf(seen->exporter_is, sizeof seen->exporter_is, "OTEL_TRACES_EXPORTER=%s", exporters);
}

static void examine_sampler(const struct doctor_settings *settings,
                            struct doctor_settings_seen *seen)
{
    const char *sampler = settings->config.traces_sampler;
    const char *argument = settings->config.traces_sampler_arg;
    double ratio;
    if (strstr(sampler, "always_off") != NULL)
        snprintf(seen->sampler_is, sizeof seen->sampler_is, "OTEL_TRACES_SAMPLER=%s", sampler);
    else if (strstr(sampler, "traceidratio") != NULL && argument != NULL &&
             oteli_parse_ratio(argument, &ratio) && ratio == 0)
        snprintf(seen->sampler_is, sizeof seen->sampler_is,
                 "OTEL_TRACES_SAMPLER=%s with OTEL_TRACES_SAMPLER_ARG=%s", sampler, argument);
}

/* Whether a setting decides where and how requests go: when it is bad, all else may be a
 * consequence. */
static bool decides_export(const char *variable)
{
    return strstr(variable, "EXPORTER") != NULL && strstr(variable, "TIMEOUT") == NULL;
}

/* What cannot be kept in a directory that is not there is lost when the receiver is away. */
static void examine_spool(const struct doctor_settings *settings, struct doctor_settings_seen *seen)
{
    const char *directory = doctor_settings_text(settings, "OTEL_C_SPOOL_DIR");
    struct stat status;
    if (directory == NULL || seen->other_fault[0] != '\0')
        return;
    const char *problem = NULL;
    if (stat(directory, &status) != 0 || access(directory, R_OK | W_OK | X_OK) != 0)
        problem = strerror(errno);
    else if (!S_ISDIR(status.st_mode))
        problem = "it is no directory";
    if (problem != NULL)
        snprintf(seen->other_fault, sizeof seen->other_fault,
                 "OTEL_C_SPOOL_DIR=\"%.200s\" cannot be used (%s)", directory, problem);
}

void doctor_settings_examine(const struct doctor_settings *settings,
                             struct doctor_settings_seen *seen)
{
    if (settings->config.sdk_disabled)
        snprintf(seen->disabled_by, sizeof seen->disabled_by, "OTEL_SDK_DISABLED=true");
    examine_exporter(settings, seen);
    examine_sampler(settings, seen);
    for (size_t i = 0; i < settings->count; i++) {
        const struct doctor_setting *setting = &settings->list[i];
        char *fault = decides_export(setting->name) ? seen->export_fault : seen->other_fault;
        if (setting->problem[0] != '\0' && fault[0] == '\0')
            snprintf(fault, DOCTOR_TEXT, "%s", setting->problem);
    }
    examine_spool(settings, seen);
}
