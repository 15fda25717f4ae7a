/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/started/start_otlp_test.c - specification of exporters/start_otlp.c: what the
 * variables of the OTLP exporter mean. */
#include "exporters/otlp/encode/compress.h"
#include "exporters/start_otlp.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned lines;
static char line[1200];

static void note(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    lines++;
    snprintf(line, sizeof line, "%s", message);
}

static int begin(void **state)
{
    (void)state;
    for (size_t i = 0; i < oteli_config_row_count; i++)
        unsetenv(oteli_config_rows[i].variable);
    lines = 0;
    line[0] = '\0';
    otel_log_set_handler(note, NULL);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (size_t i = 0; i < oteli_config_row_count; i++)
        unsetenv(oteli_config_rows[i].variable);
    oteli_leaks_check();
    otel_log_set_handler(NULL, NULL);
    return 0;
}

static const char *or_none(const char *text)
{
    return text != NULL ? text : "none";
}

/* All that was chosen, in one line. */
static const char *text_of(const otel_otlp_options *options)
{
    static const char *const protocols[] = {"http/protobuf", "http/json", "grpc"};
    static const char *const compressions[] = {"", " gzip", " zstd"};
    static char text[600];
    snprintf(text, sizeof text, "%s %s%s, %lld ms", options->endpoint, protocols[options->protocol],
             compressions[options->compression], (long long)options->timeout_ms);
    for (size_t i = 0; i < options->header_count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ", %s: %s",
                 options->headers[i].name, options->headers[i].value);
    snprintf(text + strlen(text), sizeof text - strlen(text),
             "; ca %s, certificate %s, key %s, TLS %d%s; %u at a time; spool %s",
             or_none(options->ca_file), or_none(options->certificate_file),
             or_none(options->key_file), (int)options->tls_min,
             options->insecure ? ", insecure" : "", (unsigned)options->concurrency,
             or_none(options->spool_directory));
    return text;
}

#define DEFAULTS                                              \
    "http://localhost:4318/v1/traces http/protobuf, 10000 ms" \
    "; ca none, certificate none, key none, TLS 2; 1 at a time; spool none"

struct chosen {
    struct oteli_config config;
    struct oteli_start_otlp otlp;
};

static const otel_otlp_options *choose(struct chosen *chosen)
{
    assert_int_equal(oteli_config_load(&chosen->config, NULL, true), OTEL_OK);
    assert_true(oteli_start_otlp_init(&chosen->otlp, OTELI_SIGNAL_TRACES, &chosen->config));
    return &chosen->otlp.options;
}

static void forget(struct chosen *chosen)
{
    oteli_start_otlp_fini(&chosen->otlp);
    oteli_config_fini(&chosen->config);
}

AROUND_EACH(begin, end);

TEST(profiles_have_the_general_settings_and_no_spool)
{
    struct chosen chosen;
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317", 1);
    setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:4318/traces", 1);
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1);
    setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", 1);
    setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", 1);
    setenv("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "none", 1);
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "700", 1);
    setenv("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "7", 1);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=b", 1);
    setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x=y,z=0", 1);
    setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem", 1);
    setenv("OTEL_C_SPOOL_DIR", "/var/spool", 1);
    assert_int_equal(oteli_config_look(&chosen.config), OTEL_OK);

    assert_true(oteli_start_otlp_init(&chosen.otlp, OTELI_SIGNAL_PROFILES, &chosen.config));

    assert_string_equal(text_of(&chosen.otlp.options),
                        "http://c:4317 grpc gzip, 700 ms, a: b; ca /ca.pem, certificate none, "
                        "key none, TLS 2; 0 at a time; spool none");
    assert_int_equal(lines, 0);
    forget(&chosen);
}

TEST(a_bad_endpoint_for_profiles_is_named_and_the_default_used)
{
    struct chosen chosen;
    setenv("OTEL_C_PROFILER_ENDPOINT", "nowhere", 1);
    assert_int_equal(oteli_config_look(&chosen.config), OTEL_OK);

    assert_true(oteli_start_otlp_init(&chosen.otlp, OTELI_SIGNAL_PROFILES, &chosen.config));

    assert_string_equal(chosen.otlp.options.endpoint,
                        "http://localhost:4318/v1development/profiles");
    assert_int_equal(lines, 1);
    assert_non_null(strstr(line, "OTEL_C_PROFILER_ENDPOINT is \"nowhere\""));
    forget(&chosen);
}

TEST(without_anything_there_are_the_specified_defaults)
{
    struct chosen chosen;

    assert_string_equal(text_of(choose(&chosen)), DEFAULTS);
    assert_int_equal(lines, 0);
    forget(&chosen);
}

/* spec: E-OTEL_EXPORTER_OTLP_PROTOCOL protocol/exporter.md#specify-protocol MUST stable */
/* spec: E-OTEL_EXPORTER_OTLP_COMPRESSION protocol/exporter.md#configuration-options MUST stable */
/* spec: E-OTEL_EXPORTER_OTLP_CERTIFICATE protocol/exporter.md#configuration-options MUST stable */
/* spec: E-OTEL_EXPORTER_OTLP_CLIENT_KEY protocol/exporter.md#configuration-options MUST stable */
/* spec: E-OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE protocol/exporter.md#configuration-options MUST
 * stable */
/* spec: E-OTEL_EXPORTER_OTLP_INSECURE protocol/exporter.md#configuration-options MUST stable */
TEST(every_variable_has_its_option)
{
    struct chosen chosen;
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317", 1);
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "gRPC", 1);
    setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "GZIP", 1);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=b%20c", 1);
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0", 1);
    setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca", 1);
    setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key", 1);
    setenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/certificate", 1);
    setenv("OTEL_EXPORTER_OTLP_INSECURE", "True", 1);
    setenv("OTEL_C_OTLP_TLS_MIN", "1.3", 1);
    setenv("OTEL_C_OTLP_CONCURRENCY", "16", 1);
    setenv("OTEL_C_SPOOL_DIR", "/spool", 1);
    setenv("OTEL_C_SPOOL_MAX_BYTES", "1000000", 1);
    setenv("OTEL_C_SPOOL_MAX_AGE", "0", 1);

    const otel_otlp_options *options = choose(&chosen);

    assert_string_equal(
        text_of(options),
        "collector:4317 grpc gzip, -1 ms, a: b c; ca /ca, certificate /certificate, "
        "key /key, TLS 3, insecure; 16 at a time; spool /spool");
    assert_int_equal(options->spool_max_bytes, 1000000);
    assert_int_equal(options->spool_max_age_ms, OTEL_ZERO);
    assert_int_equal(lines, 0);
    forget(&chosen);
}

TEST(those_for_traces_beat_the_general_ones)
{
    static const char *const pairs[][3] = {{"PROTOCOL", "grpc", "http/json"},
                                           {"COMPRESSION", "gzip", "none"},
                                           {"CERTIFICATE", "/no", "/ca"},
                                           {"CLIENT_KEY", "/no", "/key"},
                                           {"CLIENT_CERTIFICATE", "/no", "/certificate"},
                                           {"INSECURE", "true", "yes"}}; /* yes: false */
    struct chosen chosen;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char variable[64];
        snprintf(variable, sizeof variable, "OTEL_EXPORTER_OTLP_%s", pairs[i][0]);
        setenv(variable, pairs[i][1], 1);
        snprintf(variable, sizeof variable, "OTEL_EXPORTER_OTLP_TRACES_%s", pairs[i][0]);
        setenv(variable, pairs[i][2], 1);
    }

    assert_string_equal(text_of(choose(&chosen)),
                        "http://localhost:4318/v1/traces http/json, 10000 ms; ca /ca, certificate "
                        "/certificate, key /key, TLS 2; 1 at a time; spool none");
    forget(&chosen);
}

TEST(a_bad_value_is_one_line_and_the_default)
{
    static const struct {
        const char *variable, *value, *said;
    } bad[] = {
        {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "GRPCS",
         "\"GRPCS\" (it may be http/protobuf, http/json, grpc); it counts as unset"},
        {"OTEL_EXPORTER_OTLP_COMPRESSION", "brotli",
         "\"brotli\" (it may be none, gzip, zstd); using none"},
        {"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "6",
         "\"6\" (it may be none, gzip, zstd); it counts as unset"},
        {"OTEL_EXPORTER_OTLP_INSECURE", "yes", "is neither true nor false; using false"},
        {"OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key",
         "OTEL_EXPORTER_OTLP_CLIENT_KEY is given without "
         "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE; it counts as unset"},
        {"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/c",
         "is given without OTEL_EXPORTER_OTLP_CLIENT_KEY"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318",
         "is no http or https URL; using http://localhost:4318/v1/traces"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:sec ret@h:1",
         "ENDPOINT is \"http://***@h:1\", which is no"},
        {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "user:sec\"ret@h:1",
         "ENDPOINT is \"***@h:1\", which is no"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "Bearer secret", "HEADERS: entry 1 is not name=value;"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "a=%secret", "HEADERS: entry 1 is not name=value;"},
        {"OTEL_EXPORTER_OTLP_PROTOCOL", "http://user:sec,ret@h",
         "PROTOCOL=\"http://***@h\" has the unknown word \"http:***\""},
        {"OTEL_TRACES_EXPORTER", "http://user:sec,ret@h",
         "EXPORTER=\"http://***@h\" has the unknown word \"http:***\""},
        {"OTEL_C_OTLP_TLS_MIN", "1.1", "\"1.1\" (it may be 1.2, 1.3); using 1.2"},
        {"OTEL_C_OTLP_CONCURRENCY", "17", "is not a whole number from 1 to 16; using 1"},
        {"OTEL_C_SPOOL_MAX_BYTES", "64", "from 65536 to 1099511627776; using 67108864"},
        {"OTEL_C_SPOOL_MAX_AGE", "-1", "from 0 to 2147483647; using 86400000"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct chosen chosen;
        setenv(bad[i].variable, bad[i].value, 1);
        lines = 0;

        const otel_otlp_options *options = choose(&chosen);

        if (lines != 1 || strstr(line, bad[i].variable) == NULL ||
            strstr(line, bad[i].said) == NULL || strstr(line, "ret@") != NULL)
            fail_msg("%s=%s: %u lines, %s", bad[i].variable, bad[i].value, lines, line);
        assert_string_equal(text_of(options), DEFAULTS);
        forget(&chosen);
        unsetenv(bad[i].variable);
    }
}

TEST(the_default_endpoint_goes_with_the_protocol)
{
    struct chosen chosen;
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1);
    assert_string_equal(choose(&chosen)->endpoint, "http://localhost:4317");
    forget(&chosen);

    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://c", 1);
    assert_string_equal(choose(&chosen)->endpoint, "http://localhost:4317");
    assert_non_null(strstr(line, "is no endpoint for gRPC; using http://localhost:4317"));
    forget(&chosen);
}

TEST(zstd_is_none_where_it_was_not_built_in)
{
    const bool is_known = oteli_compression_is_known(OTEL_OTLP_COMPRESSION_ZSTD);
    struct chosen chosen;
    setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", 1);

    const otel_otlp_options *options = choose(&chosen);

    assert_int_equal(options->compression,
                     is_known ? OTEL_OTLP_COMPRESSION_ZSTD : OTEL_OTLP_COMPRESSION_NONE);
    assert_int_equal(lines, is_known ? 0 : 1);
    forget(&chosen);
}

TEST(every_allocation_may_fail)
{
    struct oteli_config config;
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=b,c=d", 1);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c", 1);
    assert_int_equal(oteli_config_load(&config, NULL, true), OTEL_OK);
    for (size_t nth = 1;; nth++) {
        otel_exporter exporter;
        bool is_made = false;
        const char *origin;
        oteli_leaks_fail_at(nth);
        const otel_status status = oteli_start_otlp_exporter(&config, &exporter, &is_made, &origin);
        const bool all_tried = !oteli_leaks_failed();
        if (is_made)
            exporter.free(exporter.state);
        assert_int_equal(is_made, status == OTEL_OK);
        if (all_tried)
            break;
    }
    oteli_config_fini(&config);
}
