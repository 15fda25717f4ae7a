/* SPDX-License-Identifier: Apache-2.0 */
/* common/os/signal_guard.h - write without the signals that a failed write raises, SIGPIPE and
 * SIGXFSZ, which end a program that has not asked for them. No disposition is touched, and what the
 * program has pending stays.
 *
 *     struct oteli_signal_guard guard;
 *     oteli_signal_guard_begin(&guard);
 *     const ssize_t written = write(...);
 *     oteli_signal_guard_end(&guard, written < 0 ? errno : 0);
 *
 * Threads:  begin and end on the same one. errno is as before. */
#ifndef OTELI_SIGNAL_GUARD_H
#define OTELI_SIGNAL_GUARD_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

struct oteli_signal_guard {
    sigset_t before;
    sigset_t pending;
};

static inline void oteli_signal_guard_begin(struct oteli_signal_guard *guard)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    sigemptyset(&guard->pending);
    pthread_sigmask(SIG_BLOCK, &ours, &guard->before);
    (void)sigpending(&guard->pending);
}

/* `error` is what a write failed with, EPIPE where it may have; 0: none failed. */
static inline void oteli_signal_guard_end(const struct oteli_signal_guard *guard, int error)
{
    const int kept = errno;
    const int raised = error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
    if (raised != 0 && sigismember(&guard->pending, raised) == 0) {
        const struct timespec at_once = {0};
        sigset_t ours;
        sigemptyset(&ours);
        sigaddset(&ours, raised);
        (void)sigtimedwait(&ours, NULL, &at_once);
    }
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
    errno = kept;
}

#endif
