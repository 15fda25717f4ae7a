/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/unload_plugin_api.c - a plug-in that is instrumented and brings no SDK:
 * it is linked with otel-api alone. */
#include "tests/integration/unload_plugin.h"

#include <otel/context.h>
#include <otel/trace.h>

static void trace(void)
{
    otel_tracer *tracer = otel_tracer_get("unload_api", NULL);
    otel_span_end(otel_span_enter(tracer, "nobody records it", NULL));
}

static void attach(void)
{
    const otel_context_token token = otel_context_attach(otel_current_context());
    (void)!otel_context_detach(token);
}

extern const struct plugin plugin;
const struct plugin plugin = {.trace = trace, .attach = attach};
