/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/ending.c - see ending.h. Owns a key that only the main thread has a value of. */
#include "sdk/ending.h"
#include "sdk/engine.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_NS = 20 * 1000 * 1000, STACK_BYTES = 64 * 1024 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;
static uint32_t is_watched; /* the main thread has a value */

/* Processes, because a forked child has a main thread again and nobody who looks. */
static uint32_t has_left; /* its main thread has ended, and not with the process */
static uint32_t is_looking;

static bool is_main_thread(void)
{
    return syscall(SYS_gettid) == getpid();
}

static bool is_of_this_process(const uint32_t *word)
{
    return oteli_load_acquire_32(word) == (uint32_t)getpid();
}

/* How many threads the kernel counts, the main thread included, which it keeps to the end.
 * 0: it does not say. */
static unsigned count_threads(void)
{
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2 ? (unsigned)tasks.st_nlink - 2
                                                                      : 0;
}

/* Until there is no exporter thread. false: it cannot be seen who else is there. */
static bool look_until_stopped(void)
{
    const struct timespec pause = {0, LOOK_NS};
    unsigned exporting;
    while ((exporting = oteli_lifecycle_threads()) != 0) {
        const unsigned all = count_threads();
        if (all == 0)
            return false;
        if (all <= 2 + exporting) /* with the main thread and this one */
            exit(EXIT_SUCCESS);
        nanosleep(&pause, NULL);
    }
    return true;
}

/* Who starts an SDK behind the last look finds somebody looking. So there is one look more when
 * nobody is: either of the two sees what the other has done. */
static void *look_for_others(void *unused)
{
    const uint32_t self = (uint32_t)getpid();
    bool can_see;
    do {
        can_see = look_until_stopped();
        (void)oteli_cas_full_32(&is_looking, self, 0);
    } while (can_see && oteli_lifecycle_threads() != 0 && oteli_cas_full_32(&is_looking, 0, self));
    return unused;
}

static void start_looking(void)
{
    pthread_t thread;
    const uint32_t looking = oteli_load_acquire_32(&is_looking);
    if (oteli_lifecycle_threads() == 0 || looking == (uint32_t)getpid() ||
        !oteli_cas_full_32(&is_looking, looking, (uint32_t)getpid()))
        return;
    if (oteli_thread_create(&thread, STACK_BYTES, look_for_others, NULL) != 0) {
        oteli_store_release_32(&is_looking, 0);
        return;
    }
    pthread_setname_np(thread, "otel-ending");
    pthread_detach(thread);
}

/* In the middle of its pthread_exit: exit does not destroy values of threads. */
static void on_main_thread_exit(void *unused)
{
    (void)unused;
    oteli_store_release_32(&has_left, (uint32_t)getpid());
    start_looking();
}

static void set_up(void)
{
    has_key = pthread_key_create(&key, on_main_thread_exit) == 0;
}

void oteli_ending_watch(void)
{
    if (is_of_this_process(&has_left)) {
        start_looking();
    } else if (is_main_thread()) {
        pthread_once(&once, set_up);
        if (has_key && pthread_setspecific(key, &key) == 0)
            oteli_store_release_32(&is_watched, 1);
    }
}

bool oteli_ending_unwatch(void)
{
    if (oteli_load_acquire_32(&is_watched) != 0 && is_main_thread()) {
        pthread_setspecific(key, NULL);
        oteli_store_release_32(&is_watched, 0);
    }
    return oteli_load_acquire_32(&is_watched) == 0 && !is_of_this_process(&has_left);
}

void oteli_ending_fini(void)
{
    if (has_key)
        pthread_key_delete(key);
    has_key = false;
}
