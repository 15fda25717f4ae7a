/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/doctor_report.h - print what was seen, for people or as one line of JSON. */
#ifndef DOCTOR_REPORT_H
#define DOCTOR_REPORT_H

#include "tools/doctor/doctor_diagnosis.h"

#include <stdio.h>

enum doctor_form { DOCTOR_FORM_TEXT, DOCTOR_FORM_JSON, DOCTOR_FORM_BRIEF };

/* The settings are those of `config_file`, or where it is NULL of the environment or a process. No
 * terminal obeys a byte of what is printed. False: no memory. */
bool doctor_report(const struct doctor_record *record, const struct doctor_diagnosis *diagnosis,
                   const char *config_file, enum doctor_form form, FILE *out);

#endif
