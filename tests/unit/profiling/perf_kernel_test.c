/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/perf_kernel_test.c - specification of profiling/perf/perf_source.c:
 * processors that are switched on while a program is sampled, and a program that forks while the
 * list of threads changes: the child closes the profiler's descriptors, and no other.
 *
 * The kernel is played (--wrap): which processors are on, which threads there are, and what it
 * refuses. The program forks whenever the source asks the kernel for something. */
#include "common/clock/clock.h"
#include "profiling/base/thread_list.h"
#include "profiling/perf/perf_ring.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSORS = 4, MOST = 17, FIRST = 16, A_WHILE_NS = 2000000000 };

static const struct oteli_source_options options = {.period_ns = 1000000, .ring_bytes = 1 << 16};

static unsigned online;             /* so many processors, from 0 on */
static int refused;                 /* a ring on this one */
static unsigned events[PROCESSORS]; /* for threads */
static pid_t threads;
static int victim = -1;         /* -1: nobody forks */
static void *forgotten_at_fork; /* the source; NULL: it does not fork yet */
static unsigned forks;
static unsigned wrong;

void __wrap_oteli_perf_online(char text[OTELI_PERF_ONLINE_BYTES]);
int __wrap_oteli_perf_open_silent(int cpu);
int __wrap_oteli_perf_open(const struct oteli_source_options *given, pid_t thread, int cpu);
int __wrap_oteli_perf_ring_map(struct oteli_perf_ring *ring, int event, uint64_t bytes);
void __wrap_oteli_perf_ring_read(const struct oteli_perf_ring *ring,
                                 struct oteli_perf_reader *reader);
int __wrap_oteli_thread_list_read(struct oteli_thread_list *list);
int __wrap_ioctl(int fd, unsigned long request, ...);

static void fork_here(void)
{
    int status = -1;
    if (forgotten_at_fork == NULL)
        return;
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        oteli_perf_source.forget(forgotten_at_fork);
        _exit(fcntl(victim, F_GETFD) < 0 || fcntl(STDIN_FILENO, F_GETFD) < 0);
    }
    forks++;
    wrong += child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

void __wrap_oteli_perf_online(char text[OTELI_PERF_ONLINE_BYTES])
{
    snprintf(text, OTELI_PERF_ONLINE_BYTES, online > 2 ? "0,1-%u\n" : "0-%u\n", online - 1);
}

static int open_any(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int __wrap_oteli_perf_open_silent(int cpu)
{
    fork_here();
    return cpu == refused ? -EMFILE : open_any();
}

int __wrap_oteli_perf_open(const struct oteli_source_options *given, pid_t thread, int cpu)
{
    (void)given;
    fork_here();
    assert_true(thread >= 1 && thread <= threads);
    events[cpu]++;
    return open_any();
}

int __wrap_oteli_perf_ring_map(struct oteli_perf_ring *ring, int event, uint64_t bytes)
{
    *ring = (struct oteli_perf_ring){.event = event, .size = bytes};
    return 0;
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
        list->ids = malloc(MOST * sizeof *list->ids);
    assert_non_null(list->ids);
    for (pid_t i = 0; i < threads; i++)
        list->ids[i] = i + 1;
    list->count = list->room = (size_t)threads;
    return 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
    (void)fd;
    (void)request;
    fork_here();
    return 0;
}

static void take(void *state, const struct oteli_sample *sample)
{
    (void)state;
    (void)sample;
}

static void drain(const struct oteli_source *of, void *source)
{
    struct oteli_source_counts counts;
    oteli_fake_clock.monotonic_ns += A_WHILE_NS;
    of->drain(source, take, NULL, &counts);
}

/* Where one is refused, the others have theirs. */
TEST(threads_get_events_on_processors_that_come)
{
    static const struct {
        int refused;
        unsigned online[3];
        unsigned events[PROCESSORS];
    } table[] = {{-1, {1, 3, 3}, {3, 3, 3, 0}}, {2, {1, 3, 4}, {3, 3, 0, 3}}};
    for (size_t i = 0; i < 2; i++) {
        void *source = NULL;
        oteli_leaks_begin();
        (void)oteli_clock_start("fake");
        memset(events, 0, sizeof events);
        threads = 3;
        refused = table[i].refused;
        online = table[i].online[0];
        assert_int_equal(oteli_perf_source.start(&options, &source), 0);
        for (size_t k = 1; k < 3; k++) {
            online = table[i].online[k];
            drain(&oteli_perf_source, source);
        }
        assert_memory_equal(events, table[i].events, sizeof events);
        oteli_perf_source.stop(source);
        oteli_leaks_check();
    }
}

TEST(a_child_closes_no_descriptor_but_the_profilers)
{
    void *source = NULL;
    (void)oteli_clock_start("fake");
    victim = open_any();
    assert_true(victim >= 0);
    assert_int_equal(dup2(victim, STDIN_FILENO), STDIN_FILENO);
    threads = FIRST;
    refused = -1;
    online = 1;
    assert_int_equal(oteli_perf_source.start(&options, &source), 0);
    forgotten_at_fork = source;

    threads = MOST;
    online = 2;
    drain(&oteli_perf_source, source);
    assert_true(forks >= 3);
    assert_int_equal(wrong, 0);

    forgotten_at_fork = NULL;
    oteli_perf_source.stop(source);
    close(victim);
    victim = -1;
}
