/* SPDX-License-Identifier: Apache-2.0 */
/* What the OTLP exporter makes of every answer and of none, and that each span of a batch
 * is accounted for exactly once. */
#include "tests/support/leaks.h"
#include "tests/support/otlp_fixture.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SCRIPT HTTP_SINK_SCRIPT
#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)
#define NO_TIMEOUT OPTIONS(.timeout_ms = OTEL_ZERO)

static struct fixture fixture;

AROUND_EACH(NULL, fixture_end);

/* {resource{10 01}, scope_spans{scope{shop}, three spans}} */
static const char three_spans[] = "\x0a\x25"
                                  "\x0a\x02\x10\x01"
                                  "\x12\x1f"
                                  "\x0a\x06\x0a\x04shop"
                                  "\x12\x05\x2a\x03one"
                                  "\x12\x05\x2a\x03two"
                                  "\x12\x07\x2a\x05three";

/* spec: X1 otlp#otlphttp-request MUST stable */
/* spec: X2 otlp#otlphttp-request MUST stable */
TEST(a_batch_is_posted)
{
    char value[64];
    fixture_init(&fixture, NULL, 0, NULL);

    fixture_deliver(&fixture);

    assert_all_delivered(&fixture);
    assert_int_equal(http_sink_requests(fixture.sink), 1);
    const struct http_sink_request *request = http_sink_request(fixture.sink, 0);
    assert_memory_equal(request->head, "POST /v1/traces HTTP/1.1\r\n", 26);
    assert_string_equal(http_sink_header(request, "Content-Type", value, sizeof value),
                        "application/x-protobuf");
    assert_string_equal(http_sink_header(request, "User-Agent", value, sizeof value),
                        "OTel-OTLP-Exporter-C/" OTEL_VERSION);
    assert_int_equal(request->body_length, sizeof three_spans - 1);
    assert_memory_equal(request->body, three_spans, sizeof three_spans - 1);
    assert_string_equal(fixture.log, "");
}

/* spec: X16 otlp#otlpgrpc SHOULD NOT stable */
TEST(an_empty_batch_is_not_sent)
{
    fixture_init(&fixture, NULL, 0, NULL);
    batch_double_fini(&fixture.batch);

    assert_true(fixture_export(&fixture));

    assert_int_equal(http_sink_connections(fixture.sink), 0);
}

TEST(a_connection_that_was_closed_meanwhile_costs_nothing)
{
    fixture_init(&fixture, SCRIPT({.then = HTTP_SINK_CLOSE}, {.then = HTTP_SINK_CLOSE}), NULL);

    for (int i = 0; i < 3; i++) {
        fixture_deliver(&fixture);
        assert_all_delivered(&fixture);
    }

    assert_int_equal(http_sink_requests(fixture.sink), 3);
}

/* What becomes of three spans when the first answer has this status and the others are 200. */
static const struct {
    int first, last; /* statuses */
    size_t requests;
    enum { DELIVERED, REFUSED, UNCONFIRMED } end;
} status_table[] = {
    {100, 199, 1, UNCONFIRMED}, /* not the last one, but none follows */
    {200, 299, 1, DELIVERED},   {300, 399, 1, REFUSED},
    {400, 400, 3, DELIVERED},   {401, 412, 1, REFUSED},   /* in two halves */
    {413, 413, 3, DELIVERED},                             /* in two halves */
    {414, 428, 1, REFUSED},     {429, 429, 2, DELIVERED}, /* again */
    {430, 501, 1, REFUSED},     {502, 504, 2, DELIVERED}, /* again */
    {505, 599, 1, REFUSED},
};

/* spec: X8 protocol/otlp.md#failures-1 MUST stable */
/* spec: X8 protocol/exporter.md#retry MUST stable */
TEST(R31_every_status_has_its_end)
{
    int expected = 100;
    for (size_t row = 0; row < COUNT(status_table); row++) {
        assert_int_equal(status_table[row].first, expected);
        expected = status_table[row].last + 1;
        for (int status = status_table[row].first; status < expected; status++) {
            const struct http_sink_answer script[] = {{.status = status}};
            fixture_init(&fixture, script, 1, NULL);

            assert_false(fixture_export(&fixture));
            while (http_sink_requests(fixture.sink) == 0)
                (void)fixture_step(&fixture);
            if (status < 200)
                fixture_advance_ms(10000);
            fixture_finish_fast(&fixture);

            if (http_sink_requests(fixture.sink) != status_table[row].requests)
                fail_msg("status %d: %zu requests", status, http_sink_requests(fixture.sink));
            if (status_table[row].end == DELIVERED)
                assert_all_delivered(&fixture);
            else
                assert_only_dropped(&fixture,
                                    status_table[row].end == REFUSED ? OTEL_DROP_PERMANENT_ERROR
                                                                     : OTEL_DROP_UNCONFIRMED,
                                    3);
            fixture_fini(&fixture);
        }
    }
    assert_int_equal(expected, 600);
}

TEST(a_retry_is_the_same_request_over_a_fresh_connection)
{
    fixture_init(&fixture,
                 SCRIPT({.status = 503}, {.then = HTTP_SINK_RESET}, {.then = HTTP_SINK_NO_ANSWER},
                        {.status = 429, .then = HTTP_SINK_CUT_HEAD}),
                 NO_TIMEOUT);

    fixture_deliver_fast(&fixture);

    assert_all_delivered(&fixture);
    assert_int_equal(http_sink_requests(fixture.sink), 5);
    assert_int_equal(http_sink_connections(fixture.sink), 5);
    for (size_t i = 0; i < 5; i++)
        assert_memory_equal(http_sink_request(fixture.sink, i)->body, three_spans,
                            sizeof three_spans - 1);
}

TEST(what_was_rejected_counts_even_if_the_answer_stalls)
{
    fixture_init(&fixture,
                 SCRIPT({.body = "\x0a\x6b\x08\x02\x12\x67too",
                         .body_length = 9,
                         .then = HTTP_SINK_STALL_BODY}),
                 NULL);
    assert_false(fixture_export(&fixture));
    for (int i = 0; i < 20 || http_sink_bytes_sent(fixture.sink) == 0; i++)
        (void)fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 5, false);

    fixture_advance_ms(10000);

    assert_true(fixture_step(&fixture));
    assert_int_equal(fixture.call.rejected, 2);
    assert_int_equal(export_double_lost(&fixture.call), 2);
}

TEST(the_log_names_receiver_status_message_and_loss)
{
    static const struct http_sink_answer script[] = {
        {.status = 403, .body = "\x08\x03\x12\x0eno such tenant", .body_length = 18}};
    char endpoint[128];
    char expected[256];
    struct http_sink *sink = http_sink_start(script, 1);
    const unsigned port = http_sink_port(sink);
    snprintf(endpoint, sizeof endpoint, "http://me:secret@127.0.0.1:%u/in?token=x#f", port);
    snprintf(
        expected, sizeof expected,
        "OTLP export to http://127.0.0.1:%u/in failed after 1 attempt: HTTP status 403: no such tenant; "
        "3 spans are lost\n",
        port);
    fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = endpoint));

    fixture_deliver(&fixture);

    assert_string_equal(fixture.log, expected);
    assert_memory_equal(http_sink_request(sink, 0)->head, "POST /in?token=x HTTP/1.1\r\n", 27);
    http_sink_stop(sink);
}

/* spec: X5 protocol/exporter.md#configuration-options MUST stable */
TEST(nobody_there_until_the_deadline)
{
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", (unsigned)http_sink_closed_port());
    fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = endpoint));

    fixture_deliver_fast(&fixture);

    assert_only_dropped(&fixture, OTEL_DROP_RETRY_EXHAUSTED, 3);
    assert_non_null(strstr(fixture.log, "failed after"));
}

TEST(sent_without_an_answer_is_unconfirmed)
{
    fixture_init(&fixture, SCRIPT({.then = HTTP_SINK_HANG}), NULL);
    fixture_send(&fixture, 1);

    fixture_advance_ms(9999);
    assert_false(fixture_step(&fixture));
    fixture_advance_ms(1);
    assert_true(fixture_step(&fixture));

    assert_only_dropped(&fixture, OTEL_DROP_UNCONFIRMED, 3);
    assert_non_null(strstr(fixture.log, "no answer in time; 3 spans are lost, or arrived"));
}

/* It may have arrived with the first attempt, whatever became of the second. */
TEST(unconfirmed_once_is_unconfirmed_at_the_end)
{
    static const struct http_sink_answer seconds[] = {
        {.status = 503, .headers = "Retry-After: 60\r\n"}, {.status = 400}};
    for (size_t i = 0; i < COUNT(seconds); i++) {
        fixture_init(&fixture, SCRIPT({.then = HTTP_SINK_RESET}, seconds[i]), NULL);

        fixture_deliver_fast(&fixture);

        assert_int_equal(http_sink_requests(fixture.sink), 2);
        assert_only_dropped(&fixture, OTEL_DROP_UNCONFIRMED, 3);
        assert_non_null(strstr(fixture.log, "or arrived unconfirmed"));
        fixture_fini(&fixture);
    }
}

TEST(the_deadline_of_the_call_can_come_earlier)
{
    fixture_init(&fixture, SCRIPT({.status = 503, .headers = "Retry-After: 9\r\n"}), NO_TIMEOUT);
    assert_false(fixture_export(&fixture));
    fixture_wait_for_backoff(&fixture);

    fixture.call.export.deadline_ns = 1;

    int timeout_ms;
    (void)fixture.exporter.descriptor(fixture.exporter.state, &timeout_ms);
    assert_int_equal(timeout_ms, 0);
    assert_true(fixture_step(&fixture));
    assert_only_dropped(&fixture, OTEL_DROP_RETRY_EXHAUSTED, 3);
}

TEST(abandoned_while_sending)
{
    fixture_init(&fixture, SCRIPT({.then = HTTP_SINK_HANG}), NO_TIMEOUT);
    fixture_send(&fixture, 1);

    assert_int_equal(
        fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 60000, true),
        OTEL_EXPORT_DONE);

    assert_only_dropped(&fixture, OTEL_DROP_UNCONFIRMED, 3);
    fixture_deliver(&fixture);
    assert_all_delivered(&fixture);
}

TEST(a_span_above_the_limit_is_left_behind)
{
    fixture_init(&fixture, NULL, 0, OPTIONS(.max_request_bytes = 24));

    fixture_deliver(&fixture);

    assert_only_dropped(&fixture, OTEL_DROP_TOO_LARGE, 1);
    assert_int_equal(http_sink_requests(fixture.sink), 2);
    assert_non_null(strstr(fixture.log, "larger than an OTLP request may be (24 bytes)"));
}

TEST(the_batch_after_a_busy_receiver_takes_a_fresh_connection)
{
    fixture_init(&fixture, SCRIPT({.status = 503, .headers = "Retry-After: 60\r\n"}), NULL);

    for (int i = 0; i < 3; i++)
        fixture_deliver(&fixture);

    assert_all_delivered(&fixture);
    assert_int_equal(http_sink_requests(fixture.sink), 3);
    assert_int_equal(http_sink_connections(fixture.sink), 2);
}

/* ---- the batch that comes next, while an export is pending ---- */

static const otel_scope_view scope = {.otlp = {"\x0a\x04shop", 6}};

/* {resource{10 01}, scope_spans{scope{shop}, a span}}: 23 bytes, the name is the last three. */
static void add(struct batch_double *batch, const char *name)
{
    char span[] = "\x2a\x03...";
    memcpy(span + 2, name, 3);
    batch->resource = (otel_slice){"\x10\x01", 2};
    batch_double_add(batch, &scope, span, sizeof span - 1);
}

static otel_export_result start(const struct batch_double *batch)
{
    fixture.call = export_double_of(batch, UINT64_MAX);
    return fixture.exporter.export_batch(fixture.exporter.state, &fixture.call.export);
}

static void abandon(void)
{
    assert_int_equal(fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 0, true),
                     OTEL_EXPORT_DONE);
}

/* Nobody listens, so that nobody else allocates. */
TEST(the_memory_of_a_request_is_enough_for_ever)
{
    char endpoint[64];
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
        assert_int_equal(start(&fixture.batch), OTEL_EXPORT_PENDING);
        abandon();
        assert_int_equal(start(&next), OTEL_EXPORT_PENDING);
        abandon();
    }

    assert_int_equal(oteli_leaks_count(), count);
    batch_double_fini(&next);
}
