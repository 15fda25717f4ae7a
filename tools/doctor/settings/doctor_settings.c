/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_settings.c - the contracts are in
 * tools/doctor/settings/doctor_settings.h. */
#include "tools/doctor/settings/doctor_settings.h"

#include "common/text/text.h"
#include "tools/doctor/findings/doctor_log.h"
#include "tools/doctor/settings/doctor_typos.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

void doctor_settings_add(struct doctor_record *record, const char *name, const char *value,
                         const char *from)
{
    if (record->setting_count == DOCTOR_SETTINGS)
        return;
    struct doctor_setting *setting = &record->settings[record->setting_count++];
    snprintf(setting->name, sizeof setting->name, "%s", name);
    snprintf(setting->value, sizeof setting->value, "%s", value);
    snprintf(setting->from, sizeof setting->from, "%s", from);
}

/* ---- what keeps spans in the program -------------------------------------------------- */

static void examine_exporter(const struct oteli_config *config, struct doctor_faults *faults)
{
    otel_slice rest = oteli_slice_of(config->traces_exporter);
    otel_slice name;
    while (oteli_list_next(&rest, &name)) {
        if (oteli_is_word(name, "otlp"))
            return;
    }
    snprintf(faults->exporter_is, sizeof faults->exporter_is, "OTEL_TRACES_EXPORTER=%s",
             config->traces_exporter);
}

static void examine_sampler(const struct oteli_config *config, struct doctor_faults *faults)
{
    const char *sampler = config->traces_sampler;
    const char *argument = config->traces_sampler_arg;
    double ratio;
    if (strstr(sampler, "always_off") != NULL)
        snprintf(faults->sampler_is, sizeof faults->sampler_is, "OTEL_TRACES_SAMPLER=%s", sampler);
    else if (strstr(sampler, "traceidratio") != NULL && argument != NULL &&
             oteli_parse_ratio(argument, &ratio) && ratio == 0)
        snprintf(faults->sampler_is, sizeof faults->sampler_is,
                 "OTEL_TRACES_SAMPLER=%s with OTEL_TRACES_SAMPLER_ARG=%s", sampler, argument);
}

/* ---- all of them ---------------------------------------------------------------------- */

struct listing {
    struct doctor_record *record;
    const char *endpoint;
};

/* An oteli_config_teller. */
static void list_setting(const void *state, const char *name, const char *value, const char *from)
{
    const struct listing *listing = state;
    const bool is_option =
        listing->endpoint != NULL && strcmp(name, "OTEL_EXPORTER_OTLP_ENDPOINT") == 0;
    doctor_settings_add(listing->record, name, value, is_option ? "--endpoint" : from);
}

bool doctor_settings_load(struct oteli_config *config, const char *endpoint,
                          struct doctor_record *record)
{
    struct doctor_faults *faults = &record->faults;
    if (oteli_config_look(config) != OTEL_OK)
        return false;
    const struct listing listing = {.record = record, .endpoint = endpoint};
    oteli_config_tell(config, list_setting, &listing);
    if (config->sdk_disabled)
        snprintf(faults->disabled_by, sizeof faults->disabled_by, "OTEL_SDK_DISABLED=true");
    examine_exporter(config, faults);
    examine_sampler(config, faults);
    if (config->traces_sampler_arg == NULL && oteli_env_get("OTEL_TRACES_SAMPLER_ARG") != NULL)
        snprintf(faults->other, sizeof faults->other,
                 "OTEL_TRACES_SAMPLER_ARG counts only with OTEL_TRACES_SAMPLER");
    /* What cannot be kept in a directory that is not there is lost when the receiver is away. */
    if (config->spool_dir != NULL && access(config->spool_dir, R_OK | W_OK | X_OK) != 0)
        snprintf(faults->other, sizeof faults->other,
                 "OTEL_C_SPOOL_DIR=\"%.200s\" cannot be used (%s)", config->spool_dir,
                 strerror(errno));
    return true;
}

/* ---- what is wrong -------------------------------------------------------------------- */

/* The log has a line for each value that does not count, which begins with its name. Where one
 * decides where and how spans are sent, all else may be a consequence. */
static void sort_line(const char *line, struct doctor_faults *faults)
{
    char name[DOCTOR_SHORT];
    char *fault = faults->other;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(line, "=: "), line);
    if (strcasestr(name, "headers") != NULL)
        fault = faults->headers;
    else if (strstr(name, "EXPORTER") != NULL && strstr(name, "TIMEOUT") == NULL)
        fault = faults->exporting;
    if (fault[0] == '\0')
        snprintf(fault, DOCTOR_TEXT, "%s", line);
}

void doctor_settings_find_faults(struct doctor_faults *faults)
{
    for (size_t i = 0; i < doctor_log_count(); i++)
        sort_line(doctor_log_line(i), faults);
    for (const char *const *entry = oteli_env_all(); *entry != NULL; entry++) {
        const size_t length = strcspn(*entry, "=");
        const char *meant = doctor_typo(*entry, length);
        if (meant == NULL || faults->typo_count == DOCTOR_TYPOS)
            continue;
        struct doctor_typo *typo = &faults->typos[faults->typo_count++];
        snprintf(typo->name, sizeof typo->name, "%.*s", (int)length, *entry);
        typo->meant = meant;
    }
}
