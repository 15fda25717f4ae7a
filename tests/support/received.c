/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/received.c - the contracts are in received.h. */
#include "tests/support/received.h"

#include "common/wire.h"
#include "tests/support/strict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct {
    struct one {
        otel_slice bytes;
        received_pb_span *span;
    } * spans;
    size_t count, room;
    otel_slice resource, scope;
    size_t logs;
    char last_log[512];
} received;

static void refuse(const char *problem, const void *bytes, size_t length)
{
    fprintf(stderr, "refused: %s\n", problem);
    for (size_t i = 0; i < length && i < 4096; i++)
        fprintf(stderr, "%02x", ((const uint8_t *)bytes)[i]);
    fprintf(stderr, "\n");
    abort();
}

static otel_slice copy_of(otel_slice slice)
{
    char *copy = malloc(slice.length + 1);
    if (copy == NULL)
        abort();
    memcpy(copy, slice.data, slice.length);
    copy[slice.length] = '\0';
    return (otel_slice){copy, slice.length};
}

static void forget(otel_slice *slice)
{
    free((void *)(uintptr_t)slice->data);
    *slice = (otel_slice){NULL, 0};
}

static void receive(otel_slice otlp)
{
    const uint8_t *bytes = (const uint8_t *)otlp.data;
    const char *problem =
        strict_problem(&opentelemetry__proto__trace__v1__span__descriptor, bytes, otlp.length);
    if (problem != NULL)
        refuse(problem, bytes, otlp.length);
    received_pb_span *span =
        opentelemetry__proto__trace__v1__span__unpack(NULL, otlp.length, bytes);
    if (span == NULL)
        refuse("protobuf-c does not unpack it", bytes, otlp.length);
    if (received.count == received.room) {
        received.room = received.room != 0 ? received.room * 2 : 64;
        received.spans = realloc(received.spans, received.room * sizeof *received.spans);
        if (received.spans == NULL)
            abort();
    }
    received.spans[received.count++] = (struct one){copy_of(otlp), span};
}

static otel_export_result export_batch(void *state, otel_export *call)
{
    (void)state;
    for (size_t i = 0; i < otel_batch_size(call->batch); i++) {
        otel_span_view view;
        otel_batch_span(call->batch, i, &view);
        receive(view.otlp);
        forget(&received.scope);
        received.scope = copy_of(view.scope->attributes);
    }
    forget(&received.resource);
    received.resource = copy_of(otel_batch_resource(call->batch));
    return OTEL_EXPORT_DONE;
}

static void note(void *state, otel_log_level level, const char *message)
{
    (void)state;
    if (level > OTEL_LOG_WARN)
        return;
    received.logs++;
    snprintf(received.last_log, sizeof received.last_log, "%s", message);
}

void received_start(otel_sdk_options *options)
{
    const otel_exporter exporter = OTEL_EXPORTER(.name = "received", .export_batch = export_batch);
    otel_sdk_options none = {.size = sizeof none};
    options = options != NULL ? options : &none;
    options->exporters = &exporter;
    options->exporter_count = 1;
    options->simple = true;
    otel_log_set_handler(note, NULL);
    received.logs = 0;
    if (otel_start_with(options) != OTEL_OK)
        refuse("the SDK does not start", NULL, 0);
}

void received_stop(void)
{
    const otel_status status = otel_shutdown(60000);
    otel_log_set_handler(NULL, NULL);
    if (status != OTEL_OK)
        refuse("the SDK does not stop", NULL, 0);
    for (size_t i = 0; i < received.count; i++) {
        forget(&received.spans[i].bytes);
        opentelemetry__proto__trace__v1__span__free_unpacked(received.spans[i].span, NULL);
    }
    free(received.spans);
    forget(&received.resource);
    forget(&received.scope);
    memset(&received, 0, sizeof received);
}

size_t received_count(void)
{
    return received.count;
}

size_t received_logs(void)
{
    return received.logs;
}

const char *received_last_log(void)
{
    return received.last_log;
}

const received_pb_span *received_span(size_t index)
{
    if (index >= received.count)
        refuse("there is no such span", NULL, 0);
    return received.spans[index].span;
}

otel_slice received_bytes(size_t index)
{
    (void)received_span(index);
    return received.spans[index].bytes;
}

otel_slice received_resource(void)
{
    return received.resource;
}

otel_slice received_scope(void)
{
    return received.scope;
}

bool received_part(otel_slice message, uint32_t number, size_t nth, otel_slice *part)
{
    const uint8_t *at = (const uint8_t *)message.data;
    const uint8_t *end = at + message.length;
    struct oteli_field field;
    while (oteli_next_field(&at, end, &field)) {
        if (field.number != number || nth-- != 0)
            continue;
        *part = (otel_slice){(const char *)field.bytes, field.length};
        return true;
    }
    return false;
}

bool received_value(otel_slice message, uint32_t number, const char *key, size_t key_length,
                    otel_slice *any_value)
{
    otel_slice pair;
    otel_slice found;
    for (size_t i = 0; received_part(message, number, i, &pair); i++)
        if (received_part(pair, 1, 0, &found) && found.length == key_length &&
            memcmp(found.data, key, key_length) == 0)
            return received_part(pair, 2, 0, any_value);
    return false;
}

void received_check(otel_slice message, uint32_t number, const char *key, otel_value value,
                    size_t length_limit, unsigned depth_limit)
{
    const struct strict_bytes expected = strict_value(&value, length_limit, depth_limit);
    otel_slice any = {NULL, 0};
    assert_true(received_value(message, number, key, strlen(key), &any));
    assert_int_equal(any.length, expected.length);
    if (any.length != 0)
        assert_memory_equal(any.data, expected.data, any.length);
    free(expected.data);
}

int received_begin(void **state)
{
    (void)state;
    received_start(NULL);
    return 0;
}

int received_end(void **state)
{
    (void)state;
    received_stop();
    return 0;
}
