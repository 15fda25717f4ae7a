/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/threadless_test.c - a program of one thread with a loop of its own, and a
 * receiver on loopback: everything arrives, by nothing but the descriptor and otel_poll(0), and a
 * receiver that is away takes nothing of the program's time but the tries. */
#include "tests/support/http_sink.h"

#include <dirent.h>
#include <otel/otel.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

enum { SPANS = 5000, BATCH = 64, PATIENCE_MS = 60000 };

static struct http_sink *sink;
static otel_tracer *tracer;
static int epoll_fd;
static size_t looks; /* of the loop */

static void start(const char *endpoint, int64_t timeout_ms)
{
    assert_int_equal(
        otel_start(OTEL_SDK_OPTIONS(.threadless = true, .traces_exporter = "otlp",
                                    .log_level = "none", .exporter_otlp_traces_endpoint = endpoint,
                                    .bsp_schedule_delay = 5, .bsp_max_export_batch_size = BATCH,
                                    .bsp_max_queue_size = SPANS,
                                    .exporter_otlp_timeout = timeout_ms)),
        OTEL_OK);
    struct epoll_event event = {.events = EPOLLIN};
    tracer = otel_tracer_get("test", NULL);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    assert_int_equal(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, otel_poll_fd(), &event), 0);
    looks = 0;
}

static int end(void **state)
{
    (void)state;
    (void)!otel_shutdown(0);
    if (sink != NULL)
        http_sink_stop(sink);
    sink = NULL;
    close(epoll_fd);
    return 0;
}

static otel_stats stats(void)
{
    otel_stats read = {.size = sizeof read};
    assert_int_equal(otel_stats_read(0, &read), OTEL_OK);
    return read;
}

/* One turn of the loop: true if the SDK had something to do. */
static bool turn(int timeout_ms)
{
    struct epoll_event event;
    const int count = epoll_wait(epoll_fd, &event, 1, timeout_ms);
    looks++;
    if (count == 1)
        assert_int_equal(otel_poll(0), OTEL_OK);
    return count == 1;
}

static size_t threads_of_process(void)
{
    size_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks != NULL && readdir(tasks) != NULL)
        count++;
    if (tasks != NULL)
        closedir(tasks);
    return count - 2; /* . and .. */
}

static void test_everything_arrives(void **state)
{
    (void)state;
    sink = http_sink_start(NULL, 0);
    const size_t before = threads_of_process();
    start(http_sink_url(sink), PATIENCE_MS);
    assert_int_equal(threads_of_process(), before);

    for (unsigned i = 0; i < SPANS; i++) {
        otel_span_end(otel_span_enter(tracer, "a", NULL));
        if (i % 10 == 0)
            (void)turn(0);
    }
    while (stats().delivered < SPANS)
        assert_true(turn(PATIENCE_MS));

    assert_int_equal(stats().queued, 0);
    assert_true(http_sink_requests(sink) >= SPANS / BATCH);
    assert_int_equal(http_sink_connections(sink), 1);
}

/* Once nothing is left to do but to close the idle connection, the loop rests. */
static void test_the_descriptor_is_quiet_when_all_is_done(void **state)
{
    (void)state;
    sink = http_sink_start(NULL, 0);
    start(http_sink_url(sink), PATIENCE_MS);
    otel_span_end(otel_span_enter(tracer, "a", NULL));

    while (stats().delivered == 0)
        assert_true(turn(PATIENCE_MS));
    while (turn(10))
        ;

    assert_false(turn(0));
    assert_true(otel_poll_timeout() > 1000);
    assert_true(looks < 200);
}

static void test_a_receiver_that_comes_back_gets_it(void **state)
{
    (void)state;
    static const struct http_sink_answer script[] = {{.status = 503}};
    sink = http_sink_start(script, 1);
    start(http_sink_url(sink), PATIENCE_MS);
    otel_span_end(otel_span_enter(tracer, "a", NULL));

    while (stats().delivered < 1)
        assert_true(turn(PATIENCE_MS));

    assert_int_equal(http_sink_requests(sink), 2);
}

static void test_a_receiver_that_never_answers_is_given_up(void **state)
{
    (void)state;
    static const struct http_sink_answer script[] = {{.then = HTTP_SINK_HANG}};
    sink = http_sink_start(script, 1);
    start(http_sink_url(sink), 200);
    otel_span_end(otel_span_enter(tracer, "a", NULL));

    while (stats().batches == 0)
        assert_true(turn(PATIENCE_MS));

    assert_int_equal(stats().dropped[OTEL_DROP_UNCONFIRMED], 1);
    assert_true(looks < 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(test_##name, end)
        TEST(everything_arrives),
        TEST(the_descriptor_is_quiet_when_all_is_done),
        TEST(a_receiver_that_comes_back_gets_it),
        TEST(a_receiver_that_never_answers_is_given_up),
#undef TEST
    };
    return cmocka_run_group_tests_name("threadless", tests, NULL, NULL);
}
