/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/doctor_report.h - print what was seen, for people or as one line of JSON. */
#ifndef DOCTOR_REPORT_H
#define DOCTOR_REPORT_H

#include "tools/doctor/doctor_diagnosis.h"
#include "tools/doctor/settings/doctor_settings.h"

#include <stdio.h>

struct doctor_report {
    const char *config_file; /* NULL: the settings are those of the environment */
    long pid;                /* or of this process; 0: of none */
    const struct doctor_settings *settings;
    const struct doctor_record *record;
    const struct doctor_diagnosis *diagnosis;
};

/* The sentence alone, or all of it. */
void doctor_report_brief(const struct doctor_report *report, FILE *out);
void doctor_report_text(const struct doctor_report *report, FILE *out);

/* False: no memory. */
bool doctor_report_json(const struct doctor_report *report, FILE *out);

/* What came of a connection. */
const char *doctor_connect_words(int error);

#endif
