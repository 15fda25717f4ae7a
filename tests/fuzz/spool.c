/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/spool.c - names and contents of files that somebody has put into a spool. Whatever is
 * taken for good is, to the last byte, what we would have written.
 *
 * The input is a name, up to the first NUL or line end, and a content. Half of the inputs get a
 * right checksum, for what is behind it. */
#include "exporters/otlp/encode/compress.h"
#include "exporters/otlp/spool/spool_file.h"
#include "tests/fuzz/fuzz.h"

enum { AT_WRITTEN = 16, AT_CHECKSUM = 44 };

static void check_name(const char *text, const struct oteli_spool_file *file,
                       enum oteli_spool_name kind)
{
    char name[OTELI_SPOOL_NAME];
    if (kind == OTELI_SPOOL_OTHER)
        return;
    oteli_spool_name_write(file, kind, name);
    fuzz_check(strcmp(name, text) == 0);
}

/* As if nothing was wrong with it. */
static void mend(uint8_t *content, size_t size)
{
    if (size < OTELI_SPOOL_HEAD)
        return;
    const uint32_t sum = oteli_checksum(oteli_checksum(0, content, AT_CHECKSUM),
                                        content + OTELI_SPOOL_HEAD, size - OTELI_SPOOL_HEAD);
    for (unsigned i = 0; i < 4; i++)
        content[AT_CHECKSUM + i] = (uint8_t)(sum >> (8 * i));
}

static void check_content(const struct oteli_spool_file *file, const uint8_t *content, size_t size)
{
    static const otel_otlp_protocol formats[] = {OTEL_OTLP_HTTP_PROTOBUF, OTEL_OTLP_HTTP_JSON};
    unsigned good = 0;
    for (unsigned i = 0; i < 2; i++) {
        uint8_t head[OTELI_SPOOL_HEAD];
        if (oteli_spool_content_check(file, formats[i], content, size) != OTELI_SPOOL_GOOD)
            continue;
        good++;
        fuzz_check(size == oteli_spool_file_bytes(file));
        struct oteli_spool_file written = *file; /* the name may say another time */
        written.written_unix_ns = 0;
        for (unsigned k = 8; k-- != 0;)
            written.written_unix_ns = written.written_unix_ns << 8 | content[AT_WRITTEN + k];
        oteli_spool_head_write(&written, formats[i], content + OTELI_SPOOL_HEAD, head);
        fuzz_check(memcmp(head, content, sizeof head) == 0);
    }
    fuzz_check(good <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[128];
    size_t length = 0;
    struct oteli_spool_file file = {0};
    while (length < size && length + 1 < sizeof name && data[length] != 0 && data[length] != '\n') {
        name[length] = (char)data[length];
        length++;
    }
    name[length] = '\0';
    check_name(name, &file, oteli_spool_name_read(name, &file));

    const size_t behind = length < size ? length + 1 : size;
    uint8_t *content = malloc(size - behind + 1); /* exactly as long, for the sanitizer */
    if (content == NULL)
        return 0;
    memcpy(content, data + behind, size - behind);
    if (length < size && data[length] == '\n')
        mend(content, size - behind);
    check_content(&file, content, size - behind);
    free(content);
    return 0;
}
