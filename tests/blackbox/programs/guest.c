/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is at home in places that are not made for it (hostile_test.py). It traces on its
 * first thread, on four more and in a forked child, and writes to a descriptor what came of it:
 *
 *     guest FD [room=BYTES] [stack=BYTES]
 *
 * room: how much more address space the process may take once it runs; stack: of its threads.
 * Whatever tracing meets, the program's own work has to be done: it exits with 0. What it notices
 * of being traced it calls rude: another disposition of a signal, another errno, a descriptor that
 * stays open or that a program it starts would have. */
#include <errno.h>
#include <fcntl.h>
#include <otel/otel.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, REQUESTS = 25, WORK = THREADS * REQUESTS };
enum { SIGNALS = 65, DESCRIPTORS = 1024, MARK = 12345 };

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

/* --- manners --- */

static struct sigaction actions[SIGNALS];
static sigset_t mask;
static bool was_open[DESCRIPTORS];

static void note_surroundings(void)
{
    for (int number = 1; number < SIGNALS; number++)
        sigaction(number, NULL, &actions[number]);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        was_open[fd] = fcntl(fd, F_GETFD) >= 0;
}

static void look_at_signals(void)
{
    struct sigaction action;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    for (int number = 1; number < SIGNALS; number++)
        if (sigaction(number, NULL, &action) == 0 &&
            (action.sa_handler != actions[number].sa_handler ||
             action.sa_flags != actions[number].sa_flags ||
             sigismember(&blocked, number) != sigismember(&mask, number)))
            report("rude signal %d\n", number);
}

/* Those that were not open before: each has to have these flags, if there may be any. */
static void look_at_descriptors(bool may_be_there)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        const int flags = fcntl(fd, F_GETFD);
        if (flags >= 0 && !was_open[fd] && !(may_be_there && (flags & FD_CLOEXEC) != 0))
            report("rude descriptor %d\n", fd);
    }
}

#define KEEPS_ERRNO(call)                                  \
    do {                                                   \
        errno = MARK;                                      \
        call;                                              \
        if (errno != MARK)                                 \
            report("rude errno %d by %s\n", errno, #call); \
    } while (0)

/* --- work --- */

static void describe(otel_span span)
{
    const otel_attribute bad = otel_attribute_of("bad \xFF", otel_value_int(1));
    const otel_link link = {.context = otel_span_get_context(otel_current_span()),
                            .attributes = &bad,
                            .attribute_count = 1};
    KEEPS_ERRNO(otel_span_set_string(span, "text", "a text \xFF"));
    KEEPS_ERRNO(otel_span_set_double(span, "number", 0.5));
    KEEPS_ERRNO(otel_span_add_event(span, "event", &bad, 1));
    KEEPS_ERRNO(otel_span_add_link(span, &link));
    KEEPS_ERRNO(otel_span_record_exception(span, "type", "message", NULL, &bad, 1));
    KEEPS_ERRNO(otel_span_fail(span, "because"));
    KEEPS_ERRNO(otel_span_update_name(span, "another name, which is not short at all: "
                                            "it does not fit into the place for names"));
}

static void keep_header(void *carrier, const char *name, const char *value, size_t length)
{
    (void)name;
    snprintf(carrier, 64, "%.*s", (int)length, value);
}

static void *serve(void *argument)
{
    char header[64];
    (void)argument;
    for (int i = 0; i < REQUESTS; i++) {
        otel_span request, query;
        KEEPS_ERRNO(request = otel_span_enter(tracer, "request", NULL));
        describe(request);
        KEEPS_ERRNO(query = otel_span_start(tracer, "query", NULL));
        describe(query);
        KEEPS_ERRNO(otel_inject(NULL, keep_header, header));
        KEEPS_ERRNO(otel_span_set_int(query, "rows", i));
        KEEPS_ERRNO(otel_span_end(query));
        KEEPS_ERRNO(otel_span_end(request));
        KEEPS_ERRNO(otel_span_end(request));
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
    note_surroundings();
    report("start %s\n", otel_status_string(otel_start(NULL)));
    KEEPS_ERRNO(tracer = otel_tracer_get("guest", "1.0"));
    serve_on_threads(stack);
    const pid_t child = fork();
    if (child == 0)
        _exit(work_in_child());
    int status = 0;
    if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
        report("child died: %d\n", status);
    otel_status status_now;
    KEEPS_ERRNO(status_now = otel_flush(2000));
    report("flush %s\n", otel_status_string(status_now));
    look_at_descriptors(true);
    for (int descriptor = 0; descriptor < 3; descriptor++)
        if (fcntl(descriptor, F_GETFD) >= 0)
            report("open %d\n", descriptor);
    KEEPS_ERRNO(status_now = otel_shutdown(2000));
    report("shutdown %s\n", otel_status_string(status_now));
    look_at_descriptors(false);
    look_at_signals();
    report_sums();
    report("work %d\n", atomic_load(&work_done));
    return atomic_load(&work_done) != WORK;
}
