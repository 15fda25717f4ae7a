/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/config/config_file_profiler_test.c - specification of distribution.otel-c.profiler in a file:
 * how it is read, what cannot be, and what otel_start makes of it. */
#include "common/config.h"
#include "config/registry.h"
#include "sdk/engine.h"
#include "tests/support/config_file.h"
#include "tests/support/config_path.h"
#include "tests/support/unit.h"

#include <otel/config.h>
#include <otel/otel.h>
#include <otel/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOREVER_MS = INT32_MAX };

#define PROVIDER             \
    "file_format: \"1.1\"\n" \
    "tracer_provider:\n"     \
    "  processors: [{simple: {exporter: {console: }}}]\n"

/* --- How it is read --- */

static void good(const char *text)
{
    config_file_read(text);
    assert_string_equal(config_file_errors, "");
    assert_int_equal(config_file.status, OTEL_OK);
}

AROUND_ALL(config_path_make, config_path_remove);

TEST(all_of_it_is_read)
{
    good(PROVIDER "distribution:\n"
                  "  other: [1]\n"
                  "  otel-c:\n"
                  "    profiler:\n"
                  "      source: signal\n"
                  "      hz: 250\n"
                  "      signal: 12\n"
                  "      out: /var/tmp/profiles\n"
                  "      endpoint: https://profiles.example/in\n"
                  "      label_style: datadog\n"
                  "      names: on\n");
    const struct oteli_profiler_setting *profiler = &config_file.settings.profiler;
    assert_string_equal(profiler->source, "signal");
    assert_int_equal(profiler->hz, 250);
    assert_int_equal(profiler->signal, 12);
    assert_string_equal(profiler->out, "/var/tmp/profiles");
    assert_string_equal(profiler->endpoint, "https://profiles.example/in");
    assert_string_equal(profiler->label_style, "datadog");
    assert_string_equal(profiler->names, "on");
    assert_string_equal(config_file_warnings, "");
}

TEST(one_of_which_nothing_is_said_is_to_run)
{
    static const struct {
        const char *text;
        const char *source; /* NULL: there is none */
    } table[] = {
        {"", NULL},
        {"distribution:\n", NULL},
        {"distribution: {otel-c: {}}\n", NULL},
        {"distribution: {otel-c: {profiler: }}\n", "auto"},
        {"distribution: {otel-c: {profiler: {}}}\n", "auto"},
        {"distribution: {otel-c: {profiler: {source: }}}\n", "auto"},
        {"distribution: {otel-c: {profiler: {source: off}}}\n", "off"},
        {"distribution: {otel-c: {profiler: {source: on}}}\n", "on"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s", PROVIDER, table[i].text);
        good(text);
        if (table[i].source == NULL)
            assert_null(config_file.settings.profiler.source);
        else
            assert_string_equal(config_file.settings.profiler.source, table[i].source);
        assert_int_equal(config_file.settings.profiler.hz, 0);
        assert_null(config_file.settings.profiler.out);
    }
}

TEST(what_cannot_be_is_a_fault)
{
    static const struct {
        const char *text;
        const char *error;
    } table[] = {
        {"profiler: yes", "distribution.otel-c.profiler has to be a mapping"},
        {"profiler: {source: yes}", "distribution.otel-c.profiler.source"},
        {"profiler: {hz: 0}", "distribution.otel-c.profiler.hz"},
        {"profiler: {hz: 10001}", "distribution.otel-c.profiler.hz"},
        {"profiler: {signal: 65}", "distribution.otel-c.profiler.signal"},
        {"profiler: {hz: fast}", "distribution.otel-c.profiler.hz"},
        {"profiler: {out: 1}", "distribution.otel-c.profiler.out has to be a text"},
        {"profiler: {endpoint: nowhere}",
         "distribution.otel-c.profiler.endpoint is no http or https URL"},
        {"profiler: {label_style: go}", "distribution.otel-c.profiler.label_style"},
        {"profiler: {names: yes}", "distribution.otel-c.profiler.names"},
        {"profiler: {rate: 1}", "distribution.otel-c.profiler.rate is not known"},
        {"profilers: {}", "distribution.otel-c.profilers is not known"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[512];
        (void)config_file_begin(NULL);
        snprintf(text, sizeof text, "%sdistribution: {otel-c: {%s}}\n", PROVIDER, table[i].text);
        config_file_read(text);
        assert_int_equal(config_file.status, OTEL_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(config_file_errors, table[i].error));
        assert_ptr_equal(strchr(config_file_errors, '\n'),
                         config_file_errors + strlen(config_file_errors) - 1);
    }
}

/* --- What becomes of it --- */

static struct {
    unsigned starts;
    char source[16];
    uint32_t hz;
    char out[64];
    char label_style[16];
    char names[16];
    char endpoint[128];
    size_t header_count;
} profiler;

/* Instead of that of library otel-profiling. */
otel_status otel_profiler_start_by_words(const otel_profiler_words *words)
{
    profiler.starts++;
    profiler.hz = words->frequency_hz;
    snprintf(profiler.source, sizeof profiler.source, "%s", words->source);
    snprintf(profiler.out, sizeof profiler.out, "%s", words->out);
    snprintf(profiler.label_style, sizeof profiler.label_style, "%s", words->label_style);
    snprintf(profiler.names, sizeof profiler.names, "%s", words->names);
    if (words->otlp != NULL) {
        snprintf(profiler.endpoint, sizeof profiler.endpoint, "%s", words->otlp->endpoint);
        profiler.header_count = words->otlp->header_count;
    }
    return OTEL_OK;
}

static int begin(void **state)
{
    (void)state;
    for (size_t i = 0; i < oteli_config_row_count; i++)
        unsetenv(oteli_config_rows[i].variable);
    return config_file_begin(state);
}

static int end(void **state)
{
    oteli_lifecycle_reset();
    oteli_api_reset();
    (void)begin(state);
    return config_file_end(state);
}

AROUND_EACH(begin, end);

static void start_from(const char *text, const otel_sdk_options *options)
{
    config_path_write(text);
    memset(&profiler, 0, sizeof profiler);
    assert_int_equal(otel_check_file(config_path), OTEL_OK);
    setenv("OTEL_CONFIG_FILE", config_path, 1);
    assert_int_equal(otel_start(options), OTEL_OK);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
}

TEST(the_file_starts_it_and_not_the_environment)
{
    setenv("OTEL_C_PROFILER", "perf", 1);
    setenv("OTEL_C_PROFILER_HZ", "7", 1);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://by-environment:1", 1);

    start_from(PROVIDER, NULL);
    assert_int_equal(profiler.starts, 0);

    start_from(PROVIDER "distribution: {otel-c: {profiler: {source: signal}}}\n", NULL);
    assert_int_equal(profiler.starts, 1);
    assert_string_equal(profiler.source, "signal");
    assert_int_equal(profiler.hz, 99);
    assert_string_equal(profiler.out, "otlp");
    assert_string_equal(profiler.names, "auto");
    assert_string_equal(profiler.endpoint, "http://localhost:4318/v1development/profiles");

    start_from(PROVIDER "distribution: {otel-c: {profiler: {source: \"${OTEL_C_PROFILER}\"}}}\n",
               NULL);
    assert_string_equal(profiler.source, "perf");
}

TEST(all_that_the_file_says_counts)
{
    start_from(PROVIDER "distribution: {otel-c: {profiler: {hz: 20, endpoint: 'http://a:1/p'}}}\n",
               NULL);
    assert_string_equal(profiler.source, "auto");
    assert_int_equal(profiler.hz, 20);
    assert_string_equal(profiler.endpoint, "http://a:1/p");

    start_from(
        PROVIDER
        "distribution: {otel-c: {profiler: {out: /tmp, label_style: pyroscope, names: on}}}\n",
        NULL);
    assert_string_equal(profiler.out, "/tmp");
    assert_string_equal(profiler.label_style, "pyroscope");
    assert_string_equal(profiler.names, "on");
    assert_string_equal(profiler.endpoint, "");
}

TEST(what_the_file_does_not_say_the_options_may)
{
    start_from(PROVIDER "distribution: {otel-c: {profiler: {hz: 20}}}\n",
               OTEL_SDK_OPTIONS(.profiler = "perf", .profiler_hz = 30,
                                .exporter_otlp_headers = "key=secret"));
    assert_string_equal(profiler.source, "auto");
    assert_int_equal(profiler.hz, 20);
    assert_int_equal(profiler.header_count, 1);

    start_from(PROVIDER, OTEL_SDK_OPTIONS(.profiler = "perf", .profiler_hz = 30));
    assert_string_equal(profiler.source, "perf");
    assert_int_equal(profiler.hz, 30);
}

TEST(off_and_an_sdk_that_is_disabled_have_none)
{
    start_from(PROVIDER "distribution: {otel-c: {profiler: {source: off}}}\n", NULL);
    assert_int_equal(profiler.starts, 0);
    start_from(PROVIDER "disabled: true\ndistribution: {otel-c: {profiler: }}\n", NULL);
    assert_int_equal(profiler.starts, 0);
}
