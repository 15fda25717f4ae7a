/* SPDX-License-Identifier: Apache-2.0 */
/* What the OTLP exporter makes of every answer and of none, and that each span of a batch
 * is accounted for exactly once. */
#include "tests/support/otlp_fixture.h"
#include "tests/support/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)
#define NO_TIMEOUT OPTIONS(.timeout_ms = OTEL_ZERO)

/* {resource{10 01}, scope_spans{scope{shop}, three spans}} */
static const char three_spans[] = "\x0a\x25"
                                  "\x0a\x02\x10\x01"
                                  "\x12\x1f"
                                  "\x0a\x06\x0a\x04shop"
                                  "\x12\x05\x2a\x03one"
                                  "\x12\x05\x2a\x03two"
                                  "\x12\x07\x2a\x05three";

/* spec: X1 otlp#otlphttp-request MUST stable */
TEST(a_batch_is_posted)
{
    struct fixture fixture;
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
    fixture_fini(&fixture);
}

/* spec: X16 otlp#otlpgrpc SHOULD NOT stable */
TEST(an_empty_batch_is_not_sent)
{
    struct fixture fixture;
    fixture_init(&fixture, NULL, 0, NULL);
    batch_double_fini(&fixture.batch);

    assert_true(fixture_export(&fixture));

    assert_int_equal(http_sink_connections(fixture.sink), 0);
    fixture_fini(&fixture);
}

/* spec: X14 otlp#otlphttp-connection SHOULD stable */
TEST(the_connection_is_kept)
{
    struct fixture fixture;
    fixture_init(&fixture, NULL, 0, NULL);

    for (int i = 0; i < 5; i++)
        fixture_deliver(&fixture);

    assert_int_equal(http_sink_requests(fixture.sink), 5);
    assert_int_equal(http_sink_connections(fixture.sink), 1);
    fixture_fini(&fixture);
}

TEST(a_connection_that_was_closed_meanwhile_costs_nothing)
{
    static const struct http_sink_answer script[] = {{.then = HTTP_SINK_CLOSE},
                                                     {.then = HTTP_SINK_CLOSE}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NULL);

    for (int i = 0; i < 3; i++) {
        fixture_deliver(&fixture);
        assert_all_delivered(&fixture);
    }

    assert_int_equal(http_sink_requests(fixture.sink), 3);
    fixture_fini(&fixture);
}

TEST(connections_are_closed_after_half_a_minute_without_exports)
{
    struct fixture fixture;
    int timeout_ms;
    fixture_init(&fixture, NULL, 0, OPTIONS(.concurrency = 3, .max_request_bytes = 29));
    assert_int_equal(fixture.exporter.attend(fixture.exporter.state), -1);

    fixture_deliver(&fixture);
    assert_int_equal(fixture.exporter.attend(fixture.exporter.state), 30000);
    assert_int_equal(fixture.exporter.descriptor(fixture.exporter.state, &timeout_ms), -1);
    fixture_advance_ms(29000);
    assert_int_equal(fixture.exporter.attend(fixture.exporter.state), 1000);
    fixture_deliver(&fixture);
    assert_int_equal(fixture.exporter.attend(fixture.exporter.state), 30000);
    fixture_advance_ms(29999);
    assert_int_equal(fixture.exporter.attend(fixture.exporter.state), 1);
    assert_int_equal(http_sink_open_connections(fixture.sink), 3);
    fixture_advance_ms(1);
    assert_int_equal(fixture.exporter.attend(fixture.exporter.state), -1);
    assert_int_equal(http_sink_open_connections(fixture.sink), 0);
    assert_int_equal(http_sink_connections(fixture.sink), 3);

    fixture_deliver(&fixture);
    assert_all_delivered(&fixture);
    assert_int_equal(http_sink_connections(fixture.sink), 6);
    assert_int_equal(fixture.exporter.attend(fixture.exporter.state), 30000);
    fixture_fini(&fixture);
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
TEST(R31_every_status_has_its_end)
{
    int expected = 100;
    for (size_t row = 0; row < COUNT(status_table); row++) {
        assert_int_equal(status_table[row].first, expected);
        expected = status_table[row].last + 1;
        for (int status = status_table[row].first; status < expected; status++) {
            const struct http_sink_answer script[] = {{.status = status}};
            struct fixture fixture;
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
    static const struct http_sink_answer script[] = {{.status = 503},
                                                     {.then = HTTP_SINK_RESET},
                                                     {.then = HTTP_SINK_NO_ANSWER},
                                                     {.status = 429, .then = HTTP_SINK_CUT_HEAD}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NO_TIMEOUT);

    assert_false(fixture_export(&fixture));
    fixture_finish_fast(&fixture);

    assert_all_delivered(&fixture);
    assert_int_equal(http_sink_requests(fixture.sink), 5);
    assert_int_equal(http_sink_connections(fixture.sink), 5);
    for (size_t i = 0; i < 5; i++)
        assert_memory_equal(http_sink_request(fixture.sink, i)->body, three_spans,
                            sizeof three_spans - 1);
    fixture_fini(&fixture);
}

TEST(a_redirect_is_not_followed)
{
    struct http_sink *other = http_sink_start(NULL, 0);
    char location[128];
    snprintf(location, sizeof location, "Location: %s\r\n", http_sink_url(other));
    const struct http_sink_answer script[] = {{.status = 301, .headers = location},
                                              {.status = 302, .headers = location},
                                              {.status = 307, .headers = location},
                                              {.status = 308, .headers = location}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NULL);

    for (size_t i = 0; i < COUNT(script); i++) {
        fixture_deliver(&fixture);
        assert_only_dropped(&fixture, OTEL_DROP_PERMANENT_ERROR, 3);
    }

    assert_int_equal(http_sink_connections(other), 0);
    http_sink_stop(other);
    fixture_fini(&fixture);
}

TEST(partial_success_is_counted_and_final)
{
    static const struct http_sink_answer script[] = {
        {.body = "\x0a\x0b\x08\x02\x12\x07too old", .body_length = 13},
        {.body = "\x0a\x02\x08\x63", .body_length = 4},
        {.body = "\x0a\x0b\x12\x09slow down", .body_length = 13}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NULL);

    fixture_deliver(&fixture);
    assert_int_equal(fixture.call.rejected, 2);
    assert_int_equal(export_double_lost(&fixture.call), 2);
    assert_non_null(strstr(fixture.log, "rejected 2 of 3 spans: too old\n"));

    fixture_deliver(&fixture); /* 99 of 3 */
    assert_int_equal(fixture.call.rejected, 3);
    assert_int_equal(export_double_lost(&fixture.call), 3);

    fixture_deliver(&fixture);
    assert_all_delivered(&fixture);
    assert_non_null(strstr(fixture.log, "warns: slow down\n"));
    assert_int_equal(http_sink_requests(fixture.sink), 3);
    fixture_fini(&fixture);
}

/* A receiver that has said 2xx has taken the spans, whatever it says then. */
TEST(success_with_a_strange_body_is_success)
{
    static const struct http_sink_answer script[] = {
        {.body = "{\"partialSuccess\":{}}", .body_length = 21, .headers = "Content-Type: a/b\r\n"},
        {.status = 202, .body = "\x0a\xff\xff", .body_length = 3},
        {.then = HTTP_SINK_CUT_BODY, .body = "\x0a", .body_length = 1},
        {.then = HTTP_SINK_ENDLESS_BODY},
        {.then = HTTP_SINK_ENDLESS_HEAD},
        {.then = HTTP_SINK_CUT_HEAD}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NULL);

    for (size_t i = 0; i < COUNT(script); i++) {
        fixture_deliver(&fixture);
        assert_all_delivered(&fixture);
    }

    assert_int_equal(http_sink_requests(fixture.sink), COUNT(script));
    assert_string_equal(fixture.log, "");
    fixture_fini(&fixture);
}

TEST(what_was_rejected_counts_even_if_the_answer_stalls)
{
    static const struct http_sink_answer script[] = {
        {.body = "\x0a\x6b\x08\x02\x12\x67too", .body_length = 9, .then = HTTP_SINK_STALL_BODY}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NULL);
    assert_false(fixture_export(&fixture));
    for (int i = 0; i < 20 || http_sink_bytes_sent(fixture.sink) == 0; i++)
        (void)fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 5, false);

    fixture_advance_ms(10000);

    assert_true(fixture_step(&fixture));
    assert_int_equal(fixture.call.rejected, 2);
    assert_int_equal(export_double_lost(&fixture.call), 2);
    fixture_fini(&fixture);
}

TEST(an_endless_error_is_final)
{
    static const struct http_sink_answer script[] = {
        {.status = 500, .then = HTTP_SINK_ENDLESS_BODY},
        {.status = 503, .then = HTTP_SINK_ENDLESS_BODY},
        {.status = 503, .then = HTTP_SINK_ENDLESS_HEAD}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NULL);

    for (size_t i = 0; i < COUNT(script); i++) {
        fixture_deliver(&fixture);
        assert_only_dropped(&fixture, OTEL_DROP_PERMANENT_ERROR, 3);
    }

    assert_int_equal(http_sink_requests(fixture.sink), COUNT(script));
    fixture_fini(&fixture);
}

TEST(the_log_names_receiver_status_message_and_loss)
{
    static const struct http_sink_answer script[] = {
        {.status = 403, .body = "\x08\x03\x12\x0eno such tenant", .body_length = 18}};
    char endpoint[128];
    char expected[256];
    struct fixture fixture;
    struct http_sink *sink = http_sink_start(script, 1);
    const unsigned port = http_sink_port(sink);
    snprintf(endpoint, sizeof endpoint, "http://me:secret@127.0.0.1:%u/in?token=x#f", port);
    snprintf(expected, sizeof expected,
             "OTLP export to http://127.0.0.1:%u/in failed: HTTP status 403: no such tenant; "
             "3 spans are lost\n",
             port);
    fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = endpoint));

    fixture_deliver(&fixture);

    assert_string_equal(fixture.log, expected);
    assert_memory_equal(http_sink_request(sink, 0)->head, "POST /in?token=x HTTP/1.1\r\n", 27);
    http_sink_stop(sink);
    fixture_fini(&fixture);
}

/* spec: X5 protocol/exporter.md#configuration-options MUST stable */
TEST(nobody_there_until_the_deadline)
{
    char endpoint[64];
    struct fixture fixture;
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", (unsigned)http_sink_closed_port());
    fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = endpoint));

    assert_false(fixture_export(&fixture));
    fixture_finish_fast(&fixture);

    assert_only_dropped(&fixture, OTEL_DROP_RETRY_EXHAUSTED, 3);
    assert_non_null(strstr(fixture.log, "gave up after"));
    fixture_fini(&fixture);
}

TEST(busy_until_the_deadline)
{
    struct http_sink_answer script[40];
    struct fixture fixture;
    for (size_t i = 0; i < COUNT(script); i++)
        script[i] = (struct http_sink_answer){.status = 503};
    fixture_init(&fixture, script, COUNT(script), NULL);

    assert_false(fixture_export(&fixture));
    fixture_finish_fast(&fixture);

    assert_only_dropped(&fixture, OTEL_DROP_RETRY_EXHAUSTED, 3);
    assert_non_null(strstr(fixture.log, "HTTP status 503"));
    fixture_fini(&fixture);
}

TEST(sent_without_an_answer_is_unconfirmed)
{
    static const struct http_sink_answer script[] = {{.then = HTTP_SINK_HANG}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NULL);
    assert_false(fixture_export(&fixture));
    while (http_sink_requests(fixture.sink) == 0)
        assert_false(fixture_step(&fixture));

    fixture_advance_ms(9999);
    assert_false(fixture_step(&fixture));
    fixture_advance_ms(1);
    assert_true(fixture_step(&fixture));

    assert_only_dropped(&fixture, OTEL_DROP_UNCONFIRMED, 3);
    assert_non_null(strstr(fixture.log, "no answer in time; 3 spans are lost, or arrived"));
    fixture_fini(&fixture);
}

/* It may have arrived with the first attempt, whatever became of the second. */
TEST(unconfirmed_once_is_unconfirmed_at_the_end)
{
    static const struct http_sink_answer script[] = {
        {.then = HTTP_SINK_RESET}, {.status = 503, .headers = "Retry-After: 60\r\n"}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NULL);

    assert_false(fixture_export(&fixture));
    fixture_finish_fast(&fixture);

    assert_int_equal(http_sink_requests(fixture.sink), 2);
    assert_only_dropped(&fixture, OTEL_DROP_UNCONFIRMED, 3);
    fixture_fini(&fixture);
}

TEST(the_deadline_of_the_call_can_come_earlier)
{
    static const struct http_sink_answer script[] = {
        {.status = 503, .headers = "Retry-After: 9\r\n"}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NO_TIMEOUT);
    assert_false(fixture_export(&fixture));
    fixture_wait_for_backoff(&fixture);

    fixture.call.export.deadline_ns = 1;

    assert_true(fixture_step(&fixture));
    assert_only_dropped(&fixture, OTEL_DROP_RETRY_EXHAUSTED, 3);
    fixture_fini(&fixture);
}

TEST(retry_after_is_waited_for)
{
    static const struct http_sink_answer script[] = {
        {.status = 429, .headers = "retry-after: \t100 \r\n"}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NO_TIMEOUT);
    assert_false(fixture_export(&fixture));
    fixture_wait_for_backoff(&fixture);

    fixture_advance_ms(99999);
    assert_false(fixture_step(&fixture));
    assert_int_equal(http_sink_connections(fixture.sink), 1);
    fixture_advance_ms(20001);
    fixture_finish(&fixture);

    assert_all_delivered(&fixture);
    assert_int_equal(http_sink_requests(fixture.sink), 2);
    fixture_fini(&fixture);
}

TEST(retry_after_counts_only_where_it_means_something)
{
    static const struct http_sink_answer script[] = {
        {.status = 502, .headers = "Retry-After: 100000\r\n"},
        {.status = 503, .headers = "Retry-After: later\r\n"},
        {.status = 503, .headers = "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n"}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NULL);

    assert_false(fixture_export(&fixture));
    fixture_finish_fast(&fixture);

    assert_all_delivered(&fixture);
    fixture_fini(&fixture);
}

TEST(a_wait_beyond_the_deadline_is_not_begun)
{
    static const char *const headers[] = {"Retry-After: 10\r\n", "Retry-After: 63072000\r\n",
                                          "Retry-After: 99999999999999999999999\r\n",
                                          "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n"};
    for (size_t i = 0; i < COUNT(headers); i++) {
        const struct http_sink_answer script[] = {{.status = 503, .headers = headers[i]}};
        struct fixture fixture;
        fixture_init(&fixture, script, COUNT(script), NULL);

        assert_false(fixture_export(&fixture));
        fixture_finish(&fixture); /* while time stands still */

        assert_only_dropped(&fixture, OTEL_DROP_RETRY_EXHAUSTED, 3);
        fixture_fini(&fixture);
    }
}

TEST(abandoned_while_sending)
{
    static const struct http_sink_answer script[] = {{.then = HTTP_SINK_HANG}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NO_TIMEOUT);
    assert_false(fixture_export(&fixture));
    while (http_sink_requests(fixture.sink) == 0)
        assert_false(fixture_step(&fixture));

    assert_int_equal(
        fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 60000, true),
        OTEL_EXPORT_DONE);

    assert_only_dropped(&fixture, OTEL_DROP_UNCONFIRMED, 3);
    fixture_deliver(&fixture);
    assert_all_delivered(&fixture);
    fixture_fini(&fixture);
}

TEST(abandoned_while_waiting)
{
    static const struct http_sink_answer script[] = {{.status = 503}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NO_TIMEOUT);
    assert_false(fixture_export(&fixture));
    fixture_wait_for_backoff(&fixture);

    assert_int_equal(
        fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 60000, true),
        OTEL_EXPORT_DONE);

    assert_only_dropped(&fixture, OTEL_DROP_RETRY_EXHAUSTED, 3);
    fixture_fini(&fixture);
}

/* Were a wake lost, the poll behind it would last until the test is stopped. */
TEST(a_wake_that_comes_first_counts)
{
    static const struct http_sink_answer script[] = {
        {.status = 503, .headers = "Retry-After: 1000\r\n"}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NO_TIMEOUT);
    assert_false(fixture_export(&fixture));
    fixture_wait_for_backoff(&fixture);

    for (int i = 0; i < 3; i++) {
        fixture.exporter.wake(fixture.exporter.state);
        assert_int_equal(
            fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 3600000, false),
            OTEL_EXPORT_PENDING);
    }

    fixture_fini(&fixture);
}

static void *wake_exporter(void *state)
{
    const otel_exporter *exporter = state;
    exporter->wake(exporter->state);
    return NULL;
}

TEST(a_wake_from_another_thread_ends_a_poll)
{
    static const struct http_sink_answer script[] = {{.then = HTTP_SINK_HANG}};
    struct fixture fixture;
    pthread_t thread;
    fixture_init(&fixture, script, COUNT(script), NO_TIMEOUT);
    assert_false(fixture_export(&fixture));
    while (http_sink_requests(fixture.sink) == 0)
        assert_false(fixture_step(&fixture));

    assert_int_equal(pthread_create(&thread, NULL, wake_exporter, &fixture.exporter), 0);
    assert_int_equal(
        fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 3600000, false),
        OTEL_EXPORT_PENDING);

    pthread_join(thread, NULL);
    fixture_fini(&fixture);
}

/* Alone the three spans make requests of 23, 23 and 25 bytes; the first two together 30. */
TEST(a_batch_above_the_limit_goes_in_parts)
{
    static const struct http_sink_answer script[] = {{.status = 403}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), OPTIONS(.max_request_bytes = 30));

    fixture_deliver(&fixture);

    assert_only_dropped(&fixture, OTEL_DROP_PERMANENT_ERROR, 2);
    assert_int_equal(http_sink_requests(fixture.sink), 2);
    assert_int_equal(http_sink_request(fixture.sink, 0)->body_length, 30);
    assert_int_equal(http_sink_request(fixture.sink, 1)->body_length, 25);
    fixture_fini(&fixture);
}

TEST(a_span_above_the_limit_is_left_behind)
{
    struct fixture fixture;
    fixture_init(&fixture, NULL, 0, OPTIONS(.max_request_bytes = 24));

    fixture_deliver(&fixture);

    assert_only_dropped(&fixture, OTEL_DROP_TOO_LARGE, 1);
    assert_int_equal(http_sink_requests(fixture.sink), 2);
    assert_non_null(strstr(fixture.log, "larger than an OTLP request may be (24 bytes)"));
    fixture_fini(&fixture);
}

/* One part of three is on its way, nothing of the rest was ever sent. */
TEST(parts_that_were_not_sent_are_exhausted)
{
    static const struct http_sink_answer script[] = {{.status = 200}, {.then = HTTP_SINK_HANG}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), OPTIONS(.max_request_bytes = 29));
    assert_false(fixture_export(&fixture));
    while (http_sink_requests(fixture.sink) < 2)
        assert_false(fixture_step(&fixture));

    fixture_advance_ms(10000);
    assert_true(fixture_step(&fixture));

    assert_int_equal(fixture.call.dropped[OTEL_DROP_UNCONFIRMED], 1);
    assert_int_equal(fixture.call.dropped[OTEL_DROP_RETRY_EXHAUSTED], 1);
    assert_int_equal(export_double_lost(&fixture.call), 2);
    fixture_fini(&fixture);
}

TEST(the_batch_after_a_busy_receiver_takes_a_fresh_connection)
{
    static const struct http_sink_answer script[] = {
        {.status = 503, .headers = "Retry-After: 60\r\n"}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NULL);

    for (int i = 0; i < 3; i++)
        fixture_deliver(&fixture);

    assert_all_delivered(&fixture);
    assert_int_equal(http_sink_requests(fixture.sink), 3);
    assert_int_equal(http_sink_connections(fixture.sink), 2);
    fixture_fini(&fixture);
}

TEST(the_next_batch_is_not_harmed_by_a_bad_one)
{
    static const struct http_sink_answer script[] = {{.status = 403}, {.status = 200}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NULL);

    fixture_deliver(&fixture);
    assert_only_dropped(&fixture, OTEL_DROP_PERMANENT_ERROR, 3);
    fixture_deliver(&fixture);

    assert_all_delivered(&fixture);
    fixture_fini(&fixture);
}
