/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/polled.c - see polled.h. */
#include "tests/support/polled.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

uint32_t looks;
bool was_open[MOST_FDS];

int __wrap_epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms);
int __real_epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms);

int __wrap_epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms)
{
    oteli_add_full_32(&looks, 1);
    return __real_epoll_wait(fd, events, count, timeout_ms);
}

bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

void check_descriptors(void)
{
    for (int fd = 0; fd < MOST_FDS; fd++)
        assert_int_equal(was_open[fd], is_open(fd));
}

void close_unknown(void)
{
    for (int fd = 0; fd < MOST_FDS; fd++)
        if (!was_open[fd])
            close(fd);
}

int polled_begin(void **state)
{
    looks = 0;
    for (int fd = 0; fd < MOST_FDS; fd++)
        was_open[fd] = is_open(fd);
    return faked_begin(state);
}

int polled_end(void **state)
{
    faked_end(state);
    check_descriptors();
    return 0;
}

otel_status polled_start_with_delay(int64_t delay_ms)
{
    return faked_start(1, &(otel_sdk_options){.clock = "monotonic",
                                              .threadless = true,
                                              .bsp_max_export_batch_size = 10,
                                              .bsp_schedule_delay = delay_ms});
}

void polled_start(void)
{
    assert_int_equal(polled_start_with_delay(FOREVER_MS), OTEL_OK);
}

void polled_spans(const char *name, size_t count)
{
    for (size_t i = 0; i < count; i++)
        faked_span(name);
}

void poll_once(void)
{
    assert_int_equal(otel_poll(0), OTEL_OK);
}

bool becomes_readable(int fd, int timeout_ms)
{
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    return poll(&waited, 1, timeout_ms) == 1 && (waited.revents & POLLIN) != 0;
}

bool is_readable(void)
{
    return becomes_readable(otel_poll_fd(), 0);
}
