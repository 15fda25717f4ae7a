/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to a receiver: Unix sockets, IPv6, proxies, names that are looked up anew; and how much of
 * an answer comes back. The receiver is tests/support/fault_peer.h. */
#include "tests/support/asking.h"
#include "tests/support/fault_peer.h"
#include "tests/support/unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char local_url[] = "http://localhost/v1/traces";
static const char elsewhere[] = "http://collector.invalid:4318/v1/traces";

static struct oteli_transport_response post(struct oteli_transport *transport)
{
    return asking_post(transport, "spans", 5);
}

#define assert_arrives(transport) assert_int_equal(post(transport).status, 200)

static struct oteli_transport_response post_afresh(struct oteli_transport *transport)
{
    return asking_request(transport,
                          &(const struct oteli_transport_request){
                              .body = "spans", .length = 5, .connect_ms = 60000, .fresh = true});
}

/* ---- Unix sockets ---- */

static const char *socket_path(void)
{
    return certificates_path(asking_certificates, "socket");
}

enum { DESCRIPTORS = 256 };

/* What is open by number, and whether it would be open in another program as well. */
static void look_at_descriptors(int flags[DESCRIPTORS])
{
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        flags[fd] = fcntl(fd, F_GETFD);
}

static void assert_all_new_close_on_exec(const int before[DESCRIPTORS])
{
    int now[DESCRIPTORS];
    look_at_descriptors(now);
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        assert_true(now[fd] == before[fd] || now[fd] == FD_CLOEXEC);
}

TEST(X15_requests_go_over_a_unix_socket)
{
    int before[DESCRIPTORS];
    int after[DESCRIPTORS];
    look_at_descriptors(before);
    for (int is_http2 = 0; is_http2 < 2; is_http2++) {
        struct fault_peer *peer =
            fault_peer_start(&(struct fault_peer_options){.unix_path = socket_path()});
        struct oteli_transport *transport =
            oteli_transport_new(ASKING_OPTIONS(.url = local_url, .unix_socket = socket_path(),
                                               .is_http2 = is_http2 != 0));

        for (int i = 0; i < 3; i++)
            assert_arrives(transport);

        assert_int_equal(fault_peer_connections(peer), 1);
        assert_int_equal(fault_peer_requests(peer), 3);
        assert_non_null(strstr(fault_peer_request(peer, 0)->head, "/v1/traces"));
        assert_all_new_close_on_exec(before);
        oteli_transport_free(transport);
        fault_peer_stop(peer);
    }
    look_at_descriptors(after);
    assert_memory_equal(after, before, sizeof before);
}

/* ---- names ---- */

static atomic_uint lookups;

/* In front of libc's. Nobody here needs more than one name. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **result)
{
    static struct sockaddr_in address = {.sin_family = AF_INET};
    static struct addrinfo found = {.ai_family = AF_INET,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_addr = (struct sockaddr *)&address,
                                    .ai_addrlen = sizeof address};
    (void)hints;
    if (strcmp(name, "moving.invalid") != 0)
        return EAI_NONAME;
    address.sin_port = htons((uint16_t)atoi(service));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *result = &found;
    atomic_fetch_add(&lookups, 1);
    return 0;
}

void freeaddrinfo(struct addrinfo *result)
{
    (void)result;
}

TEST(X14_a_fresh_request_looks_the_name_up_anew)
{
    struct fault_peer *peer = fault_peer_start(NULL);
    char url[64];
    snprintf(url, sizeof url, "http://moving.invalid:%u/", (unsigned)fault_peer_port(peer));
    struct oteli_transport *transport = oteli_transport_new(ASKING_OPTIONS(.url = url));

    assert_arrives(transport);
    assert_arrives(transport);
    assert_int_equal(atomic_load(&lookups), 1);
    assert_int_equal(post_afresh(transport).status, 200);
    assert_int_equal(atomic_load(&lookups), 2);
    assert_arrives(transport);

    assert_int_equal(atomic_load(&lookups), 2);
    assert_int_equal(fault_peer_connections(peer), 2);
    oteli_transport_free(transport);
    fault_peer_stop(peer);
}

TEST(a_name_that_nobody_knows_is_said_to_be_one)
{
    struct oteli_transport *transport = oteli_transport_new(ASKING_OPTIONS(.url = elsewhere));

    const struct oteli_transport_response answer = post(transport);

    assert_int_equal(answer.status, 0);
    assert_int_equal(answer.step, OTELI_STEP_NAME);
    assert_false(answer.is_hopeless); /* it may be known later */
    assert_non_null(strstr(answer.problem, "collector.invalid"));
    oteli_transport_free(transport);
}

/* ---- proxies ---- */

TEST(R34_a_proxy_may_be_spoken_to_in_tls)
{
    struct fault_peer *proxy = fault_peer_start(&(struct fault_peer_options){
        .tls = {.certificate = certificates_path(asking_certificates, "server.pem"),
                .key = certificates_path(asking_certificates, "server.key")}});
    struct oteli_transport *transport = oteli_transport_new(
        ASKING_OPTIONS(.url = elsewhere, .proxy = fault_peer_origin(proxy),
                       .tls.ca_file = certificates_path(asking_certificates, "ca.pem")));
    struct oteli_transport *distrusts =
        oteli_transport_new(ASKING_OPTIONS(.url = elsewhere, .proxy = fault_peer_origin(proxy)));

    assert_arrives(transport);
    const struct oteli_transport_response answer = post(distrusts);

    assert_int_equal(answer.status, 0);
    assert_int_equal(answer.step, OTELI_STEP_TLS);
    assert_true(answer.is_hopeless);
    oteli_transport_free(transport);
    oteli_transport_free(distrusts);
    fault_peer_stop(proxy);
}

TEST(a_proxy_that_refuses_is_told_from_the_receiver)
{
    static const struct {
        int status;
        bool is_hopeless;
    } cases[] = {{407, true}, {403, true}, {502, false}, {503, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fault_peer *proxy = fault_peer_start(&(struct fault_peer_options){
            .other_connections = {.refuses_connect = cases[i].status}});
        struct oteli_transport *transport = oteli_transport_new(
            ASKING_OPTIONS(.url = elsewhere, .proxy = fault_peer_origin(proxy), .is_http2 = true));

        const struct oteli_transport_response answer = post(transport);

        assert_int_equal(answer.status, 0);
        assert_int_equal(answer.step, OTELI_STEP_PROXY);
        assert_int_equal(answer.is_hopeless, cases[i].is_hopeless);
        assert_false(answer.body_was_sent);
        oteli_transport_free(transport);
        fault_peer_stop(proxy);
    }
}

/* A SOCKS 5 server that plays the receiver behind it as well. */
static int listen_for_socks(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* What it hears next, while the transport goes on. */
static size_t hear(struct oteli_transport *transport, int fd, char *text, size_t size)
{
    struct oteli_transport_response answer;
    for (int i = 0; i < 1000; i++) {
        assert_false(oteli_transport_poll(transport, 10, &answer));
        const ssize_t got = recv(fd, text, size - 1, MSG_DONTWAIT);
        if (got <= 0)
            continue;
        text[got] = '\0';
        return (size_t)got;
    }
    fail();
    return 0;
}

TEST(R34_a_socks_proxy_is_asked_for_the_name)
{
    uint16_t port;
    char text[1024];
    char proxy[64];
    const int listener = listen_for_socks(&port);
    snprintf(proxy, sizeof proxy, "socks5h://127.0.0.1:%u", (unsigned)port);
    struct oteli_transport *transport =
        oteli_transport_new(ASKING_OPTIONS(.url = elsewhere, .proxy = proxy));
    struct oteli_transport_response answer;

    oteli_transport_start(transport, &(const struct oteli_transport_request){
                                         .body = "spans", .length = 5, .connect_ms = 60000});
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    (void)hear(transport, fd, text, sizeof text);
    assert_int_equal(text[0], 5);
    assert_int_equal(send(fd, "\5\0", 2, MSG_NOSIGNAL), 2);
    (void)hear(transport, fd, text, sizeof text);
    assert_memory_equal(text,
                        "\5\1\0\3\x11"
                        "collector.invalid",
                        22);
    assert_int_equal(send(fd, "\5\0\0\1\0\0\0\0\0\0", 10, MSG_NOSIGNAL), 10);
    (void)hear(transport, fd, text, sizeof text);
    assert_non_null(strstr(text, "POST /v1/traces HTTP/1.1\r\n"));
    static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    assert_int_equal(send(fd, ok, sizeof ok - 1, MSG_NOSIGNAL), sizeof ok - 1);
    while (!oteli_transport_poll(transport, 100, &answer))
        ;

    assert_int_equal(answer.status, 200);
    close(fd);
    close(listener);
    oteli_transport_free(transport);
}

/* ---- answers ---- */

TEST(X13_an_answer_is_read_up_to_its_limit)
{
    enum { LIMIT = 100000 };
    static char body[LIMIT + 1];
    static const struct fault_answer script[] = {
        {.body = body, .body_length = LIMIT},
        {.body = body, .body_length = LIMIT + 1},
        {.headers = "X-More: of the same and more\r\n", .header_repeats = 9500}}; /* 285 KB */
    struct fault_peer *peer = fault_peer_start(&(struct fault_peer_options){FAULT_SCRIPT(script)});
    struct oteli_transport *transport = oteli_transport_new(
        ASKING_OPTIONS(.url = fault_peer_url(peer), .max_response_bytes = LIMIT));

    struct oteli_transport_response answer = post(transport);
    assert_int_equal(answer.status, 200);
    assert_false(answer.is_too_long);
    answer = post(transport);
    assert_int_equal(answer.status, 200);
    assert_true(answer.is_too_long);
    assert_true(answer.body.is_cut);
    answer = post(transport);
    assert_true(answer.is_too_long);

    oteli_transport_free(transport);
    fault_peer_stop(peer);
}

AROUND_ALL(asking_set_up, asking_tear_down);
