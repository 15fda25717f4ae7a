/* SPDX-License-Identifier: Apache-2.0 */
/* examples/daemons/sums.c - what a running server says about its telemetry, and what a crash says.
 *
 *     SIGUSR1   writes the sums
 *     a timer   writes them, as an alarm, after a second in which spans were lost
 *     SIGABRT   says which trace the crash was in
 *
 * Handlers may not read the sums: the first one sets a flag for the loop. That of the crash makes
 * only calls that a handler may make.
 *
 *     cc sums.c -o sums $(pkg-config --cflags --libs otel)
 *     ./sums                      serve until SIGTERM, or the end of stdin
 *
 * Requests are lines on stdin; the request "crash" aborts. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* ppoll */
#endif
#include <otel/otel.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SHUTDOWN_MS = 2000 };

static volatile sig_atomic_t is_over, is_asked;

static void on_signal(int number)
{
    if (number == SIGTERM)
        is_over = 1;
    else
        is_asked = 1;
}

static void on_crash(int number)
{
    static char line[] = "crashed in trace 00000000000000000000000000000000\n";
    char hex[33];
    const otel_span_context context = otel_span_get_context(otel_current_span());
    otel_trace_id_hex(&context, hex);
    memcpy(line + sizeof line - sizeof hex - 1, hex, sizeof hex - 1);
    if (write(STDERR_FILENO, line, sizeof line - 1) > 0)
        raise(number); /* SA_RESETHAND: now its default */
}

/* `is_alarm`: only if more spans are lost than there were in the last call. */
static void say_sums(const char *when, bool is_alarm)
{
    static uint64_t lost_before;
    char text[300];
    otel_stats sums = {.size = sizeof sums};
    if (otel_stats_read(0, &sums) != OTEL_OK)
        return; /* off, or without an exporter */
    uint64_t lost = sums.rejected;
    for (size_t i = 0; i < OTEL_DROP_REASONS_MOST; i++)
        lost += sums.dropped[i];
    if (is_alarm && lost == lost_before)
        return;
    lost_before = lost;
    otel_stats_describe(&sums, text, sizeof text);
    fprintf(stderr, "%s: started %llu, ended %llu: %s\n", when, (unsigned long long)sums.started,
            (unsigned long long)sums.ended, text);
}

static bool handle(otel_tracer *tracer)
{
    char line[64];
    if (fgets(line, sizeof line, stdin) == NULL)
        return false;
    line[strcspn(line, "\n")] = '\0';
    OTEL_SCOPED(span, tracer, "request");
    otel_span_set_string(span, "request.text", line);
    if (strcmp(line, "crash") == 0)
        abort();
    return puts("done") >= 0 && fflush(stdout) == 0;
}

int main(void)
{
    sigset_t watched, none;
    sigemptyset(&none);
    sigemptyset(&watched);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGUSR1);
    sigprocmask(SIG_BLOCK, &watched, NULL); /* but in ppoll, so that none comes just before it */
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_signal}, NULL);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, NULL);
    sigaction(SIGABRT, &(struct sigaction){.sa_handler = on_crash, .sa_flags = SA_RESETHAND}, NULL);
    setvbuf(stdin, NULL, _IONBF, 0);
    if (otel_start(OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.service_name = "sums"))) !=
        OTEL_OK)
        fprintf(stderr, "telemetry is off\n");
    otel_tracer *tracer = otel_tracer_get("example.sums", "1.0");
    struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
    bool goes_on = true;
    while (goes_on && !is_over) {
        if (ppoll(&ready, 1, &(struct timespec){.tv_sec = 1}, &none) > 0)
            goes_on = handle(tracer);
        if (is_asked)
            say_sums("sums", false);
        is_asked = 0;
        say_sums("ALARM", true);
    }
    const otel_status status = otel_shutdown(SHUTDOWN_MS);
    say_sums("at the end", false);
    return status != OTEL_OK;
}
