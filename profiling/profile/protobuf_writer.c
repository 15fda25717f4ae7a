/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profile/protobuf_writer.c - the contracts are in protobuf_writer.h. One thread at a
 * time; owns nothing. */
#include "profiling/profile/protobuf_writer.h"

#include "common/wire.h"

#include <stdlib.h>

enum { LEAST_ROOM = 4096, HEAD_MAX = 2 * OTELI_VARINT_MAX };

/* Where `length` bytes can be written; NULL: no memory. */
static uint8_t *reserve(struct oteli_protobuf_writer *writer, size_t length)
{
    if (writer->has_failed)
        return NULL;
    if (length > writer->room - writer->used) {
        size_t room = writer->room != 0 ? writer->room : LEAST_ROOM;
        while (room - writer->used < length)
            room *= 2;
        uint8_t *moved = realloc(writer->bytes, room);
        writer->has_failed = moved == NULL;
        if (moved == NULL)
            return NULL;
        writer->bytes = moved;
        writer->room = room;
    }
    return writer->bytes + writer->used;
}

void oteli_protobuf_number(struct oteli_protobuf_writer *writer, uint32_t field, uint64_t number)
{
    uint8_t *at = number != 0 ? reserve(writer, HEAD_MAX) : NULL;
    if (at != NULL)
        writer->used = (size_t)(oteli_put_varint_field(at, field, number) - writer->bytes);
}

void oteli_protobuf_bytes(struct oteli_protobuf_writer *writer, uint32_t field, const void *bytes,
                          size_t length)
{
    uint8_t *at = reserve(writer, HEAD_MAX + length);
    if (at != NULL)
        writer->used = (size_t)(oteli_put_bytes_field(at, field, bytes, length) - writer->bytes);
}

void oteli_protobuf_raw(struct oteli_protobuf_writer *writer, const void *bytes, size_t length)
{
    uint8_t *at = reserve(writer, length);
    if (at != NULL)
        writer->used = (size_t)(oteli_put_bytes(at, bytes, length) - writer->bytes);
}

void oteli_protobuf_packed(struct oteli_protobuf_writer *writer, uint64_t number)
{
    uint8_t *at = reserve(writer, OTELI_VARINT_MAX);
    if (at != NULL)
        writer->used = (size_t)(oteli_put_varint(at, number) - writer->bytes);
}

size_t oteli_protobuf_begin(struct oteli_protobuf_writer *writer, uint32_t field)
{
    uint8_t *at = reserve(writer, OTELI_VARINT_MAX);
    if (at != NULL)
        writer->used = (size_t)(oteli_put_tag(at, field, OTELI_WIRE_BYTES) - writer->bytes);
    return writer->used;
}

void oteli_protobuf_end(struct oteli_protobuf_writer *writer, size_t begun)
{
    const size_t length = writer->used - begun;
    const size_t head = oteli_varint_size(length);
    if (reserve(writer, head) == NULL)
        return;
    uint8_t *content = writer->bytes + begun;
    memmove(content + head, content, length);
    (void)oteli_put_varint(content, length);
    writer->used += head;
}

void oteli_protobuf_rows(struct oteli_protobuf_writer *writer, uint32_t field,
                         const struct oteli_interner *table)
{
    for (uint32_t i = 0; i < table->count; i++)
        oteli_protobuf_bytes(writer, field, oteli_interner_at(table, i), table->rows[i].length);
}
