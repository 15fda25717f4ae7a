/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter in front of receivers that answer too much, break off, send elsewhere, or come and
 * go: over every protocol, with and without TLS. */
#include "tests/support/otlp_wire.h"
#include "tests/support/process.h"
#include "tests/support/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1 << 20, KIB = 1024, RESETS = 12, STATES = 10, LARGE = 200000 };

#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)

AROUND_ALL(wire_set_up, wire_tear_down);

/* R17 */
TEST(R17_a_reset_within_the_body_harms_nobody)
{
    signal(SIGPIPE, SIG_DFL);
    FOR_EACH_WAY(way)
    {
        struct wire wire;
        wire_init(&wire, way, NULL, OPTIONS(.timeout_ms = 30000));
        wire_clear(&wire);
        wire_add(&wire, 1, LARGE);
        for (size_t i = 0; i < RESETS; i++) {
            const struct fault_answer answer = {
                .in_request = {FAULT_RESET, 1 + i * LARGE / RESETS}};
            fault_peer_set_otherwise(wire.peer, &answer);

            wire_export(&wire);

            assert_int_equal(wire_delivered(&wire), 0);
            assert_int_equal(wire.fixture.call.dropped[OTEL_DROP_UNCONFIRMED] +
                                 wire.fixture.call.dropped[OTEL_DROP_RETRY_EXHAUSTED],
                             1);
        }
        fault_peer_set_otherwise(wire.peer, &(struct fault_answer){0});
        wire_export(&wire);
        assert_int_equal(wire_delivered(&wire), 1);
        wire_fini(&wire);
    }
    struct sigaction action;
    assert_int_equal(sigaction(SIGPIPE, NULL, &action), 0);
    assert_true(action.sa_handler == SIG_DFL);
}

/* Answers of which nobody wants to see the end. */
static void export_in_front_of_too_much(unsigned way, const struct fault_answer *answer)
{
    struct wire wire;
    wire_init_answer(&wire, way, answer, NULL);
    const uint64_t before_kib = process_resident_kib();

    wire_export(&wire);

    const uint64_t growth_kib = process_resident_kib() - before_kib;
    const bool is_delivered = answer->status == 200 && wire_protocol(way) != OTEL_OTLP_GRPC;
    assert_int_equal(wire_delivered(&wire), is_delivered ? 3 : 0);
    assert_true(!process_memory_is_ours() || growth_kib < 8 * KIB);
    assert_true(fault_peer_bytes_sent(wire.peer) < 32 * MIB);
    wire_fini(&wire);
}

TEST(R25_R42_an_answer_or_head_that_is_too_large_is_cut_off)
{
    static const char zeros[MIB];
    static const struct fault_answer answers[] = {
        {.body_repeats = FAULT_ENDLESS},
        {.body = zeros, .body_length = sizeof zeros, .body_repeats = 1000, .in_gzip = true},
        {.headers = "X-More: of the same and more\r\n", .header_repeats = 12000}, /* 360 KB */
        {.headers = "X-More: of the same and more\r\n", .header_repeats = FAULT_ENDLESS},
    };
    static const int statuses[] = {200, 500};
    FOR_EACH_WAY(way)
    {
        for (size_t i = 0; i < 8; i++) {
            struct fault_answer answer = answers[i / 2];
            answer.status = statuses[i % 2];
            if (i / 2 != 3 || wire_protocol(way) != OTEL_OTLP_GRPC)
                export_in_front_of_too_much(way, &answer);
        }
    }
}

/* R26 */
TEST(R26_success_stays_success_whatever_the_body)
{
    static char noise[MIB];
    static const struct fault_answer answers[] = {
        {.body = noise, .body_length = sizeof noise},
        {.body = noise, .body_length = 100},
        {.body = "\x0a\xff\xff\xff\xff\x0f", .body_length = 6},
        {.body = "{\"partialSuccess\":{\"rejectedSpans\":\"", .body_length = 36},
        {.body = "<html>", .body_length = 6, .content_type = "text/html"},
        {.content_type = ""},
        {.status = 204},
        {.body = noise, .body_length = 1, .announced = 1000, .then = FAULT_FIN},
    };
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)(i * 7919 >> 5);
    FOR_EACH_WAY(way)
    {
        for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
            if (wire_protocol(way) == OTEL_OTLP_GRPC)
                continue; /* there the status is in the trailers */
            struct wire wire;
            wire_init_answer(&wire, way, &answers[i], NULL);

            wire_export(&wire);

            assert_int_equal(wire_delivered(&wire), 3);
            assert_int_equal(fault_peer_begun(wire.peer), 1);
            wire_fini(&wire);
        }
    }
}

static void refuse_poison(void *state, const struct fault_peer_request *request,
                          struct fault_answer *answer)
{
    (void)state;
    if (request->spans == 1) {
        answer->status = request->format == FAULT_GRPC ? 0 : 400;
        answer->rpc_code = 3;
        answer->message = "cannot be";
    }
}

/* R32 */
TEST(R32_a_batch_that_is_refused_does_not_hold_up_the_next)
{
    FOR_EACH_WAY(way)
    {
        struct wire wire;
        wire_init(&wire, way, &(struct fault_peer_options){.decide = refuse_poison}, NULL);
        wire_clear(&wire);
        wire_add(&wire, 1, 10);

        wire_export(&wire);
        const size_t poisoned = wire_delivered(&wire);
        assert_non_null(strstr(wire.fixture.log, "cannot be"));
        wire_add(&wire, 2, 10);
        wire_export(&wire);

        assert_int_equal(poisoned, 0);
        assert_int_equal(wire_delivered(&wire), 2);
        assert_int_equal(fault_peer_begun(wire.peer), 2);
        wire_fini(&wire);
    }
}

/* R33 */
TEST(R33_no_redirect_is_followed)
{
    static const int statuses[] = {301, 302, 303, 307, 308};
    static const otel_otlp_header secret = {"Authorization", "secret"};
    FOR_EACH_WAY(way)
    {
        for (size_t i = 0; i < 10; i++) {
            struct wire wire;
            struct fault_peer *elsewhere = fault_peer_start(NULL);
            char line[200];
            wire_init(&wire, way, NULL, OPTIONS(.headers = &secret, .header_count = 1));
            snprintf(line, sizeof line, "Location: %s\r\n",
                     i % 2 == 0 ? fault_peer_url(elsewhere) : fault_peer_url(wire.peer));
            fault_peer_set_otherwise(
                wire.peer, &(struct fault_answer){.status = statuses[i / 2], .headers = line});

            wire_export(&wire);

            assert_only_dropped(&wire.fixture, OTEL_DROP_PERMANENT_ERROR, 3);
            assert_int_equal(fault_peer_connections(elsewhere), 0);
            assert_int_equal(fault_peer_begun(wire.peer), 1);
            fault_peer_stop(elsewhere);
            wire_fini(&wire);
        }
    }
}

/* R36 */
TEST(R36_a_unix_socket_may_go_and_come_back)
{
    char directory[] = "/tmp/otlp-wire-XXXXXX";
    char path[64];
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/socket", directory);
    FOR_EACH_PLAIN_WAY(way)
    {
        struct wire wire;
        wire_init(&wire, way, &(struct fault_peer_options){.unix_path = path}, NULL);

        wire_export(&wire);
        const size_t before = wire_delivered(&wire);
        fault_peer_leave(wire.peer);
        wire_export(&wire);
        const size_t meanwhile = wire_delivered(&wire);
        char away[sizeof wire.fixture.log];
        memcpy(away, wire.fixture.log, sizeof away);
        fault_peer_return(wire.peer);
        wire_export(&wire);

        assert_non_null(strstr(away, "No such file or directory"));
        assert_int_equal(before, 3);
        assert_int_equal(meanwhile, 0);
        assert_int_equal(wire_delivered(&wire), 3);
        assert_null(fault_peer_problem(wire.peer));
        wire_fini(&wire);
    }
    assert_int_equal(rmdir(directory), 0);
}

/* A receiver that is about to stop says so, answers what it has, and takes nothing more on this
 * connection. */
TEST(going_away_loses_nothing)
{
    for (enum fault_goaway goaway = FAULT_GOAWAY_INSTEAD; goaway <= FAULT_GOAWAY_AFTER; goaway++) {
        for (unsigned way = OTEL_OTLP_GRPC; way < WIRE_WAYS; way += WIRE_PLAIN_WAYS) {
            const struct fault_answer script[] = {{0}, {.goaway = goaway}, {0}};
            const struct fault_peer_options peer = {FAULT_SCRIPT(script)};
            struct wire wire;
            wire_init(&wire, way, &peer, NULL);

            for (int i = 0; i < 3; i++) {
                wire_export(&wire);
                assert_int_equal(wire_delivered(&wire), 3);
            }

            const struct fault_span_counts counts = fault_peer_spans(wire.peer);
            assert_int_equal(counts.taken, 3);
            if (goaway == FAULT_GOAWAY_INSTEAD) /* else libcurl may lose the trailers */
                assert_int_equal(fault_peer_requests(wire.peer), 3);
            wire_fini(&wire);
        }
    }
}

static otel_export_result abandon(struct fixture *fixture)
{
    return fixture->exporter.poll(fixture->exporter.state, &fixture->call.export, 0, true);
}

/* R43 */
TEST(R43_an_export_can_be_broken_off_in_every_state)
{
    static const struct fault_answer answers[] = {
        {.pace_bytes = 7, .pace_ms = 1},
        {.status = 503},
        {.in_request = {FAULT_RESET, 5000}},
        {.in_answer = {FAULT_STALL, 20}},
    };
    FOR_EACH_WAY(way)
    {
        for (size_t i = 0; i < 4; i++) {
            struct wire wire;
            wire_init_answer(&wire, way, &answers[i], NULL);
            wire_add(&wire, 4, 20000);
            for (int steps = 0; steps < STATES; steps++) {
                bool is_done = fixture_export(&wire.fixture);
                for (int step = 0; step < steps && !is_done; step++)
                    is_done = wire.fixture.exporter.poll(wire.fixture.exporter.state,
                                                         &wire.fixture.call.export, 1,
                                                         false) == OTEL_EXPORT_DONE;
                if (!is_done)
                    assert_int_equal(abandon(&wire.fixture), OTEL_EXPORT_DONE);
                assert_true(export_double_lost(&wire.fixture.call) % 4 == 0);
            }
            fault_peer_set_otherwise(wire.peer, &(struct fault_answer){0});
            wire_export(&wire);
            assert_int_equal(wire_delivered(&wire), 4);
            wire_fini(&wire);
        }
    }
}

/* ---- R27: in front of receivers with limits from 64 KiB to 20 MiB, spans of 1 byte to 8 MiB: lost
 * are only those that alone are above the limit, and all of them are counted ---- */

enum { OVERHEAD = KIB, SMALL_SPANS = 200 };

/* Names; not so near to the limits that what is around them counts. */
static const size_t large[] = {40 * KIB,   60 * KIB, 70 * KIB, 500 * KIB, 1000 * KIB,
                               1100 * KIB, 3 * MIB,  5 * MIB,  8 * MIB};
enum { LARGE_SPANS = sizeof large / sizeof *large };

/* Small spans with some of the large ones among them; returns how many are in the batch. */
static size_t fill(struct wire *wire, size_t limit)
{
    uint64_t id = 1;
    wire_clear(wire);
    for (size_t i = 0; i < LARGE_SPANS; i++) {
        for (size_t k = 0; k < SMALL_SPANS / LARGE_SPANS; k++)
            wire_add(wire, id++, 1 + (i * 131 + k * 17) % KIB);
        if (large[i] < 64 * limit) /* the test should end some day */
            wire_add(wire, id++, large[i]);
    }
    return (size_t)id - 1;
}

static size_t expected_losses(size_t limit)
{
    size_t count = 0;
    for (size_t i = 0; i < LARGE_SPANS; i++)
        count += large[i] < 64 * limit && large[i] + OVERHEAD > limit;
    return count;
}

static void export_with_limit(unsigned way, size_t limit, enum fault_refusal refusal,
                              const otel_otlp_options *options)
{
    struct wire wire;
    wire_init(&wire, way,
              &(struct fault_peer_options){
                  .max_request_bytes = limit, .refusal = refusal, .forgets = true},
              options);
    const size_t spans = fill(&wire, limit);

    wire_export(&wire);

    const size_t lost = expected_losses(limit);
    const struct fault_span_counts counts = fault_peer_spans(wire.peer);
    assert_only_dropped(&wire.fixture, OTEL_DROP_TOO_LARGE, lost);
    assert_int_equal(counts.taken, spans - lost);
    assert_int_equal(counts.taken_repeatedly, 0);
    assert_null(fault_peer_problem(wire.peer));
    wire_fini(&wire);
}

/* spec: X13 protocol/otlp.md#otlphttp-request SHOULD stable */
TEST(R27_only_spans_that_alone_are_too_large_are_lost)
{
    static const size_t limits[] = {64 * KIB, MIB, 4 * MIB, 20 * MIB};
    FOR_EACH_PLAIN_WAY(way)
    {
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i += way == 0 ? 1 : 2)
            export_with_limit(way, limits[i], (enum fault_refusal)(i / 2 % 2), NULL);
    }
}

TEST(R27_requests_are_not_larger_than_the_option_says)
{
    FOR_EACH_PLAIN_WAY(way)
    {
        struct wire wire;
        wire_init(&wire, way, NULL, OPTIONS(.max_request_bytes = 64 * KIB));
        const size_t spans = fill(&wire, 64 * KIB);
        const size_t lost = expected_losses(64 * KIB);

        wire_export(&wire);

        assert_only_dropped(&wire.fixture, OTEL_DROP_TOO_LARGE, lost);
        assert_int_equal(fault_peer_spans(wire.peer).taken, spans - lost);
        assert_true(fault_peer_spans(wire.peer).largest_request <= 64 * KIB);
        wire_fini(&wire);
    }
}
