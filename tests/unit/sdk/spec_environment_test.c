/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/spec_environment_test.c - each variable of the specification: its default, values
 * that count, and what happens to those that do not. */
#include "common/config/configuration.h"

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

/* Try a value of `variable`, beside options, and look at the setting `name`. */
static void check_with(const otel_sdk_options *options, const char *variable, const char *name,
                       const struct try *try)
{
    struct oteli_config config;
    const char *expected = try->setting != NULL ? try->setting : "unset";
    if (try->value != NULL)
        setenv(variable, try->value, 1);
    else
        unsetenv(variable);
    warnings = 0;
    assert_int_equal(oteli_config_load(&config, options, true), OTEL_OK);
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

static void check(const char *variable, const char *name, const struct try *try)
{
    check_with(NULL, variable, name, try);
}

static void check_all(const char *variable, const char *name, const struct try *tries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check(variable, name, &tries[i]);
}

#define CHECK(variable, name, tries) \
    check_all(variable, name, tries, sizeof(tries) / sizeof(tries)[0])

AROUND_EACH(begin, end);

/* spec: E-OTEL_SDK_DISABLED configuration/sdk-environment-variables.md#boolean MUST stable */
TEST(E_OTEL_SDK_DISABLED_is_a_boolean)
{
    static const struct try tries[] = {
        {NULL, "false", false},    {"", "false", false},      {"true", "true", false},
        {"TRUE", "true", false},   {" True ", "true", false}, {"false", "false", false},
        {"FALSE", "false", false}, {"1", "false", true},      {"yes", "false", true},
        {"on", "false", true},     {"truee", "false", true},
    };
    CHECK("OTEL_SDK_DISABLED", "sdk_disabled", tries);
}

/* spec: E-OTEL_ENTITIES entities/entity-propagation.md MUST development */
/* spec: E-OTEL_RESOURCE_ATTRIBUTES
 * configuration/sdk-environment-variables.md#general-sdk-configuration MUST stable */
/* spec: E-OTEL_SERVICE_NAME configuration/sdk-environment-variables.md#general-sdk-configuration
 * MUST stable */
/* spec: E-OTEL_EXPORTER_OTLP_HEADERS protocol/exporter.md#configuration-options MUST stable */
TEST(E_OTEL_texts_are_as_they_are_given)
{
    static const struct try tries[] = {
        {NULL, NULL, false}, {"", NULL, false}, {" a=1,b{%20}", " a=1,b{%20}", false}};
    static const struct try below[] = {
        {NULL, "b=2", false}, {"", "b=2", false}, {"a=1", "a=1", false}};
    CHECK("OTEL_ENTITIES", "entities", tries);
    CHECK("OTEL_RESOURCE_ATTRIBUTES", "resource_attributes", tries);
    CHECK("OTEL_SERVICE_NAME", "service_name", tries);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "b=2", 1); /* it gives way to that of traces */
    CHECK("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "exporter_otlp_traces_headers", below);
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
    setenv("OTEL_LOG_LEVEL", "Error", 1); /* it holds for the warnings about the rest */
    check("OTEL_SDK_DISABLED", "sdk_disabled", &(struct try){"perhaps", "false", false});
    setenv("OTEL_LOG_LEVEL", "info", 1); /* the level is the process's, and stays */
    struct oteli_config config;
    assert_int_equal(oteli_config_load(&config, NULL, true), OTEL_OK);
    oteli_config_fini(&config);
}

/* spec: E-OTEL_TRACES_SAMPLER configuration/sdk-environment-variables.md#general-sdk-configuration
 * MUST stable */
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

/* spec: E-OTEL_TRACES_SAMPLER_ARG
 * configuration/sdk-environment-variables.md#general-sdk-configuration MUST stable */
TEST(E_OTEL_TRACES_SAMPLER_ARG_counts_only_with_its_sampler)
{
    check("OTEL_TRACES_SAMPLER_ARG", "traces_sampler_arg", &(struct try){"0.5", NULL, false});

    setenv("OTEL_TRACES_SAMPLER", "traceidratio", 1);
    check("OTEL_TRACES_SAMPLER_ARG", "traces_sampler_arg", &(struct try){"0.5", "0.5", false});
    check("OTEL_TRACES_SAMPLER_ARG", "traces_sampler_arg", &(struct try){NULL, "1.0", false});

    /* An argument of the environment is for the sampler of the environment. */
    check_with(OTEL_SDK_OPTIONS(.traces_sampler = "traceidratio"), "OTEL_TRACES_SAMPLER_ARG",
               "traces_sampler_arg", &(struct try){"0.5", "1.0", false});
    check_with(OTEL_SDK_OPTIONS(.traces_sampler = "traceidratio", .traces_sampler_arg = "0.25"),
               "OTEL_TRACES_SAMPLER_ARG", "traces_sampler_arg",
               &(struct try){"0.5", "0.25", false});
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

/* spec: E-OTEL_BSP_MAX_EXPORT_BATCH_SIZE
 * configuration/sdk-environment-variables.md#batch-span-processor MUST stable */
TEST(E_OTEL_BSP_MAX_EXPORT_BATCH_SIZE_fits_into_the_queue)
{
    static const char name[] = "bsp_max_export_batch_size";
    static const struct try batches[] = {{"262145", "262144", true},
                                         {"262144", "262144", true},
                                         {"131073", "131073", true},
                                         {"131072", "131072", false}};
    static const struct try queues[] = {
        {"1024", "512", false}, {"1023", "512", true}, {"256", "256", true}, {"1", "1", true}};
    CHECK("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", name, batches);
    CHECK("OTEL_BSP_MAX_QUEUE_SIZE", name, queues);
    check_with(OTEL_SDK_OPTIONS(.bsp_max_export_batch_size = 200), "OTEL_BSP_MAX_QUEUE_SIZE", name,
               &(struct try){"100", "100", true});
    const otel_sdk_options *const both =
        OTEL_SDK_OPTIONS(.bsp_max_queue_size = 100, .bsp_max_export_batch_size = 200);
    struct oteli_config config;
    assert_int_equal(oteli_config_load(&config, both, true), OTEL_OK);
    oteli_config_fini(&config);
    assert_string_equal(warning, "a batch of 200 spans does not fit in a queue of 100; "
                                 "using batches of 100");
}

/* spec: E-OTEL_C configuration/sdk-environment-variables.md#language-specific-environment-variables
 * SHOULD stable */
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
    /* Those of an exporter, and of HTTP spans, are in options of their own. */
    static const char *const elsewhere[] = {"NO_COLOR",
                                            "OTEL_CONFIG_FILE",
                                            "OTEL_EXPERIMENTAL_CONFIG_FILE",
                                            "OTEL_EXPORTER_OTLP_",
                                            "OTEL_C_OTLP_",
                                            "OTEL_C_SPOOL_",
                                            "OTEL_C_FUNCTIONS_",
                                            "OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS"};
    for (size_t i = 0; i < oteli_config_row_count; i++) {
        const struct oteli_config_row *row = &oteli_config_rows[i];
        bool is_elsewhere = false;
        for (size_t k = 0; k < sizeof elsewhere / sizeof *elsewhere; k++)
            is_elsewhere |= strncmp(row->variable, elsewhere[k], strlen(elsewhere[k])) == 0;
        if (row->option_offset < 0 && !is_elsewhere)
            fail_msg("%s cannot be set in code", row->variable);
    }
}

/* spec: E-code configuration/sdk-environment-variables.md#implementation-guidelines MUST stable */
TEST(E_code_beats_the_environment)
{
    static const char errors[] = "OTEL_C_TAIL_KEEP_ERRORS";
    const struct {
        const otel_sdk_options *code;
        const char *variable;
        struct try environment;
    } rows[] = {
        {OTEL_SDK_OPTIONS(.sdk_disabled = "false"), "OTEL_SDK_DISABLED", {"true", "false", false}},
        {OTEL_SDK_OPTIONS(.tail_keep_errors = NULL), errors, {NULL, "false", false}},
        {OTEL_SDK_OPTIONS(.tail_keep_errors = NULL), errors, {"true", "true", false}},
        {OTEL_SDK_OPTIONS(.tail_keep_errors = ""), errors, {"true", "true", false}},
        {OTEL_SDK_OPTIONS(.tail_keep_errors = " False "), errors, {"true", "false", false}},
        {OTEL_SDK_OPTIONS(.tail_keep_errors = "TRUE"), errors, {"false", "true", false}},
        {OTEL_SDK_OPTIONS(.service_name = "code"), "OTEL_SERVICE_NAME", {"other", "code", false}},
        {OTEL_SDK_OPTIONS(.service_name = ""), "OTEL_SERVICE_NAME", {NULL, NULL, false}},
        {OTEL_SDK_OPTIONS(.clock = " "), "OTEL_C_CLOCK", {" ", "auto", false}},
        {OTEL_SDK_OPTIONS(.clock = "fake"), "OTEL_C_CLOCK", {"tsc", "fake", false}},
        {OTEL_SDK_OPTIONS(.traces_exporter = "NONE"),
         "OTEL_TRACES_EXPORTER",
         {"console", "none", false}},
        {OTEL_SDK_OPTIONS(.held_max_bytes = 2000), "OTEL_C_HELD_MAX_BYTES", {"1", "2000", false}},
        {OTEL_SDK_OPTIONS(.bsp_max_queue_size = 4096),
         "OTEL_BSP_MAX_QUEUE_SIZE",
         {"not even read", "4096", false}},
        {OTEL_SDK_OPTIONS(.bsp_export_timeout = OTEL_ZERO),
         "OTEL_BSP_EXPORT_TIMEOUT",
         {"7", "unlimited", false}},
        {OTEL_SDK_OPTIONS(.span_link_count_limit = OTEL_ZERO),
         "OTEL_SPAN_LINK_COUNT_LIMIT",
         {"7", "0", false}},
        /* what is specific in the environment beats what is general in code */
        {OTEL_SDK_OPTIONS(.attribute_count_limit = 10),
         "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
         {"100", "100", false}},
        {OTEL_SDK_OPTIONS(.exporter_otlp_headers = "a=b"),
         "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
         {"c=d", "c=d", false}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct oteli_config_row *row = oteli_config_rows;
        while (strcmp(row->variable, rows[i].variable) != 0)
            row++;
        check_with(rows[i].code, rows[i].variable, row->name, &rows[i].environment);
    }
}
