/* SPDX-License-Identifier: Apache-2.0 */
/* Exceptions that leave otel_span_run take its context and its label back; those that leave
 * otel_profile_apply_checked leave a label that can be released. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <otel/memory.h>
#include <otel/otel.h>
#include <otel/profile.h>
#include <otel/profiler.h>

enum { THROWS = 2000 }; /* more than there are labels, and no more than the queue holds */

static void *fail(void *number)
{
    throw number;
}

static void check(bool is_right, const char *what)
{
    if (is_right)
        return;
    std::fprintf(stderr, "wrong: %s\n", what);
    std::exit(1);
}

static bool is_something_current()
{
    const otel_span_context context = otel_span_get_context(otel_current_span());
    return otel_span_context_is_valid(&context);
}

static void throw_through(otel_tracer *tracer, int *number)
{
    const otel_span span = otel_span_start(tracer, "request", nullptr);
    void *caught = nullptr;
    try {
        otel_span_run(span, fail, number);
    } catch (void *thrown) {
        caught = thrown;
    }
    otel_span_end(span);
    check(caught == number, "the exception arrives");
    check(!is_something_current(), "the context is detached");
}

static void throw_through_checked(int *number)
{
    const otel_profile_kv kv = {"key", "value"};
    otel_profile_label label = otel_profile_label_acquire(&kv, 1);
    void *caught = nullptr;
    try {
        otel_profile_apply_checked(&label, fail, number);
    } catch (void *thrown) {
        caught = thrown;
    }
    check(caught == number, "the exception arrives through a checked call");
    otel_profile_label_release(&label);
}

static otel_status keep_nothing(void *, const otel_profile *, int64_t)
{
    return OTEL_OK;
}

/* Without one that runs, all labels are empty. */
static otel_profiler *profiler_start()
{
    static int state;
    otel_profiler_options options = {};
    options.size = sizeof options;
    options.source = OTEL_PROFILER_SIGNAL;
    options.exporter.state = &state;
    options.exporter.export_profile = keep_nothing;
    otel_profiler *profiler = nullptr;
    check(otel_profiler_start(&options, &profiler) == OTEL_OK, "the profiler starts");
    return profiler;
}

static uint64_t labels_refused(otel_profiler *profiler)
{
    otel_profiler_stats stats = {};
    stats.size = sizeof stats;
    (void)otel_profiler_flush(profiler, 5000);
    check(otel_profiler_get_stats(profiler, &stats) == OTEL_OK, "statistics are read");
    return stats.labels_refused;
}

int main()
{
    otel_sdk_options options = {};
    options.size = sizeof options;
    otel_memory *memory = otel_memory_new();
    const otel_exporter exporter = otel_memory_exporter(memory);
    options.exporters = &exporter;
    options.exporter_count = 1;
    check(otel_start_with(&options) == OTEL_OK, "the SDK starts");
    otel_tracer *tracer = otel_tracer_get("run_throws", nullptr);
    otel_profiler *profiler = profiler_start();
    for (int i = 0; i < THROWS; i++) {
        throw_through(tracer, &i);
        throw_through_checked(&i);
    }
    check(labels_refused(profiler) == 0, "all labels are given back");
    check(otel_profiler_stop(profiler, 5000) == OTEL_OK, "the profiler stops");
    check(otel_shutdown(5000) == OTEL_OK, "the SDK stops");
    check(otel_memory_count(memory) == THROWS, "each span is exported");
    otel_memory_free(memory);
    return 0;
}
