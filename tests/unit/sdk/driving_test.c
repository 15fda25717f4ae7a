/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/driving_test.c - specification of sdk/pipeline/event_loop_fds.c: a program may
 * close descriptors that are not its own, and open others of the same number; and of
 * sdk/worker/on_idle.c with a real thread, and with otel_poll: an exporter is called when its
 * descriptor is readable, and a flush meanwhile does not wait for it. */
#include "common/clock/clock.h"
#include "sdk/engine/engine.h"
#include "sdk/lifecycle/lifecycle.h"

#include "tests/support/leaks.h"
#include "tests/support/polled.h"
#include "tests/support/unit.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

AROUND_EACH(polled_begin, polled_end);

TEST(no_descriptor_takes_the_place_of_a_standard_one)
{
    const int kept = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, MOST_FDS);
    assert_int_equal(close(STDIN_FILENO), 0);
    polled_start();
    assert_false(is_open(STDIN_FILENO));
    assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(close(kept), 0);
}

TEST(what_was_closed_is_made_anew)
{
    assert_int_equal(polled_start_with_delay(1), OTEL_OK);
    poll_once();

    close_unknown();
    looks = 0;
    assert_int_equal(otel_poll(2), OTEL_OK);

    assert_true(looks <= 3);
    polled_spans("a", 1);
    assert_true(is_readable());
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    close_unknown();
    polled_spans("b", 3); /* nor are spans forgotten that ended meanwhile */
    while (fake->batches == 1)
        assert_int_equal(otel_poll(1), OTEL_OK);
    assert_string_equal(fake->text, "a|b b b|");
}

/* The numbers are the program's now. */
TEST(what_has_their_numbers_now_is_left_alone)
{
    int files[2][2];
    char text[8];
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 42};
    polled_start();
    close_unknown();
    const int program = epoll_create1(EPOLL_CLOEXEC);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pipe2(files[i], O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(epoll_ctl(program, EPOLL_CTL_ADD, files[i][0], &event), 0);
        assert_int_equal(write(files[i][1], "mine", 4), 4);
    }

    poll_once();
    polled_spans("a", 3);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    oteli_lifecycle_reset();

    assert_string_equal(fake->text, "a a a|");
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(epoll_wait(program, &event, 1, 0), 1);
        assert_int_equal(event.data.u64, 42);
        assert_int_equal(read(files[i][0], text, sizeof text), 4);
        assert_int_equal(close(files[i][0]), 0);
        assert_int_equal(close(files[i][1]), 0);
    }
    assert_int_equal(close(program), 0);
}

/* The others go as well in the end, or are used on; but for the first, if the two that are in it
 * are gone: it is known by nothing else. */
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
    polled_spans("a", 1);
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
    const int theirs = dup(STDERR_FILENO); /* so that ours is not EPOLL_CTL_MOD */
    was_open[theirs] = true;
    for (unsigned mask = 0; mask <= ALL; mask++) {
        int ours[4];
        unsigned count = 0;
        polled_start();
        for (int fd = 0; fd < MOST_FDS && count < 4; fd++)
            if (!was_open[fd] && is_open(fd))
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
        check_descriptors();
    }
    was_open[theirs] = false;
    assert_int_equal(close(theirs), 0);
}

TEST(the_timer_is_known_and_goes_off_at_its_time)
{
    struct oteli_event_fds event_fds[2] = {{.epoll_fd = 0}};
    struct itimerspec left;
    assert_true(oteli_event_fds_open(&event_fds[0]) && oteli_event_fds_open(&event_fds[1]));
    const uint64_t then_ns = oteli_monotonic_ns() / NS_PER_S * NS_PER_S + 100 * NS_PER_S - 1;
    oteli_event_fds_set_timer(&event_fds[0], then_ns);
    const uint64_t before_ns = oteli_monotonic_ns();
    assert_int_equal(timerfd_gettime(event_fds[0].timer_fd, &left), 0);
    const uint64_t left_ns =
        (uint64_t)left.it_value.tv_sec * NS_PER_S + (uint64_t)left.it_value.tv_nsec;
    assert_in_range(then_ns - left_ns, before_ns, oteli_monotonic_ns());

    assert_true(oteli_event_fds_is_whole(&event_fds[0]));
    assert_int_equal(dup2(event_fds[1].timer_fd, event_fds[0].timer_fd), event_fds[0].timer_fd);
    assert_false(oteli_event_fds_is_whole(&event_fds[0])); /* that timer is the other's */
    assert_int_equal(close(event_fds[0].timer_fd), 0);
    oteli_event_fds_close(&event_fds[0]);
    oteli_event_fds_close(&event_fds[1]);
}

TEST(a_loop_keeps_the_descriptor_that_it_knows)
{
    for (int behind = 1; behind <= 3; behind++) { /* the timer, and the sockets */
        polled_start();
        const int known = otel_poll_fd();
        assert_int_equal(close(known + behind), 0);
        assert_int_equal(otel_poll(2), OTEL_OK);
        assert_int_equal(otel_poll_fd(), known);
        polled_spans("a", 1);
        assert_true(is_readable());
        assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
        oteli_lifecycle_reset();
    }
    assert_string_equal(fake->text, "a|a|a|");
}

TEST(also_when_only_the_shutdown_comes_after)
{
    int file[2];
    polled_start();
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
    fake->pending = 2;
    polled_start();
    close_unknown();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    allow_descriptors(3);

    looks = 0;
    assert_int_equal(otel_poll(12), OTEL_OK);
    const uint32_t seen = looks;
    polled_spans("a", 3);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    allow_descriptors(before.rlim_cur);

    assert_true(seen <= 5);
    assert_string_equal(fake->text, "a a a|");
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
        fake->frees = 0;
        allow_descriptors((rlim_t)lowest + (rlim_t)spare);
        const otel_status status = polled_start_with_delay(FOREVER_MS);
        allow_descriptors(before.rlim_cur);
        assert_int_equal(status, OTEL_ERROR_SYSTEM);
        assert_int_equal(fake->frees, 1);
    }
}

/* ---- exporters that are attended to
 * ------------------------------------------------------------ */

static int event = -1;

static int attended_begin(void **state)
{
    polled_begin(state);
    event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    fake->attends = true;
    fake->attend_ms = FOREVER_MS;
    fake->has_descriptor = true;
    fake->descriptor_fd = event;
    fake->descriptor_timeout_ms = -1;
    return 0;
}

static int attended_end(void **state)
{
    faked_end(state);
    close(event);
    check_descriptors();
    return 0;
}

#define ATTENDED(name) TEST_WITH(attended_begin, attended_end, name)

static void start_attended(bool threadless)
{
    assert_int_equal(faked_start(1, &(otel_sdk_options){.clock = "monotonic",
                                                        .threadless = threadless,
                                                        .bsp_max_export_batch_size = 10}),
                     OTEL_OK);
}

static void wait_for(const uint32_t *counter, uint32_t least)
{
    while (oteli_load_acquire_32(counter) < least)
        sched_yield();
}

ATTENDED(the_worker_comes_when_the_descriptor_is_readable)
{
    start_attended(false);
    wait_for(&looks, 1);

    const uint32_t before = oteli_load_acquire_32(&fake->attended);
    assert_int_equal(eventfd_write(event, 1), 0);

    wait_for(&fake->attended, before + 1);
}

ATTENDED(whole_batches_wake_it_as_always)
{
    start_attended(false);
    for (uint64_t batches = 1; batches <= 100; batches++) {
        wait_for(&looks, 1);
        oteli_store_release_32(&looks, 0);
        polled_spans("a", 20);
        while (faked_stats(0).delivered < batches * 10)
            sched_yield();
    }
}

ATTENDED(one_that_waits_for_nothing_sleeps_on_the_futex_again)
{
    fake->attend_ms = -1;
    start_attended(false);
    wait_for(&fake->attended, 1);

    for (unsigned i = 0; i < 20; i++) {
        polled_spans("a", 1);
        assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    }

    assert_int_equal(oteli_load_acquire_32(&looks), 0);
}

/* R47: a program closes all descriptors that it does not know, and opens its own. */
ATTENDED(what_is_opened_in_the_place_of_our_descriptors_is_left_alone)
{
    start_attended(false);
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
        polled_spans("a", 2);
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

ATTENDED(a_loop_is_told_by_the_descriptor)
{
    start_attended(true);
    poll_once();
    poll_once();
    assert_false(is_readable());

    assert_int_equal(eventfd_write(event, 1), 0);

    assert_true(is_readable());
    const uint32_t before = fake->attended;
    poll_once();
    assert_true(fake->attended > before);

    fake->descriptor_timeout_ms = 0;
    poll_once();
    assert_int_equal(otel_poll_timeout(), 0);
}

ATTENDED(a_loop_is_told_by_its_time)
{
    fake->descriptor_fd = -1;
    fake->attend_ms = 3600 * 1000;
    start_attended(true);

    poll_once();
    const int64_t timeout_ms = otel_poll_timeout();
    assert_true(timeout_ms > 3500 * 1000 && timeout_ms <= 3600 * 1000);
    assert_false(is_readable());
    fake->attend_ms = -1;
    polled_spans("a", 1);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    assert_non_null(strstr(fake->calls, "EFT"));
}

ATTENDED(at_once_is_at_once_also_for_a_loop)
{
    fake->descriptor_fd = -1;
    fake->attend_ms = 0;
    start_attended(true);
    poll_once();

    assert_int_equal(otel_poll_timeout(), 0);
    assert_true(is_readable());
}
