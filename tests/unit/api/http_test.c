/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/http_test.c - specification of otel/http.h, by the tables of the semantic
 * conventions 1.44.0, docs/http/http-spans.md. */
#include "tests/support/carrier.h"
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <otel/http.h>
#include <stdio.h>
#include <string.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define TRACEPARENT "00-" TRACE "-b7ad6b7169203331-01"
#define LAST (recorder.count - 1)

static struct carrier in;
static struct carrier out;
static otel_tracer *tracer;

static int begin(void **state)
{
    in.count = out.count = 0;
    recorder_setup(state);
    tracer = otel_tracer_get("http", NULL);
    otel_propagator_set(otel_propagator_trace_context());
    return 0;
}

static int end(void **state)
{
    otel_propagator_set(NULL);
    return recorder_teardown(state);
}

AROUND_EACH(begin, end);

/* The span that was recorded last: its name, status and attributes. */
static void check_name(const char *name)
{
    const struct oteli_field field = recorder_field(LAST, 5);
    if (field.length != strlen(name) || memcmp(field.bytes, name, field.length) != 0)
        fail_msg("the name is \"%.*s\", not \"%s\"", (int)field.length, (const char *)field.bytes,
                 name);
}

static void check_attributes(const char *attributes)
{
    assert_string_equal(recorder_span_attributes(LAST), attributes);
}

static void check_status(bool is_error, const char *attributes)
{
    static const uint8_t error_without_description[] = {3 << 3, OTEL_SPAN_STATUS_ERROR};
    assert_int_equal(recorder_has_field(LAST, 15), is_error);
    if (is_error) {
        const struct oteli_field status = recorder_field(LAST, 15);
        assert_int_equal(status.length, sizeof error_without_description);
        assert_memory_equal(status.bytes, error_without_description, status.length);
    }
    const char *all = recorder_span_attributes(LAST);
    const char *ends =
        strlen(all) >= strlen(attributes) ? all + strlen(all) - strlen(attributes) : all;
    assert_string_equal(ends, attributes);
}

static void serve(const char *method, const char *target, const otel_http_options *options)
{
    otel_http_server_end(otel_http_server_enter(tracer, method, target, options), 0, NULL);
}

static void ask(const char *method, const char *url, const otel_http_options *options)
{
    otel_http_client_end(otel_http_client_enter(tracer, method, url, options), 0, NULL);
}

/* --- methods and names --- */

static const struct {
    const char *method, *route, *name, *attributes;
} methods[] = {
    {"GET", NULL, "GET", "http.request.method=GET "},
    {"POST", NULL, "POST", "http.request.method=POST "},
    {"HEAD", NULL, "HEAD", "http.request.method=HEAD "},
    {"PUT", NULL, "PUT", "http.request.method=PUT "},
    {"DELETE", NULL, "DELETE", "http.request.method=DELETE "},
    {"CONNECT", NULL, "CONNECT", "http.request.method=CONNECT "},
    {"OPTIONS", NULL, "OPTIONS", "http.request.method=OPTIONS "},
    {"TRACE", NULL, "TRACE", "http.request.method=TRACE "},
    {"PATCH", NULL, "PATCH", "http.request.method=PATCH "},
    {"QUERY", NULL, "QUERY", "http.request.method=QUERY "},
    {"GET", "/u/{id}", "GET /u/{id}", "http.request.method=GET "},
    {"GeT", NULL, "HTTP", "http.request.method=_OTHER http.request.method_original=GeT "},
    {"ACL", "/u/{id}", "HTTP /u/{id}",
     "http.request.method=_OTHER http.request.method_original=ACL "},
    {"GET,POST", NULL, "HTTP", "http.request.method=_OTHER http.request.method_original=GET,POST "},
    {"", NULL, "HTTP", "http.request.method=_OTHER "},
    {NULL, "/", "HTTP /", "http.request.method=_OTHER "},
};

TEST(methods_give_names)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        const otel_slice route = otel_slice_of(methods[i].route);
        serve(methods[i].method, NULL, OTEL_HTTP_OPTIONS(.route = route));
        check_name(methods[i].name);
        char expected[256];
        snprintf(expected, sizeof expected, "%surl.scheme=http %s%s%s", methods[i].attributes,
                 methods[i].route != NULL ? "http.route=" : "",
                 methods[i].route != NULL ? methods[i].route : "",
                 methods[i].route != NULL ? " " : "");
        check_attributes(expected);

        /* A route that is known later gives the same. */
        const otel_span span = otel_http_server_start(tracer, methods[i].method, NULL, NULL);
        otel_http_set_route(span, methods[i].route);
        otel_http_server_end(span, 0, NULL);
        check_name(methods[i].name);
        check_attributes(expected);

        ask(methods[i].method, NULL, OTEL_HTTP_OPTIONS(.route = route));
        check_attributes(methods[i].attributes);
        assert_int_equal(recorder_field(LAST, 6).value, 1 + OTEL_SPAN_KIND_CLIENT);
    }
}

TEST(a_list_of_methods_replaces_the_known_ones)
{
    const otel_http_options options = {.size = sizeof options, .known_methods = "PURGE, GET"};
    serve("PURGE", NULL, &options);
    check_name("PURGE");
    serve("GET", NULL, &options);
    check_name("GET");
    serve("POST", NULL, &options);
    check_name("HTTP");
    const otel_span span = otel_http_server_enter(tracer, "PURGE", NULL, &options);
    otel_http_set_route(span, "/a");
    otel_http_set_route(span, "/a/{b}"); /* a more precise one */
    otel_http_server_end(span, 0, NULL);
    check_name("PURGE /a/{b}");
}

TEST(a_route_that_is_too_long_is_an_attribute_only)
{
    char route[1000];
    memset(route, 'r', sizeof route);
    const otel_span span = otel_http_server_enter(tracer, "GET", "/", NULL);
    otel_http_set_route_n(span, route, sizeof route);
    otel_http_server_end(span, 200, NULL);
    check_name("GET");
    serve("GET", NULL, OTEL_HTTP_OPTIONS(.route = otel_slice_n(route, sizeof route)));
    check_name("GET");
    serve("GET", NULL, OTEL_HTTP_OPTIONS(.route = otel_slice_n(route, 500)));
    assert_int_equal(recorder_field(LAST, 5).length, 4 + 500);
}

/* --- status --- */

static const struct {
    unsigned status;
    const char *error;
    bool server_fails, client_fails;
    const char *type;
} statuses[] = {
    {100, NULL, false, false, NULL},
    {200, NULL, false, false, NULL},
    {302, NULL, false, false, NULL},
    {399, NULL, false, false, NULL},
    {400, NULL, false, true, "400"},
    {404, NULL, false, true, "404"},
    {499, NULL, false, true, "499"},
    {500, NULL, true, true, "500"},
    {503, NULL, true, true, "503"},
    {999, NULL, true, true, "999"},
    {99, NULL, true, true, "99"},
    {302, "max_redirects", true, true, "max_redirects"},
    {201, "WebSocketDisconnect", true, true, "WebSocketDisconnect"},
    {500, "out_of_memory", true, true, "out_of_memory"},
    {404, "", false, true, "404"},
    {0, "timeout", true, true, "timeout"},
    {0, NULL, false, false, NULL}, /* cancelled by the caller */
};

TEST(statuses_are_errors_of_servers_and_of_clients)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        for (int is_client = 0; is_client < 2; is_client++) {
            const bool fails = is_client ? statuses[i].client_fails : statuses[i].server_fails;
            char code[64] = "";
            char expected[128];
            if (statuses[i].status != 0)
                snprintf(code, sizeof code, " http.response.status_code=%u", statuses[i].status);
            snprintf(expected, sizeof expected, "%s%s%s%s ", is_client ? "=_OTHER" : "scheme=http",
                     code, fails ? " error.type=" : "", fails ? statuses[i].type : "");
            if (is_client)
                otel_http_client_end(otel_http_client_enter(tracer, NULL, NULL, NULL),
                                     statuses[i].status, statuses[i].error);
            else
                otel_http_server_end(otel_http_server_start(tracer, NULL, NULL, NULL),
                                     statuses[i].status, statuses[i].error);
            check_status(fails, expected);
        }
}

TEST(a_status_of_the_programs_own_stays)
{
    static const uint8_t described[] = {2 << 3 | 2, 4,   'f',    'u',
                                        'l',        'l', 3 << 3, OTEL_SPAN_STATUS_ERROR};
    otel_span span = otel_http_server_enter(tracer, "GET", "/", NULL);
    otel_span_fail(span, "full");
    otel_http_server_end(span, 507, NULL);
    const struct oteli_field status = recorder_field(LAST, 15);
    assert_int_equal(status.length, sizeof described);
    assert_memory_equal(status.bytes, described, sizeof described);

    span = otel_http_client_start(tracer, "GET", "http://e/", NULL);
    otel_span_set_status(span, OTEL_SPAN_STATUS_OK, NULL); /* it may well not be there */
    otel_http_client_end(span, 404, NULL);
    assert_int_equal(recorder_field(LAST, 15).bytes[1], OTEL_SPAN_STATUS_OK);
    assert_null(strstr(recorder_span_attributes(LAST), "error.type"));
}

/* --- servers --- */

#define SERVER "http.request.method=GET url.scheme="
static const struct {
    const char *target, *host, *attributes;
} targets[] = {
    {"/", NULL, SERVER "http url.path=/ "},
    {"*", NULL, SERVER "http url.path=* "},
    {"/a?", NULL, SERVER "http url.path=/a "},
    {"/a/b?s=1&t=2#f?g", "h:8080",
     SERVER "http url.path=/a/b url.query=s=1&t=2 server.address=h server.port=8080 "},
    {"/?u=http://x/", "h",
     SERVER "http url.path=/ url.query=u=http://x/ server.address=h "
            "server.port=80 "},
    {"https://u:p@e.com?q", "h:1",
     SERVER "https url.path=/ url.query=q server.address=e.com server.port=443 "},
    {"HTTP://e.com:0/x", "h", SERVER "HTTP url.path=/x server.address=e.com server.port=80 "},
    {"/", "[2001:db8::1]:81", SERVER "http url.path=/ server.address=2001:db8::1 server.port=81 "},
    {"/", "[::1]", SERVER "http url.path=/ server.address=::1 server.port=80 "},
    {"/", "::1", SERVER "http url.path=/ server.address=::1 server.port=80 "},
    {"/", "[::1", SERVER "http url.path=/ server.address=::1 server.port=80 "},
    {"/", "h:99999", SERVER "http url.path=/ server.address=h server.port=80 "},
    {"/", "h:x", SERVER "http url.path=/ server.address=h server.port=80 "},
    {"/", " h ", SERVER "http url.path=/ server.address=h server.port=80 "},
    {"/", ":80", SERVER "http url.path=/ "},
    {"/x?sig=s&a=b&Sig=c&Signature=d&sig&=1", NULL,
     SERVER "http url.path=/x url.query=sig=REDACTED&a=b&Sig=c&Signature=REDACTED&sig&=1 "},
    {"/x?AWSAccessKeyId=&sig==&", NULL,
     SERVER "http url.path=/x url.query=AWSAccessKeyId=&sig=REDACTED& "},
};

TEST(targets_of_servers)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        in.count = 0;
        if (targets[i].host != NULL)
            carrier_add(&in, "Host", targets[i].host);
        serve("GET", targets[i].target,
              OTEL_HTTP_OPTIONS(.get_header = carrier_get, .carrier = &in));
        check_attributes(targets[i].attributes);
        assert_int_equal(recorder_field(LAST, 6).value, 1 + OTEL_SPAN_KIND_SERVER);
    }
    serve("CONNECT", "e.com:444", OTEL_HTTP_OPTIONS(.scheme = otel_slice_of("https")));
    check_attributes("http.request.method=CONNECT url.scheme=https server.address=e.com "
                     "server.port=444 ");
}

/* The example "HTTP client-server", as the server sees it. */
TEST(all_that_a_server_knows)
{
    carrier_add(&in, "traceparent", TRACEPARENT);
    carrier_add(&in, "Host", "wrong");
    carrier_add(&in, "User-Agent", "Mozilla/5.0");
    carrier_add(&in, "X-Forwarded-For", "192.0.2.9"); /* not trusted */
    otel_context context;
    const otel_http_options options = {.size = sizeof options,
                                       .scheme = otel_slice_of("https"),
                                       .authority = otel_slice_n("example.com:8080/", 16),
                                       .route = otel_slice_of("/webshop/articles/:article_id"),
                                       .protocol_version = otel_slice_of("HTTP/1.1"),
                                       .peer_address = otel_slice_of("192.0.2.5"),
                                       .peer_port = 4711,
                                       .get_header = carrier_get,
                                       .carrier = &in,
                                       .context = &context};
    const otel_span span =
        otel_http_server_enter(tracer, "GET", "/webshop/articles/4?s=1&t=2", &options);
    assert_memory_equal(&context.span, &span, sizeof span);
    otel_http_server_end(span, 200, NULL);
    check_name("GET /webshop/articles/:article_id");
    check_attributes("http.request.method=GET url.scheme=https url.path=/webshop/articles/4 "
                     "url.query=s=1&t=2 server.address=example.com server.port=8080 "
                     "client.address=192.0.2.5 network.peer.address=192.0.2.5 "
                     "network.peer.port=4711 network.protocol.version=1.1 "
                     "http.route=/webshop/articles/:article_id user_agent.original=Mozilla/5.0 "
                     "http.response.status_code=200 ");
    char trace_id[33];
    const otel_span_context ids = otel_span_get_context(span);
    otel_trace_id_hex(&ids, trace_id);
    assert_string_equal(trace_id, TRACE);
}

TEST(versions_of_the_protocol)
{
    static const char *const versions[][2] = {
        {"1.0", "1.0"}, {"HTTP/1.1", "1.1"}, {"HTTP/2.0", "2"}, {"2", "2"}, {"3.0", "3"}};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        serve("GET", NULL, OTEL_HTTP_OPTIONS(.protocol_version = otel_slice_of(versions[i][0])));
        char expected[128];
        snprintf(expected, sizeof expected, SERVER "http network.protocol.version=%s ",
                 versions[i][1]);
        check_attributes(expected);
    }
}

TEST(a_server_that_knows_its_headers_needs_no_getter)
{
    serve("GET", NULL,
          OTEL_HTTP_OPTIONS(.authority = otel_slice_of("e.com"),
                            .user_agent = otel_slice_of("agent/1")));
    check_attributes(SERVER
                     "http server.address=e.com server.port=80 user_agent.original=agent/1 ");
}

static const struct {
    const char *name, *value, *attributes;
} proxies[] = {
    {"Forwarded", "for=192.0.2.60;proto=https;by=203.0.113.43;host=e.com, for=10.0.0.1;proto=http",
     SERVER "https server.address=e.com server.port=443 client.address=192.0.2.60 "},
    {"Forwarded", "For=\"[2001:db8:cafe::17]:4711\" ; Host=\"e.com:8443\"",
     SERVER "http server.address=e.com server.port=8443 client.address=2001:db8:cafe::17 "},
    {"Forwarded", "for=unknown;proto",
     SERVER "http server.address=h server.port=80 "
            "client.address=10.0.0.9 "},
    {"Forwarded", "for=_hidden;;=;proto=",
     SERVER "http server.address=h server.port=80 "
            "client.address=10.0.0.9 "},
    {"Forwarded", "", SERVER "http server.address=h server.port=80 client.address=10.0.0.9 "},
    {"X-Forwarded-For", "192.0.2.1:80, 10.0.0.1",
     SERVER "http server.address=h server.port=80 client.address=192.0.2.1 "},
    {"X-Forwarded-For", "2001:db8::1",
     SERVER "http server.address=h server.port=80 client.address=2001:db8::1 "},
    {"X-Forwarded-Proto", "https, http",
     SERVER "https server.address=h server.port=443 client.address=10.0.0.9 "},
    {"X-Forwarded-Host", "e.com:8080, h",
     SERVER "http server.address=e.com server.port=8080 client.address=10.0.0.9 "},
};

TEST(proxies_that_are_trusted)
{
    for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++) {
        in.count = 0;
        carrier_add(&in, "Host", "h");
        carrier_add(&in, proxies[i].name, proxies[i].value);
        serve("GET", NULL,
              OTEL_HTTP_OPTIONS(.get_header = carrier_get, .carrier = &in, .trusts_proxy = true,
                                .peer_address = otel_slice_of("10.0.0.9")));
        char expected[256];
        snprintf(expected, sizeof expected, "%snetwork.peer.address=10.0.0.9 ",
                 proxies[i].attributes);
        check_attributes(expected);
    }
}

TEST(a_long_list_of_proxies_leaves_room_for_the_rest)
{
    static char many[6000];
    while (strlen(many) + 16 < sizeof many)
        strcat(many, "192.0.2.1, ");
    carrier_add(&in, "Host", "h");
    carrier_add(&in, "X-Forwarded-For", many);
    carrier_add(&in, "X-Forwarded-Proto", "https");
    serve("GET", NULL,
          OTEL_HTTP_OPTIONS(.get_header = carrier_get, .carrier = &in, .trusts_proxy = true));
    check_attributes(SERVER "https server.address=h server.port=443 client.address=192.0.2.1 ");
}

/* --- clients --- */

#define CLIENT "http.request.method=GET url.full="
static const struct {
    const char *url, *attributes;
} urls[] = {
    {"https://example.com:8080/webshop/articles/4?s=1&t=2#f",
     CLIENT "https://example.com:8080/webshop/articles/4?s=1&t=2#f server.address=example.com "
            "server.port=8080 "},
    {"https://e.com", CLIENT "https://e.com server.address=e.com server.port=443 "},
    {"http://[::1]/", CLIENT "http://[::1]/ server.address=::1 server.port=80 "},
    {"https://u:p@e.com/", CLIENT "https://REDACTED:REDACTED@e.com/ server.address=e.com "
                                  "server.port=443 "},
    {"https://u@e.com:1/", CLIENT "https://REDACTED:REDACTED@e.com:1/ server.address=e.com "
                                  "server.port=1 "},
    {"https://u:p@w@e.com/", CLIENT "https://REDACTED:REDACTED@e.com/ server.address=e.com "
                                    "server.port=443 "},
    {"https://e.com/@?a=u@b", CLIENT "https://e.com/@?a=u@b server.address=e.com "
                                     "server.port=443 "},
    {"u:p@e.com/x", CLIENT "http://REDACTED:REDACTED@e.com/x server.address=e.com "
                           "server.port=80 "},
    {"http://e/?a=1&sig=2#sig=3", CLIENT "http://e/?a=1&sig=REDACTED#sig=3 server.address=e "
                                         "server.port=80 "},
    {"http://e/?X-Goog-Signature=2&b", CLIENT "http://e/?X-Goog-Signature=REDACTED&b "
                                              "server.address=e server.port=80 "},
    {"http://e/?X-Amz-Credential=2", CLIENT "http://e/?X-Amz-Credential=REDACTED server.address=e "
                                            "server.port=80 "},
    {"http://e/?X-Amz-Signature=2", CLIENT "http://e/?X-Amz-Signature=REDACTED server.address=e "
                                           "server.port=80 "},
    {"http://e/?X-Amz-Security-Token=2",
     CLIENT "http://e/?X-Amz-Security-Token=REDACTED server.address=e server.port=80 "},
    {"ftp://e/", CLIENT "ftp://e/ server.address=e "},
    {"/path", CLIENT "/path "},
};

TEST(urls_of_clients)
{
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        ask("GET", urls[i].url, NULL);
        check_name("GET");
        check_attributes(urls[i].attributes);
    }
    ask("GET", "/a?sig=1",
        OTEL_HTTP_OPTIONS(.scheme = otel_slice_of("https"),
                          .authority = otel_slice_of("u:p@e.com")));
    check_attributes(CLIENT "https://REDACTED:REDACTED@e.com/a?sig=REDACTED server.address=e.com "
                            "server.port=443 ");
}

TEST(a_long_url_with_secrets_is_cut_and_has_none)
{
    char url[6000] = "http://u:p@e/?sig=secret&a=";
    memset(url + strlen(url), 'x', sizeof url - 1 - strlen(url));
    memcpy(url + sizeof url - sizeof "&sig=secret", "&sig=secret", sizeof "&sig=secret");
    ask("GET", url, NULL);
    const struct recorded_span span = recorder_span(LAST);
    assert_null(memmem(span.message, span.length, "secret", 6));
    assert_null(memmem(span.message, span.length, "u:p", 3));
    assert_non_null(memmem(span.message, span.length, "xxxx", 4));
}

TEST(a_client_injects_its_context_and_counts_resends)
{
    otel_context context;
    otel_http_options options = {.size = sizeof options,
                                 .set_header = carrier_set,
                                 .carrier = &out,
                                 .context = &context,
                                 .peer_address = otel_slice_of("192.0.2.5"),
                                 .peer_port = 8080,
                                 .protocol_version = otel_slice_of("2")};
    const otel_span first = otel_http_client_start(tracer, "GET", "http://e/", &options);
    const otel_span_context ids = otel_span_get_context(first);
    char span_id[17];
    otel_span_id_hex(&ids, span_id);
    assert_non_null(strstr(carrier_sent(&out, "traceparent"), span_id));
    assert_memory_equal(&context.span, &first, sizeof first);
    otel_http_client_end(first, 503, NULL);

    out.count = 0;
    options.parent = &context;
    options.resend_count = 1;
    const otel_span second = otel_http_client_start(tracer, "GET", "http://e/", &options);
    const otel_span_context again = otel_span_get_context(second);
    assert_memory_equal(again.trace_id, ids.trace_id, sizeof ids.trace_id);
    otel_http_client_end(second, 200, NULL);
    check_attributes(CLIENT "http://e/ server.address=e server.port=80 "
                            "network.peer.address=192.0.2.5 network.peer.port=8080 "
                            "network.protocol.version=2 http.request.resend_count=1 "
                            "http.response.status_code=200 ");
}

/* --- what they are made of --- */

TEST(entered_spans_are_current_and_ended_ones_are_left_alone)
{
    const otel_span span = otel_http_server_enter(tracer, "GET", "/", NULL);
    otel_span current = otel_current_span();
    assert_memory_equal(&current, &span, sizeof span);
    ask("GET", "http://e/", NULL); /* is below it */
    assert_int_equal(recorder_field(LAST, 4).length, 8);
    otel_http_server_end(span, 200, NULL);
    otel_http_server_end(span, 500, NULL);
    otel_http_set_route(span, "/late");
    check_status(false, "http.response.status_code=200 ");
    const otel_span detached = otel_http_server_start(tracer, "GET", "/", NULL);
    current = otel_current_span();
    assert_memory_not_equal(&current, &detached, sizeof detached);
    otel_http_server_end(detached, 200, NULL);
}

static bool sampled_by_target(const struct oteli_sdk *sdk, const struct oteli_sampling *about)
{
    (void)sdk;
    for (size_t i = 0; i < about->options->attribute_count; i++)
        if (strcmp(about->options->attributes[i].key, "url.path") == 0)
            return memcmp(about->options->attributes[i].value.as.string, "/health", 7) != 0;
    return true;
}

TEST(samplers_see_the_attributes)
{
    recorder.sdk.sample = sampled_by_target;
    memset(recorder.sdk.decide, OTELI_DECIDE_ASK, sizeof recorder.sdk.decide);
    serve("GET", "/health", NULL);
    assert_int_equal(recorder.count, 0);
    serve("GET", "/other", NULL);
    assert_int_equal(recorder.count, 1);
}

TEST(nothing_is_allocated_once_there_is_room)
{
    carrier_add(&in, "traceparent", TRACEPARENT);
    carrier_add(&in, "Host", "example.com:8080");
    carrier_add(&in, "User-Agent", "Mozilla/5.0");
    carrier_add(&in, "Forwarded", "for=192.0.2.60;proto=https");
    const otel_http_options options = {.size = sizeof options,
                                       .get_header = carrier_get,
                                       .carrier = &in,
                                       .trusts_proxy = true,
                                       .peer_address = otel_slice_of("192.0.2.5"),
                                       .peer_port = 1};
    size_t before = 0;
    for (int i = 0; i < 20; i++) {
        before = i < 4 ? oteli_leaks_count() : before;
        const otel_span span = otel_http_server_enter(tracer, "GET", "/a?sig=1", &options);
        otel_http_set_route(span, "/a/long/route/with/{a}/parameter/and/another/{b}");
        ask("POST", "https://u:p@example.com/?sig=1", NULL);
        otel_http_server_end(span, 500, NULL);
    }
    assert_int_equal(oteli_leaks_count(), before);
}

TEST_WITH(recorder_setup_without_sdk, end, without_an_sdk_contexts_pass_through)
{
    in.count = out.count = 0;
    otel_propagator_set(otel_propagator_trace_context());
    carrier_add(&in, "traceparent", TRACEPARENT);
    const otel_span span = otel_http_server_enter(
        tracer, "GET", "/", OTEL_HTTP_OPTIONS(.get_header = carrier_get, .carrier = &in));
    const otel_span below = otel_http_client_enter(
        tracer, "GET", "http://e/", OTEL_HTTP_OPTIONS(.set_header = carrier_set, .carrier = &out));
    assert_string_equal(carrier_sent(&out, "traceparent"), TRACEPARENT);
    otel_http_set_route(span, "/");
    otel_http_client_end(below, 200, NULL);
    otel_http_server_end(span, 200, NULL);
}
