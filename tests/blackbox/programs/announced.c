/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the SDK in the way that the first argument says, and prints the lines of level info that
 * its log handler gets:
 *
 *   environment        otel_start(NULL)
 *   code URL           everything in code, an exporter to memory among it
 *   sampler NAME ARG   a sampler in code
 *   file PATH          otel_start_from_file
 *   fork               otel_start(NULL), and a child that traces
 *   silent             otel_start(NULL) without a handler */
#include <otel/config.h>
#include <otel/memory.h>
#include <otel/otel.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void print_news(void *state, otel_log_level level, const char *message)
{
    (void)state;
    if (level == OTEL_LOG_INFO) {
        printf("%s\n", message);
        fflush(stdout);
    }
}

static void trace(void)
{
    otel_span_end(otel_span_enter(otel_tracer_get("announced", NULL), "one", NULL));
}

static otel_status start_in_code(const char *url, otel_memory *memory)
{
    const otel_exporter exporter = otel_memory_exporter(memory);
    return otel_start(
        OTEL_SDK_OPTIONS(.exporter_otlp_endpoint = url, .exporter_otlp_protocol = "http/json",
                         .traces_sampler = "traceidratio", .traces_sampler_arg = "1.0",
                         .traces_exporter = "otlp,console", .exporters = &exporter,
                         .exporter_count = 1));
}

int main(int count, char **arguments)
{
    const char *way = count > 1 ? arguments[1] : "environment";
    const char *value = count > 2 ? arguments[2] : NULL;
    otel_memory *memory = otel_memory_new();
    otel_status status = OTEL_OK;
    if (strcmp(way, "silent") != 0)
        otel_log_set_handler(print_news, NULL);
    if (strcmp(way, "code") == 0)
        status = start_in_code(value, memory);
    else if (strcmp(way, "sampler") == 0)
        status =
            otel_start(OTEL_SDK_OPTIONS(.traces_sampler = value,
                                        .traces_sampler_arg = count > 3 ? arguments[3] : NULL));
    else if (strcmp(way, "file") == 0)
        status = otel_start_from_file(value, NULL);
    else
        status = otel_start(NULL);
    if (status == OTEL_OK && strcmp(way, "fork") == 0) {
        const pid_t child = fork();
        if (child >= 0)
            trace();
        if (child == 0) {
            (void)!otel_shutdown(5000);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    (void)!otel_shutdown(100);
    otel_memory_free(memory);
    return status != OTEL_OK;
}
