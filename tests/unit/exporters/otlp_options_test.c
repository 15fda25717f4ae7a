/* SPDX-License-Identifier: Apache-2.0 */
/* Which options an OTLP exporter is made with, and which it is not. */
#include "exporters/otlp/encode/compress.h"
#include "exporters/otlp/otlp_options.h"
#include "tests/support/leaks.h"
#include "tests/support/said.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)

static int listen(void **state)
{
    (void)state;
    said_begin(OTEL_LOG_INFO);
    return 0;
}

AROUND_EACH(listen, NULL);

/* What options come to, as text. */
static void assert_options(const otel_otlp_options *given, const char *expected)
{
    struct oteli_options options;
    char text[512];
    assert_int_equal(oteli_options_init(&options, OTELI_SIGNAL_TRACES, given), OTEL_OK);
    snprintf(text, sizeof text,
             "%s, %d ms, requests %zu, answers %zu, %u at once, %d %d, %s, %zu, age %d%s%s",
             options.endpoint.url, (int)options.given.timeout_ms, options.given.max_request_bytes,
             options.given.max_response_bytes, (unsigned)options.given.concurrency,
             (int)options.given.protocol, (int)options.given.compression, options.user_agent,
             options.header_count, (int)options.given.spool_max_age_ms,
             options.given.ca_file != NULL ? ", CA" : "",
             options.given.spool_directory != NULL ? ", spool" : "");
    assert_string_equal(text, expected);
    oteli_options_fini(&options);
}

#define HERE "http://localhost:4318/v1/traces, "
#define AGENT "OTel-OTLP-Exporter-C/" OTEL_VERSION

TEST(the_defaults_are_those_of_the_specification)
{
    assert_options(NULL, HERE "10000 ms, requests 67108864, answers 4194304, 1 at once, 0 0, " AGENT
                              ", 1, age 86400000");
}

/* The first members are those that there were at first. */
TEST(a_struct_of_before_still_works)
{
    otel_otlp_options old;
    memset(&old, 0x55, sizeof old);
    old.size = offsetof(otel_otlp_options, protocol);
    old.endpoint = NULL;
    old.headers = NULL;
    old.header_count = 0;
    old.timeout_ms = 7;
    old.user_agent = NULL;
    old.max_request_bytes = 8;
    assert_options(&old, HERE "7 ms, requests 8, answers 4194304, 1 at once, 0 0, " AGENT
                              ", 1, age 86400000");
}

TEST(numbers_are_held_to_what_can_be)
{
    assert_options(OPTIONS(.max_request_bytes = SIZE_MAX, .timeout_ms = OTEL_ZERO,
                           .spool_max_age_ms = OTEL_ZERO, .ca_file = "", .spool_directory = ""),
                   HERE "-1 ms, requests 2147483647, answers 4194304, 1 at once, 0 0, " AGENT
                        ", 1, age -1");
}

/* spec: X12 protocol/exporter.md#user-agent SHOULD stable */
TEST(X12_a_product_goes_before_ours)
{
    assert_options(OPTIONS(.user_agent = "shop/2"), HERE
                   "10000 ms, requests 67108864, answers 4194304, 1 at once, 0 0, shop/2 " AGENT
                   ", 1, age 86400000");
}

TEST(what_cannot_be_meant_is_refused)
{
    static const otel_otlp_header bad_name[] = {{"a b", "c"}};
    static const otel_otlp_header bad_value[] = {{"a", "b\n"}};
    static const otel_otlp_header no_value[] = {{"a", NULL}};
    const otel_otlp_options *const bad[] = {
        OPTIONS(.endpoint = "collector:4318"),
        OPTIONS(.endpoint = ""),
        OPTIONS(.endpoint = "grpc://c", .protocol = OTEL_OTLP_GRPC),
        OPTIONS(.timeout_ms = -2),
        OPTIONS(.headers = bad_name, .header_count = 1),
        OPTIONS(.headers = bad_value, .header_count = 1),
        OPTIONS(.headers = no_value, .header_count = 1),
        OPTIONS(.user_agent = "a\r\nb"),
        OPTIONS(.concurrency = 17),
        OPTIONS(.protocol = (otel_otlp_protocol)3),
        OPTIONS(.protocol = (otel_otlp_protocol)-1),
        OPTIONS(.compression = (otel_otlp_compression)3),
        OPTIONS(.certificate_file = "/c.pem"),
        OPTIONS(.key_file = "/k.pem"),
        OPTIONS(.certificate_file = "/c.pem", .key_file = ""),
        OPTIONS(.tls_min = (otel_tls_version)1),
        OPTIONS(.tls_max = (otel_tls_version)4),
        OPTIONS(.tls_min = OTEL_TLS_1_3, .tls_max = OTEL_TLS_1_2),
        OPTIONS(.spool_max_age_ms = -2),
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct oteli_options options;
        otel_exporter exporter;
        oteli_leaks_begin();
        if (oteli_options_init(&options, OTELI_SIGNAL_TRACES, bad[i]) !=
                OTEL_ERROR_INVALID_ARGUMENT ||
            otel_otlp_exporter_new(bad[i], &exporter) != OTEL_ERROR_INVALID_ARGUMENT)
            fail_msg("number %zu was taken", i);
        oteli_leaks_check();
    }
}

TEST(compression_that_was_not_built_in_is_unsupported)
{
    struct oteli_options options;
    const otel_status status = oteli_options_init(
        &options, OTELI_SIGNAL_TRACES, OPTIONS(.compression = OTEL_OTLP_COMPRESSION_ZSTD));
#ifdef OTELI_WITH_ZSTD
    assert_int_equal(status, OTEL_OK);
    oteli_options_fini(&options);
#else
    assert_int_equal(status, OTEL_ERROR_UNSUPPORTED);
#endif
}

TEST(headers_that_are_ours_to_say_are_left_out)
{
    static const otel_otlp_header given[] = {{"content-type", "a/b"},
                                             {"api-key", "1"},
                                             {"Content-Encoding", "x"},
                                             {"TE", "x"},
                                             {"Grpc-Timeout", "1S"}};
    struct oteli_options options;

    assert_int_equal(oteli_options_init(&options, OTELI_SIGNAL_TRACES,
                                        OPTIONS(.headers = given, .header_count = COUNT(given))),
                     OTEL_OK);

    assert_int_equal(said_lines, 4);
    assert_non_null(strstr(said, "Grpc-Timeout"));
    assert_int_equal(options.header_count, 2);
    assert_string_equal(options.headers[0].value, "application/x-protobuf");
    assert_string_equal(options.headers[1].name, "api-key");
    oteli_options_fini(&options);
}

/* spec: X2 */
TEST(the_name_says_the_protocol)
{
    static const char *const names[] = {"otlp_http_span_exporter", "otlp_http_json_span_exporter",
                                        "otlp_grpc_span_exporter"};
    for (int protocol = 0; protocol < 3; protocol++) {
        otel_exporter exporter;
        assert_int_equal(
            otel_otlp_exporter_new(OPTIONS(.protocol = (otel_otlp_protocol)protocol), &exporter),
            OTEL_OK);
        assert_string_equal(exporter.name, names[protocol]);
        exporter.free(exporter.state);
    }
}

TEST(R48_every_allocation_of_a_new_exporter_may_fail)
{
    static const otel_otlp_header given[] = {{"api-key", "1"}};
    otel_exporter exporter;
    assert_int_equal(otel_otlp_exporter_new(NULL, &exporter), OTEL_OK); /* libcurl is there now */
    exporter.free(exporter.state);
    for (int protocol = 0; protocol < 3; protocol++) {
        bool all_tried = false;
        for (size_t nth = 1; !all_tried; nth++) {
            oteli_leaks_begin();
            oteli_leaks_fail_at(nth);
            otel_exporter renewed = {0};
            otel_status status = otel_otlp_exporter_new(
                OPTIONS(.headers = given, .header_count = 1, .concurrency = 3,
                        .protocol = (otel_otlp_protocol)protocol, .spool_directory = "/nowhere",
                        .compression = OTEL_OTLP_COMPRESSION_GZIP),
                &exporter);
            const bool is_made = status == OTEL_OK;
            if (is_made)
                status = exporter.renew(exporter.state, &renewed);
            all_tried = !oteli_leaks_failed();
            assert_int_equal(status, all_tried ? OTEL_OK : OTEL_ERROR_NO_MEMORY);
            if (renewed.free != NULL)
                renewed.free(renewed.state);
            if (is_made)
                exporter.free(exporter.state);
            oteli_leaks_check();
        }
    }
}
