/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/engine/queue.c - the producers' side of the batch span processor. App threads, lock-free,
 * once a quota or a line of spans.
 *
 * A quota is the right to end some spans. Quotas are large while there is room for one of each
 * thread, and single spans when there is not, so the limit is exact for any number of threads: the
 * sum of all quotas, lines and batches never exceeds the queue's size. Mounts reserve what they
 * need, all or nothing, and take nothing from a quota. */
#include "sdk/engine/queue.h"
#include "api/record/line.h"
#include "sdk/engine/engine.h"

enum { LARGEST_QUOTA = 128, FEW_THREADS = 2 };

/* A thread that goes on gets twice what it has used up; one that stops keeps what is left of
 * its quota, and that room is lost to the others. So quotas begin with one span, and leave room
 * for eight of every thread. */
static uint64_t quota_size(const struct oteli_engine *engine, uint64_t room, uint32_t ended)
{
    const uint64_t threads = oteli_load_relaxed_32(&engine->sdk.threads);
    uint64_t most = room / (8 * (threads > FEW_THREADS ? threads : FEW_THREADS));
    if (most > LARGEST_QUOTA)
        most = LARGEST_QUOTA;
    if (most > (uint64_t)ended * 2)
        most = (uint64_t)ended * 2;
    return most != 0 ? most : 1;
}

static bool has_room(const struct oteli_engine *engine)
{
    return oteli_load_relaxed_64(&engine->reserved) < engine->settings.queue_size;
}

/* There is room again. Behind a full atomic that has made it. */
static void clear_full(const struct oteli_engine *engine)
{
    if (oteli_load_relaxed_64(&oteli_full) == engine->sdk.generation)
        oteli_store_relaxed_64(&oteli_full, 0);
}

/* App threads need not ask for room any more. Either this thread sees the room that another thread
 * has freed meanwhile, or that one sees `oteli_full` when it has freed it. */
static void mark_queue_full(const struct oteli_engine *engine)
{
    oteli_exchange_full_64(&oteli_full, engine->sdk.generation);
    if (has_room(engine))
        clear_full(engine);
}

static void ask_for_drain(struct oteli_engine *engine)
{
    if (oteli_load_relaxed_32(&engine->full_but_empty) == 0)
        oteli_waker_request_drain(&engine->waker);
}

/* Spans wait that did not before, so there is something to make room with. */
void oteli_queue_announce(struct oteli_sdk *sdk, uint32_t spans)
{
    struct oteli_engine *engine = (struct oteli_engine *)(void *)sdk;
    oteli_waker_announce(&engine->waker, spans);
    if (oteli_load_relaxed_32(&engine->full_but_empty) == 0)
        return;
    oteli_store_relaxed_32(&engine->full_but_empty, 0);
    if (oteli_load_relaxed_64(&oteli_full) == engine->sdk.generation)
        oteli_waker_request_drain(&engine->waker); /* for threads that do not ask any more */
}

void oteli_queue_free_room(struct oteli_engine *engine, uint64_t spans)
{
    oteli_add_full_64(&engine->reserved, (uint64_t)0 - spans);
    clear_full(engine);
}

uint32_t oteli_queue_take_quota(struct oteli_sdk *sdk, uint32_t ended)
{
    struct oteli_engine *engine = (struct oteli_engine *)(void *)sdk;
    if (ended != 0)
        oteli_queue_announce(sdk, ended);
    for (;;) {
        const uint64_t reserved = oteli_load_relaxed_64(&engine->reserved);
        if (reserved >= engine->settings.queue_size) {
            mark_queue_full(engine);
            ask_for_drain(engine); /* after it: the worker clears it when it frees room */
            return 0;
        }
        const uint64_t quota = quota_size(engine, engine->settings.queue_size - reserved, ended);
        if (oteli_cas_full_64(&engine->reserved, reserved, reserved + quota))
            return (uint32_t)quota;
    }
}

bool oteli_queue_reserve(struct oteli_sdk *sdk, uint32_t count)
{
    struct oteli_engine *engine = (struct oteli_engine *)(void *)sdk;
    for (;;) {
        const uint64_t reserved = oteli_load_relaxed_64(&engine->reserved);
        if (count > engine->settings.queue_size - reserved) {
            if (count <= engine->settings.queue_size)
                ask_for_drain(engine);
            return false;
        }
        if (oteli_cas_full_64(&engine->reserved, reserved, reserved + count))
            return true;
    }
}

void oteli_queue_give_room_back(struct oteli_sdk *sdk, uint32_t count)
{
    oteli_queue_free_room((struct oteli_engine *)(void *)sdk, count);
}

void oteli_queue_request_drain(struct oteli_sdk *sdk)
{
    ask_for_drain((struct oteli_engine *)(void *)sdk);
}

void oteli_queue_hand_over(struct oteli_sdk *sdk, struct oteli_line *line)
{
    struct oteli_engine *engine = (struct oteli_engine *)(void *)sdk;
    oteli_ring_put(&engine->ring, line);
    /* The worker may wait for more spans than there is memory for. */
    if (oteli_waker_is_armed(&engine->waker) &&
        oteli_lines_queued_bytes() > engine->settings.queue_max_bytes / 2)
        ask_for_drain(engine);
}

void oteli_queue_wake(struct oteli_sdk *sdk)
{
    oteli_waker_wake(&((struct oteli_engine *)(void *)sdk)->waker);
}
