/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/baggage.c - baggage headers from anywhere, one a line. What is read stays within
 * the limits, is written as a header that only has what may be in one, and is the same when it
 * is read again. */
#include "api/baggage.h"

#include <stdlib.h>
#include <string.h>

static void check(bool condition)
{
    if (!condition)
        abort();
}

static bool check_entry(void *state, const char *name, const char *value, const char *metadata)
{
    size_t *count = state;
    check(name[0] != '\0' && value != NULL && (metadata == NULL || metadata[0] != '\0'));
    (*count)++;
    return true;
}

static size_t write_and_check(otel_baggage baggage, char text[OTELI_BAGGAGE_BYTES + 1])
{
    size_t count = 0;
    otel_baggage_each(baggage, check_entry, &count);
    check(count <= OTELI_BAGGAGE_MEMBERS && count == otel_baggage_count(baggage));
    memset(text, 'x', OTELI_BAGGAGE_BYTES + 1);
    const size_t length = oteli_baggage_format(baggage, text, OTELI_BAGGAGE_BYTES + 1);
    check(length <= OTELI_BAGGAGE_BYTES && strlen(text) == length);
    for (size_t i = 0; i < length; i++)
        check((text[i] >= ' ' || text[i] == '\t') && text[i] <= '~' && text[i] != '"' &&
              text[i] != '\\');
    return length;
}

/* The same entries, built one by one. */
struct copying {
    otel_baggage from;
    otel_baggage to;
};

static bool copy_entry(void *state, const char *name, const char *value, const char *metadata)
{
    static char whole[OTELI_BAGGAGE_BYTES + 1];
    struct copying *copying = state;
    const size_t length = otel_baggage_get(copying->from, name, whole, sizeof whole);
    check(length <= OTELI_BAGGAGE_BYTES && strncmp(whole, value, sizeof whole) == 0);
    copying->to = otel_baggage_set(copying->to, name, value, metadata);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char once[OTELI_BAGGAGE_BYTES + 1];
    static char twice[OTELI_BAGGAGE_BYTES + 1];
    struct oteli_baggage_builder builder;
    const char *at = (const char *)data;
    const char *end = at + size;
    oteli_baggage_begin(&builder, otel_baggage_none());
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (line_end == NULL)
            line_end = end;
        oteli_baggage_parse(&builder, at, (size_t)(line_end - at));
        at = line_end + (line_end < end);
    }
    const otel_baggage read = oteli_baggage_finish(&builder);
    const size_t length = write_and_check(read, once);

    oteli_baggage_begin(&builder, otel_baggage_none());
    oteli_baggage_parse(&builder, once, length);
    const otel_baggage again = oteli_baggage_finish(&builder);
    check(otel_baggage_count(again) == otel_baggage_count(read));
    check(write_and_check(again, twice) == length && memcmp(once, twice, length) == 0);

    struct copying copying = {.from = read};
    otel_baggage_each(read, copy_entry, &copying);
    check(otel_baggage_count(copying.to) == otel_baggage_count(read));
    return 0;
}
