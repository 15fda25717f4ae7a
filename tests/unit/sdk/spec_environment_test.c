/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/spec_environment_test.c - each variable of the specification: its default, values
 * that count, and what happens to those that do not. */
#include "common/config.h"

#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A value in the environment, what the setting is then, and whether there is a warning. NULL:
 * not in the environment; the setting is not set. */
struct
try {
    const char *value;
    const char *setting;
    bool warns;
};

static size_t warnings;
static char warning[1200];

static void note(void *state, otel_log_level level, const char *message)
{
    (void)state;
    warnings += level == OTEL_LOG_WARN;
    snprintf(warning, sizeof warning, "%s", message);
}

static int begin(void **state)
{
    (void)state;
    for (size_t i = 0; i < oteli_config_row_count; i++)
        unsetenv(oteli_config_rows[i].variable);
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

static const struct oteli_config_row *row_of(const char *name)
{
    for (size_t i = 0; i < oteli_config_row_count; i++)
        if (strcmp(oteli_config_rows[i].name, name) == 0)
            return &oteli_config_rows[i];
    fail_msg("there is no setting %s", name);
    return NULL;
}

static const char *setting_of(const struct oteli_config *config, const struct oteli_config_row *row)
{
    static char text[300];
    const void *field = (const char *)config + row->offset;
    switch (row->type) {
    case OTELI_TYPE_BOOL:
        return *(const bool *)field ? "true" : "false";
    case OTELI_TYPE_COUNT:
    case OTELI_TYPE_DURATION:
    case OTELI_TYPE_TIMEOUT:
        snprintf(text, sizeof text, "%" PRId64, *(const int64_t *)field);
        return *(const int64_t *)field == OTELI_UNLIMITED ? "unlimited" : text;
    case OTELI_TYPE_STRING:
    case OTELI_TYPE_ENUM:
    case OTELI_TYPE_LIST:
        break;
    }
    return *(char *const *)field != NULL ? *(char *const *)field : "unset";
}

/* Try a value of `variable`, and look at the setting `name`. */
static void check(const char *variable, const char *name, const struct try *try)
{
    struct oteli_config config;
    const char *expected = try->setting != NULL ? try->setting : "unset";
    if (try->value != NULL)
        setenv(variable, try->value, 1);
    else
        unsetenv(variable);
    warnings = 0;
    assert_int_equal(oteli_config_load(&config, NULL, true), OTEL_OK);
    const char *setting = setting_of(&config, row_of(name));
    if (strcmp(setting, expected) != 0)
        fail_msg("%s=\"%s\" gave %s, not %s", variable, try->value, setting, expected);
    if (warnings != try->warns)
        fail_msg("%s=\"%s\" gave %zu warnings", variable, try->value, warnings);
    if (try->warns) { /* which say what was given */
        assert_non_null(strstr(warning, variable));
        assert_non_null(strstr(warning, try->value));
    }
    oteli_config_fini(&config);
    unsetenv(variable);
}

static void check_all(const char *variable, const char *name, const struct try *tries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check(variable, name, &tries[i]);
}

#define CHECK(variable, name, tries) \
    check_all(variable, name, tries, sizeof(tries) / sizeof(tries)[0])

/* The rules of a type, for a variable with this default. */
static void check_boolean(const char *variable, const char *name)
{
    static const struct try tries[] = {
        {NULL, "false", false},    {"", "false", false},      {"true", "true", false},
        {"TRUE", "true", false},   {" True ", "true", false}, {"false", "false", false},
        {"FALSE", "false", false}, {"1", "false", true},      {"yes", "false", true},
        {"on", "false", true},     {"truee", "false", true},
    };
    CHECK(variable, name, tries);
}

/* `zero` is what the number 0 is; NULL: not a value. */
static void check_number(const char *variable, const char *name, const char *fallback,
                         const char *zero)
{
    static const char *const bad[] = {"-1",
                                      "1.5",
                                      "abc",
                                      "0x10",
                                      "1e3",
                                      "5s",
                                      "1 2",
                                      "+5",
                                      "1,000",
                                      "\xd9\xa1",
                                      "99999999999999999999999999",
                                      "--",
                                      "5ms"};
    const struct try zero_try = {"0", zero != NULL ? zero : fallback, zero == NULL};
    check(variable, name, &(struct try){NULL, fallback, false});
    check(variable, name, &(struct try){"", fallback, false});
    check(variable, name, &(struct try){" \t", fallback, false});
    check(variable, name, &(struct try){"7", "7", false});
    check(variable, name, &(struct try){" 7 ", "7", false});
    check(variable, name, &(struct try){"007", "7", false});
    check(variable, name, &zero_try);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check(variable, name, &(struct try){bad[i], fallback, true});
}

static void check_duration(const char *variable, const char *name, const char *fallback)
{
    check_number(variable, name, fallback, "0");
    check(variable, name, &(struct try){"2147483647", "2147483647", false});
}

static void check_timeout(const char *variable, const char *name, const char *fallback)
{
    check_number(variable, name, fallback, "unlimited");
    check(variable, name, &(struct try){"2147483647", "2147483647", false});
}

static void check_limit(const char *variable, const char *name, const char *fallback)
{
    check_number(variable, name, fallback, "0");
    check(variable, name, &(struct try){"2147483647", "2147483647", false});
}

AROUND_EACH(begin, end);

/* spec: E-OTEL_SDK_DISABLED configuration/sdk-environment-variables.md#boolean MUST stable */
TEST(E_OTEL_SDK_DISABLED_is_a_boolean)
{
    check_boolean("OTEL_SDK_DISABLED", "sdk_disabled");
}

/* spec: E-OTEL_ENTITIES entities/entity-propagation.md MUST development */
TEST(E_OTEL_ENTITIES_is_a_text)
{
    static const struct try tries[] = {
        {NULL, NULL, false}, {"", NULL, false}, {"host{host.id=1}", "host{host.id=1}", false}};
    CHECK("OTEL_ENTITIES", "entities", tries);
}

/* spec: E-OTEL_RESOURCE_ATTRIBUTES configuration/sdk-environment-variables.md#general-sdk-configuration MUST stable */
TEST(E_OTEL_RESOURCE_ATTRIBUTES_is_a_text)
{
    static const struct try tries[] = {
        {NULL, NULL, false}, {"", NULL, false}, {"a=1,b=%20", "a=1,b=%20", false}};
    CHECK("OTEL_RESOURCE_ATTRIBUTES", "resource_attributes", tries);
}

/* spec: E-OTEL_SERVICE_NAME configuration/sdk-environment-variables.md#general-sdk-configuration MUST stable */
TEST(E_OTEL_SERVICE_NAME_is_a_text)
{
    static const struct try tries[] = {
        {NULL, NULL, false}, {"", NULL, false}, {"shop", "shop", false}};
    CHECK("OTEL_SERVICE_NAME", "service_name", tries);
}

/* spec: E-OTEL_LOG_LEVEL configuration/sdk-environment-variables.md#enum MUST stable */
TEST(E_OTEL_LOG_LEVEL_is_a_word)
{
    static const struct try tries[] = {
        {NULL, "info", false},     {"", "info", false},     {"none", "none", false},
        {"error", "error", false}, {"WARN", "warn", false}, {"Info", "info", false},
        {"debug", "debug", false}, {"loud", "info", true},  {"3", "info", true},
    };
    CHECK("OTEL_LOG_LEVEL", "log_level", tries);
    setenv("OTEL_LOG_LEVEL", "info", 1); /* the level is the process's, and stays */
    struct oteli_config config;
    assert_int_equal(oteli_config_load(&config, NULL, true), OTEL_OK);
    oteli_config_fini(&config);
}

/* spec: E-OTEL_TRACES_SAMPLER configuration/sdk-environment-variables.md#general-sdk-configuration MUST stable */
TEST(E_OTEL_TRACES_SAMPLER_is_a_word)
{
    static const char usual[] = "parentbased_always_on";
    static const struct try tries[] = {
        {NULL, usual, false},
        {"", usual, false},
        {"always_on", "always_on", false},
        {"ALWAYS_OFF", "always_off", false},
        {"traceidratio", "traceidratio", false},
        {"parentbased_always_on", usual, false},
        {"parentbased_always_off", "parentbased_always_off", false},
        {"ParentBased_TraceIdRatio", "parentbased_traceidratio", false},
        {"trace-id-ratio", usual, true},
        {"always_on,always_off", usual, true},
        {"xray", usual, true},
        {"none", usual, true},
    };
    CHECK("OTEL_TRACES_SAMPLER", "traces_sampler", tries);
}

/* spec: E-OTEL_TRACES_SAMPLER_ARG configuration/sdk-environment-variables.md#general-sdk-configuration MUST stable */
TEST(E_OTEL_TRACES_SAMPLER_ARG_counts_only_with_its_sampler)
{
    struct oteli_config config;
    check("OTEL_TRACES_SAMPLER_ARG", "traces_sampler_arg", &(struct try){"0.5", NULL, false});

    setenv("OTEL_TRACES_SAMPLER", "traceidratio", 1);
    check("OTEL_TRACES_SAMPLER_ARG", "traces_sampler_arg", &(struct try){"0.5", "0.5", false});
    check("OTEL_TRACES_SAMPLER_ARG", "traces_sampler_arg", &(struct try){NULL, NULL, false});

    setenv("OTEL_TRACES_SAMPLER_ARG", "0.5", 1);
    assert_int_equal(
        oteli_config_load(&config, OTEL_SDK_OPTIONS(.traces_sampler = "traceidratio"), true),
        OTEL_OK);
    assert_null(config.traces_sampler_arg); /* it is for another sampler, that of the variable */
    oteli_config_fini(&config);
    assert_int_equal(oteli_config_load(&config,
                                       OTEL_SDK_OPTIONS(.traces_sampler = "traceidratio",
                                                        .traces_sampler_arg = "0.25"),
                                       true),
                     OTEL_OK);
    assert_string_equal(config.traces_sampler_arg, "0.25");
    oteli_config_fini(&config);
}

/* spec: E-OTEL_TRACES_SAMPLER_ARG configuration/sdk-environment-variables.md#general-sdk-configuration MUST stable */
TEST(E_OTEL_TRACES_SAMPLER_ARG_is_a_number_from_0_to_1)
{
    static const char *const good[] = {"0", "1", "0.25", " 1.0 ", "1e-3", ".5", "0.0001"};
    static const char *const bad[] = {"",    "1.5", "-0.1", "abc", "NaN",  "inf", "0x1",
                                      "0,5", "1 0", "1e3",  ".",   "0.5f", "50%"};
    double ratio;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(oteli_parse_ratio(good[i], &ratio));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(oteli_parse_ratio(bad[i], &ratio));
}

/* spec: E-OTEL_BSP_SCHEDULE_DELAY configuration/sdk-environment-variables.md#batch-span-processor MUST stable */
TEST(E_OTEL_BSP_SCHEDULE_DELAY_is_a_duration)
{
    check_duration("OTEL_BSP_SCHEDULE_DELAY", "bsp_schedule_delay", "5000");
}

/* spec: E-OTEL_BSP_EXPORT_TIMEOUT configuration/sdk-environment-variables.md#batch-span-processor MUST stable */
TEST(E_OTEL_BSP_EXPORT_TIMEOUT_is_a_timeout)
{
    check_timeout("OTEL_BSP_EXPORT_TIMEOUT", "bsp_export_timeout", "30000");
}

/* spec: E-OTEL_BSP_MAX_QUEUE_SIZE configuration/sdk-environment-variables.md#batch-span-processor MUST stable */
TEST(E_OTEL_BSP_MAX_QUEUE_SIZE_is_positive)
{
    setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1", 1); /* it fits into any */
    check_number("OTEL_BSP_MAX_QUEUE_SIZE", "bsp_max_queue_size", "2048", NULL);
}

/* spec: E-OTEL_BSP_MAX_EXPORT_BATCH_SIZE configuration/sdk-environment-variables.md#batch-span-processor MUST stable */
TEST(E_OTEL_BSP_MAX_EXPORT_BATCH_SIZE_is_positive_and_fits)
{
    check_number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "bsp_max_export_batch_size", "512", NULL);
    check("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "bsp_max_export_batch_size",
          &(struct try){"4096", "2048", true});
    setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "100", 1);
    check("OTEL_BSP_MAX_QUEUE_SIZE", "bsp_max_export_batch_size", &(struct try){"50", "50", true});
    check("OTEL_BSP_MAX_QUEUE_SIZE", "bsp_max_export_batch_size",
          &(struct try){"200", "100", false});
}

/* spec: E-OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT configuration/sdk-environment-variables.md#attribute-limits MUST stable */
TEST(E_OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT_is_a_limit)
{
    check_limit("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "attribute_value_length_limit", "unlimited");
    check_limit("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "span_attribute_value_length_limit",
                "unlimited");
}

/* spec: E-OTEL_ATTRIBUTE_COUNT_LIMIT configuration/sdk-environment-variables.md#attribute-limits MUST stable */
TEST(E_OTEL_ATTRIBUTE_COUNT_LIMIT_is_a_limit)
{
    check_limit("OTEL_ATTRIBUTE_COUNT_LIMIT", "attribute_count_limit", "128");
    check_limit("OTEL_ATTRIBUTE_COUNT_LIMIT", "span_attribute_count_limit", "128");
}

/* spec: E-OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT configuration/sdk-environment-variables.md#span-limits MUST stable */
TEST(E_OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT_beats_the_general_one)
{
    check_limit("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "span_attribute_value_length_limit",
                "unlimited");
    setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "9", 1);
    check_limit("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "span_attribute_value_length_limit", "9");
}

/* spec: E-OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT configuration/sdk-environment-variables.md#span-limits MUST stable */
TEST(E_OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT_beats_the_general_one)
{
    check_limit("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "span_attribute_count_limit", "128");
    setenv("OTEL_ATTRIBUTE_COUNT_LIMIT", "9", 1);
    check_limit("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "span_attribute_count_limit", "9");
}

/* spec: E-OTEL_SPAN_EVENT_COUNT_LIMIT configuration/sdk-environment-variables.md#span-limits MUST stable */
TEST(E_OTEL_SPAN_EVENT_COUNT_LIMIT_is_a_limit)
{
    check_limit("OTEL_SPAN_EVENT_COUNT_LIMIT", "span_event_count_limit", "128");
}

/* spec: E-OTEL_SPAN_LINK_COUNT_LIMIT configuration/sdk-environment-variables.md#span-limits MUST stable */
TEST(E_OTEL_SPAN_LINK_COUNT_LIMIT_is_a_limit)
{
    check_limit("OTEL_SPAN_LINK_COUNT_LIMIT", "span_link_count_limit", "128");
}

/* spec: E-OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT configuration/sdk-environment-variables.md#span-limits MUST stable */
TEST(E_OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT_is_a_limit)
{
    check_limit("OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", "event_attribute_count_limit", "128");
}

/* spec: E-OTEL_LINK_ATTRIBUTE_COUNT_LIMIT configuration/sdk-environment-variables.md#span-limits MUST stable */
TEST(E_OTEL_LINK_ATTRIBUTE_COUNT_LIMIT_is_a_limit)
{
    check_limit("OTEL_LINK_ATTRIBUTE_COUNT_LIMIT", "link_attribute_count_limit", "128");
}

/* spec: E-OTEL_EXPORTER_OTLP_TIMEOUT protocol/exporter.md#configuration-options MUST stable */
TEST(E_OTEL_EXPORTER_OTLP_TIMEOUT_is_a_timeout)
{
    check_timeout("OTEL_EXPORTER_OTLP_TIMEOUT", "exporter_otlp_timeout", "10000");
    check_timeout("OTEL_EXPORTER_OTLP_TIMEOUT", "exporter_otlp_traces_timeout", "10000");
}

/* spec: E-OTEL_EXPORTER_OTLP_TRACES_TIMEOUT protocol/exporter.md#configuration-options MUST stable */
TEST(E_OTEL_EXPORTER_OTLP_TRACES_TIMEOUT_beats_the_general_one)
{
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "9", 1);
    check_timeout("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "exporter_otlp_traces_timeout", "9");
}

/* spec: E-OTEL_EXPORTER_OTLP_PROTOCOL protocol/exporter.md#specify-protocol MUST stable */
TEST(E_OTEL_EXPORTER_OTLP_PROTOCOL_is_a_word)
{
    static const char usual[] = "http/protobuf";
    static const struct try tries[] = {
        {NULL, usual, false},
        {"", usual, false},
        {"http/protobuf", usual, false},
        {"HTTP/Protobuf", usual, false},
        {"http/json", "http/json", false},
        {"gRPC", "grpc", false},
        {"http", usual, true},
        {"protobuf", usual, true},
    };
    CHECK("OTEL_EXPORTER_OTLP_PROTOCOL", "exporter_otlp_traces_protocol", tries);
    CHECK("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "exporter_otlp_traces_protocol", tries);
}

/* spec: E-OTEL_EXPORTER_OTLP_HEADERS protocol/exporter.md#configuration-options MUST stable */
TEST(E_OTEL_EXPORTER_OTLP_HEADERS_gives_way_to_those_of_traces)
{
    static const struct try tries[] = {
        {NULL, "b=2", false}, {"", "b=2", false}, {"a=1", "a=1", false}};
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "b=2", 1);
    CHECK("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "exporter_otlp_traces_headers", tries);
}

/* spec: E-OTEL_C configuration/sdk-environment-variables.md#language-specific-environment-variables SHOULD stable */
TEST(E_OTEL_C_variables_of_our_own_have_our_prefix)
{
    static const struct try detectors[] = {
        {NULL, "process,host,container,service", false},
        {"host, OS", "host,os", false},
        {"none", "none", false},
        {"host,cloud", "host", true},
        {"cloud", "process,host,container,service", true},
    };
    CHECK("OTEL_C_RESOURCE_DETECTORS", "resource_detectors", detectors);
    for (size_t i = 0; i < oteli_config_row_count; i++) {
        const char *variable = oteli_config_rows[i].variable;
        assert_true(strncmp(variable, "OTEL_", 5) == 0 || strcmp(variable, "NO_COLOR") == 0);
    }
}

/* spec: E-code configuration/sdk-environment-variables.md#implementation-guidelines MUST stable */
TEST(E_code_each_variable_of_the_sdk_can_be_set_in_code)
{
    /* Those of an exporter, and of the profiler, are in options of their own. */
    for (size_t i = 0; i < oteli_config_row_count; i++) {
        const struct oteli_config_row *row = &oteli_config_rows[i];
        const bool is_elsewhere = strcmp(row->variable, "NO_COLOR") == 0 ||
                                  strstr(row->variable, "CONFIG_FILE") != NULL ||
                                  strncmp(row->variable, "OTEL_EXPORTER_OTLP_", 19) == 0 ||
                                  strncmp(row->variable, "OTEL_C_OTLP_", 12) == 0 ||
                                  strncmp(row->variable, "OTEL_C_PROFILER", 15) == 0 ||
                                  strncmp(row->variable, "OTEL_C_PPROF_", 13) == 0 ||
                                  strncmp(row->variable, "OTEL_C_SPOOL_", 13) == 0 ||
                                  strncmp(row->variable, "OTEL_C_FUNCTIONS_", 17) == 0;
        if (row->option_offset < 0 && !is_elsewhere)
            fail_msg("%s cannot be set in code", row->variable);
    }
    struct oteli_config config;
    setenv("OTEL_SDK_DISABLED", "true", 1);
    assert_int_equal(oteli_config_load(&config, OTEL_SDK_OPTIONS(.sdk_disabled = "false"), true),
                     OTEL_OK);
    assert_false(config.sdk_disabled);
    oteli_config_fini(&config);
}
