/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/unload_plugin.c - a plug-in that brings an SDK with it: linked with the
 * shared libraries, or with the static ones. */
#include "tests/integration/unload_plugin.h"

#include <otel/otel.h>

static sem_t *there;
static sem_t *further;
static bool shuts_down_late;

static otel_export_result export_and_hang(void *state, otel_export *call)
{
    (void)state;
    (void)call;
    sem_post(there);
    sem_wait(further);
    return OTEL_EXPORT_DONE;
}

static bool start(const char *endpoint)
{
    return otel_start(OTEL_SDK_OPTIONS(.traces_exporter = "otlp",
                                       .exporter_otlp_endpoint = endpoint,
                                       .bsp_schedule_delay = 3600000)) == OTEL_OK;
}

static bool start_hanging(sem_t *is_there, sem_t *goes_on)
{
    there = is_there;
    further = goes_on;
    const otel_exporter exporter =
        OTEL_EXPORTER(.name = "hanging", .export_batch = export_and_hang);
    return otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                            .bsp_schedule_delay = 1)) == OTEL_OK;
}

static void trace(void)
{
    otel_tracer *tracer = otel_tracer_get("unload", NULL);
    for (int i = 0; i < 10; i++) {
        const otel_span outer = otel_span_enter(tracer, "outer", NULL);
        const otel_span detached = otel_span_start(tracer, "detached", NULL);
        otel_span_set_string(detached, "text", "of some length");
        otel_span_end(detached);
        otel_span_end(outer);
    }
}

static bool shut_down(int timeout_ms)
{
    return otel_shutdown(timeout_ms) == OTEL_OK;
}

static void shut_down_late(void)
{
    shuts_down_late = true;
}

__attribute__((destructor)) static void at_unload(void)
{
    if (shuts_down_late)
        (void)!otel_shutdown(60000);
}

extern const struct plugin plugin;
const struct plugin plugin = {.start = start,
                              .start_hanging = start_hanging,
                              .trace = trace,
                              .shut_down = shut_down,
                              .shut_down_late = shut_down_late};
