/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/fake_exporter.c - see fake_exporter.h. */
#include "tests/support/fake_exporter.h"

#include "common/base/atomic.h"
#include "common/clock/clock.h"

#include <string.h>

static void put(char *all, size_t *all_length, const char *text, size_t length)
{
    if (*all_length + length >= FAKE_TEXT)
        return;
    memcpy(all + *all_length, text, length);
    *all_length += length;
    all[*all_length] = '\0';
}

static void put_names(char *all, size_t *all_length, const otel_batch *batch)
{
    otel_span_view span;
    for (size_t i = 0; i < otel_batch_size(batch) && *all_length + 2 < FAKE_TEXT; i++) {
        otel_batch_span(batch, i, &span);
        if (i != 0)
            put(all, all_length, " ", 1);
        put(all, all_length, span.name.data, span.name.length);
    }
    put(all, all_length, "|", 1);
}

static void note_call(struct fake_exporter *fake, char call)
{
    if (fake->call_count + 1 < sizeof fake->calls)
        fake->calls[fake->call_count++] = call;
}

static void remember(struct fake_exporter *fake, const otel_batch *batch)
{
    const size_t size = otel_batch_size(batch);
    if (fake->batches < FAKE_BATCHES)
        fake->sizes[fake->batches] = size;
    fake->batches++;
    fake->spans += size;
    if (size > fake->largest)
        fake->largest = size;
    put_names(fake->text, &fake->text_length, batch);
}

static void answer(const struct fake_exporter *fake, otel_export *call)
{
    if (fake->reject != 0)
        otel_export_reject(call, fake->reject);
    if (fake->spool != 0)
        otel_export_spool(call, fake->spool);
    if (fake->drop != 0)
        otel_export_drop(call, fake->drop_reason, fake->drop);
}

static otel_export_result export_batch(void *state, otel_export *call)
{
    struct fake_exporter *fake = state;
    note_call(fake, 'E');
    fake->overlaps += fake->is_pending;
    fake->unprepared += fake->is_prepared && (fake->prepared != call->batch ||
                                              fake->prepared_size != otel_batch_size(call->batch));
    fake->is_prepared = false;
    fake->is_pending = fake->pending != 0;
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
    note_call(fake, abandon ? 'A' : 'o');
    fake->polls++;
    fake->waits += timeout_ms != 0;
    fake->abandoned += abandon;
    fake->deadline_ns = call->deadline_ns;
    oteli_fake_clock.monotonic_ns += fake->poll_takes_ns;
    if (abandon)
        fake->is_pending = false;
    if (abandon && fake->ignores_abandon)
        return OTEL_EXPORT_PENDING;
    if (!abandon && --fake->polls_left != 0)
        return OTEL_EXPORT_PENDING;
    fake->is_pending = false;
    answer(fake, call);
    return OTEL_EXPORT_DONE;
}

static void prepare(void *state, const otel_batch *next)
{
    struct fake_exporter *fake = state;
    size_t length = 0;
    note_call(fake, 'P');
    fake->prepares++;
    fake->is_prepared = true;
    fake->prepared = next;
    fake->prepared_size = otel_batch_size(next);
    put_names(fake->prepared_text, &length, next);
}

static int descriptor(void *state, int *timeout_ms)
{
    const struct fake_exporter *fake = state;
    *timeout_ms = fake->descriptor_timeout_ms;
    return fake->descriptor_fd;
}

static int attend(void *state)
{
    struct fake_exporter *fake = state;
    note_call(fake, 'T');
    fake->overlaps += fake->is_pending;
    oteli_add_full_32(&fake->attended, 1);
    return fake->attend_ms;
}

static void wake(void *state)
{
    struct fake_exporter *fake = state;
    oteli_add_full_32(&fake->wakes, 1);
}

static otel_status flush(void *state, int64_t timeout_ms)
{
    struct fake_exporter *fake = state;
    note_call(fake, 'F');
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
                         .flush = flush, .free = free_it, .prepare = prepare,
                         .descriptor = fake->has_descriptor ? descriptor : NULL,
                         .attend = fake->attends ? attend : NULL);
}
