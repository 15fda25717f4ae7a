/* SPDX-License-Identifier: Apache-2.0 */
/* examples/daemons/helper_process.c - the processes that a server starts for a request.
 *
 *     request ──┬── saver    fork: traces as the server does, and ends by _exit
 *               ├── cleaner  fork: calls traced functions, and shall not trace
 *               └── program  fork and exec: has the trace in its environment
 *
 *     cc helper_process.c -o helper_process $(pkg-config --cflags --libs otel)
 *     cc short_program.c -o short_program $(pkg-config --cflags --libs otel)
 *     OTEL_TRACES_EXPORTER=console ./helper_process ./short_program
 *
 * with short_program.c as the program: its span is in the same trace. */
#include <otel/otel.h>

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMEOUT_MS = 2000 };

static otel_tracer *tracer;

/* What the server and its helpers call. */
static void write_file(const char *what)
{
    const otel_span span = otel_span_enter(tracer, "write file", NULL);
    otel_span_set_string(span, "file", what);
    otel_span_end(span);
}

/* A helper that traces: its spans are below the server's current one. Before _exit it delivers. */
static pid_t start_saver(void)
{
    const pid_t saver = fork();
    if (saver != 0)
        return saver;
    write_file("snapshot");
    _exit(otel_shutdown(TIMEOUT_MS) != OTEL_OK);
}

/* A helper that does not: a shutdown before its first span leaves the child without an SDK, thread
 * and connection, for good. */
static pid_t start_cleaner(void)
{
    const pid_t cleaner = fork();
    if (cleaner != 0)
        return cleaner;
    if (otel_shutdown(0) != OTEL_OK)
        _exit(1);
    write_file("rubbish"); /* no span */
    _exit(0);
}

/* Another program. The environment is made before the fork, and is for this program alone. */
static pid_t start_program(char *path)
{
    pid_t program = -1;
    char *const arguments[] = {path, NULL};
    char **environment = otel_environment_for_child(NULL, NULL);
    if (environment == NULL || posix_spawn(&program, path, NULL, NULL, arguments, environment) != 0)
        fprintf(stderr, "%s cannot be started\n", path);
    free(environment);
    return program;
}

static bool ends_well(pid_t helper)
{
    int status = -1;
    return helper > 0 && waitpid(helper, &status, 0) == helper && status == 0;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return fprintf(stderr, "usage: %s PROGRAM\n", argv[0]), 2;
    if (otel_start(OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.service_name = "helped"))) !=
        OTEL_OK)
        fprintf(stderr, "telemetry is off\n");
    tracer = otel_tracer_get("example.helped", "1.0");

    const otel_span span = otel_span_enter(tracer, "request", NULL);
    write_file("log");
    const pid_t helpers[] = {start_saver(), start_cleaner(), start_program(argv[1])};
    bool is_well = true;
    for (size_t i = 0; i < sizeof helpers / sizeof helpers[0]; i++)
        is_well &= ends_well(helpers[i]);
    otel_span_end(span);
    return otel_shutdown(TIMEOUT_MS) != OTEL_OK || !is_well;
}
