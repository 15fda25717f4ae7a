/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/clock_threads_test.c - specification of common/clock.h: any thread converts
 * while another renews, with equal answers; and no child process waits for a lock. */
#include "common/clock.h"
#include "tests/support/unit.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, TIMES = 20000, CHILDREN = 30, CHILD_MAY_TAKE_S = 60 };

struct converted {
    uint64_t stored[TIMES];
    uint64_t ns[TIMES];
    uint32_t epoch;
    bool is_ordered;
};

static struct converted converted[THREADS];
static uint32_t stop;

static void *convert(void *argument)
{
    struct converted *mine = argument;
    mine->epoch = oteli_clock_epoch();
    mine->is_ordered = true;
    for (size_t i = 0; i < TIMES; i++) {
        mine->stored[i] = oteli_ticks() | OTELI_TICKS_BIT;
        mine->ns[i] = oteli_clock_to_ns(mine->stored[i], mine->epoch);
        if (i != 0 && mine->ns[i] < mine->ns[i - 1])
            mine->is_ordered = false;
    }
    return NULL;
}

static void *renew(void *argument)
{
    (void)argument;
    while (oteli_load_acquire_32(&stop) == 0) {
        oteli_clock_renew();
        oteli_clock_rest();
    }
    return NULL;
}

static pthread_t start_renewing(void)
{
    pthread_t thread;
    oteli_store_release_32(&stop, 0);
    assert_int_equal(pthread_create(&thread, NULL, renew, NULL), 0);
    return thread;
}

static void stop_renewing(pthread_t thread)
{
    oteli_store_release_32(&stop, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

TEST(threads_agree)
{
    static const char *const wishes[] = {"auto", "monotonic", "coarse"};
    for (size_t wish = 0; wish < sizeof wishes / sizeof wishes[0]; wish++) {
        pthread_t threads[THREADS];
        assert_null(oteli_clock_start(wishes[wish]));
        const pthread_t renewing = start_renewing();
        for (size_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, convert, &converted[i]), 0);
        for (size_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        stop_renewing(renewing);

        for (size_t i = 0; i < THREADS; i++) {
            const struct converted *of = &converted[i];
            assert_true(of->is_ordered);
            for (size_t k = 0; k < TIMES; k++)
                assert_true(oteli_clock_to_ns(of->stored[k], of->epoch) == of->ns[k]);
        }
    }
}

static int live_as_child(void)
{
    alarm(CHILD_MAY_TAKE_S); /* one that waits for ever is killed */
    for (int i = 0; i < 3; i++) {
        oteli_clock_renew();
        if (oteli_clock_to_ns(oteli_ticks() | OTELI_TICKS_BIT, oteli_clock_epoch()) == 0)
            return 1;
    }
    oteli_clock_forget(); /* as common/fork.c does before any start in a child */
    if (oteli_clock_start("auto") != NULL)
        return 2;
    const uint32_t epoch = oteli_clock_epoch();
    const uint64_t start = oteli_clock_to_ns(oteli_ticks() | OTELI_TICKS_BIT, epoch);
    return oteli_clock_to_ns(oteli_ticks() | OTELI_TICKS_BIT, epoch) < start ? 3 : 0;
}

TEST(a_child_waits_for_nobody)
{
    assert_null(oteli_clock_start("auto"));
    const pthread_t renewing = start_renewing();
    for (int i = 0; i < CHILDREN; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(live_as_child());
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    stop_renewing(renewing);
}
