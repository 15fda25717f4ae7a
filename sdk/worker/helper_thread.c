/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/helper_thread.c - the one place that makes a thread. Start/stop only. */
#include "sdk/worker/helper_thread.h"

#include "api/thread/thread_state.h"
#include "common/log.h"
#include "common/text/error_text.h"

#include <signal.h>

/* curl and TLS need more than musl's default, and do not work with much less than that. */
enum { STACK_BYTES = 256 * 1024, LEAST_STACK_BYTES = 128 * 1024 };

int oteli_thread_create(pthread_t *thread, size_t stack_bytes, void *(*main)(void *),
                        void *argument)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error != 0)
        return error;
    if (stack_bytes == 0)
        stack_bytes = STACK_BYTES;
    if (stack_bytes < LEAST_STACK_BYTES)
        stack_bytes = LEAST_STACK_BYTES;
    /* A size that the system refuses leaves its own default. */
    pthread_attr_setstacksize(&attributes, stack_bytes);

    /* The program's signals are for the program's threads. A thread inherits the mask. */
    sigset_t all;
    sigset_t before;
    struct oteli_error_text text;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(thread, &attributes, main, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error != 0)
        OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "a thread of the SDK cannot be made: %s",
                         oteli_error_text(error, &text));
    return error;
}

bool oteli_helper_start(pthread_t *thread, void *(*main)(void *), void *argument)
{
    return oteli_thread_create(thread, 0, main, argument) == 0;
}

void oteli_helper_begin(const char *name)
{
    pthread_setname_np(pthread_self(), name);
    oteli_thread_silence();
}
