/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/tracer_test.c - specification of tracers: one for each different scope. */
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"

#include "api/span/tracer.h"
#include "tests/support/unit.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>

enum { THREADS = 8 };

static void check_slice(otel_slice slice, const char *text)
{
    assert_int_equal(slice.length, strlen(text));
    if (slice.length != 0)
        assert_memory_equal(slice.data, text, slice.length);
}

AROUND_EACH(recorder_setup, recorder_teardown);

/* spec: A4 */
TEST(the_same_arguments_give_the_same_tracer)
{
    const otel_attribute attribute = otel_attribute_of("k", otel_value_int(1));
    otel_tracer *const tracers[] = {
        otel_tracer_get("a", NULL),
        otel_tracer_get("b", NULL),
        otel_tracer_get("a", "1"),
        otel_tracer_get("1", "a"),
        otel_tracer_get_with("a", NULL, OTEL_TRACER_OPTIONS(.schema_url = "http://s")),
        otel_tracer_get_with("a", NULL,
                             OTEL_TRACER_OPTIONS(.attributes = &attribute, .attribute_count = 1)),
    };
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(tracers[i], tracers[k]);
    assert_ptr_equal(otel_tracer_get("a", NULL), tracers[0]);
    assert_ptr_equal(otel_tracer_get("a", ""), tracers[0]);
    assert_ptr_equal(otel_tracer_get_with("a", NULL, OTEL_TRACER_OPTIONS(.schema_url = "")),
                     tracers[0]);
    assert_ptr_equal(otel_tracer_get("a", "1"), tracers[2]);
    assert_ptr_equal(
        otel_tracer_get_with("a", NULL,
                             OTEL_TRACER_OPTIONS(.attributes = &attribute, .attribute_count = 1)),
        tracers[5]);
    assert_ptr_equal(
        otel_tracer_get_with(
            "a", NULL, OTEL_TRACER_OPTIONS(.schema_url = "http://six", .schema_url_length = 8)),
        tracers[4]);
}

/* spec: A2 R8 */
TEST(a_scope_is_its_parts_and_its_message)
{
    const otel_attribute attributes[] = {otel_attribute_of("k", otel_value_int(1)),
                                         otel_attribute_of("k", otel_value_int(2)),
                                         otel_attribute_of("", otel_value_int(3))};
    const otel_tracer *tracer =
        otel_tracer_get_with("na\xffme", "1.0",
                             OTEL_TRACER_OPTIONS(.schema_url = "http://s/\xfe",
                                                 .attributes = attributes, .attribute_count = 3));
    check_slice(tracer->scope.name, "na\xef\xbf\xbdme");
    check_slice(tracer->scope.version, "1.0");
    check_slice(tracer->scope.schema_url, "http://s/\xef\xbf\xbd");
    check_slice(tracer->scope.attributes, "\x1a\x07\x0a\x01k\x12\x02\x18\x02");
    check_slice(tracer->scope.otlp, "\x0a\x07na\xef\xbf\xbdme\x12\x03"
                                    "1.0\x1a\x07\x0a\x01k\x12\x02\x18\x02");
}

/* spec: A3 */
TEST(a_tracer_without_a_name_works_and_is_said)
{
    recorder.logs = 0;
    otel_tracer *const tracer = otel_tracer_get(NULL, NULL);
    assert_non_null(tracer);
    assert_int_equal(recorder.logs, 1);
    assert_ptr_equal(otel_tracer_get("", NULL), tracer);
    check_slice(tracer->scope.otlp, "");
    otel_span_end(otel_span_enter(tracer, "span", NULL));
    assert_int_equal(recorder.count, 1);
}

TEST(without_memory_there_is_a_tracer_all_the_same)
{
    oteli_leaks_fail_at(1);
    errno = EPIPE;
    otel_tracer *const tracer = otel_tracer_get("name", NULL);
    assert_non_null(tracer);
    assert_int_equal(errno, EPIPE);
    otel_span_end(otel_span_enter(tracer, "span", NULL));
    assert_ptr_equal(recorder_span(0).tracer, tracer);
    assert_ptr_not_equal(otel_tracer_get("name", NULL), tracer);
}

static void *get_many(void *out)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    otel_tracer **tracers = out;
    for (size_t i = 0; i < 4; i++)
        tracers[i] = otel_tracer_get(names[i], "1");
    return NULL;
}

TEST(threads_that_ask_at_once_get_the_same)
{
    pthread_t threads[THREADS];
    otel_tracer *tracers[THREADS][4];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, get_many, tracers[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 1; i < THREADS; i++)
        assert_memory_equal(tracers[0], tracers[i], sizeof tracers[0]);
}
