/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/thread_timers_test.c - specification of profiling/signal/thread_timers.h:
 * what a thread blocks, for users of every kind, who has a timer, and threads that have the number
 * of another one. */
#include "profiling/signal/thread_timers.h"
#include "tests/support/unit.h"

#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { GROUPS = 3000, GROUPS_STEP = 7 };

static bool blocks_what_it_blocks(void)
{
    const pid_t self = (pid_t)syscall(SYS_gettid);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPROF);
    sigaddset(&set, SIGRTMAX);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    const bool is_seen = oteli_thread_blocks(self, SIGPROF) &&
                         oteli_thread_blocks(self, SIGRTMAX) && !oteli_thread_blocks(self, SIGURG);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    return is_seen && !oteli_thread_blocks(self, SIGPROF);
}

TEST(a_thread_blocks_what_its_mask_says)
{
    assert_true(blocks_what_it_blocks());
    assert_false(oteli_thread_blocks(0x7ffffff0, SIGPROF)); /* there is none */
}

/* The list of groups stands before the mask. From none to many, so that each part of the line of
 * the mask comes to lie where one reading ends and the next begins. */
static int with_groups(void)
{
    static gid_t groups[GROUPS];
    for (size_t count = 0; count <= GROUPS; count += GROUPS_STEP) {
        for (size_t i = 0; i < count; i++)
            groups[i] = (gid_t)(i % 3 == 0 ? 1000 + i : 100000 + i);
        if (setgroups(count, groups) != 0)
            return 0; /* only root may have others */
        if (!blocks_what_it_blocks())
            return 1;
    }
    return 0;
}

TEST(the_mask_is_found_behind_many_groups)
{
    check_child(with_groups);
}

/* --- timers --- */

/* Timers of an hour, and of a signal that does nothing, should one of them come. */
#define HOUR_NS UINT64_C(3600000000000)
enum { OURS = SIGURG, MANY = 40 };

struct sleeper {
    pthread_t thread;
    pid_t id;
    bool blocks;
    bool ends;
    sem_t is_there;
    sem_t is_asked;
};

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        continue;
}

static void *sleep_on(void *argument)
{
    struct sleeper *sleeper = argument;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, OURS);
    sleeper->id = (pid_t)syscall(SYS_gettid);
    while (!sleeper->ends) {
        pthread_sigmask(sleeper->blocks ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
        sem_post(&sleeper->is_there);
        wait_for(&sleeper->is_asked);
    }
    return NULL;
}

static void start_sleeper(struct sleeper *sleeper, bool blocks)
{
    *sleeper = (struct sleeper){.blocks = blocks};
    assert_int_equal(sem_init(&sleeper->is_there, 0, 0), 0);
    assert_int_equal(sem_init(&sleeper->is_asked, 0, 0), 0);
    assert_int_equal(pthread_create(&sleeper->thread, NULL, sleep_on, sleeper), 0);
    wait_for(&sleeper->is_there);
}

static void let_block(struct sleeper *sleeper, bool blocks)
{
    sleeper->blocks = blocks;
    sem_post(&sleeper->is_asked);
    wait_for(&sleeper->is_there);
}

/* The kernel forgets a thread after its join: until then it is in lists of threads, and blocks
 * all. */
static void end_sleeper(struct sleeper *sleeper)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/self/task/%d", (int)sleeper->id);
    sleeper->ends = true;
    sem_post(&sleeper->is_asked);
    pthread_join(sleeper->thread, NULL);
    while (access(path, F_OK) == 0)
        sched_yield();
    sleeper->id = 0;
}

static struct oteli_thread_timers timers;
static struct sleeper sleepers[MANY]; /* those that sleep have an id */

static int begin(void **state)
{
    (void)state;
    memset(sleepers, 0, sizeof sleepers);
    return oteli_thread_timers_init(&timers, HOUR_NS, OURS, 1) ? 0 : 1;
}

static int end(void **state)
{
    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        if (sleepers[i].id != 0)
            end_sleeper(&sleepers[i]);
    }
    oteli_thread_timers_fini(&timers);
    return 0;
}

static struct oteli_timed_thread *timed(const struct sleeper *sleeper)
{
    for (size_t i = 0; i < timers.count; i++)
        if (timers.threads[i].thread == sleeper->id)
            return &timers.threads[i];
    return NULL;
}

static void scan(size_t times)
{
    for (size_t i = 0; i < times; i++)
        assert_int_equal(oteli_thread_timers_scan(&timers), 0);
}

AROUND_EACH(begin, end);

/* While a thread is made it blocks all signals, and so does its maker. */
TEST(threads_that_blocked_for_a_moment_have_timers_after_the_next_scan)
{
    for (size_t i = 0; i < MANY; i++)
        start_sleeper(&sleepers[i], true);
    scan(1);
    assert_int_equal(timers.blocking, 0);
    for (size_t i = 0; i < MANY; i++) {
        assert_false(timed(&sleepers[i])->has_timer);
        let_block(&sleepers[i], false);
    }

    scan(1);

    for (size_t i = 0; i < MANY; i++)
        assert_true(timed(&sleepers[i])->has_timer);
    assert_int_equal(timers.blocking, 0);
}

TEST(threads_that_go_on_blocking_are_counted_once)
{
    for (size_t i = 0; i < 3; i++)
        start_sleeper(&sleepers[i], i != 1);
    scan(OTELI_TIMER_LOOKS);
    const uint64_t counted = timers.blocking;
    assert_in_range(counted, 2, timers.count - 1); /* a sanitizer's thread may be another one */

    scan(5 * timers.count);

    assert_int_equal(timers.blocking, counted);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(timed(&sleepers[i])->has_timer, i == 1);
}

/* Not at once: one thread's mask is looked at in each scan, and those in which it has just
 * changed. */
TEST(what_a_thread_blocks_later_is_noticed)
{
    start_sleeper(&sleepers[0], false);
    scan(1);
    assert_true(timed(&sleepers[0])->has_timer);

    let_block(&sleepers[0], true);
    for (size_t i = 0; i <= timers.count && timed(&sleepers[0])->has_timer; i++)
        scan(1);
    assert_false(timed(&sleepers[0])->has_timer);
    let_block(&sleepers[0], false);
    scan(1);
    assert_true(timed(&sleepers[0])->has_timer);

    let_block(&sleepers[0], true);
    scan(timers.count + 1 + OTELI_TIMER_LOOKS);
    assert_false(timed(&sleepers[0])->has_timer);
    let_block(&sleepers[0], false);
    scan(timers.count + 1);
    assert_true(timed(&sleepers[0])->has_timer);
}

/* --- numbers --- */

static bool is_running(timer_t timer)
{
    struct itimerspec left;
    assert_int_equal(timer_gettime(timer, &left), 0);
    return left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0;
}

/* Its timer is one of a thread that has ended: so it is where the number has come back between two
 * looks. */
TEST(a_thread_with_the_number_of_another_gets_a_timer_of_its_own)
{
    start_sleeper(&sleepers[0], false);
    start_sleeper(&sleepers[1], false);
    scan(1);
    struct oteli_timed_thread *one = timed(&sleepers[0]);
    struct oteli_timed_thread *other = timed(&sleepers[1]);
    assert_true(one->has_timer && other->has_timer);
    const timer_t of_first = one->timer;
    one->timer = other->timer;
    other->timer = of_first;
    end_sleeper(&sleepers[0]);
    while (is_running(of_first))
        sched_yield();

    scan(timers.count + 1);

    other = timed(&sleepers[1]);
    assert_true(other->has_timer);
    assert_true(is_running(other->timer));
}
