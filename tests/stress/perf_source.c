/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/perf_source.c - samples from perf events, by rings of processors: all threads are
 * sampled but the one that samples, those that were there and those that came later; it starts
 * again; a forked child has nothing of it; and no descriptor stays.
 *
 * Where the kernel refuses, what is checked is that the refusal is said and nothing stays. */
#include "common/base/atomic.h"
#include "profiling/base/sample.h"
#include "profiling/base/thread_list.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

enum { BURNERS = 3, ENOUGH = 20, PERIOD_NS = 200000, NOBODY = 65534 };

static const struct oteli_source_options usual = {
    .period_ns = PERIOD_NS, .ring_bytes = 64 * 1024, .stack_bytes = 1024};

static unsigned descriptors(void)
{
    unsigned count = 0;
    DIR *directory = opendir("/proc/self/fd");
    STRESS_CHECK(directory != NULL);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

/* --- threads that are sampled --- */

static uint32_t is_over;            /* atomic */
static uint32_t thread_of[BURNERS]; /* atomic; 0: not there yet */

static __attribute__((noinline)) uint32_t burn(uint32_t value)
{
    for (unsigned i = 0; i < 100000; i++)
        value = value * 1664525 + 1013904223;
    return value;
}

static void *burn_on(void *argument)
{
    uint32_t *at = argument;
    uint32_t value = 1;
    oteli_store_release_32(at, (uint32_t)process_this_thread());
    while (oteli_load_acquire_32(&is_over) == 0)
        value = burn(value);
    return (void *)(uintptr_t)value; /* NOLINT(performance-no-int-to-ptr) */
}

static void start_burner(pthread_t *thread, unsigned i)
{
    STRESS_CHECK(pthread_create(thread, NULL, burn_on, &thread_of[i]) == 0);
    stress_wait(&thread_of[i], 1);
}

/* --- what is sampled --- */

struct seen {
    pid_t sampler;
    uint64_t start_ns;
    uint64_t samples[BURNERS];
    uint64_t in_burn;
    uint64_t with_stack;
    uint64_t all;
};

static void take(void *state, const struct oteli_sample *sample)
{
    struct seen *seen = state;
    const uint64_t leaf = sample->frames[0] - (uint64_t)(uintptr_t)burn;
    STRESS_CHECK(sample->thread != seen->sampler);
    STRESS_CHECK(sample->time_ns >= seen->start_ns && sample->time_ns <= process_now_ns());
    STRESS_CHECK(sample->depth != 0 && sample->depth <= OTELI_FRAMES_MAX);
    STRESS_CHECK(sample->periods == 1 && !sample->has_context);
    seen->all++;
    seen->in_burn += leaf < 4096;
    seen->with_stack += sample->stack_size != 0;
    for (unsigned i = 0; i < BURNERS; i++)
        seen->samples[i] += sample->thread == (pid_t)oteli_load_acquire_32(&thread_of[i]);
}

static uint64_t fewest(const struct seen *seen, unsigned count)
{
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < count; i++)
        least = seen->samples[i] < least ? seen->samples[i] : least;
    return least;
}

/* Until each of the first so many threads has been seen often. */
static void sample_until_seen(const struct oteli_source *source, void *state, struct seen *seen,
                              unsigned count)
{
    struct oteli_source_counts counts;
    memset(seen->samples, 0, sizeof seen->samples);
    while (fewest(seen, count) < ENOUGH) {
        stress_sleep_us(5000);
        source->drain(state, take, seen, &counts);
    }
}

struct running {
    const struct oteli_source *source;
    void *state;
    unsigned descriptors; /* before it was started */
};

static int forget(void *argument)
{
    const struct running *running = argument;
    running->source->forget(running->state);
    return descriptors() != running->descriptors;
}

/* --- scenes; on the thread that samples --- */

/* One thread is there before, two come later; then all again from a new start. */
static void check_threads(const struct oteli_source *source)
{
    pthread_t threads[BURNERS];
    const unsigned before = descriptors();
    memset(thread_of, 0, sizeof thread_of);
    oteli_store_release_32(&is_over, 0);
    start_burner(&threads[0], 0);
    struct seen seen = {.sampler = process_this_thread(), .start_ns = process_now_ns()};
    void *state;
    STRESS_CHECK(source->start(&usual, &state) == 0);
    sample_until_seen(source, state, &seen, 1);
    /* Of a thread that is not sampled, so they inherit nothing; the rings of threads look again. */
    source->stop(state);
    STRESS_CHECK(descriptors() == before);
    for (unsigned i = 1; i < BURNERS; i++)
        start_burner(&threads[i], i);
    STRESS_CHECK(source->start(&usual, &state) == 0);
    sample_until_seen(source, state, &seen, BURNERS);
    STRESS_CHECK(stress_in_child(forget, &(struct running){source, state, before}) == 0);
    sample_until_seen(source, state, &seen, BURNERS);
    source->stop(state);
    STRESS_CHECK(descriptors() == before);
    oteli_store_release_32(&is_over, 1);
    stress_join(threads, BURNERS);
    printf("  %llu samples, %llu in the function, %llu with bytes of the stack\n",
           (unsigned long long)seen.all, (unsigned long long)seen.in_burn,
           (unsigned long long)seen.with_stack);
    STRESS_CHECK(2 * seen.in_burn > seen.all && 2 * seen.with_stack > seen.all);
}

/* --- threads that are created while it starts --- */

enum { CROWD = 6, CROWD_SAMPLES = 100 };

struct member {
    pthread_t thread;
    uint32_t id; /* atomic; 0: not there yet */
    clockid_t clock;
    uint64_t before_ns;
    uint64_t samples;
};

static struct member crowd[CROWD];

static void start_member(uint32_t i)
{
    STRESS_CHECK(pthread_create(&crowd[i].thread, NULL, burn_on, &crowd[i].id) == 0);
    stress_wait(&crowd[i].id, 1);
    STRESS_CHECK(pthread_getcpuclockid(crowd[i].thread, &crowd[i].clock) == 0);
}

static uint32_t wanted;  /* atomic: how many members there should be */
static uint32_t created; /* atomic */
static uint32_t looks;   /* of a start with a crowd; 0: of another one */

static void *create_crowd(void *argument)
{
    (void)argument;
    while (oteli_load_acquire_32(&is_over) == 0) {
        const uint32_t count = oteli_load_relaxed_32(&created);
        if (count < oteli_load_acquire_32(&wanted)) {
            start_member(count);
            oteli_store_release_32(&created, count + 1);
        }
        stress_sleep_us(100);
    }
    return NULL;
}

static void have_created(uint32_t count)
{
    oteli_store_release_32(&wanted, count);
    stress_wait(&created, count);
}

int __real_oteli_thread_list_read(struct oteli_thread_list *list);
int __wrap_oteli_thread_list_read(struct oteli_thread_list *list);

/* The source looks which threads there are. After the first look, when it has no events yet, more
 * are created, which inherit nothing; and before the second one, of which it is told as well,
 * others that have inherited all. */
int __wrap_oteli_thread_list_read(struct oteli_thread_list *list)
{
    const uint32_t look = looks == 0 ? 0 : looks++;
    if (look == 2)
        have_created(2 * CROWD / 3);
    const int result = __real_oteli_thread_list_read(list);
    if (look == 1)
        have_created(CROWD / 3);
    return result;
}

static void take_of_crowd(void *state, const struct oteli_sample *sample)
{
    (void)state;
    for (unsigned i = 0; i < CROWD; i++)
        crowd[i].samples += sample->thread == (pid_t)oteli_load_acquire_32(&crowd[i].id);
}

static uint64_t cpu_ns(clockid_t clock)
{
    struct timespec time;
    STRESS_CHECK(clock_gettime(clock, &time) == 0);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static bool crowd_has(uint64_t samples)
{
    for (unsigned i = 0; i < CROWD; i++) {
        if (crowd[i].samples < samples)
            return false;
    }
    return true;
}

/* What was sampled of each is what its clock says: it was neither missed nor counted twice, on no
 * processor. */
static void check_crowd(const struct oteli_source *source)
{
    pthread_t creator;
    struct oteli_source_counts counts = {0};
    void *state;
    memset(crowd, 0, sizeof crowd);
    created = 0;
    wanted = 0;
    looks = 1;
    oteli_store_release_32(&is_over, 0);
    STRESS_CHECK(pthread_create(&creator, NULL, create_crowd, NULL) == 0);
    STRESS_CHECK(source->start(&usual, &state) == 0);
    looks = 0;
    have_created(CROWD);
    source->drain(state, take_of_crowd, NULL, &counts); /* all are known by now */
    while (!crowd_has(CROWD_SAMPLES / 10)) {
        stress_sleep_us(5000);
        source->drain(state, take_of_crowd, NULL, &counts); /* and all doubt is settled */
    }
    const uint64_t lost = counts.lost;
    for (unsigned i = 0; i < CROWD; i++) {
        crowd[i].samples = 0;
        crowd[i].before_ns = cpu_ns(crowd[i].clock);
    }
    while (!crowd_has(CROWD_SAMPLES)) {
        stress_sleep_us(2000);
        source->drain(state, take_of_crowd, NULL, &counts);
    }
    uint64_t sampled_ns = 0;
    uint64_t all_spent_ns = 0;
    for (unsigned i = 0; i < CROWD && counts.lost == lost; i++) {
        const uint64_t spent_ns = cpu_ns(crowd[i].clock) - crowd[i].before_ns;
        STRESS_CHECK(crowd[i].samples * PERIOD_NS * 10 < spent_ns * 14); /* none is sampled twice */
        sampled_ns += crowd[i].samples * PERIOD_NS;
        all_spent_ns += spent_ns;
    }
    /* The kernel throttles events of single threads on a busy machine, and counts no loss. */
    STRESS_CHECK(sampled_ns * 10 >= all_spent_ns * 6);
    oteli_store_release_32(&is_over, 1);
    pthread_join(creator, NULL);
    for (unsigned i = 0; i < CROWD; i++)
        pthread_join(crowd[i].thread, NULL);
    source->stop(state);
}

/* Too few descriptors for us: that is said, and none is gone. */
static void check_few_descriptors(const struct oteli_source *source)
{
    struct rlimit limit;
    const unsigned before = descriptors();
    void *state;
    STRESS_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const rlim_t usual_limit = limit.rlim_cur;
    limit.rlim_cur = 3;
    STRESS_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    const int result = source->start(&usual, &state);
    limit.rlim_cur = usual_limit;
    STRESS_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    STRESS_CHECK(result == EMFILE);
    STRESS_CHECK(descriptors() == before);
}

static bool is_refused(const struct oteli_source *source)
{
    const unsigned before = descriptors();
    void *state;
    const int result = source->start(&usual, &state);
    if (result == 0)
        source->stop(state);
    else
        printf("  the kernel refuses perf events here: %s\n", strerror(result));
    STRESS_CHECK(descriptors() == before);
    return result != 0;
}

static void *sample(void *argument)
{
    const struct oteli_source *source = argument;
    if (is_refused(source))
        return NULL;
    check_threads(source);
    check_crowd(source);
    check_few_descriptors(source);
    return NULL;
}

static void run(const struct oteli_source *source, const char *name)
{
    pthread_t thread;
    printf("%s, uid %u\n", name, (unsigned)getuid());
    fflush(stdout);
    STRESS_CHECK(pthread_create(&thread, NULL, sample, (void *)(uintptr_t)source) == 0);
    pthread_join(thread, NULL);
}

static int run_times(void *times)
{
    for (unsigned i = 0; i < *(const unsigned *)times; i++)
        run(&oteli_perf_source, "rings of processors");
    return 0;
}

static int run_as_nobody(void *times)
{
    STRESS_CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    return run_times(times);
}

static int may_have_time_namespaces(void *unused)
{
    (void)unused;
    return unshare(CLONE_NEWTIME) == 0;
}

/* In a time namespace, as containers have them that were moved to another machine. The one that
 * makes it is not in it, but its children are. */
static int run_at_another_time(void *offset)
{
    unsigned once = 1;
    void *state;
    printf("in a time namespace, %s", (const char *)offset);
    STRESS_CHECK(unshare(CLONE_NEWTIME) == 0);
    const int file = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    STRESS_CHECK(file >= 0 && write(file, offset, strlen(offset)) == (ssize_t)strlen(offset));
    close(file);
    STRESS_CHECK(oteli_perf_source.start(&usual, &state) != 0); /* which time is it here? */
    return stress_in_child(run_times, &once);
}

int main(int argc, char **argv)
{
    static char *const offsets[] = {"monotonic 100000 1\n", "monotonic -1000 999999999\n"};
    unsigned times = stress_scale(argc, argv, 50);
    (void)run_times(&times);
    if (getuid() != 0)
        return 0;
    if (stress_in_child(may_have_time_namespaces, NULL) == 0)
        printf("no time namespaces are to be had here\n"); /* nor for root in many a container */
    else
        for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
            STRESS_CHECK(stress_in_child(run_at_another_time, offsets[i]) == 0);
    STRESS_CHECK(stress_in_child(run_as_nobody, &times) == 0);
    return 0;
}
