/* SPDX-License-Identifier: Apache-2.0 */
/* Threads end while the process exits: what the TLS library frees for a thread, and what it frees
 * at exit, never at the same time. Each case is a process of its own, in which a key and an exit
 * handler stand for those of the TLS library. */
#include "exporters/otlp/transport/tls_exit_guard.h"

#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LONG_ENOUGH = 200 }; /* pauses, in which other threads would come if they did not wait */

static pthread_key_t their_key;
static pthread_t thread;
static atomic_bool has_returned;
static atomic_bool is_freeing_for_thread;
static atomic_bool is_cleaning_up;
static atomic_bool have_met;
static atomic_bool waits_for_exit;

/* The door's pauses: there is one only where somebody is inside. How many of them are enough is not
 * looked at here, so each one lasts until somebody has been let run for as long as he wants. */
static bool has_to_wait_for_nobody;

int __real_nanosleep(const struct timespec *wanted, struct timespec *left);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    if (has_to_wait_for_nobody)
        _exit(3);
    while (atomic_load(&is_freeing_for_thread) || atomic_load(&is_cleaning_up))
        sched_yield();
    return __real_nanosleep(wanted, left);
}

static void let_others_run_until(const atomic_bool *word)
{
    const struct timespec pause = {0, 20 * 1000};
    for (int i = 0; i < LONG_ENOUGH && !atomic_load(word); i++)
        __real_nanosleep(&pause, NULL);
}

static void free_for_thread(void *unused)
{
    (void)unused;
    atomic_store(&is_freeing_for_thread, true);
    atomic_store(&has_returned, true);
    let_others_run_until(&is_cleaning_up);
    if (atomic_load(&is_cleaning_up))
        atomic_store(&have_met, true);
    atomic_store(&is_freeing_for_thread, false);
}

static void clean_up(void)
{
    atomic_store(&is_cleaning_up, true);
    let_others_run_until(&is_freeing_for_thread);
    if (atomic_load(&is_freeing_for_thread))
        atomic_store(&have_met, true);
    atomic_store(&is_cleaning_up, false);
}

/* The first handler at exit, and the last. */
static void wait_for_thread_to_return(void)
{
    while (!atomic_load(&waits_for_exit) && !atomic_load(&has_returned))
        sched_yield();
}

static void report(void)
{
    pthread_join(thread, NULL);
    _exit(atomic_load(&have_met) ? 1 : 0);
}

static void *use_tls(void *unused)
{
    const bool has_entered = oteli_tls_enter(true);
    if (has_entered)
        oteli_tls_leave(true);
    pthread_setspecific(their_key, &their_key);
    while (atomic_load(&waits_for_exit) && !oteli_tls_is_over())
        sched_yield();
    return unused;
}

static _Noreturn void end_in_child(bool theirs_comes_first, bool after_closing)
{
    atomic_store(&waits_for_exit, after_closing);
    atexit(report);
    oteli_tls_prepare_exit();
    atexit(clean_up);
    oteli_tls_watch_exit();
    atexit(wait_for_thread_to_return);
    if (theirs_comes_first)
        pthread_key_create(&their_key, free_for_thread);
    oteli_tls_watch_threads();
    if (!theirs_comes_first)
        pthread_key_create(&their_key, free_for_thread);
    pthread_create(&thread, NULL, use_tls, NULL);
    exit(2);
}

static int status_of_child(bool theirs_comes_first, bool after_closing)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0)
        end_in_child(theirs_comes_first, after_closing);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Whosever destructor comes first; and a thread that ends during exit waits until TLS is gone. */
TEST(exit_waits_for_a_thread_that_is_ending_and_the_other_way_round)
{
    for (int i = 0; i < 4; i++)
        assert_int_equal(status_of_child(i % 2 != 0, i >= 2), 0);
}

static void *end_at_once(void *unused)
{
    return unused;
}

static void *use_tls_and_exit(void *unused)
{
    (void)unused;
    if (oteli_tls_enter(true))
        oteli_tls_leave(true);
    exit(0);
}

/* The thread that exits has been inside itself, and has not ended when the door is closed. */
TEST(a_thread_that_has_been_inside_can_exit)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        oteli_tls_prepare_exit();
        oteli_tls_watch_exit();
        oteli_tls_watch_threads();
        has_to_wait_for_nobody = true;
        alarm(60);
        pthread_create(&thread, NULL, use_tls_and_exit, NULL);
        pthread_join(thread, NULL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void *enter_and_leave(void *unused)
{
    if (oteli_tls_enter(true))
        oteli_tls_leave(true);
    return unused;
}

/* The C library would end the process if it had none to note a destructor. */
TEST(a_thread_without_memory_enters_as_well)
{
    oteli_tls_watch_threads();
    oteli_leaks_fail_at(1);

    assert_int_equal(pthread_create(&thread, NULL, enter_and_leave, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);

    assert_true(oteli_leaks_failed());
    assert_false(oteli_tls_is_over());
}

TEST(who_was_never_inside_may_end_and_enter_as_ever)
{
    oteli_tls_watch_threads();
    assert_int_equal(pthread_create(&thread, NULL, end_at_once, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(oteli_tls_enter(false));
    oteli_tls_leave(false);
    assert_false(oteli_tls_is_over());
}
