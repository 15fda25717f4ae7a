/* SPDX-License-Identifier: Apache-2.0 */
/* examples/library/traced.c - the same with an SDK: the library's spans become visible.
 *
 *     cc traced.c wordcount.c -o traced $(pkg-config --cflags --libs otel)
 *     ./traced
 *
 * prints "6 words", and then the program's span with the library's span in it. Take the
 * option away, and OTEL_TRACES_EXPORTER decides where they go. */
#include "wordcount.h"

#include <otel/otel.h>
#include <stdio.h>

static void read_hamlet(void)
{
    OTEL_SCOPED(span, otel_tracer_get("example.reader", NULL), "read hamlet");
    printf("%zu words\n", wordcount("to be or not to be"));
    fflush(stdout);
}

int main(void)
{
    otel_status status =
        otel_start(OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.service_name = "reader",
                                                                 .traces_exporter = "console")));
    if (status != OTEL_OK)
        fprintf(stderr, "telemetry is off: %s\n", otel_status_string(status));
    read_hamlet();
    return otel_shutdown(5000) != OTEL_OK;
}
