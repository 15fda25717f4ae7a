/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/no_environment_test.c - after otel_start nobody reads the environment.
 *
 * The C library's environment has no lock: a thread of ours that reads it while the
 * program calls setenv can crash the program. This program's getenv stands in the place of
 * the C library's, for every library, and counts. */
#include "tests/support/http_sink.h"

#include <otel/otel.h>

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 60000, SHORT_MS = 300, ROUNDS = 200 };

static atomic_bool counts;
static atomic_uint calls;
static char last_call[256];

static char *look_up(const char *name, const void *caller)
{
    if (atomic_load(&counts)) {
        Dl_info where = {0};
        dladdr(caller, &where);
        snprintf(last_call, sizeof last_call, "%s by %s of %s", name,
                 where.dli_sname ? where.dli_sname : "?", where.dli_fname ? where.dli_fname : "?");
        atomic_fetch_add(&calls, 1);
    }
    const size_t length = strlen(name);
    for (char **at = environ; at != NULL && *at != NULL; at++)
        if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
            return *at + length + 1;
    return NULL;
}

char *getenv(const char *name)
{
    return look_up(name, __builtin_return_address(0));
}

char *secure_getenv(const char *name)
{
    return look_up(name, __builtin_return_address(0));
}

static void ignore_line(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    (void)message;
}

static int setup(void **state)
{
    (void)state;
    otel_log_set_handler(ignore_line, NULL);
    atomic_store(&calls, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    atomic_store(&counts, false);
    (void)!otel_shutdown(WAIT_MS);
    return 0;
}

/* The start itself may ask, and does: so this getenv is in the way of the library's calls. */
static void start_counting(const char *endpoint, int64_t timeout_ms)
{
    atomic_store(&counts, true);
    assert_int_equal(
        otel_start(OTEL_SDK_OPTIONS(.traces_exporter = "otlp", .exporter_otlp_endpoint = endpoint,
                                    .exporter_otlp_timeout = timeout_ms)),
        OTEL_OK);
    assert_true(atomic_load(&calls) > 0);
    atomic_store(&calls, 0);
}

static void trace(size_t spans)
{
    otel_tracer *tracer = otel_tracer_get("no_environment_test", NULL);
    for (size_t i = 0; i < spans; i++) {
        const otel_span span = otel_span_enter(tracer, "work", NULL);
        otel_span_set_int(span, "number", (int64_t)i);
        otel_span_end(span);
    }
}

static void assert_nobody_asked(void)
{
    atomic_store(&counts, false);
    if (atomic_load(&calls) != 0)
        fail_msg("%u calls of getenv, the last one for %s", atomic_load(&calls), last_call);
}

static void the_counter_counts(void **state)
{
    (void)state;
    atomic_store(&counts, true);
    (void)getenv("HOME");
    assert_int_equal(atomic_load(&calls), 1);
}

/* A receiver that takes, breaks off and refuses; none, with a name that has to be looked up and
 * without; and one that does not speak TLS. */
static void not_while_exporting(void **state)
{
    (void)state;
    static const struct http_sink_answer script[] = {
        {.status = 200},
        {.then = HTTP_SINK_RESET},
        {.status = 400, .headers = "Retry-After: 1\r\n"}};
    static const struct {
        const char *origin;
        bool listens;
    } receivers[] = {{"http://127.0.0.1", true},
                     {"http://127.0.0.1", false},
                     {"http://localhost", false},
                     {"https://127.0.0.1", true}};
    for (size_t i = 0; i < sizeof receivers / sizeof *receivers; i++) {
        char endpoint[64];
        struct http_sink *sink = http_sink_start(script, 3);
        snprintf(endpoint, sizeof endpoint, "%s:%u", receivers[i].origin,
                 (unsigned)(receivers[i].listens ? http_sink_port(sink) : http_sink_closed_port()));

        start_counting(endpoint, SHORT_MS);
        for (size_t k = 0; k < 5; k++) {
            trace(10);
            (void)!otel_flush(WAIT_MS);
        }
        (void)!otel_shutdown(WAIT_MS);

        assert_nobody_asked();
        http_sink_stop(sink);
    }
}

static atomic_bool must_stop;

static void *change_environment(void *nothing)
{
    char name[32];
    for (unsigned i = 0; !atomic_load(&must_stop); i++) {
        snprintf(name, sizeof name, "CHANGING_%u", i % 1000);
        setenv(name, "a value that is long enough to be allocated", 1);
        if (i % 3 == 0)
            unsetenv(name);
    }
    return nothing;
}

/* Whoever read now would read freed memory: address sanitizer, or the crash, says so. The
 * address is a number, because looking up a name asks the C library, which may read it. */
static void the_program_may_change_it_meanwhile(void **state)
{
    (void)state;
    char endpoint[64];
    pthread_t thread;
    struct http_sink *sink = http_sink_start(NULL, 0);
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", (unsigned)http_sink_port(sink));
    start_counting(endpoint, WAIT_MS);
    atomic_store(&must_stop, false);
    assert_int_equal(pthread_create(&thread, NULL, change_environment, NULL), 0);

    for (size_t i = 0; i < ROUNDS; i++) {
        trace(100);
        assert_int_equal(otel_flush(WAIT_MS), OTEL_OK);
    }
    assert_int_equal(otel_shutdown(WAIT_MS), OTEL_OK);

    atomic_store(&must_stop, true);
    pthread_join(thread, NULL);
    assert_nobody_asked();
    http_sink_stop(sink);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_counter_counts),
        CASE(not_while_exporting),
        CASE(the_program_may_change_it_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
