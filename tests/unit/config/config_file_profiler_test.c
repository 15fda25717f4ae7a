/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/config/config_file_profiler_test.c - specification of distribution.otel-c.profiler in
 * a file: how it is read, what cannot be, and what otel_start makes of it. */
#include "common/config/configuration.h"
#include "config/read/registry.h"
#include "sdk/engine/engine.h"
#include "sdk/lifecycle/lifecycle.h"
#include "tests/support/config_file.h"
#include "tests/support/unit.h"

#include <otel/config.h>
#include <otel/otel.h>
#include <otel/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOREVER_MS = INT32_MAX };

#define PROVIDER             \
    "file_format: \"1.1\"\n" \
    "tracer_provider:\n"     \
    "  processors: [{simple: {exporter: {console: }}}]\n"

/* --- How it is read --- */

AROUND_ALL(config_path_make, config_path_remove);

static const char *setting(void)
{
    static char text[256];
    const otel_sdk_options *read = &config_file.settings.options;
    snprintf(text, sizeof text, "%s %u Hz, signal %d, %s, %s, %s, %s",
             read->profiler != NULL ? read->profiler : "none", (unsigned)read->profiler_hz,
             (int)read->profiler_signal, read->profiler_out != NULL ? read->profiler_out : "-",
             read->profiler_endpoint != NULL ? read->profiler_endpoint : "-",
             read->pprof_label_style != NULL ? read->pprof_label_style : "-",
             read->profiler_names != NULL ? read->profiler_names : "-");
    return text;
}

TEST(all_of_it_is_read_and_one_of_which_nothing_is_said_is_to_run)
{
    static const struct {
        const char *text;
        const char *setting;
    } table[] = {
        {"distribution:\n"
         "  other: [1]\n"
         "  otel-c:\n"
         "    profiler:\n"
         "      source: signal\n"
         "      hz: 250\n"
         "      signal: 12\n"
         "      out: /var/tmp/profiles\n"
         "      endpoint: https://profiles.example/in\n"
         "      label_style: datadog\n"
         "      names: on\n",
         "signal 250 Hz, signal 12, /var/tmp/profiles, https://profiles.example/in, datadog, on"},
        {"", "none 0 Hz, signal 0, -, -, -, -"},
        {"distribution:\n", "none 0 Hz, signal 0, -, -, -, -"},
        {"distribution: {otel-c: {}}\n", "none 0 Hz, signal 0, -, -, -, -"},
        {"distribution: {otel-c: {profiler: }}\n", "auto 0 Hz, signal 0, -, -, -, -"},
        {"distribution: {otel-c: {profiler: {}}}\n", "auto 0 Hz, signal 0, -, -, -, -"},
        {"distribution: {otel-c: {profiler: {source: }}}\n", "auto 0 Hz, signal 0, -, -, -, -"},
        {"distribution: {otel-c: {profiler: {source: off}}}\n", "off 0 Hz, signal 0, -, -, -, -"},
        {"distribution: {otel-c: {profiler: {source: on}}}\n", "on 0 Hz, signal 0, -, -, -, -"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s", PROVIDER, table[i].text);
        config_file_read(text);
        assert_string_equal(config_file_errors, "");
        assert_int_equal(config_file.status, OTEL_OK);
        assert_string_equal(config_file_warnings, "");
        assert_string_equal(setting(), table[i].setting);
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

static char started[256];

/* Instead of that of library otel-profiling. */
otel_status otel_profiler_start_by_words(const otel_profiler_words *words)
{
    assert_string_equal(started, "none");
    snprintf(started, sizeof started, "%s %u Hz, %s, %s, %s, %s with %u headers", words->source,
             (unsigned)words->frequency_hz, words->out, words->label_style, words->names,
             words->otlp != NULL ? words->otlp->endpoint : "-",
             words->otlp != NULL ? (unsigned)words->otlp->header_count : 0);
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

#define HERE "http://localhost:4318/v1development/profiles with 0 headers"

TEST(the_file_starts_it_and_what_it_does_not_say_the_options_may)
{
    static const otel_sdk_options options = {.size = sizeof options,
                                             .profiler = "perf",
                                             .profiler_hz = 30,
                                             .exporter_otlp_headers = "key=secret"};
    static const struct {
        const char *text;
        const otel_sdk_options *options;
        const char *started;
    } table[] = {
        {"", NULL, "none"}, /* not the environment */
        {"distribution: {otel-c: {profiler: {source: signal}}}", NULL,
         "signal 99 Hz, otlp, otel, auto, " HERE},
        {"distribution: {otel-c: {profiler: {source: \"${OTEL_C_PROFILER}\"}}}", NULL,
         "perf 99 Hz, otlp, otel, auto, " HERE},
        {"distribution: {otel-c: {profiler: {hz: 20, endpoint: 'http://a:1/p'}}}", NULL,
         "auto 20 Hz, otlp, otel, auto, http://a:1/p with 0 headers"},
        {"distribution: {otel-c: {profiler: {out: /tmp, label_style: pyroscope, names: on}}}", NULL,
         "auto 99 Hz, /tmp, pyroscope, on, - with 0 headers"},
        {"distribution: {otel-c: {profiler: {hz: 20}}}", &options,
         "auto 20 Hz, otlp, otel, auto, http://localhost:4318/v1development/profiles with 1 "
         "headers"},
        {"", &options,
         "perf 30 Hz, otlp, otel, auto, http://localhost:4318/v1development/profiles with 1 "
         "headers"},
        {"distribution: {otel-c: {profiler: {source: off}}}", NULL, "none"},
        {"disabled: true\ndistribution: {otel-c: {profiler: }}", NULL, "none"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[512];
        setenv("OTEL_C_PROFILER", "perf", 1);
        setenv("OTEL_C_PROFILER_HZ", "7", 1);
        setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://by-environment:1", 1);
        snprintf(text, sizeof text, "%s%s\n", PROVIDER, table[i].text);
        config_path_write(text);
        strcpy(started, "none");
        assert_int_equal(otel_check_file(config_path), OTEL_OK);
        setenv("OTEL_CONFIG_FILE", config_path, 1);
        assert_int_equal(otel_start(table[i].options), OTEL_OK);
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
        assert_string_equal(started, table[i].started);
    }
}
