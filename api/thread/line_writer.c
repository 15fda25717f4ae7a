/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/line_writer.c - records that do not just go behind the last one: no quota, no room in
 * the line, a large span, a synchronous SDK, a mount. App threads; once in many spans. */
#include "api/thread/line_writer.h"

#include <string.h>

enum { LARGEST_RECORD = 1 << 30 }; /* sizes of lines and records have 32 bits */

/* Where a record goes: this thread's line, or one of its own if it fits into no other. */
struct record_room {
    struct oteli_record *record;
    struct oteli_line *own;
};

static size_t capacity_of(const struct oteli_thread *thread)
{
    return thread->line != NULL ? thread->line->capacity : 0;
}

/* This thread's line, or where that is full another one in its place; the full one stays current
 * until the worker can find it in the ring. */
static bool find_room(struct oteli_thread *thread, struct oteli_sdk *sdk, size_t bound,
                      struct record_room *room)
{
    room->own = NULL;
    if (bound > OTELI_LINE_BYTES - sizeof(struct oteli_line)) {
        room->own = oteli_line_get(thread, bound);
        if (room->own == NULL)
            return false;
        room->record = oteli_line_record(room->own, 0);
        return true;
    }
    if (thread->used + bound > capacity_of(thread)) {
        struct oteli_line *const full = thread->line;
        struct oteli_line *const next =
            full != NULL ? oteli_line_get(thread, bound) : oteli_line_keep(thread);
        if (next == NULL)
            return false;
        if (full != NULL)
            sdk->hand_over(sdk, full);
        thread->used = 0;
        thread->line_end = next->capacity - OTELI_RAW_SLACK;
        OTELI_STORE_RELEASE_PTR(&thread->line, next);
    }
    room->record = oteli_line_record(thread->line, thread->used);
    return true;
}

/* The record is written: `size` bytes that stand for `spans` spans. */
static void fill_room(struct oteli_thread *thread, struct oteli_sdk *sdk,
                      const struct record_room *room, uint32_t size, uint32_t spans)
{
    if (room->own == NULL) {
        oteli_commit(thread, size, spans);
        return;
    }
    oteli_count(&thread->counts.ended, spans);
    oteli_store_release_32(&room->own->committed, size);
    sdk->hand_over(sdk, room->own);
}

static uint64_t quota_left(const struct oteli_thread *thread)
{
    return thread->quota_end - thread->counts.ended;
}

static bool has_quota(struct oteli_thread *thread, struct oteli_sdk *sdk)
{
    if (quota_left(thread) == 0) {
        thread->quota_size = sdk->take_quota(sdk, thread->quota_size);
        thread->quota_end = thread->counts.ended + thread->quota_size;
    }
    return quota_left(thread) != 0;
}

/* The quota is used up and nothing else is unusual: mostly there is another. */
static void refill(struct oteli_thread *thread)
{
    struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    if (sdk != NULL && sdk->generation == thread->generation && !sdk->synchronous)
        has_quota(thread, sdk);
    oteli_sdk_return(thread);
}

/* An ended span to write: an active span, or a record that was kept back. */
struct ended_span {
    const struct oteli_active_span *active;
    uint64_t end;
    const struct oteli_record *kept; /* instead */
    size_t bound;
};

static uint32_t write_record(struct oteli_record *record, const struct ended_span *ended)
{
    if (ended->kept == NULL)
        return oteli_compose(record, ended->active, ended->end);
    memcpy(record, ended->kept, ended->kept->size);
    record->what &= ~(uint32_t)OTELI_RECORD_OUTERMOST;
    return record->size;
}

static void export_now(struct oteli_thread *thread, struct oteli_sdk *sdk,
                       const struct ended_span *ended)
{
    thread->scratch.length = 0;
    uint8_t *at = oteli_buffer_room(&thread->scratch, ended->bound);
    if (at == NULL) {
        oteli_thread_lose(thread, OTEL_DROP_NO_MEMORY, 1);
        return;
    }
    write_record((struct oteli_record *)(void *)at, ended);
    thread->quota_end++;
    oteli_count(&thread->counts.ended, 1);
    sdk->export_one(sdk, at);
}

static void lose_for_bytes(struct oteli_thread *thread, struct oteli_sdk *sdk)
{
    oteli_thread_lose(thread, OTEL_DROP_BYTE_LIMIT, 1);
    sdk->request_drain(sdk);
}

static void append_ended(struct oteli_thread *thread, const struct ended_span *ended)
{
    oteli_thread_take_back(thread);
    if (quota_left(thread) != 0 && thread->used + ended->bound <= capacity_of(thread)) {
        struct oteli_record *record = oteli_line_record(thread->line, thread->used);
        oteli_commit(thread, write_record(record, ended), 1);
        return; /* unusual, but there is room */
    }
    if (ended->bound > LARGEST_RECORD) {
        oteli_thread_lose(thread, OTEL_DROP_TOO_LARGE, 1);
        return;
    }
    struct record_room room;
    struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    if (sdk == NULL || sdk->generation != thread->generation)
        oteli_thread_lose(thread, OTEL_DROP_ALREADY_SHUTDOWN, 1);
    else if (sdk->synchronous)
        export_now(thread, sdk, ended);
    else if (!has_quota(thread, sdk))
        oteli_thread_lose(thread, OTEL_DROP_QUEUE_FULL, 1);
    else if (!find_room(thread, sdk, ended->bound, &room))
        lose_for_bytes(thread, sdk);
    else
        fill_room(thread, sdk, &room, write_record(room.record, ended), 1);
    oteli_sdk_return(thread);
}

bool oteli_append_more(struct oteli_thread *thread, const struct oteli_active_span *active,
                       uint64_t end)
{
    if ((end & OTELI_TICKS_BIT) == 0 || active->traits.is_unusual != OTELI_HAS_MORE ||
        quota_left(thread) == 0 || active->name_length > OTELI_RAW_NAME_MOST ||
        thread->used + oteli_raw_more_bound(active) > thread->line_end)
        return false;
    struct oteli_raw *raw = oteli_line_raw(thread->line, thread->used);
    oteli_commit(thread, oteli_raw_write_more(raw, active, end & ~OTELI_TICKS_BIT), 1);
    return true;
}

void oteli_append_any(struct oteli_thread *thread, struct oteli_active_span *active, uint64_t end)
{
    oteli_thread_take_back(thread);
    if (oteli_append_more(thread, active, end))
        return;
    /* A quota that was used up has to be announced first. */
    if (quota_left(thread) == 0 && thread->quota_size == 0 &&
        oteli_load_relaxed_64(&oteli_full) == thread->generation) {
        oteli_thread_lose(thread, OTEL_DROP_QUEUE_FULL, 1);
        return;
    }
    const struct ended_span ended = {
        .active = active, .end = end, .bound = oteli_compose_bound(active)};
    if (!active->traits.is_unusual && (end & OTELI_TICKS_BIT) != 0 && quota_left(thread) == 0)
        refill(thread);
    const uint32_t size = oteli_raw_size(active);
    if ((end & OTELI_TICKS_BIT) != 0 && oteli_is_plain(thread, active) &&
        oteli_line_has_room(thread, size))
        oteli_append_plain(thread, active, size, end & ~OTELI_TICKS_BIT);
    else
        append_ended(thread, &ended);
}

void oteli_append_copy(struct oteli_thread *thread, const struct oteli_record *record)
{
    const struct ended_span ended = {.kept = record, .bound = record->size};
    append_ended(thread, &ended);
}

static size_t mount_size(size_t length)
{
    return (sizeof(struct oteli_record) + length + 7) & ~(size_t)7;
}

static uint32_t write_mount(struct oteli_record *record, const void *mount, size_t length)
{
    *record = (struct oteli_record){.size = (uint32_t)mount_size(length),
                                    .length = (uint32_t)length,
                                    .what = OTELI_RECORD_MOUNT};
    memcpy(record + 1, mount, length);
    return record->size;
}

bool oteli_append_mount(struct oteli_thread *thread, struct oteli_sdk *sdk, const void *mount,
                        size_t length, uint32_t spans)
{
    struct record_room room;
    if (sdk->synchronous) {
        _Alignas(8) uint8_t record[1024]; /* a link has at most 640 bytes */
        thread->quota_end += spans;
        oteli_count(&thread->counts.ended, spans);
        write_mount((struct oteli_record *)(void *)record, mount, length);
        sdk->export_one(sdk, record);
        return true;
    }
    oteli_thread_take_back(thread);
    if (!find_room(thread, sdk, mount_size(length), &room))
        return false;
    thread->quota_end += spans; /* they have room of their own */
    fill_room(thread, sdk, &room, write_mount(room.record, mount, length), spans);
    return true;
}
