/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/profiler_environment_test.c - specification of profiling/environment.c and of
 * exporters/start_profiler.c: what otel_start makes of each variable of the profiler, of bad values and
 * of the options in code, and the life of that profiler. What is started instead of it is a double. */
#include "common/config.h"
#include "sdk/engine.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <otel/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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
static char lines[2048];
static unsigned line_count;

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

static void note(void *state, otel_log_level level, const char *message)
{
    (void)state;
    if (level > OTEL_LOG_WARN)
        return;
    const size_t used = strlen(lines);
    line_count++;
    snprintf(lines + used, sizeof lines - used, "%s\n", message);
}

static int begin(void **state)
{
    (void)state;
    for (size_t i = 0; i < oteli_config_row_count; i++)
        unsetenv(oteli_config_rows[i].variable);
    setenv("OTEL_TRACES_EXPORTER", "none", 1);
    memset(&seen, 0, sizeof seen);
    lines[0] = '\0';
    line_count = 0;
    otel_log_set_handler(note, NULL);
    return 0;
}

static int end(void **state)
{
    (void)!otel_shutdown(FOREVER_MS);
    oteli_lifecycle_reset();
    oteli_api_reset();
    (void)begin(state);
    otel_log_set_handler(NULL, NULL);
    return 0;
}

static void start(void)
{
    assert_int_equal(otel_start(NULL), OTEL_OK);
}

/* Start, and stop again, with the profiler on and this variable. */
static void start_with(const char *variable, const char *value)
{
    (void)begin(NULL);
    setenv("OTEL_C_PROFILER", "on", 1);
    setenv(variable, value, 1);
    start();
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
}

static void assert_said(const char *variable, const char *value)
{
    assert_int_equal(line_count, 1);
    assert_non_null(strstr(lines, variable));
    assert_non_null(strstr(lines, value));
}

/* --- The variables --- */

AROUND_EACH(begin, end);

TEST(without_being_asked_for_there_is_no_profiler)
{
    static const char *const off[] = {"off", "OFF", ""};
    start();
    assert_int_equal(seen.starts, 0);
    assert_null(otel_profiler_of_environment());
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++) {
        start_with("OTEL_C_PROFILER", off[i]);
        assert_int_equal(seen.starts, 0);
        assert_int_equal(line_count, 0);
    }
}

TEST(the_source_is_a_word)
{
    static const struct {
        const char *word;
        otel_profiler_source source;
    } words[] = {{"on", OTEL_PROFILER_AUTO},       {"auto", OTEL_PROFILER_AUTO},
                 {"perf", OTEL_PROFILER_PERF},     {"signal", OTEL_PROFILER_SIGNAL},
                 {"Signal", OTEL_PROFILER_SIGNAL}, {" on ", OTEL_PROFILER_AUTO}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        start_with("OTEL_C_PROFILER", words[i].word);
        assert_int_equal(seen.starts, 1);
        assert_int_equal(seen.options.source, words[i].source);
        assert_int_equal(line_count, 0);
    }
    start_with("OTEL_C_PROFILER", "yes");
    assert_int_equal(seen.starts, 0);
    assert_said("OTEL_C_PROFILER", "\"yes\"");
}

TEST(everything_else_has_a_default)
{
    start_with("OTEL_C_PROFILER", "on");
    assert_int_equal(seen.options.size, sizeof seen.options);
    assert_int_equal(seen.options.frequency_hz, 99);
    assert_string_equal(seen.directory, "");
    assert_string_equal(seen.endpoint, "http://localhost:4318/v1development/profiles");
    assert_ptr_equal(seen.options.exporter.state, &seen);
    assert_int_equal(line_count, 0);
}

TEST(the_rate_is_from_1_to_10000)
{
    static const char *const bad[] = {"0", "10001", "-1", "fast", "99Hz", "1e3"};
    start_with("OTEL_C_PROFILER_HZ", "1");
    assert_int_equal(seen.options.frequency_hz, 1);
    start_with("OTEL_C_PROFILER_HZ", "10000");
    assert_int_equal(seen.options.frequency_hz, 10000);
    assert_int_equal(line_count, 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        start_with("OTEL_C_PROFILER_HZ", bad[i]);
        assert_int_equal(seen.options.frequency_hz, 99);
        assert_said("OTEL_C_PROFILER_HZ", bad[i]);
    }
}

TEST(what_is_not_otlp_is_a_directory)
{
    start_with("OTEL_C_PROFILER_OUT", "/var/tmp/some where");
    assert_string_equal(seen.directory, "/var/tmp/some where");
    assert_string_equal(seen.endpoint, "");
    start_with("OTEL_C_PROFILER_OUT", "otlp");
    assert_string_equal(seen.directory, "");
    assert_true(seen.has_options);
    start_with("OTEL_C_PROFILER_OUT", "");
    assert_true(seen.has_options);
    assert_int_equal(line_count, 0);
}

TEST(the_style_of_labels_is_a_word)
{
    static const char *const words[] = {[OTEL_PPROF_OTEL] = "otel",
                                        [OTEL_PPROF_DATADOG] = "datadog",
                                        [OTEL_PPROF_PYROSCOPE] = "Pyroscope"};
    for (int i = 0; i <= OTEL_PPROF_PYROSCOPE; i++) {
        (void)begin(NULL);
        setenv("OTEL_C_PROFILER", "on", 1);
        setenv("OTEL_C_PROFILER_OUT", "/tmp", 1);
        setenv("OTEL_C_PPROF_LABEL_STYLE", words[i], 1);
        start();
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
        assert_int_equal(seen.style, i);
        assert_int_equal(line_count, 0);
    }
    start_with("OTEL_C_PPROF_LABEL_STYLE", "go");
    assert_int_equal(seen.starts, 1);
    assert_said("OTEL_C_PPROF_LABEL_STYLE", "\"go\"");
}

TEST(names_are_what_the_exporter_wants_or_what_is_said)
{
    static const struct {
        const char *word;
        bool otlp;
        bool files;
    } words[] = {
        {"auto", true, false}, {"on", true, true}, {"OFF", false, false}, {"", true, false}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        for (int is_file = 0; is_file < 2; is_file++) {
            (void)begin(NULL);
            setenv("OTEL_C_PROFILER", "on", 1);
            setenv("OTEL_C_PROFILER_OUT", is_file != 0 ? "/tmp" : "otlp", 1);
            setenv("OTEL_C_PROFILER_NAMES", words[i].word, 1);
            start();
            assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
            assert_int_equal(seen.options.exporter.wants_names,
                             is_file != 0 ? words[i].files : words[i].otlp);
            assert_int_equal(line_count, 0);
        }
    start_with("OTEL_C_PROFILER_NAMES", "yes");
    assert_true(seen.options.exporter.wants_names);
    assert_said("OTEL_C_PROFILER_NAMES", "\"yes\"");
}

TEST(a_receiver_of_profiles_alone_is_used_as_it_is)
{
    start_with("OTEL_C_PROFILER_ENDPOINT", "https://profiles.example/in");
    assert_string_equal(seen.endpoint, "https://profiles.example/in");
    assert_int_equal(line_count, 0);
    start_with("OTEL_C_PROFILER_ENDPOINT", "nowhere");
    assert_string_equal(seen.endpoint, "http://localhost:4318/v1development/profiles");
    assert_said("OTEL_C_PROFILER_ENDPOINT", "\"nowhere\"");
}

TEST(profiles_go_where_spans_go)
{
    start_with("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/base");
    assert_string_equal(seen.endpoint, "http://collector:4318/base/v1development/profiles");
    start_with("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:4318/");
    assert_string_equal(seen.endpoint, "http://localhost:4318/v1development/profiles");
    start_with("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip");
    assert_int_equal(seen.compression, OTEL_OTLP_COMPRESSION_GZIP);
}

/* --- The options in code --- */

TEST(code_beats_the_environment)
{
    setenv("OTEL_C_PROFILER", "perf", 1);
    setenv("OTEL_C_PROFILER_HZ", "7", 1);
    setenv("OTEL_C_PROFILER_OUT", "/nowhere", 1);

    assert_int_equal(
        otel_start(OTEL_SDK_OPTIONS(.profiler = "signal", .profiler_hz = 50, .profiler_out = "otlp",
                                    .exporter_otlp_endpoint = "http://by-code:4318")),
        OTEL_OK);

    assert_int_equal(seen.options.source, OTEL_PROFILER_SIGNAL);
    assert_int_equal(seen.options.frequency_hz, 50);
    assert_string_equal(seen.endpoint, "http://by-code:4318/v1development/profiles");
}

TEST(code_has_an_endpoint_and_files_as_well)
{
    assert_int_equal(
        otel_start(OTEL_SDK_OPTIONS(.profiler = "on", .profiler_endpoint = "http://only:1/p")),
        OTEL_OK);
    assert_string_equal(seen.endpoint, "http://only:1/p");
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_int_equal(otel_start(OTEL_SDK_OPTIONS(.profiler = "on", .profiler_out = "/tmp",
                                                 .pprof_label_style = "datadog")),
                     OTEL_OK);
    assert_string_equal(seen.directory, "/tmp");
    assert_int_equal(seen.style, OTEL_PPROF_DATADOG);
}

TEST(a_bad_word_in_code_starts_nothing)
{
    assert_int_equal(otel_start(OTEL_SDK_OPTIONS(.profiler = "yes")), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_start(OTEL_SDK_OPTIONS(.profiler = "on", .profiler_hz = 10001)),
                     OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(seen.starts, 0);
}

TEST(an_sdk_that_is_disabled_has_no_profiler)
{
    start_with("OTEL_SDK_DISABLED", "true");
    assert_int_equal(seen.starts, 0);
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
    assert_int_equal(line_count, 0);
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

TEST(a_forked_child_has_none)
{
    int status = 0;
    setenv("OTEL_C_PROFILER", "on", 1);
    start();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(otel_profiler_of_environment() != NULL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
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
