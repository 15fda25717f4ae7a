/* SPDX-License-Identifier: Apache-2.0 */
/* What the OTLP exporter makes of the batch that comes next while an export is pending. */
#include "tests/support/leaks.h"
#include "tests/support/otlp_fixture.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)

static const otel_scope_view scope = {.otlp = {"\x0a\x04shop", 6}};

/* {resource{10 01}, scope_spans{scope{shop}, a span}}: 23 bytes, the name is the last three. */
static void add(struct batch_double *batch, const char *name)
{
    char span[] = "\x2a\x03...";
    memcpy(span + 2, name, 3);
    batch->resource = (otel_slice){"\x10\x01", 2};
    batch_double_add(batch, &scope, span, sizeof span - 1);
}

static void prepare(struct fixture *fixture, const struct batch_double *batch)
{
    fixture->exporter.prepare(fixture->exporter.state, batch_double_view(batch));
}

static otel_export_result start(struct fixture *fixture, const struct batch_double *batch)
{
    fixture->call = export_double_of(batch, UINT64_MAX);
    return fixture->exporter.export_batch(fixture->exporter.state, &fixture->call.export);
}

static void deliver(struct fixture *fixture, const struct batch_double *batch)
{
    if (start(fixture, batch) == OTEL_EXPORT_PENDING)
        fixture_finish(fixture);
}

static void abandon(struct fixture *fixture)
{
    assert_int_equal(
        fixture->exporter.poll(fixture->exporter.state, &fixture->call.export, 0, true),
        OTEL_EXPORT_DONE);
}

static void assert_ends_with(struct fixture *fixture, size_t request, const char *name)
{
    const struct http_sink_request *got = http_sink_request(fixture->sink, request);
    const size_t length = strlen(name);
    assert_true(got->body_length > length);
    assert_memory_equal(got->body + got->body_length - length, name, length);
}

/* A span that changes afterwards shows when it was read. */
TEST(it_is_encoded_meanwhile)
{
    struct fixture fixture;
    fixture_init(&fixture, NULL, 0, NULL);
    batch_double_fini(&fixture.batch);
    add(&fixture.batch, "one");

    prepare(&fixture, &fixture.batch);
    memcpy(fixture.batch.spans[0].bytes + 2, "two", 3);
    fixture_deliver(&fixture);
    fixture_deliver(&fixture);

    assert_all_delivered(&fixture);
    assert_ends_with(&fixture, 0, "one");
    assert_ends_with(&fixture, 1, "two");
    fixture_fini(&fixture);
}

TEST(the_pending_request_can_still_be_sent_again)
{
    static const struct http_sink_answer script[] = {{.status = 503}, {.status = 503}};
    struct fixture fixture;
    struct batch_double next = {0};
    fixture_init(&fixture, script, COUNT(script), NULL);
    for (int i = 0; i < 100; i++)
        add(&next, "nxt");
    assert_false(fixture_export(&fixture));

    prepare(&fixture, &next);
    fixture_finish_fast(&fixture);
    assert_all_delivered(&fixture);
    deliver(&fixture, &next);

    assert_all_delivered(&fixture);
    assert_int_equal(http_sink_requests(fixture.sink), 4);
    for (size_t i = 0; i < 3; i++)
        assert_ends_with(&fixture, i, "\x12\x07\x2a\x05three");
    assert_ends_with(&fixture, 3, "\x12\x05\x2a\x03nxt");
    assert_true(http_sink_request(fixture.sink, 3)->body_length > 700);
    batch_double_fini(&next);
    fixture_fini(&fixture);
}

/* Two spans of three letters make a request of 30 bytes. */
TEST(both_can_need_several_requests)
{
    static const char *const names[] = {"aaa", "bbb", "ccc", "ddd", "eee", "fff", "ggg"};
    struct fixture fixture;
    struct batch_double next = {0};
    fixture_init(&fixture, NULL, 0, OPTIONS(.max_request_bytes = 30));
    batch_double_fini(&fixture.batch);
    for (size_t i = 0; i < COUNT(names); i++)
        add(i < 4 ? &fixture.batch : &next, names[i]);
    assert_false(fixture_export(&fixture));

    prepare(&fixture, &next);
    fixture_finish(&fixture);
    deliver(&fixture, &next);

    assert_all_delivered(&fixture);
    assert_int_equal(http_sink_requests(fixture.sink), 4);
    assert_ends_with(&fixture, 0,
                     "\x12\x05\x2a\x03"
                     "aaa"
                     "\x12\x05\x2a\x03"
                     "bbb");
    assert_ends_with(&fixture, 1,
                     "\x12\x05\x2a\x03"
                     "ccc"
                     "\x12\x05\x2a\x03"
                     "ddd");
    assert_ends_with(&fixture, 2,
                     "\x12\x05\x2a\x03"
                     "eee"
                     "\x12\x05\x2a\x03"
                     "fff");
    assert_ends_with(&fixture, 3,
                     "\x12\x05\x2a\x03"
                     "ggg");
    batch_double_fini(&next);
    fixture_fini(&fixture);
}

TEST(a_span_that_is_too_large_is_reported_by_its_own_export)
{
    struct fixture fixture;
    struct batch_double next = {0};
    fixture_init(&fixture, NULL, 0, OPTIONS(.max_request_bytes = 24));
    batch_double_fini(&fixture.batch);
    add(&fixture.batch, "fst");
    batch_double_add(&next, &scope, "\x2a\x05large", 7);
    add(&next, "snd");
    assert_false(fixture_export(&fixture));

    prepare(&fixture, &next);
    fixture_finish(&fixture);
    assert_all_delivered(&fixture);
    assert_string_equal(fixture.log, "");
    deliver(&fixture, &next);

    assert_only_dropped(&fixture, OTEL_DROP_TOO_LARGE, 1);
    assert_int_equal(http_sink_requests(fixture.sink), 2);
    assert_ends_with(&fixture, 1, "snd");
    batch_double_fini(&next);
    fixture_fini(&fixture);
}

/* There may be memory again by then. */
TEST(without_memory_it_is_encoded_when_its_turn_comes)
{
    for (size_t nth = 1;; nth++) {
        struct fixture fixture;
        fixture_init(&fixture, NULL, 0, NULL);

        oteli_leaks_fail_at(nth);
        prepare(&fixture, &fixture.batch);
        const bool all_tried = !oteli_leaks_failed();
        oteli_leaks_fail_at(0);
        fixture_deliver(&fixture);

        assert_all_delivered(&fixture);
        assert_int_equal(http_sink_requests(fixture.sink), 1);
        assert_string_equal(fixture.log, "");
        fixture_fini(&fixture);
        if (all_tried)
            break;
    }
}

TEST(an_empty_one_is_not_sent)
{
    struct fixture fixture;
    fixture_init(&fixture, NULL, 0, NULL);
    batch_double_fini(&fixture.batch);

    prepare(&fixture, &fixture.batch);
    assert_true(fixture_export(&fixture));

    assert_int_equal(http_sink_connections(fixture.sink), 0);
    fixture_fini(&fixture);
}

/* Not one that was sent, as the one before. */
TEST(it_is_given_up_like_any_other)
{
    static const struct http_sink_answer script[] = {{.then = HTTP_SINK_HANG}};
    struct fixture fixture;
    struct batch_double next = {0};
    fixture_init(&fixture, script, COUNT(script), NULL);
    add(&next, "nxt");
    assert_false(fixture_export(&fixture));
    while (http_sink_requests(fixture.sink) == 0)
        assert_false(fixture_step(&fixture));
    prepare(&fixture, &next);
    abandon(&fixture);
    assert_only_dropped(&fixture, OTEL_DROP_UNCONFIRMED, 3);

    fixture.call = export_double_of(&next, 1);
    assert_int_equal(fixture.exporter.export_batch(fixture.exporter.state, &fixture.call.export),
                     OTEL_EXPORT_DONE);

    assert_only_dropped(&fixture, OTEL_DROP_RETRY_EXHAUSTED, 1);
    assert_int_equal(http_sink_requests(fixture.sink), 1);
    batch_double_fini(&next);
    fixture_fini(&fixture);
}

TEST(another_batch_is_not_taken_for_it)
{
    struct fixture fixture;
    struct batch_double next = {0};
    fixture_init(&fixture, NULL, 0, NULL);
    add(&next, "nxt");

    prepare(&fixture, &next);
    fixture_deliver(&fixture);

    assert_all_delivered(&fixture);
    assert_ends_with(&fixture, 0, "three");
    batch_double_fini(&next);
    fixture_fini(&fixture);
}

/* Nobody listens, so that nobody else allocates. */
TEST(the_memory_of_two_requests_is_enough_for_ever)
{
    char endpoint[64];
    struct fixture fixture;
    struct batch_double next = {0};
    size_t count = 0;
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", (unsigned)http_sink_closed_port());
    fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = endpoint));
    for (int i = 0; i < 500; i++) {
        add(&next, "nxt");
        add(&fixture.batch, "fst");
    }

    for (int i = 0; i < 50; i++) {
        if (i == 1)
            count = oteli_leaks_count();
        assert_int_equal(start(&fixture, &fixture.batch), OTEL_EXPORT_PENDING);
        prepare(&fixture, &next);
        abandon(&fixture);
        assert_int_equal(start(&fixture, &next), OTEL_EXPORT_PENDING);
        prepare(&fixture, &fixture.batch);
        abandon(&fixture);
    }

    assert_int_equal(oteli_leaks_count(), count);
    batch_double_fini(&next);
    fixture_fini(&fixture);
}
