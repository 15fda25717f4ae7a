/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_settings.h - the settings that a program would find in the
 * environment, and what is wrong with them.
 *
 * Start of the program, one thread. */
#ifndef DOCTOR_SETTINGS_H
#define DOCTOR_SETTINGS_H

#include "common/config/configuration.h"
#include "tools/doctor/findings/doctor_findings.h"

/* Read them, and list those that are not the default. `endpoint` is that of the command line, which
 * has been put into the environment as OTEL_EXPORTER_OTLP_ENDPOINT; or NULL. False: no memory. */
bool doctor_settings_load(struct oteli_config *config, const char *endpoint,
                          struct doctor_record *record);

/* Append a line; what is one too many is left out. */
void doctor_settings_add(struct doctor_record *record, const char *name, const char *value,
                         const char *from);

/* After the settings of the environment or of a file have been read: sort what the log says of them
 * by what it does, and look for variables in the environment that look like typing errors. */
void doctor_settings_find_faults(struct doctor_faults *faults);

#endif
