/* SPDX-License-Identifier: Apache-2.0 */
/* R34: proxies, named by options or by the environment: over them, around them, with a password,
 * and dead ones. The fault receiver plays the proxy, and the host behind it. */
#include "tests/support/otlp_wire.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST "localhost:4318" /* in the certificate; whoever listens there is not asked */

static const char *const variables[] = {"http_proxy",  "https_proxy", "all_proxy", "no_proxy",
                                        "HTTPS_PROXY", "ALL_PROXY",   "NO_PROXY"};

static int forget_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    return 0;
}

static struct fault_peer *start_proxy(unsigned way, const struct fault_connection *ways)
{
    struct fault_peer_options options = {.other_connections = *ways};
    if (wire_is_tls(way)) {
        options.tls.certificate = certificates_path(wire_certificates(), "server.pem");
        options.tls.key = certificates_path(wire_certificates(), "server.key");
    }
    return fault_peer_start(&options);
}

static void name_proxy(char *text, size_t size, const char *user, const struct fault_peer *peer)
{
    snprintf(text, size, "http://%s127.0.0.1:%u", user, (unsigned)fault_peer_port(peer));
}

/* Export to a host by an exporter that was told of the proxy. */
static void export_to(struct wire *wire, unsigned way, const char *host, const char *proxy,
                      const char *no_proxy)
{
    char endpoint[128];
    snprintf(endpoint, sizeof endpoint, "http%s://%s%s", wire_is_tls(way) ? "s" : "", host,
             wire_protocol(way) == OTEL_OTLP_GRPC ? "" : "/v1/traces");
    fixture_init(&wire->fixture, NULL, 0,
                 OTEL_OTLP_OPTIONS(.endpoint = endpoint, .protocol = wire_protocol(way),
                                   .proxy = proxy, .no_proxy = no_proxy, .timeout_ms = 30000,
                                   .ca_file = wire_is_tls(way)
                                                  ? certificates_path(wire_certificates(), "ca.pem")
                                                  : NULL));
    wire_clear(wire);
    wire_add(wire, 1, 10);
    wire_export(wire);
}

static void check_request(const struct wire *wire, unsigned way, const char *authorization)
{
    char value[64];
    const struct fault_peer_request *first = fault_peer_request(wire->peer, 0);
    assert_int_equal(wire_delivered(wire), 1);
    const char *wanted = wire_is_tls(way) ? "CONNECT " HOST " " : "POST http://" HOST "/v1/traces ";
    assert_memory_equal(first->head, wanted, strlen(wanted));
    fault_request_header(first, "Proxy-Authorization", value, sizeof value);
    assert_string_equal(value, authorization);
    if (wire_is_tls(way)) { /* what is for the proxy does not go further */
        const struct fault_peer_request *second = fault_peer_request(wire->peer, 1);
        assert_string_equal(
            fault_request_header(second, "Proxy-Authorization", value, sizeof value), "");
    }
}

/* gRPC without TLS is HTTP/2 with prior knowledge, which is not for proxies. */
static bool is_for_proxies(unsigned way)
{
    return wire_protocol(way) != OTEL_OTLP_GRPC || wire_is_tls(way);
}

static int proxy_set_up(void **state)
{
    forget_environment(NULL);
    return wire_set_up(state);
}

AROUND_ALL(proxy_set_up, wire_tear_down);

/* spec: X14 protocol/otlp.md#otlphttp-connection SHOULD stable */
TEST(R34_sends_over_the_proxy_of_the_options_or_the_environment)
{
    static const struct fault_connection ways[2] = {[1] = {.accepts_connect = true}};
    static const struct {
        const char *user, *authorization;
        const char *variables[2]; /* without and with TLS; NULL: by options */
    } cases[] = {{"", "", {NULL}},
                 {"user:word@", "Basic dXNlcjp3b3Jk", {NULL}},
                 {"", "", {"http_proxy", "https_proxy"}},
                 {"", "", {"all_proxy", "HTTPS_PROXY"}},
                 {"", "", {"ALL_PROXY", "all_proxy"}}};
    FOR_EACH_WAY(way)
    {
        for (size_t i = 0; i < sizeof cases / sizeof *cases && is_for_proxies(way); i++) {
            const char *variable = cases[i].variables[wire_is_tls(way)];
            struct wire wire = {.peer = start_proxy(way, &ways[wire_is_tls(way)])};
            char proxy[96];
            name_proxy(proxy, sizeof proxy, cases[i].user, wire.peer);
            if (variable != NULL)
                setenv(variable, proxy, 1);

            export_to(&wire, way, HOST, variable == NULL ? proxy : NULL, NULL);

            check_request(&wire, way, cases[i].authorization);
            wire_fini(&wire);
            forget_environment(NULL);
        }
    }
}

/* The proxy is there, but the host is reached without it. (The lists are libcurl's business; those
 * with prefixes of IPv6 are lost on older ones.) */
TEST(R34_goes_around_the_proxy_where_no_proxy_says_so)
{
    static const struct {
        const char *list;
        bool is_ipv6;
        bool is_direct;
    } cases[] = {
        {"127.0.0.1", false, true},
        {"other.example, 127.0.0.1", false, true},
        {"127.0.0.0/8", false, true},
        {"*", false, true},
        {"10.0.0.0/8,example.org", false, false},
        {"27.0.0.1", false, false},
        {"::1", true, true},
        {"127.0.0.1", true, false},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const bool by_environment = i % 2 == 1;
        struct fault_peer *proxy = fault_peer_start(NULL);
        struct wire wire = {.peer = fault_peer_start(
                                &(struct fault_peer_options){.is_ipv6 = cases[i / 2].is_ipv6})};
        char name[96];
        name_proxy(name, sizeof name, "", proxy);
        if (by_environment) {
            setenv("http_proxy", name, 1);
            setenv("no_proxy", cases[i / 2].list, 1);
        }

        export_to(&wire, 0, strchr(fault_peer_origin(wire.peer), ':') + 3,
                  by_environment ? NULL : name, by_environment ? NULL : cases[i / 2].list);

        assert_int_equal(wire_delivered(&wire), 1);
        assert_int_equal(fault_peer_requests(wire.peer), cases[i / 2].is_direct);
        assert_int_equal(fault_peer_requests(proxy), !cases[i / 2].is_direct);
        fault_peer_stop(proxy);
        wire_fini(&wire);
        forget_environment(NULL);
    }
}

/* The environment is read when the exporter is made, and the options beat it. */
TEST(R34_the_options_beat_the_environment)
{
    struct fault_peer *proxy = fault_peer_start(NULL);
    struct wire wire = {.peer = fault_peer_start(NULL)};
    char name[96];
    name_proxy(name, sizeof name, "", proxy);
    setenv("http_proxy", name, 1);

    export_to(&wire, 0, strchr(fault_peer_origin(wire.peer), ':') + 3, "", NULL);

    assert_int_equal(wire_delivered(&wire), 1);
    assert_int_equal(fault_peer_connections(proxy), 0);
    fault_peer_stop(proxy);
    wire_fini(&wire);
    forget_environment(NULL);
}

/* Nothing reaches the host, so nothing can have arrived there. */
TEST(R34_a_dead_proxy_is_nobody)
{
    static const struct fault_connection ways[] = {
        {.received = {FAULT_RESET, 10}},
        {.received = {FAULT_FIN, 0}},
    };
    FOR_EACH_WAY(way)
    {
        for (size_t i = 0; i < 3 && is_for_proxies(way); i++) {
            struct wire wire = {.peer = start_proxy(way, &ways[i % 2])};
            char proxy[96];
            name_proxy(proxy, sizeof proxy, "", wire.peer);
            if (i == 2)
                fault_peer_leave(wire.peer);

            export_to(&wire, way, HOST, proxy, NULL);

            assert_int_equal(wire_delivered(&wire), 0);
            assert_int_equal(wire.fixture.call.dropped[OTEL_DROP_RETRY_EXHAUSTED] +
                                 wire.fixture.call.dropped[OTEL_DROP_UNCONFIRMED],
                             1);
            assert_true(!wire_is_tls(way) ||
                        wire.fixture.call.dropped[OTEL_DROP_RETRY_EXHAUSTED] == 1);
            wire_fini(&wire);
        }
    }
}

TEST(R34_a_proxy_that_wants_a_password_is_told_of_in_the_log)
{
    static const struct fault_connection ways = {.refuses_connect = 407};
    for (unsigned way = WIRE_PLAIN_WAYS; way < WIRE_WAYS; way++) {
        struct wire wire = {.peer = start_proxy(way, &ways)};
        char proxy[96];
        name_proxy(proxy, sizeof proxy, "", wire.peer);

        export_to(&wire, way, HOST, proxy, NULL);

        assert_int_equal(wire_delivered(&wire), 0);
        assert_int_equal(wire.fixture.call.dropped[OTEL_DROP_UNCONFIRMED], 0);
        assert_non_null(strstr(wire.fixture.log, "407"));
        wire_fini(&wire);
    }
}
