/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profile/protobuf_writer.h - a protobuf message that grows as it is written.
 *
 *     begin ─▶ tag │ content …        end ─▶ tag │ length │ content
 *
 * The length of a message inside the message is put in front of it when it ends, so that it need
 * not be known before. Without memory nothing more is written, and `has_failed` says so.
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_PROTOBUF_WRITER_H
#define OTELI_PROTOBUF_WRITER_H

#include "profiling/base/interner.h"

/* All zero: empty, and without memory, which is the caller's to free. */
struct oteli_protobuf_writer {
    uint8_t *bytes;
    size_t used;
    size_t room;
    bool has_failed;
};

/* A field; zero is not written, as in every message of proto3. */
void oteli_protobuf_number(struct oteli_protobuf_writer *writer, uint32_t field, uint64_t number);
void oteli_protobuf_bytes(struct oteli_protobuf_writer *writer, uint32_t field, const void *bytes,
                          size_t length);

/* Bytes, or a number of a packed field, without a tag. */
void oteli_protobuf_raw(struct oteli_protobuf_writer *writer, const void *bytes, size_t length);
void oteli_protobuf_packed(struct oteli_protobuf_writer *writer, uint64_t number);

/* A message, or packed numbers, as a field. */
size_t oteli_protobuf_begin(struct oteli_protobuf_writer *writer, uint32_t field);
void oteli_protobuf_end(struct oteli_protobuf_writer *writer, size_t begun);

/* Each row of a table as a field of bytes. */
void oteli_protobuf_rows(struct oteli_protobuf_writer *writer, uint32_t field,
                         const struct oteli_interner *table);

#endif
