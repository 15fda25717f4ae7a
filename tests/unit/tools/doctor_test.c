/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/tools/doctor_test.c - specification of what otel-doctor makes of what it has seen: the
 * diagnosis, and the pure functions around it. Whole set-ups are in
 * tests/blackbox/doctor_test.py. */
#include "tools/doctor/doctor_diagnosis.h"

#include "tests/support/unit.h"
#include "tools/doctor/connection/doctor_route.h"
#include "tools/doctor/connection/doctor_speech.h"
#include "tools/doctor/settings/doctor_redact.h"
#include "tools/doctor/settings/doctor_typos.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- the diagnosis -------------------------------------------------------------------- */

/* A way on which nothing is wrong. */
static struct doctor_record healthy(void)
{
    struct doctor_record record = {
        .target = {.url = "http://collector:4318/v1/traces",
                   .url_from = "OTEL_EXPORTER_OTLP_ENDPOINT",
                   .protocol_from = "OTEL_EXPORTER_OTLP_PROTOCOL",
                   .host = "collector",
                   .port = 4318,
                   .path = "/v1/traces",
                   .timeout_ms = 10000},
        .name = {.result = DOCTOR_FINE},
        .connect = {.result = DOCTOR_FINE},
        .http = {.result = DOCTOR_FINE, .status = 200, .version = "1.1"},
        .otlp = {.result = DOCTOR_FINE, .grpc_status = -1},
        .span = {.result = DOCTOR_FINE, .counters = "delivered 1, dropped 0"},
    };
    return record;
}

/* The same, but that the span got lost, as it does when something is wrong on the way. */
static struct doctor_record unhealthy(void)
{
    struct doctor_record record = healthy();
    record.otlp.result = DOCTOR_FAILED;
    record.span.result = DOCTOR_FAILED;
    return record;
}

static void assert_diagnosis(const struct doctor_record *record, const char *rule,
                             const char *sentence)
{
    struct doctor_diagnosis diagnosis;
    doctor_diagnose(record, &diagnosis);
    assert_string_equal(diagnosis.rule, rule);
    assert_string_equal(diagnosis.sentence, sentence);
    assert_int_equal(diagnosis.is_healthy, strncmp(rule, "healthy", 7) == 0);
}

static void assert_rule(const struct doctor_record *record, const char *rule)
{
    struct doctor_diagnosis diagnosis;
    doctor_diagnose(record, &diagnosis);
    assert_string_equal(diagnosis.rule, rule);
}

TEST(a_cause_comes_before_its_consequences)
{
    struct doctor_record record = unhealthy();
    record.http.status = 401;
    assert_rule(&record, "http.unauthorized");
    snprintf(record.settings.header_fault, DOCTOR_TEXT, "OTEL_EXPORTER_OTLP_HEADERS: entry 1");
    assert_rule(&record, "settings.header");
    record.connect.result = DOCTOR_FAILED;
    record.connect.error = ECONNREFUSED;
    assert_rule(&record, "connect.refused");
    snprintf(record.settings.export_fault, DOCTOR_TEXT, "OTEL_EXPORTER_OTLP_PROTOCOL=\"x\"");
    assert_rule(&record, "settings.export");
    snprintf(record.settings.disabled_by, DOCTOR_TEXT, "OTEL_SDK_DISABLED=true");
    assert_rule(&record, "settings.disabled");
}

TEST(what_the_exporter_got_through_is_no_obstacle)
{
    struct doctor_record record = unhealthy();
    record.http.status = 503;
    assert_rule(&record, "http.unavailable");

    record.span.result = DOCTOR_FINE;

    assert_rule(&record, "healthy");
}

TEST(ways_that_end_before_the_receiver)
{
    static const struct {
        const char *socket;
        int error;
        const char *rule;
    } cases[] = {{"", ECONNREFUSED, "connect.refused"},
                 {"", ETIMEDOUT, "connect.silent"},
                 {"", ENETUNREACH, "connect.failed"},
                 {"", EHOSTUNREACH, "connect.failed"},
                 {"/run/otel.sock", ENOENT, "connect.socket_missing"},
                 {"/run/otel.sock", EACCES, "connect.socket_denied"},
                 {"/run/otel.sock", ECONNREFUSED, "connect.socket_dead"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct doctor_record record = unhealthy();
        snprintf(record.target.unix_path, sizeof record.target.unix_path, "%s", cases[i].socket);
        record.connect.result = DOCTOR_FAILED;
        record.connect.error = cases[i].error;
        assert_rule(&record, cases[i].rule);
    }
    struct doctor_record record = unhealthy();
    record.name.result = DOCTOR_FAILED;
    assert_rule(&record, "name.unknown");
    record.name.no_server = true;
    assert_rule(&record, "name.server");
    snprintf(record.target.proxy, DOCTOR_TEXT, "http://proxy:3128");
    assert_rule(&record, "proxy.name");
}

TEST(an_endpoint_that_nobody_has_set_is_to_be_set)
{
    struct doctor_record record = unhealthy();
    record.connect.result = DOCTOR_FAILED;
    record.connect.error = ECONNREFUSED;
    record.target.url_is_default = true;

    assert_diagnosis(&record, "connect.refused",
                     "Nobody listens on port 4318 of collector (connection refused): start the "
                     "receiver there, or set OTEL_EXPORTER_OTLP_ENDPOINT.");
}

TEST(every_problem_of_tls_has_a_sentence)
{
    static const char *const rules[] = {
        [DOCTOR_TLS_UNKNOWN_CA] = "tls.unknown_ca",
        [DOCTOR_TLS_SELF_SIGNED] = "tls.self_signed",
        [DOCTOR_TLS_EXPIRED] = "tls.expired",
        [DOCTOR_TLS_NOT_YET_VALID] = "tls.not_yet_valid",
        [DOCTOR_TLS_WRONG_HOST] = "tls.wrong_host",
        [DOCTOR_TLS_VERSION] = "tls.version",
        [DOCTOR_TLS_WANTS_CERTIFICATE] = "tls.wants_certificate",
        [DOCTOR_TLS_REFUSES_CERTIFICATE] = "tls.refuses_certificate",
        [DOCTOR_TLS_NOT_TLS] = "tls.not_tls",
        [DOCTOR_TLS_NO_HTTP1] = "speech.grpc_port",
        [DOCTOR_TLS_FILES] = "tls.files",
        [DOCTOR_TLS_OTHER] = "tls.failed",
    };
    for (int problem = DOCTOR_TLS_UNKNOWN_CA; problem <= DOCTOR_TLS_OTHER; problem++) {
        struct doctor_record record = unhealthy();
        record.target.is_tls = true;
        record.http.result = DOCTOR_FAILED;
        record.tls.result = DOCTOR_FAILED;
        record.tls.problem = (enum doctor_tls_problem)problem;
        assert_rule(&record, rules[problem]);
    }
}

TEST(every_status_has_a_sentence)
{
    for (int status = 300; status < 600; status++) {
        struct doctor_record record = unhealthy();
        record.http.status = status;
        struct doctor_diagnosis diagnosis;
        doctor_diagnose(&record, &diagnosis);
        char number[32];
        snprintf(number, sizeof number, "status %d", status);
        assert_int_equal(strncmp(diagnosis.rule, "http.", 5), 0);
        assert_non_null(strstr(diagnosis.sentence, number));
    }
}

TEST(every_status_of_grpc_has_a_sentence)
{
    static const char *const known[17] = {[7] = "grpc.denied",
                                          [12] = "grpc.unimplemented",
                                          [14] = "grpc.unavailable",
                                          [16] = "grpc.denied"};
    for (int status = 1; status <= 16; status++) {
        struct doctor_record record = unhealthy();
        record.target.protocol = OTEL_OTLP_GRPC;
        snprintf(record.http.version, sizeof record.http.version, "2");
        record.otlp.grpc_status = status;
        assert_rule(&record, known[status] != NULL ? known[status] : "grpc.failed");
    }
}

TEST(ports_of_other_protocols)
{
    struct doctor_record record = unhealthy();
    record.http = (struct doctor_http){.result = DOCTOR_FAILED, .speech = DOCTOR_SPEECH_HTTP2};
    assert_rule(&record, "speech.grpc_port");
    record.http.speech = DOCTOR_SPEECH_TLS;
    assert_rule(&record, "speech.wants_tls");
    record.http.speech = DOCTOR_SPEECH_HTTP2_IN_TLS;
    assert_rule(&record, "speech.wants_tls");
    record.target.is_tls = true;
    record.tls.result = DOCTOR_FINE;
    assert_rule(&record, "speech.grpc_port");
    record.target.is_tls = false;
    record.http.speech = DOCTOR_SPEECH_UNKNOWN;
    assert_rule(&record, "http.none");
    record.http.timed_out = true;
    assert_rule(&record, "http.silent");
    record.http = (struct doctor_http){.result = DOCTOR_FAILED, .speech = DOCTOR_SPEECH_HTTP1};
    record.target.protocol = OTEL_OTLP_GRPC;
    assert_rule(&record, "speech.http_port");
    record.target.is_tls = true;
    record.tls.result = DOCTOR_FAILED;
    assert_rule(&record, "tls.plain");
    record.tls.result = DOCTOR_FINE;
    record.http = (struct doctor_http){.result = DOCTOR_FINE, .status = 404, .version = "2"};
    assert_rule(&record, "speech.http_port");
}

TEST(a_sentence_that_is_too_long_is_cut)
{
    struct doctor_record record = unhealthy();
    memset(record.span.words, 'w', sizeof record.span.words - 1);
    memset(record.target.url, 'u', sizeof record.target.url - 1);
    record.otlp.result = DOCTOR_FINE;
    memset(record.span.counters, 'c', sizeof record.span.counters - 1);
    struct doctor_diagnosis diagnosis;

    doctor_diagnose(&record, &diagnosis);

    assert_string_equal(diagnosis.rule, "span.lost");
    assert_true(strlen(diagnosis.sentence) < sizeof diagnosis.sentence);
}

/* ---- slips of the pen ----------------------------------------------------------------- */

TEST(distances)
{
    assert_int_equal(doctor_distance("same", "SAME"), 0);
    assert_int_equal(doctor_distance("ENPOINT", "ENDPOINT"), 1);
    assert_int_equal(doctor_distance("ENDPIONT", "ENDPOINT"), 1);
    assert_int_equal(doctor_distance("ENDPOINTT", "ENDPOINT"), 1);
    assert_int_equal(doctor_distance("ENDPUINT", "ENDPOINT"), 1);
    assert_int_equal(doctor_distance("", "abc"), 3);
    assert_int_equal(doctor_distance("kitten", "sitting"), 3);
}

static const char *slip(const char *name)
{
    return doctor_slip(name, strlen(name));
}

TEST(names_that_are_nearly_ours)
{
    assert_string_equal(slip("OTEL_EXPORTER_OTLP_ENPOINT"), "OTEL_EXPORTER_OTLP_ENDPOINT");
    assert_string_equal(slip("OTEL_EXPORTER_OTLP_HEADER"), "OTEL_EXPORTER_OTLP_HEADERS");
    assert_string_equal(slip("OTEL_EXPORTER_OTLP_TRACE_ENDPOINT"),
                        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    assert_string_equal(slip("OTEL_TRACE_SAMPLER"), "OTEL_TRACES_SAMPLER");
    assert_string_equal(slip("otel_service_name"), "OTEL_SERVICE_NAME");
    assert_string_equal(slip("OTLE_SERVICE_NAME"), "OTEL_SERVICE_NAME");
    assert_string_equal(slip("OTEL_EXPORTER_ENDPOINT"), "OTEL_EXPORTER_OTLP_ENDPOINT");
    assert_string_equal(slip("OTEL_OTLP_ENDPOINT"), "OTEL_EXPORTER_OTLP_ENDPOINT");
}

TEST(names_that_are_right_or_none_of_ours)
{
    static const char *const names[] = {
        "OTEL_SERVICE_NAME",
        "OTEL_BLRP_SCHEDULE_DELAY",
        "OTEL_METRICS_EXPORTER",
        "OTEL_LOGS_EXPORTER",
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
        "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
        "OTEL_PYTHON_LOG_LEVEL",
        "OTEL_JAVAAGENT_ENABLED",
        "OTEL_",
        "OLDPWD",
        "PATH",
        "OTEL_SOMETHING_ELSE_ALTOGETHER",
        "O234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_null(slip(names[i]));
    assert_null(doctor_slip("OTEL_SERVICE_NAMES=x", 17));
}

/* ---- secrets -------------------------------------------------------------------------- */

TEST(pages_become_one_line)
{
    char out[32];
    assert_string_equal(doctor_one_line(" a\r\n\tb \n", 8, out, sizeof out), "a b");
    assert_string_equal(doctor_one_line("", 0, out, sizeof out), "");
}

/* ---- protocols and ways --------------------------------------------------------------- */

static enum doctor_speech speech_of(const char *bytes, size_t length)
{
    return doctor_speech_of((const unsigned char *)bytes, length);
}

TEST(protocols_are_known_by_their_first_bytes)
{
    assert_int_equal(speech_of("HTTP/1.1 400 Bad", 16), DOCTOR_SPEECH_HTTP1);
    assert_int_equal(speech_of("\x15\x03\x01\0\2\2\x46", 7), DOCTOR_SPEECH_TLS);
    assert_int_equal(speech_of("\x16\x03\x03\0\x40", 5), DOCTOR_SPEECH_TLS);
    assert_int_equal(speech_of("\0\0\6\4\0\0\0\0\0\0\5\0\0\x40\0", 15), DOCTOR_SPEECH_HTTP2);
    assert_int_equal(speech_of("\0\0\6\4\0\0\0\0", 8), DOCTOR_SPEECH_UNKNOWN);
    assert_int_equal(speech_of("SSH-2.0-OpenSSH", 15), DOCTOR_SPEECH_UNKNOWN);
    assert_int_equal(speech_of("", 0), DOCTOR_SPEECH_UNKNOWN);
}

TEST(hosts_that_need_no_proxy)
{
    assert_true(doctor_skips_proxy("localhost", "localhost,127.0.0.1"));
    assert_true(doctor_skips_proxy("a.example.com", "x, .example.com"));
    assert_true(doctor_skips_proxy("a.EXAMPLE.com", "example.com"));
    assert_true(doctor_skips_proxy("anything", "*"));
    assert_false(doctor_skips_proxy("notexample.com", "example.com"));
    assert_false(doctor_skips_proxy("example.com", "a.example.com"));
    assert_false(doctor_skips_proxy("host", ""));
}

static void assert_hint(const char *given, const char *hint)
{
    char out[DOCTOR_TEXT];
    assert_string_equal(doctor_url_hint(given, out, sizeof out), hint);
}

TEST(what_stands_in_place_of_a_url)
{
    assert_hint("collector:4318", "write http://collector:4318 or https://collector:4318");
    assert_hint("\"http://collector:4318\"", "take the blanks and quotation marks out of it");
    assert_hint("grpc://collector:4317",
                "write http:// in front, and say grpc in OTEL_EXPORTER_OTLP_PROTOCOL");
    assert_hint("unix:relative", "write unix:///path, with the whole path of the socket");
    assert_hint("ftp://h", "write it as http://HOST:PORT or https://HOST:PORT");
}
