/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/event_loop_test.c - examples/event_loop.c, run as it is, and then looked
 * at: is every request's trace what it should be, and was the thread's context empty whenever
 * the loop waited?
 *
 * The example's calls of otel_start, otel_shutdown and epoll_wait come here first (--wrap). */
#include <otel/memory.h>
#include <otel/otel.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <cmocka.h>

enum { REQUESTS = 2000, SPANS_EACH = 5 };

int event_loop_main(int argc, char **argv);
otel_status __wrap_otel_start(const otel_sdk_options *options);
otel_status __wrap_otel_shutdown(int64_t timeout_ms);
otel_status __real_otel_shutdown(int64_t timeout_ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms);
int __real_epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms);

static otel_memory *memory;
static size_t waits, waits_with_current_span;
static uint64_t most_open;
static bool has_current_span_at_end;

static bool has_current_span(void)
{
    const otel_span_context current = otel_span_get_context(otel_current_span());
    return otel_span_context_is_valid(&current);
}

otel_status __wrap_otel_start(const otel_sdk_options *options)
{
    otel_sdk_options chosen = *options;
    const otel_exporter exporter = otel_memory_exporter(memory);
    chosen.exporters = &exporter;
    chosen.exporter_count = 1;
    return otel_start_with(&chosen);
}

otel_status __wrap_otel_shutdown(int64_t timeout_ms)
{
    has_current_span_at_end = has_current_span();
    return __real_otel_shutdown(timeout_ms);
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms)
{
    otel_stats stats = {.size = sizeof stats};
    if (otel_stats_read(0, &stats) == OTEL_OK && stats.open > most_open)
        most_open = stats.open;
    waits++;
    waits_with_current_span += has_current_span();
    return __real_epoll_wait(fd, events, count, timeout_ms);
}

/* ---- the traces ------------------------------------------------------------------------------ */

static int by_trace(const void *left, const void *right)
{
    const otel_span_view *a = left;
    const otel_span_view *b = right;
    const int order = memcmp(a->trace_id, b->trace_id, 16);
    if (order != 0)
        return order;
    return memcmp(a->name.data, b->name.data,
                  a->name.length < b->name.length ? a->name.length : b->name.length);
}

static void assert_name(const otel_span_view *span, const char *name, otel_span_kind kind)
{
    assert_int_equal(span->name.length, strlen(name));
    assert_memory_equal(span->name.data, name, span->name.length);
    assert_int_equal(span->kind, kind);
}

static void assert_child(const otel_span_view *span, const otel_span_view *parent)
{
    assert_memory_equal(span->trace_id, parent->trace_id, 16);
    assert_non_null(span->parent_span_id);
    assert_memory_equal(span->parent_span_id, parent->span_id, 8);
    assert_true(span->start_ns >= parent->start_ns && span->end_ns <= parent->end_ns);
}

/* The integer under a key; -1: there is none. */
static int64_t number_of(const otel_span_view *span, const char *key)
{
    otel_slice rest = span->attributes;
    otel_attribute_view attribute;
    while (otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute))
        if (attribute.key.length == strlen(key) &&
            memcmp(attribute.key.data, key, attribute.key.length) == 0)
            return attribute.value.integer;
    return -1;
}

/* The spans of one request, by their names; its number. */
static int64_t assert_request(const otel_span_view *spans)
{
    const otel_span_view *request = &spans[0];
    assert_name(request, "GET /orders", OTEL_SPAN_KIND_SERVER);
    assert_null(request->parent_span_id);
    assert_name(&spans[1], "look up tax", OTEL_SPAN_KIND_INTERNAL);
    assert_name(&spans[2], "price order", OTEL_SPAN_KIND_INTERNAL);
    assert_name(&spans[3], "read order", OTEL_SPAN_KIND_CLIENT);
    assert_name(&spans[4], "write invoice", OTEL_SPAN_KIND_CLIENT);
    assert_child(&spans[1], &spans[2]);
    assert_child(&spans[2], request);
    assert_child(&spans[3], request);
    assert_child(&spans[4], request);
    assert_true(spans[3].end_ns <= spans[2].start_ns && spans[2].end_ns <= spans[4].start_ns);
    const int64_t id = number_of(request, "request.id");
    assert_int_equal(number_of(&spans[1], "item"), id);
    assert_int_equal(number_of(&spans[3], "request.id"), id);
    assert_int_equal(number_of(&spans[4], "request.id"), id);
    return id;
}

static void test_each_request_has_a_trace_of_its_own(void **state)
{
    (void)state;
    static otel_span_view spans[REQUESTS * SPANS_EACH];
    static bool seen[REQUESTS];
    assert_int_equal(otel_memory_count(memory), REQUESTS * SPANS_EACH);
    for (size_t i = 0; i < REQUESTS * SPANS_EACH; i++)
        assert_true(otel_memory_span(memory, i, &spans[i]));
    qsort(spans, REQUESTS * SPANS_EACH, sizeof spans[0], by_trace);

    for (size_t i = 0; i < REQUESTS; i++) {
        const int64_t id = assert_request(&spans[i * SPANS_EACH]);
        assert_true(id >= 0 && id < REQUESTS && !seen[id]);
        seen[id] = true;
    }
}

static void test_they_were_open_at_the_same_time(void **state)
{
    (void)state;
    assert_true(most_open > REQUESTS);
}

static void test_nothing_was_current_between_their_steps(void **state)
{
    (void)state;
    assert_true(waits > 10);
    assert_int_equal(waits_with_current_span, 0);
    assert_false(has_current_span_at_end);
}

static void test_every_span_was_delivered(void **state)
{
    (void)state;
    otel_stats stats = {.size = sizeof stats};
    assert_int_equal(otel_stats_read(0, &stats), OTEL_OK);
    assert_int_equal(stats.started, REQUESTS * SPANS_EACH);
    assert_int_equal(stats.delivered, REQUESTS * SPANS_EACH);
    assert_int_equal(stats.open, 0);
}

static int run_example(void **state)
{
    (void)state;
    char *arguments[] = {(char[]){"event_loop"}, (char[]){"2000"}, NULL};
    memory = otel_memory_new();
    return memory == NULL || event_loop_main(2, arguments) != 0;
}

static int free_memory(void **state)
{
    (void)state;
    otel_memory_free(memory);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_request_has_a_trace_of_its_own),
        cmocka_unit_test(test_they_were_open_at_the_same_time),
        cmocka_unit_test(test_nothing_was_current_between_their_steps),
        cmocka_unit_test(test_every_span_was_delivered),
    };
    return cmocka_run_group_tests_name("event_loop", tests, run_example, free_memory);
}
