/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exporters/memory_fork_test.c - what a forked child finds behind a handle of
 * otel/memory.h. The batches are made by hand, so that there is no SDK to fork. */
#include "sdk/view/span_view.h"
#include "tests/support/batch_double.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include "tests/support/wire_text.h"

#include <otel/memory.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const otel_scope_view scope;
static pthread_barrier_t *inside_export; /* where an export waits twice, locked; or NULL */

/* What the SDK would do, on the double's bytes. */
void otel_batch_span(const otel_batch *batch, size_t index, otel_span_view *span)
{
    const otel_scope_view *of_span;
    const otel_slice otlp = otel_batch_span_otlp(batch, index, &of_span);
    oteli_span_view_fill(span, otlp, of_span);
    if (inside_export != NULL) {
        pthread_barrier_wait(inside_export);
        pthread_barrier_wait(inside_export);
    }
}

static struct export_double export_one(otel_memory *memory, const char *name)
{
    struct batch_double batch = {.resource = {"\x10\x01", 2}};
    const otel_slice span = wire_text("1x%032x 2x%016x 5'%s'", 1, 1, name);
    batch_double_add(&batch, &scope, span.data, span.length);
    struct export_double call = export_double_of(&batch, UINT64_MAX);
    const otel_exporter exporter = otel_memory_exporter(memory);
    (void)exporter.export_batch(exporter.state, &call.export);
    batch_double_fini(&batch);
    return call;
}

static bool is(otel_slice slice, const char *text)
{
    return slice.length == strlen(text) && memcmp(slice.data, text, slice.length) == 0;
}

/* 0, or the number of the step that failed, behind those of the generations before. */
static int export_in_child(otel_memory *memory, int generations)
{
    otel_span_view span;
    int status = 0;
    if (otel_memory_count(memory) != 0 || otel_memory_span(memory, 0, &span) ||
        otel_memory_resource(memory).length != 0)
        return 1; /* something is there that is not the child's */
    otel_memory_clear(memory);
    (void)export_one(memory, "child");
    (void)export_one(memory, "again");
    if (otel_memory_count(memory) != 2 || !otel_memory_span(memory, 1, &span) ||
        !is(span.name, "again") || otel_memory_resource(memory).length == 0)
        return 2;
    const pid_t grandchild = generations > 1 ? fork() : -1;
    if (grandchild == 0) {
        const int failed = export_in_child(memory, generations - 1);
        _exit(failed != 0 ? failed + 10 : 0);
    }
    if (grandchild > 0 && waitpid(grandchild, &status, 0) != grandchild)
        return 3;
    if (otel_memory_count(memory) != 2)
        return 4;
    otel_memory_clear(memory);
    return otel_memory_count(memory) == 0 ? WEXITSTATUS(status) : 5;
}

TEST(a_child_has_a_store_of_its_own)
{
    otel_span_view span;
    oteli_leaks_begin();
    otel_memory *memory = otel_memory_new();
    (void)export_one(memory, "first");
    assert_true(otel_memory_span(memory, 0, &span));

    const pid_t child = fork();
    if (child == 0) {
        int failed = export_in_child(memory, 3);
        if (failed == 0 && !is(span.name, "first"))
            failed = 8;
        otel_memory_free(memory);
        if (failed == 0 && oteli_leaks_live() != 0)
            failed = 9;
        _exit(failed);
    }

    check_forked(child);
    (void)export_one(memory, "third");
    assert_int_equal(otel_memory_count(memory), 2);
    otel_memory_free(memory);
    oteli_leaks_check();
}

static void *export_slowly(void *memory)
{
    (void)export_one(memory, "slow.");
    return NULL;
}

TEST(a_store_that_was_locked_at_the_fork_holds_nobody_up)
{
    pthread_t thread;
    pthread_barrier_t barrier;
    oteli_leaks_begin();
    otel_memory *memory = otel_memory_new();
    pthread_barrier_init(&barrier, NULL, 2);
    inside_export = &barrier;
    assert_int_equal(pthread_create(&thread, NULL, export_slowly, memory), 0);
    pthread_barrier_wait(&barrier);

    const pid_t child = fork();
    if (child == 0) {
        inside_export = NULL;
        const int failed = export_in_child(memory, 1);
        otel_memory_free(memory);
        _exit(failed);
    }

    check_forked(child);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    inside_export = NULL;
    pthread_barrier_destroy(&barrier);
    assert_int_equal(otel_memory_count(memory), 1);
    otel_memory_free(memory);
    oteli_leaks_check();
}
