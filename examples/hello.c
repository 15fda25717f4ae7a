/* SPDX-License-Identifier: Apache-2.0 */
/* examples/hello.c - the smallest program that traces itself.
 *
 *     cc hello.c -o hello $(pkg-config --cflags --libs otel)
 *     OTEL_TRACES_EXPORTER=console ./hello
 *
 * draws one span, "charge". Without the variable the span is posted to a collector at
 * http://localhost:4318; where none is, the log says so, and the program ends as it would have. */
#include <otel/otel.h>
#include <stdio.h>

static otel_tracer *tracer;

static int charge(int cents)
{
    OTEL_SCOPED(span, tracer, "charge"); /* ends on every way out */
    otel_span_set_int(span, "payment.cents", cents);
    if (cents <= 0) {
        otel_span_fail(span, "nothing to charge");
        return -1;
    }
    return 0;
}

int main(void)
{
    otel_status status = otel_start(NULL); /* everything from OTEL_* */
    if (status != OTEL_OK)
        fprintf(stderr, "telemetry is off: %s\n", otel_status_string(status));
    tracer = otel_tracer_get("example.shop", "1.0");
    charge(1299);
    if (otel_shutdown(5000 /* ms */) != OTEL_OK) /* sends what is left */
        fprintf(stderr, "not all spans were delivered\n");
    return 0;
}
