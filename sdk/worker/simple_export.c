/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/simple_export.c - the simple span processor: export each span on the thread that ends
 * it.
 *
 * App threads, one at a time, under the engine's mutex, which is held while the exporter
 * works: every end waits. For tests, debugging and programs that end few spans. The engine's
 * batch is used one span at a time, and whole for mounts.
 * Source: OpenTelemetry specification, trace/sdk.md "Simple processor". */
#include "sdk/worker/simple_export.h"
#include "sdk/pipeline/mount_expand.h"
#include "sdk/worker/export.h"
#include "sdk/worker/on_idle.h"

static void export_batch(struct oteli_engine *engine, uint64_t lost)
{
    otel_batch *batch = engine->batch;
    lost += oteli_expand_names(batch);
    if (lost != 0)
        oteli_engine_drop(engine, OTEL_DROP_NO_MEMORY, lost);
    if (batch->count != 0)
        oteli_export_batch(engine, batch);
    oteli_batch_empty(batch);
}

static void export_mount(struct oteli_engine *engine, struct oteli_record *record)
{
    bool is_done = false;
    while (!is_done) {
        uint64_t lost = 0;
        is_done = oteli_expand_mount(engine->batch, record, &lost);
        export_batch(engine, lost);
    }
}

static void export_record(struct oteli_engine *engine, struct oteli_record *record)
{
    oteli_engine_renew_clock(engine);
    if ((record->what & OTELI_RECORD_MOUNT) != 0) {
        export_mount(engine, record);
        return;
    }
    oteli_batch_add(engine->batch, record);
    export_batch(engine, 0);
}

static void drop_record(struct oteli_engine *engine, const struct oteli_record *record)
{
    oteli_engine_drop(engine, OTEL_DROP_ALREADY_SHUTDOWN, oteli_record_spans(record));
    if ((record->what & OTELI_RECORD_MOUNT) != 0)
        oteli_mount_discard(oteli_record_mount(record));
}

void oteli_simple_finish(struct oteli_engine *engine)
{
    oteli_export_flush(engine, oteli_load_acquire_64(&engine->stop_deadline_ns));
    oteli_export_fini(engine);
    oteli_store_release_32(&engine->done, 1);
}

/* otel_shutdown and the export that it has not waited for both come here, after the one has said
 * that the engine hangs and the other has let go of the mutex: with the fence between, at least one
 * of them sees what the other has done. */
void oteli_simple_finish_hanging(struct oteli_engine *engine)
{
    oteli_fence_full();
    if (oteli_load_acquire_32(&engine->hangs) == 0 || pthread_mutex_trylock(&engine->mutex) != 0)
        return;
    if (!engine->done)
        oteli_simple_finish(engine);
    pthread_mutex_unlock(&engine->mutex);
}

void oteli_simple_export_one(struct oteli_sdk *sdk, const void *record)
{
    struct oteli_engine *engine = (struct oteli_engine *)(void *)sdk;
    struct oteli_record *one = (struct oteli_record *)(uintptr_t)record;
    pthread_mutex_lock(&engine->mutex);
    if (engine->done) {
        drop_record(engine, one);
    } else {
        export_record(engine, one);
        (void)oteli_on_idle(engine); /* at its time, if that has come: no other thread would call */
    }
    pthread_mutex_unlock(&engine->mutex);
    oteli_simple_finish_hanging(engine);
}
