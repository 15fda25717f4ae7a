/* SPDX-License-Identifier: Apache-2.0 */
/* A program that takes things away from itself, and then traces as if nothing was missing:
 *
 *     hostile [fsize=BYTES] [threadless] [children=COUNT] [exit|_exit] [handler]
 *
 * children=  forked children make the spans, one child after the other
 * exit       no shutdown: the process that makes the spans returns from main; _exit: by _exit
 * handler    a log handler that does not work any more when main has returned
 *
 * It says on stdout what became of its three spans; its exit status is 0 if its own work is
 * done. */
#include <otel/otel.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SPANS = 3 };

static int report_to, children;
static bool exits, exits_at_once, has_ended;
static otel_sdk_options options = {.size = sizeof options};

static void hear(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    (void)message;
    if (has_ended)
        abort();
}

static bool limit(int resource, rlim_t value)
{
    const struct rlimit low = {value, value};
    return setrlimit(resource, &low) == 0;
}

static bool take_away(const char *what)
{
    if (strncmp(what, "fsize=", 6) == 0)
        return limit(RLIMIT_FSIZE, strtoul(what + 6, NULL, 10));
    if (strncmp(what, "children=", 9) == 0)
        children = atoi(what + 9);
    if (strcmp(what, "handler") == 0)
        otel_log_set_handler(hear, NULL);
    options.threadless = options.threadless || strcmp(what, "threadless") == 0;
    exits = exits || strcmp(what, "exit") == 0;
    exits_at_once = exits_at_once || strcmp(what, "_exit") == 0;
    return true;
}

static void make_spans(void)
{
    otel_tracer *tracer = otel_tracer_get("blackbox", NULL);
    for (int i = 0; i < SPANS; i++) {
        otel_span span = otel_span_enter(tracer, "work", NULL);
        otel_span_set_int(span, "number", i);
        otel_span_end(span);
    }
}

static void work(otel_status started)
{
    make_spans();
    if (exits_at_once)
        _exit(0);
    if (exits) {
        has_ended = true;
        return;
    }
    const otel_status flushed = otel_flush(5000);
    const otel_status stopped = otel_shutdown(5000);

    signal(SIGPIPE, SIG_IGN); /* for our own report, which may have no reader either */
    otel_stats stats = {.size = sizeof stats};
    char text[512] = "no statistics";
    if (otel_stats_read(0, &stats) == OTEL_OK)
        otel_stats_describe(&stats, text, sizeof text);
    dprintf(report_to, "start %s, flush %s, shutdown %s: %s\n", otel_status_string(started),
            otel_status_string(flushed), otel_status_string(stopped), text);
}

int main(int count, char **words)
{
    report_to = dup(STDOUT_FILENO);
    if (report_to < 0)
        return 3;
    for (int i = 1; i < count; i++)
        if (!take_away(words[i]))
            return 77; /* this machine does not allow that */
    const otel_status started = otel_start(&options);
    if (children == 0) {
        work(started);
        return 0;
    }
    for (int i = 0; i < children; i++) {
        const pid_t child = fork();
        if (child == 0) {
            work(started);
            return 0;
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            return 1;
    }
    return otel_shutdown(5000) != OTEL_OK;
}
