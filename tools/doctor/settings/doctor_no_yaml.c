/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_no_yaml.c - tools/doctor/settings/doctor_yaml.h where there is no
 * libfyaml, and so no program can use a configuration file either. */
#include "tools/doctor/settings/doctor_yaml.h"

#include <stdio.h>

struct doctor_yaml *doctor_yaml_load(const char *path, struct doctor_route *route,
                                     struct doctor_record *record)
{
    (void)route;
    snprintf(record->faults.file, sizeof record->faults.file,
             "%.300s needs the library otel-config, which this build of otel-c does not have",
             path);
    return NULL;
}

void doctor_yaml_free(struct doctor_yaml *yaml)
{
    (void)yaml;
}

otel_status doctor_yaml_start(struct doctor_yaml *yaml, unsigned timeout_ms)
{
    (void)yaml;
    (void)timeout_ms;
    return OTEL_ERROR_UNSUPPORTED;
}
