/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is at home in places that are not made for it (hostile_test.py). It traces on its
 * first thread, on four more and in a forked child, and writes to a descriptor what came of it:
 *
 *     guest FD [room=BYTES] [stack=BYTES]
 *
 * room: how much more address space the process may take once it runs; stack: of its threads.
 * Whatever tracing meets, the program's own work has to be done: it exits with 0. */
#include <otel/otel.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, REQUESTS = 25, WORK = THREADS * REQUESTS };

static int report_to = -1;
static otel_tracer *tracer;
static atomic_int work_done;

static void report(const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof line)
        length = sizeof line - 1;
    if (write(report_to, line, (size_t)length) != length)
        _exit(3);
}

static void on_message(void *state, otel_log_level level, const char *message)
{
    (void)state;
    report("said %d %s\n", (int)level, message);
}

static void *serve(void *argument)
{
    (void)argument;
    for (int i = 0; i < REQUESTS; i++) {
        otel_span request = otel_span_enter(tracer, "request", NULL);
        otel_span_set_string(request, "url.path", "/api/users/12345");
        otel_span query = otel_span_enter(tracer, "query", NULL);
        otel_span_set_int(query, "rows", i);
        otel_span_end(query);
        otel_span_end(request);
        atomic_fetch_add(&work_done, 1);
    }
    return NULL;
}

static void serve_on_threads(size_t stack)
{
    pthread_t threads[THREADS];
    bool made[THREADS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack != 0)
        pthread_attr_setstacksize(&attributes, stack);
    for (int i = 0; i < THREADS; i++)
        made[i] = pthread_create(&threads[i], &attributes, serve, NULL) == 0;
    for (int i = 0; i < THREADS; i++) {
        if (made[i])
            pthread_join(threads[i], NULL);
        else
            serve(NULL);
    }
    pthread_attr_destroy(&attributes);
}

static void report_sums(void)
{
    otel_stats stats = {.size = sizeof stats};
    char text[512] = "none";
    if (otel_stats_read(0, &stats) == OTEL_OK)
        otel_stats_describe(&stats, text, sizeof text);
    report("stats %s\n", text);
    report("ended %llu delivered %llu\n", (unsigned long long)stats.ended,
           (unsigned long long)stats.delivered);
}

/* A child traces by itself, and ends as programs do. */
static int work_in_child(void)
{
    otel_span span = otel_span_enter(tracer, "child", NULL);
    otel_span_end(span);
    report("child %s\n", otel_status_string(otel_shutdown(2000)));
    return 0;
}

static void limit_room(const char *text)
{
    FILE *statm = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    if (statm == NULL || fscanf(statm, "%lu", &pages) != 1)
        abort();
    fclose(statm);
    const rlim_t most = pages * (rlim_t)sysconf(_SC_PAGESIZE) + strtoul(text, NULL, 10);
    if (setrlimit(RLIMIT_AS, &(struct rlimit){most, most}) != 0)
        abort();
}

int main(int count, char **arguments)
{
    size_t stack = 0;
    if (count < 2)
        return 2;
    report_to = atoi(arguments[1]);
    otel_log_set_handler(on_message, NULL);
    for (int i = 2; i < count; i++) {
        if (strncmp(arguments[i], "room=", 5) == 0)
            limit_room(arguments[i] + 5);
        else if (strncmp(arguments[i], "stack=", 6) == 0)
            stack = strtoul(arguments[i] + 6, NULL, 10);
    }
    report("start %s\n", otel_status_string(otel_start(NULL)));
    tracer = otel_tracer_get("guest", "1.0");
    serve_on_threads(stack);
    const pid_t child = fork();
    if (child == 0)
        _exit(work_in_child());
    int status = 0;
    if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
        report("child died: %d\n", status);
    report("flush %s\n", otel_status_string(otel_flush(2000)));
    for (int descriptor = 0; descriptor < 3; descriptor++)
        if (fcntl(descriptor, F_GETFD) >= 0)
            report("open %d\n", descriptor);
    report("shutdown %s\n", otel_status_string(otel_shutdown(2000)));
    report_sums();
    report("work %d\n", atomic_load(&work_done));
    return atomic_load(&work_done) != WORK;
}
