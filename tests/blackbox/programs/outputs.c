/* SPDX-License-Identifier: Apache-2.0 */
/* Makes three spans, flushes after each, and says on stderr what became of them.
 *
 *     outputs                  as the environment says
 *     outputs close            the program closes its stdout after the start
 *     outputs perfetto PATH    only says what otel_perfetto_exporter_new answers
 *
 * Its exit status is 0. */
#include <errno.h>
#include <otel/file.h>
#include <otel/otel.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    if (count == 3) {
        otel_exporter exporter;
        const otel_status status = otel_perfetto_exporter_new(arguments[2], &exporter);
        fprintf(stderr, "%s, %s\n", otel_status_string(status), strerror(errno));
        return 0;
    }
    const otel_status started = otel_start(NULL);
    if (count == 2)
        close(STDOUT_FILENO);
    for (int i = 0; i < 3; i++) {
        otel_span_end(otel_span_start(otel_tracer_get("outputs", NULL), "span", NULL));
        (void)!otel_flush(5000);
    }
    const otel_status stopped = otel_shutdown(5000);
    otel_stats stats = {.size = sizeof stats};
    char text[512] = "no statistics";
    if (otel_stats_read(0, &stats) == OTEL_OK)
        otel_stats_describe(&stats, text, sizeof text);
    fprintf(stderr, "start %s, shutdown %s: %s\n", otel_status_string(started),
            otel_status_string(stopped), text);
    return 0;
}
