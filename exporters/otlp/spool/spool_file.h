/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/spool_file.h - what a spool's files are called, and what is in them.
 *
 *     name     <written, 16>-<id, 16>-<spans, 8>-<length, 8>.otlp     hexadecimal digits; `.tmp`
 *                                                                     while it is being written
 *     content   0  magic: OTELSPL and a newline
 *               8  version, 1
 *              12  format: 1 OTLP as protobuf, 2 as JSON
 *              16  written, Unix time in nanoseconds
 *              24  id, chosen at random
 *              32  spans
 *              36  length of the request
 *              40  zero
 *              44  CRC-32 of the 44 bytes before it and of the request
 *              48  the request, an ExportTraceServiceRequest
 *
 * Numbers are little-endian. The name says all that has to be known before a file is read: when it
 * was written, how much is in it, and, by an id of its own, which one it is.
 *
 * Pure functions. */
#ifndef OTELI_SPOOL_FILE_H
#define OTELI_SPOOL_FILE_H

#include <otel/otlp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OTELI_SPOOL_HEAD = 48,
    OTELI_SPOOL_NAME = 16 + 1 + 16 + 1 + 8 + 1 + 8 + 5 + 1 /* with its NUL */
};

/* One file. */
struct oteli_spool_file {
    uint64_t written_unix_ns;
    uint64_t id;
    uint32_t spans;
    uint32_t length; /* of the request */
};

/* The bytes that a file takes. */
static inline uint64_t oteli_spool_file_bytes(const struct oteli_spool_file *file)
{
    return (uint64_t)OTELI_SPOOL_HEAD + file->length;
}

/* Files in the order of their names. */
int oteli_spool_file_compare(const struct oteli_spool_file *a, const struct oteli_spool_file *b);

enum oteli_spool_name {
    OTELI_SPOOL_OTHER, /* not one of ours */
    OTELI_SPOOL_WHOLE,
    OTELI_SPOOL_TEMPORARY
};

void oteli_spool_name_write(const struct oteli_spool_file *file, enum oteli_spool_name kind,
                            char name[OTELI_SPOOL_NAME]);
enum oteli_spool_name oteli_spool_name_read(const char *name, struct oteli_spool_file *file);

/* The head of the file that has this request. */
void oteli_spool_head_write(const struct oteli_spool_file *file, otel_otlp_protocol format,
                            const void *request, uint8_t head[OTELI_SPOOL_HEAD]);

/* What is behind a name. The last three only show when it is read. */
enum oteli_spool_content {
    OTELI_SPOOL_GOOD,
    OTELI_SPOOL_TORN,    /* it was ours */
    OTELI_SPOOL_FOREIGN, /* of a newer version, of another format, or no file that we may read */
    OTELI_SPOOL_GONE,
    OTELI_SPOOL_UNREADABLE, /* the disk has an error, which may pass */
    OTELI_SPOOL_NOT_NOW     /* no memory, or no descriptor */
};

/* Whether the content of a file, `size` bytes, is what its name promises. */
enum oteli_spool_content oteli_spool_content_check(const struct oteli_spool_file *file,
                                                   otel_otlp_protocol format, const void *content,
                                                   size_t size);

#endif
