/* SPDX-License-Identifier: Apache-2.0 */
/* examples/daemons/short_program.c - a program of a few milliseconds, below its caller.
 *
 * It makes no exporter thread: otel_shutdown exports on the thread of main, within a budget. With a
 * spool (OTEL_C_SPOOL_DIR) what does not arrive by then is on disk, and a program that has such a
 * thread, and the same spool, sends it.
 *
 *     cc short_program.c -o short_program $(pkg-config --cflags --libs otel)
 *     OTEL_TRACES_EXPORTER=console ./short_program 7
 *
 * draws the span "sum up". TRACEPARENT, which the caller sets, is the span that it is below. */
#include <otel/otel.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUDGET_MS = 200 };

int main(int argc, char **argv)
{
    const otel_status status =
        otel_start(OTEL_SDK_OPTIONS(.threadless = true,
                                    .defaults = OTEL_SDK_OPTIONS(.service_name = "short",
                                                                 .resource_detectors = "process")));
    if (status != OTEL_OK)
        fprintf(stderr, "telemetry is off: %s\n", otel_status_string(status));
    otel_tracer *tracer = otel_tracer_get("example.short", "1.0");
    const otel_context caller = otel_extract_environment(NULL);
    const otel_span span = otel_span_enter(tracer, "sum up", OTEL_SPAN_OPTIONS(.parent = &caller));

    const int last = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 10;
    int sum = 0;
    for (int i = 1; i <= last; i++)
        sum += i;
    printf("%d\n", sum);

    otel_span_set_int(span, "sum.last", last);
    otel_span_end(span);
    if (otel_shutdown(BUDGET_MS) != OTEL_OK)
        fprintf(stderr, "its span was not delivered\n"); /* the program's own result counts */
    return sum > 0 ? 0 : 1;
}
