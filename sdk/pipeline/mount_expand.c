/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/pipeline/mount_expand.c - the contracts are in sdk/pipeline/mount_expand.h. Worker, or under
 * the mutex of a synchronous engine.
 *
 * Source: opentelemetry/proto/trace/v1/trace.proto; what is read here is
 * api/record/span_encoder.c's. */
#include "sdk/pipeline/mount_expand.h"
#include "api/context/tracestate_pool.h"
#include "api/record/span_encoder.h"
#include "common/wire.h"
#include "sdk/view/address_names.h"

enum {
    SPAN_ID_AT = 20,
    BEHIND_SPAN_ID = 28,
    FLAGS_BYTES = 6, /* at the end of every message */
    KIND_BYTES = 2,  /* before the times */
    TRACE_STATE = 3,
    SPAN_LINKS = 13
};
enum { TRACESTATE_MOST = OTELI_TRACESTATE_BYTES + 4, PARENT_BYTES = 10 };

static const uint8_t *message_of(const struct oteli_record *record)
{
    return oteli_record_message((struct oteli_record *)(uintptr_t)record);
}

static uint64_t id_at(const uint8_t *at)
{
    uint64_t id;
    memcpy(&id, at, sizeof id);
    return id;
}

/* Behind the ids: the name, or what follows where there is none. */
static const uint8_t *behind_ids(const struct oteli_record *record, uint64_t *parent_id)
{
    const uint8_t *at = message_of(record) + BEHIND_SPAN_ID;
    const uint8_t *end = message_of(record) + record->length;
    struct oteli_field field;
    if (*at == OTELI_TAG(TRACE_STATE, OTELI_WIRE_BYTES))
        oteli_next_field(&at, end, &field);
    *parent_id = 0;
    if (*at == OTELI_TAG(OTELI_SPAN_PARENT_SPAN_ID, OTELI_WIRE_BYTES)) {
        *parent_id = id_at(at + 2);
        at += PARENT_BYTES;
    }
    return at;
}

/* Where a further link belongs: behind the last field that may not follow it. */
static const uint8_t *behind_links(const struct oteli_record *record)
{
    const uint8_t *at = message_of(record) + record->times_at;
    const uint8_t *end = message_of(record) + record->length;
    struct oteli_field field;
    while (oteli_next_field(&at, end, &field))
        if (field.number > SPAN_LINKS)
            return field.start;
    return end;
}

/* What all copies of one mount have in common. */
struct expansion {
    const struct oteli_mount *mount;
    size_t tracestate_length;
    char tracestate[OTELI_TRACESTATE_BYTES + 1];
};

static void begin_expansion(struct expansion *expansion, const struct oteli_mount *mount)
{
    expansion->mount = mount;
    expansion->tracestate_length = 0;
    if (mount->tracestate != 0)
        expansion->tracestate_length =
            oteli_tracestate_copy(mount->tracestate, (const uint8_t *)mount->trace_id,
                                  expansion->tracestate, sizeof expansion->tracestate);
}

static uint8_t *put_ids(uint8_t *at, const struct expansion *expansion, uint64_t span_id,
                        uint64_t parent_id)
{
    at = oteli_put_short(at, OTELI_SPAN_TRACE_ID, expansion->mount->trace_id, 16);
    at = oteli_put_short(at, OTELI_SPAN_SPAN_ID, &span_id, 8);
    if (expansion->tracestate_length != 0)
        at = oteli_put_bytes_field(at, TRACE_STATE, expansion->tracestate,
                                   expansion->tracestate_length);
    if (parent_id != 0)
        at = oteli_put_short(at, OTELI_SPAN_PARENT_SPAN_ID, &parent_id, 8);
    return at;
}

/* The head of a copy whose message ends at `end`, where everything behind the ids has moved. */
static void finish_copy(struct oteli_record *copy, const struct oteli_record *from,
                        const uint8_t *end, ptrdiff_t moved)
{
    *copy = *from;
    copy->length = (uint32_t)(end - message_of(copy));
    copy->size = (uint32_t)((sizeof *copy + copy->length + 7) & ~(size_t)7);
    copy->times_at = (uint32_t)((ptrdiff_t)from->times_at + moved);
    copy->events_at = from->events_at != 0 ? (uint32_t)((ptrdiff_t)from->events_at + moved) : 0;
}

/* A span of the set as a span of the mount. NULL: no memory. */
static struct oteli_record *expand(struct oteli_arena *arena, const struct expansion *expansion,
                                   const struct oteli_record *from)
{
    const struct oteli_mount *mount = expansion->mount;
    const bool is_outermost = (from->what & OTELI_RECORD_OUTERMOST) != 0;
    const size_t link_length = is_outermost ? mount->link_length : 0;
    const size_t most = from->size + TRACESTATE_MOST + PARENT_BYTES + link_length;
    struct oteli_record *copy = (struct oteli_record *)(void *)oteli_arena_room(arena, most);
    if (copy == NULL)
        return NULL;

    uint64_t parent_id;
    const uint8_t *const rest = behind_ids(from, &parent_id);
    const uint8_t *const flags = message_of(from) + from->length - FLAGS_BYTES;
    const uint8_t *const cut = link_length != 0 ? behind_links(from) : flags;
    const uint64_t span_id = id_at(message_of(from) + SPAN_ID_AT) ^ mount->key;
    parent_id = is_outermost ? mount->parent_id : parent_id ^ mount->key;

    uint8_t *at = put_ids((uint8_t *)(copy + 1), expansion, span_id, parent_id);
    const ptrdiff_t moved = (at - (uint8_t *)(copy + 1)) - (rest - message_of(from));
    at = oteli_put_bytes(at, rest, (size_t)(cut - rest));
    at = oteli_put_bytes(at, mount->link, link_length);
    at = oteli_put_bytes(at, cut, (size_t)(flags - cut) + FLAGS_BYTES);
    oteli_put_fixed32(at - 4, is_outermost ? mount->outer_flags : mount->wire_flags);
    finish_copy(copy, from, at, moved);
    copy->what &= ~(uint32_t)OTELI_RECORD_OUTERMOST;
    oteli_arena_keep(arena, copy->size);
    return copy;
}

bool oteli_expand_mount(otel_batch *batch, struct oteli_record *record, uint64_t *lost)
{
    struct expansion expansion;
    begin_expansion(&expansion, oteli_record_mount(record));
    const struct oteli_buffer *records = &expansion.mount->lines->records;
    uint32_t done = OTELI_MOUNT_BYTES_DONE(record);
    while (done < records->length && batch->count < batch->capacity) {
        const struct oteli_record *from =
            (const struct oteli_record *)(const void *)(records->data + done);
        done += from->size;
        OTELI_MOUNT_SPANS_DONE(record)++;
        struct oteli_record *copy = expand(&batch->arena, &expansion, from);
        if (copy != NULL)
            oteli_batch_add(batch, copy);
        else
            ++*lost;
    }
    OTELI_MOUNT_BYTES_DONE(record) = done;
    if (done < records->length)
        return false;
    oteli_mount_discard(expansion.mount);
    return true;
}

/* The same span with its name in the place of an address. NULL: no memory. */
static struct oteli_record *with_name(struct oteli_arena *arena, const struct oteli_record *from)
{
    uint64_t parent_id;
    const uint8_t *const message = message_of(from);
    const uint8_t *const name_field = behind_ids(from, &parent_id);
    const uint8_t *const rest = message + from->times_at - KIND_BYTES;
    char text[OTELI_NAME_MOST];
    const size_t length = oteli_name_look_up(name_field + 2, (size_t)(rest - name_field) - 2, text);

    struct oteli_record *copy = (struct oteli_record *)(void *)oteli_arena_room(
        arena, from->size + oteli_bytes_field_size(OTELI_SPAN_NAME, length));
    if (copy == NULL)
        return NULL;
    uint8_t *at = (uint8_t *)(copy + 1);
    at = oteli_put_bytes(at, message, (size_t)(name_field - message));
    at = oteli_put_bytes_field(at, OTELI_SPAN_NAME, text, length);
    const ptrdiff_t moved = (at - (uint8_t *)(copy + 1)) - (rest - message);
    at = oteli_put_bytes(at, rest, (size_t)(message + from->length - rest));
    finish_copy(copy, from, at, moved);
    copy->what &= ~(uint32_t)OTELI_RECORD_ADDRESS;
    oteli_arena_keep(arena, copy->size);
    return copy;
}

uint64_t oteli_expand_names(otel_batch *batch)
{
    if (batch->address_count == 0)
        return 0;
    size_t kept = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct oteli_record *record = batch->records[i];
        const bool is_raw = (record->what & OTELI_RECORD_RAW) != 0;
        if (!is_raw && (record->what & OTELI_RECORD_ADDRESS) != 0)
            record = with_name(&batch->arena, record);
        if (record != NULL)
            batch->records[kept++] = record;
    }
    const size_t lost = batch->count - kept;
    batch->count = kept;
    batch->address_count = 0;
    return lost;
}
