/* SPDX-License-Identifier: Apache-2.0 */
/* The transport over TLS: authorities, client certificates, versions, and files that change while
 * they are in use. The receiver is tests/support/fault_peer.h. */
#include "tests/support/asking.h"
#include "tests/support/fault_peer.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *path(const char *file)
{
    return certificates_path(asking_certificates, file);
}

static void issue(const char *name)
{
    certificates_issue(asking_certificates, &(const struct certificate_request){.name = name});
}

static struct fault_peer *start_peer(bool asks_for_certificate)
{
    return fault_peer_start(&(struct fault_peer_options){
        .tls = {.certificate = path("server.pem"),
                .key = path("server.key"),
                .client_ca = asks_for_certificate ? path("ca.pem") : NULL}});
}

#define TLS_OPTIONS(peer, ...) ASKING_OPTIONS(.url = fault_peer_url(peer), .tls = {__VA_ARGS__})

static struct oteli_transport *with_client_certificate(struct fault_peer *peer)
{
    return oteli_transport_new(TLS_OPTIONS(peer, .ca_file = path("ca.pem"),
                                           .certificate_file = path("client.pem"),
                                           .key_file = path("client.key")));
}

static struct oteli_transport_response post(struct oteli_transport *transport)
{
    return asking_post(transport, "spans", 5);
}

#define assert_arrives(transport) assert_int_equal(post(transport).status, 200)

/* The server has not seen a byte of the request. */
static void assert_fails_in_tls(const struct oteli_transport_response *answer, bool is_hopeless)
{
    assert_int_equal(answer->status, 0);
    assert_int_equal(answer->step, OTELI_STEP_TLS);
    assert_false(answer->body_was_sent);
    assert_int_equal(answer->is_hopeless, is_hopeless);
    assert_true(strlen(answer->problem) > 10);
}

/* What a second program would see: the file has other bytes, and nothing else happened. */
static void write_file(const char *file, const char *bytes, size_t length)
{
    FILE *to = fopen(path(file), "we");
    assert_non_null(to);
    assert_int_equal(fwrite(bytes, 1, length, to), length);
    assert_int_equal(fclose(to), 0);
}

static size_t read_file(const char *file, char *bytes, size_t size)
{
    FILE *from = fopen(path(file), "re");
    assert_non_null(from);
    const size_t length = fread(bytes, 1, size, from);
    assert_int_equal(fclose(from), 0);
    return length;
}

static void copy_file(const char *from, const char *to)
{
    char bytes[8192];
    write_file(to, bytes, read_file(from, bytes, sizeof bytes));
}

TEST(X7_a_client_shows_its_certificate)
{
    struct fault_peer *peer = start_peer(true);
    struct oteli_transport *with = with_client_certificate(peer);
    struct oteli_transport *without =
        oteli_transport_new(TLS_OPTIONS(peer, .ca_file = path("ca.pem")));

    assert_arrives(with);
    const struct oteli_transport_response answer = post(without);

    assert_fails_in_tls(&answer, false); /* the server may be told to do without */
    assert_int_equal(fault_peer_requests(peer), 1);
    struct oteli_transport *childs = oteli_transport_renew(with); /* reads the files itself */
    assert_arrives(childs);
    oteli_transport_free(childs);
    oteli_transport_free(with);
    oteli_transport_free(without);
    fault_peer_stop(peer);
}

TEST(X7_versions_are_kept_to)
{
    static const struct {
        int peer_max;
        int min;
        int max;
        bool arrives;
    } cases[] = {
        {12, 0, 0, true}, {12, 2, 2, true}, {12, 3, 0, false}, {13, 3, 3, true}, {13, 0, 2, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fault_peer *peer = fault_peer_start(
            &(struct fault_peer_options){.tls = {.certificate = path("server.pem"),
                                                 .key = path("server.key"),
                                                 .max_version = cases[i].peer_max}});
        struct oteli_transport *transport = oteli_transport_new(
            TLS_OPTIONS(peer, .ca_file = path("ca.pem"), .min = cases[i].min, .max = cases[i].max));
        const struct oteli_transport_response answer = post(transport);
        if (cases[i].arrives)
            assert_int_equal(answer.status, 200);
        else
            assert_fails_in_tls(&answer, false);
        oteli_transport_free(transport);
        fault_peer_stop(peer);
    }
}

TEST(X7_ciphers_are_chosen)
{
    struct fault_peer *peer = start_peer(false);
    struct oteli_transport *good = oteli_transport_new(TLS_OPTIONS(
        peer, .ca_file = path("ca.pem"), .max = 2, .ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256"));
    struct oteli_transport *bad = oteli_transport_new(
        TLS_OPTIONS(peer, .ca_file = path("ca.pem"), .ciphers = "no such cipher"));

    assert_arrives(good);
    const struct oteli_transport_response answer = post(bad);

    assert_fails_in_tls(&answer, true);
    oteli_transport_free(good);
    oteli_transport_free(bad);
    fault_peer_stop(peer);
}

TEST(a_server_that_is_not_who_it_should_be_is_hopeless)
{
    const struct certificate_request wrong[] = {
        {.name = "wrong", .hosts = "DNS:elsewhere.invalid"},
        {.name = "wrong", .is_expired = true},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        certificates_issue(asking_certificates, &wrong[i]);
        struct fault_peer *peer = fault_peer_start(&(struct fault_peer_options){
            .tls = {.certificate = path("wrong.pem"), .key = path("wrong.key")}});
        struct oteli_transport *transport =
            oteli_transport_new(TLS_OPTIONS(peer, .ca_file = path("ca.pem")));

        const struct oteli_transport_response answer = post(transport);

        assert_fails_in_tls(&answer, true);
        oteli_transport_free(transport);
        fault_peer_stop(peer);
    }
}

TEST(a_handshake_that_stalls_is_said_to_be_one)
{
    struct fault_peer *peer = fault_peer_start(&(struct fault_peer_options){
        .tls = {.certificate = path("server.pem"), .key = path("server.key")},
        .other_connections = {.in_handshake = {FAULT_STALL, 100}}});
    struct oteli_transport *transport =
        oteli_transport_new(TLS_OPTIONS(peer, .ca_file = path("ca.pem")));

    const struct oteli_transport_response answer = asking_request(
        transport,
        &(const struct oteli_transport_request){.body = "spans", .length = 5, .connect_ms = 50});

    assert_fails_in_tls(&answer, false);
    oteli_transport_free(transport);
    fault_peer_stop(peer);
}

/* And not where only its time is another one. */
TEST(R35_a_certificate_that_was_renewed_is_used)
{
    struct fault_peer *peer = start_peer(true);
    struct oteli_transport *transport = with_client_certificate(peer);

    assert_arrives(transport);
    copy_file("client.pem", "client.pem");
    assert_arrives(transport);
    assert_int_equal(fault_peer_connections(peer), 1);
    assert_string_equal(asking_log(), "");
    issue("client");
    assert_arrives(transport);
    assert_arrives(transport);

    assert_int_equal(fault_peer_connections(peer), 2);
    assert_non_null(strstr(asking_log(), "client.pem has changed"));
    oteli_transport_free(transport);
    fault_peer_stop(peer);
}

TEST(R35_a_file_that_is_half_written_is_not_used)
{
    static const char *const files[] = {"client.pem", "client.key", "ca.pem"};
    struct fault_peer *peer = start_peer(true);
    struct oteli_transport *transport = with_client_certificate(peer);
    char whole[8192];
    assert_arrives(transport);

    for (size_t i = 0; i < COUNT(files); i++) {
        const size_t length = read_file(files[i], whole, sizeof whole);
        for (size_t kept = 0; kept < length; kept += 97) {
            write_file(files[i], whole, kept);
            assert_arrives(transport);
        }
        const char *log = asking_log();
        assert_non_null(strstr(log, files[i]));
        assert_null(strchr(strchr(log, '\n') + 1, '\n')); /* one line for all of that */
        write_file(files[i], whole, length);
        assert_arrives(transport);
    }

    assert_int_equal(fault_peer_connections(peer), 1);
    oteli_transport_free(transport);
    fault_peer_stop(peer);
}

/* Certificate and key are never replaced at the same moment. */
TEST(R35_a_pair_that_does_not_fit_is_tried_again)
{
    struct fault_peer *peer = start_peer(true);
    struct oteli_transport *transport = with_client_certificate(peer);
    assert_arrives(transport);
    issue("next");

    copy_file("next.pem", "client.pem");
    for (int i = 0; i < 2; i++) {
        const struct oteli_transport_response answer = post(transport);
        assert_fails_in_tls(&answer, false);
        assert_true(answer.is_tls_file);
    }
    copy_file("next.key", "client.key");
    assert_arrives(transport);
    assert_arrives(transport);

    assert_int_equal(fault_peer_requests(peer), 3);
    oteli_transport_free(transport);
    fault_peer_stop(peer);
}

/* With everything in the files broken, connections that are lost are made again as before. */
TEST(R35_what_was_good_last_makes_new_connections)
{
    static const char *const files[] = {"client.pem", "client.key", "ca.pem"};
    struct fault_peer *peer = start_peer(true);
    struct oteli_transport *transport = with_client_certificate(peer);
    assert_arrives(transport);
    copy_file("ca.pem", "kept");

    for (size_t i = 0; i < COUNT(files); i++)
        write_file(files[i], "-----BEGIN CERTIFICATE-----\n", 28);
    const struct oteli_transport_response answer = asking_request(
        transport, &(const struct oteli_transport_request){
                       .body = "spans", .length = 5, .connect_ms = 60000, .fresh = true});
    assert_int_equal(answer.status, 200);
    for (size_t i = 0; i < COUNT(files); i++)
        assert_int_equal(unlink(path(files[i])), 0);
    assert_arrives(transport);

    assert_int_equal(fault_peer_connections(peer), 2);
    copy_file("kept", "ca.pem");
    issue("client");
    assert_arrives(transport);
    assert_int_equal(fault_peer_connections(peer), 3);
    oteli_transport_free(transport);
    fault_peer_stop(peer);
}

/* An authority that is taken away counts at once; but that may be one side of a change that the
 * other has not seen yet. */
TEST(R35_another_authority_counts_at_once)
{
    struct certificates *others = certificates_new();
    struct fault_peer *peer = start_peer(false);
    copy_file("ca.pem", "trusted.pem");
    struct oteli_transport *transport =
        oteli_transport_new(TLS_OPTIONS(peer, .ca_file = path("trusted.pem")));
    char bytes[8192];
    assert_arrives(transport);

    FILE *from = fopen(certificates_path(others, "ca.pem"), "re");
    assert_non_null(from);
    write_file("trusted.pem", bytes, fread(bytes, 1, sizeof bytes, from));
    fclose(from);
    const struct oteli_transport_response answer = post(transport);
    assert_fails_in_tls(&answer, false);
    copy_file("ca.pem", "trusted.pem");

    assert_arrives(transport);
    oteli_transport_free(transport);
    fault_peer_stop(peer);
    certificates_free(others);
}

TEST(a_file_that_is_missing_is_hopeless_until_it_is_there)
{
    struct fault_peer *peer = start_peer(false);
    struct oteli_transport *transport =
        oteli_transport_new(TLS_OPTIONS(peer, .ca_file = path("late.pem")));
    assert_non_null(strstr(asking_log(), "late.pem cannot be used: No such file or directory"));

    const struct oteli_transport_response answer = post(transport);
    assert_fails_in_tls(&answer, true);
    assert_non_null(strstr(answer.problem, "late.pem"));
    copy_file("ca.pem", "late.pem");

    assert_arrives(transport);
    assert_string_equal(asking_log(), "");
    for (int comment = 'a'; comment < 'c'; comment++) { /* a change that stat does not show */
        char bytes[8192];
        const size_t length = read_file("ca.pem", bytes, sizeof bytes - 1);
        bytes[length] = (char)comment;
        write_file("late.pem", bytes, length + 1);
        const struct timespec soon[2] = {{.tv_sec = 4000000000}, {.tv_sec = 4000000000}};
        assert_int_equal(utimensat(AT_FDCWD, path("late.pem"), soon, 0), 0);
        assert_arrives(transport);
        assert_non_null(strstr(asking_log(), "late.pem has changed"));
    }
    oteli_transport_free(transport);
    fault_peer_stop(peer);
}

TEST(no_memory_is_no_transport_and_no_leak)
{
    static const otel_otlp_header header = {"Content-Type", "text/plain"};
    const struct oteli_transport_options options = {
        .url = "https://localhost:1/",
        .unix_socket = "/nowhere",
        .user_agent = "asking",
        .proxy = "http://localhost:1",
        .no_proxy = "example.org",
        .headers = &header,
        .header_count = 1,
        .is_http2 = true,
        .tls = {.ca_file = path("ca.pem"),
                .certificate_file = path("client.pem"),
                .key_file = path("client.key"),
                .ciphers = "ALL"},
    };
    for (size_t nth = 1;; nth++) {
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        struct oteli_transport *transport = oteli_transport_new(&options);
        const bool all_tried = !oteli_leaks_failed();
        if (transport != NULL && !all_tried) /* it can be had later: a file was not read */
            assert_non_null(strstr(asking_log(), "Cannot allocate memory"));
        struct oteli_transport *renewed =
            transport != NULL && all_tried ? oteli_transport_renew(transport) : NULL;
        oteli_transport_free(renewed);
        oteli_transport_free(transport);
        oteli_leaks_check();
        if (all_tried)
            break;
    }
}

TEST(pem_is_told_from_what_is_none)
{
#define BEGIN(what) "-----BEGIN " what "-----\n"
#define END(what) "-----END " what "-----\n"
    static const struct {
        const char *text;
        enum oteli_tls_which which;
        bool is_pem;
    } cases[] = {
        {BEGIN("CERTIFICATE") "AAAA\n" END("CERTIFICATE"), OTELI_TLS_CA, true},
        {BEGIN("CERTIFICATE") "AAAA\r\n-----END CERTIFICATE-----\r\n", OTELI_TLS_CA, true},
        {BEGIN("CERTIFICATE") "AAAA\n-----END CERTIFICATE-----", OTELI_TLS_CA, true},
        {"Some words\n" BEGIN("TRUSTED CERTIFICATE") END("TRUSTED CERTIFICATE"), OTELI_TLS_CA,
         true},
        {BEGIN("EC PRIVATE KEY") "AA\n" END("EC PRIVATE KEY"), OTELI_TLS_KEY, true},
        {BEGIN("EC PARAMETERS") END("EC PARAMETERS") BEGIN("PRIVATE KEY") END("PRIVATE KEY"),
         OTELI_TLS_KEY, true},
        {"", OTELI_TLS_CA, false},
        {"\n\n", OTELI_TLS_KEY, false},
        {BEGIN("CERTIFICATE"), OTELI_TLS_CA, false},
        {BEGIN("CERTIFICATE") END("PRIVATE KEY"), OTELI_TLS_CA, false},
        {BEGIN("CERTIFICATE") BEGIN("CERTIFICATE") END("CERTIFICATE"), OTELI_TLS_CA, false},
        {END("CERTIFICATE"), OTELI_TLS_CA, false},
        {BEGIN("CERTIFICATE") END("CERTIFICATE"), OTELI_TLS_KEY, false},
        {BEGIN("PRIVATE KEY") END("PRIVATE KEY"), OTELI_TLS_CERTIFICATE, false},
        {"-----BEGIN -----\n-----END -----\n", OTELI_TLS_CA, false},
        {"-----BEGIN -----END -----", OTELI_TLS_CA, false},
        {"-----BEGIN CERTIFICATE-----END CERTIFICATE", OTELI_TLS_CA, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(oteli_tls_is_pem(cases[i].text, cases[i].which), cases[i].is_pem);
}

AROUND_ALL(asking_set_up, asking_tear_down);

static int forget_log(void **state)
{
    (void)state;
    (void)asking_log();
    return 0;
}

AROUND_EACH(forget_log, NULL);
