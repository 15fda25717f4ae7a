/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/queue.c - the producers' side of the batch span processor. App threads, lock-free,
 * once in a lot or a line of spans.
 *
 * A lot is the right to end some spans. Lots are large while there is room for everybody
 * to have one, and single spans when there is not, so the limit is exact for any number
 * of threads: the sum of all lots, lines and batches never exceeds the queue's size. Mounts
 * reserve what they need, all or nothing, and take nothing of a lot. */
#include "sdk/engine.h"

enum { LARGEST_LOT = 64 };

/* A lot leaves room for four lots of every thread. */
static uint64_t lot_size(const struct oteli_engine *engine, uint64_t room)
{
    const uint64_t threads = oteli_load_relaxed_32(&engine->sdk.threads);
    const uint64_t share = room / (4 * (threads != 0 ? threads : 1));
    if (share > LARGEST_LOT)
        return LARGEST_LOT;
    return share != 0 ? share : 1;
}

/* Spans wait that did not before, so there is something to make room with. */
static void announce(struct oteli_engine *engine, uint32_t spans)
{
    oteli_bell_announce(&engine->bell, spans);
    if (oteli_load_relaxed_32(&engine->full_is_futile) != 0)
        oteli_store_relaxed_32(&engine->full_is_futile, 0);
}

static void complain_of_full(struct oteli_engine *engine)
{
    if (oteli_load_relaxed_32(&engine->full_is_futile) == 0)
        oteli_bell_knock(&engine->bell);
}

uint32_t oteli_queue_take_lot(struct oteli_sdk *sdk, uint32_t ended)
{
    struct oteli_engine *engine = (struct oteli_engine *)(void *)sdk;
    if (ended != 0)
        announce(engine, ended);
    for (;;) {
        const uint64_t reserved = oteli_load_relaxed_64(&engine->reserved);
        if (reserved >= engine->queue_size) {
            complain_of_full(engine);
            return 0;
        }
        const uint64_t lot = lot_size(engine, engine->queue_size - reserved);
        if (oteli_cas_full_64(&engine->reserved, reserved, reserved + lot))
            return (uint32_t)lot;
    }
}

bool oteli_queue_reserve(struct oteli_sdk *sdk, uint32_t count)
{
    struct oteli_engine *engine = (struct oteli_engine *)(void *)sdk;
    for (;;) {
        const uint64_t reserved = oteli_load_relaxed_64(&engine->reserved);
        if (reserved > engine->queue_size || count > engine->queue_size - reserved) {
            if (count <= engine->queue_size)
                complain_of_full(engine);
            return false;
        }
        if (oteli_cas_full_64(&engine->reserved, reserved, reserved + count))
            return true;
    }
}

void oteli_queue_announce(struct oteli_sdk *sdk, uint32_t count)
{
    announce((struct oteli_engine *)(void *)sdk, count);
}

void oteli_queue_give_room_back(struct oteli_sdk *sdk, uint32_t count)
{
    struct oteli_engine *engine = (struct oteli_engine *)(void *)sdk;
    oteli_add_full_64(&engine->reserved, (uint64_t)0 - count);
}

void oteli_queue_hand_over(struct oteli_sdk *sdk, struct oteli_line *line)
{
    struct oteli_engine *engine = (struct oteli_engine *)(void *)sdk;
    oteli_ring_put(&engine->ring, line);
}

void oteli_queue_wake(struct oteli_sdk *sdk)
{
    struct oteli_engine *engine = (struct oteli_engine *)(void *)sdk;
    oteli_bell_ring(&engine->bell);
}
