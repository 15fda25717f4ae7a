/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/otlp_profiles.c - sends the shop's profile (support/profile_double.c) to where
 * the environment says, and prints what became of it.
 *
 *     otlp_profiles         from the environment alone, which says who is profiled, too
 *     otlp_profiles sdk     an SDK runs, with a resource of its own */
#include "tests/support/profile_double.h"

#include <otel/otel.h>
#include <otel/profiler.h>
#include <stdio.h>
#include <string.h>

enum { PATIENCE_MS = 60000 };

static otel_status start(void)
{
    static const otel_attribute resource[] = {
        {.key = "service.name",
         .value = {.type = OTEL_VALUE_STRING, .length = 6, .as = {.string = "by-sdk"}}}};
    return otel_start(
        OTEL_SDK_OPTIONS(.traces_exporter = "none", .resource = resource, .resource_count = 1));
}

int main(int count, char **arguments)
{
    struct profile_double made;
    const bool has_sdk = count == 2 && strcmp(arguments[1], "sdk") == 0;
    if (has_sdk && start() != OTEL_OK)
        return 1;
    otel_profile_exporter exporter = otel_otlp_profile_exporter(NULL);
    if (exporter.state == NULL)
        return 1;
    profile_double_init(&made);
    const otel_status status = exporter.export_profile(exporter.state, &made.profile, PATIENCE_MS);
    printf("%s\n", otel_status_string(status));
    exporter.free(exporter.state);
    if (has_sdk && otel_shutdown(PATIENCE_MS) != OTEL_OK)
        return 1;
    return 0;
}
