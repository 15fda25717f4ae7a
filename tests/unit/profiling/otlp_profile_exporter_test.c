/* SPDX-License-Identifier: Apache-2.0 */
/* The OTLP exporter for profiles: where it sends them, what it makes of the answers, and that
 * nobody waits for longer than asked. */
#include "tests/support/fault_peer.h"
#include "tests/support/http_sink.h"
#include "tests/support/leaks.h"
#include "tests/support/profile_double.h"
#include "tests/support/profile_rules.h"
#include "tests/support/unit.h"

#include <otel/otlp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)
#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { PATIENCE_MS = 60000 };

static char logged[4096]; /* line by line */

static void keep_log(void *state, otel_log_level level, const char *message)
{
    (void)state;
    const size_t used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%d %s\n", (int)level, message);
}

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
    logged[0] = '\0';
    otel_log_set_handler(keep_log, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    otel_log_set_handler(NULL, NULL);
    return 0;
}

static const char *url_of(const struct http_sink *sink, const char *path)
{
    static char url[128];
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", http_sink_port(sink), path);
    return url;
}

static otel_status send_shop(const otel_profile_exporter *exporter, int64_t timeout_ms)
{
    struct profile_double made;
    profile_double_init(&made);
    return exporter->export_profile(exporter->state, &made.profile, timeout_ms);
}

static otel_profile_exporter exporter_for(const struct http_sink *sink)
{
    const otel_profile_exporter made =
        otel_otlp_profile_exporter(OPTIONS(.endpoint = url_of(sink, "/v1development/profiles")));
    assert_non_null(made.state);
    return made;
}

static void assert_is_the_shop(const void *bytes, size_t length)
{
    char broken[PROFILE_RULES_SIZE];
    profiles_request *request =
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
            NULL, length, bytes);
    assert_non_null(request);
    assert_int_equal(profile_rules_broken(request, broken), 0);
    assert_int_equal(
        request->resource_profiles[0]->scope_profiles[0]->profiles[1]->samples[0]->values[0], 70);
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked(
        request, NULL);
}

/* --- Where they go --- */

AROUND_EACH(setup, teardown);

TEST(the_environment_says_where_profiles_go)
{
    char value[64];
    struct http_sink *sink = http_sink_start(NULL, 0);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url_of(sink, "/base/"), 1);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "key=secret", 1);

    otel_profile_exporter exporter = otel_otlp_profile_exporter(NULL);
    const otel_status status = send_shop(&exporter, PATIENCE_MS);

    assert_int_equal(status, OTEL_OK);
    assert_string_equal(logged, "");
    const struct http_sink_request *request = http_sink_request(sink, 0);
    assert_ptr_equal(strstr(request->head, "POST /base/v1development/profiles HTTP/1.1"),
                     request->head);
    assert_string_equal(http_sink_header(request, "Content-Type", value, sizeof value),
                        "application/x-protobuf");
    assert_string_equal(http_sink_header(request, "key", value, sizeof value), "secret");
    assert_is_the_shop(request->body, request->body_length);
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

TEST(an_endpoint_of_their_own_is_used_as_it_is)
{
    struct http_sink *sink = http_sink_start(NULL, 0);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", 1);
    setenv("OTEL_C_PROFILER_ENDPOINT", url_of(sink, "/ingest"), 1);

    otel_profile_exporter exporter = otel_otlp_profile_exporter(NULL);
    const otel_status status = send_shop(&exporter, PATIENCE_MS);

    assert_int_equal(status, OTEL_OK);
    const char *head = http_sink_request(sink, 0)->head;
    assert_ptr_equal(strstr(head, "POST /ingest HTTP/1.1"), head);
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

TEST(without_json_for_profiles_they_go_as_protobuf)
{
    struct http_sink *sink = http_sink_start(NULL, 0);
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", 1);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url_of(sink, ""), 1);

    otel_profile_exporter exporter = otel_otlp_profile_exporter(NULL);
    const otel_status status = send_shop(&exporter, PATIENCE_MS);

    assert_int_equal(status, OTEL_OK);
    assert_non_null(strstr(logged, "they are sent as http/protobuf"));
    const struct http_sink_request *request = http_sink_request(sink, 0);
    assert_is_the_shop(request->body, request->body_length);
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

TEST(grpc_calls_the_profiles_service_compressed_or_not)
{
    for (int compression = 0; compression <= OTEL_OTLP_COMPRESSION_GZIP; compression++) {
        struct fault_peer *peer = fault_peer_start(&(struct fault_peer_options){.script = NULL});
        otel_profile_exporter exporter = otel_otlp_profile_exporter(
            OPTIONS(.endpoint = fault_peer_origin(peer), .protocol = OTEL_OTLP_GRPC,
                    .compression = (otel_otlp_compression)compression));

        const otel_status status = send_shop(&exporter, PATIENCE_MS);

        assert_int_equal(status, OTEL_OK);
        const struct fault_request *request = fault_peer_request(peer, 0);
        assert_non_null(strstr(request->head, "POST /opentelemetry.proto.collector.profiles."
                                              "v1development.ProfilesService/Export"));
        assert_string_equal(request->encoding, compression != 0 ? "gzip" : "identity");
        assert_is_the_shop(request->plain, request->plain_length);
        exporter.free(exporter.state);
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
        logged[0] = '\0';

        const otel_profile_exporter exporter = otel_otlp_profile_exporter(&bad[i].options);

        assert_null(exporter.state);
        assert_non_null(strstr(logged, bad[i].says));
        assert_ptr_equal(strchr(logged, '\n'), logged + strlen(logged) - 1);
    }
}

/* --- What comes of it --- */

TEST(a_profile_without_samples_is_not_sent)
{
    struct http_sink *sink = http_sink_start(NULL, 0);
    otel_profile_exporter exporter = exporter_for(sink);
    struct profile_double made;
    profile_double_begin(&made);

    const otel_status status = exporter.export_profile(exporter.state, &made.profile, PATIENCE_MS);

    assert_int_equal(status, OTEL_OK);
    exporter.free(exporter.state);
    assert_int_equal(http_sink_requests(sink), 0);
    http_sink_stop(sink);
}

TEST(a_busy_receiver_is_asked_again)
{
    static const struct http_sink_answer script[] = {
        {.status = 503, .headers = "Retry-After: 0\r\n"}};
    struct http_sink *sink = http_sink_start(script, COUNT(script));
    otel_profile_exporter exporter = exporter_for(sink);

    const otel_status status = send_shop(&exporter, PATIENCE_MS);

    assert_int_equal(status, OTEL_OK);
    assert_int_equal(http_sink_requests(sink), 2);
    assert_string_equal(logged, "");
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

TEST(an_endpoint_without_a_path_is_said_to_need_one)
{
    static const struct http_sink_answer script[] = {{.status = 404}};
    struct http_sink *sink = http_sink_start(script, COUNT(script));
    setenv("OTEL_C_PROFILER_ENDPOINT", url_of(sink, ""), 1);

    otel_profile_exporter exporter = otel_otlp_profile_exporter(NULL);
    const otel_status status = send_shop(&exporter, PATIENCE_MS);

    assert_int_equal(status, OTEL_ERROR_EXPORT_FAILED);
    assert_non_null(strstr(logged, "so /v1development/profiles has to be behind it"));
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

TEST(a_receiver_without_profiles_is_told_about_in_one_line)
{
    static const struct http_sink_answer script[] = {{.status = 404}};
    struct http_sink *sink = http_sink_start(script, COUNT(script));
    otel_profile_exporter exporter = exporter_for(sink);

    const otel_status status = send_shop(&exporter, PATIENCE_MS);

    assert_int_equal(status, OTEL_ERROR_EXPORT_FAILED);
    assert_int_equal(http_sink_requests(sink), 1);
    assert_non_null(strstr(logged, "service.profilesSupport"));
    assert_ptr_equal(strchr(logged, '\n'), logged + strlen(logged) - 1);
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

TEST(a_refusal_is_final_and_says_what_is_lost)
{
    static const struct http_sink_answer script[] = {
        {.status = 400, .body = "no", .body_length = 2}};
    struct http_sink *sink = http_sink_start(script, COUNT(script));
    otel_profile_exporter exporter = exporter_for(sink);

    const otel_status status = send_shop(&exporter, PATIENCE_MS);

    assert_int_equal(status, OTEL_ERROR_EXPORT_FAILED);
    assert_int_equal(http_sink_requests(sink), 1);
    assert_non_null(
        strstr(logged, "failed after 1 attempt: HTTP status 400: no; 100 samples are lost"));
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

TEST(partial_success_is_told_and_never_sent_again)
{
    /* partial_success of rejected_profiles and error_message. */
    static const char warning[] = "\x0a\x05\x12\x03"
                                  "hmm";
    static const char one[] = "\x0a\x07\x08\x01\x12\x03"
                              "old";
    static const char both[] = "\x0a\x07\x08\x02\x12\x03"
                               "bad";
    static const struct http_sink_answer script[] = {
        {.body = warning, .body_length = sizeof warning - 1},
        {.body = one, .body_length = sizeof one - 1},
        {.body = both, .body_length = sizeof both - 1}};
    struct http_sink *sink = http_sink_start(script, COUNT(script));
    otel_profile_exporter exporter = exporter_for(sink);

    const otel_status warned = send_shop(&exporter, PATIENCE_MS);
    const otel_status partly = send_shop(&exporter, PATIENCE_MS);
    const otel_status refused = send_shop(&exporter, PATIENCE_MS);

    assert_int_equal(warned, OTEL_OK);
    assert_int_equal(partly, OTEL_OK);
    assert_int_equal(refused, OTEL_ERROR_EXPORT_FAILED);
    assert_int_equal(http_sink_requests(sink), 3);
    assert_non_null(strstr(logged, "accepted all profiles and warns: hmm"));
    assert_non_null(strstr(logged, "rejected 1 of 2 profiles: old"));
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

TEST(a_profile_above_the_limit_is_not_sent)
{
    struct http_sink *sink = http_sink_start(NULL, 0);
    otel_profile_exporter exporter = otel_otlp_profile_exporter(
        OPTIONS(.endpoint = url_of(sink, "/p"), .max_request_bytes = 100));

    const otel_status status = send_shop(&exporter, PATIENCE_MS);

    assert_int_equal(status, OTEL_ERROR_EXPORT_FAILED);
    assert_int_equal(http_sink_requests(sink), 0);
    assert_non_null(strstr(logged, "larger than an OTLP request may be (100 bytes)"));
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

/* --- Time --- */

TEST(without_time_nothing_is_sent)
{
    struct http_sink *sink = http_sink_start(NULL, 0);
    otel_profile_exporter exporter = exporter_for(sink);

    const otel_status status = send_shop(&exporter, 0);

    assert_int_equal(status, OTEL_ERROR_TIMEOUT);
    exporter.free(exporter.state);
    assert_int_equal(http_sink_requests(sink), 0);
    http_sink_stop(sink);
}

struct waking {
    struct http_sink *sink;
    const otel_profile_exporter *exporter;
};

static void *wake_when_it_waits(void *argument)
{
    struct waking *waking = argument;
    if (http_sink_wait(waking->sink, 1))
        waking->exporter->wake(waking->exporter->state);
    return NULL;
}

TEST(an_export_that_is_woken_comes_back_and_the_next_one_works)
{
    static const struct http_sink_answer script[] = {{.then = HTTP_SINK_HANG}};
    struct http_sink *sink = http_sink_start(script, COUNT(script));
    otel_profile_exporter exporter = otel_otlp_profile_exporter(
        OPTIONS(.endpoint = url_of(sink, "/p"), .timeout_ms = OTEL_ZERO));
    struct waking waking = {sink, &exporter};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wake_when_it_waits, &waking), 0);

    const otel_status woken = send_shop(&exporter, INT64_MAX);
    pthread_join(thread, NULL);
    const otel_status next = send_shop(&exporter, PATIENCE_MS);

    assert_int_equal(woken, OTEL_ERROR_TIMEOUT);
    assert_int_equal(next, OTEL_OK);
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

TEST(a_wake_that_comes_too_late_does_nothing_to_the_next_export)
{
    struct http_sink *sink = http_sink_start(NULL, 0);
    otel_profile_exporter exporter = exporter_for(sink);

    const otel_status first = send_shop(&exporter, PATIENCE_MS);
    exporter.wake(exporter.state); /* for the first one */
    const otel_status second = send_shop(&exporter, PATIENCE_MS);

    assert_int_equal(first, OTEL_OK);
    assert_int_equal(second, OTEL_OK);
    assert_int_equal(http_sink_requests(sink), 2);
    assert_string_equal(logged, "");
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

static bool wake_at_once(void *state, otel_otlp_request_headers *headers)
{
    const otel_profile_exporter *exporter = state;
    (void)headers;
    exporter->wake(exporter->state);
    return true;
}

TEST(a_wake_before_the_request_is_on_its_way_counts)
{
    static const struct http_sink_answer script[] = {{.then = HTTP_SINK_HANG}};
    struct http_sink *sink = http_sink_start(script, COUNT(script));
    otel_profile_exporter exporter;
    exporter = otel_otlp_profile_exporter(
        OPTIONS(.endpoint = url_of(sink, "/p"), .timeout_ms = OTEL_ZERO,
                .add_headers = wake_at_once, .add_headers_state = &exporter));

    const otel_status woken = send_shop(&exporter, INT64_MAX);

    assert_int_equal(woken, OTEL_ERROR_TIMEOUT);
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

/* --- What the program gives --- */

static unsigned freed;

static bool add_token(void *state, otel_otlp_request_headers *headers)
{
    return otel_otlp_add_header(headers, "token", state) == OTEL_OK;
}

static void count_freed(void *state)
{
    (void)state;
    freed++;
}

TEST(headers_that_change_are_asked_for_and_their_state_is_freed)
{
    char value[16];
    char token[] = "t-1";
    struct http_sink *sink = http_sink_start(NULL, 0);
    otel_profile_exporter exporter = otel_otlp_profile_exporter(
        OPTIONS(.endpoint = url_of(sink, "/p"), .add_headers = add_token,
                .add_headers_state = token, .free_add_headers_state = count_freed));
    freed = 0;

    assert_int_equal(send_shop(&exporter, PATIENCE_MS), OTEL_OK);
    token[2] = '2';
    assert_int_equal(send_shop(&exporter, PATIENCE_MS), OTEL_OK);

    for (size_t i = 0; i < 2; i++)
        assert_string_equal(
            http_sink_header(http_sink_request(sink, i), "token", value, sizeof value),
            i == 0 ? "t-1" : "t-2");
    assert_int_equal(freed, 0);
    exporter.free(exporter.state);
    assert_int_equal(freed, 1);
    http_sink_stop(sink);
}

TEST(without_memory_there_is_no_exporter_and_nothing_is_left)
{
    for (size_t nth = 1;; nth++) {
        freed = 0;
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        otel_profile_exporter exporter = otel_otlp_profile_exporter(
            OPTIONS(.endpoint = "http://127.0.0.1:1/p", .free_add_headers_state = count_freed));
        const bool has_failed = oteli_leaks_failed();
        oteli_leaks_fail_at(0);

        assert_int_equal(exporter.state == NULL, has_failed);
        assert_int_equal(freed, 0);
        if (!has_failed)
            exporter.free(exporter.state);
        oteli_leaks_check();
        if (!has_failed) {
            assert_true(nth > 3);
            return;
        }
    }
}

/* The third time it has waited long enough. */
struct waiter {
    otel_profile_exporter exporter;
    unsigned calls;
};

static int wake_at_the_third(void *state)
{
    struct waiter *waiter = state;
    if (++waiter->calls == 3)
        waiter->exporter.wake(waiter->exporter.state);
    return 1;
}

TEST(what_there_is_to_do_meanwhile_is_done)
{
    static const struct http_sink_answer script[] = {{.then = HTTP_SINK_HANG}};
    struct http_sink *sink = http_sink_start(script, COUNT(script));
    struct waiter waiter = {.exporter = exporter_for(sink)};
    struct oteli_profile_exporting exporting = {.meanwhile = wake_at_the_third, .state = &waiter};
    struct profile_double made;
    profile_double_init(&made);
    made.profile.exporting = &exporting;

    const otel_status status =
        waiter.exporter.export_profile(waiter.exporter.state, &made.profile, 5000);

    assert_int_equal(status, OTEL_ERROR_TIMEOUT);
    assert_int_equal(waiter.calls, 3);
    waiter.exporter.free(waiter.exporter.state);
    http_sink_stop(sink);
}
