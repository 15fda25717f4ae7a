/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/tls_exit_guard.c - see tls_exit_guard.h. Owns the door's words, and a
 * thread's place at it.
 *
 * Entering adds to the count and then looks at `is_closed`; closing sets that and then looks at
 * the count. Both have a full fence between, so one of the two sees the other. Beside the count
 * is the process that it belongs to: a thread that is inside at a fork is not in the child. */
#include "exporters/otlp/transport/tls_exit_guard.h"

#include "common/base/atomic.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    PAUSE_NS = 1000000,
    PAUSES = 5000, /* reading the authorities takes longest */
    LAST_PAUSES = 1000,
    /* More than is kept apart for the size; what is asked for next is cut from it. */
    ROOM_BYTES = 4096
};

/* What a thread's key holds. Destructors of keys run in rounds, for as long as one of them sets
 * its key again, and those of a round in no order that we could choose. So we stay for two: what
 * a destructor of the first has set is freed in the second. */
enum place { OUTSIDE, HAS_BEEN_INSIDE, ENDS, ENDS_ROUND_2, ENDS_ROUND_3 };

static uint64_t inside; /* the process in the upper half */
static uint32_t is_closed;
static uint32_t is_past; /* what the TLS library does at exit is done */

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

/* The GNU C library calls this when a thread ends, before any destructor of a key: no key of the
 * TLS library can come first. Others do not have it. */
extern int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *object);
#pragma weak __cxa_thread_atexit_impl

/* The count as it is in this process, with the process. */
static uint64_t now_inside(uint64_t found)
{
    const uint64_t empty = (uint64_t)(uint32_t)getpid() << 32;
    return found >> 32 == empty >> 32 ? found : empty;
}

static bool is_empty(void)
{
    return (uint32_t)now_inside(oteli_load_acquire_64(&inside)) == 0;
}

static void set_place(enum place place)
{
    (void)pthread_setspecific(key, (void *)(uintptr_t)place);
}

static enum place this_place(void)
{
    return has_key ? (enum place)(uintptr_t)pthread_getspecific(key) : OUTSIDE;
}

static bool enter(void)
{
    uint64_t found;
    do
        found = oteli_load_acquire_64(&inside);
    while (!oteli_cas_full_64(&inside, found, now_inside(found) + 1));
    if (!oteli_tls_is_over())
        return true;
    oteli_tls_leave(true);
    return false;
}

/* Until the exit has passed TLS, and then for the little time in which the process is gone: what
 * the TLS library has of this thread cannot be freed any more, and as long as the thread exists a
 * leak checker does not report it. */
static void wait_for_the_end(void)
{
    const struct timespec pause = {0, PAUSE_NS};
    for (int i = 0; i < PAUSES && oteli_load_acquire_32(&is_past) == 0; i++)
        nanosleep(&pause, NULL);
    for (int i = 0; i < LAST_PAUSES; i++)
        nanosleep(&pause, NULL);
}

/* What is done inside does not wait, so this is short; a thread that some exit handler has
 * stopped in there for good does not keep the process. The thread that exits may be one that
 * was about to end. */
static void close_door(void)
{
    const struct timespec pause = {0, PAUSE_NS};
    if (this_place() >= ENDS) {
        set_place(OUTSIDE);
        oteli_tls_leave(true);
    }
    oteli_exchange_full_32(&is_closed, 1);
    for (int i = 0; i < PAUSES && !is_empty(); i++)
        nanosleep(&pause, NULL);
}

static void say_past(void)
{
    oteli_store_release_32(&is_past, 1);
}

void oteli_tls_prepare_exit(void)
{
    (void)!atexit(say_past);
}

void oteli_tls_watch_exit(void)
{
    /* Without memory for it, exit is as it would be without this file. */
    (void)!atexit(close_door);
}

/* This thread ends, and what the TLS library has of it is about to be freed. */
static void begin_to_end(void *unused)
{
    (void)unused;
    if (this_place() != HAS_BEEN_INSIDE)
        return;
    if (enter()) {
        set_place(ENDS);
    } else {
        set_place(OUTSIDE);
        wait_for_the_end();
    }
}

static void end_round(void *value)
{
    switch ((enum place)(uintptr_t)value) {
    case OUTSIDE:
        break;
    case HAS_BEEN_INSIDE:
        set_place(HAS_BEEN_INSIDE);
        begin_to_end(NULL);
        break;
    case ENDS:
        set_place(ENDS_ROUND_2);
        break;
    case ENDS_ROUND_2:
        set_place(ENDS_ROUND_3);
        break;
    case ENDS_ROUND_3:
        oteli_tls_leave(true);
        break;
    }
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, end_round) == 0;
}

void oteli_tls_watch_threads(void)
{
    (void)pthread_once(&key_once, make_key);
}

/* The C library ends the process where it has no memory to note a destructor. */
static bool has_room(void)
{
    void *volatile room = malloc(ROOM_BYTES);
    free(room);
    return room != NULL;
}

static void watch_thread(void)
{
    if (!has_key || this_place() != OUTSIDE)
        return;
    set_place(HAS_BEEN_INSIDE); /* without more than that, its end is seen by our key */
    if (&__cxa_thread_atexit_impl != NULL && has_room())
        (void)__cxa_thread_atexit_impl(begin_to_end, NULL, &inside);
}

bool oteli_tls_enter(bool is_tls)
{
    if (!is_tls)
        return true;
    watch_thread();
    return enter();
}

void oteli_tls_leave(bool is_tls)
{
    if (is_tls)
        oteli_add_full_64(&inside, UINT64_MAX); /* one less; after everything done inside */
}

bool oteli_tls_is_over(void)
{
    return oteli_load_acquire_32(&is_closed) != 0;
}
