/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/ending_test.c - specification of sdk/ending.c where chance would have to help: what it
 * hears of exporter threads comes from here. Programs that end are in tests/integration. */
#include "sdk/ending.h"
#include "common/atomic.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { HANGS_S = 60 };

unsigned __wrap_oteli_lifecycle_threads(void);

static uint32_t looks;

/* The main thread ends while an SDK runs. That is shut down, and right behind the look that finds
 * it so another one is started. */
unsigned __wrap_oteli_lifecycle_threads(void)
{
    if (oteli_add_full_32(&looks, 1) != 1)
        return 1;
    oteli_ending_watch();
    return 0;
}

static void *be_exporter_thread(void *unused)
{
    for (;;)
        pause();
    return unused;
}

/* No report of what the main thread, which is gone, has left. */
static void leave(void)
{
    _exit(0);
}

static void leave_main_thread(void)
{
    pthread_t exporter;
    alarm(HANGS_S); /* ends a process that would not end */
    if (atexit(leave) != 0 || pthread_create(&exporter, NULL, be_exporter_thread, NULL) != 0)
        _exit(1);
    oteli_ending_watch();
    pthread_exit(NULL);
}

static void test_a_start_at_the_last_look_is_not_overlooked(void **state)
{
    (void)state;
    int status;
    const pid_t child = fork();
    if (child == 0)
        leave_main_thread();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_start_at_the_last_look_is_not_overlooked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
