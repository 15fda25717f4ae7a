/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/spool_file.c - see spool_file.h. */
#include "exporters/otlp/spool/spool_file.h"
#include "exporters/otlp/encode/compress.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    VERSION = 1,
    FORMAT_PROTOBUF = 1,
    FORMAT_JSON = 2,
    AT_VERSION = 8,
    AT_FORMAT = 12,
    AT_WRITTEN = 16,
    AT_ID = 24,
    AT_SPANS = 32,
    AT_LENGTH = 36,
    AT_CHECKSUM = 44
};

static const uint8_t magic[AT_VERSION] = {'O', 'T', 'E', 'L', 'S', 'P', 'L', '\n'};

int oteli_spool_file_compare(const struct oteli_spool_file *a, const struct oteli_spool_file *b)
{
    if (a->written_unix_ns != b->written_unix_ns)
        return a->written_unix_ns < b->written_unix_ns ? -1 : 1;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    if (a->spans != b->spans)
        return a->spans < b->spans ? -1 : 1;
    return (a->length > b->length) - (a->length < b->length);
}

void oteli_spool_name_write(const struct oteli_spool_file *file, enum oteli_spool_name kind,
                            char name[OTELI_SPOOL_NAME])
{
    snprintf(name, OTELI_SPOOL_NAME, "%016" PRIx64 "-%016" PRIx64 "-%08" PRIx32 "-%08" PRIx32 "%s",
             file->written_unix_ns, file->id, file->spans, file->length,
             kind == OTELI_SPOOL_WHOLE ? ".otlp" : ".tmp");
}

/* The number that a part of a name is, and go behind it. */
static uint64_t take_part(const char **at)
{
    char *end;
    const uint64_t number = strtoull(*at, &end, 16);
    *at = *end == '-' ? end + 1 : end;
    return number;
}

/* Only what is written in this way is a name, so that no two names are of one file. */
enum oteli_spool_name oteli_spool_name_read(const char *name, struct oteli_spool_file *file)
{
    char written[OTELI_SPOOL_NAME];
    const char *at = name;
    file->written_unix_ns = take_part(&at);
    file->id = take_part(&at);
    file->spans = (uint32_t)take_part(&at);
    file->length = (uint32_t)take_part(&at);
    oteli_spool_name_write(file, OTELI_SPOOL_WHOLE, written);
    if (strcmp(name, written) == 0)
        return OTELI_SPOOL_WHOLE;
    oteli_spool_name_write(file, OTELI_SPOOL_TEMPORARY, written);
    return strcmp(name, written) == 0 ? OTELI_SPOOL_TEMPORARY : OTELI_SPOOL_OTHER;
}

static void put_number(uint8_t *at, uint64_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(number >> (8 * i));
}

static uint32_t number_of(otel_otlp_protocol format)
{
    return format == OTEL_OTLP_HTTP_JSON ? FORMAT_JSON : FORMAT_PROTOBUF;
}

static uint32_t checksum_of(const uint8_t *head, const void *request, size_t length)
{
    return oteli_checksum(oteli_checksum(0, head, AT_CHECKSUM), request, length);
}

void oteli_spool_head_write(const struct oteli_spool_file *file, otel_otlp_protocol format,
                            const void *request, uint8_t head[OTELI_SPOOL_HEAD])
{
    memset(head, 0, OTELI_SPOOL_HEAD);
    memcpy(head, magic, sizeof magic);
    put_number(head + AT_VERSION, VERSION, 4);
    put_number(head + AT_FORMAT, number_of(format), 4);
    put_number(head + AT_WRITTEN, file->written_unix_ns, 8);
    put_number(head + AT_ID, file->id, 8);
    put_number(head + AT_SPANS, file->spans, 4);
    put_number(head + AT_LENGTH, file->length, 4);
    put_number(head + AT_CHECKSUM, checksum_of(head, request, file->length), 4);
}

static bool is_head_of(const struct oteli_spool_file *file, otel_otlp_protocol format,
                       const uint8_t *content)
{
    uint8_t head[OTELI_SPOOL_HEAD];
    oteli_spool_head_write(file, format, content + OTELI_SPOOL_HEAD, head);
    return memcmp(head, content, sizeof head) == 0;
}

/* A newer version may have another head behind the version. */
enum oteli_spool_content oteli_spool_content_check(const struct oteli_spool_file *file,
                                                   otel_otlp_protocol format, const void *content,
                                                   size_t size)
{
    const uint8_t *head = content;
    const otel_otlp_protocol other =
        format == OTEL_OTLP_HTTP_JSON ? OTEL_OTLP_HTTP_PROTOBUF : OTEL_OTLP_HTTP_JSON;
    if (size < OTELI_SPOOL_HEAD || memcmp(head, magic, sizeof magic) != 0)
        return OTELI_SPOOL_TORN;
    uint32_t version;
    memcpy(&version, head + AT_VERSION, sizeof version);
    if (le32toh(version) > VERSION)
        return OTELI_SPOOL_FOREIGN;
    if (size != oteli_spool_file_bytes(file))
        return OTELI_SPOOL_TORN;
    if (is_head_of(file, format, head))
        return OTELI_SPOOL_GOOD;
    return is_head_of(file, other, head) ? OTELI_SPOOL_FOREIGN : OTELI_SPOOL_TORN;
}
