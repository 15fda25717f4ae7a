/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/manners_test.c - what a program must not notice of being traced: its
 * signals, its descriptors, its output, its errno. */
#include "tests/support/http_sink.h"

#include <otel/otel.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    WAIT_MS = 60000,
    SHORT_MS = 90, /* below any wait before another attempt */
    LAST_SIGNAL = 64,
    DESCRIPTORS = 1024,
    MARK = 12345,
    THREADS_MAX = 16
};

static struct http_sink *sink;
static int64_t timeout_ms;    /* of the exporter */
static atomic_bool backs_off; /* it has said so */

static void look_at_line(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    if (strstr(message, "again in") != NULL)
        atomic_store(&backs_off, true);
}

static int setup(void **state)
{
    (void)state;
    otel_log_set_handler(look_at_line, NULL);
    timeout_ms = WAIT_MS;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)!otel_shutdown(WAIT_MS);
    http_sink_stop(sink);
    return 0;
}

static void start_with(const struct http_sink_answer *script, size_t count)
{
    char endpoint[64];
    sink = http_sink_start(script, count);
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", (unsigned)http_sink_port(sink));
    assert_int_equal(
        otel_start(OTEL_SDK_OPTIONS(.traces_exporter = "otlp", .exporter_otlp_endpoint = endpoint,
                                    .exporter_otlp_timeout = timeout_ms, .log_level = "debug",
                                    .bsp_schedule_delay = 3600000)),
        OTEL_OK);
}

static void trace(size_t spans)
{
    otel_tracer *tracer = otel_tracer_get("manners_test", NULL);
    for (size_t i = 0; i < spans; i++) {
        const otel_span span = otel_span_enter(tracer, "work", NULL);
        otel_span_set_string(span, "text", "a text of some length, so that bodies are large");
        otel_span_end(span);
    }
}

static void no_disposition_of_a_signal_changes(void **state)
{
    (void)state;
    struct sigaction before[LAST_SIGNAL + 1];
    struct sigaction after[LAST_SIGNAL + 1];
    sigset_t mask_before;
    sigset_t mask_after;
    memset(before, 0, sizeof before);
    memset(after, 0, sizeof after);
    for (int i = 1; i <= LAST_SIGNAL; i++)
        sigaction(i, NULL, &before[i]);
    pthread_sigmask(SIG_SETMASK, NULL, &mask_before);

    start_with(NULL, 0);
    trace(10);
    assert_int_equal(otel_flush(WAIT_MS), OTEL_OK);
    assert_int_equal(otel_shutdown(WAIT_MS), OTEL_OK);

    for (int i = 1; i <= LAST_SIGNAL; i++)
        sigaction(i, NULL, &after[i]);
    pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
    for (int i = 1; i <= LAST_SIGNAL; i++) {
        assert_ptr_equal(before[i].sa_handler, after[i].sa_handler);
        assert_int_equal(before[i].sa_flags, after[i].sa_flags);
        assert_int_equal(sigismember(&mask_before, i), sigismember(&mask_after, i));
    }
}

/* SIGPIPE ends this program, if it comes. */
static void a_reset_in_the_middle_of_a_body_is_no_signal(void **state)
{
    (void)state;
    enum { TRIES = 400, RESETS = 200 }; /* some have no time on a busy machine */
    static struct http_sink_answer script[TRIES];
    struct sigaction action;
    for (size_t i = 0; i < TRIES; i++)
        script[i].then = HTTP_SINK_RESET_EARLY;
    signal(SIGPIPE, SIG_DFL);

    timeout_ms = SHORT_MS;
    start_with(script, TRIES);
    for (size_t i = 0; i < TRIES && http_sink_connections(sink) < RESETS; i++) {
        trace(500);
        assert_int_equal(otel_flush(WAIT_MS), OTEL_ERROR_EXPORT_FAILED);
    }

    sigaction(SIGPIPE, NULL, &action);
    assert_true(action.sa_handler == SIG_DFL);
    assert_true(http_sink_connections(sink) >= RESETS);
}

/* Ids of this process's threads. */
static size_t list_threads(long threads[THREADS_MAX])
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.' && count < THREADS_MAX)
            threads[count++] = strtol(entry->d_name, NULL, 10);
    closedir(folder);
    return count;
}

static bool is_in(long thread, const long *threads, size_t count)
{
    while (count != 0)
        if (threads[--count] == thread)
            return true;
    return false;
}

/* A line of a thread's status in /proc, without its label. */
static void read_status(long thread, const char *label, char *value, size_t size)
{
    char path[64];
    char line[256];
    snprintf(path, sizeof path, "/proc/self/task/%ld/status", thread);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    value[0] = '\0';
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, label, strlen(label)) == 0)
            snprintf(value, size, "%.*s", (int)strcspn(line + strlen(label) + 2, "\n"),
                     line + strlen(label) + 2);
    fclose(file);
}

static void there_is_one_thread_more_which_takes_no_signals(void **state)
{
    (void)state;
    long before[THREADS_MAX];
    long after[THREADS_MAX];
    static const struct http_sink_answer hang = {.then = HTTP_SINK_HANG};
    char text[64];
    start_with(&hang, 1); /* with the thread of the sink, and ours, which is ended again */
    assert_int_equal(otel_shutdown(WAIT_MS), OTEL_OK);
    /* Ours may still be there: the kernel says that a thread has ended a little before it takes it
     * off the list. */
    const size_t count_before = list_threads(before);
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", (unsigned)http_sink_port(sink));

    assert_int_equal(
        otel_start(OTEL_SDK_OPTIONS(.traces_exporter = "otlp", .exporter_otlp_endpoint = endpoint,
                                    .bsp_schedule_delay = 1)),
        OTEL_OK);
    trace(10);
    assert_true(http_sink_wait(sink, 1)); /* in the middle of a request */

    const size_t count_after = list_threads(after);
    long more = 0;
    for (size_t i = 0; i < count_after; i++) {
        if (is_in(after[i], before, count_before))
            continue;
        assert_int_equal(more, 0);
        more = after[i];
        read_status(after[i], "Name", text, sizeof text);
        assert_string_equal(text, "otel-export");
        read_status(after[i], "SigBlk", text, sizeof text);
        const uint64_t blocked = strtoull(text, NULL, 16);
        for (int number = 1; number <= LAST_SIGNAL; number++) {
            const bool cannot_be = number == SIGKILL || number == SIGSTOP ||
                                   (number >= 32 && number < SIGRTMIN); /* the C library's own */
            assert_true(cannot_be || (blocked >> (number - 1) & 1) != 0);
        }
    }
    assert_int_not_equal(more, 0);
    (void)!otel_shutdown(100);
}

static void note_descriptors(bool are_open[DESCRIPTORS])
{
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        are_open[fd] = fcntl(fd, F_GETFD) >= 0;
}

static void every_descriptor_is_closed_on_exec(void **state)
{
    (void)state;
    static bool before[DESCRIPTORS];
    static const struct http_sink_answer script[] = {{.status = 200}, {.then = HTTP_SINK_HANG}};
    note_descriptors(before);

    start_with(script, 2);
    trace(10);
    assert_int_equal(otel_flush(WAIT_MS), OTEL_OK);
    trace(10);
    (void)!otel_flush(0);
    assert_true(http_sink_wait(sink, 2)); /* in the middle of a request */

    size_t opened = 0;
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        const int flags = fcntl(fd, F_GETFD);
        if (flags < 0 || before[fd])
            continue;
        opened++;
        if ((flags & FD_CLOEXEC) == 0)
            fail_msg("descriptor %d would outlive exec", fd);
    }
    assert_true(opened > 4); /* the sink alone has that many */
    (void)!otel_shutdown(0); /* nobody answers */
}

/* Whether a descriptor is the exporter's: its connection, or the pair that wakes it. */
static bool is_of_exporter(int fd)
{
    struct sockaddr_storage name = {0};
    socklen_t length = sizeof name;
    if (getsockname(fd, (struct sockaddr *)&name, &length) != 0)
        return false;
    if (name.ss_family == AF_UNIX)
        return true;
    length = sizeof name;
    return getpeername(fd, (struct sockaddr *)&name, &length) == 0 &&
           ntohs(((const struct sockaddr_in *)(const void *)&name)->sin_port) ==
               http_sink_port(sink);
}

/* A daemon closes what it does not know, and opens other things in its place. */
static void descriptors_taken_over_by_the_program_stay_its_own(void **state)
{
    (void)state;
    static bool before[DESCRIPTORS];
    static const struct http_sink_answer script[] = {
        {.status = 200}, {.status = 503, .headers = "Retry-After: 5\r\n"}};
    int taken[8];
    int ours[8];
    size_t count = 0;
    char byte;
    note_descriptors(before);
    start_with(script, 2);
    trace(10);
    assert_int_equal(otel_flush(WAIT_MS), OTEL_OK);
    trace(10);
    assert_int_equal(otel_flush(0), OTEL_ERROR_TIMEOUT);
    while (!atomic_load(&backs_off))
        sched_yield();
    for (int fd = 0; fd < DESCRIPTORS && count < 8; fd++)
        if (!before[fd] && is_of_exporter(fd))
            taken[count++] = fd;
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        assert_int_equal(dup2(pair[0], taken[i]), taken[i]);
        close(pair[0]);
        ours[i] = pair[1];
        assert_int_equal(send(ours[i], "!", 1, 0), 1);
    }

    trace(10);
    assert_int_equal(otel_flush(WAIT_MS), OTEL_OK);
    assert_int_equal(otel_shutdown(WAIT_MS), OTEL_OK);

    assert_int_equal(http_sink_requests(sink), 4);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(recv(taken[i], &byte, 1, MSG_DONTWAIT), 1);
        assert_int_equal(byte, '!');
        assert_int_equal(recv(ours[i], &byte, 1, MSG_DONTWAIT), -1);
        assert_int_equal(errno, EAGAIN);
        close(taken[i]);
        close(ours[i]);
    }
}

static bool sink_has_connection(void)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        struct sockaddr_in name = {0};
        socklen_t length = sizeof name;
        if (getsockname(fd, (struct sockaddr *)&name, &length) == 0 && name.sin_family == AF_INET &&
            ntohs(name.sin_port) == http_sink_port(sink) &&
            getpeername(fd, (struct sockaddr *)&name, &length) == 0)
            return true;
    }
    return false;
}

static void nothing_stays_open(void **state)
{
    (void)state;
    static bool before[DESCRIPTORS];
    static bool after[DESCRIPTORS];
    char endpoint[64];
    start_with(NULL, 0);
    trace(1);
    assert_int_equal(otel_shutdown(WAIT_MS), OTEL_OK); /* what is opened once stays */
    /* Nobody listens there: the sink's own descriptors do not change any more. */
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", (unsigned)http_sink_closed_port());
    while (http_sink_requests(sink) != 1 || sink_has_connection())
        sched_yield();
    note_descriptors(before);

    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(otel_start(OTEL_SDK_OPTIONS(.traces_exporter = "otlp",
                                                     .exporter_otlp_endpoint = endpoint,
                                                     .exporter_otlp_timeout = SHORT_MS)),
                         OTEL_OK);
        trace(1);
        assert_int_equal(otel_shutdown(WAIT_MS), OTEL_ERROR_EXPORT_FAILED);
    }

    note_descriptors(after);
    assert_memory_equal(before, after, sizeof before);
}

static void nothing_is_written_to_stdout(void **state)
{
    (void)state;
    static const struct http_sink_answer script[] = {{.status = 400}, {.status = 503}};
    fflush(stdout);
    FILE *file = tmpfile();
    const int saved = dup(STDOUT_FILENO);
    assert_true(file != NULL && saved >= 0);
    dup2(fileno(file), STDOUT_FILENO);

    otel_log_set_handler(NULL, NULL);
    const int saved_stderr = dup(STDERR_FILENO);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDERR_FILENO);
    timeout_ms = SHORT_MS;
    start_with(script, 2);
    for (size_t i = 0; i < 3; i++) {
        trace(10);
        (void)!otel_flush(WAIT_MS);
    }
    (void)!otel_shutdown(WAIT_MS);
    dup2(saved_stderr, STDERR_FILENO);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(saved_stderr);
    close(nowhere);

    struct stat status;
    assert_int_equal(fstat(fileno(file), &status), 0);
    assert_int_equal(status.st_size, 0);
    fclose(file);
}

#define KEEPS_ERRNO(call)                                  \
    do {                                                   \
        errno = MARK;                                      \
        call;                                              \
        if (errno != MARK)                                 \
            fail_msg("%s sets errno to %d", #call, errno); \
    } while (0)

static void describe(otel_tracer *tracer, bool is_local, size_t depth)
{
    otel_span span;
    const otel_attribute attribute = otel_attribute_of("bad \xFF", otel_value_int(1));
    const otel_link link = {.context = otel_span_get_context(otel_current_span()),
                            .attributes = &attribute,
                            .attribute_count = 1};
    char name[32];
    if (is_local)
        KEEPS_ERRNO(span = otel_span_enter(tracer, "local", NULL));
    else
        KEEPS_ERRNO(span = otel_span_start(
                        tracer, "detached",
                        OTEL_SPAN_OPTIONS(.attributes = &attribute, .attribute_count = 1)));
    for (size_t i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "key %zu", i);
        KEEPS_ERRNO(otel_span_set_string(span, name, "a text \xFF"));
        KEEPS_ERRNO(otel_span_set_double(span, name, 0.5));
        KEEPS_ERRNO(otel_span_add_event(span, name, &attribute, 1));
        KEEPS_ERRNO(otel_span_add_link(span, &link));
    }
    KEEPS_ERRNO(otel_span_record_exception(span, "type", "message", NULL, &attribute, 1));
    KEEPS_ERRNO(otel_span_fail(span, "because"));
    KEEPS_ERRNO(otel_span_update_name(span, "another name, which is not short at all: "
                                            "it does not fit into the place for names"));
    if (depth != 0)
        describe(tracer, is_local, depth - 1);
    KEEPS_ERRNO(otel_span_end(span));
    KEEPS_ERRNO(otel_span_end(span));
}

static void *describe_on_a_new_thread(void *tracer)
{
    describe(tracer, true, 40);
    describe(tracer, false, 40);
    return NULL;
}

static void carry(void *carrier, const char *name, const char *value, size_t length)
{
    (void)name;
    snprintf(carrier, 64, "%.*s", (int)length, value);
}

static void calls_leave_errno_as_it_was(void **state)
{
    (void)state;
    pthread_t thread;
    otel_tracer *tracer;
    otel_stats stats = {.size = sizeof stats};
    char header[64];
    start_with(NULL, 0);

    KEEPS_ERRNO(tracer = otel_tracer_get("a new one", "1"));
    describe(tracer, true, 0);
    pthread_create(&thread, NULL, describe_on_a_new_thread, tracer);
    pthread_join(thread, NULL);
    KEEPS_ERRNO(otel_inject(NULL, carry, header));
    KEEPS_ERRNO(otel_current_context());
    KEEPS_ERRNO(otel_stats_read(0, &stats));
    KEEPS_ERRNO((void)!otel_flush(WAIT_MS));
    KEEPS_ERRNO((void)!otel_shutdown(WAIT_MS));
    describe(tracer, true, 0); /* also without an SDK */
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(no_disposition_of_a_signal_changes),
        CASE(a_reset_in_the_middle_of_a_body_is_no_signal),
        CASE(there_is_one_thread_more_which_takes_no_signals),
        CASE(every_descriptor_is_closed_on_exec),
        CASE(descriptors_taken_over_by_the_program_stay_its_own),
        CASE(nothing_stays_open),
        CASE(nothing_is_written_to_stdout),
        CASE(calls_leave_errno_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
