/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/driving_test.c - specification of sdk/driving.c: a program may close descriptors that
 * it does not know, and then they are somebody else's. Calls of epoll_wait come here first
 * (--wrap), so that a loop that does not wait is seen. */
#include "sdk/engine.h"

#include "tests/support/fake_exporter.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <otel/otel.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FOREVER_MS = INT32_MAX, MOST_FDS = 64 };

int __wrap_epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms);
int __real_epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms);

static uint32_t looks; /* calls of epoll_wait; atomic */

int __wrap_epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms)
{
    oteli_add_full_32(&looks, 1);
    return __real_epoll_wait(fd, events, count, timeout_ms);
}

static struct fake_exporter fake;
static bool was_open[MOST_FDS]; /* before the test */

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static int begin(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    looks = 0;
    for (int fd = 0; fd < MOST_FDS; fd++)
        was_open[fd] = is_open(fd);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)!otel_shutdown(FOREVER_MS);
    assert_int_equal(fake.overlaps, 0);
    assert_int_equal(fake.unprepared, 0);
    oteli_lifecycle_reset();
    oteli_api_reset();
    oteli_leaks_check();
    for (int fd = 0; fd < MOST_FDS; fd++)
        assert_int_equal(was_open[fd], is_open(fd));
    return 0;
}

static otel_status start_with_delay(int64_t delay_ms)
{
    const otel_exporter exporter = fake_exporter(&fake);
    return otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                            .clock = "monotonic", .log_level = "none",
                                            .threadless = true, .bsp_max_export_batch_size = 10,
                                            .bsp_schedule_delay = delay_ms));
}

static void start(void)
{
    assert_int_equal(start_with_delay(FOREVER_MS), OTEL_OK);
}

static void spans(const char *name, size_t count)
{
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    for (size_t i = 0; i < count; i++)
        otel_span_end(otel_span_enter(tracer, name, NULL));
}

static bool becomes_readable(int fd, int timeout_ms)
{
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    return poll(&waited, 1, timeout_ms) == 1 && (waited.revents & POLLIN) != 0;
}

static bool is_readable(void)
{
    return becomes_readable(otel_poll_fd(), 0);
}

static void poll_once(void)
{
    assert_int_equal(otel_poll(0), OTEL_OK);
}

AROUND_EACH(begin, end);

TEST(starts_and_shutdowns_leave_no_descriptor_behind)
{
    for (unsigned i = 0; i < 3 * MOST_FDS; i++) {
        start();
        spans("a", 1);
        poll_once();
        assert_true(otel_poll_fd() < MOST_FDS);
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    }

    assert_int_equal(fake.spans, 3 * MOST_FDS);
}

static void close_unknown(void)
{
    for (int fd = 0; fd < MOST_FDS; fd++)
        if (!was_open[fd])
            close(fd);
}

TEST(what_was_closed_is_made_anew)
{
    start();
    poll_once();

    close_unknown();
    looks = 0;
    assert_int_equal(otel_poll(2), OTEL_OK);

    assert_true(looks <= 3);
    spans("a", 1);
    assert_true(is_readable());
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    assert_string_equal(fake.text, "a|");
}

TEST(spans_that_ended_meanwhile_are_not_forgotten)
{
    assert_int_equal(start_with_delay(1), OTEL_OK);
    poll_once();

    close_unknown();
    spans("a", 3);
    while (fake.batches == 0)
        assert_int_equal(otel_poll(1), OTEL_OK);

    assert_string_equal(fake.text, "a a a|");
}

/* The numbers are the program's now. */
TEST(what_has_their_numbers_now_is_left_alone)
{
    int files[2][2];
    char text[8];
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 42};
    start();
    close_unknown();
    const int program = epoll_create1(EPOLL_CLOEXEC);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pipe2(files[i], O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(epoll_ctl(program, EPOLL_CTL_ADD, files[i][0], &event), 0);
        assert_int_equal(write(files[i][1], "mine", 4), 4);
    }

    poll_once();
    spans("a", 3);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    oteli_lifecycle_reset();

    assert_string_equal(fake.text, "a a a|");
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(epoll_wait(program, &event, 1, 0), 1);
        assert_int_equal(event.data.u64, 42);
        assert_int_equal(read(files[i][0], text, sizeof text), 4);
        assert_int_equal(close(files[i][0]), 0);
        assert_int_equal(close(files[i][1]), 0);
    }
    assert_int_equal(close(program), 0);
}

/* The others go as well in the end, or are used on; but for the first, if the two that are in it are
 * gone: it is known by nothing else. */
static void check_without(unsigned mask, const int ours[4])
{
    int pipes[4][2];
    unsigned closed = 0;
    for (unsigned i = 0; i < 4; i++)
        if ((mask >> i & 1) != 0) {
            assert_int_equal(close(ours[i]), 0);
            closed++;
        }
    for (unsigned i = 0; i < closed; i++)
        assert_int_equal(pipe2(pipes[i], O_CLOEXEC | O_NONBLOCK), 0);
    poll_once();
    spans("a", 1);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    oteli_lifecycle_reset();
    for (unsigned i = 0; i < closed; i++) {
        char text[8];
        assert_int_equal(write(pipes[i][1], "mine", 4), 4);
        assert_int_equal(read(pipes[i][0], text, sizeof text), 4);
        assert_int_equal(close(pipes[i][0]), 0);
        assert_int_equal(close(pipes[i][1]), 0);
    }
}

TEST(of_some_that_were_closed_the_others_are_not_left)
{
    enum { FIRST_THREE = 7, IN_THE_FIRST = 6, ALL = 15 };
    (void)state;
    for (unsigned mask = 0; mask <= ALL; mask++) {
        int ours[4];
        unsigned count = 0;
        start();
        for (int fd = 0; fd < MOST_FDS; fd++)
            if (!was_open[fd] && is_open(fd) && count < 4)
                ours[count++] = fd;
        assert_int_equal(count, 4);
        assert_int_equal(ours[0], otel_poll_fd()); /* they are made in the order of these bits */

        check_without(mask, ours);

        for (unsigned i = 0; i < 4; i++) {
            const bool is_left = (mask & FIRST_THREE) == IN_THE_FIRST && i == 0;
            assert_int_equal(is_open(ours[i]), is_left);
            if (is_left)
                assert_int_equal(close(ours[i]), 0);
        }
        for (int fd = 0; fd < MOST_FDS; fd++)
            assert_int_equal(was_open[fd], is_open(fd));
    }
}

TEST(a_loop_keeps_the_descriptor_that_it_knows)
{
    for (int behind = 1; behind <= 3; behind++) { /* the timer, and the sockets */
        start();
        const int known = otel_poll_fd();
        assert_int_equal(close(known + behind), 0);
        assert_int_equal(otel_poll(2), OTEL_OK);
        assert_int_equal(otel_poll_fd(), known);
        spans("a", 1);
        assert_true(is_readable());
        assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
        oteli_lifecycle_reset();
    }
    assert_string_equal(fake.text, "a|a|a|");
}

TEST(also_when_only_the_shutdown_comes_after)
{
    int file[2];
    start();
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    close_unknown();
    assert_int_equal(pipe2(file, O_CLOEXEC), 0);

    oteli_lifecycle_reset();

    assert_int_equal(close(file[0]), 0);
    assert_int_equal(close(file[1]), 0);
}

static void allow_descriptors(rlim_t count)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = count;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(without_any_descriptor_it_goes_on_and_does_not_spin)
{
    struct rlimit before;
    fake.pending = 2;
    start();
    close_unknown();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    allow_descriptors(3);

    looks = 0;
    assert_int_equal(otel_poll(12), OTEL_OK);
    const uint32_t seen = looks;
    spans("a", 3);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    allow_descriptors(before.rlim_cur);

    assert_true(seen <= 5);
    assert_string_equal(fake.text, "a a a|");
    poll_once();
    assert_true(otel_poll_fd() >= 0);
}

TEST(a_start_without_descriptors_fails_and_frees_the_exporter)
{
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int lowest = 3;
    while (lowest < MOST_FDS && was_open[lowest])
        lowest++;
    for (int spare = 0; spare < 4; spare++) {
        fake.frees = 0;
        allow_descriptors((rlim_t)lowest + (rlim_t)spare);
        const otel_status status = start_with_delay(FOREVER_MS);
        allow_descriptors(before.rlim_cur);
        assert_int_equal(status, OTEL_ERROR_SYSTEM);
        assert_int_equal(fake.frees, 1);
    }
}

TEST(every_allocation_of_a_start_may_fail)
{
    bool has_failed = true;
    for (size_t nth = 1; has_failed; nth++) {
        fake.frees = 0;
        oteli_leaks_fail_at(nth);
        const otel_status status = start_with_delay(FOREVER_MS);
        has_failed = oteli_leaks_failed();
        oteli_leaks_fail_at(0);
        if (status == OTEL_OK)
            assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
        else
            assert_int_equal(status, OTEL_ERROR_NO_MEMORY);
        assert_int_equal(fake.frees, 1);
    }
}
