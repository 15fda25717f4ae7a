/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/processor_flush_test.c - where and when a program may flush and shut down: with no
 * time at all and all of it, from a thread that ends, from atexit, and from what runs after a
 * shutdown. The tick is far away, so that only what a test asks for happens. */
#include "sdk/engine.h"

#include "tests/support/fake_exporter.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FOREVER_MS = INT32_MAX };

static struct fake_exporter fake;

static int begin(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)!otel_shutdown(FOREVER_MS);
    oteli_lifecycle_reset();
    oteli_api_reset();
    oteli_leaks_check();
    return 0;
}

static otel_status start(void)
{
    const otel_exporter exporter = fake_exporter(&fake);
    return otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                            .clock = "monotonic", .log_level = "none",
                                            .bsp_schedule_delay = FOREVER_MS));
}

static void span(const char *name)
{
    otel_span_end(otel_span_enter(otel_tracer_get("test", NULL), name, NULL));
}

static otel_stats stats(void)
{
    otel_stats read = {.size = sizeof read};
    (void)otel_stats_read(0, &read);
    return read;
}

/* --- how long --- */

AROUND_EACH(begin, end);

/* spec: P10 */
TEST(a_flush_without_time_is_done_all_the_same)
{
    assert_int_equal(start(), OTEL_OK);
    span("asked for");

    const otel_status status = otel_flush(0);
    while (stats().delivered == 0)
        sched_yield();

    assert_true(status == OTEL_OK || status == OTEL_ERROR_TIMEOUT);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    assert_int_equal(stats().delivered, 1);
}

/* spec: P10 */
TEST(any_number_is_a_timeout)
{
    assert_int_equal(start(), OTEL_OK);
    span("one");

    const otel_status below_zero = otel_flush(INT64_MIN);
    const otel_status for_ever = otel_flush(INT64_MAX);

    assert_true(below_zero == OTEL_OK || below_zero == OTEL_ERROR_TIMEOUT);
    assert_int_equal(for_ever, OTEL_OK);
    assert_int_equal(otel_shutdown(INT64_MAX), OTEL_OK);
    assert_string_equal(fake.text, "one|");
}

TEST(a_shutdown_without_time_answers_and_counts)
{
    assert_int_equal(start(), OTEL_OK);
    span("perhaps");

    const otel_status status = otel_shutdown(INT64_MIN);
    const otel_stats after = stats();

    assert_true(status == OTEL_OK || status == OTEL_ERROR_TIMEOUT);
    assert_int_equal(after.delivered + after.dropped[OTEL_DROP_SHUTDOWN_TIMEOUT], 1);
    assert_int_equal(after.delivered, status == OTEL_OK ? 1 : 0);
}

/* spec: P11 */
TEST(after_a_shutdown_every_call_says_so_as_often_as_it_is_made)
{
    assert_int_equal(start(), OTEL_OK);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(otel_flush(FOREVER_MS), OTEL_ERROR_NOT_STARTED);
        assert_int_equal(otel_flush(0), OTEL_ERROR_NOT_STARTED);
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_ERROR_NOT_STARTED);
        assert_int_equal(otel_shutdown(0), OTEL_ERROR_NOT_STARTED);
    }
}

/* --- from where --- */

static pthread_key_t key;
static otel_status status_of_destructor;

static void flush_as_a_destructor(void *value)
{
    span(value);
    status_of_destructor = otel_flush(FOREVER_MS);
}

static void *set_destructor(void *name)
{
    span("of the thread");
    pthread_setspecific(key, name);
    return NULL;
}

TEST(a_thread_that_ends_flushes_from_a_destructor)
{
    static char name[] = "of its destructor";
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_key_create(&key, flush_as_a_destructor), 0);
    assert_int_equal(start(), OTEL_OK);

    assert_int_equal(pthread_create(&thread, NULL, set_destructor, name), 0);
    pthread_join(thread, NULL);

    assert_int_equal(status_of_destructor, OTEL_OK);
    assert_string_equal(fake.text, "of the thread of its destructor|");
    pthread_key_delete(key);
}

/* What a process answers that starts an SDK, ends a span, and exits with this at its exit. */
static int exit_status_of(void (*at_exit)(void))
{
    const pid_t child = fork();
    if (child == 0) {
        if (start() != OTEL_OK || atexit(at_exit) != 0)
            _exit(1);
        span("before exit");
        exit(2); /* unless at_exit ends it otherwise */
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static void flush_at_exit(void)
{
    const otel_status status = otel_flush(FOREVER_MS);
    _exit(status == OTEL_OK && strcmp(fake.text, "before exit|") == 0 ? 0 : 3);
}

static void shut_down_at_exit(void)
{
    span("at exit");
    const otel_status first = otel_flush(FOREVER_MS);
    const otel_status second = otel_shutdown(FOREVER_MS);
    const otel_status third = otel_shutdown(FOREVER_MS);
    const otel_status fourth = otel_flush(FOREVER_MS);
    span("after the shutdown");
    const bool is_right = first == OTEL_OK && second == OTEL_OK &&
                          third == OTEL_ERROR_NOT_STARTED && fourth == OTEL_ERROR_NOT_STARTED &&
                          strcmp(fake.text, "before exit at exit|") == 0 && fake.frees == 1;
    _exit(is_right ? 0 : 3);
}

static void flush_with_a_worker_that_hangs(void)
{
    fake.pending = UINT32_MAX;
    _exit(otel_flush(10) == OTEL_ERROR_TIMEOUT ? 0 : 3);
}

/* spec: P12 Q13 */
TEST(a_process_that_exits_flushes_and_shuts_down_from_atexit)
{
    assert_int_equal(exit_status_of(flush_at_exit), 0);
    assert_int_equal(exit_status_of(shut_down_at_exit), 0);
    assert_int_equal(exit_status_of(flush_with_a_worker_that_hangs), 0);
}

/* --- what --- */

static pthread_barrier_t step;

static void *end_one_and_stay(void *name)
{
    span(name);
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    return NULL;
}

TEST(spans_of_threads_that_do_nothing_more_are_flushed)
{
    static char name[] = "of another";
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_barrier_init(&step, NULL, 2), 0);
    assert_int_equal(start(), OTEL_OK);
    assert_int_equal(pthread_create(&thread, NULL, end_one_and_stay, name), 0);
    pthread_barrier_wait(&step);

    const otel_status status = otel_flush(FOREVER_MS);

    assert_int_equal(status, OTEL_OK);
    assert_string_equal(fake.text, "of another|");
    pthread_barrier_wait(&step);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&step);
}

TEST(a_span_that_is_still_open_is_not_waited_for)
{
    assert_int_equal(start(), OTEL_OK);
    const otel_span open = otel_span_enter(otel_tracer_get("test", NULL), "open", NULL);
    span("ended");

    const otel_status status = otel_flush(FOREVER_MS);

    assert_int_equal(status, OTEL_OK);
    assert_string_equal(fake.text, "ended|");
    otel_span_end(open);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    assert_string_equal(fake.text, "ended|open|");
}
