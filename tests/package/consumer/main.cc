/* SPDX-License-Identifier: Apache-2.0 */
/* tests/package/consumer/main.cc - the same from C++, as README says: no macro makes options
 * there, everything else is as in C. */
#include <otel/memory.h>
#include <otel/otel.h>

#include <cstdio>
#include <cstring>

static bool has_arrived(const otel_memory *memory)
{
    otel_span_view span;
    return otel_memory_count(memory) == 2 && otel_memory_span(memory, 1, &span) &&
           span.name.length == 4 && std::memcmp(span.name.data, "work", 4) == 0;
}

int main()
{
    otel_memory *memory = otel_memory_new();
    if (memory == nullptr)
        return 1;
    const otel_exporter exporter = otel_memory_exporter(memory);
    otel_sdk_options options{};
    options.size = sizeof options;
    options.service_name = "consumer";
    options.traces_exporter = "none";
    options.exporters = &exporter;
    options.exporter_count = 1;
    otel_status status = otel_start(&options);
    if (status != OTEL_OK) {
        std::fprintf(stderr, "otel_start: %s\n", otel_status_string(status));
        return 1;
    }
    otel_tracer *tracer = otel_tracer_get("consumer", otel_version());
    {
        OTEL_SCOPED(span, tracer, "work");
        otel_span_set_int(span, "answer", 42);
        otel_span_options client{};
        client.size = sizeof client;
        client.kind = OTEL_SPAN_KIND_CLIENT;
        otel_span_end(otel_span_start(tracer, "ask", &client));
    }
    status = otel_shutdown(60000);
    const bool arrived = has_arrived(memory);
    otel_memory_free(memory);
    return status == OTEL_OK && arrived ? 0 : 1;
}
