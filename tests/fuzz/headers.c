/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/headers.c - headers from anywhere, `name:value` on each line, for every propagator
 * by itself and for all of them together. What is extracted must survive being injected and
 * extracted again; so it must as environment variables. */
#include "tests/fuzz/fuzz.h"
#include <otel/ffi.h>
#include <otel/propagate.h>

#include <strings.h>

enum { HEADERS = 100, TEXT = 64 * 1024, BAGGAGE_MEMBERS = 64, BAGGAGE_BYTES = 8192 };

struct header {
    const char *name;
    const char *value;
    size_t length;
};

struct headers {
    struct header headers[HEADERS];
    size_t count;
    char text[TEXT]; /* of names and values that were set, each with a NUL */
    size_t used;
};

static const char *keep(struct headers *headers, const char *text, size_t length)
{
    fuzz_check(headers->used + length + 1 <= TEXT);
    char *at = headers->text + headers->used;
    memcpy(at, text, length);
    at[length] = '\0';
    headers->used += length + 1;
    return at;
}

static void add(struct headers *headers, const char *name, size_t name_length, const char *value,
                size_t length)
{
    if (headers->count == HEADERS)
        return;
    struct header *header = &headers->headers[headers->count++];
    header->name = keep(headers, name, name_length);
    header->value = keep(headers, value, length);
    header->length = length;
}

static void parse(struct headers *headers, const char *text, size_t size)
{
    headers->count = headers->used = 0;
    if (size > TEXT / 4)
        size = TEXT / 4;
    while (size != 0) {
        const char *newline = memchr(text, '\n', size);
        const size_t line = newline != NULL ? (size_t)(newline - text) : size;
        const char *colon = memchr(text, ':', line);
        if (colon != NULL && memchr(text, '\0', (size_t)(colon - text)) == NULL)
            add(headers, text, (size_t)(colon - text), colon + 1,
                line - (size_t)(colon - text) - 1);
        const size_t taken = line + (newline != NULL);
        text += taken;
        size -= taken;
    }
}

static const char *get(void *carrier, const char *name, size_t index, size_t *length)
{
    const struct headers *headers = carrier;
    for (size_t i = 0; i < headers->count; i++)
        if (strcasecmp(headers->headers[i].name, name) == 0 && index-- == 0) {
            *length = headers->headers[i].length;
            return headers->headers[i].value;
        }
    return NULL;
}

static void list(void *carrier, otel_visit_header *visit, void *state)
{
    const struct headers *headers = carrier;
    for (size_t i = 0; i < headers->count; i++)
        visit(state, headers->headers[i].name, strlen(headers->headers[i].name));
}

/* What is sent may stand in a header of HTTP, and ends where it says. */
static void set(void *carrier, const char *name, const char *value, size_t length)
{
    if (value[length] != '\0' || name[0] == '\0' ||
        (strcmp(name, "baggage") == 0 && length > BAGGAGE_BYTES))
        abort();
    for (size_t i = 0; i < length; i++)
        if ((value[i] < ' ' && value[i] != '\t') || value[i] > '~')
            abort();
    add(carrier, name, strlen(name), value, length);
}

struct copying {
    otel_baggage from, to;
};

static bool copy_entry(void *state, const otel_baggage_entry *entry)
{
    static char whole[BAGGAGE_BYTES + 1];
    struct copying *copying = state;
    const otel_slice name = entry->name, value = entry->value, metadata = entry->metadata;
    const size_t length = otel_baggage_get(copying->from, name.data, whole, sizeof whole);
    fuzz_check(name.length != 0 && length == value.length && length <= BAGGAGE_BYTES &&
               memcmp(whole, value.data, length) == 0);
    otel_baggage_set_p(&copying->to, &copying->to, name.data, name.length, value.data, value.length,
                       metadata.data, metadata.length);
    return true;
}

/* It is within the limits of W3C Baggage, and has as many entries when it is built one by one. */
static void check_baggage(otel_baggage baggage)
{
    struct copying copying = {baggage, otel_baggage_none()};
    otel_baggage_each(baggage, copy_entry, &copying);
    fuzz_check(otel_baggage_count(baggage) <= BAGGAGE_MEMBERS &&
               otel_baggage_count(copying.to) == otel_baggage_count(baggage));
}

static void through(const otel_propagator *propagator, struct headers *from, struct headers *to)
{
    const otel_carrier_reader reader = {get, list, from};
    const otel_context empty = {0};
    const otel_context context = otel_propagator_extract_from(propagator, &empty, &reader);
    check_baggage(otel_context_baggage(&context));
    to->count = to->used = 0;
    otel_propagator_inject(propagator, &context, set, to);
}

static void compare(const struct headers *one, const struct headers *other)
{
    fuzz_check(one->count == other->count);
    for (size_t i = 0; i < one->count; i++)
        if (strcmp(one->headers[i].name, other->headers[i].name) != 0 ||
            one->headers[i].length != other->headers[i].length ||
            strcmp(one->headers[i].value, other->headers[i].value) != 0)
            abort();
}

/* The variables that are made of headers are as good as those. */
static void through_environment(const otel_propagator *propagator, struct headers *sent)
{
    static struct headers again;
    static const char *const nothing[] = {NULL};
    const otel_carrier_reader reader = {get, list, sent};
    const otel_context empty = {0};
    const otel_context context = otel_propagator_extract_from(propagator, &empty, &reader);
    otel_propagator_set(propagator);
    char **child = otel_environment_for_child(&context, nothing);
    fuzz_check(child != NULL);
    const otel_context read =
        otel_propagator_extract(propagator, &empty, otel_environment_get, child);
    again.count = again.used = 0;
    otel_propagator_inject(propagator, &read, set, &again);
    free(child);
    compare(sent, &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct headers given;
    static struct headers once;
    static struct headers twice;
    static otel_composite_propagator composite;
    const otel_propagator *all[] = {
        otel_propagator_b3(),      otel_propagator_b3_multi(),      otel_propagator_jaeger(),
        otel_propagator_baggage(), otel_propagator_trace_context(), NULL};
    all[5] = otel_propagator_compose(&composite, all, 5);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        parse(&given, (const char *)data, size);
        through(all[i], &given, &once);
        through(all[i], &once, &twice);
        compare(&once, &twice);
        if (i != 2 && i != 5) /* Jaeger's baggage has names that variables cannot have */
            through_environment(all[i], &once);
    }
    return 0;
}
