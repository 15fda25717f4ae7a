/* SPDX-License-Identifier: Apache-2.0 */
/* examples/daemons/reload.c - a server of one thread that takes new settings at SIGHUP.
 *
 * The handlers write to a pipe that the loop reads. At SIGHUP the loop shuts otel-c down and starts
 * it with the new settings, once no request is open; at a second one at once: what is open
 * then is in the sums of the SDK that ended, and never exported.
 *
 *     cc reload.c -o reload $(pkg-config --cflags --libs otel)
 *     ./reload SETTINGS           serve until SIGTERM, or the end of stdin
 *
 * SETTINGS is a file with an endpoint and a ratio: "http://localhost:4318 0.1". Requests are lines
 * on stdin: "begin NAME", then "end". */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pipe2 */
#endif
#include <otel/otel.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHUTDOWN_MS = 2000 };

static int signals[2];
static bool is_open; /* a request */

static void on_signal(int number)
{
    const int saved_errno = errno;
    const char byte = (char)number;
    if (write(signals[1], &byte, 1) != 1)
        errno = saved_errno; /* full of signals, which the loop will read */
}

static void stop(const char *when)
{
    char text[300];
    otel_stats sums = {.size = sizeof sums};
    const otel_status status = otel_shutdown(SHUTDOWN_MS);
    if (status == OTEL_ERROR_NOT_STARTED || otel_stats_read(0, &sums) != OTEL_OK)
        return;
    otel_stats_describe(&sums, text, sizeof text); /* now: the next start sets them to zero */
    fprintf(stderr, "%s: %s: started %llu, %s\n", when, otel_status_string(status),
            (unsigned long long)sums.started, text);
}

static void start(const char *path)
{
    char endpoint[256] = "", ratio[32] = "1";
    FILE *settings = fopen(path, "re");
    if (settings == NULL || fscanf(settings, "%255s %31s", endpoint, ratio) < 1)
        fprintf(stderr, "%s: nothing is set\n", path);
    if (settings != NULL)
        fclose(settings);
    const otel_status status = otel_start(
        OTEL_SDK_OPTIONS(.exporter_otlp_endpoint = endpoint,
                         .traces_sampler = "parentbased_traceidratio", .traces_sampler_arg = ratio,
                         .defaults = OTEL_SDK_OPTIONS(.service_name = "reload")));
    if (status != OTEL_OK) /* bad settings: the server goes on, without telemetry */
        fprintf(stderr, "telemetry is off: %s\n", otel_status_string(status));
}

/* What the signals in the pipe ask for. False: to end. */
static bool obey(const char *settings)
{
    static unsigned reloads; /* that are wanted */
    for (char number; read(signals[0], &number, 1) == 1;) {
        if (number == SIGTERM)
            return false;
        reloads++;
    }
    if (reloads > is_open) {
        stop("before the reload");
        start(settings);
        reloads = 0;
    } else if (reloads > 0) {
        fprintf(stderr, "the reload waits for a request that is open\n");
    }
    return true;
}

/* A request takes several turns of the loop, so its span is detached. */
static bool handle(otel_tracer *tracer, FILE *client)
{
    static otel_span request;
    char line[64];
    if (fgets(line, sizeof line, client) == NULL)
        return false;
    line[strcspn(line, "\n")] = '\0';
    if (is_open)
        otel_span_end(request);
    is_open = strncmp(line, "begin ", 6) == 0;
    if (is_open)
        request = otel_span_start(tracer, line + 6, NULL);
    return puts("done") >= 0 && fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    if (argc != 2 || pipe2(signals, O_CLOEXEC | O_NONBLOCK) != 0)
        return fprintf(stderr, "usage: %s SETTINGS\n", argv[0]), 2;
    sigaction(SIGHUP, &(struct sigaction){.sa_handler = on_signal}, NULL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_signal}, NULL);
    setvbuf(stdin, NULL, _IONBF, 0);
    start(argv[1]);
    otel_tracer *tracer = otel_tracer_get("example.reload", "1.0"); /* good for every start */
    struct pollfd ready[] = {{.fd = signals[0], .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    while (obey(argv[1]))
        if (poll(ready, 2, -1) > 0 && ready[1].revents != 0 && !handle(tracer, stdin))
            break;
    stop("at the end");
    return 0;
}
