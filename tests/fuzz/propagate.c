/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/propagate.c - headers from anywhere: the first line is traceparent, each other
 * a tracestate. What is extracted must survive being injected and extracted again. */
#include <otel/propagate.h>
#include <otel/tracestate.h>

#include <stdlib.h>
#include <string.h>

struct headers {
    const char *text;
    size_t length;
};

static const char *get_line(void *carrier, const char *name, size_t index, size_t *length)
{
    const struct headers *headers = carrier;
    size_t wanted = strcmp(name, "traceparent") == 0 ? index * SIZE_MAX : index + 1;
    const char *at = headers->text;
    const char *end = at + headers->length;
    for (;;) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (wanted-- == 0) {
            *length = (size_t)((line_end != NULL ? line_end : end) - at);
            return at;
        }
        if (line_end == NULL)
            return NULL;
        at = line_end + 1;
    }
}

struct written {
    char traceparent[64];
    char tracestate[1024];
};

static void set(void *carrier, const char *name, const char *value, size_t length)
{
    struct written *written = carrier;
    const bool is_parent = strcmp(name, "traceparent") == 0;
    if (value[length] != '\0' || length >= (is_parent ? 64 : 1024))
        abort();
    memcpy(is_parent ? written->traceparent : written->tracestate, value, length + 1);
}

static const char *get_written(void *carrier, const char *name, size_t index, size_t *length)
{
    const struct written *written = carrier;
    const char *value =
        strcmp(name, "traceparent") == 0 ? written->traceparent : written->tracestate;
    *length = strlen(value);
    return index == 0 && *length != 0 ? value : NULL;
}

/* Whatever is set or removed, the result is valid: to remove nothing from it changes nothing. */
static void change(const char *tracestate, const char *text, size_t size)
{
    char key[300] = "";
    char value[300] = "";
    char result[OTEL_TRACESTATE_SIZE];
    char again[OTEL_TRACESTATE_SIZE];
    const size_t key_length = size / 2 < 299 ? size / 2 : 299;
    const size_t value_length = size - size / 2 < 299 ? size - size / 2 : 299;
    memcpy(key, text, key_length);
    memcpy(value, text + size / 2, value_length);
    for (int removes = 0; removes < 2; removes++) {
        const size_t length =
            removes ? otel_tracestate_remove(tracestate, key, result, sizeof result)
                    : otel_tracestate_set(tracestate, key, value, result, sizeof result);
        otel_tracestate_remove(result, "", again, sizeof again);
        if (length != strlen(result) || strcmp(result, again) != 0)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const otel_propagator *w3c = otel_propagator_trace_context();
    struct headers headers = {(const char *)data, size};
    const otel_context first = otel_propagator_extract(w3c, NULL, get_line, &headers);
    struct written once = {"", ""};
    otel_propagator_inject(w3c, &first, set, &once);
    const otel_context second = otel_propagator_extract(w3c, NULL, get_written, &once);
    struct written twice = {"", ""};
    otel_propagator_inject(w3c, &second, set, &twice);
    if (strcmp(once.traceparent, twice.traceparent) != 0 ||
        strcmp(once.tracestate, twice.tracestate) != 0)
        abort();
    const size_t half = size / 2 < 600 ? size / 2 : 600;
    char text[601] = "";
    memcpy(text, data, half);
    change(text, (const char *)data + half, size - half);
    change(once.tracestate, (const char *)data, size);
    return 0;
}
