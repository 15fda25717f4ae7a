/* SPDX-License-Identifier: Apache-2.0 */
/* How the exporter behaves towards a receiver that is busy: it comes back when it was asked to and
 * not much later (R29), and 200 of them do not come back at the same time (R30). The clock is the
 * test's. And the arithmetic of it: back-off, Retry-After, how large a request may be. */
#include "exporters/otlp/call/retry.h"
#include "exporters/otlp/encode/size_limit.h"
#include "tests/support/otlp_wire.h"
#include "tests/support/unit.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BACKOFF_LEAST_MS = 100,
    BACKOFF_MOST_MS = 1000,
    TIMEOUT_MS = 60000,
    POLLS_MAX = 4000,
    POLL_MS = 100,
    CLIENTS = 200,
    PERIOD_MS = 5000, /* OTEL_BSP_SCHEDULE_DELAY */
    DOWN_MS = 60000,
    SECONDS = 30
};

#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)

/* Export in front of a receiver that is busy. Returns how long the exporter waits after its first
 * attempt, or -1 when it gives up at once. */
static int64_t wait_after_first_ms(unsigned way, const struct fault_answer *answer)
{
    static const char words[] = "again in ";
    struct wire wire;
    int64_t wait_ms = -1;
    wire_init_answer(&wire, way, answer, OPTIONS(.timeout_ms = TIMEOUT_MS));
    struct fixture *fixture = &wire.fixture;

    bool is_done = fixture_export(fixture);
    for (int polls = 0; !is_done && wait_ms < 0; polls++) {
        assert_true(polls < POLLS_MAX);
        is_done = fixture->exporter.poll(fixture->exporter.state, &fixture->call.export, POLL_MS,
                                         false) == OTEL_EXPORT_DONE;
        const char *said = strstr(fixture->log, words);
        if (said != NULL)
            wait_ms = strtoll(said + sizeof words - 1, NULL, 10);
    }

    assert_int_equal(fault_peer_begun(wire.peer), 1);
    if (wait_ms > 1) { /* what the log says is so */
        fixture_advance_ms((uint64_t)wait_ms - 1);
        for (int i = 0; i < 5; i++)
            assert_false(fixture_step(fixture));
        assert_int_equal(fault_peer_begun(wire.peer), 1);
        fixture_advance_ms(2);
        for (int polls = 0; !is_done && fault_peer_begun(wire.peer) < 2; polls++) {
            assert_true(polls < POLLS_MAX);
            is_done = fixture->exporter.poll(fixture->exporter.state, &fixture->call.export,
                                             POLL_MS, false) == OTEL_EXPORT_DONE;
        }
        assert_int_equal(fault_peer_begun(wire.peer), 2);
    }
    wire_fini(&wire);
    return wait_ms;
}

/* Not before it was asked to, and not more than a fifth later; or after its own back-off. */
static void assert_wait(int64_t wait_ms, uint64_t asked_ms)
{
    if (asked_ms > TIMEOUT_MS) {
        assert_int_equal(wait_ms, -1);
        return;
    }
    const int64_t asked = (int64_t)asked_ms;
    const int64_t least = asked > BACKOFF_LEAST_MS ? asked : BACKOFF_LEAST_MS;
    const int64_t most = asked + asked / 5 > BACKOFF_MOST_MS ? asked + asked / 5 : BACKOFF_MOST_MS;
    assert_in_range(wait_ms, least, most);
}

AROUND_ALL(wire_set_up, wire_tear_down);

TEST(R29_comes_back_when_retry_after_says)
{
    static const struct {
        const char *value;
        uint64_t asked_ms;
    } forms[] = {
        {"0", 0},
        {"1", 1000},
        {"5", 5000},
        {"30", 30000},
        {"00002", 2000},
        {"-1", 0},
        {"1.5", 0},
        {"1e99", 0},
        {"", 0},
        {"soon", 0},
        {"\t5 \t", 5000},
        {"86400", 86400000},
        {"63072000", 63072000000},
        {"Sun, 06 Nov 1994 08:49:37 GMT", 0},
        {"Sunday, 06-Nov-94 08:49:37 GMT", 0},
        {"Sun Nov  6 08:49:37 1994", 0},
        {"Fri, 31 Dec 2100 23:59:59 GMT", UINT64_MAX},
        {"Fri, 32 Dec 2100 23:59:59 GMT", 0},
    };
    static const int statuses[] = {429, 503};
    FOR_EACH_PLAIN_WAY(way)
    {
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
            char line[80];
            snprintf(line, sizeof line, "Retry-After: %s\r\n", forms[i].value);

            const int64_t wait_ms = wait_after_first_ms(
                way, &(struct fault_answer){.status = statuses[i % 2], .headers = line});

            assert_wait(wait_ms, forms[i].asked_ms);
        }
    }
}

TEST(R29_comes_back_when_retry_info_says)
{
    static const int64_t delays_ms[] = {0, 1, 999, 5000, 30000, 3600000, -1, -5000};
    static const int codes[] = {14, 8};
    for (size_t i = 0; i < sizeof delays_ms / sizeof *delays_ms; i++) {
        const struct fault_answer answer = {
            .rpc_code = codes[i % 2], .has_retry_info = true, .retry_info_ms = delays_ms[i]};

        const int64_t wait_ms = wait_after_first_ms(OTEL_OTLP_GRPC, &answer);

        assert_wait(wait_ms, delays_ms[i] > 0 ? (uint64_t)delays_ms[i] : 0);
    }
}

/* xorshift64* */
static uint32_t next(uint64_t *random)
{
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    return (uint32_t)(*random * UINT64_C(0x2545f4914f6cdd1d) >> 32);
}

/* A client that found nobody at `first_ms` comes back until DOWN_MS have passed; then it is served,
 * and comes every PERIOD_MS. */
static void visit(uint64_t first_ms, uint64_t *random, unsigned *visits)
{
    uint64_t at_ms = first_ms;
    for (unsigned retry = 0; at_ms < DOWN_MS; retry++)
        at_ms += oteli_retry_wait_ms(retry, 0, next(random));
    for (; at_ms < DOWN_MS + SECONDS * 1000; at_ms += PERIOD_MS)
        visits[(at_ms - DOWN_MS) / 1000]++;
}

TEST(R30_two_hundred_do_not_come_back_at_the_same_time)
{
    const unsigned steady = CLIENTS * 1000 / PERIOD_MS;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        unsigned visits[SECONDS] = {0};
        uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15);

        for (unsigned i = 0; i < CLIENTS; i++)
            visit(next(&random) % PERIOD_MS, &random, visits);

        for (unsigned second = 0; second < SECONDS; second++)
            assert_in_range(visits[second], 0, 2 * steady);
    }
}

/* The same when all of them were turned away at once, and asked to come back at one time. */
TEST(R30_those_that_were_asked_to_come_back_spread_out)
{
    enum { ASKED_MS = 30000, SPREAD_MS = ASKED_MS / 5 };
    unsigned visits[SPREAD_MS / 1000 + 1] = {0};
    uint64_t random = 1;

    for (unsigned i = 0; i < CLIENTS; i++) {
        const uint64_t wait_ms = oteli_retry_wait_ms(0, ASKED_MS, next(&random));
        assert_in_range(wait_ms, ASKED_MS, ASKED_MS + SPREAD_MS);
        visits[(wait_ms - ASKED_MS) / 1000]++;
    }

    for (size_t i = 0; i < sizeof visits / sizeof *visits; i++)
        assert_in_range(visits[i], 0, 2 * CLIENTS * 1000 / SPREAD_MS);
}

/* ---- back-off and Retry-After ---- */

enum { NOW = 784111777 }; /* Sun, 06 Nov 1994 08:49:37 GMT */

TEST(backoff_has_full_jitter_below_a_bound_that_grows)
{
    static const uint64_t bounds[] = {1000, 1500, 2250, 3375, 5062, 7593, 10000, 10000};
    for (unsigned i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        assert_int_equal(oteli_retry_backoff_ms(i, 0), 100);
        assert_in_range(oteli_retry_backoff_ms(i, UINT32_MAX), bounds[i] - 1, bounds[i]);
        assert_in_range(oteli_retry_backoff_ms(i, UINT32_MAX / 2), (bounds[i] + 100) / 2 - 1,
                        (bounds[i] + 100) / 2);
    }
    assert_in_range(oteli_retry_backoff_ms(UINT32_MAX, UINT32_MAX), 9999, 10000);
}

TEST(the_server_sets_the_least_wait)
{
    assert_int_equal(oteli_retry_wait_ms(0, 0, 0), 100);
    assert_int_equal(oteli_retry_wait_ms(0, 500, 0), 500);
    assert_int_equal(oteli_retry_wait_ms(0, 1000, 0), 1000);
    assert_in_range(oteli_retry_wait_ms(3, 1000, UINT32_MAX), 3374, 3375);
    assert_int_equal(oteli_retry_wait_ms(0, 5000, 0), 5000);
    assert_in_range(oteli_retry_wait_ms(0, 5000, UINT32_MAX), 5998, 6000);
    assert_true(oteli_retry_wait_ms(0, UINT64_MAX, UINT32_MAX) == UINT64_MAX);
    assert_true(oteli_retry_wait_ms(0, UINT64_MAX, 0) == UINT64_MAX);
    assert_true(oteli_retry_wait_ms(0, UINT64_MAX / 2, UINT32_MAX) >= UINT64_MAX / 2);
}

TEST(connecting_leaves_time_for_another_attempt)
{
    assert_int_equal(oteli_retry_connect_ms(UINT64_MAX), 5000);
    assert_int_equal(oteli_retry_connect_ms(10000), 5000);
    assert_int_equal(oteli_retry_connect_ms(3000), 1500);
    assert_int_equal(oteli_retry_connect_ms(2), 1);
    assert_int_equal(oteli_retry_connect_ms(0), 1);
}

TEST(a_retry_after_without_a_date_is_in_seconds)
{
    uint64_t wait_ms;
    assert_true(oteli_retry_after_ms("7", NOW, &wait_ms));
    assert_int_equal(wait_ms, 7000);
    assert_true(oteli_retry_after_ms("9220000000000000", NOW, &wait_ms));
    assert_int_equal(wait_ms, UINT64_C(9220000000000000000));
    assert_true(oteli_retry_after_ms("9224000000000000", NOW, &wait_ms));
    assert_int_equal(wait_ms, UINT64_MAX);
}

TEST(a_bad_retry_after_is_none)
{
    static const char *const bad[] = {
        "",
        " ",
        "-1",
        "+1",
        "1e99",
        "1.5",
        "0x10",
        "5 minutes",
        "soon",
        "never, ever",
        "Sun, 32 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nox 1994 08:49:37 GMT",
        "Sun, 06 Nov 1969 08:49:37 GMT",
        ":::",
        "\xff\xfe",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t wait_ms;
        if (oteli_retry_after_ms(bad[i], NOW, &wait_ms))
            fail_msg("\"%s\" was taken for a wait", bad[i]);
    }
}

/* A year and a bit in uneven steps, and the turns of months and centuries: each moment in the three
 * forms that HTTP has, as the C library writes them. */
TEST(R29_dates_are_read_in_every_form)
{
    static const char *const forms[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
                                        "%a %b %e %H:%M:%S %Y"};
    static const time_t marks[] = {951782399,  951782400,  951868800,  1709164799, 1709251199,
                                   1735689599, 1735689600, 1767225599, 2147483647, 2147483648};
    const size_t mark_count = sizeof marks / sizeof *marks;
    size_t tried = 0;
    for (size_t i = 0; i < 60 + mark_count; i++) {
        const time_t then =
            i < mark_count ? marks[i] : NOW + (time_t)(i - mark_count) * (7 * 86400 + 3671);
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
            char text[64];
            struct tm parts;
            uint64_t wait_ms = 12345;
            assert_non_null(gmtime_r(&then, &parts));
            assert_true(strftime(text, sizeof text, forms[k], &parts) != 0);
            if (!oteli_retry_after_ms(text, NOW, &wait_ms) ||
                wait_ms != (uint64_t)(then - NOW) * 1000)
                fail_msg("\"%s\" is %llu ms", text, (unsigned long long)wait_ms);
            tried++;
        }
    }
    assert_true(tried >= 200);
}

/* ---- what is learnt about how large a request may be ---- */

enum { KIB = 1024, MIB = 1024 * 1024 };

TEST(what_was_taken_is_the_limit_and_a_little_more)
{
    struct oteli_size_limit size_limit = {0};
    oteli_size_limit_too_large(&size_limit, 512, 512 * KIB);
    oteli_size_limit_accepted(&size_limit, 64 * KIB, false,
                              MIB); /* no part of that: it says nothing */
    assert_int_equal(oteli_size_limit_spans(&size_limit, 500, 500 * KIB), 500);

    oteli_size_limit_accepted(&size_limit, 256 * KIB, true, MIB);
    assert_int_equal(oteli_size_limit_spans(&size_limit, 576, 576 * KIB), 288);
}

TEST(a_single_span_is_always_tried_and_says_nothing)
{
    struct oteli_size_limit size_limit = {0};

    oteli_size_limit_too_large(&size_limit, 1, 100);
    assert_int_equal(oteli_size_limit_spans(&size_limit, 10, MIB), 10);
    oteli_size_limit_too_large(&size_limit, 2, 100);

    assert_int_equal(oteli_size_limit_spans(&size_limit, 1, MIB), 1);
    assert_int_equal(oteli_size_limit_spans(&size_limit, 2, MIB), 1);
    assert_int_equal(oteli_size_limit_spans(&size_limit, 1000000, SIZE_MAX), 1);
}

/* Not by small ones, and not beyond what we limit ourselves to. */
TEST(it_grows_back_slowly)
{
    struct oteli_size_limit size_limit = {0};
    oteli_size_limit_too_large(&size_limit, 512, 1024 * KIB);
    oteli_size_limit_accepted(&size_limit, 64 * KIB, true, 1024 * KIB);
    assert_int_equal(size_limit.limit_bytes, 512 * KIB);

    for (int i = 0; i < 10000; i++)
        oteli_size_limit_accepted(&size_limit, 10 * KIB, false, 1024 * KIB);
    assert_int_equal(size_limit.limit_bytes, 512 * KIB);
    for (int i = 0; i < 63; i++)
        oteli_size_limit_accepted(&size_limit, 500 * KIB, false, 1024 * KIB);
    assert_int_equal(size_limit.limit_bytes, 512 * KIB);
    oteli_size_limit_accepted(&size_limit, 500 * KIB, false, 1024 * KIB);
    assert_int_equal(size_limit.limit_bytes, 576 * KIB + 1);
    int successes = 0;
    for (; size_limit.limit_bytes != 0 && successes < 10000; successes++)
        oteli_size_limit_accepted(&size_limit, size_limit.limit_bytes, false, 1024 * KIB);

    assert_int_equal(successes, 5 * 64);
}

/* Receivers with a limit of their own: after the first few, hardly a request is refused. */
TEST(R27_a_receivers_limit_is_found)
{
    for (size_t limit = 1000; limit < MIB; limit += limit / 3) {
        struct oteli_size_limit size_limit = {0};
        size_t refused = 0;
        for (int request = 0; request < 2000; request++) {
            size_t spans = oteli_size_limit_spans(&size_limit, 1024, 1024 * 500);
            bool is_part = false;
            while (spans * 500 > limit && spans > 1) {
                oteli_size_limit_too_large(&size_limit, spans, spans * 500);
                spans = (spans + 1) / 2;
                is_part = true;
                refused++;
            }
            oteli_size_limit_accepted(&size_limit, spans * 500, is_part, MIB);
        }
        assert_in_range(refused, 0, 10 + 2 * 2000 / 64);
    }
}
