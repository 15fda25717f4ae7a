/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/ending.c - see ending.h. Owns the door's two words.
 *
 * Entering adds to the count and then looks at `is_closed`; closing sets that and then looks at
 * the count. Both have a full fence between, so one of the two sees the other. Beside the count
 * is the process that it belongs to: whoever is inside at a fork is not in the child. */
#include "exporters/otlp/ending.h"

#include "common/atomic.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_NS = 1000000, PAUSES = 5000 }; /* reading the authorities takes longest */

static uint64_t inside; /* the process in the upper half */
static uint32_t is_closed;

/* The count as it is in this process, with the process. */
static uint64_t now_inside(uint64_t found)
{
    const uint64_t nobody = (uint64_t)(uint32_t)getpid() << 32;
    return found >> 32 == nobody >> 32 ? found : nobody;
}

static bool is_empty(void)
{
    return (uint32_t)now_inside(oteli_load_acquire_64(&inside)) == 0;
}

/* What is done inside does not wait, so this is short; a thread that some exit handler has
 * stopped in there for good does not keep the process. */
static void close_door(void)
{
    const struct timespec pause = {0, PAUSE_NS};
    oteli_exchange_full_32(&is_closed, 1);
    for (int i = 0; i < PAUSES && !is_empty(); i++)
        nanosleep(&pause, NULL);
}

void oteli_tls_watch_exit(void)
{
    /* Without memory for it, exit is as it would be without this file. */
    (void)!atexit(close_door);
}

bool oteli_tls_enter(bool is_tls)
{
    uint64_t found;
    if (!is_tls)
        return true;
    do
        found = oteli_load_acquire_64(&inside);
    while (!oteli_cas_full_64(&inside, found, now_inside(found) + 1));
    if (!oteli_tls_is_over())
        return true;
    oteli_tls_leave(true);
    return false;
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
