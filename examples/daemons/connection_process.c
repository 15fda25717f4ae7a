/* SPDX-License-Identifier: Apache-2.0 */
/* examples/daemons/connection_process.c - a process for each connection, and errors that jump.
 *
 *     postmaster ── fork ──▶ backend: a query, a query, ... until its client has gone
 *                ── fork ──▶ backend: ...
 *
 * The postmaster starts otel-c once. A backend begins to export with its first span, is an instance
 * of the service of its own, and has half a second for the rest of its spans when its client has
 * gone: the connection is closed before, so no client waits for that. An error jumps out of the
 * query with siglongjmp, over the ends of its spans.
 *
 *     cc connection_process.c -o connection_process $(pkg-config --cflags --libs otel)
 *     ./connection_process PATH       serve at this Unix socket until SIGTERM
 *
 * Try it: nc -U PATH, and lines such as "select", "error" or "crash". */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4 */
#endif
#include <otel/otel.h>

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_BUDGET_MS = 500 };

static volatile sig_atomic_t is_over, waits_at;
static otel_tracer *tracer;
static sigjmp_buf on_error;

static void on_sigterm(int signal)
{
    (void)signal;
    is_over = 1;
    shutdown(waits_at, SHUT_RD); /* so that no wait begins after the look at is_over */
}

static void execute(const char *query)
{
    const otel_span span = otel_span_enter(tracer, "execute", NULL);
    if (strcmp(query, "error") == 0)
        siglongjmp(on_error, 1); /* as ereport(ERROR) does: `span` is not ended here */
    if (strcmp(query, "crash") == 0)
        _exit(1); /* what was not exported yet is lost */
    otel_span_end(span);
}

/* Of two spans, whether the query works or jumps. */
static const char *answer(const char *query)
{
    const otel_span_mark mark = otel_span_mark_here();
    if (sigsetjmp(on_error, 1) != 0) {
        otel_span_fail(otel_current_span(), "the query has failed"); /* the innermost one */
        otel_span_unwind(mark); /* ends all that were entered since the mark */
        return "ERROR\n";
    }
    const otel_span span =
        otel_span_enter(tracer, "query", OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_SERVER));
    otel_span_set_string(span, "db.query.text", query);
    execute(query);
    otel_span_end(span);
    return "OK\n";
}

static void serve(int connection)
{
    char query[256];
    FILE *client = fdopen(connection, "r+");
    while (client != NULL && !is_over && fgets(query, sizeof query, client) != NULL) {
        query[strcspn(query, "\n")] = '\0';
        fputs(answer(query), client);
        fflush(client);
    }
    if (client != NULL)
        fclose(client); /* the client may go on */
    char text[200];
    otel_stats sums = {.size = sizeof sums};
    const otel_status status = otel_shutdown(EXIT_BUDGET_MS);
    if (otel_stats_read(0, &sums) == OTEL_OK && otel_stats_describe(&sums, text, sizeof text) > 0)
        fprintf(stderr, "backend %d: %s: %s\n", (int)getpid(), otel_status_string(status), text);
}

int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (argc != 2 || strlen(argv[1]) >= sizeof address.sun_path)
        return fprintf(stderr, "usage: %s PATH\n", argv[0]), 2;
    memcpy(address.sun_path, argv[1], strlen(argv[1]) + 1);
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 128) != 0)
        return perror(argv[1]), 1;
    setpgid(0, 0);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_sigterm}, NULL);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_IGN}, NULL); /* no zombies */
    const otel_status status = otel_start(
        OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.service_name = "connections",
                                                      .queue_max_bytes = 1 << 20 /* each */)));
    if (status != OTEL_OK)
        fprintf(stderr, "telemetry is off: %s\n", otel_status_string(status));
    tracer = otel_tracer_get("example.connections", "1.0");
    while (waits_at = listener, !is_over) {
        const int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        waits_at = connection; /* that is what the signal ends in a backend */
        if (connection >= 0 && fork() == 0) {
            serve(connection);
            _exit(0); /* fine after the shutdown */
        }
        close(connection);
    }
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM); /* the backends, which are in this process group */
    while (wait(NULL) > 0)
        continue;
    unlink(argv[1]);
    return otel_shutdown(EXIT_BUDGET_MS) != OTEL_OK;
}
