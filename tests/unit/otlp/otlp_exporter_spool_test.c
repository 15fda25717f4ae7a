/* SPDX-License-Identifier: Apache-2.0 */
/* What the OTLP exporter gives to its spool, and when it sends directly. What the spool itself does
 * is in spool_test.c. */
#include "tests/support/otlp_fixture.h"
#include "tests/support/unit.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)

static char directory[64];

static int make_directory(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/otlp-exporter-spool-XXXXXX");
    return mkdtemp(directory) != NULL ? 0 : -1;
}

static void remove_all(const char *path)
{
    DIR *entries = opendir(path);
    for (const struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        char below[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (unlink(below) != 0)
            remove_all(below); /* one level of directories */
    }
    if (entries != NULL)
        closedir(entries);
    (void)rmdir(path);
}

static int remove_directory(void **state)
{
    (void)state;
    remove_all(directory);
    return 0;
}

#define assert_spooled(fixture, count)                             \
    do {                                                           \
        assert_int_equal((fixture)->call.spooled, count);          \
        assert_int_equal(export_double_lost(&(fixture)->call), 0); \
    } while (0)

enum { IDLE_MS = 30000 }; /* what `attend` answers when there is nothing to do */

/* Until the sink has that many requests, and there is nothing more to do. Time runs. */
static void attend_until(struct fixture *fixture, size_t requests)
{
    for (int i = 0; i < 5000; i++) {
        int timeout_ms;
        http_sink_settle(fixture->sink);
        const int again_ms = fixture->exporter.attend(fixture->exporter.state);
        if (again_ms == IDLE_MS && http_sink_requests(fixture->sink) >= requests)
            break;
        struct pollfd waits = {
            .fd = fixture->exporter.descriptor(fixture->exporter.state, &timeout_ms),
            .events = POLLIN};
        (void)poll(&waits, 1, again_ms == 0 ? 0 : 1);
        fixture_advance_ms(20);
    }
    assert_int_equal(http_sink_requests(fixture->sink), requests);
}

AROUND_EACH(make_directory, remove_directory);

/* spec: X25 */
TEST(X25_what_finds_nobody_goes_to_disk_at_once)
{
    char endpoint[64];
    struct fixture fixture;
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", (unsigned)http_sink_closed_port());
    fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = endpoint, .spool_directory = directory));

    fixture_deliver(&fixture); /* while time stands still */
    assert_spooled(&fixture, 3);
    assert_true(fixture_export(&fixture)); /* without trying */
    assert_spooled(&fixture, 3);

    fixture_fini(&fixture);
}

/* spec: X25 */
TEST(X25_it_is_sent_when_the_receiver_is_back)
{
    static const struct http_sink_answer script[] = {{.status = 503}, {.status = 200}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), OPTIONS(.spool_directory = directory));

    fixture_deliver(&fixture);
    assert_spooled(&fixture, 3);
    fixture_deliver(&fixture);
    assert_spooled(&fixture, 3);
    assert_int_equal(http_sink_requests(fixture.sink), 1);
    attend_until(&fixture, 3);
    fixture_deliver(&fixture);

    assert_all_delivered(&fixture);
    assert_int_equal(fixture.call.spooled, 0);
    assert_int_equal(http_sink_requests(fixture.sink), 4);
    for (size_t i = 1; i < 4; i++) {
        const struct http_sink_request *request = http_sink_request(fixture.sink, i);
        assert_int_equal(request->body_length, http_sink_request(fixture.sink, 0)->body_length);
        assert_memory_equal(request->body, http_sink_request(fixture.sink, 0)->body,
                            request->body_length);
    }
    fixture_fini(&fixture);
}

/* It may have arrived; sent again, it arrives twice rather than not at all. */
TEST(X25_what_had_no_answer_in_time_is_kept)
{
    static const struct http_sink_answer script[] = {{.then = HTTP_SINK_HANG}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script),
                 OPTIONS(.spool_directory = directory, .max_request_bytes = 29));
    assert_false(fixture_export(&fixture));
    while (http_sink_requests(fixture.sink) == 0)
        assert_false(fixture_step(&fixture));

    assert_int_equal(fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 0, true),
                     OTEL_EXPORT_DONE);

    assert_spooled(&fixture, 3); /* what was never sent too */
    fixture_fini(&fixture);
}

TEST(X25_what_is_refused_is_not_kept)
{
    static const struct http_sink_answer script[] = {
        {.status = 403}, {.body = "\x0a\x02\x08\x02", .body_length = 4}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), OPTIONS(.spool_directory = directory));

    fixture_deliver(&fixture);
    assert_only_dropped(&fixture, OTEL_DROP_PERMANENT_ERROR, 3);
    assert_int_equal(fixture.call.spooled, 0);
    fixture_deliver(&fixture);
    assert_int_equal(fixture.call.rejected, 2);
    assert_int_equal(fixture.call.spooled, 0);

    fixture_fini(&fixture);
}

/* As without a spool, to the deadline. */
TEST(X25_what_the_disk_does_not_take_is_tried_again)
{
    static const struct http_sink_answer script[] = {{.status = 503}, {.status = 503}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), OPTIONS(.spool_directory = "/nowhere/at/all"));

    assert_false(fixture_export(&fixture));
    fixture_finish_fast(&fixture);

    assert_all_delivered(&fixture);
    assert_int_equal(fixture.call.spooled, 0);
    assert_int_equal(http_sink_requests(fixture.sink), 3);
    fixture_fini(&fixture);
}

TEST(X25_the_next_program_sends_it)
{
    struct fixture fixture;
    struct http_sink *sink = http_sink_start((struct http_sink_answer[]){{.status = 503}}, 1);
    fixture_init(&fixture, NULL, 0,
                 OPTIONS(.endpoint = http_sink_url(sink), .spool_directory = directory));
    fixture_deliver(&fixture);
    assert_spooled(&fixture, 3);
    fixture.exporter.free(fixture.exporter.state);

    assert_int_equal(otel_otlp_exporter_new(
                         OPTIONS(.endpoint = http_sink_url(sink), .spool_directory = directory),
                         &fixture.exporter),
                     OTEL_OK);
    struct http_sink *others = fixture.sink;
    fixture.sink = sink;
    attend_until(&fixture, 2);

    assert_memory_equal(http_sink_request(sink, 0)->body, http_sink_request(sink, 1)->body,
                        http_sink_request(sink, 0)->body_length);
    http_sink_stop(others);
    fixture_fini(&fixture);
}
