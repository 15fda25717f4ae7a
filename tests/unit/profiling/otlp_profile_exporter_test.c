/* SPDX-License-Identifier: Apache-2.0 */
/* The OTLP exporter for profiles: where it sends them, what it makes of the answers, that nobody
 * waits for longer than asked; and that what is too large, for the receiver or for ourselves,
 * arrives in parts, each of which is whole by itself, while what does not arrive is counted to the
 * sample. */
#include "tests/support/fault_peer.h"
#include "tests/support/http_sink.h"
#include "tests/support/leaks.h"
#include "tests/support/profile_double.h"
#include "tests/support/profile_rules.h"
#include "tests/support/said.h"
#include "tests/support/unit.h"

#include <otel/otlp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)
#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { PATIENCE_MS = 60000, SHOP_ROWS = 5, SHOP_SAMPLES = 100, PERIOD_MS = 10 };

static struct http_sink *sink;
static otel_profile_exporter exporter;
static struct profile_double made;

static int setup(void **state)
{
    static const char *const variables[] = {"OTEL_EXPORTER_OTLP_ENDPOINT",
                                            "OTEL_EXPORTER_OTLP_PROTOCOL",
                                            "OTEL_C_PROFILER_ENDPOINT",
                                            "OTEL_EXPORTER_OTLP_COMPRESSION",
                                            "OTEL_EXPORTER_OTLP_HEADERS",
                                            "http_proxy",
                                            "all_proxy"};
    (void)state;
    for (size_t i = 0; i < COUNT(variables); i++)
        unsetenv(variables[i]);
    said_begin(OTEL_LOG_INFO);
    sink = NULL;
    exporter.state = NULL;
    profile_double_init(&made);
    return 0;
}

static void free_exporter(void)
{
    if (exporter.state != NULL)
        exporter.free(exporter.state);
    exporter.state = NULL;
}

static int teardown(void **state)
{
    (void)state;
    free_exporter();
    if (sink != NULL)
        http_sink_stop(sink);
    said_end();
    return 0;
}

static const char *url_of(const char *path)
{
    static char url[128];
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", http_sink_port(sink), path);
    return url;
}

static void export_with(const otel_otlp_options *options)
{
    exporter = otel_otlp_profile_exporter(options);
    assert_non_null(exporter.state);
}

/* A receiver, and an exporter to it. */
static void receive(const struct http_sink_answer *script, size_t count)
{
    sink = http_sink_start(script, count);
    export_with(OPTIONS(.endpoint = url_of("/v1development/profiles")));
}

static otel_status send_within(int64_t timeout_ms)
{
    return exporter.export_profile(exporter.state, &made.profile, timeout_ms);
}

static otel_status send(void)
{
    return send_within(PATIENCE_MS);
}

/* How many samples of it are dropped; all, if it fails. */
static uint64_t send_and_count(void)
{
    struct oteli_profile_exporting exporting = {.dropped = 0};
    made.profile.exporting = &exporting;
    const otel_status status = send();
    made.profile.exporting = NULL;
    return status == OTEL_OK ? exporting.dropped : SHOP_SAMPLES;
}

/* What is in a request, which keeps every rule that one has to keep, and has an id of its own. */
struct content {
    size_t records;
    uint64_t samples;
};

static struct content content_of(const void *bytes, size_t length)
{
    static uint8_t last_id[16];
    char broken[PROFILE_RULES_SIZE];
    uint64_t cpu_ms = 0;
    profiles_request *request =
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
            NULL, length, bytes);
    assert_non_null(request);
    (void)profile_rules_broken(request, broken);
    assert_string_equal(broken, "");
    profiles_profile **profiles = request->resource_profiles[0]->scope_profiles[0]->profiles;
    struct content content = {.records = profiles[1]->n_samples};
    for (size_t i = 0; i < profiles[1]->n_samples; i++) {
        content.samples += (uint64_t)profiles[1]->samples[i]->values[0];
        cpu_ms += (uint64_t)profiles[0]->samples[i]->values[0] / 1000000;
    }
    assert_int_equal(cpu_ms, content.samples * PERIOD_MS);
    assert_memory_not_equal(last_id, profiles[0]->profile_id.data, sizeof last_id);
    memcpy(last_id, profiles[0]->profile_id.data, sizeof last_id);
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked(
        request, NULL);
    return content;
}

static struct content received(size_t index)
{
    const struct http_sink_request *request = http_sink_request(sink, index);
    return content_of(request->body, request->body_length);
}

/* Send it: "100 in 5! 95 in 3 5 in 2 - 0 dropped" says how many samples in how many records came in
 * each request, those that were too large for the receiver with "!". */
static const char *send_as_text(size_t limit)
{
    static char text[512];
    size_t index = http_sink_requests(sink);
    const uint64_t dropped = send_and_count();
    text[0] = '\0';
    for (; index < http_sink_requests(sink); index++) {
        const struct content content = received(index);
        const bool is_refused = http_sink_request(sink, index)->body_length > limit;
        snprintf(strchr(text, '\0'), 32, "%u in %u%s ", (unsigned)content.samples,
                 (unsigned)content.records, is_refused ? "!" : "");
    }
    snprintf(strchr(text, '\0'), 32, "- %u dropped", (unsigned)dropped);
    return text;
}

/* Samples in the requests from this one on that are no longer than this. */
static uint64_t samples_within(size_t limit, size_t index)
{
    uint64_t samples = 0;
    for (; index < http_sink_requests(sink); index++) {
        if (http_sink_request(sink, index)->body_length <= limit)
            samples += received(index).samples;
    }
    return samples;
}

/* The length of a request with the first so many rows of the shop, to measure limits by. */
static size_t length_of_shop(size_t rows)
{
    receive(NULL, 0);
    made.profile.sample_count = (uint32_t)rows;
    assert_int_equal(send(), OTEL_OK);
    made.profile.sample_count = SHOP_ROWS;
    const size_t length = http_sink_request(sink, 0)->body_length;
    free_exporter();
    http_sink_stop(sink);
    sink = NULL;
    return length;
}

static void begin_again(void)
{
    (void)teardown(NULL);
    (void)setup(NULL);
}

/* --- Where they go --- */

AROUND_EACH(setup, teardown);

TEST(the_environment_says_where_profiles_go)
{
    static const struct {
        const char *variable, *path, *protocol, *line, *says;
    } table[] = {
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "/base/", "http/protobuf",
         "POST /base/v1development/profiles HTTP/1.1\r\n", ""},
        {"OTEL_C_PROFILER_ENDPOINT", "/ingest", "http/json", "POST /ingest HTTP/1.1\r\n",
         "they are sent as http/protobuf"},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        char value[64];
        begin_again();
        sink = http_sink_start(NULL, 0);
        setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", 1);
        setenv(table[i].variable, url_of(table[i].path), 1);
        setenv("OTEL_EXPORTER_OTLP_PROTOCOL", table[i].protocol, 1);
        setenv("OTEL_EXPORTER_OTLP_HEADERS", "key=secret", 1);
        export_with(NULL);

        assert_int_equal(send(), OTEL_OK);

        assert_non_null(strstr(said, table[i].says));
        assert_int_equal(said[0] == '\0', table[i].says[0] == '\0');
        const struct http_sink_request *request = http_sink_request(sink, 0);
        assert_memory_equal(request->head, table[i].line, strlen(table[i].line));
        assert_string_equal(http_sink_header(request, "Content-Type", value, sizeof value),
                            "application/x-protobuf");
        assert_string_equal(http_sink_header(request, "key", value, sizeof value), "secret");
        assert_int_equal(received(0).samples, SHOP_SAMPLES);
    }
}

TEST(grpc_calls_the_profiles_service_and_says_in_words_of_its_own_what_is_too_large)
{
    const size_t whole = length_of_shop(SHOP_ROWS);
    for (int compression = 0; compression <= OTEL_OTLP_COMPRESSION_GZIP; compression++) {
        uint64_t samples = 0;
        struct fault_peer *peer =
            fault_peer_start(&(struct fault_peer_options){.max_request_bytes = whole - 1});
        export_with(OPTIONS(.endpoint = fault_peer_origin(peer), .protocol = OTEL_OTLP_GRPC,
                            .compression = (otel_otlp_compression)compression));

        assert_int_equal(send_and_count(), 0);

        for (size_t i = 0; i < 3; i++) {
            const struct fault_peer_request *request = fault_peer_request(peer, i);
            assert_non_null(strstr(request->head, "POST /opentelemetry.proto.collector.profiles."
                                                  "v1development.ProfilesService/Export"));
            assert_string_equal(request->encoding, compression != 0 ? "gzip" : "identity");
            samples += content_of(request->plain, request->plain_length).samples;
        }
        assert_int_equal(samples, 2 * SHOP_SAMPLES); /* the whole, and both halves */
        free_exporter();
        fault_peer_stop(peer);
    }
}

TEST(what_cannot_be_is_no_exporter_and_one_line_in_the_log)
{
    static const struct {
        otel_otlp_options options;
        const char *says;
    } bad[] = {
        {{.size = sizeof(otel_otlp_options), .protocol = OTEL_OTLP_HTTP_JSON}, "no http/json"},
        {{.size = sizeof(otel_otlp_options), .endpoint = "nowhere"}, "invalid argument"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        said[0] = '\0';
        assert_null(otel_otlp_profile_exporter(&bad[i].options).state);
        assert_non_null(strstr(said, bad[i].says));
        assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
    }
}

/* --- What comes of it --- */

/* Before others: the log says a line of one kind once in ten seconds. */
TEST(what_is_too_large_arrives_in_halves_as_far_as_it_takes)
{
    static const struct http_sink_answer refusals[] = {
        {.status = 413}, {.status = 400, .body = "no", .body_length = 2}};
    const size_t whole = length_of_shop(SHOP_ROWS);
    const size_t three = length_of_shop(3);
    const struct {
        size_t limit;     /* of the receiver; 0: none */
        size_t own_limit; /* which is kept to without asking */
        size_t answers;
        const char *text;
        const char *then; /* the next time, when that is remembered */
        const char *says;
    } table[] = {
        {whole - 1, 0, 0, "100 in 5! 95 in 3 5 in 2 - 0 dropped", "95 in 3 5 in 2 - 0 dropped", ""},
        {three - 1, 0, 0, "100 in 5! 95 in 3! 75 in 2 20 in 1 5 in 2 - 0 dropped", NULL, ""},
        {0, whole - 1, 0, "95 in 3 5 in 2 - 0 dropped", NULL, ""},
        {0, 100, 0, "- 100 dropped", NULL, "larger than an OTLP request may be (100 bytes)"},
        /* A refusal is final, and one of a half leaves the other. */
        {0, 0, COUNT(refusals), "100 in 5 95 in 3 5 in 2 - 95 dropped", NULL,
         "failed after 1 attempt: HTTP status 400: no; 95 samples are lost\n"},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        begin_again();
        sink = http_sink_start(refusals, table[i].answers);
        if (table[i].limit != 0)
            http_sink_limit(sink, table[i].limit);
        export_with(OPTIONS(.endpoint = url_of("/p"), .max_request_bytes = table[i].own_limit));
        const size_t limit = table[i].limit != 0 ? table[i].limit : SIZE_MAX;

        assert_string_equal(send_as_text(limit), table[i].text);
        if (table[i].then != NULL)
            assert_string_equal(send_as_text(limit), table[i].then);

        assert_non_null(strstr(said, table[i].says));
        assert_int_equal(said[0] == '\0', table[i].says[0] == '\0');
    }
}

TEST(a_profile_without_samples_or_without_time_is_not_sent)
{
    receive(NULL, 0);

    assert_int_equal(send_within(0), OTEL_ERROR_TIMEOUT);
    profile_double_begin(&made);
    assert_int_equal(send(), OTEL_OK);

    free_exporter();
    assert_int_equal(http_sink_requests(sink), 0);
}

TEST(what_the_receiver_answers_is_understood_and_told_in_one_line)
{
    static const struct {
        int status;
        const char *body; /* partial_success of rejected_profiles and error_message */
        const char *path;
        bool is_delivered;
        const char *says; /* "": nothing */
    } table[] = {
        {503, "", "/p", true, ""}, /* it is asked again */
        {404, "", "", false, "so /v1development/profiles has to be behind it"},
        {404, "", "/p", false, "service.profilesSupport"},
        {200, "\x0a\x05\x12\x03hmm", "/p", true, "accepted all profiles and warns: hmm"},
        {200, "\x0a\x07\x08\x01\x12\x03old", "/p", true, "rejected 1 of 2 profiles: old"},
        {200,
         "\x0a\x07\x08\x02\x12\x03"
         "bad",
         "/p", false, ""}, /* that was said already */
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        const struct http_sink_answer answer = {.status = table[i].status,
                                                .headers = "Retry-After: 0\r\n",
                                                .body = table[i].body,
                                                .body_length = strlen(table[i].body)};
        begin_again();
        sink = http_sink_start(&answer, 1);
        setenv("OTEL_C_PROFILER_ENDPOINT", url_of(table[i].path), 1);
        export_with(NULL);

        assert_int_equal(send(), table[i].is_delivered ? OTEL_OK : OTEL_ERROR_EXPORT_FAILED);

        assert_int_equal(http_sink_requests(sink), table[i].status == 503 ? 2 : 1);
        if (strstr(said, table[i].says) == NULL)
            fail_msg("%zu: %s", i, said);
        const char *end = table[i].says[0] != '\0' ? said + strlen(said) - 1 : NULL;
        assert_ptr_equal(strchr(said, '\n'), end);
    }
}

/* --- Time --- */

static void *wake_when_it_waits(void *unused)
{
    if (http_sink_wait(sink, 1))
        exporter.wake(exporter.state);
    return unused;
}

TEST(an_export_that_is_woken_comes_back_and_the_next_one_works)
{
    static const struct http_sink_answer script[] = {{.then = HTTP_SINK_HANG}};
    sink = http_sink_start(script, COUNT(script));
    export_with(OPTIONS(.endpoint = url_of("/p"), .timeout_ms = OTEL_ZERO));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wake_when_it_waits, NULL), 0);

    const otel_status woken = send_within(INT64_MAX);
    pthread_join(thread, NULL);
    const otel_status next = send();
    exporter.wake(exporter.state); /* too late: does nothing to one that comes after it */
    const otel_status last = send();

    assert_int_equal(woken, OTEL_ERROR_TIMEOUT);
    assert_int_equal(next, OTEL_OK);
    assert_int_equal(last, OTEL_OK);
    assert_int_equal(http_sink_requests(sink), 3);
}

static unsigned requests_until_wake;

static bool wake_before_the_request(void *state, otel_otlp_request_headers *headers)
{
    if (--requests_until_wake == 0)
        exporter.wake(exporter.state);
    return otel_otlp_add_header(headers, "token", state) == OTEL_OK;
}

/* At once, or before the first of two halves, of which the second is not tried. */
TEST(a_wake_before_a_request_is_on_its_way_counts_for_all_parts)
{
    static const struct http_sink_answer script[] = {{.status = 413}, {.then = HTTP_SINK_HANG}};
    char token[] = "t-1";
    char value[16];
    for (unsigned nth = 1; nth <= 2; nth++) {
        begin_again();
        sink = http_sink_start(script + 2 - nth, nth);
        export_with(OPTIONS(.endpoint = url_of("/p"), .timeout_ms = OTEL_ZERO,
                            .add_headers = wake_before_the_request, .add_headers_state = token));
        requests_until_wake = nth;

        assert_int_equal(send_within(INT64_MAX), OTEL_ERROR_TIMEOUT);

        assert_int_equal(requests_until_wake, 0);
        if (nth == 2)
            assert_string_equal(
                http_sink_header(http_sink_request(sink, 0), "token", value, sizeof value), "t-1");
    }
}

static int wake_at_the_third(void *state)
{
    unsigned *calls = state;
    if (++*calls == 3)
        exporter.wake(exporter.state);
    return 1;
}

TEST(what_there_is_to_do_meanwhile_is_done)
{
    static const struct http_sink_answer script[] = {{.then = HTTP_SINK_HANG}};
    unsigned calls = 0;
    struct oteli_profile_exporting exporting = {.meanwhile = wake_at_the_third, .state = &calls};
    receive(script, COUNT(script));
    made.profile.exporting = &exporting;

    assert_int_equal(send_within(5000), OTEL_ERROR_TIMEOUT);
    assert_int_equal(calls, 3);
}

/* --- What the program gives --- */

static unsigned freed;

static void count_freed(void *state)
{
    (void)state;
    freed++;
}

TEST(without_memory_there_is_no_exporter_and_nothing_is_left)
{
    bool all_tried = false;
    for (size_t nth = 1; !all_tried; nth++) {
        freed = 0;
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        exporter = otel_otlp_profile_exporter(
            OPTIONS(.endpoint = "http://127.0.0.1:1/p", .free_add_headers_state = count_freed));
        all_tried = !oteli_leaks_failed();

        assert_int_equal(exporter.state != NULL, all_tried);
        assert_int_equal(freed, 0);
        free_exporter();
        assert_int_equal(freed, all_tried);
        oteli_leaks_check();
        assert_true(!all_tried || nth > 3);
    }
}

/* --- In parts --- */

TEST(a_receiver_that_takes_nothing_is_left_alone_soon)
{
    profile_double_begin(&made);
    const uint32_t stack = profile_double_stack(&made, NULL, 0);
    for (unsigned i = 0; i < 40; i++) {
        made.threads[i].id = (pid_t)i + 1;
        profile_double_sample(
            &made, (struct oteli_profile_sample){.stack = stack, .thread = i, .count = 1});
    }
    made.profile.threads.count = 40;
    receive(NULL, 0);
    http_sink_limit(sink, 1);

    assert_int_equal(send(), OTEL_ERROR_EXPORT_FAILED);
    assert_true(http_sink_requests(sink) < 30);
}

/* In a process of its own, so that allocations of the receiver do not fail. Gives how many samples
 * of the shop are dropped; `all_tried`: the allocation that was to fail is never asked for. */
static unsigned export_without_memory(size_t nth, bool *all_tried)
{
    int status = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        export_with(OPTIONS(.endpoint = url_of("/p")));
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        const unsigned dropped = (unsigned)send_and_count();
        _exit((int)dropped + (oteli_leaks_failed() ? 0 : SHOP_SAMPLES + 1));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    *all_tried = WEXITSTATUS(status) > SHOP_SAMPLES;
    return (unsigned)WEXITSTATUS(status) % (SHOP_SAMPLES + 1);
}

TEST(without_memory_every_sample_is_delivered_or_dropped)
{
    const size_t whole = length_of_shop(SHOP_ROWS);
    bool all_tried = false;
    sink = http_sink_start(NULL, 0);
    http_sink_limit(sink, whole - 1);
    for (size_t nth = 1; !all_tried; nth++) {
        const size_t first = http_sink_requests(sink);
        const unsigned dropped = export_without_memory(nth, &all_tried);
        assert_int_equal(samples_within(whole - 1, first) + dropped, SHOP_SAMPLES);
        assert_true(nth < 10000);
    }
}
