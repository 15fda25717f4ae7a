/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the SDK with an exporter to memory and everything else from its environment, and says on
 * stdout what of the environment counted. With an argument: resource_attributes in code. */
#include <otel/memory.h>
#include <otel/otel.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **arguments)
{
    otel_memory *memory = otel_memory_new();
    const otel_exporter exporter = otel_memory_exporter(memory);
    const otel_status started = otel_start(
        OTEL_SDK_OPTIONS(.traces_exporter = "none", .exporters = &exporter, .exporter_count = 1,
                         .resource_attributes = count > 1 ? arguments[1] : NULL));
    const otel_context caller = otel_extract_environment(NULL);
    otel_span_end(otel_span_enter(otel_tracer_get("surroundings", NULL), "one", NULL));
    (void)!otel_shutdown(5000);

    const otel_span_context parent = otel_span_get_context(caller.span);
    otel_stats stats = {.size = sizeof stats};
    (void)otel_stats_read(0, &stats);
    printf("%s, sampled %llu, has a caller: %s\n", otel_status_string(started),
           (unsigned long long)(stats.started - stats.unsampled),
           otel_span_context_is_valid(&parent) ? "yes" : "no");
    otel_memory_free(memory);
    return 0;
}
