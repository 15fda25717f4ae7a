/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/signal/thread_timers.c - see thread_timers.h. Owns the timers.
 *
 * Source: the kernel's clock of a thread's processor time is the complement of its number, shifted
 * left by 3, with 4 for "a thread's" and 2 for "as the scheduler counts"
 * (clock_getcpuclockid(3)). */
#include "profiling/signal/thread_timers.h"
#include "common/clock/time_units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { CHECKED_A_SCAN = 32 };

bool oteli_thread_timers_init(struct oteli_thread_timers *timers, uint64_t period_ns,
                              int signal_number, uint32_t tag)
{
    *timers = (struct oteli_thread_timers){
        .period_ns = period_ns, .signal_number = signal_number, .tag = tag};
    return oteli_random_seed(&timers->random);
}

static clockid_t clock_of(pid_t thread)
{
    return (clockid_t)((~(unsigned)thread << 3) | 6);
}

bool oteli_thread_blocks(pid_t thread, int signal_number)
{
    static const char word[] = "SigBlk:";
    char path[48];
    char *line = NULL;
    size_t room = 0;
    unsigned long long blocked = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)thread);
    FILE *status = fopen(path, "re");
    if (status == NULL)
        return false;
    while (getline(&line, &room, status) > 0)
        if (strncmp(line, word, sizeof word - 1) == 0)
            blocked = strtoull(line + sizeof word - 1, NULL, 16);
    free(line);
    fclose(status);
    return (blocked >> (signal_number - 1) & 1) != 0;
}

/* From 1 to a whole period. */
static uint64_t first_turn(struct oteli_thread_timers *timers)
{
    timers->random.state += timers->random.step;
    uint64_t high;
    const uint64_t low = oteli_multiply(timers->random.state, timers->random.step, &high);
    return 1 + (low ^ high) % timers->period_ns;
}

/* Whether it has been seen blocking the signal, but not often enough. */
static bool is_undecided(const struct oteli_timed_thread *timed)
{
    return timed->looks != 0 && timed->looks < OTELI_TIMER_LOOKS;
}

/* 0, or an errno; none if the thread has ended meanwhile. */
static int arm(struct oteli_thread_timers *timers, struct oteli_timed_thread *timed)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = timers->signal_number};
    event.sigev_notify_thread_id = timed->thread;
    event.sigev_value.sival_ptr =
        (void *)(uintptr_t)((uint64_t)timers->tag << 32 | (uint32_t)timed->thread);
    if (oteli_thread_blocks(timed->thread, timers->signal_number)) {
        if (timed->looks < OTELI_TIMER_LOOKS && ++timed->looks == OTELI_TIMER_LOOKS)
            timers->blocking++;
        return 0;
    }
    timed->looks = 0;
    if (timer_create(clock_of(timed->thread), &event, &timed->timer) != 0)
        return errno == EINVAL || errno == ESRCH ? 0 : errno;
    const struct itimerspec turns = {.it_interval = oteli_ns_timespec(timers->period_ns),
                                     .it_value = oteli_ns_timespec(first_turn(timers))};
    timed->has_timer = timer_settime(timed->timer, 0, &turns, NULL) == 0;
    if (!timed->has_timer)
        timer_delete(timed->timer);
    timers->armed += timed->has_timer;
    return 0;
}

static void disarm(struct oteli_timed_thread *timed)
{
    if (timed->has_timer)
        timer_delete(timed->timer);
    timed->has_timer = false;
}

static int compare(const void *one, const void *other)
{
    const pid_t a = *(const pid_t *)one;
    const pid_t b = *(const pid_t *)other;
    return (a > b) - (a < b);
}

/* The kernel knows nothing more of the thread that it was made for. */
static bool is_dead(const struct oteli_timed_thread *timed)
{
    struct itimerspec left;
    return timer_gettime(timed->timer, &left) != 0 ||
           (left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0);
}

/* A thread that has ended may have left its number to another, which the timer does not know; and
 * what a thread blocks may have changed, which is dearer to find out. Some are looked at in each
 * scan. */
static void check_some(struct oteli_thread_timers *timers)
{
    for (size_t i = 0; i < CHECKED_A_SCAN && i < timers->count; i++) {
        timers->next_check = timers->next_check + 1 < timers->count ? timers->next_check + 1 : 0;
        struct oteli_timed_thread *timed = &timers->threads[timers->next_check];
        if (timed->has_timer && is_dead(timed)) {
            disarm(timed);
            (void)arm(timers, timed);
        }
    }
    if (timers->count == 0)
        return;
    timers->next_mask = timers->next_mask + 1 < timers->count ? timers->next_mask + 1 : 0;
    struct oteli_timed_thread *timed = &timers->threads[timers->next_mask];
    if (is_undecided(timed))
        return; /* it is looked at in each scan */
    if (!timed->has_timer) {
        (void)arm(timers, timed);
    } else if (oteli_thread_blocks(timed->thread, timers->signal_number)) {
        disarm(timed);
        timed->looks = 1;
    }
}

/* Those of the threads that there are, upward and each once, with the timers that they have, and
 * with new ones. 0, or an errno where one was refused. */
static int follow(struct oteli_thread_timers *timers, const struct oteli_thread_list *found,
                  struct oteli_timed_thread *threads, size_t *count)
{
    int error = 0;
    size_t old = 0;
    for (size_t i = 0; i < found->count; i++) {
        if (i != 0 && found->ids[i] == found->ids[i - 1])
            continue;
        struct oteli_timed_thread *timed = &threads[(*count)++];
        *timed = (struct oteli_timed_thread){.thread = found->ids[i]};
        while (old < timers->count && timers->threads[old].thread < timed->thread)
            disarm(&timers->threads[old++]);
        if (old < timers->count && timers->threads[old].thread == timed->thread) {
            *timed = timers->threads[old++];
            if (!is_undecided(timed))
                continue;
        }
        const int refused = arm(timers, timed);
        error = error != 0 ? error : refused;
    }
    while (old < timers->count)
        disarm(&timers->threads[old++]);
    return error;
}

int oteli_thread_timers_scan(struct oteli_thread_timers *timers)
{
    struct oteli_thread_list found = {.count = 0};
    size_t count = 0;
    int error = oteli_thread_list_read(&found);
    struct oteli_timed_thread *threads = calloc(found.count + 1, sizeof *threads);
    if (found.count != 0 && threads != NULL) {
        qsort(found.ids, found.count, sizeof *found.ids, compare);
        const int refused = follow(timers, &found, threads, &count);
        error = error != 0 ? error : refused;
        free(timers->threads);
        timers->threads = threads;
        timers->count = count;
        check_some(timers);
    } else {
        error = threads == NULL ? ENOMEM : error;
        free(threads);
    }
    oteli_thread_list_fini(&found);
    return error;
}

void oteli_thread_timers_fini(struct oteli_thread_timers *timers)
{
    for (size_t i = 0; i < timers->count; i++)
        disarm(&timers->threads[i]);
    free(timers->threads);
    timers->threads = NULL;
    timers->count = 0;
}
