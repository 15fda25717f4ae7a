/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_yaml.h - the settings of a configuration file (OTEL_CONFIG_FILE) in
 * the place of those of the environment. In builds without libfyaml every file is one that cannot
 * be read. Start/stop only. */
#ifndef DOCTOR_YAML_H
#define DOCTOR_YAML_H

#include "tools/doctor/connection/doctor_route.h"

struct doctor_yaml;

/* Read a file: its first OTLP exporter becomes the route, and what is wrong goes into
 * record->faults. NULL: no memory, or the file cannot be used. */
struct doctor_yaml *doctor_yaml_load(const char *path, struct doctor_route *route,
                                     struct doctor_record *record);
void doctor_yaml_free(struct doctor_yaml *yaml);

/* As doctor_span_start: the SDK of the file, with that exporter alone and every span recorded. */
otel_status doctor_yaml_start(struct doctor_yaml *yaml, unsigned timeout_ms);

#endif
