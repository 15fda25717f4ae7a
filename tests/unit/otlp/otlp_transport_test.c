/* SPDX-License-Identifier: Apache-2.0 */
/* What an exporter that lives inside somebody else's process owes it: descriptors, fork,
 * environment, signals and threads; and what options turn into on the wire. */
#include "exporters/otlp/socket.h"
#include "tests/support/leaks.h"
#include "tests/support/otlp_fixture.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)

static bool is_counting_getenv;
static int getenv_calls;

/* In front of libc's for all libraries of this program. */
char *getenv(const char *name)
{
    const size_t length = strlen(name);
    if (is_counting_getenv)
        getenv_calls++;
    for (char **entry = environ; *entry != NULL; entry++) {
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    }
    return NULL;
}

char *secure_getenv(const char *name)
{
    return getenv(name);
}

/* The next socket from `fd` on whose peer is the receiver; -1: none. */
static int connected_socket(int fd, const struct http_sink *sink)
{
    for (; fd < 256; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t length = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.sin_family == AF_INET &&
            ntohs(peer.sin_port) == http_sink_port(sink))
            return fd;
    }
    return -1;
}

TEST(options_turn_into_headers)
{
    static const otel_otlp_header headers[] = {
        {"X-Tenant", "a%20b"}, {"X-Empty", ""}, {"content-type", "text/plain"}, {"X-Tab", "a\tb"}};
    struct fixture fixture;
    char value[128];
    fixture_init(
        &fixture, NULL, 0,
        OPTIONS(.headers = headers, .header_count = COUNT(headers), .user_agent = "shop/2"));

    fixture_deliver(&fixture);

    const struct http_sink_request *request = http_sink_request(fixture.sink, 0);
    assert_string_equal(http_sink_header(request, "User-Agent", value, sizeof value),
                        "shop/2 OTel-OTLP-Exporter-C/" OTEL_VERSION);
    assert_string_equal(http_sink_header(request, "X-Tenant", value, sizeof value), "a%20b");
    assert_string_equal(http_sink_header(request, "X-Tab", value, sizeof value), "a\tb");
    assert_non_null(strstr(request->head, "\r\nX-Empty:\r\n"));
    assert_non_null(strstr(request->head, "\r\nContent-Type: application/x-protobuf\r\n"));
    assert_null(strstr(request->head, "text/plain"));
    assert_non_null(strstr(fixture.log, "content-type is set by the OTLP exporter itself"));
    fixture_fini(&fixture);
}

TEST(wrong_options_are_refused)
{
    static const otel_otlp_header bad_name = {"X Y", "1"};
    static const otel_otlp_header bad_value = {"X", "1\r\nEvil: yes"};
    static const otel_otlp_header no_value = {"X", NULL};
    const otel_otlp_options *const wrong[] = {
        OPTIONS(.endpoint = "localhost:4318"),
        OPTIONS(.endpoint = ""),
        OPTIONS(.timeout_ms = -2),
        OPTIONS(.user_agent = "a\nb"),
        OPTIONS(.headers = &bad_name, .header_count = 1),
        OPTIONS(.headers = &bad_value, .header_count = 1),
        OPTIONS(.headers = &no_value, .header_count = 1),
    };
    oteli_leaks_begin();
    for (size_t i = 0; i < COUNT(wrong); i++) {
        otel_exporter exporter;
        assert_int_equal(otel_otlp_exporter_new(wrong[i], &exporter), OTEL_ERROR_INVALID_ARGUMENT);
    }
    oteli_leaks_check();
}

/* Options of an older program end earlier. */
TEST(options_count_up_to_their_size)
{
    otel_otlp_options old = {.timeout_ms = -2, .user_agent = "a\nb"};
    otel_exporter exporter;
    old.size = offsetof(otel_otlp_options, timeout_ms);

    assert_int_equal(otel_otlp_exporter_new(&old, &exporter), OTEL_OK);
    exporter.free(exporter.state);
    assert_int_equal(otel_otlp_exporter_new(NULL, &exporter), OTEL_OK);
    assert_string_equal(exporter.name, "otlp_http_span_exporter");
    assert_int_equal(exporter.size, sizeof exporter);
    exporter.free(exporter.state);
}

TEST(no_memory_is_an_error_and_no_leak)
{
    static const otel_otlp_header header = {"X", "1"};
    for (size_t nth = 1;; nth++) {
        otel_exporter exporter;
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        const otel_status status = otel_otlp_exporter_new(
            OPTIONS(.headers = &header, .header_count = 1, .spool_directory = "/nowhere"),
            &exporter);
        const bool all_tried = !oteli_leaks_failed();
        assert_int_equal(status, all_tried ? OTEL_OK : OTEL_ERROR_NO_MEMORY);
        if (status == OTEL_OK)
            exporter.free(exporter.state);
        oteli_leaks_check();
        if (all_tried)
            break;
    }
}

TEST(a_large_body_goes_out_at_once_and_whole)
{
    enum { SPAN_BYTES = 3 * 1024 * 1024 };
    struct fixture fixture;
    char value[32];
    fixture_init(&fixture, NULL, 0, NULL);
    char *span = calloc(1, SPAN_BYTES);
    batch_double_add(&fixture.batch, fixture.batch.spans[0].scope, span, SPAN_BYTES);
    free(span);

    fixture_deliver(&fixture);

    assert_all_delivered(&fixture);
    /* It has a request to itself. */
    const struct http_sink_request *request = http_sink_request(fixture.sink, 1);
    assert_true(request->body_length > SPAN_BYTES);
    assert_string_equal(http_sink_header(request, "Expect", value, sizeof value), "");
    fixture_fini(&fixture);
}

TEST(a_reset_in_the_middle_of_a_body_is_tried_again)
{
    enum { SPAN_BYTES = 3 * 1024 * 1024 };
    static const struct http_sink_answer script[] = {
        {.status = 200, .headers = "Connection: close\r\n"},
        {.then = HTTP_SINK_RESET_EARLY},
        {.status = 503, .headers = "Retry-After: 99\r\n"}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NULL);
    char *span = calloc(1, SPAN_BYTES);
    batch_double_add(&fixture.batch, fixture.batch.spans[0].scope, span, SPAN_BYTES);
    free(span);

    assert_false(fixture_export(&fixture));
    fixture_finish_fast(&fixture);

    assert_int_equal(http_sink_requests(fixture.sink), 2);
    assert_only_dropped(&fixture, OTEL_DROP_UNCONFIRMED, 1); /* some of it had been sent */
    fixture_fini(&fixture);
}

TEST(an_endless_answer_is_cut_off)
{
    static const struct http_sink_answer script[] = {
        {.then = HTTP_SINK_ENDLESS_BODY}, {.status = 403, .then = HTTP_SINK_ENDLESS_BODY}};
    struct fixture fixture;
    fixture_init(&fixture, script, COUNT(script), NULL);

    fixture_deliver(&fixture);
    fixture_deliver(&fixture);

    /* 4 MiB each, and what stood in the sockets' buffers. */
    assert_in_range(http_sink_bytes_sent(fixture.sink), 8 << 20, 32 << 20);
    assert_int_equal(http_sink_connections(fixture.sink), 2);
    fixture_fini(&fixture);
}

TEST(the_socket_is_closed_on_exec)
{
    struct fixture fixture;
    fixture_init(&fixture, NULL, 0, NULL);
    fixture_deliver(&fixture);

    const int fd = connected_socket(0, fixture.sink);

    assert_true(fd >= 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(connected_socket(fd + 1, fixture.sink), -1);
    fixture_fini(&fixture);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

TEST(the_environment_is_read_in_the_constructor_only)
{
    struct fixture fixture;
    char endpoint[64];
    fixture_init(&fixture, NULL, 0, NULL);
    snprintf(endpoint, sizeof endpoint, "http://localhost:%u/",
             (unsigned)http_sink_port(fixture.sink));
    fixture.exporter.free(fixture.exporter.state);
    is_counting_getenv = true;
    getenv_calls = 0;
    assert_int_equal(otel_otlp_exporter_new(OPTIONS(.endpoint = endpoint), &fixture.exporter),
                     OTEL_OK);
    assert_true(getenv_calls > 0); /* it is ours that is called */
    getenv_calls = 0;

    fixture_deliver(&fixture);
    fixture_deliver(&fixture);

    is_counting_getenv = false;
    assert_all_delivered(&fixture);
    assert_int_equal(getenv_calls, 0);
    fixture_fini(&fixture);
}

/* spec: X14 protocol/otlp.md#otlphttp-connection SHOULD stable */
TEST(a_proxy_is_used_and_avoided)
{
    static const char endpoint[] = "http://collector.invalid:4318/v1/traces";
    struct http_sink *proxy = http_sink_start(NULL, 0);
    struct fixture fixture;
    setenv("http_proxy", http_sink_url(proxy), 1);
    setenv("no_proxy", "127.0.0.1", 1);

    fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = endpoint));
    fixture_deliver(&fixture);
    assert_all_delivered(&fixture);
    assert_non_null(strstr(http_sink_request(proxy, 0)->head,
                           "POST http://collector.invalid:4318/v1/traces HTTP/1.1\r\n"));
    http_sink_stop(proxy);
    fixture_fini(&fixture);

    fixture_init(&fixture, NULL, 0, NULL);
    fixture_deliver(&fixture);
    assert_all_delivered(&fixture);
    assert_int_equal(http_sink_requests(fixture.sink), 1);
    fixture_fini(&fixture);
    unsetenv("http_proxy");
    unsetenv("no_proxy");
}

/* In a child: 0, or the number of the step that failed. */
static int export_in_child(struct fixture *fixture)
{
    const int parents = connected_socket(0, fixture->sink);
    fixture->exporter.wake(fixture->exporter.state);
    fixture_deliver(fixture);
    if (export_double_lost(&fixture->call) != 0)
        return 1;
    const int own = connected_socket(0, fixture->sink);
    if (connected_socket(own + 1, fixture->sink) != -1)
        return 2; /* the parent's connection is still open here */

    /* A daemon closes what it does not know, and opens its own in those places. */
    int victim[2];
    char byte;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, victim) != 0 || dup2(victim[0], own) != own)
        return 3;
    close(victim[0]);
    fixture_deliver(fixture);
    if (export_double_lost(&fixture->call) != 0)
        return 4;
    fixture->exporter.free(fixture->exporter.state);
    if (recv(victim[1], &byte, 1, MSG_DONTWAIT) != -1 || errno != EAGAIN)
        return 5; /* it was written to, or closed */
    return parents >= 0 ? 0 : 6;
}

TEST(a_child_leaves_the_parents_connection_alone)
{
    struct fixture fixture;
    int status;
    fixture_init(&fixture, NULL, 0, NULL);
    fixture_deliver(&fixture);

    const pid_t child = fork();
    if (child == 0)
        _exit(export_in_child(&fixture));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    fixture_deliver(&fixture);

    assert_all_delivered(&fixture);
    assert_int_equal(http_sink_requests(fixture.sink), 4);
    assert_int_equal(http_sink_connections(fixture.sink), 3);
    assert_int_equal(http_sink_request(fixture.sink, 3)->connection, 1);
    fixture_fini(&fixture);
}

/* A forked child whose parent was in the middle of an export begins anew. */
TEST(a_child_of_a_busy_parent_begins_anew)
{
    static const struct http_sink_answer script[] = {{.then = HTTP_SINK_HANG}};
    struct fixture fixture;
    int status;
    fixture_init(&fixture, script, COUNT(script), OPTIONS(.timeout_ms = OTEL_ZERO));
    assert_false(fixture_export(&fixture));
    while (http_sink_requests(fixture.sink) == 0)
        assert_false(fixture_step(&fixture));

    const pid_t child = fork();
    if (child == 0) {
        fixture_deliver(&fixture);
        _exit(export_double_lost(&fixture.call) != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);

    assert_false(fixture_step(&fixture)); /* the parent's connection is still open */
    fixture_fini(&fixture);
}

/* A listener whose queue is full: connecting to it takes for ever. */
static uint16_t listen_without_accepting(int fds[6])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fds[0], (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fds[0], 0), 0);
    assert_int_equal(getsockname(fds[0], (struct sockaddr *)&address, &length), 0);
    for (int i = 1; i < 6; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fds[i], (struct sockaddr *)&address, sizeof address);
    }
    return ntohs(address.sin_port);
}

/* The exporter's time stands still: it is the connecting that is given up. */
TEST(connecting_does_not_use_up_the_time)
{
    char endpoint[64];
    int fds[6];
    struct fixture fixture;
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u/",
             (unsigned)listen_without_accepting(fds));
    fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = endpoint, .timeout_ms = 100));

    assert_false(fixture_export(&fixture));
    fixture_finish(&fixture);

    assert_only_dropped(&fixture, OTEL_DROP_RETRY_EXHAUSTED, 3);
    assert_non_null(strstr(fixture.log, "gave up after 1 attempt:"));
    fixture_fini(&fixture);
    for (int i = 0; i < 6; i++)
        close(fds[i]);
}

/* ::1 and 127.0.0.1 for "two-addresses.invalid". */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **result)
{
    static struct sockaddr_in6 first = {.sin6_family = AF_INET6,
                                        .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    static struct sockaddr_in second = {.sin_family = AF_INET};
    static struct addrinfo second_of = {.ai_family = AF_INET,
                                        .ai_socktype = SOCK_STREAM,
                                        .ai_addr = (struct sockaddr *)&second,
                                        .ai_addrlen = sizeof second};
    static struct addrinfo first_of = {.ai_family = AF_INET6,
                                       .ai_socktype = SOCK_STREAM,
                                       .ai_addr = (struct sockaddr *)&first,
                                       .ai_addrlen = sizeof first,
                                       .ai_next = &second_of};
    (void)hints;
    if (strcmp(name, "two-addresses.invalid") != 0)
        return EAI_NONAME;
    first.sin6_port = second.sin_port = htons((uint16_t)atoi(service));
    second.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *result = &first_of;
    return 0;
}

void freeaddrinfo(struct addrinfo *result)
{
    (void)result;
}

/* Connections that nobody accepts, until one more takes for ever. */
static void fill_ipv6_backlog(uint16_t port, int fds[6])
{
    const struct sockaddr_in6 address = {
        .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons(port)};
    for (int i = 0; i < 6; i++) {
        fds[i] = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)(i == 0 && bind(fds[0], (const struct sockaddr *)&address, sizeof address) == 0 &&
               listen(fds[0], 0));
        if (i != 0)
            (void)connect(fds[i], (const struct sockaddr *)&address, sizeof address);
    }
}

/* Some versions of libcurl close the slower of two attempts without saying so. */
TEST(an_address_that_leads_nowhere_is_no_hindrance)
{
    struct http_sink *sink = http_sink_start(NULL, 0);
    struct fixture fixture;
    char endpoint[64];
    int fds[6];
    snprintf(endpoint, sizeof endpoint, "http://two-addresses.invalid:%u/",
             (unsigned)http_sink_port(sink));
    fill_ipv6_backlog(http_sink_port(sink), fds);
    fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = endpoint));

    for (int i = 0; i < 3; i++) {
        fixture_deliver(&fixture);
        assert_all_delivered(&fixture);
    }

    assert_string_equal(fixture.log, "");
    assert_int_equal(http_sink_connections(sink), 1);
    http_sink_stop(sink);
    fixture_fini(&fixture);
    for (int i = 0; i < 6; i++)
        close(fds[i]);
}

static bool sigpipe_is_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1;
}

/* SIGPIPE's disposition is the default here: it would end this program. */
TEST(a_broken_pipe_in_a_guard_goes_unnoticed)
{
    sigset_t mask;

    const struct oteli_sigpipe_guard guard = oteli_sigpipe_guard_begin(true);
    pthread_kill(pthread_self(), SIGPIPE);
    assert_true(sigpipe_is_pending());
    oteli_sigpipe_guard_end(&guard);

    assert_false(sigpipe_is_pending());
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGPIPE), 0);
}

TEST(a_sigpipe_of_the_program_is_not_taken_away)
{
    sigset_t sigpipe;
    sigset_t before;
    int number;
    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
    pthread_kill(pthread_self(), SIGPIPE);

    const struct oteli_sigpipe_guard guard = oteli_sigpipe_guard_begin(true);
    oteli_sigpipe_guard_end(&guard);

    assert_true(sigpipe_is_pending());
    sigwait(&sigpipe, &number);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void *make_and_free(void *state)
{
    for (int i = 0; i < 20; i++) {
        otel_exporter exporter;
        if (otel_otlp_exporter_new(NULL, &exporter) != OTEL_OK)
            return state;
        exporter.wake(exporter.state);
        exporter.free(exporter.state);
    }
    return NULL;
}

TEST(exporters_come_and_go_on_many_threads)
{
    pthread_t threads[16];
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_and_free, &getenv_calls), 0);
    for (size_t i = 0; i < COUNT(threads); i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}
