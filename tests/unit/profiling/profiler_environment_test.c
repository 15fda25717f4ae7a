/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/profiler_environment_test.c - specification of
 * profiling/profiler_environment.c and of exporters/start_profiler.c: what otel_start makes of each
 * variable of the profiler, of bad values and of the options in code, and the life of that
 * profiler. What is started instead of it is a double. */
#include "common/config/configuration.h"
#include "sdk/engine/engine.h"
#include "sdk/lifecycle/lifecycle.h"
#include "tests/support/said.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <otel/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOREVER_MS = INT32_MAX };

/* Called instead of the real ones. */
otel_status __wrap_otel_profiler_start(const otel_profiler_options *options,
                                       otel_profiler **profiler);
otel_status __wrap_otel_profiler_stop(otel_profiler *profiler, int64_t timeout_ms);
otel_profile_exporter __wrap_otel_pprof_file_exporter(const char *directory,
                                                      otel_pprof_style style);
otel_profile_exporter __wrap_otel_otlp_profile_exporter(const otel_otlp_options *options);

/* What has been called, and with what. */
static struct {
    unsigned starts;
    unsigned stops;
    otel_profiler_options options;
    int64_t stop_ms;
    char directory[64]; /* of pprof files */
    otel_pprof_style style;
    char endpoint[128]; /* of OTLP */
    otel_otlp_compression compression;
    bool has_options; /* of OTLP */
    otel_status start_status;
    otel_status stop_status;
    bool has_no_exporter;
} seen;

static char profiler_double; /* its address stands for a profiler */

otel_status __wrap_otel_profiler_start(const otel_profiler_options *options,
                                       otel_profiler **profiler)
{
    seen.starts++;
    seen.options = *options;
    *profiler = seen.start_status == OTEL_OK ? (otel_profiler *)(void *)&profiler_double : NULL;
    return seen.start_status;
}

otel_status __wrap_otel_profiler_stop(otel_profiler *profiler, int64_t timeout_ms)
{
    assert_ptr_equal(profiler, &profiler_double);
    seen.stops++;
    seen.stop_ms = timeout_ms;
    return seen.stop_status;
}

static otel_profile_exporter exporter_double(bool wants_names)
{
    return (otel_profile_exporter){.state = seen.has_no_exporter ? NULL : &seen,
                                   .wants_names = wants_names};
}

otel_profile_exporter __wrap_otel_pprof_file_exporter(const char *directory, otel_pprof_style style)
{
    snprintf(seen.directory, sizeof seen.directory, "%s", directory);
    seen.style = style;
    return exporter_double(false);
}

otel_profile_exporter __wrap_otel_otlp_profile_exporter(const otel_otlp_options *options)
{
    seen.has_options = options != NULL;
    if (options != NULL) {
        snprintf(seen.endpoint, sizeof seen.endpoint, "%s", options->endpoint);
        seen.compression = options->compression;
    }
    return exporter_double(true);
}

static int begin(void **state)
{
    (void)state;
    for (size_t i = 0; i < oteli_config_row_count; i++)
        unsetenv(oteli_config_rows[i].variable);
    setenv("OTEL_TRACES_EXPORTER", "none", 1);
    memset(&seen, 0, sizeof seen);
    said_begin(OTEL_LOG_WARN);
    return 0;
}

static int end(void **state)
{
    (void)!otel_shutdown(FOREVER_MS);
    oteli_lifecycle_reset();
    oteli_api_reset();
    (void)begin(state);
    said_end();
    return 0;
}

static void start(void)
{
    assert_int_equal(otel_start(NULL), OTEL_OK);
}

/* Start, and stop again, with the profiler on and these variables; NULL: there is none. */
static void start_with(const char *variable, const char *value, const char *out)
{
    (void)begin(NULL);
    setenv("OTEL_C_PROFILER", "on", 1);
    setenv(variable, value, 1);
    if (out != NULL)
        setenv("OTEL_C_PROFILER_OUT", out, 1);
    start();
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
}

/* What has been started: "perf 99 Hz, http://… gzip, named", or "auto 99 Hz, /tmp datadog". */
static const char *started(void)
{
    static const char *const sources[] = {[OTEL_PROFILER_AUTO] = "auto",
                                          [OTEL_PROFILER_PERF] = "perf",
                                          [OTEL_PROFILER_SIGNAL] = "signal"};
    static const char *const styles[] = {[OTEL_PPROF_OTEL] = "otel",
                                         [OTEL_PPROF_DATADOG] = "datadog",
                                         [OTEL_PPROF_PYROSCOPE] = "pyroscope"};
    static char text[256];
    if (seen.starts == 0)
        return "none";
    assert_int_equal(seen.starts, 1);
    assert_int_equal(seen.options.size, sizeof seen.options);
    assert_ptr_equal(seen.options.exporter.state, &seen);
    const bool is_gzip = seen.compression == OTEL_OTLP_COMPRESSION_GZIP;
    snprintf(text, sizeof text, "%s %u Hz, %s%s%s", sources[seen.options.source],
             (unsigned)seen.options.frequency_hz, seen.has_options ? seen.endpoint : seen.directory,
             seen.has_options ? (is_gzip ? " gzip" : "") : " ",
             seen.has_options ? "" : styles[seen.style]);
    if (seen.options.exporter.wants_names)
        strcat(text, ", named");
    return text;
}

static void assert_said(const char *variable, const char *value)
{
    assert_int_equal(said_lines, 1);
    assert_non_null(strstr(said, variable));
    assert_non_null(strstr(said, value));
}

AROUND_EACH(begin, end);

/* --- The variables --- */

#define HERE "http://localhost:4318/v1development/profiles, named"

static const struct {
    const char *variable, *value; /* OTEL_C_ left out of the profiler's own */
    const char *out;
    const char *started;
    bool is_bad; /* and that is said */
} table[] = {
    {"PROFILER", "off", NULL, "none", false},
    {"PROFILER", "OFF", NULL, "none", false},
    {"PROFILER", "", NULL, "none", false},
    {"PROFILER", "yes", NULL, "none", true},
    {"PROFILER", "on", NULL, "auto 99 Hz, " HERE, false},
    {"PROFILER", " on ", NULL, "auto 99 Hz, " HERE, false},
    {"PROFILER", "auto", NULL, "auto 99 Hz, " HERE, false},
    {"PROFILER", "perf", NULL, "perf 99 Hz, " HERE, false},
    {"PROFILER", "signal", NULL, "signal 99 Hz, " HERE, false},
    {"PROFILER", "Signal", NULL, "signal 99 Hz, " HERE, false},
    {"OTEL_SDK_DISABLED", "true", NULL, "none", false},

    {"PROFILER_HZ", "1", NULL, "auto 1 Hz, " HERE, false},
    {"PROFILER_HZ", "10000", NULL, "auto 10000 Hz, " HERE, false},
    {"PROFILER_HZ", "0", NULL, "auto 99 Hz, " HERE, true},
    {"PROFILER_HZ", "10001", NULL, "auto 99 Hz, " HERE, true},
    {"PROFILER_HZ", "-1", NULL, "auto 99 Hz, " HERE, true},
    {"PROFILER_HZ", "fast", NULL, "auto 99 Hz, " HERE, true},
    {"PROFILER_HZ", "99Hz", NULL, "auto 99 Hz, " HERE, true},
    {"PROFILER_HZ", "1e3", NULL, "auto 99 Hz, " HERE, true},

    {"PROFILER_OUT", "/var/tmp/some where", NULL, "auto 99 Hz, /var/tmp/some where otel", false},
    {"PROFILER_OUT", "otlp", NULL, "auto 99 Hz, " HERE, false},
    {"PROFILER_OUT", "", NULL, "auto 99 Hz, " HERE, false},
    {"PPROF_LABEL_STYLE", "otel", "/tmp", "auto 99 Hz, /tmp otel", false},
    {"PPROF_LABEL_STYLE", "datadog", "/tmp", "auto 99 Hz, /tmp datadog", false},
    {"PPROF_LABEL_STYLE", "Pyroscope", "/tmp", "auto 99 Hz, /tmp pyroscope", false},
    {"PPROF_LABEL_STYLE", "go", "/tmp", "auto 99 Hz, /tmp otel", true},
    {"PPROF_LABEL_STYLE", "go", NULL, "auto 99 Hz, " HERE, true},

    {"PROFILER_NAMES", "auto", "/tmp", "auto 99 Hz, /tmp otel", false},
    {"PROFILER_NAMES", "auto", "otlp", "auto 99 Hz, " HERE, false},
    {"PROFILER_NAMES", "on", "/tmp", "auto 99 Hz, /tmp otel, named", false},
    {"PROFILER_NAMES", "on", "otlp", "auto 99 Hz, " HERE, false},
    {"PROFILER_NAMES", "OFF", "/tmp", "auto 99 Hz, /tmp otel", false},
    {"PROFILER_NAMES", "OFF", "otlp", "auto 99 Hz, http://localhost:4318/v1development/profiles",
     false},
    {"PROFILER_NAMES", "", "/tmp", "auto 99 Hz, /tmp otel", false},
    {"PROFILER_NAMES", "yes", "otlp", "auto 99 Hz, " HERE, true},

    {"PROFILER_ENDPOINT", "https://other/in", NULL, "auto 99 Hz, https://other/in, named", false},
    {"PROFILER_ENDPOINT", "nowhere", NULL, "auto 99 Hz, " HERE, true},
    /* Profiles go where spans go. */
    {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1/b", NULL,
     "auto 99 Hz, http://c:1/b/v1development/profiles, named", false},
    {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:4318/", NULL, "auto 99 Hz, " HERE, false},
    {"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", NULL,
     "auto 99 Hz, http://localhost:4318/v1development/profiles gzip, named", false},
};

TEST(variables_say_whether_there_is_one_and_how_it_is)
{
    start();
    assert_string_equal(started(), "none");
    assert_null(otel_profiler_of_environment());
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char variable[64];
        const bool is_whole = strncmp(table[i].variable, "OTEL_", 5) == 0;
        snprintf(variable, sizeof variable, "%s%s", is_whole ? "" : "OTEL_C_", table[i].variable);
        start_with(variable, table[i].value, table[i].out);
        if (strcmp(started(), table[i].started) != 0 || said_lines != table[i].is_bad)
            fail_msg("%s=%s: %s: %s", variable, table[i].value, started(), said);
        if (table[i].is_bad)
            assert_said(variable, table[i].value);
    }
}

/* --- The options in code --- */

/* Each beats its variable. */
TEST(code_beats_the_environment)
{
    static const struct {
        otel_sdk_options options;
        otel_status status;
        const char *started;
    } rows[] = {
        {{.profiler = "signal",
          .profiler_hz = 50,
          .profiler_out = "otlp",
          .exporter_otlp_endpoint = "http://by-code:4318"},
         OTEL_OK,
         "signal 50 Hz, http://by-code:4318/v1development/profiles, named"},
        {{.profiler = "on", .profiler_out = "otlp", .profiler_endpoint = "http://only:1/p"},
         OTEL_OK,
         "auto 7 Hz, http://only:1/p, named"},
        {{.profiler_out = "/tmp", .pprof_label_style = "datadog"},
         OTEL_OK,
         "perf 7 Hz, /tmp datadog"},
        {{.profiler = "yes"}, OTEL_ERROR_INVALID_ARGUMENT, "none"},
        {{.profiler = "on", .profiler_hz = 10001}, OTEL_ERROR_INVALID_ARGUMENT, "none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        otel_sdk_options options = rows[i].options;
        options.size = sizeof options;
        (void)begin(NULL);
        setenv("OTEL_C_PROFILER", "perf", 1);
        setenv("OTEL_C_PROFILER_HZ", "7", 1);
        setenv("OTEL_C_PROFILER_OUT", "/nowhere", 1);
        assert_int_equal(otel_start(&options), rows[i].status);
        assert_string_equal(started(), rows[i].started);
        (void)!otel_shutdown(FOREVER_MS);
    }
}

/* --- Its life --- */

TEST(it_is_there_until_the_shutdown_which_gives_it_half_of_its_time)
{
    setenv("OTEL_C_PROFILER", "on", 1);
    start();
    assert_ptr_equal(otel_profiler_of_environment(), &profiler_double);

    assert_int_equal(otel_shutdown(60000), OTEL_OK);

    assert_null(otel_profiler_of_environment());
    assert_int_equal(seen.stops, 1);
    assert_int_equal(seen.stop_ms, 30000);
    assert_int_equal(said_lines, 0);
    start();
    assert_int_equal(seen.starts, 2);
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    assert_int_equal(seen.stops, 2);
}

TEST(why_there_is_none_is_one_line_and_the_program_runs)
{
    setenv("OTEL_C_PROFILER", "on", 1);
    seen.start_status = OTEL_ERROR_UNSUPPORTED;
    start();
    assert_null(otel_profiler_of_environment());
    assert_said("no profiler: ", otel_status_string(OTEL_ERROR_UNSUPPORTED));
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    assert_int_equal(seen.stops, 0);

    (void)begin(NULL);
    setenv("OTEL_C_PROFILER", "on", 1);
    seen.has_no_exporter = true;
    start();
    assert_int_equal(seen.starts, 0);
    assert_said("no profiler: ", otel_status_string(OTEL_ERROR_NO_MEMORY));
}

TEST(a_last_profile_that_does_not_arrive_is_said)
{
    setenv("OTEL_C_PROFILER", "on", 1);
    seen.stop_status = OTEL_ERROR_EXPORT_FAILED;
    start();
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    assert_said("the last profile did not arrive", otel_status_string(OTEL_ERROR_EXPORT_FAILED));
}

static int has_profiler(void)
{
    return otel_profiler_of_environment() != NULL;
}

TEST(a_forked_child_has_none)
{
    setenv("OTEL_C_PROFILER", "on", 1);
    start();
    check_child(has_profiler);
    assert_ptr_equal(otel_profiler_of_environment(), &profiler_double);
}

/* --- By hand --- */

TEST(words_are_checked_and_there_is_one_at_a_time)
{
    static const char *const bad[] = {"off", "yes", "", NULL};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(otel_profiler_start_by_words(&(otel_profiler_words){
                             .size = sizeof(otel_profiler_words), .source = bad[i]}),
                         OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_profiler_start_by_words(NULL), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_profiler_start_by_words(&(otel_profiler_words){.size = 0}),
                     OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(seen.starts, 0);

    const otel_profiler_words words = {.size = sizeof words, .source = "on"};
    assert_int_equal(otel_profiler_start_by_words(&words), OTEL_OK);
    assert_false(seen.has_options);
    assert_int_equal(otel_profiler_start_by_words(&words), OTEL_ERROR_ALREADY_STARTED);
    assert_int_equal(seen.starts, 1);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_ERROR_NOT_STARTED);
    assert_int_equal(seen.stops, 1);
}
