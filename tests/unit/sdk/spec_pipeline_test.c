/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/spec_pipeline_test.c - the rows of the specification about the simple processor
 * and exporters of the program. */
#include "sdk/engine/engine.h"
#include "tests/support/unit.h"
#include "tests/support/watcher.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 8, SPANS = 200 };

/* --- P3: the simple processor --- */

static struct {
    uint32_t exporting; /* atomic */
    uint32_t overlaps;
    uint32_t exports;
    uint32_t polls;
    bool is_pending;
    pthread_t thread;
    size_t resource_length;
    char schema_url[32]; /* of the resource */
    char name[16];
    uint32_t frees;
    uint32_t flushes;
    uint32_t is_held; /* atomic: an export goes on for as long as this is set */
} export;

static void look(const otel_batch *batch)
{
    otel_span_view span;
    assert_int_equal(otel_batch_size(batch), 1);
    otel_batch_span(batch, 0, &span);
    snprintf(export.name, sizeof export.name, "%.*s", (int)span.name.length, span.name.data);
    export.resource_length = otel_batch_resource(batch).length;
    const otel_slice url = otel_batch_resource_schema_url(batch);
    snprintf(export.schema_url, sizeof export.schema_url, "%.*s", (int)url.length, url.data);
    export.thread = pthread_self();
    assert_true(span.start_ns != 0 && span.end_ns >= span.start_ns);
    assert_memory_equal(span.scope->name.data, "traced", 6);
}

static otel_export_result export_batch(void *state, otel_export *call)
{
    (void)state;
    export.overlaps += oteli_exchange_full_32(&export.exporting, 1);
    look(call->batch);
    for (unsigned i = 0; i < 4; i++)
        sched_yield(); /* so that others could come in, if they were let in */
    while (oteli_load_acquire_32(&export.is_held) != 0)
        sched_yield();
    export.exports++;
    oteli_exchange_full_32(&export.exporting, 0);
    return export.is_pending ? OTEL_EXPORT_PENDING : OTEL_EXPORT_DONE;
}

static otel_export_result poll_export(void *state, otel_export *call, int timeout_ms, bool abandon)
{
    (void)state;
    (void)call;
    (void)timeout_ms;
    assert_false(abandon);
    return ++export.polls % 3 == 0 ? OTEL_EXPORT_DONE : OTEL_EXPORT_PENDING;
}

static otel_status flush_export(void *state, int64_t timeout_ms)
{
    (void)state;
    (void)timeout_ms;
    export.flushes++;
    return OTEL_OK;
}

static void free_export(void *state)
{
    (void)state;
    export.frees++;
}

static otel_exporter exporter_of_ours(void)
{
    memset(&export, 0, sizeof export);
    return OTEL_EXPORTER(.name = "ours", .export_batch = export_batch, .poll = poll_export,
                         .flush = flush_export, .free = free_export);
}

static otel_processor start_simple(otel_sdk_options *options)
{
    otel_processor simple;
    assert_int_equal(otel_simple_processor_new(exporter_of_ours(), &simple), OTEL_OK);
    options->processors = &simple;
    options->processor_count = 1;
    traced_start(options);
    return simple;
}

AROUND_EACH(watcher_setup, traced_teardown);

/* spec: P3 trace/sdk.md#simple-processor MUST stable */
TEST(P3_the_simple_processor_exports_on_the_thread_that_ends)
{
    (void)start_simple(&(otel_sdk_options){.resource_detectors = "none",
                                           .resource_schema_url = "https://example.com/1"});
    const otel_span span = watcher_enter("a");
    assert_int_equal(export.exports, 0);
    otel_span_end(span);
    assert_int_equal(export.exports, 1);
    assert_string_equal(export.name, "a");
    assert_true(pthread_equal(export.thread, pthread_self()));
    assert_true(export.resource_length != 0);
    assert_string_equal(export.schema_url, "https://example.com/1");
    export.is_pending = true;
    otel_span_end(watcher_begin("b"));
    assert_int_equal(export.polls, 3);
    assert_string_equal(export.name, "b");
    assert_int_equal(otel_flush(60000), OTEL_OK);
    assert_int_equal(export.flushes, 1);
    traced_stop();
    assert_int_equal(export.frees, 1);
    assert_int_equal(otel_memory_count(traced.memory), 2);
}

static void record_only(const void *state, const otel_sampling_query *query,
                        otel_sampling_result *result)
{
    (void)state;
    (void)query;
    result->decision = OTEL_SAMPLING_RECORD_ONLY;
}

/* spec: P3 trace/sdk.md#simple-processor MUST stable */
TEST(P3_the_simple_processor_exports_sampled_spans_only)
{
    const otel_sampler sampler = OTEL_SAMPLER(.sample = record_only);
    (void)start_simple(&(otel_sdk_options){.sampler = &sampler});
    otel_span_end(watcher_enter("a"));
    assert_int_equal(export.exports, 0);
}

static void *touch_many(void *unused)
{
    for (unsigned i = 0; i < SPANS; i++)
        traced_touch("a");
    return unused;
}

/* spec: P3 trace/sdk.md#simple-processor MUST stable */
TEST(P3_exports_of_a_simple_processor_do_not_overlap)
{
    (void)start_simple(
        &(otel_sdk_options){.bsp_max_queue_size = 8192, .resource_detectors = "none"});
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, touch_many, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(export.exports, THREADS * SPANS);
    assert_int_equal(export.overlaps, 0);
    assert_string_equal(export.schema_url, "");
}

static void *touch_once(void *unused)
{
    traced_touch("a");
    return unused;
}

/* An export of another thread may take as long as it likes, and a flush may not. */
TEST(a_simple_processor_does_not_flush_longer_than_it_may)
{
    pthread_t thread;
    const otel_processor simple = start_simple(&(otel_sdk_options){0});
    export.is_held = 1;
    assert_int_equal(pthread_create(&thread, NULL, touch_once, NULL), 0);
    while (oteli_load_acquire_32(&export.exporting) == 0)
        sched_yield();

    const otel_status held = simple.flush(simple.state, 0);
    oteli_store_release_32(&export.is_held, 0);
    pthread_join(thread, NULL);

    assert_int_equal(held, OTEL_ERROR_TIMEOUT);
    assert_int_equal(export.flushes, 0);
    assert_int_equal(simple.flush(simple.state, 60000), OTEL_OK);
    assert_int_equal(export.flushes, 1);
}

TEST(a_simple_processor_without_an_exporter_is_refused)
{
    otel_processor processor;
    otel_exporter exporter = exporter_of_ours();
    exporter.export_batch = NULL;
    assert_int_equal(otel_simple_processor_new(exporter, &processor), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(export.frees, 1);
    exporter = exporter_of_ours(); /* one that can do no more than export */
    exporter.flush = NULL;
    exporter.free = NULL;
    assert_int_equal(otel_simple_processor_new(exporter, &processor), OTEL_OK);
    assert_int_equal(processor.flush(processor.state, 60000), OTEL_OK);
    processor.free(processor.state);
}
