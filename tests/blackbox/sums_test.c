/* SPDX-License-Identifier: Apache-2.0 */
/* What became of spans: each kind of outcome is counted where it belongs and nowhere else, what the
 * program decided (withheld) apart from what was lost (dropped), and the sums close. */
#include "blackbox.h"
#include <otel/exporter.h>
#include <otel/lines.h>

enum { QUEUE_SIZE = 16 };

static otel_tracer *tracer;

/* --- an exporter whose answer is the name of the span --- */

static bool is(otel_slice name, const char *text)
{
    return name.length == strlen(text) && memcmp(name.data, text, name.length) == 0;
}

static otel_export_result answer_by_name(void *state, otel_export *call)
{
    (void)state;
    for (size_t i = 0; i < otel_batch_size(call->batch); i++) {
        otel_span_view span;
        otel_batch_span(call->batch, i, &span);
        if (is(span.name, "rejected"))
            otel_export_reject(call, 1);
        else if (is(span.name, "spooled"))
            otel_export_spool(call, 1);
        else if (is(span.name, "refused"))
            otel_export_drop(call, OTEL_DROP_PERMANENT_ERROR, 1);
    }
    return OTEL_EXPORT_DONE;
}

static bool keep(void *state, const otel_tail *tail)
{
    (void)state;
    if (is(tail->name, "reentrant"))
        otel_span_end(otel_span_enter(tracer, "inside", NULL));
    return !is(tail->name, "unwanted");
}

static int start(void **state)
{
    (void)state;
    const otel_exporter exporter = {
        .size = sizeof exporter, .name = "by_name", .export_batch = answer_by_name};
    tracer = otel_tracer_get("sums", NULL);
    return otel_start_with(
               OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1, .tail_keep = keep,
                                .threadless = true, .bsp_max_queue_size = QUEUE_SIZE,
                                .bsp_max_export_batch_size = QUEUE_SIZE, .log_level = "none")) !=
           OTEL_OK;
}

/* --- the outcomes, two spans each, where nothing else is said --- */

static void end_two(const char *name)
{
    for (int i = 0; i < 2; i++)
        otel_span_end(otel_span_enter(tracer, name, NULL));
}

static void make_delivered(void)
{
    end_two("delivered");
}

static void make_rejected(void)
{
    end_two("rejected");
}

static void make_spooled(void)
{
    end_two("spooled");
}

static void make_refused(void)
{
    end_two("refused");
}

static void make_unsampled(void)
{
    const otel_span_context caller =
        otel_span_context_make((const uint8_t[16]){1}, (const uint8_t[8]){1}, 0, true, NULL);
    const otel_context parent =
        otel_context_with_span(otel_current_context(), otel_span_wrap(&caller));
    for (int i = 0; i < 2; i++)
        otel_span_end(otel_span_start(tracer, "a", OTEL_SPAN_OPTIONS(.parent = &parent)));
}

static void make_cancelled(void)
{
    otel_span_cancel(otel_span_enter(tracer, "alone", NULL));
    otel_span_cancel(otel_span_start(tracer, "alone", NULL));
}

static void make_cancelled_trace(void)
{
    const otel_span root = otel_span_enter(tracer, "root", OTEL_SPAN_OPTIONS(.hold = true));
    otel_span_end(otel_span_enter(tracer, "child", NULL));
    otel_span_cancel(root);
}

static void make_not_kept(void)
{
    const otel_span root = otel_span_enter(tracer, "unwanted", NULL);
    otel_span_end(otel_span_enter(tracer, "child", NULL));
    otel_span_end(root);
}

static void make_collected(void)
{
    const otel_span root = otel_span_enter(tracer, "root", OTEL_SPAN_OPTIONS(.hold = true));
    otel_span_end(otel_span_enter(tracer, "child", NULL));
    otel_lines_free(otel_span_collect(root));
}

static void make_too_short(void)
{
    for (int i = 0; i < 2; i++)
        otel_span_end_unless_shorter(otel_span_enter_address(tracer, (const void *)(uintptr_t)1),
                                     INT64_MAX);
}

static void make_late(void)
{
    otel_lines_begin();
    const otel_span open = otel_span_enter(tracer, "open", NULL);
    const otel_span above = otel_span_enter(tracer, "above", NULL);
    otel_lines *lines = otel_lines_end();
    otel_span_end(above);
    otel_span_end(open);
    otel_lines_free(lines);
}

static void make_unmounted(void)
{
    otel_lines_begin();
    end_two("collected");
    otel_lines_free(otel_lines_end());
}

static void *leave_open(void *unused)
{
    (void)unused;
    (void)otel_span_enter(tracer, "abandoned", NULL);
    (void)otel_span_enter(tracer, "abandoned", NULL);
    return NULL;
}

static void make_abandoned(void)
{
    run_in_thread(leave_open, NULL);
}

/* Fills the queue as well: those are delivered. */
static void make_queue_full(void)
{
    for (int i = 0; i < QUEUE_SIZE + 2; i++)
        otel_span_end(otel_span_enter(tracer, "many", NULL));
}

/* The two roots whose decisions start a span are delivered. */
static void make_reentrant(void)
{
    end_two("reentrant");
}

/* --- the books --- */

static otel_stats flushed_stats(void)
{
    assert_int_not_equal(otel_flush(PATIENCE_MS), OTEL_ERROR_TIMEOUT);
    return stats_now();
}

static void assert_closed(const otel_stats *stats)
{
    assert_sums_close(stats);
    assert_int_equal(stats->queued, 0);
}

#define WITHHELD(reason) offsetof(otel_stats, withheld[OTEL_WITHHELD_##reason])
#define DROPPED(reason) offsetof(otel_stats, dropped[OTEL_DROP_##reason])

static const struct {
    const char *name;
    void (*make)(void);
    size_t counter;     /* in otel_stats: where the two spans are counted */
    uint64_t delivered; /* and how many others are delivered with them */
} outcomes[] = {
    {"delivered", make_delivered, offsetof(otel_stats, delivered), 0},
    {"rejected", make_rejected, offsetof(otel_stats, rejected), 0},
    {"spooled", make_spooled, offsetof(otel_stats, spooled), 0},
    {"unsampled", make_unsampled, offsetof(otel_stats, unsampled), 0},
    {"cancelled", make_cancelled, WITHHELD(CANCELLED), 0},
    {"a cancelled trace", make_cancelled_trace, WITHHELD(CANCELLED), 0},
    {"not kept", make_not_kept, WITHHELD(NOT_KEPT), 0},
    {"collected", make_collected, WITHHELD(COLLECTED), 0},
    {"too short", make_too_short, WITHHELD(TOO_SHORT), 0},
    {"late", make_late, WITHHELD(LATE), 0},
    {"unmounted", make_unmounted, WITHHELD(UNMOUNTED), 0},
    {"refused", make_refused, DROPPED(PERMANENT_ERROR), 0},
    {"abandoned", make_abandoned, DROPPED(ABANDONED), 0},
    {"queue full", make_queue_full, DROPPED(QUEUE_FULL), QUEUE_SIZE},
    {"reentrant", make_reentrant, DROPPED(REENTRANT), 2},
};
enum { OUTCOMES = sizeof outcomes / sizeof outcomes[0] };

static uint64_t *counter_of(otel_stats *stats, size_t offset)
{
    return (uint64_t *)(void *)((char *)stats + offset);
}

static void test_each_outcome_is_counted_where_it_belongs(void **state)
{
    (void)state;
    for (size_t i = 0; i < OUTCOMES; i++) {
        otel_stats wanted = flushed_stats();
        outcomes[i].make();
        const otel_stats stats = flushed_stats();

        *counter_of(&wanted, outcomes[i].counter) += 2;
        wanted.delivered += outcomes[i].delivered;
        wanted.started += 2 + outcomes[i].delivered;
        if (outcomes[i].make != make_unsampled)
            wanted.ended += 2 + outcomes[i].delivered;
        wanted.batches = stats.batches;
        wanted.queued_bytes = stats.queued_bytes;
        assert_closed(&stats);
        if (memcmp(&stats, &wanted, sizeof stats) != 0)
            fail_msg("%s: counted elsewhere", outcomes[i].name);
    }
}

static void test_the_text_tells_withheld_from_dropped(void **state)
{
    (void)state;
    char text[512];
    make_delivered();
    make_cancelled();
    make_not_kept();
    otel_stats stats = flushed_stats();
    otel_stats_describe(&stats, text, sizeof text);
    assert_string_equal(text, "delivered 2, withheld 4 (cancelled 2, not_kept 2), dropped 0");

    make_refused();
    stats = flushed_stats();
    otel_stats_describe(&stats, text, sizeof text);
    assert_string_equal(text, "delivered 2, withheld 4 (cancelled 2, not_kept 2), dropped 2 "
                              "(permanent_error 2)");
}

/* A program built with a version whose struct was shorter: what lies behind it is not ours. */
static void test_the_text_reads_no_more_than_the_struct(void **state)
{
    (void)state;
    char text[512];
    otel_stats stats;
    memset(&stats, 0xff, sizeof stats);
    stats.size = offsetof(otel_stats, withheld);
    stats.delivered = 7;
    stats.rejected = stats.spooled = stats.queued = stats.open = stats.unsampled = 0;

    const size_t length = otel_stats_describe(&stats, text, sizeof text);
    assert_string_equal(text, "delivered 7, dropped 0");
    assert_int_equal(length, strlen(text));
    stats.size = 0;
    otel_stats_describe(&stats, text, sizeof text);
    assert_string_equal(text, "delivered 0, dropped 0");
}

/* Of all numbers with this name and an attribute of this key (NULL: whatever they have). */
static uint64_t metric_sum(const char *name, const char *key)
{
    uint64_t sum = 0;
    otel_metric metric = {.size = sizeof metric};
    for (size_t cursor = 0; otel_metric_next(&cursor, &metric);) {
        bool has_key = key == NULL;
        for (size_t i = 0; i < metric.attribute_count; i++)
            has_key |= key != NULL && strcmp(metric.attributes[i].key, key) == 0;
        if (strcmp(metric.name, name) == 0 && has_key)
            sum += metric.value;
    }
    return sum;
}

static void test_metrics_give_withheld_spans_no_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < OUTCOMES; i++) {
        outcomes[i].make();
        (void)flushed_stats();
    }
    const otel_stats stats = flushed_stats();
    const uint64_t withheld = all_withheld(&stats);

    assert_int_equal(withheld, 14);
    assert_int_equal(metric_sum("otel_c.span.withheld", "otel_c.withheld.reason"), withheld);
    assert_int_equal(metric_sum("otel_c.span.withheld", "error.type"), 0);
    assert_int_equal(metric_sum("otel.sdk.processor.span.processed", "error.type"),
                     all_lost(&stats) - stats.dropped[OTEL_DROP_PERMANENT_ERROR]);
    assert_int_equal(metric_sum("otel.sdk.processor.span.processed", NULL) + withheld, stats.ended);
    assert_int_equal(metric_sum("otel.sdk.exporter.span.exported", "error.type"),
                     stats.rejected + stats.dropped[OTEL_DROP_PERMANENT_ERROR]);
}

static int stop(void **state)
{
    (void)state;
    return otel_shutdown(PATIENCE_MS) == OTEL_ERROR_TIMEOUT;
}

static void test_what_is_open_at_the_end_is_lost(void **state)
{
    (void)state;
    const otel_span open = otel_span_start(tracer, "open", NULL);
    otel_stats stats = flushed_stats();
    assert_int_equal(stats.open, 1);
    assert_closed(&stats);

    assert_int_equal(otel_shutdown(PATIENCE_MS), OTEL_OK);
    otel_span_end(open);
    stats = stats_now();
    assert_int_equal(stats.open, 0);
    assert_int_equal(stats.dropped[OTEL_DROP_ALREADY_SHUTDOWN], 1);
    assert_closed(&stats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AROUND(test_each_outcome_is_counted_where_it_belongs),
        AROUND(test_the_text_tells_withheld_from_dropped),
        cmocka_unit_test(test_the_text_reads_no_more_than_the_struct),
        AROUND(test_metrics_give_withheld_spans_no_error),
        cmocka_unit_test_setup(test_what_is_open_at_the_end_is_lost, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
