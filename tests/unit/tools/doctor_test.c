/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/tools/doctor_test.c - specification of what otel-doctor makes of what it has seen: the
 * diagnosis, and the pure functions around it. Whole set-ups are in
 * tests/blackbox/doctor_test.py. */
#include "tools/doctor/doctor_diagnosis.h"

#include "tests/support/unit.h"
#include "tools/doctor/connection/doctor_route.h"
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
        .answer = {.status = 200, .version = "1.1", .grpc_status = -1},
        .span = {.result = DOCTOR_FINE, .counters = "delivered 1, dropped 0"},
    };
    for (int step = DOCTOR_NAME; step < DOCTOR_STEPS; step++)
        record.answer.results[step] = DOCTOR_FINE;
    return record;
}

/* The same, but that the span got lost, as it does when something is wrong on the way. */
static struct doctor_record unhealthy(void)
{
    struct doctor_record record = healthy();
    record.answer.results[DOCTOR_OTLP] = DOCTOR_FAILED;
    record.span.result = DOCTOR_FAILED;
    return record;
}

/* The request came as far as this step, and failed there. */
static struct doctor_record failed_at(enum doctor_step failed)
{
    struct doctor_record record = unhealthy();
    record.answer.status = 0;
    for (int step = DOCTOR_NAME; step < DOCTOR_STEPS; step++)
        record.answer.results[step] = step < (int)failed    ? DOCTOR_FINE
                                      : step == (int)failed ? DOCTOR_FAILED
                                                            : DOCTOR_NOT_TRIED;
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
    record.answer.status = 401;
    assert_rule(&record, "http.unauthorized");
    snprintf(record.faults.headers, DOCTOR_TEXT, "OTEL_EXPORTER_OTLP_HEADERS: entry 1");
    assert_rule(&record, "settings.header");
    record.answer.results[DOCTOR_CONNECT] = DOCTOR_FAILED;
    record.answer.connect_error = ECONNREFUSED;
    assert_rule(&record, "connect.refused");
    snprintf(record.faults.exporting, DOCTOR_TEXT, "OTEL_EXPORTER_OTLP_PROTOCOL=\"x\"");
    assert_rule(&record, "settings.export");
    snprintf(record.faults.disabled_by, DOCTOR_TEXT, "OTEL_SDK_DISABLED=true");
    assert_rule(&record, "settings.disabled");
}

TEST(what_the_exporter_got_through_is_no_obstacle)
{
    struct doctor_record record = unhealthy();
    record.answer.status = 503;
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
                 {"", 0, "connect.failed"},
                 {"/run/otel.sock", ENOENT, "connect.socket"},
                 {"/run/otel.sock", EACCES, "connect.socket"},
                 {"/run/otel.sock", ECONNREFUSED, "connect.socket"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct doctor_record record = failed_at(DOCTOR_CONNECT);
        snprintf(record.target.unix_path, sizeof record.target.unix_path, "%s", cases[i].socket);
        record.answer.connect_error = cases[i].error;
        assert_rule(&record, cases[i].rule);
    }
    struct doctor_record record = failed_at(DOCTOR_CONNECT);
    record.answer.timed_out = true;
    assert_rule(&record, "connect.silent");
    record = failed_at(DOCTOR_NAME);
    assert_rule(&record, "name.unknown");
    record.answer.timed_out = true;
    assert_rule(&record, "name.unknown");
    snprintf(record.target.proxy, DOCTOR_TEXT, "http://proxy:3128");
    assert_rule(&record, "proxy.connect");
    record = failed_at(DOCTOR_HTTP);
    record.answer.stops_at_proxy = true;
    assert_rule(&record, "proxy.refused");
    record.answer.proxy_status = 407;
    assert_rule(&record, "proxy.password");
}

TEST(an_endpoint_that_nobody_has_set_is_to_be_set)
{
    struct doctor_record record = failed_at(DOCTOR_CONNECT);
    record.answer.connect_error = ECONNREFUSED;
    record.target.url_is_default = true;

    assert_diagnosis(&record, "connect.refused",
                     "Nobody listens on port 4318 of collector (connection refused): start the "
                     "receiver there, or set OTEL_EXPORTER_OTLP_ENDPOINT.");
}

/* What OpenSSL 1.1 and 3 say, and libcurl of a name. */
TEST(every_problem_of_tls_has_a_sentence)
{
    static const struct {
        const char *problem, *rule;
    } cases[] = {
        {"unable to get local issuer certificate", "tls.unknown_ca"},
        {"unable to get issuer certificate", "tls.unknown_ca"},
        {"unable to verify the first certificate", "tls.unknown_ca"},
        {"self signed certificate in certificate chain", "tls.unknown_ca"},
        {"self-signed certificate in certificate chain", "tls.unknown_ca"},
        {"certificate signature failure", "tls.unknown_ca"},
        {"self signed certificate", "tls.self_signed"},
        {"self-signed certificate", "tls.self_signed"},
        {"certificate has expired", "tls.expired"},
        {"certificate is not yet valid", "tls.not_yet_valid"},
        {"no alternative certificate subject name matches target host name 'a'", "tls.wrong_host"},
        {"certificate subject name 'b' does not match target host name 'a'", "tls.wrong_host"},
        {"error:0A00042E:SSL routines::tlsv1 alert protocol version", "tls.version"},
        {"error:0A000102:SSL routines::unsupported protocol", "tls.version"},
        {"error:0A0000BF:SSL routines::no protocols available", "tls.version"},
        {"error:0A00010B:SSL routines::wrong version number", "tls.failed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct doctor_record record = failed_at(DOCTOR_TLS);
        record.target.is_tls = true;
        snprintf(record.answer.problem, sizeof record.answer.problem, "%s", cases[i].problem);
        assert_rule(&record, cases[i].rule);
    }
    struct doctor_record record = failed_at(DOCTOR_TLS);
    record.target.is_tls = true;
    record.answer.wants_certificate = true;
    assert_rule(&record, "tls.wants_certificate");
    record.target.has_certificate = true;
    assert_rule(&record, "tls.refuses_certificate");
    record.answer.is_tls_file = true;
    assert_rule(&record, "tls.file");
}

TEST(every_status_has_a_sentence)
{
    for (int status = 300; status < 600; status++) {
        struct doctor_record record = unhealthy();
        record.answer.status = status;
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
        record.answer.grpc_status = status;
        assert_rule(&record, known[status] != NULL ? known[status] : "grpc.failed");
    }
    struct doctor_record record = unhealthy();
    record.target.protocol = OTEL_OTLP_GRPC;
    record.answer.grpc_status = 401; /* no code of gRPC, and no status of HTTP */
    assert_rule(&record, "grpc.failed");
}

TEST(ways_that_work_instead)
{
    static const char *const rules[] = {[DOCTOR_INSTEAD_NOTHING] = "http.none",
                                        [DOCTOR_INSTEAD_TLS] = "speech.wants_tls",
                                        [DOCTOR_INSTEAD_PLAIN] = "tls.plain",
                                        [DOCTOR_INSTEAD_GRPC] = "speech.grpc_port",
                                        [DOCTOR_INSTEAD_HTTP] = "speech.http_port"};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct doctor_record record = failed_at(DOCTOR_HTTP);
        record.instead = (enum doctor_instead)i;
        assert_rule(&record, rules[i]);
    }
    struct doctor_record record = failed_at(DOCTOR_HTTP);
    record.answer.timed_out = true;
    assert_rule(&record, "http.silent");
    record = failed_at(DOCTOR_CONNECT);
    record.instead = DOCTOR_INSTEAD_PORT;
    assert_rule(&record, "connect.other_port");
    record = unhealthy();
    record.answer.status = 404;
    record.instead = DOCTOR_INSTEAD_PATH;
    assert_rule(&record, "http.path_elsewhere");
}

TEST(a_sentence_that_is_too_long_is_cut)
{
    struct doctor_record record = unhealthy();
    memset(record.span.words, 'w', sizeof record.span.words - 1);
    memset(record.target.url, 'u', sizeof record.target.url - 1);
    record.answer.results[DOCTOR_OTLP] = DOCTOR_FINE;
    memset(record.span.counters, 'c', sizeof record.span.counters - 1);
    struct doctor_diagnosis diagnosis;

    doctor_diagnose(&record, &diagnosis);

    assert_string_equal(diagnosis.rule, "span.lost");
    assert_true(strlen(diagnosis.sentence) < sizeof diagnosis.sentence);
}

/* ---- typing errors -------------------------------------------------------------------- */

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

static const char *typo(const char *name)
{
    return doctor_typo(name, strlen(name));
}

TEST(names_that_are_nearly_ours)
{
    assert_string_equal(typo("OTEL_EXPORTER_OTLP_ENPOINT"), "OTEL_EXPORTER_OTLP_ENDPOINT");
    assert_string_equal(typo("OTEL_EXPORTER_OTLP_HEADER"), "OTEL_EXPORTER_OTLP_HEADERS");
    assert_string_equal(typo("OTEL_EXPORTER_OTLP_TRACE_ENDPOINT"),
                        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    assert_string_equal(typo("OTEL_TRACE_SAMPLER"), "OTEL_TRACES_SAMPLER");
    assert_string_equal(typo("otel_service_name"), "OTEL_SERVICE_NAME");
    assert_string_equal(typo("OTLE_SERVICE_NAME"), "OTEL_SERVICE_NAME");
    assert_string_equal(typo("OTEL_EXPORTER_ENDPOINT"), "OTEL_EXPORTER_OTLP_ENDPOINT");
    assert_string_equal(typo("OTEL_OTLP_ENDPOINT"), "OTEL_EXPORTER_OTLP_ENDPOINT");
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
        assert_null(typo(names[i]));
    assert_null(doctor_typo("OTEL_SERVICE_NAMES=x", 17));
}

/* ---- proxies -------------------------------------------------------------------------- */

TEST(hosts_that_need_no_proxy)
{
    assert_true(doctor_skips_proxy("localhost", "localhost,127.0.0.1"));
    assert_true(doctor_skips_proxy("a.example.com", "x, .example.com"));
    assert_true(doctor_skips_proxy("a.EXAMPLE.com", "example.com"));
    assert_true(doctor_skips_proxy("anything", "*"));
    assert_false(doctor_skips_proxy("notexample.com", "example.com"));
    assert_false(doctor_skips_proxy("example.com", "a.example.com"));
    assert_false(doctor_skips_proxy("host", ""));
    assert_true(doctor_skips_proxy("[::1]", "::1"));
}
