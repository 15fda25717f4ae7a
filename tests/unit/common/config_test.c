/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/config_test.c - specification of common/config.h. */
#include "common/config.h"

#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the log said. */
static struct {
    size_t lines;
    otel_log_level level;
    char last[1200];
} said;

static void note(void *state, otel_log_level level, const char *message)
{
    (void)state;
    said.lines++;
    said.level = level;
    snprintf(said.last, sizeof said.last, "%s", message);
}

static int begin(void **state)
{
    (void)state;
    for (size_t i = 0; i < oteli_config_row_count; i++)
        unsetenv(oteli_config_rows[i].variable);
    memset(&said, 0, sizeof said);
    otel_log_set_handler(note, NULL);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    oteli_leaks_check();
    otel_log_set_handler(NULL, NULL);
    return 0;
}

AROUND_EACH(begin, end);

TEST(without_anything_there_are_the_specified_defaults)
{
    struct oteli_config config;

    assert_int_equal(oteli_config_load(&config, NULL, true), OTEL_OK);

    assert_string_equal(config.log_level, "info");
    assert_false(config.sdk_disabled);
    assert_null(config.service_name);
    assert_null(config.resource_attributes);
    assert_string_equal(config.propagators, "tracecontext,baggage");
    assert_string_equal(config.clock, "auto");
    assert_string_equal(config.traces_sampler, "parentbased_always_on");
    assert_null(config.traces_sampler_arg);
    assert_true(config.span_attribute_value_length_limit == OTELI_UNLIMITED);
    assert_int_equal(config.span_attribute_count_limit, 128);
    assert_int_equal(config.span_event_count_limit, 128);
    assert_int_equal(config.span_link_count_limit, 128);
    assert_int_equal(config.event_attribute_count_limit, 128);
    assert_int_equal(config.link_attribute_count_limit, 128);
    assert_int_equal(config.bsp_schedule_delay, 5000);
    assert_int_equal(config.bsp_export_timeout, 30000);
    assert_int_equal(config.bsp_max_queue_size, 2048);
    assert_int_equal(config.bsp_max_export_batch_size, 512);
    assert_int_equal(config.queue_max_bytes, 64 * 1024 * 1024);
    assert_true(config.tail_keep_slower_than == OTELI_UNLIMITED);
    assert_false(config.tail_keep_errors);
    assert_true(config.tail_keep == NULL);
    assert_int_equal(config.held_max_bytes, 32 * 1024 * 1024);
    assert_string_equal(config.traces_exporter, "otlp");
    assert_null(config.exporter_otlp_endpoint);
    assert_null(config.exporter_otlp_traces_endpoint);
    assert_null(config.exporter_otlp_traces_headers);
    assert_int_equal(config.exporter_otlp_traces_timeout, 10000);
    assert_string_equal(config.exporter_otlp_traces_protocol, "http/protobuf");
    assert_null(config.no_color);
    assert_int_equal(said.lines, 0);
    oteli_config_fini(&config);
}

/* Whoever adds a row with a default that is not one of its values finds out here. */
TEST(every_default_can_be_given_in_the_environment)
{
    for (size_t i = 0; i < oteli_config_row_count; i++) {
        if (oteli_config_rows[i].default_text != NULL)
            setenv(oteli_config_rows[i].variable, oteli_config_rows[i].default_text, 1);
    }
    struct oteli_config config;

    assert_int_equal(oteli_config_load(&config, NULL, true), OTEL_OK);

    assert_int_equal(said.lines, 0);
    oteli_config_fini(&config);
}

TEST(the_environment_beats_the_default)
{
    setenv("OTEL_SERVICE_NAME", " shop ", 1);
    setenv("OTEL_BSP_MAX_QUEUE_SIZE", " 4096\t", 1);
    setenv("OTEL_BSP_SCHEDULE_DELAY", "0", 1);
    setenv("OTEL_BSP_EXPORT_TIMEOUT", "0", 1);
    setenv("OTEL_SPAN_EVENT_COUNT_LIMIT", "0", 1);
    setenv("OTEL_TRACES_SAMPLER", "TraceIdRatio", 1);
    setenv("OTEL_TRACES_EXPORTER", "Console, otlp,console", 1);
    setenv("NO_COLOR", "1", 1);
    struct oteli_config config;

    assert_int_equal(oteli_config_load(&config, NULL, true), OTEL_OK);

    assert_string_equal(config.service_name, " shop "); /* texts are taken as they are */
    assert_int_equal(config.bsp_max_queue_size, 4096);
    assert_int_equal(config.bsp_schedule_delay, 0);
    assert_true(config.bsp_export_timeout == OTELI_UNLIMITED);
    assert_int_equal(config.span_event_count_limit, 0);
    assert_string_equal(config.traces_sampler, "traceidratio");
    assert_string_equal(config.traces_exporter, "console,otlp");
    assert_string_equal(config.no_color, "1");
    assert_int_equal(said.lines, 0);
    oteli_config_fini(&config);
}

TEST(the_environment_is_read_only_when_asked_to)
{
    setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4096", 1);
    struct oteli_config config;

    assert_int_equal(oteli_config_load(&config, NULL, false), OTEL_OK);

    assert_int_equal(config.bsp_max_queue_size, 2048);
    oteli_config_fini(&config);
}

TEST(what_is_empty_is_unset)
{
    setenv("NO_COLOR", "", 1);
    assert_null(oteli_env_get("NO_COLOR"));
    for (size_t i = 0; i < oteli_config_row_count; i++) {
        const bool is_string = oteli_config_rows[i].type == OTELI_TYPE_STRING;
        setenv(oteli_config_rows[i].variable, is_string ? "" : " \t", 1);
    }
    struct oteli_config config;

    assert_int_equal(
        oteli_config_load(&config, OTEL_SDK_OPTIONS(.service_name = "", .clock = " "), true),
        OTEL_OK);

    assert_null(config.service_name);
    assert_null(config.no_color);
    assert_string_equal(config.clock, "auto");
    assert_int_equal(config.bsp_max_queue_size, 2048);
    assert_int_equal(said.lines, 0);
    oteli_config_fini(&config);
}

TEST(code_beats_the_environment)
{
    setenv("OTEL_SERVICE_NAME", "environment", 1);
    setenv("OTEL_BSP_MAX_QUEUE_SIZE", "not even read", 1);
    setenv("OTEL_TRACES_EXPORTER", "console", 1);
    setenv("OTEL_BSP_EXPORT_TIMEOUT", "7", 1);
    struct oteli_config config;

    const otel_status status =
        oteli_config_load(&config,
                          OTEL_SDK_OPTIONS(.service_name = "code", .bsp_max_queue_size = 4096,
                                           .traces_exporter = "NONE", .log_level = "debug"),
                          true);

    assert_int_equal(status, OTEL_OK);
    assert_string_equal(config.service_name, "code");
    assert_int_equal(config.bsp_max_queue_size, 4096);
    assert_string_equal(config.traces_exporter, "none");
    assert_string_equal(config.log_level, "debug");
    assert_int_equal(config.bsp_export_timeout, 7); /* not in code */
    assert_int_equal(said.lines, 0);
    oteli_config_fini(&config);
}

TEST(otel_zero_is_the_number_zero)
{
    setenv("OTEL_BSP_EXPORT_TIMEOUT", "7", 1);
    setenv("OTEL_BSP_SCHEDULE_DELAY", "7", 1);
    setenv("OTEL_SPAN_LINK_COUNT_LIMIT", "7", 1);
    struct oteli_config config;

    const otel_status status = oteli_config_load(
        &config,
        OTEL_SDK_OPTIONS(.bsp_export_timeout = OTEL_ZERO, .bsp_schedule_delay = OTEL_ZERO,
                         .span_link_count_limit = OTEL_ZERO),
        true);

    assert_int_equal(status, OTEL_OK);
    assert_true(config.bsp_export_timeout == OTELI_UNLIMITED);
    assert_int_equal(config.bsp_schedule_delay, 0);
    assert_int_equal(config.span_link_count_limit, 0);
    oteli_config_fini(&config);
}

TEST(members_beyond_the_callers_size_are_unset)
{
    otel_sdk_options options = {.size = offsetof(otel_sdk_options, bsp_export_timeout),
                                .service_name = "old",
                                .bsp_schedule_delay = 1,
                                .bsp_export_timeout = 2,
                                .clock = "no such clock"};
    struct oteli_config config;

    assert_int_equal(oteli_config_load(&config, &options, true), OTEL_OK);

    assert_string_equal(config.service_name, "old");
    assert_int_equal(config.bsp_schedule_delay, 1);
    assert_int_equal(config.bsp_export_timeout, 30000);
    assert_string_equal(config.clock, "auto");
    oteli_config_fini(&config);
}

TEST(half_a_member_is_no_member)
{
    otel_sdk_options options = {.size = offsetof(otel_sdk_options, bsp_schedule_delay) + 4,
                                .bsp_schedule_delay = 1};
    struct oteli_config config;

    assert_int_equal(oteli_config_load(&config, &options, true), OTEL_OK);

    assert_int_equal(config.bsp_schedule_delay, 5000);
    oteli_config_fini(&config);
}

TEST(options_without_a_size_are_refused)
{
    const otel_sdk_options options = {.service_name = "shop"};
    struct oteli_config config;

    assert_int_equal(oteli_config_load(&config, &options, true), OTEL_ERROR_INVALID_ARGUMENT);
}

#define MAY_BE_SAMPLER                                                        \
    "(it may be always_on, always_off, traceidratio, parentbased_always_on, " \
    "parentbased_always_off, parentbased_traceidratio, jaeger_remote, parentbased_jaeger_remote)"
#define MAY_BE_PROTOCOL "(it may be http/protobuf, http/json, grpc)"
#define MAY_BE_PROPAGATOR "(it may be tracecontext, baggage, b3, b3multi, jaeger, none)"
#define MAY_BE_EXPORTER "(it may be otlp, console, otlp/stdout, none)"

struct bad_value {
    const char *variable;
    const char *value;
    const char *warning; /* all of it behind the variable and the value */
};

static const struct bad_value bad_values[] = {
    {"OTEL_BSP_MAX_QUEUE_SIZE", "0", "is not a whole number from 1 to 2147483647; using 2048"},
    {"OTEL_BSP_MAX_QUEUE_SIZE", "-5", "is not a whole number from 1 to 2147483647; using 2048"},
    {"OTEL_BSP_MAX_QUEUE_SIZE", "99999999999999999999",
     "is not a whole number from 1 to 2147483647; using 2048"},
    {"OTEL_BSP_MAX_QUEUE_SIZE", "0x10", "is not a whole number from 1 to 2147483647; using 2048"},
    {"OTEL_C_QUEUE_MAX_BYTES", "1048575",
     "is not a whole number from 1048576 to 1099511627776; using 67108864"},
    {"OTEL_BSP_SCHEDULE_DELAY", "5s",
     "is not a whole number of milliseconds from 0 to 2147483647; using 5000"},
    {"OTEL_BSP_EXPORT_TIMEOUT", "-1",
     "is not a whole number of milliseconds from 0 to 2147483647; using 30000"},
    {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1.5",
     "is not a whole number of milliseconds from 0 to 2147483647; it counts as unset"},
    {"OTEL_SDK_DISABLED", "1", "is neither true nor false; using false"},
    {"OTEL_C_TAIL_KEEP_ERRORS", "on", "is neither true nor false; using false"},
    {"OTEL_C_TAIL_KEEP_SLOWER_THAN", "-1",
     "is not a whole number of milliseconds from 0 to 2147483647; it counts as unset"},
    {"OTEL_TRACES_SAMPLER", "trace-id-ratio",
     "has the unknown word \"trace-id-ratio\" " MAY_BE_SAMPLER "; using parentbased_always_on"},
    {"OTEL_TRACES_SAMPLER", "xray",
     "has \"xray\", which otel-c does not support yet " MAY_BE_SAMPLER
     "; using parentbased_always_on"},
    {"OTEL_TRACES_SAMPLER", "-xray",
     "has the unknown word \"-xray\" " MAY_BE_SAMPLER "; using parentbased_always_on"},
    {"OTEL_EXPORTER_OTLP_PROTOCOL", "http",
     "has the unknown word \"http\" " MAY_BE_PROTOCOL "; using http/protobuf"},
    {"OTEL_C_CLOCK", "fake",
     "has the unknown word \"fake\" (it may be auto, tsc, monotonic, coarse); using auto"},
    {"OTEL_PROPAGATORS", "tracecontext,xray,baggage",
     "has \"xray\", which otel-c does not support yet " MAY_BE_PROPAGATOR
     "; using tracecontext,baggage"},
    {"OTEL_PROPAGATORS", "ottrace",
     "has \"ottrace\", which otel-c does not support yet " MAY_BE_PROPAGATOR
     "; using tracecontext,baggage"},
    {"OTEL_PROPAGATORS", "carrier-pigeon",
     "has the unknown word \"carrier-pigeon\" " MAY_BE_PROPAGATOR "; using tracecontext,baggage"},
    {"OTEL_TRACES_EXPORTER", "Foo,console,bar",
     "has the unknown word \"Foo\" " MAY_BE_EXPORTER "; using console"},
    {"OTEL_TRACES_EXPORTER", "none,console", "has \"none\" beside other words; using console"},
    {"OTEL_TRACES_EXPORTER", "zipkin,none",
     "has \"zipkin\", which otel-c does not support yet " MAY_BE_EXPORTER "; using none"},
    {"OTEL_LOG_LEVEL", "loud",
     "has the unknown word \"loud\" (it may be none, error, warn, info, debug); using info"},
};

TEST(a_bad_variable_is_one_warning_and_then_unset)
{
    for (size_t i = 0; i < sizeof bad_values / sizeof bad_values[0]; i++) {
        const struct bad_value *bad = &bad_values[i];
        setenv(bad->variable, bad->value, 1);
        said.lines = 0;
        struct oteli_config config;

        assert_int_equal(oteli_config_load(&config, NULL, true), OTEL_OK);

        char warning[400];
        snprintf(warning, sizeof warning, "%s=\"%s\" %s", bad->variable, bad->value, bad->warning);
        assert_int_equal(said.lines, 1);
        assert_int_equal(said.level, OTEL_LOG_WARN);
        assert_string_equal(said.last, warning);
        assert_int_equal(config.bsp_max_queue_size, 2048);
        assert_int_equal(config.queue_max_bytes, 64 * 1024 * 1024);
        assert_int_equal(config.bsp_schedule_delay, 5000);
        assert_int_equal(config.bsp_export_timeout, 30000);
        assert_int_equal(config.exporter_otlp_traces_timeout, 10000);
        assert_false(config.sdk_disabled);
        assert_string_equal(config.traces_sampler, "parentbased_always_on");
        assert_string_equal(config.exporter_otlp_traces_protocol, "http/protobuf");
        assert_string_equal(config.clock, "auto");
        assert_string_equal(config.propagators, "tracecontext,baggage");
        oteli_config_fini(&config);
        unsetenv(bad->variable);
    }
}

TEST(bad_options_are_refused_by_name)
{
    const struct {
        const otel_sdk_options *options;
        otel_status status;
        const char *error;
    } bad[] = {
        {OTEL_SDK_OPTIONS(.bsp_max_queue_size = OTEL_ZERO), OTEL_ERROR_INVALID_ARGUMENT,
         "bsp_max_queue_size=\"-1\" is not a whole number from 1 to 2147483647"},
        {OTEL_SDK_OPTIONS(.bsp_schedule_delay = -2), OTEL_ERROR_INVALID_ARGUMENT,
         "bsp_schedule_delay=\"-2\" is not a whole number of milliseconds from 0 to 2147483647"},
        {OTEL_SDK_OPTIONS(.span_link_count_limit = INT64_MIN), OTEL_ERROR_INVALID_ARGUMENT,
         "span_link_count_limit=\"-9223372036854775808\" is not a whole number from 0 to "
         "2147483647"},
        {OTEL_SDK_OPTIONS(.bsp_export_timeout = INT64_MAX), OTEL_ERROR_INVALID_ARGUMENT,
         "bsp_export_timeout=\"9223372036854775807\" is not a whole number of milliseconds from 0 "
         "to 2147483647"},
        {OTEL_SDK_OPTIONS(.tail_keep_errors = "1"), OTEL_ERROR_INVALID_ARGUMENT,
         "tail_keep_errors=\"1\" is neither true nor false"},
        {OTEL_SDK_OPTIONS(.traces_sampler = "sometimes"), OTEL_ERROR_INVALID_ARGUMENT,
         "traces_sampler=\"sometimes\" has the unknown word \"sometimes\" " MAY_BE_SAMPLER},
        {OTEL_SDK_OPTIONS(.traces_sampler = "traceidratio", .traces_sampler_arg = "10"),
         OTEL_ERROR_INVALID_ARGUMENT, "traces_sampler_arg=\"10\" is no number from 0 to 1"},
        {OTEL_SDK_OPTIONS(.clock = "sundial"), OTEL_ERROR_INVALID_ARGUMENT,
         "clock=\"sundial\" has the unknown word \"sundial\" (it may be auto, tsc, monotonic, "
         "coarse, fake)"},
        {OTEL_SDK_OPTIONS(.exporter_otlp_protocol = "http"), OTEL_ERROR_INVALID_ARGUMENT,
         "exporter_otlp_protocol=\"http\" has the unknown word \"http\" " MAY_BE_PROTOCOL},
        {OTEL_SDK_OPTIONS(.traces_exporter = "otlp,zipkin"), OTEL_ERROR_UNSUPPORTED,
         "traces_exporter=\"otlp,zipkin\" has \"zipkin\", which otel-c does not support yet " MAY_BE_EXPORTER},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        said.lines = 0;
        struct oteli_config config;

        assert_int_equal(oteli_config_load(&config, bad[i].options, true), bad[i].status);

        char error[300];
        snprintf(error, sizeof error, "otel_sdk_options.%s", bad[i].error);
        assert_int_equal(said.lines, 1);
        assert_int_equal(said.level, OTEL_LOG_ERROR);
        assert_string_equal(said.last, error);
    }
}

TEST(only_true_is_true)
{
    static const struct {
        const char *text;
        bool value;
        size_t warnings;
    } words[] = {
        {"true", true, 0},   {"TRUE", true, 0}, {" True ", true, 0}, {"false", false, 0},
        {"FALSE", false, 0}, {"1", false, 1},   {"yes", false, 1},   {"truee", false, 1},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        setenv("OTEL_SDK_DISABLED", words[i].text, 1);
        said.lines = 0;
        struct oteli_config config;

        assert_int_equal(oteli_config_load(&config, NULL, true), OTEL_OK);

        assert_int_equal(config.sdk_disabled, words[i].value);
        assert_int_equal(said.lines, words[i].warnings);
        oteli_config_fini(&config);
    }
}

TEST(the_log_level_holds_for_the_warnings_about_the_rest)
{
    setenv("OTEL_LOG_LEVEL", "Error", 1);
    setenv("OTEL_SDK_DISABLED", "perhaps", 1);
    struct oteli_config config;

    assert_int_equal(oteli_config_load(&config, NULL, true), OTEL_OK);

    assert_string_equal(config.log_level, "error");
    assert_int_equal(said.lines, 0);
    oteli_config_fini(&config);
}

TEST(the_clock_for_tests_is_for_code_only)
{
    struct oteli_config config;

    assert_int_equal(oteli_config_load(&config, OTEL_SDK_OPTIONS(.clock = "fake"), true), OTEL_OK);

    assert_string_equal(config.clock, "fake");
    oteli_config_fini(&config);
}

TEST(a_specific_setting_falls_back_to_the_general_one)
{
    setenv("OTEL_ATTRIBUTE_COUNT_LIMIT", "10", 1);
    setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "20", 1);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=b", 1);
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "30", 1);
    struct oteli_config config;

    assert_int_equal(oteli_config_load(&config, NULL, true), OTEL_OK);

    assert_int_equal(config.span_attribute_count_limit, 10);
    assert_int_equal(config.span_attribute_value_length_limit, 20);
    assert_int_equal(config.event_attribute_count_limit, 128); /* these stand for themselves */
    assert_int_equal(config.link_attribute_count_limit, 128);
    assert_string_equal(config.exporter_otlp_traces_headers, "a=b");
    assert_int_equal(config.exporter_otlp_traces_timeout, 30);
    oteli_config_fini(&config);
}

TEST(a_specific_setting_beats_the_general_one)
{
    setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "100", 1);
    setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "0", 1);
    setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "c=d", 1);
    setenv("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "0", 1);
    struct oteli_config config;

    const otel_status status = oteli_config_load(
        &config,
        OTEL_SDK_OPTIONS(.attribute_count_limit = 10, .attribute_value_length_limit = 20,
                         .exporter_otlp_headers = "a=b", .exporter_otlp_timeout = 30),
        true);

    assert_int_equal(status, OTEL_OK);
    assert_int_equal(config.span_attribute_count_limit, 100);
    assert_int_equal(config.span_attribute_value_length_limit, 0);
    assert_string_equal(config.exporter_otlp_traces_headers, "c=d");
    assert_true(config.exporter_otlp_traces_timeout == OTELI_UNLIMITED);
    oteli_config_fini(&config);
}

TEST(a_batch_is_made_to_fit_in_the_queue)
{
    static const struct {
        int64_t queue, batch; /* 0: unset */
        int64_t batch_used;
        size_t warnings;
    } cases[] = {
        {0, 0, 512, 0},     {1024, 0, 512, 0},  {1023, 0, 512, 1},  {256, 0, 256, 1},
        {0, 4096, 2048, 1}, {0, 2048, 2048, 1}, {0, 1025, 1025, 1}, {0, 1024, 1024, 0},
        {100, 200, 100, 1}, {1, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        said.lines = 0;
        struct oteli_config config;

        const otel_status status =
            oteli_config_load(&config,
                              OTEL_SDK_OPTIONS(.bsp_max_queue_size = cases[i].queue,
                                               .bsp_max_export_batch_size = cases[i].batch),
                              true);

        assert_int_equal(status, OTEL_OK);
        assert_int_equal(config.bsp_max_export_batch_size, cases[i].batch_used);
        assert_int_equal(said.lines, cases[i].warnings);
        oteli_config_fini(&config);
    }
}

TEST(errno_does_not_matter_and_stays)
{
    setenv("OTEL_BSP_SCHEDULE_DELAY", "1234", 1);
    setenv("OTEL_SDK_DISABLED", "perhaps", 1);
    struct oteli_config config;
    errno = ERANGE;

    assert_int_equal(oteli_config_load(&config, NULL, true), OTEL_OK);

    assert_int_equal(config.bsp_schedule_delay, 1234);
    assert_int_equal(errno, ERANGE);
    oteli_config_fini(&config);
}

TEST(every_allocation_may_fail)
{
    setenv("OTEL_SERVICE_NAME", "shop", 1);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=b", 1);
    setenv("OTEL_TRACES_EXPORTER", "console,foo", 1);
    for (size_t nth = 1;; nth++) {
        struct oteli_config config;
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);

        const otel_status status =
            oteli_config_load(&config, OTEL_SDK_OPTIONS(.propagators = "tracecontext"), true);

        const bool failed = oteli_leaks_failed();
        assert_int_equal(status, failed ? OTEL_ERROR_NO_MEMORY : OTEL_OK);
        if (!failed)
            oteli_config_fini(&config);
        oteli_leaks_check();
        if (!failed)
            break;
    }
}

/* The number in a variable as strtoll would read it if it were strict; -1 for none. */
static int64_t expected_number(const struct oteli_config_row *row)
{
    const char *text = getenv(row->variable);
    if (text == NULL)
        return -1;
    const char *at = text + strspn(text, " \t");
    const size_t digits = strspn(at, "0123456789");
    if (digits == 0 || at[digits + strspn(at + digits, " \t")] != '\0')
        return -1;
    errno = 0;
    const int64_t number = strtoll(at, NULL, 10);
    return errno == ERANGE || number < row->min || number > row->max ? -1 : number;
}

static uint64_t seed = 42;

static uint32_t next_random(uint32_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % below;
}

static void make_value(char *text, size_t size)
{
    static const char alphabet[] = "0123456789-+.ex \tm,";
    if (next_random(2)) {
        const uint64_t number = (uint64_t)next_random(UINT32_MAX) << next_random(33);
        snprintf(text, size, "%s%" PRIu64 "%s", next_random(4) ? "" : "-", number,
                 next_random(4) ? "" : "ms");
        return;
    }
    size_t length = next_random(22);
    for (size_t i = 0; i < length; i++)
        text[i] = alphabet[next_random(next_random(3) ? 10 : sizeof alphabet - 1)];
    text[length] = '\0';
}

static bool is_number(const struct oteli_config_row *row)
{
    return row->type == OTELI_TYPE_COUNT || row->type == OTELI_TYPE_DURATION ||
           row->type == OTELI_TYPE_TIMEOUT;
}

/* The value that a number's row has after loading, from what is in the environment. */
static int64_t expected_value(size_t index)
{
    const struct oteli_config_row *row = &oteli_config_rows[index];
    int64_t number = expected_number(row);
    if (number < 0 && row->default_text != NULL)
        number = strtoll(row->default_text, NULL, 10);
    if (number < 0)
        return OTELI_UNLIMITED;
    return number == 0 && row->type == OTELI_TYPE_TIMEOUT ? OTELI_UNLIMITED : number;
}

static size_t row_of(const char *name)
{
    size_t index = 0;
    while (strcmp(oteli_config_rows[index].name, name) != 0)
        index++;
    return index;
}

TEST(whatever_is_in_the_environment_the_documented_value_is_used)
{
    for (int round = 0; round < 5000; round++) {
        for (size_t i = 0; i < oteli_config_row_count; i++) {
            char text[64];
            make_value(text, sizeof text);
            if (is_number(&oteli_config_rows[i]))
                setenv(oteli_config_rows[i].variable, text, 1);
        }
        struct oteli_config config;

        assert_int_equal(oteli_config_load(&config, NULL, true), OTEL_OK);

        for (size_t i = 0; i < oteli_config_row_count; i++) {
            const struct oteli_config_row *row = &oteli_config_rows[i];
            if (!is_number(row))
                continue;
            int64_t expected = expected_value(i);
            if (strcmp(row->name, "bsp_max_export_batch_size") == 0) {
                const int64_t queue = expected_value(row_of("bsp_max_queue_size"));
                expected = expected < queue ? expected : queue;
            }
            const bool is_unset = expected_number(row) < 0;
            if (is_unset && strcmp(row->name, "span_attribute_count_limit") == 0)
                expected = expected_value(row_of("attribute_count_limit"));
            if (is_unset && strcmp(row->name, "span_attribute_value_length_limit") == 0)
                expected = expected_value(row_of("attribute_value_length_limit"));
            if (is_unset && strcmp(row->name, "exporter_otlp_traces_timeout") == 0)
                expected = expected_value(row_of("exporter_otlp_timeout"));
            int64_t value;
            memcpy(&value, (const char *)&config + row->offset, sizeof value);
            if (value != expected)
                fail_msg("%s=\"%s\" gave %" PRId64 ", not %" PRId64, row->variable,
                         getenv(row->variable), value, expected);
        }
        oteli_config_fini(&config);
    }
}
