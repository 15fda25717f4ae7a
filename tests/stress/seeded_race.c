/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/seeded_race.c - would ThreadSanitizer notice if an ordering of the ring were
 * missing? A copy of oteli_ring_put that publishes without release must be reported, and
 * the ring as it is must not be. Without ThreadSanitizer there is nothing to see. */
#include "sdk/ring.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, PUTS = 2000 };

static struct oteli_ring ring;
static uint32_t taken; /* atomic */
static bool is_racy;

static void put_without_release(struct oteli_line *line)
{
    const uint64_t ticket = oteli_add_full_64(&ring.head, 1);
    struct oteli_ring_slot *slot = &ring.slots[ticket & ring.mask];
    slot->line = line;
    oteli_store_relaxed_64(&slot->sequence, ticket + 1);
}

static void *produce(void *argument)
{
    struct oteli_line *line = argument;
    for (uint32_t i = 0; i < PUTS; i++) {
        while (oteli_load_acquire_32(&taken) != i)
            sched_yield();
        line->index = i;
        if (is_racy)
            put_without_release(line);
        else
            oteli_ring_put(&ring, line);
    }
    return NULL;
}

static int run(void)
{
    static struct oteli_line line;
    pthread_t producer;
    if (!oteli_ring_init(&ring, 1, 0) || pthread_create(&producer, NULL, produce, &line) != 0)
        return 1;
    int wrong = 0;
    for (uint32_t i = 0; i < PUTS; i++) {
        const struct oteli_line *found;
        while ((found = oteli_ring_take(&ring)) == NULL)
            sched_yield();
        wrong += found->index != i;
        oteli_store_release_32(&taken, i + 1);
    }
    pthread_join(producer, NULL);
    oteli_ring_fini(&ring);
    return wrong != 0;
}

#ifdef OTELI_TSAN
enum { REPORTED = 66 }; /* ThreadSanitizer's exit code */

/* Exit code of this program with that argument; what it says is of no interest. */
static int run_child(const char *argument)
{
    const pid_t child = fork();
    if (child == 0) {
        /* Not log_path: that is the beginning of a name, and would leave files in /dev. */
        const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0)
            _exit(1);
        setenv("TSAN_OPTIONS", "exitcode=66", 1);
        execl("/proc/self/exe", "seeded_race", argument, (char *)NULL);
        _exit(1);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static int run_children(void)
{
    const int right = run_child("right");
    const int racy = run_child("racy");
    printf("as it is: exit %d; without release: exit %d\n", right, racy);
    return right == 0 && racy == REPORTED ? 0 : 1;
}
#else
static int run_children(void)
{
    printf("this build has no ThreadSanitizer\n");
    return SKIPPED;
}
#endif

int main(int argc, char **argv)
{
    if (argc < 2 || (strcmp(argv[1], "racy") != 0 && strcmp(argv[1], "right") != 0))
        return run_children();
    is_racy = strcmp(argv[1], "racy") == 0;
    return run();
}
