/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/simple.c - the simple span processor: export each span on the thread that ends it.
 *
 * App threads, one at a time, under the engine's mutex, which is held while the exporter
 * works: every end waits. For tests, debugging and programs that end few spans.
 * Source: OpenTelemetry specification, trace/sdk.md "Simple processor". */
#include "common/clock.h"
#include "sdk/engine.h"

void oteli_simple_export_one(struct oteli_sdk *sdk, const void *record)
{
    struct oteli_engine *engine = (struct oteli_engine *)(void *)sdk;
    struct oteli_record *one = (struct oteli_record *)(uintptr_t)record;
    otel_batch batch = {.records = &one, .count = 1, .capacity = 1, .resource = &engine->resource};
    pthread_mutex_lock(&engine->mutex);
    if (engine->done) {
        oteli_export_drop_all(engine, OTEL_DROP_ALREADY_SHUTDOWN, 1);
    } else {
        oteli_clock_renew();
        oteli_record_convert(one);
        oteli_export_batch(engine, &batch);
        if (oteli_load_acquire_32(&engine->hangs) != 0) { /* otel_shutdown has not waited */
            oteli_export_fini(engine);
            oteli_store_release_32(&engine->done, 1);
        }
    }
    pthread_mutex_unlock(&engine->mutex);
}
