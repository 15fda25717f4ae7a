/* SPDX-License-Identifier: Apache-2.0 */
/* A first program: starts the SDK from its environment, makes one span, and says on stdout what
 * became of it. Its exit status is that of otel_shutdown, which it forgets if it has an
 * argument. */
#include <otel/otel.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const otel_status started = otel_start(NULL);
    otel_tracer *tracer = otel_tracer_get("blackbox", "1.0");
    otel_span span = otel_span_enter(tracer, "one", NULL);
    otel_span_set_string(span, "text", "value");
    otel_span_set_int(span, "number", 42);
    otel_span_end(span);
    (void)argv;
    if (argc > 1)
        return 0;
    const otel_status stopped = otel_shutdown(5000);

    otel_stats stats = {.size = sizeof stats};
    char text[512] = "no statistics";
    if (otel_stats_read(0, &stats) == OTEL_OK)
        otel_stats_describe(&stats, text, sizeof text);
    printf("start %s, shutdown %s: %s\n", otel_status_string(started), otel_status_string(stopped),
           text);
    return stopped != OTEL_OK;
}
