/* SPDX-License-Identifier: Apache-2.0 */
/* The OTLP exporter over each protocol, compression, TLS and kind of endpoint: what arrives, what
 * every gRPC status leads to, and that the sums close whatever the receiver does. */
#include "exporters/otlp/encode/compress.h"
#include "tests/support/certificates.h"
#include "tests/support/dice.h"
#include "tests/support/fault_peer.h"
#include "tests/support/otlp_fixture.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)

static const otel_scope_view scope = {.name = {"shop", 4}, .otlp = {"\x0a\x04shop", 6}};

static const otel_otlp_protocol protocols[] = {OTEL_OTLP_HTTP_PROTOBUF, OTEL_OTLP_HTTP_JSON,
                                               OTEL_OTLP_GRPC};

/* A whole span, with `filler` bytes of name. */
static void add_span(struct batch_double *batch, unsigned number, size_t filler)
{
    uint8_t *span = calloc(1, filler + 128);
    assert_non_null(span);
    size_t at = 0;
    span[at++] = 0x0a; /* trace_id */
    span[at++] = 16;
    memset(span + at, 0xab, 16);
    at += 16;
    span[at++] = 0x12; /* span_id */
    span[at++] = 8;
    span[at] = 1;
    memcpy(span + at + 1, &number, sizeof number);
    at += 8;
    span[at++] = 0x2a; /* name */
    for (size_t rest = filler + 1;; rest >>= 7) {
        span[at++] = (uint8_t)(rest < 128 ? rest : (rest & 127) | 128);
        if (rest < 128)
            break;
    }
    memset(span + at, 'n', filler + 1);
    at += filler + 1;
    span[at++] = 0x30; /* kind */
    span[at++] = 1;
    for (int field = 7; field <= 8; field++) { /* start, end */
        span[at++] = (uint8_t)(field << 3 | 1);
        span[at + 7] = 0x17;
        at += 8;
    }
    batch_double_add(batch, &scope, span, at);
    free(span);
}

/* An exporter for the peer, and a batch of `spans` whole spans. */
static void begin(struct fixture *fixture, struct fault_peer *peer, const otel_otlp_options *chosen,
                  size_t spans, size_t filler)
{
    otel_otlp_options options = *chosen;
    if (options.endpoint == NULL)
        options.endpoint =
            options.protocol == OTEL_OTLP_GRPC ? fault_peer_origin(peer) : fault_peer_url(peer);
    fixture_init(fixture, NULL, 0, &options);
    batch_double_fini(&fixture->batch);
    fixture->batch.resource = (otel_slice){"\x10\x01", 2};
    for (unsigned i = 0; i < spans; i++)
        add_span(&fixture->batch, i, filler);
}

static void end(struct fixture *fixture, struct fault_peer *peer)
{
    fault_peer_stop(peer);
    fixture_fini(fixture);
}

/* --- What arrives --- */

static const struct fault_peer_options plain_peer;

/* spec: X2 protocol/exporter.md#configuration-options MAY stable */
/* spec: X6 protocol/exporter.md#configuration-options MUST stable */
/* spec: X14 otlp#otlphttp-connection SHOULD stable */
TEST(X6_the_same_spans_arrive_by_every_protocol_and_compression)
{
    static const char *const encodings[] = {"identity", "gzip", "zstd"};
    static const int formats[] = {FAULT_PROTOBUF, FAULT_JSON, FAULT_GRPC};
    for (size_t i = 0; i < COUNT(protocols); i++) {
        for (int compression = 0; compression <= OTEL_OTLP_COMPRESSION_ZSTD; compression++) {
            struct fixture fixture;
            if (!oteli_compression_is_known((otel_otlp_compression)compression))
                continue;
            struct fault_peer *peer = fault_peer_start(&plain_peer);
            begin(&fixture, peer,
                  OPTIONS(.protocol = protocols[i],
                          .compression = (otel_otlp_compression)compression),
                  100, 20);

            fixture_deliver(&fixture);
            fixture_deliver(&fixture);

            assert_all_delivered(&fixture);
            assert_null(fault_peer_problem(peer));
            assert_int_equal(fault_peer_requests(peer), 2);
            assert_int_equal(fault_peer_connections(peer), 1);
            assert_int_equal(fault_peer_spans(peer).distinct, 100);
            assert_int_equal(fault_peer_request(peer, 0)->format, formats[i]);
            assert_string_equal(fault_peer_request(peer, 0)->encoding, encodings[compression]);
            assert_string_equal(fixture.log, "");
            end(&fixture, peer);
        }
    }
}

/* spec: X7 protocol/exporter.md#configuration-options MUST stable */
TEST(X7_tls_with_certificates_on_both_sides)
{
    struct certificates *certificates = certificates_new();
    certificates_issue(certificates, &(struct certificate_request){.name = "server"});
    certificates_issue(certificates, &(struct certificate_request){.name = "client"});
    const char *ca = certificates_path(certificates, "ca.pem");
    const char *certificate = certificates_path(certificates, "client.pem");
    const char *key = certificates_path(certificates, "client.key");
    const struct fault_peer_options wants = {
        .tls = {.certificate = certificates_path(certificates, "server.pem"),
                .key = certificates_path(certificates, "server.key"),
                .client_ca = ca}};
    for (size_t i = 0; i < COUNT(protocols); i++) {
        struct fixture fixture;
        struct fault_peer *peer = fault_peer_start(&wants);
        begin(&fixture, peer,
              OPTIONS(.protocol = protocols[i], .ca_file = ca, .certificate_file = certificate,
                      .key_file = key, .tls_min = OTEL_TLS_1_3),
              3, 0);
        fixture_deliver(&fixture);
        assert_all_delivered(&fixture);
        assert_int_equal(fault_peer_spans(peer).taken, 3);
        end(&fixture, peer);

        peer = fault_peer_start(&wants); /* and its certificate is one that nobody knows */
        begin(&fixture, peer, OPTIONS(.protocol = protocols[i]), 3, 0);
        fixture_deliver(&fixture); /* while time stands still */
        assert_only_dropped(&fixture, OTEL_DROP_PERMANENT_ERROR, 3);
        assert_int_equal(fault_peer_requests(peer), 0);
        end(&fixture, peer);
    }
    certificates_free(certificates);
}

/* spec: X15 */
TEST(X15_over_a_unix_socket)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/otlp-protocols-test-%ld", (long)getpid());
    setenv("http_proxy", "http://127.0.0.1:1", 1); /* has nothing to do with it */
    for (size_t i = 0; i < COUNT(protocols); i++) {
        char value[64];
        struct fixture fixture;
        struct fault_peer *peer = fault_peer_start(&(struct fault_peer_options){.unix_path = path});
        begin(&fixture, peer, OPTIONS(.protocol = protocols[i]), 3, 0);

        fixture_deliver(&fixture);

        assert_all_delivered(&fixture);
        assert_null(fault_peer_problem(peer));
        assert_string_equal(
            fault_request_header(fault_peer_request(peer, 0), "Host", value, sizeof value),
            "localhost");
        end(&fixture, peer);
    }
    unsetenv("http_proxy");
}

/* What is left of the batch's time when the attempt begins. */
TEST(grpc_says_how_long_there_is)
{
    static const struct {
        int64_t timeout_ms;
        const char *said;
    } table[] = {
        {0, "10000m"}, {1, "1m"}, {99999999, "99999999m"}, {100000000, "100000S"}, {OTEL_ZERO, ""}};
    for (size_t i = 0; i < COUNT(table); i++) {
        char value[32];
        struct fixture fixture;
        struct fault_peer *peer = fault_peer_start(&plain_peer);
        begin(&fixture, peer,
              OPTIONS(.protocol = OTEL_OTLP_GRPC, .timeout_ms = table[i].timeout_ms), 3, 0);

        fixture_deliver(&fixture);

        assert_all_delivered(&fixture);
        assert_string_equal(
            fault_request_header(fault_peer_request(peer, 0), "grpc-timeout", value, sizeof value),
            table[i].said);
        end(&fixture, peer);
    }
}

/* --- In a forked child --- */

static bool add_step(void *state, otel_otlp_request_headers *headers)
{
    unsigned *calls = state;
    ++*calls;
    return otel_otlp_add_header(headers, "x-step", "token") == OTEL_OK;
}

static void count_free(void *state)
{
    unsigned *calls = state;
    *calls += 1000;
}

/* The exit status of the child: 0, or what went wrong. */
static int export_in_child(struct fixture *fixture, const unsigned *calls)
{
    otel_exporter renewed;
    for (int generation = 0; generation < 2; generation++) { /* a child of a child */
        if (fixture->exporter.renew(fixture->exporter.state, &renewed) != OTEL_OK)
            return 1;
        if (strcmp(renewed.name, fixture->exporter.name) != 0)
            return 2;
        fixture->exporter = renewed;
    }
    fixture_deliver(fixture);
    if (export_double_lost(&fixture->call) != 0)
        return 3;
    renewed.free(renewed.state);
    return *calls > 1000 ? 0 : 4;
}

TEST(R14_a_childs_exporter_is_the_same_in_everything)
{
    static const otel_otlp_header headers[] = {
        {"grpc-timeout", "60000m"},
        {"x-step", "token"},
        {"X-Tenant", "a%20b"},
        {"User-Agent", "shop/2 OTel-OTLP-Exporter-C/" OTEL_VERSION}};
    for (size_t i = 0; i < COUNT(protocols); i++) {
        unsigned calls = 0;
        struct fixture fixture;
        struct fault_peer *peer = fault_peer_start(&plain_peer);
        begin(&fixture, peer,
              OPTIONS(.protocol = protocols[i], .compression = OTEL_OTLP_COMPRESSION_GZIP,
                      .max_request_bytes = 5000, .concurrency = 3, .add_headers = add_step,
                      .add_headers_state = &calls, .free_add_headers_state = count_free,
                      .headers = headers + 2, .header_count = 1, .user_agent = "shop/2",
                      .timeout_ms = 60000),
              100, 100);
        fixture_deliver(&fixture);
        const size_t requests = fault_peer_requests(peer);
        const size_t connections = fault_peer_connections(peer);

        const pid_t child = fork();
        if (child == 0)
            _exit(export_in_child(&fixture, &calls));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);

        assert_int_equal(status, 0);
        assert_int_equal(fault_peer_requests(peer), 2 * requests);
        assert_true(fault_peer_connections(peer) > connections);
        assert_null(fault_peer_problem(peer));
        for (size_t k = 0; k < 2 * requests * COUNT(headers); k++) {
            const size_t header = k % COUNT(headers);
            const struct fault_peer_request *request = fault_peer_request(peer, k / COUNT(headers));
            char value[64];
            fault_request_header(request, headers[header].name, value, sizeof value);
            if (protocols[i] == OTEL_OTLP_GRPC || header != 0)
                assert_string_equal(value, headers[header].value);
            assert_string_equal(request->encoding, "gzip");
        }
        end(&fixture, peer);
        assert_true(calls >= 1000);
    }
}

/* --- What is answered --- */

/* spec: X10 protocol/otlp.md#partial-success MUST-NOT stable */
/* spec: X10 otlp#partial-success MUST stable */
TEST(X10_partial_success_is_counted_by_every_protocol)
{
    static const struct fault_answer script[] = {
        {.rejected = 2, .message = "too old"}, {.rejected = 99}, {.message = "slow down"}};
    for (size_t i = 0; i < COUNT(protocols); i++) {
        struct fixture fixture;
        struct fault_peer *peer =
            fault_peer_start(&(struct fault_peer_options){FAULT_SCRIPT(script)});
        begin(&fixture, peer, OPTIONS(.protocol = protocols[i]), 3, 0);

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
        assert_int_equal(fault_peer_requests(peer), 3);
        end(&fixture, peer);
    }
}

/* spec: X13 protocol/otlp.md#otlphttp-response MUST stable */
TEST(X13_an_answer_above_the_limit_is_final)
{
    for (size_t i = 0; i < COUNT(protocols); i++) {
        static char filler[1000];
        memset(filler, ' ', sizeof filler);
        const struct fault_answer script[] = {{.status = 503,
                                               .body = filler,
                                               .body_length = sizeof filler,
                                               .body_repeats = 100,
                                               .in_gzip = true}};
        struct fixture fixture;
        struct fault_peer *peer =
            fault_peer_start(&(struct fault_peer_options){FAULT_SCRIPT(script)});
        begin(&fixture, peer, OPTIONS(.protocol = protocols[i], .max_response_bytes = 5000), 3, 0);

        fixture_deliver(&fixture);

        assert_only_dropped(&fixture, OTEL_DROP_PERMANENT_ERROR, 3);
        assert_int_equal(fault_peer_requests(peer), 1);
        end(&fixture, peer);
    }
}

/* --- Sums --- */

enum { SCRIPT = 30 };

static void roll_script(struct dice *dice, bool is_http2, struct fault_answer script[SCRIPT])
{
    static const int statuses[] = {0, 0, 0, 0, 0, 202, 400, 413, 429, 500, 502, 503};
    static const int codes[] = {0, 0, 0, 0, 0, 0, 1, 3, 8, 13, 14};
    for (size_t i = 0; i < SCRIPT; i++) {
        struct fault_answer *answer = &script[i];
        *answer = (struct fault_answer){.status = statuses[dice_below(dice, COUNT(statuses))]};
        if (answer->status == 0)
            answer->rpc_code = codes[dice_below(dice, COUNT(codes))];
        if (answer->status >= 400)
            answer->rpc_code = 2;
        answer->in_trailers_only = dice_one_in(dice, 3);
        answer->has_no_trailers = dice_one_in(dice, 12);
        if (dice_one_in(dice, 6))
            answer->in_request = (struct fault){dice_one_in(dice, 2) ? FAULT_RESET : FAULT_FIN,
                                                dice_below(dice, 500)};
        if (dice_one_in(dice, 6))
            answer->in_answer = (struct fault){FAULT_STALL + (enum fault_deed)dice_below(dice, 4),
                                               dice_below(dice, 200)};
        if (!is_http2)
            continue;
        answer->resets_stream = dice_one_in(dice, 12);
        if (dice_one_in(dice, 8))
            answer->goaway = (enum fault_goaway)dice_below(dice, 4);
    }
}

/* What is counted as delivered was taken, and what was taken beyond that is unconfirmed. */
TEST(the_sums_close_over_every_protocol)
{
    const uint64_t seeds = getenv("OTEL_TEST_LONG") != NULL ? 1000 : 60;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct dice dice;
        struct fault_answer script[SCRIPT];
        struct fixture fixture;
        dice_init(&dice, seed);
        roll_script(&dice, protocols[seed % 3] == OTEL_OTLP_GRPC, script);
        const size_t spans = 1 + dice_below(&dice, 60);
        const bool ends_early = dice_one_in(&dice, 3);
        struct fault_peer *peer =
            fault_peer_start(&(struct fault_peer_options){FAULT_SCRIPT(script)});
        begin(&fixture, peer,
              OPTIONS(.protocol = protocols[seed % 3],
                      .compression = (otel_otlp_compression)dice_below(&dice, 2),
                      .max_request_bytes = 500 + dice_below(&dice, 4000),
                      .concurrency = 1 + dice_below(&dice, 4)),
              spans, 50);

        if (!fixture_export(&fixture)) {
            for (uint32_t i = dice_below(&dice, 50); ends_early && i > 0; i--)
                if (fixture_step(&fixture))
                    break;
            if (ends_early)
                (void)fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 0, true);
            else
                fixture_finish_fast(&fixture);
        }

        const size_t taken = (size_t)fault_peer_spans(peer).taken;
        const size_t lost = export_double_lost(&fixture.call);
        const size_t unconfirmed = fixture.call.dropped[OTEL_DROP_UNCONFIRMED];
        if (lost > spans || taken < spans - lost || taken > spans - lost + unconfirmed)
            fail_msg("seed %llu: %zu spans, %zu lost, %zu unconfirmed, %zu taken\n%s",
                     (unsigned long long)seed, spans, lost, unconfirmed, taken, fixture.log);
        end(&fixture, peer);
        dice_fini(&dice);
    }
}
