/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/spool/spooling_test.c - specification of exporters/otlp/spool/spool_sender.c as the
 * exporter uses it: what happens to spans while the receiver is away, and when it is back. Time
 * stands still unless the test moves it. */
#include "common/clock/clock.h"
#include "tests/support/leaks.h"
#include "tests/support/otlp_fixture.h"
#include "tests/support/spool_files.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SCRIPT HTTP_SINK_SCRIPT
#define BUSY          \
    {                 \
        .status = 503 \
    }
#define COUNTED(what) (spool_files_stats().what - before.what)

enum { LOOKS_MAX = 10000, TURN_MS = 100, NOTHING_TO_DO = -1 };

static struct spool_files files;
static struct fixture fixture;
static otel_spool_stats before;

static int begin(void **state)
{
    (void)state;
    spool_files_begin(&files);
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)spool_files_stats();
    fixture_fini(&fixture);
    spool_files_end(&files);
    return 0;
}

static void start_with(const struct http_sink_answer *script, size_t count,
                       otel_otlp_options *options)
{
    options->spool_directory = files.path;
    fixture_init(&fixture, script, count, options);
    before = spool_files_stats();
}

static void start(const struct http_sink_answer *script, size_t count)
{
    otel_otlp_options options = {.size = sizeof options};
    start_with(script, count, &options);
}

static int attend(void)
{
    return fixture.exporter.attend(fixture.exporter.state);
}

static int descriptor(void)
{
    int timeout_ms;
    return fixture.exporter.descriptor(fixture.exporter.state, &timeout_ms);
}

/* Attend as the engine does, while time stands still, until nothing is on its way and nothing can
 * be done at once. After how many milliseconds it wants to be called. */
static int attend_to_the_end(void)
{
    for (unsigned i = 0; i < LOOKS_MAX; i++) {
        const int wanted_ms = attend();
        const int fd = descriptor();
        if (fd < 0 && wanted_ms != 0)
            return wanted_ms;
        struct pollfd waited = {.fd = fd, .events = POLLIN};
        (void)poll(&waited, 1, wanted_ms < TURN_MS && wanted_ms >= 0 ? wanted_ms : TURN_MS);
    }
    fail_msg("the spool does not come to an end; log:\n%s", fixture.log);
    return 0;
}

/* The batch has three spans. The last one's name shows which batch it was. */
static void export_named(const char *name)
{
    assert_int_equal(strlen(name), 5);
    memcpy(fixture.batch.spans[2].bytes + 2, name, 5);
    fixture_deliver(&fixture);
}

static void assert_arrived(size_t request, const char *name)
{
    const struct http_sink_request *got = http_sink_request(fixture.sink, request);
    assert_true(got->body_length > 5);
    assert_memory_equal(got->body + got->body_length - 5, name, 5);
}

static size_t requests(void)
{
    return http_sink_requests(fixture.sink);
}

/* A receiver that is away when the first batch comes. */
static void start_away(const struct http_sink_answer *script, size_t count)
{
    start(script, count);
    export_named("first");
}

/* ---- away ------------------------------------------------------------------------------ */

AROUND_EACH(begin, end);

/* spec: X25 */
TEST(spans_go_to_disk_when_the_receiver_is_away)
{
    start(SCRIPT(BUSY));

    export_named("first");

    assert_int_equal(fixture.call.spooled, 3);
    assert_int_equal(export_double_lost(&fixture.call), 0);
    assert_int_equal(requests(), 1); /* nobody waited for another one */
    assert_int_equal(spool_files_count(&files, ".otlp"), 1);
    assert_int_equal(COUNTED(stored), 3);
    assert_non_null(strstr(fixture.log, "is away: HTTP status 503"));
}

TEST(while_it_is_away_batches_go_to_disk_at_once)
{
    start_away(SCRIPT(BUSY));

    for (unsigned i = 0; i < 10; i++) {
        fixture.call = export_double_of(&fixture.batch, UINT64_MAX);
        assert_int_equal(
            fixture.exporter.export_batch(fixture.exporter.state, &fixture.call.export),
            OTEL_EXPORT_DONE);
        assert_int_equal(fixture.call.spooled, 3);
    }

    assert_int_equal(requests(), 1);
    assert_int_equal(COUNTED(waiting), 33);
}

TEST(it_is_looked_for_with_back_off)
{
    start_away(SCRIPT(BUSY, BUSY, BUSY));

    const int first_ms = attend_to_the_end();
    assert_in_range(first_ms, 100, 1000);
    assert_int_equal(requests(), 1);
    fixture_advance_ms((uint64_t)first_ms);
    const int second_ms = attend_to_the_end();
    assert_int_equal(requests(), 2);
    assert_in_range(second_ms, 100, 1500);
    assert_in_range(attend_to_the_end(), 1, second_ms); /* and not before that */

    assert_int_equal(requests(), 2);
    assert_int_equal(COUNTED(waiting), 3);
}

/* spec: X25 */
TEST(when_it_is_back_files_are_sent_oldest_first_and_batches_directly)
{
    start_away(SCRIPT(BUSY));
    export_named("2nd..");
    export_named("3rd..");

    fixture_advance_ms(1200);
    assert_int_equal(attend_to_the_end(), NOTHING_TO_DO);
    export_named("later");

    assert_int_equal(requests(), 5);
    assert_arrived(1, "first");
    assert_arrived(2, "2nd..");
    assert_arrived(3, "3rd..");
    assert_arrived(4, "later");
    assert_int_equal(fixture.call.spooled, 0);
    assert_int_equal(COUNTED(sent), 9);
    assert_int_equal(COUNTED(waiting), 0);
    assert_int_equal(spool_files_count(&files, ""), 0);
    assert_non_null(strstr(fixture.log, "is back"));
}

TEST(an_answer_to_a_batch_shows_that_it_is_back)
{
    start_away(SCRIPT(BUSY));
    (void)attend();
    assert_int_equal(remove(spool_files_oldest(&files, ".otlp")), 0); /* an admin, perhaps */
    fixture_advance_ms(1200);
    assert_int_equal(attend_to_the_end(), NOTHING_TO_DO);

    export_named("later");

    assert_int_equal(fixture.call.spooled, 0);
    assert_arrived(1, "later");
    assert_int_equal(COUNTED(taken), 3);
}

/* spec: X25 */
TEST(what_a_receiver_asks_for_is_waited_for)
{
    start_with(SCRIPT({.status = 503, .headers = "Retry-After: 30\r\n"},
                      {.status = 429, .headers = "Retry-After: 7\r\n"}, BUSY,
                      {.status = 503, .headers = "Retry-After: 63072000\r\n"}),
               OTEL_OTLP_OPTIONS(.timeout_ms = 5000));
    export_named("first");
    assert_int_equal(fixture.call.spooled, 3);

    const int asked_ms = attend_to_the_end();
    assert_in_range(asked_ms, 30000, 36000);
    fixture_advance_ms((uint64_t)asked_ms);

    const int again_ms = attend_to_the_end();
    assert_in_range(again_ms, 7000, 8400);
    assert_int_equal(requests(), 2);
    fixture_advance_ms((uint64_t)again_ms);

    const int third_ms = attend_to_the_end();
    assert_in_range(third_ms, 100, 2250); /* the third answer asks for nothing */
    fixture_advance_ms((uint64_t)third_ms);
    assert_in_range(attend_to_the_end(), 5 * 60 * 1000, 6 * 60 * 1000); /* the fourth for years */
}

/* ---- and back -------------------------------------------------------------------------- */

/* A new exporter on the same spool takes the place of the last one. */
static void begin_next_program(void)
{
    otel_exporter next;
    assert_int_equal(
        otel_otlp_exporter_new(OTEL_OTLP_OPTIONS(.endpoint = http_sink_url(fixture.sink),
                                                 .spool_directory = files.path),
                               &next),
        OTEL_OK);
    fixture.exporter.free(fixture.exporter.state);
    fixture.exporter = next;
}

/* spec: X25 */
TEST(the_next_program_sends_what_the_last_one_left)
{
    start_away(SCRIPT(BUSY));
    export_named("2nd..");

    begin_next_program();
    assert_int_equal(attend_to_the_end(), NOTHING_TO_DO);

    assert_int_equal(requests(), 3);
    assert_arrived(1, "first");
    assert_arrived(2, "2nd..");
    assert_int_equal(COUNTED(found), 6);
}

TEST(an_empty_spool_wants_nothing)
{
    start(NULL, 0);

    assert_string_equal(fixture.log, ""); /* also where its directory has yet to be made */
    assert_int_equal(attend(), -1);
    assert_int_equal(descriptor(), -1);
    export_named("first");
    assert_int_equal(attend(), NOTHING_TO_DO);

    assert_int_equal(requests(), 1);
    assert_arrived(0, "first");
}

/* spec: X25 */
TEST(a_file_that_is_refused_holds_nothing_up)
{
    start_away(SCRIPT(BUSY, {.status = 400}, {.status = 413}));
    export_named("large");
    export_named("3rd..");

    fixture_advance_ms(1200);
    assert_int_equal(attend_to_the_end(), NOTHING_TO_DO);

    assert_int_equal(requests(), 4);
    assert_arrived(3, "3rd..");
    assert_int_equal(COUNTED(refused), 6);
    assert_int_equal(COUNTED(sent), 3);
    assert_int_equal(spool_files_count(&files, ""), 0);
}

TEST(what_is_rejected_of_a_file_is_counted_and_not_sent_again)
{
    static const struct http_sink_answer script[] = {
        BUSY,
        {.body = "\x0a\x02\x08\x02", .body_length = 4},
        {.body = "\x0a\x02\x08\x63", .body_length = 4}}; /* more than it has */
    start(script, COUNT(script));
    export_named("first");
    export_named("2nd..");

    fixture_advance_ms(1200);
    assert_int_equal(attend_to_the_end(), NOTHING_TO_DO);

    assert_int_equal(COUNTED(rejected), 5);
    assert_int_equal(COUNTED(sent), 1);
    assert_int_equal(requests(), 3);
}

TEST(a_request_without_an_answer_is_sent_again)
{
    start_away(SCRIPT(BUSY, {.then = HTTP_SINK_NO_ANSWER}));
    fixture_advance_ms(1200);
    const int again_ms = attend_to_the_end();
    assert_int_equal(COUNTED(waiting), 3);

    fixture_advance_ms((uint64_t)again_ms);
    assert_int_equal(attend_to_the_end(), NOTHING_TO_DO);

    assert_arrived(1, "first");
    assert_arrived(2, "first");
    assert_int_equal(COUNTED(sent), 3); /* once, as far as anybody can know */
}

TEST(a_receiver_that_hangs_is_given_up_after_the_timeout)
{
    start_with(SCRIPT(BUSY, {.then = HTTP_SINK_HANG}), OTEL_OTLP_OPTIONS(.timeout_ms = 3000));
    export_named("first");
    fixture_advance_ms(1200);
    (void)attend();
    assert_true(http_sink_wait(fixture.sink, 2));
    assert_true(attend() <= 3000);

    fixture_advance_ms(3001);
    const int again_ms = attend_to_the_end();
    assert_in_range(again_ms, 100, 10000);
    assert_int_equal(COUNTED(waiting), 3);
    fixture_advance_ms((uint64_t)again_ms);

    assert_int_equal(attend_to_the_end(), NOTHING_TO_DO);
    assert_int_equal(COUNTED(sent), 3);
}

TEST(a_batch_does_not_wait_for_a_file)
{
    start_away(SCRIPT(BUSY, {0}, {.then = HTTP_SINK_HANG}));
    export_named("2nd..");
    fixture_advance_ms(1200);
    while (requests() < 3) /* one is sent, and the other hangs */
        (void)attend();

    export_named("batch");

    assert_arrived(3, "batch");
    assert_int_equal(fixture.call.spooled, 0);
    assert_int_equal(COUNTED(waiting), 3);
}

TEST(a_file_is_compressed_like_a_batch)
{
    char encoding[16];
    start_with(SCRIPT(BUSY), OTEL_OTLP_OPTIONS(.compression = OTEL_OTLP_COMPRESSION_GZIP));
    export_named("first");
    fixture_advance_ms(1200);
    assert_int_equal(attend_to_the_end(), NOTHING_TO_DO);

    const struct http_sink_request *direct = http_sink_request(fixture.sink, 0);
    const struct http_sink_request *later = http_sink_request(fixture.sink, 1);
    assert_string_equal(http_sink_header(later, "Content-Encoding", encoding, sizeof encoding),
                        "gzip");
    assert_int_equal(later->body_length, direct->body_length);
    assert_memory_equal(later->body, direct->body, direct->body_length);
}

/* ---- when things go wrong --------------------------------------------------------------- */

/* R48 */
TEST(with_a_full_disk_an_export_goes_on_as_without_a_spool)
{
    start(SCRIPT(BUSY, BUSY));
    spool_calls.errors[SPOOL_PWRITE] = ENOSPC;
    fixture_export(&fixture);
    fixture_finish_fast(&fixture);

    assert_int_equal(fixture.call.spooled, 0);
    assert_all_delivered(&fixture); /* the third attempt was answered */
    assert_int_equal(requests(), 3);
    assert_true(COUNTED(failures) > 0);
    assert_int_equal(spool_files_count(&files, ""), 0);
}

/* R48 */
TEST(with_a_full_disk_and_nobody_there_spans_are_counted_as_dropped)
{
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/v1/traces", http_sink_closed_port());
    start_with(NULL, 0, OTEL_OTLP_OPTIONS(.endpoint = url));
    spool_calls.errors[SPOOL_PWRITE] = ENOSPC;
    fixture_export(&fixture);
    fixture_finish_fast(&fixture);
    assert_only_dropped(&fixture, OTEL_DROP_RETRY_EXHAUSTED, 3);
    spool_calls.errors[SPOOL_PWRITE] = 0;

    export_named("later");

    assert_int_equal(fixture.call.spooled, 3);
    assert_int_equal(export_double_lost(&fixture.call), 0);
}

TEST(what_is_pending_at_the_shutdown_goes_to_disk)
{
    start_with(SCRIPT({.then = HTTP_SINK_HANG}), OTEL_OTLP_OPTIONS(.max_request_bytes = 29));
    fixture_send(&fixture, 1);

    assert_int_equal(fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 0, true),
                     OTEL_EXPORT_DONE);

    assert_int_equal(fixture.call.spooled, 3); /* what was never sent too */
    assert_all_delivered(&fixture);
    assert_int_equal(spool_files_count(&files, ".otlp"), 3);
}

/* spec: X25 */
TEST(what_is_refused_or_rejected_of_a_batch_is_not_kept)
{
    start(SCRIPT({.status = 403}, {.body = "\x0a\x02\x08\x02", .body_length = 4}));

    export_named("first");
    assert_only_dropped(&fixture, OTEL_DROP_PERMANENT_ERROR, 3);
    assert_int_equal(fixture.call.spooled, 0);
    export_named("2nd..");

    assert_int_equal(fixture.call.rejected, 2);
    assert_int_equal(fixture.call.spooled, 0);
    assert_int_equal(COUNTED(stored), 0);
}

TEST(while_another_process_sends_batches_are_tried_now_and_then)
{
    start(SCRIPT(BUSY, {.then = HTTP_SINK_HANG}, BUSY, BUSY));
    otel_exporter other;
    assert_int_equal(
        otel_otlp_exporter_new(OTEL_OTLP_OPTIONS(.endpoint = http_sink_url(fixture.sink),
                                                 .spool_directory = files.path),
                               &other),
        OTEL_OK);
    export_named("first");
    while (requests() < 2) /* the other one has the files */
        (void)other.attend(other.state);
    fixture_advance_ms(1200);
    assert_true(attend_to_the_end() > 0);

    export_named("2nd..");
    assert_int_equal(requests(), 3);
    assert_int_equal(fixture.call.spooled, 3);
    export_named("3rd..");

    assert_int_equal(requests(), 3); /* not this soon */
    assert_int_equal(fixture.call.spooled, 3);
    other.free(other.state);
}

TEST(the_descriptor_is_readable_when_there_is_an_answer)
{
    start_away(SCRIPT(BUSY));
    assert_true(attend() > 0);
    assert_int_equal(descriptor(), -1);

    fixture_advance_ms(1200);
    (void)attend();
    while (COUNTED(sent) == 0) {
        struct pollfd waited = {.fd = descriptor(), .events = POLLIN};
        assert_true(waited.fd >= 0);
        assert_int_equal(poll(&waited, 1, 60000), 1);
        (void)attend();
    }
    assert_int_equal(attend_to_the_end(), NOTHING_TO_DO);
}

TEST(a_renewed_exporter_has_a_spool_of_its_own)
{
    start_away(SCRIPT(BUSY, BUSY));
    otel_exporter renewed;
    assert_int_equal(fixture.exporter.renew(fixture.exporter.state, &renewed), OTEL_OK);
    fixture.exporter.free(fixture.exporter.state);
    fixture.exporter = renewed;
    export_named("child");
    assert_int_equal(fixture.call.spooled, 3);

    fixture_advance_ms(1200);
    assert_int_equal(attend_to_the_end(), NOTHING_TO_DO);

    assert_arrived(2, "first");
    assert_arrived(3, "child");
}

/* R12 */
TEST(without_memory_no_span_is_lost_uncounted)
{
    start_away(SCRIPT(BUSY));
    for (size_t nth = 1; nth < 40; nth++) {
        oteli_leaks_fail_at(nth);
        fixture_export(&fixture);
        fixture_finish_fast(&fixture);
        (void)attend();
        oteli_leaks_fail_at(0);
        (void)spool_files_stats();
        assert_in_range(fixture.call.spooled + export_double_lost(&fixture.call), 0, 3);
    }
    fixture_advance_ms(20000);

    while (attend_to_the_end() != NOTHING_TO_DO)
        fixture_advance_ms(6000);
    assert_int_equal(COUNTED(waiting), 0);
}
