/* SPDX-License-Identifier: Apache-2.0 */
/* How the OTLP exporter cuts a batch into requests, what it does with those that are too large or
 * are refused, several at a time, and that every span is accounted for whatever happens. */
#include "tests/support/leaks.h"
#include "tests/support/otlp_fixture.h"
#include "tests/support/unit.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPT HTTP_SINK_SCRIPT
#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)

static struct fixture fixture;

AROUND_EACH(NULL, fixture_end);

enum { KIB = 1024, NUMBERED_MAX = 4096 };

static const otel_scope_view scope = {.otlp = {"\x0a\x04shop", 6}};

/* A span of about that many bytes that can be found again: its name is "@0042." and filler. */
static void add_numbered(struct batch_double *batch, size_t number, size_t bytes)
{
    const size_t name = bytes < 8 ? 8 : bytes;
    uint8_t *span = malloc(name + 8);
    assert_non_null(span);
    size_t at = 0;
    span[at++] = 0x2a;
    for (size_t rest = name;; rest >>= 7) {
        span[at++] = (uint8_t)(rest < 128 ? rest : (rest & 127) | 128);
        if (rest < 128)
            break;
    }
    memset(span + at, '.', name);
    char mark[24];
    snprintf(mark, sizeof mark, "@%04zu.", number);
    memcpy(span + at, mark, 6);
    batch_double_add(batch, &scope, span, at + name);
    free(span);
}

static void numbered_batch(size_t count, size_t bytes)
{
    batch_double_fini(&fixture.batch);
    fixture.batch.resource = (otel_slice){"\x10\x01", 2};
    for (size_t i = 0; i < count; i++)
        add_numbered(&fixture.batch, i, bytes);
}

/* How often each span is in the request. */
static void count_spans(const struct http_sink_request *request, unsigned times[NUMBERED_MAX])
{
    const uint8_t *at = request->body;
    const uint8_t *end = at + request->body_length;
    while ((at = memchr(at, '@', (size_t)(end - at))) != NULL) {
        times[strtoul((const char *)at + 1, NULL, 10) % NUMBERED_MAX]++;
        at++;
    }
}

/* The number of spans of requests up to that size that came, each once. */
static size_t count_distinct(size_t limit)
{
    static unsigned times[NUMBERED_MAX];
    size_t distinct = 0;
    memset(times, 0, sizeof times);
    for (size_t i = 0; i < http_sink_requests(fixture.sink); i++) {
        const struct http_sink_request *request = http_sink_request(fixture.sink, i);
        if (request->body_length <= limit)
            count_spans(request, times);
    }
    for (size_t i = 0; i < NUMBERED_MAX; i++) {
        assert_true(times[i] <= 1);
        distinct += times[i];
    }
    return distinct;
}

static size_t refused_requests(size_t limit)
{
    size_t refused = 0;
    for (size_t i = 0; i < http_sink_requests(fixture.sink); i++)
        refused += http_sink_request(fixture.sink, i)->body_length > limit;
    return refused;
}

/* --- Too large --- */

TEST(the_size_that_was_taken_is_remembered)
{
    enum { BATCHES = 20, SPANS = 200, SPAN = KIB, LIMIT = 50 * KIB };
    fixture_init(&fixture, NULL, 0, NULL);
    http_sink_limit(fixture.sink, LIMIT);
    numbered_batch(SPANS, SPAN);

    fixture_deliver(&fixture);
    const size_t refused = refused_requests(LIMIT);
    const size_t requests = http_sink_requests(fixture.sink);
    for (int i = 0; i < BATCHES; i++) {
        fixture_deliver(&fixture);
        assert_all_delivered(&fixture);
    }

    assert_in_range(refused, 2, 4); /* 200 KiB, 100 KiB, perhaps a part that is a little larger */
    assert_in_range(refused_requests(LIMIT) - refused, 0, 2);
    assert_in_range(http_sink_requests(fixture.sink) - requests, BATCHES * 5, BATCHES * 9);
}

TEST(requests_grow_again_when_more_is_taken)
{
    enum { SPANS = 64, SPAN = KIB, LIMIT = 20 * KIB };
    fixture_init(&fixture, NULL, 0, OPTIONS(.max_request_bytes = 100 * KIB));
    http_sink_limit(fixture.sink, LIMIT);
    numbered_batch(SPANS, SPAN);
    fixture_deliver(&fixture);
    http_sink_limit(fixture.sink, 0);

    size_t requests = 2;
    for (int i = 0; i < 2000 && requests != 1; i++) {
        const size_t before = http_sink_requests(fixture.sink);
        fixture_deliver(&fixture);
        assert_all_delivered(&fixture);
        requests = http_sink_requests(fixture.sink) - before;
    }

    assert_int_equal(requests, 1);
}

/* The parts of a batch share its time. */
TEST(halves_that_find_no_time_are_given_up)
{
    fixture_init(&fixture, SCRIPT({.status = 413}, {.then = HTTP_SINK_HANG}), NULL);
    fixture_send(&fixture, 2);

    fixture_advance_ms(10000);
    assert_true(fixture_step(&fixture));

    assert_int_equal(fixture.call.dropped[OTEL_DROP_UNCONFIRMED], 2);
    assert_int_equal(fixture.call.dropped[OTEL_DROP_RETRY_EXHAUSTED], 1);
    assert_int_equal(export_double_lost(&fixture.call), 3);
}

/* --- Refused --- */

/* spec: X8 */
TEST(R32_a_poison_request_does_not_hold_up_the_others)
{
    fixture_init(&fixture,
                 SCRIPT({.status = 200}, {.status = 422}, {.status = 200}, {.status = 500}),
                 OPTIONS(.max_request_bytes = 10 * KIB));
    numbered_batch(60, KIB);

    fixture_deliver(&fixture); /* while time stands still */

    assert_int_equal(http_sink_requests(fixture.sink), 7);
    assert_int_equal(count_distinct(SIZE_MAX), 60);
    assert_only_dropped(&fixture, OTEL_DROP_PERMANENT_ERROR, 18);
}

/* --- Several at a time --- */

/* spec: X24 protocol/otlp.md#otlphttp-concurrent-requests MAY stable */
TEST(X24_parts_of_a_batch_go_side_by_side)
{
    fixture_init(&fixture, SCRIPT({.then = HTTP_SINK_HANG}),
                 OPTIONS(.max_request_bytes = 10 * KIB, .concurrency = 4));
    numbered_batch(90, KIB);

    assert_false(fixture_export(&fixture));
    while (http_sink_requests(fixture.sink) < 10)
        assert_int_equal(
            fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 1000, false),
            OTEL_EXPORT_PENDING);
    assert_int_equal(http_sink_connections(fixture.sink), 4);
    http_sink_settle(fixture.sink); /* all others have their answers */
    fixture_advance_ms(10000);
    fixture_finish(&fixture);

    assert_int_equal(count_distinct(SIZE_MAX), 90);
    assert_only_dropped(&fixture, OTEL_DROP_UNCONFIRMED, 9);
}

TEST(a_wake_ends_a_wait_for_several)
{
    fixture_init(&fixture, SCRIPT({.then = HTTP_SINK_HANG}, {.then = HTTP_SINK_HANG}),
                 OPTIONS(.max_request_bytes = 29, .timeout_ms = OTEL_ZERO, .concurrency = 2));
    fixture_send(&fixture, 2);
    assert_false(fixture_step(&fixture));

    for (int i = 0; i < 3; i++) { /* were it lost, this would last until the test is stopped */
        fixture.exporter.wake(fixture.exporter.state);
        assert_int_equal(
            fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 3600000, false),
            OTEL_EXPORT_PENDING);
    }

    assert_int_equal(fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 0, true),
                     OTEL_EXPORT_DONE);
    assert_int_equal(export_double_lost(&fixture.call), 3);
}

/* Each of two is answered while the other waits. */
TEST(an_event_loop_is_told_when_to_look_after_several)
{
    int timeout_ms;
    fixture_init(&fixture, SCRIPT({.then = HTTP_SINK_HANG}, {.status = 200}, {.status = 200}),
                 OPTIONS(.max_request_bytes = 29, .concurrency = 2));
    fixture_send(&fixture, 2);

    while (http_sink_requests(fixture.sink) < 3) {
        struct pollfd waited = {.events = POLLIN};
        waited.fd = fixture.exporter.descriptor(fixture.exporter.state, &timeout_ms);
        assert_true(waited.fd >= 0);
        if (timeout_ms > 1000) /* nothing else would end this wait */
            assert_int_equal(poll(&waited, 1, 60000), 1);
        assert_false(fixture_step(&fixture));
    }
    fixture_advance_ms(10000);

    assert_true(fixture_step(&fixture));
    assert_int_equal(fixture.exporter.descriptor(fixture.exporter.state, &timeout_ms), -1);
    assert_int_equal(timeout_ms, -1);
}

/* --- Headers of each attempt --- */

struct token {
    unsigned calls;
    unsigned fails; /* that many first ones */
    unsigned frees;
};

static bool add_token(void *state, otel_otlp_request_headers *headers)
{
    struct token *token = state;
    char value[32];
    snprintf(value, sizeof value, "token %u", ++token->calls);
    assert_int_equal(otel_otlp_add_header(headers, "X-Step", "never seen"), OTEL_OK);
    if (token->calls <= token->fails)
        return false;
    if (token->calls > 2 && token->fails == 0)
        return true;
    assert_int_equal(otel_otlp_add_header(headers, "Authorization", value), OTEL_OK);
    assert_int_equal(otel_otlp_add_header(headers, "x-step", "second"), OTEL_OK);
    assert_int_equal(otel_otlp_add_header(headers, "Content-Type", "a/b"),
                     OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_otlp_add_header(headers, "grpc-timeout", "1S"),
                     OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_otlp_add_header(headers, "a b", "c"), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_otlp_add_header(headers, "a", "b\r\nEvil: c"),
                     OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_otlp_add_header(headers, NULL, NULL), OTEL_ERROR_INVALID_ARGUMENT);
    return true;
}

static void free_token(void *state)
{
    struct token *token = state;
    token->frees++;
}

/* spec: X23 */
TEST(X23_each_attempt_has_headers_of_its_own)
{
    static const otel_otlp_header constant[] = {
        {"authorization", "old"}, {"x-other", "stays"}, {"x-step", "constant"}};
    struct token token = {0};
    char value[64];
    fixture_init(&fixture, SCRIPT({.status = 503}),
                 OPTIONS(.headers = constant, .header_count = 3, .add_headers = add_token,
                         .add_headers_state = &token, .free_add_headers_state = free_token));

    fixture_deliver_fast(&fixture);

    assert_all_delivered(&fixture);
    assert_int_equal(http_sink_requests(fixture.sink), 2);
    for (size_t i = 0; i < 2; i++) {
        const struct http_sink_request *request = http_sink_request(fixture.sink, i);
        char expected[64];
        snprintf(expected, sizeof expected, "token %zu", i + 1);
        assert_string_equal(http_sink_header(request, "Authorization", value, sizeof value),
                            expected);
        assert_string_equal(http_sink_header(request, "X-Step", value, sizeof value), "second");
        assert_string_equal(http_sink_header(request, "X-Other", value, sizeof value), "stays");
        assert_null(strstr(request->head, "old"));
        assert_null(strstr(request->head, "Evil"));
    }
    fixture_deliver(&fixture); /* without a header of its own in the place of the constant one */
    http_sink_header(http_sink_request(fixture.sink, 2), "Authorization", value, sizeof value);
    assert_string_equal(value, "old");
    assert_int_equal(token.frees, 0);
    fixture_fini(&fixture);
    assert_int_equal(token.frees, 1);
}

TEST(X23_without_headers_nothing_is_sent_and_it_is_tried_again)
{
    struct token token = {.fails = 2};
    fixture_init(&fixture, NULL, 0, OPTIONS(.add_headers = add_token, .add_headers_state = &token));

    assert_false(fixture_export(&fixture));
    assert_non_null(strstr(fixture.log, "again in"));
    assert_int_equal(http_sink_connections(fixture.sink), 0);
    fixture_finish_fast(&fixture);
    assert_all_delivered(&fixture);
    assert_int_equal(token.calls, 3);

    token.fails = 1000;
    fixture_deliver_fast(&fixture);
    assert_only_dropped(&fixture, OTEL_DROP_RETRY_EXHAUSTED, 3);
    assert_non_null(strstr(fixture.log, "the program has no headers for the request"));
    assert_int_equal(http_sink_requests(fixture.sink), 1);
}

/* Nobody listens, so that nobody else allocates. */
TEST(R48_every_allocation_of_an_export_may_fail)
{
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", (unsigned)http_sink_closed_port());
    for (size_t nth = 1;; nth++) {
        fixture_init(&fixture, NULL, 0,
                     OPTIONS(.endpoint = endpoint, .max_request_bytes = 10 * KIB, .concurrency = 2,
                             .compression = OTEL_OTLP_COMPRESSION_GZIP));
        numbered_batch(30, KIB);

        oteli_leaks_fail_at(nth);
        if (!fixture_export(&fixture))
            fixture_finish_fast(&fixture);
        const bool all_tried = !oteli_leaks_failed();

        assert_int_equal(export_double_lost(&fixture.call), 30);
        assert_int_equal(fixture.call.dropped[OTEL_DROP_NO_MEMORY] +
                             fixture.call.dropped[OTEL_DROP_RETRY_EXHAUSTED],
                         30);
        fixture_fini(&fixture);
        if (all_tried)
            break;
    }
}
