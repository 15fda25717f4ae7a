/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/perf_hotplug_test.c - specification of profiling/perf_source.c: processors that are switched
 * on while a program is sampled. The kernel is played (--wrap): which processors are on, which threads
 * there are, and what it refuses. */
#include "common/clock.h"
#include "profiling/perf_source.h"
#include "profiling/processors.h"
#include "profiling/thread_list.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { PROCESSORS = 4, THREADS = 3, A_WHILE_NS = 2000000000 };

static unsigned online;  /* so many processors, from 0 on */
static int refused = -1; /* a ring on this one */
static unsigned events[PROCESSORS];

void __wrap_oteli_processors_online(struct oteli_processors *processors);
int __wrap_oteli_perf_open_silent(int cpu);
int __wrap_oteli_perf_ring_map(struct oteli_perf_ring *ring, int event, uint64_t bytes);
int __wrap_oteli_perf_open(const struct oteli_source_options *options, pid_t thread, int cpu,
                           bool is_inherited);
void __wrap_oteli_perf_ring_read(const struct oteli_perf_ring *ring,
                                 struct oteli_perf_reader *reader);
int __wrap_oteli_thread_list_read(struct oteli_thread_list *list);
int __wrap_ioctl(int fd, unsigned long request, ...);

void __wrap_oteli_processors_online(struct oteli_processors *processors)
{
    *processors = (struct oteli_processors){{0}};
    for (unsigned i = 0; i < online; i++)
        oteli_processors_add(processors, i);
}

static int open_any(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int __wrap_oteli_perf_open_silent(int cpu)
{
    return cpu == refused ? -EMFILE : open_any();
}

int __wrap_oteli_perf_ring_map(struct oteli_perf_ring *ring, int event, uint64_t bytes)
{
    *ring = (struct oteli_perf_ring){.event = event, .size = bytes};
    return 0;
}

int __wrap_oteli_perf_open(const struct oteli_source_options *options, pid_t thread, int cpu,
                           bool is_inherited)
{
    (void)options;
    assert_true(is_inherited && thread >= 1 && thread <= THREADS);
    events[cpu]++;
    return open_any();
}

void __wrap_oteli_perf_ring_read(const struct oteli_perf_ring *ring,
                                 struct oteli_perf_reader *reader)
{
    (void)ring;
    (void)reader;
}

int __wrap_oteli_thread_list_read(struct oteli_thread_list *list)
{
    if (list->ids == NULL)
        list->ids = malloc(THREADS * sizeof *list->ids);
    assert_non_null(list->ids);
    for (pid_t i = 0; i < THREADS; i++)
        list->ids[i] = i + 1;
    list->count = list->room = THREADS;
    return 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
    (void)fd;
    (void)request;
    return 0;
}

static void take(void *state, const struct oteli_sample *sample)
{
    (void)state;
    (void)sample;
}

static void *start(void)
{
    static const struct oteli_source_options options = {.period_ns = 1000000,
                                                        .ring_bytes = 1 << 16};
    void *source = NULL;
    oteli_leaks_begin();
    (void)oteli_clock_start("fake");
    memset(events, 0, sizeof events);
    assert_int_equal(oteli_perf_source.start(&options, &source), 0);
    return source;
}

static void drain_later(void *source)
{
    struct oteli_source_counts counts;
    oteli_fake_clock.monotonic_ns += A_WHILE_NS;
    oteli_perf_source.drain(source, take, NULL, &counts);
}

static void stop(void *source)
{
    oteli_perf_source.stop(source);
    oteli_leaks_check();
}

TEST(threads_get_events_on_processors_that_come)
{
    online = 1;
    refused = -1;
    void *source = start();
    online = 3;
    drain_later(source);
    drain_later(source);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(events[i], THREADS);
    stop(source);
}

TEST(one_that_is_refused_does_not_cost_those_that_are_not)
{
    online = 1;
    refused = 2;
    void *source = start();
    online = 3;
    drain_later(source);
    assert_int_equal(events[1], THREADS);
    online = 4;
    drain_later(source);
    assert_int_equal(events[2], 0);
    assert_int_equal(events[3], THREADS);
    stop(source);
}
