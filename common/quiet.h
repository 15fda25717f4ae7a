/* SPDX-License-Identifier: Apache-2.0 */
/* common/quiet.h - write without the signals that a failed write raises, which end a program that
 * has not asked for them. No disposition is touched, and what the program has pending stays.
 *
 *     struct oteli_quiet quiet;
 *     oteli_quiet_begin(&quiet);
 *     const ssize_t written = write(...);
 *     oteli_quiet_end(&quiet, written < 0 ? errno : 0);
 *
 * Threads:  begin and end on the same one. errno is as before. */
#ifndef OTELI_QUIET_H
#define OTELI_QUIET_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

struct oteli_quiet {
    sigset_t before;
    sigset_t pending;
};

static inline void oteli_quiet_begin(struct oteli_quiet *quiet)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    sigemptyset(&quiet->pending);
    pthread_sigmask(SIG_BLOCK, &ours, &quiet->before);
    (void)sigpending(&quiet->pending);
}

/* `error` is what the write failed with; 0: it did not. */
static inline void oteli_quiet_end(const struct oteli_quiet *quiet, int error)
{
    const int kept = errno;
    const int raised = error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
    if (raised != 0 && sigismember(&quiet->pending, raised) == 0) {
        const struct timespec at_once = {0};
        sigset_t ours;
        sigemptyset(&ours);
        sigaddset(&ours, raised);
        (void)sigtimedwait(&ours, NULL, &at_once);
    }
    pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
    errno = kept;
}

#endif
