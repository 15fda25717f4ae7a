/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/attend_waits_test.c - specification of sdk/attend.c with a real thread, and with
 * otel_poll: an exporter is called when its descriptor is readable, and whoever wants an export
 * meanwhile does not wait for it. Calls of epoll_wait come here first (--wrap), so that a worker
 * that should not wait in it is seen. */
#include "sdk/engine.h"

#include "tests/support/fake_exporter.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <fcntl.h>
#include <otel/otel.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
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
static int event = -1;
static bool was_open[MOST_FDS];

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
    event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    fake.attends = true;
    fake.attend_ms = FOREVER_MS;
    fake.has_descriptor = true;
    fake.descriptor_fd = event;
    fake.descriptor_timeout_ms = -1;
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)!otel_shutdown(FOREVER_MS);
    assert_int_equal(fake.overlaps, 0);
    oteli_lifecycle_reset();
    oteli_api_reset();
    oteli_leaks_check();
    close(event);
    for (int fd = 0; fd < MOST_FDS; fd++)
        assert_int_equal(was_open[fd], is_open(fd));
    return 0;
}

static void start(bool threadless)
{
    const otel_exporter exporter = fake_exporter(&fake);
    assert_int_equal(
        otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                         .clock = "monotonic", .log_level = "none",
                                         .threadless = threadless, .bsp_max_export_batch_size = 10,
                                         .bsp_schedule_delay = FOREVER_MS)),
        OTEL_OK);
}

static void spans(size_t count)
{
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    for (size_t i = 0; i < count; i++)
        otel_span_end(otel_span_enter(tracer, "a", NULL));
}

static void wait_for(const uint32_t *counter, uint32_t least)
{
    while (oteli_load_acquire_32(counter) < least)
        sched_yield();
}

static uint64_t delivered(void)
{
    otel_stats stats = {.size = sizeof stats};
    assert_int_equal(otel_stats_read(0, &stats), OTEL_OK);
    return stats.delivered;
}

static void make_readable(void)
{
    assert_int_equal(eventfd_write(event, 1), 0);
}

AROUND_EACH(begin, end);

TEST(the_worker_comes_when_the_descriptor_is_readable)
{
    start(false);
    wait_for(&looks, 1);

    const uint32_t before = oteli_load_acquire_32(&fake.attended);
    make_readable();

    wait_for(&fake.attended, before + 1);
}

TEST(whoever_flushes_wakes_it_as_always)
{
    start(false);
    for (unsigned i = 0; i < 200; i++) {
        spans(3);
        assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    }

    assert_int_equal(delivered(), 600);
    assert_true(oteli_load_acquire_32(&looks) > 0);
}

TEST(whole_batches_wake_it_as_always)
{
    start(false);
    for (uint64_t batches = 1; batches <= 100; batches++) {
        wait_for(&looks, 1);
        oteli_store_release_32(&looks, 0);
        spans(20);
        while (delivered() < batches * 10)
            sched_yield();
    }
}

TEST(one_that_waits_for_nothing_sleeps_on_the_futex_again)
{
    fake.attend_ms = -1;
    start(false);
    wait_for(&fake.attended, 1);

    for (unsigned i = 0; i < 20; i++) {
        spans(1);
        assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    }

    assert_int_equal(oteli_load_acquire_32(&looks), 0);
}

/* R47: a program closes all descriptors that it does not know, and opens its own. */
TEST(what_is_opened_in_the_place_of_our_descriptors_is_left_alone)
{
    start(false);
    wait_for(&looks, 1);
    int pairs[MOST_FDS][2];
    size_t count = 0;
    bool is_ours[MOST_FDS]; /* and not what it opens as soon as it misses the first */
    for (int fd = 0; fd < MOST_FDS; fd++)
        is_ours[fd] = fd != event && !was_open[fd] && is_open(fd);
    for (int fd = 0; fd < MOST_FDS; fd++)
        if (is_ours[fd])
            close(fd);
    for (; count < 8; count++)
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[count]), 0);

    for (unsigned i = 0; i < 50; i++) {
        spans(2);
        assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    }

    for (size_t i = 0; i < count; i++)
        for (unsigned side = 0; side < 2; side++) {
            char byte;
            assert_int_equal(recv(pairs[i][side], &byte, 1, MSG_DONTWAIT), -1);
        }
    (void)!otel_shutdown(FOREVER_MS);
    for (size_t i = 0; i < count; i++)
        for (unsigned side = 0; side < 2; side++)
            close(pairs[i][side]);
}

TEST(what_it_waits_with_is_closed_at_the_shutdown)
{
    start(false);
    wait_for(&looks, 1);

    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    for (int fd = 0; fd < MOST_FDS; fd++)
        assert_int_equal(fd == event || was_open[fd], is_open(fd));
}

static bool is_readable(int fd)
{
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    return poll(&waited, 1, 0) == 1;
}

TEST(a_loop_is_told_by_the_descriptor)
{
    start(true);
    assert_int_equal(otel_poll(0), OTEL_OK);
    assert_int_equal(otel_poll(0), OTEL_OK);
    assert_false(is_readable(otel_poll_fd()));

    make_readable();

    assert_true(is_readable(otel_poll_fd()));
    const uint32_t before = fake.attended;
    assert_int_equal(otel_poll(0), OTEL_OK);
    assert_true(fake.attended > before);
}

TEST(a_loop_is_told_by_its_time)
{
    fake.descriptor_fd = -1;
    fake.attend_ms = 3600 * 1000;
    start(true);

    assert_int_equal(otel_poll(0), OTEL_OK);
    const int64_t timeout_ms = otel_poll_timeout();
    assert_true(timeout_ms > 3500 * 1000 && timeout_ms <= 3600 * 1000);
    assert_false(is_readable(otel_poll_fd()));
    fake.attend_ms = -1;
    spans(1);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    assert_non_null(strstr(fake.calls, "EFT"));
}

TEST(at_once_is_at_once_also_for_a_loop)
{
    fake.descriptor_fd = -1;
    fake.attend_ms = 0;
    start(true);
    assert_int_equal(otel_poll(0), OTEL_OK);

    assert_int_equal(otel_poll_timeout(), 0);
    assert_true(is_readable(otel_poll_fd()));
}
