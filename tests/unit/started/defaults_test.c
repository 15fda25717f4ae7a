/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/started/defaults_test.c - specification of otel_sdk_options.defaults: code beats the
 * environment, which beats the defaults of the program, which beat those of the specification. */
#include "api/thread/thread_state.h"
#include "common/config/configuration.h"
#include "sdk/lifecycle/lifecycle.h"
#include "tests/support/fake_exporter.h"
#include "tests/support/said.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <stdlib.h>

enum { FOREVER_MS = INT32_MAX };

static int begin(void **state)
{
    (void)state;
    for (size_t i = 0; i < oteli_config_row_count; i++)
        unsetenv(oteli_config_rows[i].variable);
    said_begin(OTEL_LOG_INFO);
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

AROUND_EACH(begin, end);

static char resource[256]; /* service.name, service.version and place of what was exported */

static void put_text(otel_slice attributes, const char *key)
{
    const size_t used = strlen(resource);
    otel_attribute_view one;
    while (otel_attribute_next(&attributes, OTEL_FIELD_RESOURCE_ATTRIBUTE, &one))
        if (one.key.length == strlen(key) && memcmp(one.key.data, key, one.key.length) == 0)
            snprintf(resource + used, sizeof resource - used, "%s%.*s", used != 0 ? " " : "",
                     (int)one.value.slice.length, one.value.slice.data);
}

static void look_at_resource(void *context, otel_export *call)
{
    (void)context;
    const otel_slice attributes = otel_batch_resource(call->batch);
    resource[0] = '\0';
    put_text(attributes, "service.name");
    put_text(attributes, "service.version");
    put_text(attributes, "place");
}

/* What a span that is exported says of the service; `starts` with or without the environment. */
static const char *service_of(otel_status (*starts)(const otel_sdk_options *),
                              otel_sdk_options options)
{
    struct fake_exporter fake = {.during = look_at_resource};
    const otel_exporter exporter = fake_exporter(&fake);
    options.size = sizeof options;
    options.exporters = &exporter;
    options.exporter_count = 1;
    options.traces_exporter = "none";
    assert_int_equal(starts(&options), OTEL_OK);
    otel_span_end(otel_span_enter(otel_tracer_get("test", NULL), "one", NULL));
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    return resource;
}

/* The message of a start with these options. */
static const char *start_line(const otel_sdk_options *options)
{
    said[0] = '\0';
    assert_int_equal(otel_start(options), OTEL_OK);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    return said;
}

static const otel_attribute place = {
    .key = "place", .value = {.type = OTEL_VALUE_STRING, .length = 7, .as = {.string = "default"}}};

/* spec: R5 */
TEST(the_service_has_an_order)
{
    static const otel_sdk_options defaults = {.size = sizeof defaults,
                                              .service_name = "shop",
                                              .service_version = "1.2",
                                              .resource = &place,
                                              .resource_count = 1};
    static const otel_sdk_options from_text = {.size = sizeof from_text,
                                               .service_name = "shop",
                                               .resource_attributes =
                                                   "service.name=text,place=text"};
    const otel_sdk_options code = {
        .service_name = "code", .service_version = "3", .defaults = &defaults};
    const otel_sdk_options beaten = {.defaults = &defaults};
    const otel_sdk_options with_text = {.defaults = &from_text};

    assert_string_equal(service_of(otel_start, beaten), "shop 1.2 default");
    assert_string_equal(service_of(otel_start, with_text), "shop text");
    setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=list,service.version=2,place=here", 1);
    assert_string_equal(service_of(otel_start, beaten), "list 2 here");
    assert_string_equal(service_of(otel_start, with_text), "list 2 here");
    setenv("OTEL_SERVICE_NAME", "name", 1);
    assert_string_equal(service_of(otel_start, beaten), "name 2 here");
    assert_string_equal(service_of(otel_start, code), "code 3 here");
}

/* A program that knows an older struct has none. */
TEST(members_beyond_the_callers_size_are_unset)
{
    otel_sdk_options older = {.defaults = OTEL_SDK_OPTIONS(.traces_exporter = "none")};
    older.size = offsetof(otel_sdk_options, defaults) + sizeof older.defaults - 1;

    assert_non_null(strstr(start_line(&older), "http://localhost:4318/v1/traces (default)"));
    older.size++;
    assert_non_null(strstr(start_line(&older), "(default of the program)"));
}

TEST(without_the_environment_the_program_decides)
{
    const otel_sdk_options options = {.defaults = OTEL_SDK_OPTIONS(.service_name = "shop")};
    otel_sdk_options ignoring = options;
    ignoring.ignore_environment = true;
    setenv("OTEL_SERVICE_NAME", "environment", 1);

    assert_string_equal(service_of(otel_start_with, options), "shop");
    assert_string_equal(service_of(otel_start, ignoring), "shop");
}

/* A server that exports nothing unless its operator says so. */
TEST(the_start_says_what_is_a_default_of_the_program)
{
    const otel_sdk_options *const off =
        OTEL_SDK_OPTIONS(.defaults =
                             OTEL_SDK_OPTIONS(.service_name = "shop", .traces_exporter = "none",
                                              .traces_sampler = "traceidratio",
                                              .traces_sampler_arg = "0.25"));
    assert_string_equal(start_line(off),
                        "spans go nowhere: there is no exporter (default of the program); sampler "
                        "traceidratio 0.25 (default of the program); service shop (default of the "
                        "program)\n");
    setenv("OTEL_TRACES_EXPORTER", "otlp/stdout", 1);
    setenv("OTEL_TRACES_SAMPLER", "always_off", 1);
    setenv("OTEL_SERVICE_NAME", "web", 1);
    assert_string_equal(
        start_line(off),
        "spans go to stdout (OTEL_TRACES_EXPORTER) by otlp_stdout_exporter "
        "(OTEL_TRACES_EXPORTER); sampler always_off (OTEL_TRACES_SAMPLER); service web "
        "(OTEL_SERVICE_NAME)\n");
}

/* What the start line says of it. */
static const char *sampler_of(const otel_sdk_options *defaults)
{
    (void)start_line(OTEL_SDK_OPTIONS(.traces_exporter = "none", .defaults = defaults));
    *strstr(said, "; service ") = '\0';
    return strstr(said, "; sampler ");
}

TEST(an_argument_goes_with_the_sampler_beside_it)
{
    const otel_sdk_options *const defaults =
        OTEL_SDK_OPTIONS(.traces_sampler = "traceidratio", .traces_sampler_arg = "0.25");

    setenv("OTEL_TRACES_SAMPLER_ARG", "0.5", 1);
    assert_string_equal(sampler_of(defaults),
                        "; sampler traceidratio 0.25 (default of the program)");
    setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio", 1);
    assert_string_equal(sampler_of(defaults),
                        "; sampler parentbased_traceidratio 0.5 (OTEL_TRACES_SAMPLER)");
    unsetenv("OTEL_TRACES_SAMPLER_ARG");
    assert_string_equal(sampler_of(defaults),
                        "; sampler parentbased_traceidratio 1.0 (OTEL_TRACES_SAMPLER)");
}

TEST(a_general_variable_beats_a_specific_default)
{
    const otel_sdk_options *const options =
        OTEL_SDK_OPTIONS(.traces_exporter = "otlp",
                         .defaults =
                             OTEL_SDK_OPTIONS(.exporter_otlp_traces_endpoint =
                                                  "http://127.0.0.1:9/program",
                                              .exporter_otlp_traces_protocol = "http/json"));

    assert_non_null(strstr(start_line(options),
                           "to http://127.0.0.1:9/program (default of the program) "
                           "by otlp_http_json_span_exporter (default of the program)"));
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9", 1);
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf", 1);
    assert_non_null(strstr(start_line(options),
                           "to http://127.0.0.1:9/v1/traces (OTEL_EXPORTER_OTLP_ENDPOINT) by "
                           "otlp_http_span_exporter"));
}

TEST(what_cannot_be_a_default_is_an_error_of_the_program)
{
    said_begin(OTEL_LOG_ERROR);
    assert_int_equal(
        otel_start(OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.traces_sampler = "some"))),
        OTEL_ERROR_INVALID_ARGUMENT);
    assert_non_null(
        strstr(said, "otel_sdk_options.defaults->traces_sampler=\"some\" has the unknown word"));
    said_begin(OTEL_LOG_ERROR);
    assert_int_equal(
        otel_start(OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.traces_sampler = "traceidratio",
                                                                 .traces_sampler_arg = "2"))),
        OTEL_ERROR_INVALID_ARGUMENT);
    assert_non_null(
        strstr(said, "otel_sdk_options.defaults->traces_sampler_arg=\"2\" is no number"));
    const otel_sdk_options without_size = {.service_name = "shop"};
    assert_int_equal(otel_start(OTEL_SDK_OPTIONS(.defaults = &without_size)),
                     OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_flush(0), OTEL_ERROR_NOT_STARTED);
}
