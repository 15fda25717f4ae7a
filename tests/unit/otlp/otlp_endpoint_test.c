/* SPDX-License-Identifier: Apache-2.0 */
/* The specification's rules for endpoint URLs and for headers in an environment variable,
 * and curl's for proxies. */
#include "exporters/otlp/endpoint.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void assert_endpoint(otel_otlp_protocol protocol, const char *general, const char *traces,
                            const char *expected)
{
    char *url = NULL;
    oteli_leaks_begin();
    assert_true(oteli_otlp_endpoint(OTELI_SIGNAL_TRACES, protocol, general, traces, &url));
    assert_string_equal(url, expected);
    free(url);
    oteli_leaks_check();
}

static void assert_url(const char *general, const char *traces, const char *expected)
{
    assert_endpoint(OTEL_OTLP_HTTP_PROTOBUF, general, traces, expected);
    assert_endpoint(OTEL_OTLP_HTTP_JSON, general, traces, expected);
}

/* What requests are posted to, over which socket, and how the log names it. */
static void assert_meaning(otel_otlp_protocol protocol, const char *text, bool insecure,
                           const char *url, const char *unix_socket, const char *name)
{
    struct oteli_endpoint endpoint;
    oteli_leaks_begin();
    assert_int_equal(oteli_endpoint_init(&endpoint, OTELI_SIGNAL_TRACES, protocol, text, insecure),
                     OTEL_OK);
    assert_string_equal(endpoint.url, url);
    if (unix_socket != NULL)
        assert_string_equal(endpoint.unix_socket, unix_socket);
    else
        assert_null(endpoint.unix_socket);
    assert_string_equal(endpoint.name, name);
    oteli_endpoint_fini(&endpoint);
    oteli_leaks_check();
}

static void assert_profiles(otel_otlp_protocol protocol, const char *general, const char *own,
                            const char *expected, const char *posted_to)
{
    struct oteli_endpoint endpoint;
    char *url = NULL;
    oteli_leaks_begin();
    assert_true(oteli_otlp_endpoint(OTELI_SIGNAL_PROFILES, protocol, general, own, &url));
    assert_string_equal(url, expected);
    assert_int_equal(oteli_endpoint_init(&endpoint, OTELI_SIGNAL_PROFILES, protocol, url, false),
                     OTEL_OK);
    assert_string_equal(endpoint.url, posted_to);
    oteli_endpoint_fini(&endpoint);
    free(url);
    oteli_leaks_check();
}

TEST(profiles_have_a_path_and_a_service_of_their_own)
{
    static const char service[] = "http://localhost:4317/opentelemetry.proto.collector.profiles."
                                  "v1development.ProfilesService/Export";
    const otel_otlp_protocol http = OTEL_OTLP_HTTP_PROTOBUF;
    assert_profiles(http, NULL, NULL, "http://localhost:4318/v1development/profiles",
                    "http://localhost:4318/v1development/profiles");
    assert_profiles(http, "https://c/my/", NULL, "https://c/my/v1development/profiles",
                    "https://c/my/v1development/profiles");
    assert_profiles(http, "https://c", "http://d", "http://d/", "http://d/");
    assert_profiles(http, "unix:///run/otlp.sock", NULL, "unix:///run/otlp.sock",
                    "http://localhost/v1development/profiles");
    assert_profiles(OTEL_OTLP_GRPC, NULL, NULL, "http://localhost:4317", service);
}

/* spec: X3 E-OTEL_EXPORTER_OTLP_ENDPOINT protocol/exporter.md#endpoint-urls-for-otlphttp MUST
 * stable */
/* spec: X3 protocol/exporter.md#endpoint-urls-for-otlphttp MUST stable */
TEST(a_general_endpoint_is_a_base)
{
    assert_url("http://c:4318", NULL, "http://c:4318/v1/traces");
    assert_url("http://c:4318/", NULL, "http://c:4318/v1/traces");
    assert_url("http://c", NULL, "http://c/v1/traces");
    assert_url("https://c.example/my", NULL, "https://c.example/my/v1/traces");
    assert_url("https://c.example/my/", NULL, "https://c.example/my/v1/traces");
    assert_url("http://c//", NULL, "http://c//v1/traces");
    assert_url("http://c?key=1", NULL, "http://c/v1/traces?key=1");
    assert_url("http://c/my/?key=a/b", NULL, "http://c/my/v1/traces?key=a/b");
    assert_url("http://user:pass@[::1]:4318", NULL, "http://user:pass@[::1]:4318/v1/traces");
    assert_url("HTTP://c", NULL, "HTTP://c/v1/traces");
}

/* spec: X3 E-OTEL_EXPORTER_OTLP_TRACES_ENDPOINT protocol/exporter.md#endpoint-urls-for-otlphttp
 * MUST stable */
/* spec: X3 protocol/exporter.md#endpoint-urls-for-otlphttp MUST stable */
TEST(a_traces_endpoint_is_taken_as_it_is)
{
    assert_url(NULL, "http://c:4318", "http://c:4318/");
    assert_url(NULL, "http://c:4318/", "http://c:4318/");
    assert_url(NULL, "http://c/my", "http://c/my");
    assert_url(NULL, "http://c/my/", "http://c/my/");
    assert_url(NULL, "http://c?key=1", "http://c/?key=1");
    assert_url("http://other/base", "https://c/in", "https://c/in");
}

TEST(the_default_is_a_local_collector)
{
    assert_url(NULL, NULL, "http://localhost:4318/v1/traces");
}

/* spec: X3 E-OTEL_EXPORTER_OTLP_ENDPOINT protocol/exporter.md#endpoint-urls-for-otlphttp MUST
 * stable */
TEST(what_is_no_http_url_is_refused)
{
    static const char *const bad[] = {
        "",        "localhost",    "localhost:4318", "c:4318/v1/traces", "http:",
        "http:/",  "http://",      "http:/c",        "http:///v1",       "grpc://c:4317",
        "ftp://c", "unix://a/b",   "http://c:99999", "http://c:port",    "http://a b",
        "//c",     "http://c\n:1", " http://c"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        char *url = (char *)1;
        if (oteli_otlp_endpoint(OTELI_SIGNAL_TRACES, OTEL_OTLP_HTTP_JSON, bad[i], NULL, &url) ||
            oteli_otlp_endpoint(OTELI_SIGNAL_TRACES, OTEL_OTLP_HTTP_PROTOBUF, NULL, bad[i], &url))
            fail_msg("\"%s\" was taken", bad[i]);
        assert_null(url);
    }
}

#define METHOD "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

/* spec: X3 E-OTEL_EXPORTER_OTLP_ENDPOINT protocol/exporter.md#configuration-options MUST stable */
TEST(a_grpc_endpoint_has_no_path_of_its_own)
{
    const otel_otlp_protocol grpc = OTEL_OTLP_GRPC;
    assert_endpoint(grpc, NULL, NULL, "http://localhost:4317");
    assert_endpoint(grpc, "https://c.example", NULL, "https://c.example");
    assert_endpoint(grpc, "c:4317", NULL, "c:4317");
    assert_endpoint(grpc, "http://other", "http://c:1/", "http://c:1/");
    assert_meaning(grpc, "http://localhost:4317", false, "http://localhost:4317" METHOD, NULL,
                   "http://localhost:4317/");
    assert_meaning(grpc, "https://c.example/", false, "https://c.example" METHOD, NULL,
                   "https://c.example/");
    assert_meaning(grpc, "http://me:secret@[::1]:4317/v1/traces?token=x", true,
                   "http://me:secret@[::1]:4317" METHOD, NULL, "http://[::1]:4317/");
}

/* spec: E-OTEL_EXPORTER_OTLP_INSECURE protocol/exporter.md#configuration-options MUST stable */
TEST(without_a_scheme_insecure_decides_about_tls)
{
    const otel_otlp_protocol grpc = OTEL_OTLP_GRPC;
    assert_meaning(grpc, "c:9999", false, "https://c:9999" METHOD, NULL, "https://c:9999/");
    assert_meaning(grpc, "c:9999", true, "http://c:9999" METHOD, NULL, "http://c:9999/");
    assert_meaning(grpc, "c", true, "http://c:4317" METHOD, NULL, "http://c:4317/");
    assert_meaning(grpc, "[::1]", true, "http://[::1]:4317" METHOD, NULL, "http://[::1]:4317/");
    assert_meaning(grpc, "[::1]:1", true, "http://[::1]:1" METHOD, NULL, "http://[::1]:1/");
    assert_meaning(grpc, "dns:///c:1", true, "http://c:1" METHOD, NULL, "http://c:1/");
    assert_meaning(grpc, "https://c:1", true, "https://c:1" METHOD, NULL, "https://c:1/");
}

/* spec: X15 */
TEST(X15_a_unix_endpoint_is_a_socket_of_this_machine)
{
    assert_url("unix:///run/c", NULL, "unix:///run/c");
    assert_url(NULL, "unix:/run/c", "unix:/run/c");
    assert_endpoint(OTEL_OTLP_GRPC, "UNIX:/run/c", NULL, "UNIX:/run/c");
    assert_meaning(OTEL_OTLP_HTTP_JSON, "unix:///run/a b", false, "http://localhost/v1/traces",
                   "/run/a b", "unix:///run/a b");
    assert_meaning(OTEL_OTLP_GRPC, "unix:/run/c", false, "http://localhost" METHOD, "/run/c",
                   "unix:///run/c");
}

TEST(what_is_no_endpoint_is_refused)
{
    static const char *const bad[] = {
        "",         "grpc://c", "c:port",     "c:99999",  "::1",    "a b",
        "user@c:1", "c/path",   "c?q",        "unix:",    "unix:c", "unix:////",
        "unix:///", "unix:/",   "unix://c/d", "http:///", "[::1",   "unix:/a\nb"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct oteli_endpoint endpoint;
        oteli_leaks_begin();
        if (oteli_endpoint_init(&endpoint, OTELI_SIGNAL_TRACES, OTEL_OTLP_GRPC, bad[i], true) !=
            OTEL_ERROR_INVALID_ARGUMENT)
            fail_msg("\"%s\" was taken", bad[i]);
        oteli_leaks_check();
    }
    char longest[256] = "unix:/";
    memset(longest + 6, 'x', 106);
    assert_meaning(OTEL_OTLP_HTTP_JSON, longest, false, "http://localhost/v1/traces", longest + 5,
                   "unix:///xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                   "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    longest[6 + 106] = 'x';
    struct oteli_endpoint endpoint;
    assert_int_equal(
        oteli_endpoint_init(&endpoint, OTELI_SIGNAL_TRACES, OTEL_OTLP_HTTP_JSON, longest, false),
        OTEL_ERROR_INVALID_ARGUMENT);
}

TEST(no_memory_for_an_endpoint_leaves_nothing_behind)
{
    static const char *const texts[] = {"http://c:1", "c:1", "unix:/a"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        bool all_tried = false;
        for (size_t nth = 1; !all_tried; nth++) {
            struct oteli_endpoint endpoint;
            oteli_leaks_begin();
            oteli_leaks_fail_at(nth);
            const otel_status status =
                oteli_endpoint_init(&endpoint, OTELI_SIGNAL_TRACES, OTEL_OTLP_GRPC, texts[i], true);
            all_tried = !oteli_leaks_failed();
            if (all_tried)
                assert_int_equal(status, OTEL_OK);
            else
                assert_int_not_equal(status, OTEL_OK);
            oteli_endpoint_fini(&endpoint);
            oteli_leaks_check();
        }
    }
}

/* Parse, and show what came of it as "name: value;name: value;". */
static void assert_headers(const char *text, const char *expected)
{
    otel_otlp_header *headers;
    size_t count;
    char shown[512] = "";
    size_t length = 0;
    oteli_leaks_begin();
    assert_true(oteli_otlp_headers_parse("OTEL_TEST", text, &headers, &count));
    for (size_t i = 0; i < count; i++) {
        length += (size_t)snprintf(shown + length, sizeof shown - length, "%s: %s;",
                                   headers[i].name, headers[i].value);
    }
    assert_string_equal(shown, expected);
    oteli_otlp_headers_free(headers, count);
    oteli_leaks_check();
}

/* spec: X4 E-OTEL_EXPORTER_OTLP_HEADERS
 * protocol/exporter.md#specifying-headers-via-environment-variables MUST stable */
TEST(headers_are_a_list_of_pairs)
{
    assert_headers(NULL, "");
    assert_headers("", "");
    assert_headers("a=1", "a: 1;");
    assert_headers("a=1,b=2", "a: 1;b: 2;");
    assert_headers(" a = 1 ,\tb\t=\t2 x\t,", "a: 1;b: 2 x;");
    assert_headers("api-key=c2VjcmV0==", "api-key: c2VjcmV0==;");
    assert_headers("empty=", "empty: ;");
    assert_headers("a=1,,b=2", "a: 1;b: 2;");
}

/* spec: X4 E-OTEL_EXPORTER_OTLP_HEADERS
 * protocol/exporter.md#specifying-headers-via-environment-variables MUST stable */
/* spec: X4 protocol/exporter.md#specifying-headers-via-environment-variables MUST stable */
TEST(values_are_percent_decoded_and_names_are_not)
{
    assert_headers("Authorization=Basic%20dXNlcjpwYXNz", "Authorization: Basic dXNlcjpwYXNz;");
    assert_headers("a=1%2C2%3D3%25", "a: 1,2=3%;");
    assert_headers("a=%C3%A4", "a: \xc3\xa4;");
    assert_headers("a=x+y", "a: x+y;");
    assert_headers("a%20b=1", "a%20b: 1;");
    assert_headers("a=%20 padded %20", "a:   padded  ;");
}

TEST(the_later_of_two_with_one_name_counts)
{
    assert_headers("a=1,b=2,A=3", "A: 3;b: 2;");
}

/* spec: X4 E-OTEL_EXPORTER_OTLP_HEADERS
 * protocol/exporter.md#specifying-headers-via-environment-variables MUST stable */
TEST(a_bad_pair_is_left_out)
{
    assert_headers("nothing,a=1", "a: 1;");
    assert_headers("=1,a=1", "a: 1;");
    assert_headers("b c=1,a=1", "a: 1;");
    assert_headers("b:=1,a=1", "a: 1;");
    assert_headers("b=100%,a=1", "a: 1;");
    assert_headers("b=%zz,a=1", "a: 1;");
    assert_headers("b=1%0d%0aEvil: yes,a=1", "a: 1;");
    assert_headers("b=1%00,a=1", "a: 1;");
    assert_headers("\xc3\xa4=1,a=1", "a: 1;");
}

TEST(no_memory_leaves_nothing_behind)
{
    for (size_t nth = 1;; nth++) {
        otel_otlp_header *headers;
        size_t count;
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        const bool parsed = oteli_otlp_headers_parse("OTEL_TEST", "a=1,b=2,a=3", &headers, &count);
        const bool all_tried = !oteli_leaks_failed();
        assert_int_equal(parsed, all_tried);
        assert_int_equal(count, all_tried ? 2 : 0);
        oteli_otlp_headers_free(headers, count);
        oteli_leaks_check();
        if (all_tried)
            break;
    }
}

static void assert_proxy(const char *url, const char *proxy, const char *no_proxy)
{
    const char *found;
    const char *found_not;
    oteli_otlp_proxy(url, &found, &found_not);
    assert_string_equal(found, proxy);
    assert_string_equal(found_not, no_proxy);
}

TEST(proxies_come_from_where_curl_takes_them)
{
    static const char *const variables[] = {"http_proxy",  "HTTP_PROXY", "https_proxy",
                                            "HTTPS_PROXY", "all_proxy",  "ALL_PROXY",
                                            "no_proxy",    "NO_PROXY"};
    for (size_t i = 0; i < COUNT(variables); i++)
        unsetenv(variables[i]);
    assert_proxy("http://c", "", "");
    assert_proxy("https://c", "", "");

    setenv("HTTP_PROXY", "http://from-a-cgi-client", 1);
    assert_proxy("http://c", "", "");
    setenv("ALL_PROXY", "http://ALL", 1);
    setenv("NO_PROXY", "NO", 1);
    assert_proxy("http://c", "http://ALL", "NO");
    assert_proxy("https://c", "http://ALL", "NO");
    setenv("all_proxy", "http://all", 1);
    setenv("no_proxy", "no", 1);
    setenv("HTTPS_PROXY", "http://HTTPS", 1);
    assert_proxy("http://c", "http://all", "no");
    assert_proxy("HTTPS://c", "http://HTTPS", "no");
    setenv("http_proxy", "http://http", 1);
    setenv("https_proxy", "http://https", 1);
    assert_proxy("http://c", "http://http", "no");
    assert_proxy("https://c", "http://https", "no");

    for (size_t i = 0; i < COUNT(variables); i++)
        unsetenv(variables[i]);
}
