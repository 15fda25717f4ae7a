/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/fake_exporter.c - see fake_exporter.h. */
#include "tests/support/fake_exporter.h"

#include "common/atomic.h"
#include "common/clock.h"

#include <string.h>

static void put(struct fake_exporter *fake, const char *text, size_t length)
{
    if (fake->text_length + length >= sizeof fake->text)
        return;
    memcpy(fake->text + fake->text_length, text, length);
    fake->text_length += length;
    fake->text[fake->text_length] = '\0';
}

static void remember(struct fake_exporter *fake, const otel_batch *batch)
{
    const size_t size = otel_batch_size(batch);
    otel_span_view span;
    if (fake->batches < FAKE_BATCHES)
        fake->sizes[fake->batches] = size;
    fake->batches++;
    fake->spans += size;
    if (size > fake->largest)
        fake->largest = size;
    for (size_t i = 0; i < size && fake->text_length + 2 < sizeof fake->text; i++) {
        otel_batch_span(batch, i, &span);
        if (i != 0)
            put(fake, " ", 1);
        put(fake, span.name.data, span.name.length);
    }
    put(fake, "|", 1);
}

static void answer(const struct fake_exporter *fake, otel_export *call)
{
    if (fake->reject != 0)
        otel_export_reject(call, fake->reject);
    if (fake->drop != 0)
        otel_export_drop(call, fake->drop_reason, fake->drop);
}

static otel_export_result export_batch(void *state, otel_export *call)
{
    struct fake_exporter *fake = state;
    remember(fake, call->batch);
    fake->deadline_ns = call->deadline_ns;
    fake->polls_left = fake->pending;
    oteli_fake_clock.monotonic_ns += fake->export_takes_ns;
    if (fake->during != NULL)
        fake->during(fake->context, call);
    if (fake->pending != 0)
        return OTEL_EXPORT_PENDING;
    answer(fake, call);
    return OTEL_EXPORT_DONE;
}

static otel_export_result poll_export(void *state, otel_export *call, int timeout_ms, bool abandon)
{
    struct fake_exporter *fake = state;
    (void)timeout_ms;
    fake->polls++;
    fake->abandoned += abandon;
    fake->deadline_ns = call->deadline_ns;
    oteli_fake_clock.monotonic_ns += fake->poll_takes_ns;
    if (abandon && fake->ignores_abandon)
        return OTEL_EXPORT_PENDING;
    if (!abandon && --fake->polls_left != 0)
        return OTEL_EXPORT_PENDING;
    answer(fake, call);
    return OTEL_EXPORT_DONE;
}

static void wake(void *state)
{
    struct fake_exporter *fake = state;
    oteli_add_full_32(&fake->wakes, 1);
}

static otel_status flush(void *state, int64_t timeout_ms)
{
    struct fake_exporter *fake = state;
    fake->flushes++;
    fake->flush_timeout_ms = timeout_ms;
    return fake->flush_status;
}

static void free_it(void *state)
{
    struct fake_exporter *fake = state;
    oteli_add_full_32(&fake->frees, 1);
}

otel_exporter fake_exporter(struct fake_exporter *fake)
{
    return OTEL_EXPORTER(.name = fake->name != NULL ? fake->name : "fake_exporter", .state = fake,
                         .export_batch = export_batch, .poll = poll_export, .wake = wake,
                         .flush = flush, .free = free_it);
}
