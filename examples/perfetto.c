/* SPDX-License-Identifier: Apache-2.0 */
/* examples/perfetto.c - spans as a picture, without a collector.
 *
 *     cc perfetto.c -o perfetto $(pkg-config --cflags --libs otel-sdk)
 *     ./perfetto
 *
 * writes trace.json. Open https://ui.perfetto.dev and drop the file on the page: nothing is
 * uploaded. The order is one track, with its steps in it; what runs beside them has a track of
 * its own and an arrow from where it came. */
#include <inttypes.h>
#include <otel/file.h>
#include <otel/otel.h>
#include <stdio.h>

static otel_tracer *tracer;

static uint64_t count_primes(uint64_t below)
{
    OTEL_SCOPED(span, tracer, "count primes");
    uint64_t count = 0;
    otel_span_set_int(span, "below", (int64_t)below);
    for (uint64_t i = 2; i < below; i++) {
        uint64_t divisor = 2;
        while (divisor * divisor <= i && i % divisor != 0)
            divisor++;
        count += divisor * divisor > i;
    }
    otel_span_set_int(span, "found", (int64_t)count);
    return count;
}

static void handle_order(int number)
{
    OTEL_SCOPED(order, tracer, "order");
    otel_span_set_int(order, "order.number", number);

    /* Not current on this thread: it may last as long as it likes. */
    const otel_span reserve = otel_span_start(tracer, "reserve", NULL);
    count_primes(20000);
    otel_span_add_event(order, "half done", NULL, 0);
    otel_span_end(reserve);
    count_primes(30000);
    if (number == 2)
        otel_span_fail(order, "sold out");
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "trace.json";
    otel_exporter exporter;
    otel_status status = otel_perfetto_exporter_new(path, &exporter);
    if (status == OTEL_OK)
        status = otel_start_with(OTEL_SDK_OPTIONS(.service_name = "orders", .exporters = &exporter,
                                                  .exporter_count = 1));
    if (status != OTEL_OK) {
        fprintf(stderr, "no trace in %s: %s\n", path, otel_status_string(status));
        return 1;
    }
    tracer = otel_tracer_get("example.orders", "1.0");
    for (int number = 1; number <= 3; number++)
        handle_order(number);
    return otel_shutdown(5000) != OTEL_OK;
}
