/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that are too large for the receiver, or for ourselves: they arrive in parts, each of which
 * is whole by itself, and what does not arrive is counted to the sample. */
#include "tests/support/fault_peer.h"
#include "tests/support/http_sink.h"
#include "tests/support/leaks.h"
#include "tests/support/profile_double.h"
#include "tests/support/profile_rules.h"
#include "tests/support/unit.h"

#include <otel/otlp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)
#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { PATIENCE_MS = 60000, SHOP_ROWS = 5, SHOP_SAMPLES = 100, PERIOD_MS = 10 };

static char logged[4096]; /* line by line */

static void keep_log(void *state, otel_log_level level, const char *message)
{
    (void)state;
    const size_t used = strlen(logged);
    if (level <= OTEL_LOG_WARN)
        snprintf(logged + used, sizeof logged - used, "%s\n", message);
}

static int setup(void **state)
{
    (void)state;
    setenv("OTEL_SERVICE_NAME", "shop", 1);
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

/* What one export has come to. */
struct exported {
    otel_status status;
    uint64_t dropped;
};

static struct exported export_profile(const otel_profile_exporter *exporter,
                                      const otel_profile *profile)
{
    struct oteli_profile_exporting exporting = {.dropped = 0};
    otel_profile counted = *profile;
    counted.exporting = &exporting;
    const otel_status status = exporter->export_profile(exporter->state, &counted, PATIENCE_MS);
    return (struct exported){status, exporting.dropped};
}

static struct exported export_shop(const otel_profile_exporter *exporter)
{
    struct profile_double made;
    profile_double_init(&made);
    return export_profile(exporter, &made.profile);
}

static otel_profile_exporter exporter_for(const struct http_sink *sink, size_t max_request_bytes)
{
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/p", http_sink_port(sink));
    const otel_profile_exporter made = otel_otlp_profile_exporter(
        OPTIONS(.endpoint = url, .max_request_bytes = max_request_bytes));
    assert_non_null(made.state);
    return made;
}

/* What is in a request, which keeps every rule that one has to keep. */
struct content {
    size_t records;
    uint64_t samples;
    uint64_t cpu_ms;
    uint8_t id[16];
};

static struct content content_of(const void *bytes, size_t length)
{
    char broken[PROFILE_RULES_SIZE];
    struct content content = {.records = 0};
    profiles_request *request =
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
            NULL, length, bytes);
    assert_non_null(request);
    (void)profile_rules_broken(request, broken);
    assert_string_equal(broken, "");
    profiles_profile **profiles = request->resource_profiles[0]->scope_profiles[0]->profiles;
    content.records = profiles[1]->n_samples;
    for (size_t i = 0; i < profiles[1]->n_samples; i++) {
        content.samples += (uint64_t)profiles[1]->samples[i]->values[0];
        content.cpu_ms += (uint64_t)profiles[0]->samples[i]->values[0] / 1000000;
    }
    assert_int_equal(profiles[0]->profile_id.len, sizeof content.id);
    memcpy(content.id, profiles[0]->profile_id.data, sizeof content.id);
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked(
        request, NULL);
    return content;
}

/* The length of a request with the first so many samples of the shop, to measure limits by. */
static size_t length_of_shop(size_t samples)
{
    struct profile_double made;
    profile_double_init(&made);
    made.profile.sample_count = samples;
    struct http_sink *sink = http_sink_start(NULL, 0);
    otel_profile_exporter exporter = exporter_for(sink, 0);
    assert_int_equal(export_profile(&exporter, &made.profile).status, OTEL_OK);
    const size_t length = http_sink_request(sink, 0)->body_length;
    exporter.free(exporter.state);
    http_sink_stop(sink);
    return length;
}

AROUND_EACH(setup, teardown);

TEST(what_is_too_large_arrives_in_halves)
{
    const size_t whole = length_of_shop(SHOP_ROWS);
    struct http_sink *sink = http_sink_start(NULL, 0);
    otel_profile_exporter exporter = exporter_for(sink, 0);
    http_sink_limit(sink, whole - 1);

    const struct exported exported = export_shop(&exporter);

    assert_int_equal(exported.status, OTEL_OK);
    assert_int_equal(exported.dropped, 0);
    assert_int_equal(http_sink_requests(sink), 3);
    const struct http_sink_request *first = http_sink_request(sink, 1);
    const struct http_sink_request *second = http_sink_request(sink, 2);
    const struct content left = content_of(first->body, first->body_length);
    const struct content right = content_of(second->body, second->body_length);
    assert_int_equal(left.records, 3); /* 70, 5 and 20 */
    assert_int_equal(left.samples, 95);
    assert_int_equal(left.cpu_ms, 95 * PERIOD_MS);
    assert_int_equal(right.records, 2); /* 4 and 1 */
    assert_int_equal(right.samples, 5);
    assert_int_equal(right.cpu_ms, 5 * PERIOD_MS);
    assert_memory_not_equal(left.id, right.id, sizeof left.id);
    assert_string_equal(logged, "");
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

TEST(halves_are_halved_as_far_as_it_takes)
{
    const size_t limit = length_of_shop(3) - 1;
    uint64_t samples = 0;
    struct http_sink *sink = http_sink_start(NULL, 0);
    otel_profile_exporter exporter = exporter_for(sink, 0);
    http_sink_limit(sink, limit);

    const struct exported exported = export_shop(&exporter);

    assert_int_equal(exported.status, OTEL_OK);
    assert_int_equal(exported.dropped, 0);
    for (size_t i = 0; i < http_sink_requests(sink); i++) {
        const struct http_sink_request *request = http_sink_request(sink, i);
        if (request->body_length <= limit)
            samples += content_of(request->body, request->body_length).samples;
    }
    assert_int_equal(samples, SHOP_SAMPLES);
    assert_int_equal(http_sink_requests(sink), 5); /* 5 and 3 too large; 2, 1 and 2 samples */
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

TEST(what_the_receiver_takes_is_remembered)
{
    const size_t whole = length_of_shop(SHOP_ROWS);
    struct http_sink *sink = http_sink_start(NULL, 0);
    otel_profile_exporter exporter = exporter_for(sink, 0);
    http_sink_limit(sink, whole - 1);
    assert_int_equal(export_shop(&exporter).status, OTEL_OK);
    const size_t before = http_sink_requests(sink);

    const struct exported exported = export_shop(&exporter);

    assert_int_equal(exported.status, OTEL_OK);
    assert_int_equal(http_sink_requests(sink) - before, 2); /* and not the whole of it again */
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

/* One sample of the shop has a stack and labels that make it larger than the others. */
TEST(one_sample_that_is_too_large_alone_is_all_that_is_lost)
{
    static char wide[4096];
    const char *texts[] = {"wide", wide};
    struct profile_double made;
    memset(wide, 'w', sizeof wide - 1);
    profile_double_init(&made);
    const uint32_t labels = profile_double_labels(&made, texts, 1);
    made.samples[2].label_set = labels; /* of the 20 */
    struct http_sink *sink = http_sink_start(NULL, 0);
    otel_profile_exporter exporter = exporter_for(sink, 0);
    http_sink_limit(sink, sizeof wide / 2);

    const struct exported exported = export_profile(&exporter, &made.profile);

    assert_int_equal(exported.status, OTEL_OK);
    assert_int_equal(exported.dropped, 20);
    assert_non_null(strstr(logged, "HTTP status 413"));
    assert_non_null(strstr(logged, "; 20 samples are lost\n"));
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

TEST(a_receiver_that_takes_nothing_is_left_alone_soon)
{
    struct profile_double made;
    profile_double_begin(&made);
    const uint32_t stack = profile_double_stack(&made, NULL, 0);
    for (unsigned i = 0; i < 40; i++) {
        made.threads[i].id = (pid_t)i + 1;
        profile_double_sample(
            &made, (struct oteli_profile_sample){.stack = stack, .thread = i, .count = 1});
    }
    made.profile.thread_count = 40;
    struct http_sink *sink = http_sink_start(NULL, 0);
    otel_profile_exporter exporter = exporter_for(sink, 0);
    http_sink_limit(sink, 1);

    const struct exported exported = export_profile(&exporter, &made.profile);

    assert_int_equal(exported.status, OTEL_ERROR_EXPORT_FAILED);
    assert_true(http_sink_requests(sink) < 30);
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

TEST(our_own_limit_is_kept_without_asking)
{
    const size_t whole = length_of_shop(SHOP_ROWS);
    struct http_sink *sink = http_sink_start(NULL, 0);
    otel_profile_exporter exporter = exporter_for(sink, whole - 1);

    const struct exported exported = export_shop(&exporter);

    assert_int_equal(exported.status, OTEL_OK);
    assert_int_equal(http_sink_requests(sink), 2);
    assert_string_equal(logged, "");
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

TEST(another_refusal_of_one_half_leaves_the_other)
{
    static const struct http_sink_answer script[] = {
        {.status = 413}, {.status = 400, .body = "no", .body_length = 2}};
    struct http_sink *sink = http_sink_start(script, COUNT(script));
    otel_profile_exporter exporter = exporter_for(sink, 0);

    const struct exported exported = export_shop(&exporter);

    assert_int_equal(exported.status, OTEL_OK);
    assert_int_equal(exported.dropped, 95);
    assert_int_equal(http_sink_requests(sink), 3);
    exporter.free(exporter.state);
    http_sink_stop(sink);
}

struct waking {
    otel_profile_exporter exporter;
    unsigned requests;
};

static bool wake_at_the_second(void *state, otel_otlp_request_headers *headers)
{
    struct waking *waking = state;
    (void)headers;
    if (++waking->requests == 2)
        waking->exporter.wake(waking->exporter.state);
    return true;
}

TEST(a_wake_ends_all_parts)
{
    static const struct http_sink_answer script[] = {{.status = 413}, {.then = HTTP_SINK_HANG}};
    struct http_sink *sink = http_sink_start(script, COUNT(script));
    struct waking waking = {.requests = 0};
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/p", http_sink_port(sink));
    waking.exporter = otel_otlp_profile_exporter(OPTIONS(.endpoint = url, .timeout_ms = OTEL_ZERO,
                                                         .add_headers = wake_at_the_second,
                                                         .add_headers_state = &waking));

    const struct exported exported = export_shop(&waking.exporter);

    assert_int_equal(exported.status, OTEL_ERROR_TIMEOUT);
    assert_int_equal(waking.requests, 2);
    waking.exporter.free(waking.exporter.state);
    http_sink_stop(sink);
}

TEST(grpc_says_it_in_words_of_its_own)
{
    const size_t whole = length_of_shop(SHOP_ROWS);
    for (int compression = 0; compression <= OTEL_OTLP_COMPRESSION_GZIP; compression++) {
        uint64_t samples = 0;
        struct fault_peer *peer =
            fault_peer_start(&(struct fault_peer_options){.max_request_bytes = whole - 1});
        otel_profile_exporter exporter = otel_otlp_profile_exporter(
            OPTIONS(.endpoint = fault_peer_origin(peer), .protocol = OTEL_OTLP_GRPC,
                    .compression = (otel_otlp_compression)compression));

        const struct exported exported = export_shop(&exporter);

        assert_int_equal(exported.status, OTEL_OK);
        assert_int_equal(exported.dropped, 0);
        for (size_t i = 1; i < 3; i++) {
            const struct fault_request *request = fault_peer_request(peer, i);
            samples += content_of(request->plain, request->plain_length).samples;
        }
        assert_int_equal(samples, SHOP_SAMPLES);
        exporter.free(exporter.state);
        fault_peer_stop(peer);
    }
}

/* In a process of its own, so that allocations of the receiver do not fail. Gives how many samples of
 * the shop are dropped; `all_tried`: the allocation that was to fail is never asked for. */
static unsigned export_without_memory(const struct http_sink *sink, size_t nth, bool *all_tried)
{
    int status = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        otel_profile_exporter exporter = exporter_for(sink, 0);
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        const struct exported exported = export_shop(&exporter);
        const bool has_failed = oteli_leaks_failed();
        const uint64_t dropped = exported.status == OTEL_OK ? exported.dropped : SHOP_SAMPLES;
        _exit((int)dropped + (has_failed ? 0 : SHOP_SAMPLES + 1));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    *all_tried = WEXITSTATUS(status) > SHOP_SAMPLES;
    return (unsigned)WEXITSTATUS(status) % (SHOP_SAMPLES + 1);
}

TEST(without_memory_every_sample_is_delivered_or_dropped)
{
    const size_t whole = length_of_shop(SHOP_ROWS);
    struct http_sink *sink = http_sink_start(NULL, 0);
    bool all_tried = false;
    http_sink_limit(sink, whole - 1);
    for (size_t nth = 1; !all_tried; nth++) {
        uint64_t arrived = 0;
        size_t i = http_sink_requests(sink);

        const unsigned dropped = export_without_memory(sink, nth, &all_tried);

        for (; i < http_sink_requests(sink); i++) {
            const struct http_sink_request *request = http_sink_request(sink, i);
            if (request->body_length < whole)
                arrived += content_of(request->body, request->body_length).samples;
        }
        assert_int_equal(arrived + dropped, SHOP_SAMPLES);
        assert_true(nth < 10000);
    }
    http_sink_stop(sink);
}
