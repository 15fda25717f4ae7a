/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/asan_fork_test.c - a child can allocate, and start threads, whatever the threads of
 * its parent were doing when it was forked. libc sees to that, and under AddressSanitizer
 * support/asan_fork.c; without it nearly every run ends by an alarm. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { FORKS = 100, SIZES = 12, HANGS_AFTER_S = 60 };

static atomic_bool is_over;

/* One of every class of sizes: 16 bytes to 32 KiB. */
static void allocate(void)
{
    void *volatile blocks[SIZES];
    for (unsigned i = 0; i < SIZES; i++)
        blocks[i] = malloc((size_t)16 << i);
    for (unsigned i = 0; i < SIZES; i++)
        free(blocks[i]);
}

static void *allocate_once(void *argument)
{
    (void)argument;
    allocate();
    return NULL;
}

static void *start_threads(void *argument)
{
    (void)argument;
    while (!atomic_load(&is_over)) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, allocate_once, NULL) == 0)
            pthread_join(thread, NULL);
    }
    return NULL;
}

static int live_as_a_child(void)
{
    alarm(HANGS_AFTER_S);
    allocate();
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate_once, NULL) != 0)
        return 1;
    return pthread_join(thread, NULL);
}

static void test_a_child_allocates_and_starts_threads(void **state)
{
    (void)state;
    pthread_t busy;
    assert_int_equal(pthread_create(&busy, NULL, start_threads, NULL), 0);
    for (unsigned i = 0; i < FORKS; i++) {
        const pid_t child = fork();
        if (child == 0)
            _exit(live_as_a_child());
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    atomic_store(&is_over, true);
    pthread_join(busy, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_child_allocates_and_starts_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
