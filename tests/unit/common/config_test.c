/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/config_test.c - specification of common/config/configuration.h and
 * common/config/config_text.h: how settings are read, where each comes from, and what is said of a
 * bad one. Each variable by itself is in tests/unit/sdk/spec_environment_test.c. */
#include "common/config/config_text.h"
#include "common/config/configuration.h"

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

static struct oteli_config config; /* of `load`, until the next */

static int begin(void **state)
{
    (void)state;
    for (size_t i = 0; i < oteli_config_row_count; i++)
        unsetenv(oteli_config_rows[i].variable);
    memset(&said, 0, sizeof said);
    memset(&config, 0, sizeof config);
    otel_log_set_handler(note, NULL);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    oteli_config_fini(&config);
    oteli_leaks_check();
    otel_log_set_handler(NULL, NULL);
    return 0;
}

static void load(const otel_sdk_options *options)
{
    oteli_config_fini(&config);
    assert_int_equal(oteli_config_load(&config, options, true), OTEL_OK);
}

AROUND_EACH(begin, end);

/* Whoever adds a row with a default that is not one of its values finds out here. */
TEST(every_default_can_be_given_in_the_environment)
{
    for (size_t i = 0; i < oteli_config_row_count; i++)
        if (oteli_config_rows[i].default_text != NULL)
            setenv(oteli_config_rows[i].variable, oteli_config_rows[i].default_text, 1);

    load(NULL);

    assert_int_equal(said.lines, 0);
}

TEST(the_environment_is_read_only_when_asked_to)
{
    setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4096", 1);

    assert_int_equal(oteli_config_load(&config, NULL, false), OTEL_OK);

    assert_int_equal(config.bsp_max_queue_size, 16777216 / 64);
}

static bool keep_all(void *state, const otel_tail *tail)
{
    (void)state;
    (void)tail;
    return true;
}

/* Half a member is no member, and a function without its state is none. */
TEST(members_beyond_the_callers_size_are_unset)
{
    int mine;
    const size_t whole = sizeof(otel_sdk_options);
    const size_t delay = offsetof(otel_sdk_options, bsp_schedule_delay);
    const size_t keep = offsetof(otel_sdk_options, tail_keep);
    const size_t keep_state = offsetof(otel_sdk_options, tail_keep_state);
    const struct {
        size_t size;
        bool has_delay, has_keep;
    } rows[] = {{delay, false, false},        {delay + 4, false, false},
                {delay + 8, true, false},     {keep, true, false},
                {keep_state, true, false},    {keep_state + 4, true, false},
                {keep_state + 8, true, true}, {whole, true, true}};
    otel_sdk_options options = {.service_name = "old",
                                .bsp_schedule_delay = 1,
                                .tail_keep = keep_all,
                                .tail_keep_state = &mine};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        options.size = rows[i].size;
        load(&options);
        assert_string_equal(config.service_name, "old");
        assert_int_equal(config.bsp_schedule_delay, rows[i].has_delay ? 1 : 5000);
        assert_true(config.tail_keep == (rows[i].has_keep ? keep_all : NULL));
        assert_ptr_equal(config.tail_keep_state, rows[i].has_keep ? &mine : NULL);
    }
    options.size = 0;
    struct oteli_config none;
    assert_int_equal(oteli_config_load(&none, &options, true), OTEL_ERROR_INVALID_ARGUMENT);
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
    {"OTEL_BSP_MAX_QUEUE_SIZE", "0",
     "is not a whole number from 1 to 2147483647; it counts as unset"},
    {"OTEL_C_QUEUE_MAX_BYTES", "1048575",
     "is not a whole number from 1048576 to 1099511627776; using 16777216"},
    {"OTEL_BSP_SCHEDULE_DELAY", "5s",
     "is not a whole number of milliseconds from 0 to 2147483647; using 5000"},
    {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1.5",
     "is not a whole number of milliseconds from 0 to 2147483647; it counts as unset"},
    {"OTEL_SDK_DISABLED", "1", "is neither true nor false; using false"},
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

TEST(a_bad_variable_is_one_warning)
{
    for (size_t i = 0; i < sizeof bad_values / sizeof bad_values[0]; i++) {
        const struct bad_value *bad = &bad_values[i];
        char warning[400];
        snprintf(warning, sizeof warning, "%s=\"%s\" %s", bad->variable, bad->value, bad->warning);
        setenv(bad->variable, bad->value, 1);
        said.lines = 0;
        load(NULL);
        assert_int_equal(said.lines, 1);
        assert_int_equal(said.level, OTEL_LOG_WARN);
        assert_string_equal(said.last, warning);
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
        char error[300];
        snprintf(error, sizeof error, "otel_sdk_options.%s", bad[i].error);
        said.lines = 0;
        assert_int_equal(oteli_config_load(&config, bad[i].options, true), bad[i].status);
        assert_int_equal(said.lines, 1);
        assert_int_equal(said.level, OTEL_LOG_ERROR);
        assert_string_equal(said.last, error);
    }
}

TEST(errno_does_not_matter_and_stays)
{
    setenv("OTEL_BSP_SCHEDULE_DELAY", "1234", 1);
    setenv("OTEL_SDK_DISABLED", "perhaps", 1);
    errno = ERANGE;

    load(NULL);

    assert_int_equal(config.bsp_schedule_delay, 1234);
    assert_int_equal(errno, ERANGE);
}

TEST(every_allocation_may_fail)
{
    setenv("OTEL_SERVICE_NAME", "shop", 1);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=b", 1);
    setenv("OTEL_TRACES_EXPORTER", "console,foo", 1);
    bool has_failed = true;
    for (size_t nth = 1; has_failed; nth++) {
        oteli_leaks_check();
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        const otel_status status =
            oteli_config_load(&config, OTEL_SDK_OPTIONS(.propagators = "tracecontext"), true);
        has_failed = oteli_leaks_failed();
        assert_int_equal(status, has_failed ? OTEL_ERROR_NO_MEMORY : OTEL_OK);
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

static size_t row_of(const char *name)
{
    size_t index = 0;
    while (strcmp(oteli_config_rows[index].name, name) != 0)
        index++;
    return index;
}

TEST(E_OTEL_numbers_have_the_defaults_of_the_specification)
{
    static const char *const rows[][2] = {
        {"bsp_schedule_delay", "5000"},         {"bsp_export_timeout", "30000"},
        {"bsp_max_queue_size", NULL},           {"bsp_max_export_batch_size", "512"},
        {"attribute_value_length_limit", NULL}, {"attribute_count_limit", "128"},
        {"span_event_count_limit", "128"},      {"span_link_count_limit", "128"},
        {"event_attribute_count_limit", "128"}, {"link_attribute_count_limit", "128"},
        {"exporter_otlp_timeout", "10000"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const text = oteli_config_rows[row_of(rows[i][0])].default_text;
        if (rows[i][1] == NULL)
            assert_null(text);
        else
            assert_string_equal(text, rows[i][1]);
    }
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
    if (number < 0 && strcmp(row->name, "bsp_max_queue_size") == 0)
        number = expected_value(row_of("queue_max_bytes")) / 64;
    if (number < 0 && row->default_text != NULL)
        number = strtoll(row->default_text, NULL, 10);
    if (number < 0)
        return OTELI_UNLIMITED;
    return number == 0 && row->type == OTELI_TYPE_TIMEOUT ? OTELI_UNLIMITED : number;
}

/* spec: E-OTEL_BSP_SCHEDULE_DELAY configuration/sdk-environment-variables.md#batch-span-processor
 * MUST stable */
/* spec: E-OTEL_BSP_EXPORT_TIMEOUT configuration/sdk-environment-variables.md#batch-span-processor
 * MUST stable */
/* spec: E-OTEL_BSP_MAX_QUEUE_SIZE configuration/sdk-environment-variables.md#batch-span-processor
 * MUST stable */
/* spec: E-OTEL_BSP_MAX_EXPORT_BATCH_SIZE
 * configuration/sdk-environment-variables.md#batch-span-processor MUST stable */
/* spec: E-OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT
 * configuration/sdk-environment-variables.md#attribute-limits MUST stable */
/* spec: E-OTEL_ATTRIBUTE_COUNT_LIMIT configuration/sdk-environment-variables.md#attribute-limits
 * MUST stable */
/* spec: E-OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT
 * configuration/sdk-environment-variables.md#span-limits MUST stable */
/* spec: E-OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT configuration/sdk-environment-variables.md#span-limits
 * MUST stable */
/* spec: E-OTEL_SPAN_EVENT_COUNT_LIMIT configuration/sdk-environment-variables.md#span-limits MUST
 * stable */
/* spec: E-OTEL_SPAN_LINK_COUNT_LIMIT configuration/sdk-environment-variables.md#span-limits MUST
 * stable */
/* spec: E-OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT configuration/sdk-environment-variables.md#span-limits
 * MUST stable */
/* spec: E-OTEL_LINK_ATTRIBUTE_COUNT_LIMIT configuration/sdk-environment-variables.md#span-limits
 * MUST stable */
/* spec: E-OTEL_EXPORTER_OTLP_TIMEOUT protocol/exporter.md#configuration-options MUST stable */
/* spec: E-OTEL_EXPORTER_OTLP_TRACES_TIMEOUT protocol/exporter.md#configuration-options MUST
 * stable */
TEST(E_OTEL_whatever_number_is_in_the_environment_the_documented_value_is_used)
{
    for (int round = 0; round < 5000; round++) {
        for (size_t i = 0; i < oteli_config_row_count; i++) {
            char text[64];
            make_value(text, sizeof text);
            if (is_number(&oteli_config_rows[i]))
                setenv(oteli_config_rows[i].variable, text, 1);
        }
        load(NULL);
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
    }
}

/* ---- where each comes from
 * ----------------------------------------------------------------------- */

/* Each line: a variable, and where its value came from. */
static void assert_origins(const char *expected)
{
    static const char *const words[] = {[OTELI_FROM_DEFAULT] = "default",
                                        [OTELI_FROM_ENVIRONMENT] = "environment",
                                        [OTELI_FROM_CODE] = "code",
                                        [OTELI_FROM_GENERAL] = "general"};
    while (*expected != '\0') {
        char text[200];
        const size_t name = strcspn(expected, " ");
        const size_t length = strcspn(expected, "\n");
        size_t row = 0;
        while (strncmp(oteli_config_rows[row].variable, expected, name) != 0 ||
               oteli_config_rows[row].variable[name] != '\0')
            assert_true(++row < oteli_config_row_count);
        const struct oteli_config_giver *giver = &config.givers[row];
        const bool is_general = giver->source == OTELI_FROM_GENERAL;
        snprintf(text, sizeof text, "%s %s%s%s\n", oteli_config_rows[row].variable,
                 words[giver->source], is_general ? " " : "",
                 is_general ? oteli_config_rows[giver->general].variable : "");
        if (strlen(text) != length + 1 || strncmp(text, expected, length) != 0)
            fail_msg("%snot\n%.*s", text, (int)length, expected);
        expected += length + 1;
    }
}

TEST(every_value_knows_where_it_comes_from)
{
    setenv("OTEL_TRACES_SAMPLER", "always_off", 1);
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "700", 1);
    setenv("OTEL_BSP_SCHEDULE_DELAY", "soon", 1);
    setenv("OTEL_TRACES_EXPORTER", "otlp,pigeon", 1);
    setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100", 1);

    load(OTEL_SDK_OPTIONS(.service_name = "shop"));

    assert_origins("OTEL_SERVICE_NAME code\n"
                   "OTEL_TRACES_SAMPLER environment\n"
                   "OTEL_PROPAGATORS default\n"
                   "OTEL_EXPORTER_OTLP_TIMEOUT environment\n"
                   "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT general OTEL_EXPORTER_OTLP_TIMEOUT\n"
                   "OTEL_BSP_SCHEDULE_DELAY default\n"
                   "OTEL_BSP_MAX_EXPORT_BATCH_SIZE default\n"
                   "OTEL_TRACES_EXPORTER environment\n");
}

TEST(an_argument_is_for_the_sampler_that_reads_it)
{
    static const struct {
        const char *sampler, *argument, *setting, *origin;
    } rows[] = {
        {NULL, "0.5", NULL, "default"},
        {"parentbased_traceidratio", "10", "1.0", "default"},
        {"parentbased_traceidratio", "1/10", "1.0", "default"},
        {"parentbased_traceidratio", "10%", "1.0", "default"},
        {"parentbased_traceidratio", "-1", "1.0", "default"},
        {"parentbased_jaeger_remote", "endpoint=http://localhost", "endpoint=http://localhost",
         "environment"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char expected[200];
        if (rows[i].sampler != NULL)
            setenv("OTEL_TRACES_SAMPLER", rows[i].sampler, 1);
        setenv("OTEL_TRACES_SAMPLER_ARG", rows[i].argument, 1);
        load(NULL);
        snprintf(expected, sizeof expected, "OTEL_TRACES_SAMPLER_ARG %s\n", rows[i].origin);
        assert_origins(expected);
        if (rows[i].setting != NULL)
            assert_string_equal(config.traces_sampler_arg, rows[i].setting);
        else
            assert_null(config.traces_sampler_arg);
    }
}

/* ---- common/config/config_text.h
 * ------------------------------------------------------------------------ */

static const struct oteli_config_row list_row = {.type = OTELI_TYPE_LIST,
                                                 .words = "one two none -three !four"};
static const struct oteli_config_row word_row = {.type = OTELI_TYPE_ENUM,
                                                 .words = "on one -three !four"};

struct parsed {
    const char *text;
    bool in_code;
    otel_status status;
    const char *result;  /* NULL: no text */
    const char *culprit; /* where status is not OTEL_OK */
};

static void check(const struct oteli_config_row *row, const struct parsed *expected)
{
    struct oteli_setting setting;
    otel_slice culprit = oteli_slice_of("");
    oteli_leaks_begin();

    const otel_status status = oteli_setting_parse(row, oteli_slice_of(expected->text),
                                                   expected->in_code, &setting, &culprit);

    assert_int_equal(status, expected->status);
    if (expected->culprit != NULL) {
        assert_int_equal(culprit.length, strlen(expected->culprit));
        assert_memory_equal(culprit.data, expected->culprit, culprit.length);
    }
    if (expected->result != NULL)
        assert_string_equal(setting.text, expected->result);
    else
        assert_null(setting.text);
    free(setting.text);
    oteli_leaks_check();
}

TEST(a_list_keeps_its_good_words_once_and_in_order)
{
    static const struct parsed lists[] = {
        {"two,one", false, OTEL_OK, "two,one", NULL},
        {" ONE , ,one,Two,", false, OTEL_OK, "one,two", NULL},
        {"none", false, OTEL_OK, "none", NULL},
        {" None,none", false, OTEL_OK, "none", NULL},
        {", ,", false, OTEL_OK, NULL, NULL},
        {"one,four", true, OTEL_OK, "one,four", NULL},
        {"one,four", false, OTEL_ERROR_INVALID_ARGUMENT, "one", "four"},
        {"Six,one", false, OTEL_ERROR_INVALID_ARGUMENT, "one", "Six"},
        {"o,on,ones,one", false, OTEL_ERROR_INVALID_ARGUMENT, "one", "o"},
        {"three,six,two", false, OTEL_ERROR_UNSUPPORTED, "two", "three"},
        {"-three", false, OTEL_ERROR_INVALID_ARGUMENT, NULL, "-three"},
        {"one two", false, OTEL_ERROR_INVALID_ARGUMENT, NULL, "one two"},
        {"six", false, OTEL_ERROR_INVALID_ARGUMENT, NULL, "six"},
        {"one,NONE", false, OTEL_ERROR_INVALID_ARGUMENT, "one", "NONE"},
        {"none,two", false, OTEL_ERROR_INVALID_ARGUMENT, "two", "none"},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        check(&list_row, &lists[i]);
}

TEST(a_word_is_whole_and_in_any_case)
{
    static const struct parsed words[] = {
        {"on", false, OTEL_OK, "on", NULL},
        {"\tONE ", false, OTEL_OK, "one", NULL},
        {"four", true, OTEL_OK, "four", NULL},
        {"four", false, OTEL_ERROR_INVALID_ARGUMENT, NULL, "four"},
        {"!four", true, OTEL_ERROR_INVALID_ARGUMENT, NULL, "!four"},
        {"three", true, OTEL_ERROR_UNSUPPORTED, NULL, "three"},
        {"o", false, OTEL_ERROR_INVALID_ARGUMENT, NULL, "o"},
        {"on one", false, OTEL_ERROR_INVALID_ARGUMENT, NULL, "on one"},
        {"on,one", false, OTEL_ERROR_INVALID_ARGUMENT, NULL, "on,one"},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        check(&word_row, &words[i]);
}

struct ratio {
    const char *text;
    double value; /* -1: refused */
};

static const struct ratio ratios[] = {
    {"0", 0},
    {"1", 1},
    {"0.5", 0.5},
    {".5", 0.5},
    {"1.", 1},
    {" 0.25\t", 0.25},
    {"0.1", 0.1},
    {"0.0001", 0.0001},
    {"1e-4", 0.0001},
    {"1e-04", 0.0001},
    {"2.5E-1", 0.25},
    {"0.01e+2", 1},
    {"100e-2", 1},
    {"0e999999999999", 0},
    {"1e-999999999999", 0},
    {"0.333333333333333333333333333", 1.0 / 3},
    {"1.00000000000000000000000000", 1},
    {"000000000000000000000000.5", 0.5},
    {"1000000000000000000000000e-24", 1},
    {"", -1},
    {" ", -1},
    {".", -1},
    {"e5", -1},
    {".e1", -1},
    {"1.5", -1},
    {"1.0000001", -1},
    {"10", -1},
    {"1e1", -1},
    {"1e999999999999", -1},
    {"99999999999999999999999999", -1},
    {"-0.1", -1},
    {"-0", -1},
    {"+0.5", -1},
    {"0,5", -1},
    {"0.5x", -1},
    {"0.5 0.5", -1},
    {"0.5.5", -1},
    {"0.5e", -1},
    {"0.5e-", -1},
    {"0.5e1.0", -1},
    {"0.5e0.0", -1},
    {"0.5e-1x", -1},
    {"0x1", -1},
    {"0x1p-1", -1},
    {"nan", -1},
    {"NaN", -1},
    {"inf", -1},
    {"infinity", -1},
    {"abc", -1},
    {"50%", -1},
};

/* spec: E-OTEL_TRACES_SAMPLER_ARG
 * configuration/sdk-environment-variables.md#general-sdk-configuration MUST stable */
TEST(E_OTEL_TRACES_SAMPLER_ARG_is_a_decimal_number_from_zero_to_one)
{
    for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++) {
        double value = -1;

        const bool good = oteli_parse_ratio(ratios[i].text, &value);

        if (good != (ratios[i].value >= 0) || value < ratios[i].value - 1e-16 ||
            value > ratios[i].value + 1e-16)
            fail_msg("\"%s\" gave %d, %.17g", ratios[i].text, good, value);
    }
    double untouched = 7;
    assert_false(oteli_parse_ratio(NULL, &untouched));
    assert_true(untouched > 6);
}

/* What people write has at most 15 digits and comes out exactly as a compiler reads it. */
TEST(short_ratios_are_exact)
{
    for (int i = 0; i < 10000; i++) {
        char text[32];
        snprintf(text, sizeof text, "0.%0*" PRIu32, 1 + i % 9, (uint32_t)i * UINT32_C(2654435761));
        double value;

        assert_true(oteli_parse_ratio(text, &value));

        const double expected = strtod(text, NULL);
        assert_memory_equal(&value, &expected, sizeof value);
    }
}
