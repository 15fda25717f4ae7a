/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/perf_threads_fork_test.c - specification of profiling/perf_threads.c: a program that forks
 * while the list of threads changes. The child closes the profiler's descriptors, and no other.
 *
 * The kernel is played (--wrap), and memory that the source gives back (it is compiled with other names
 * of free and realloc) is full of the number of a descriptor that is not the profiler's. */
#include "profiling/perf_source.h"
#include "profiling/thread_list.h"
#include "tests/support/unit.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 17, FIRST = 16, PIPE_ENDS = 2, KEPT = 16 };

static int pipes[THREADS + 1][PIPE_ENDS]; /* an event is the end that is read */
static pid_t threads;
static void *source;
static int victim = -1;
static void *kept[KEPT]; /* memory that was given back, once */
static size_t kept_count;
static unsigned forks;
static unsigned wrong;

int __wrap_oteli_perf_open(const struct oteli_source_options *options, pid_t thread, int cpu,
                           bool is_inherited);
int __wrap_oteli_perf_ring_map(struct oteli_perf_ring *ring, int event, uint64_t bytes);
void __wrap_oteli_perf_ring_read(const struct oteli_perf_ring *ring,
                                 struct oteli_perf_reader *reader);
void __wrap_oteli_perf_ring_close(struct oteli_perf_ring *ring);
int __wrap_oteli_thread_list_read(struct oteli_thread_list *list);
void changed_free(void *memory);
void *changed_realloc(void *memory, size_t size);

static void fork_here(void)
{
    int status = -1;
    if (source == NULL)
        return;
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        oteli_perf_thread_source.forget(source);
        _exit(fcntl(victim, F_GETFD) < 0);
    }
    forks++;
    wrong += child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

/* It is kept, and never given to anybody else. */
static void spoil(void *memory)
{
    int *const words = memory;
    if (memory == NULL)
        return;
    for (size_t i = 0; i < kept_count; i++)
        assert_ptr_not_equal(kept[i], memory);
    assert_true(kept_count < KEPT);
    kept[kept_count++] = memory;
    for (size_t i = 0; i < malloc_usable_size(memory) / sizeof *words; i++)
        words[i] = victim;
}

void changed_free(void *memory)
{
    spoil(memory);
    fork_here();
}

void *changed_realloc(void *memory, size_t size)
{
    const size_t before = memory != NULL ? malloc_usable_size(memory) : 0;
    void *moved = malloc(size);
    assert_non_null(moved);
    memcpy(moved, memory, before < size ? before : size);
    spoil(memory);
    fork_here();
    return moved;
}

int __wrap_oteli_perf_open(const struct oteli_source_options *options, pid_t thread, int cpu,
                           bool is_inherited)
{
    (void)options;
    assert_true(cpu == OTELI_PERF_ANY_CPU && !is_inherited);
    assert_int_equal(pipe2(pipes[thread], O_CLOEXEC), 0);
    return pipes[thread][0];
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

/* Its number is at once somebody else's. */
void __wrap_oteli_perf_ring_close(struct oteli_perf_ring *ring)
{
    const int before = victim;
    victim = ring->event;
    assert_int_equal(dup2(before, victim), victim);
    fork_here();
    close(victim);
    victim = before;
    ring->event = -1;
}

int __wrap_oteli_thread_list_read(struct oteli_thread_list *list)
{
    if (list->ids == NULL)
        list->ids = malloc(THREADS * sizeof *list->ids);
    assert_non_null(list->ids);
    for (pid_t i = 0; i < threads; i++)
        list->ids[i] = i + 1;
    list->count = list->room = (size_t)threads;
    return 0;
}

static void take(void *state, const struct oteli_sample *sample)
{
    (void)state;
    (void)sample;
}

static void drain(void)
{
    struct oteli_source_counts counts;
    oteli_perf_thread_source.drain(source, take, NULL, &counts);
}

TEST(a_child_closes_no_descriptor_but_the_profilers)
{
    static const struct oteli_source_options options = {.period_ns = 1000000,
                                                        .ring_bytes = 1 << 16};
    void *started = NULL;
    victim = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(victim >= 0);
    threads = FIRST;
    assert_int_equal(oteli_perf_thread_source.start(&options, &started), 0);
    source = started;

    threads = THREADS; /* there is no room for so many */
    drain();
    assert_int_equal(forks, 1);
    assert_int_equal(wrong, 0);

    close(pipes[3][1]); /* one hangs up */
    drain();
    assert_int_equal(forks, 2);
    assert_int_equal(wrong, 0);

    source = NULL;
    oteli_perf_thread_source.stop(started);
    close(victim);
}
