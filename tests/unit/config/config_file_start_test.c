/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/config/config_file_start_test.c - specification of otel/config.h: an SDK that is
 * started from a file, by its name and by OTEL_CONFIG_FILE, and is not started from a bad one. */
#include "common/config/configuration.h"
#include "common/text/pattern.h"
#include "config/build_options.h"
#include "config/read/registry.h"
#include "sdk/engine/current_engine.h"
#include "sdk/lifecycle/lifecycle.h"
#include "tests/support/config_file.h"
#include "tests/support/fake_exporter.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <otel/config.h>
#include <otel/otel.h>
#include <otel/sampler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOREVER_MS = INT32_MAX };

#define HEAD "file_format: \"1.1\"\n"
#define FAKE HEAD "tracer_provider:\n  processors: [{batch: {exporter: {fake: {name: x}}}}]\n"

static struct fake_exporter fake;
static size_t errors;
static char last_message[256];

static void note(void *state, otel_log_level level, const char *message)
{
    (void)state;
    snprintf(last_message, sizeof last_message, "%s", message);
    errors += level == OTEL_LOG_ERROR;
}

static otel_status make_fake(void *state, const otel_properties *properties, void *component)
{
    const char *name = NULL;
    if (!otel_properties_text(properties, "name", &name) || strcmp(name, "x") != 0)
        return OTEL_ERROR_INVALID_ARGUMENT;
    *(otel_exporter *)component = fake_exporter(state);
    return OTEL_OK;
}

static int begin(void **state)
{
    (void)state;
    for (size_t i = 0; i < oteli_config_row_count; i++)
        unsetenv(oteli_config_rows[i].variable);
    memset(&fake, 0, sizeof fake);
    errors = 0;
    otel_log_set_handler(note, NULL);
    oteli_registry_reset();
    return otel_component_register(OTEL_COMPONENT_PROVIDER(.type = OTEL_COMPONENT_EXPORTER,
                                                           .name = "fake", .state = &fake,
                                                           .create = make_fake)) != OTEL_OK;
}

static int end(void **state)
{
    (void)!otel_shutdown(FOREVER_MS);
    oteli_lifecycle_reset();
    oteli_api_reset();
    otel_log_set_handler(NULL, NULL);
    (void)begin(state);
    otel_log_set_handler(NULL, NULL);
    return 0;
}

static void trace(const char *tracer, const char *span)
{
    otel_span_end(otel_span_enter(otel_tracer_get(tracer, NULL), span, NULL));
}

static void start_from(const char *text)
{
    config_path_write(text);
    assert_int_equal(otel_start_from_file(config_path, NULL), OTEL_OK);
}

static void assert_traced(const char *expected)
{
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    assert_string_equal(fake.text, expected);
}

AROUND_ALL(config_path_make, config_path_remove);
AROUND_EACH(begin, end);

/* spec: D3 configuration/sdk.md#register-plugincomponentprovider MUST stable */
TEST(D3_a_component_of_the_program_is_made_by_its_name)
{
    start_from(FAKE);
    trace("test", "a");
    assert_traced("a|");
    assert_int_equal(errors, 0);
}

/* spec: D3 configuration/sdk.md#register-plugincomponentprovider MUST stable */
TEST(D3_a_name_is_registered_once)
{
    assert_int_equal(
        otel_component_register(OTEL_COMPONENT_PROVIDER(.type = OTEL_COMPONENT_EXPORTER,
                                                        .name = "fake", .create = make_fake)),
        OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(
        otel_component_register(OTEL_COMPONENT_PROVIDER(.type = OTEL_COMPONENT_SAMPLER,
                                                        .name = "fake", .create = make_fake)),
        OTEL_OK);
    assert_int_equal(otel_component_register(
                         OTEL_COMPONENT_PROVIDER(.type = OTEL_COMPONENT_SAMPLER, .name = "x")),
                     OTEL_ERROR_INVALID_ARGUMENT);
}

/* spec: D3 configuration/sdk.md#create SHOULD stable */
TEST(D3_a_component_that_cannot_be_made_refuses_the_file)
{
    config_path_write(HEAD "tracer_provider:\n  processors: [{batch: {exporter: {fake: }}}]\n");

    assert_int_equal(otel_start_from_file(config_path, NULL), OTEL_ERROR_INVALID_ARGUMENT);

    assert_int_equal(errors, 1);
    assert_int_equal(otel_flush(0), OTEL_ERROR_NOT_STARTED);
}

TEST(limits_and_the_queue_reach_the_engine)
{
    start_from(HEAD "tracer_provider:\n  processors:\n    - batch:\n"
                    "        schedule_delay: 1234\n        export_timeout: 55\n"
                    "        max_queue_size: 100\n        max_export_batch_size: 7\n"
                    "        exporter: {fake: {name: x}}\n");

    const struct oteli_engine *engine = oteli_current.engine;
    assert_int_equal(engine->settings.queue_size, 100);
    assert_int_equal(engine->batch->capacity, 7);
    assert_true(engine->settings.schedule_delay_ns == UINT64_C(1234000000));
    assert_true(engine->settings.export_timeout_ns == UINT64_C(55000000));
}

TEST(the_sampler_of_the_file_decides)
{
    start_from(FAKE "  sampler:\n    composite/development:\n      rule_based:\n        rules:\n"
                    "          - attribute_patterns: {key: p, included: [\"a*\"], excluded: [ab]}\n"
                    "            sampler: {always_on: }\n");
    static const char *const values[] = {"a", "ab", "abc", "b"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const otel_attribute p = otel_attribute_of("p", otel_value_string(values[i]));
        otel_span_end(otel_span_enter(otel_tracer_get("test", NULL), values[i],
                                      OTEL_SPAN_OPTIONS(.attributes = &p, .attribute_count = 1)));
    }
    assert_traced("a abc|");
}

/* spec: D4 configuration/sdk.md#create SHOULD development */
TEST(D4_tracers_are_disabled_by_name)
{
    start_from(FAKE "  tracer_configurator/development:\n    tracers:\n"
                    "      - {name: \"noisy.*\", config: {enabled: false}}\n"
                    "      - {name: \"lib?\", config: {enabled: false}}\n");
    trace("noisy.one", "a");
    trace("noisy", "b");
    trace("lib1", "c");
    trace("lib12", "d");
    assert_traced("b d|");
}

static bool is_like(const char *pattern, const char *name)
{
    return oteli_pattern_matches(pattern, name, strlen(name));
}

TEST(patterns_have_two_wildcards)
{
    assert_true(is_like("a.b", "a.b"));
    assert_false(is_like("a.b", "A.b"));
    assert_false(is_like("a.b", "axb"));
    assert_true(is_like("*", ""));
    assert_true(is_like("a*c*e", "abcde"));
    assert_true(is_like("*aab", "aaaab"));
    assert_false(is_like("a*", "ba"));
    assert_true(is_like("?", "\xC3\xA9"));
    assert_false(is_like("?", ""));
    assert_false(is_like("a?", "a"));
    assert_true(is_like("*?", "x"));
}

/* spec: D3 configuration/sdk-environment-variables.md#declarative-configuration MUST stable */
TEST(D3_the_environment_does_not_count)
{
    setenv("OTEL_TRACES_SAMPLER", "always_off", 1);
    setenv("OTEL_TRACES_EXPORTER", "console", 1);
    setenv("OTEL_SDK_DISABLED", "true", 1);
    setenv("OTEL_BSP_MAX_QUEUE_SIZE", "what", 1);
    start_from(FAKE);
    trace("test", "a");
    assert_traced("a|");
    assert_int_equal(oteli_current.engine->pipeline_count, 1);
    assert_int_equal(oteli_current.engine->settings.queue_size, 16777216 / 64);
}

/* spec: E-OTEL_CONFIG_FILE D3 configuration/sdk-environment-variables.md#declarative-configuration
 * MUST stable */
TEST(D3_otel_start_uses_the_file_that_the_environment_names)
{
    static const char *const variables[] = {"OTEL_EXPERIMENTAL_CONFIG_FILE", "OTEL_CONFIG_FILE"};
    config_path_write(FAKE);
    for (size_t i = 0; i < 2; i++) {
        setenv(variables[i], config_path, 1);
        assert_int_equal(otel_start(NULL), OTEL_OK);
        trace("test", "a");
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
        setenv(variables[i], "/nowhere.yaml", 1);
    }
    assert_string_equal(fake.text, "a|a|");
    assert_int_equal(otel_start(NULL), OTEL_ERROR_SYSTEM);
    assert_int_equal(errors, 2);
    assert_non_null(strstr(last_message, "OTEL_CONFIG_FILE=\"/nowhere.yaml\""));
    assert_int_equal(otel_start_from_file("/nowhere.yaml", NULL), OTEL_ERROR_SYSTEM);
    assert_int_equal(errors, 3);
    assert_non_null(strstr(last_message, "the file cannot be opened: "));
    assert_non_null(strstr(last_message, strerror(ENOENT)));
}

/* What the service is called, by the resource of the running SDK. */
static bool is_service(const char *name)
{
    const struct oteli_resource *resource = &oteli_current.engine->resource;
    otel_slice rest = {resource->otlp, resource->otlp_length};
    otel_attribute_view one;
    bool is_it = false;
    while (otel_attribute_next(&rest, OTEL_FIELD_RESOURCE_ATTRIBUTE, &one))
        if (one.key.length == 12 && memcmp(one.key.data, "service.name", 12) == 0)
            is_it = one.value.slice.length == strlen(name) &&
                    memcmp(one.value.slice.data, name, strlen(name)) == 0;
    return is_it;
}

TEST(what_the_file_says_beats_the_defaults_of_the_program)
{
    static const struct {
        const char *more, *service, *header;
    } rows[] = {
        {"", "program", "b3"},
        {"  sampler: {always_on: }\n", "program", "b3"},
        {"propagator: {composite_list: jaeger}\n", "program", "uber-trace-id"},
        {"resource: {attributes_list: service.name=list}\n", "list", "b3"},
        {"resource: {attributes: [{name: service.name, value: own}]}\n", "own", "b3"},
        {"resource: {detection/development: {detectors: [service: ]}}\n", "environment", "b3"},
    };
    setenv("OTEL_SERVICE_NAME", "environment", 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[400];
        snprintf(text, sizeof text, "%s%s", FAKE, rows[i].more);
        config_path_write(text);
        assert_int_equal(
            otel_start_from_file(
                config_path,
                OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.service_name = "program",
                                                              .propagators = "b3",
                                                              .traces_sampler = "always_off",
                                                              .bsp_max_queue_size = 1000))),
            OTEL_OK);
        trace("test", "a");
        assert_true(is_service(rows[i].service));
        assert_int_equal(oteli_current.engine->settings.queue_size, 1000);
        assert_string_equal(otel_propagator_fields(otel_propagator_get())[0], rows[i].header);
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
        assert_string_equal(fake.text, i == 1 ? "a|" : "");
        memset(&fake, 0, sizeof fake);
    }
}

/* spec: D5 configuration/sdk.md#parse SHOULD stable */
TEST(D5_nothing_starts_from_a_bad_file)
{
    const otel_exporter exporter = fake_exporter(&fake);
    config_path_write(HEAD
                      "tracer_provider: {processors: [{batch: {exporter: {console: }}}], x: 1}\n");

    const otel_status status = otel_start_from_file(
        config_path, OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1));

    assert_int_equal(status, OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(errors, 1);
    assert_int_equal(fake.frees, 1);
    assert_int_equal(otel_flush(0), OTEL_ERROR_NOT_STARTED);
    assert_int_equal(otel_check_file(config_path), OTEL_ERROR_INVALID_ARGUMENT);
}

/* spec: D1 configuration/data-model.md#yaml-file-format MUST stable */
TEST(D1_the_name_of_a_file_says_that_it_is_yaml)
{
    assert_int_equal(otel_check_file("/tmp/otel.json"), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_check_file("/nowhere.yml"), OTEL_ERROR_SYSTEM);
    assert_int_equal(otel_check_file("/nowhere.yaml"), OTEL_ERROR_SYSTEM);
    assert_int_equal(otel_check_file(NULL), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(errors, 3);
    config_path_write(FAKE);
    assert_int_equal(otel_check_file(config_path), OTEL_OK);
    assert_int_equal(otel_flush(0), OTEL_ERROR_NOT_STARTED);
}

TEST(exporters_of_the_program_come_after_those_of_the_file)
{
    struct fake_exporter own = {.frees = 0};
    const otel_exporter exporter = fake_exporter(&own);
    const otel_processor processor = {.size = sizeof processor, .name = "own"};
    config_path_write(FAKE);
    assert_int_equal(
        otel_start_from_file(config_path,
                             OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                              .processors = &processor, .processor_count = 1)),
        OTEL_OK);
    assert_non_null(strstr(last_message, " to own (code)"));
    trace("test", "a");

    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_string_equal(fake.text, "a|");
    assert_string_equal(own.text, "a|");
    assert_int_equal(own.frees, 1);
}

/* spec: D4 configuration/sdk-environment-variables.md#general-sdk-configuration MUST stable */
TEST(D4_a_disabled_sdk_makes_no_exporters)
{
    start_from(FAKE "disabled: true\n");
    trace("test", "a");

    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_string_equal(fake.text, "");
    assert_int_equal(fake.frees, 0);
}
