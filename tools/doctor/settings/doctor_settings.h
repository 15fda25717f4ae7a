/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_settings.h - the settings that a program would find in the
 * environment, and where each comes from; and what is wrong with them.
 *
 * Start of the program, one thread. Owns the configuration and the texts that are shown. */
#ifndef DOCTOR_SETTINGS_H
#define DOCTOR_SETTINGS_H

#include "common/config/configuration.h"
#include "tools/doctor/doctor_findings.h"

/* One line of the report. */
struct doctor_setting {
    char *name;                /* the variable, or the path of a key in a file */
    char *value;               /* as it counts, without secrets; NULL: unset */
    char from[DOCTOR_SHORT];   /* "default", "environment", "OTEL_…", "FILE:LINE" */
    char problem[DOCTOR_TEXT]; /* what was given and did not count; "" for nothing */
};

struct doctor_settings {
    struct oteli_config config;
    struct oteli_config_problem *problems; /* one a row */
    struct doctor_setting *list;
    size_t count;
    const char *endpoint; /* of the command line; NULL: there is none */
    char **slips;         /* lines: NAME: did you mean NAME? */
    size_t slip_count;
};

/* Read them. `endpoint` is that of the command line, which has been put into the environment as
 * OTEL_EXPORTER_OTLP_ENDPOINT; or NULL. False: no memory. */
bool doctor_settings_load(struct doctor_settings *settings, const char *endpoint);
void doctor_settings_fini(struct doctor_settings *settings);

/* Append a line; the texts are copied. False: no memory. */
bool doctor_settings_add(struct doctor_settings *settings, const char *name, const char *value,
                         const char *from, const char *problem);

/* Look for variables in the environment that are slips of the pen. */
bool doctor_settings_find_slips(struct doctor_settings *settings,
                                struct doctor_settings_seen *seen);

/* What is wrong with them, but for the endpoint and TLS files. */
void doctor_settings_examine(const struct doctor_settings *settings,
                             struct doctor_settings_seen *seen);

/* The text of a setting by its variable; NULL: unset, or there is no such setting in this build.
 * And the name of the variable that says it ("--endpoint", or "the default"). */
const char *doctor_settings_text(const struct doctor_settings *settings, const char *variable);
const char *doctor_settings_source(const struct doctor_settings *settings, const char *variable);

#endif
