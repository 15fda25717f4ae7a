/* SPDX-License-Identifier: Apache-2.0 */
/* common/log_keep.c - messages of the log that wait for a thread of the program: otel_log_keep and
 * otel_log_take.
 *
 * Threads:  any, lock-free, also signal handlers. Owns a ring of messages in static memory.
 *
 * Position p of the ring is slot p % SLOTS in round r = p / SLOTS. The slot's `turn` is 2r while it
 * is free for p, and 2r + 1 while it has the message of p. Who moves `put` or `taken` over p fills
 * or empties the slot, and then publishes the next turn. So a thread that is stopped in between
 * keeps one slot: the others find the ring full, or empty, and go on. */
#include "common/base/atomic.h"
#include "common/log.h"
#include "common/os/fork.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A position that another thread moves is looked at again; not for ever, as a fork in a signal
 * handler can leave a slot behind that no round has. */
enum { SLOTS = 32, ATTEMPTS = 100 };

struct slot {
    uint64_t turn;
    otel_log_level level;
    char text[OTEL_LOG_MESSAGE_SIZE];
};

static struct slot slots[SLOTS];
static uint64_t put;   /* the next position to fill */
static uint64_t taken; /* the next one to empty */
static uint64_t lost;  /* messages since that was last told */

/* In a forked child: the messages are the parent's to take. */
void oteli_log_forget_kept(void)
{
    for (size_t i = 0; i < SLOTS; i++)
        oteli_store_relaxed_64(&slots[i].turn, 0);
    oteli_store_relaxed_64(&put, 0);
    oteli_store_relaxed_64(&taken, 0);
    oteli_store_relaxed_64(&lost, 0);
}

static void copy(char *to, size_t size, const char *text)
{
    if (size == 0)
        return;
    const size_t length = strnlen(text, size - 1);
    memcpy(to, text, length);
    to[length] = '\0';
}

/* The slot of the position that `next` has, if its turn is `turn` in that round and this thread
 * moves `next` over it. NULL: there is none. */
static struct slot *claim(uint64_t *next, uint64_t turn)
{
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        const uint64_t at = oteli_load_relaxed_64(next);
        struct slot *slot = &slots[at % SLOTS];
        const uint64_t wanted = at / SLOTS * 2 + turn;
        const uint64_t found = oteli_load_acquire_64(&slot->turn); /* pairs with `pass` */
        if (found < wanted)
            return NULL;
        if (found == wanted && oteli_cas_full_64(next, at, at + 1))
            return slot;
    }
    return NULL;
}

/* What this thread did with a slot is done. */
static void pass(struct slot *slot)
{
    oteli_store_release_64(&slot->turn, slot->turn + 1); /* pairs with `claim` */
}

void otel_log_keep(void *state, otel_log_level level, const char *message)
{
    (void)state;
    struct slot *slot = claim(&put, 0);
    if (slot == NULL) {
        oteli_add_full_64(&lost, 1);
        return;
    }
    slot->level = level;
    copy(slot->text, sizeof slot->text, message);
    pass(slot);
}

static bool take_lost(otel_log_level *level, char *text, size_t size)
{
    const uint64_t count = oteli_load_relaxed_64(&lost) != 0 ? oteli_exchange_full_64(&lost, 0) : 0;
    if (count == 0)
        return false;
    *level = OTEL_LOG_WARN;
    snprintf(text, size, "%" PRIu64 " message%s lost: more came than were taken", count,
             count == 1 ? " was" : "s were");
    return true;
}

bool otel_log_take(otel_log_level *level, char *text, size_t size)
{
    otel_log_level unused;
    if (level == NULL)
        level = &unused;
    struct slot *slot = claim(&taken, 1);
    if (slot == NULL)
        return take_lost(level, text, size);
    *level = slot->level;
    copy(text, size, slot->text);
    pass(slot);
    return true;
}
