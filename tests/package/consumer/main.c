/* SPDX-License-Identifier: Apache-2.0 */
/* tests/package/consumer/main.c - the least that uses every library of otel-c: starts,
 * makes a span, shuts down, and looks at what arrived. Built by run.sh in several ways from
 * an installed tree; it must not know where that tree was. */
#include <otel/memory.h>
#include <otel/otel.h>
#include <otel/otlp.h>
#include <otel/thread_context.h>
#include <stdio.h>
#include <string.h>

/* A second exporter, so that the OTLP library is used and not left out by the linker;
 * nobody listens, and it is freed without ever being given a span. */
static bool can_make_otlp(void)
{
    otel_exporter exporter;
    const otel_status status = otel_otlp_exporter_new(NULL, &exporter);
    if (status == OTEL_OK && exporter.free != NULL)
        exporter.free(exporter.state);
    return status == OTEL_OK;
}

/* Profilers outside find what is published, if this was linked as it should be. */
static bool is_visible(void)
{
    char why[200] = "";
    const bool is = otel_thread_context_selftest(why, sizeof why) == OTEL_OK;
    if (!is)
        fprintf(stderr, "not visible from outside: %s\n", why);
    return is;
}

int main(void)
{
    otel_memory *const memory = otel_memory_new();
    if (memory == NULL || !can_make_otlp())
        return 1;
    const otel_exporter exporter = otel_memory_exporter(memory);
    otel_status status =
        otel_start(OTEL_SDK_OPTIONS(.service_name = "consumer", .traces_exporter = "none",
                                    .exporters = &exporter, .exporter_count = 1));
    if (status != OTEL_OK) {
        fprintf(stderr, "otel_start: %s\n", otel_status_string(status));
        return 1;
    }
    char why[200];
    if (otel_thread_context_selftest(why, sizeof why) != OTEL_OK) {
        fprintf(stderr, "otel_thread_context_selftest: %s\n", why);
        return 1;
    }
    otel_tracer *const tracer = otel_tracer_get("consumer", otel_version());
    {
        OTEL_SCOPED(span, tracer, "work");
        otel_span_set_int(span, "answer", 42);
    }
    const bool visible = is_visible();
    status = otel_shutdown(60000);

    otel_span_view span;
    const bool arrived = otel_memory_count(memory) == 1 && otel_memory_span(memory, 0, &span) &&
                         span.name.length == 4 && memcmp(span.name.data, "work", 4) == 0;
    printf("otel-c %s: shutdown %s, span %s\n", otel_version(), otel_status_string(status),
           arrived ? "arrived" : "lost");
    otel_memory_free(memory);
    return status == OTEL_OK && arrived && visible ? 0 : 1;
}
