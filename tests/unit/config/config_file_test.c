/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/config/config_file_test.c - specification of config/read/schema.c and its table,
 * config/read/check.c and config/read*.c: what a file may say, what it says then, and what is said
 * about a bad one. */
#include "common/config/configuration.h"
#include "config/build_options.h"
#include "tests/support/config_file.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <otel/sampler.h>
#include <stdio.h>
#include <string.h>

#define HEAD "file_format: \"1.1\"\n"
#define PROVIDER HEAD "tracer_provider:\n  processors:\n    - simple: {exporter: {console: }}\n"

/* --- Good files --- */

static void good(const char *text)
{
    config_file_read(text);
    if (config_file.status != OTEL_OK)
        fail_msg("refused: %s", config_file_errors);
}

AROUND_EACH(config_file_begin, config_file_end);

static const char processors_of_all_kinds[] =
    HEAD "tracer_provider:\n"
         "  processors:\n"
         "    - batch:\n"
         "        schedule_delay: 0\n"
         "        export_timeout: 1000\n"
         "        max_queue_size: 100\n"
         "        max_export_batch_size: 10\n"
         "        exporter:\n"
         "          otlp_http:\n"
         "            endpoint: https://c.example/v1/traces\n"
         "            headers:\n"
         "              - {name: api-key, value: \"1234\"}\n"
         "              - {name: unset, value: }\n"
         "            headers_list: a=b,c=d\n"
         "            timeout: 0\n"
         "            max_request_size: 1000000\n"
         "            encoding: protobuf\n"
         "            compression: none\n"
         "            tls: {ca_file: , key_file: , cert_file: }\n"
         "    - simple:\n"
         "        exporter:\n"
         "          otlp_file/development:\n"
         "            output_stream: file:///var/log/t.jsonl\n"
         "    - simple: {exporter: {otlp_file/development: }}\n"
         "    - simple: {exporter: {console: {}}}\n"
         "    - simple:\n"
         "        exporter:\n"
         "          otlp_grpc:\n"
         "            endpoint: collector:4317\n"
         "            tls:\n"
         "              ca_file: /ca.pem\n"
         "              key_file: /key.pem\n"
         "              cert_file: /cert.pem\n"
         "              insecure: true\n"
         "            headers: [{name: a, value: b}]\n"
         "            compression: gzip\n"
         "            max_response_size: 10\n"
         "            timeout: 7\n"
         "    - simple: {exporter: {otlp_http: {endpoint: 'unix:///c', encoding: json}}}\n"
         "    - simple: {exporter: {otlp_grpc: }}\n";

/* spec: D4 configuration/sdk.md#parse MUST stable */
TEST(D4_processors_and_exporters_are_read)
{
    good(processors_of_all_kinds);
    const struct oteli_item *exporters[7];
    size_t count = 0;
    const struct oteli_item *item = config_file.settings.processors->items;
    for (; item != NULL && count < 7; item = item->next)
        exporters[count++] = oteli_exporter_of(item->value);
    assert_null(item);
    assert_int_equal(count, 7);
    otel_otlp_options of_file, of_http, of_grpc, of_json, of_plain;
    const otel_otlp_options *otlp = &of_http, *grpc = &of_grpc, *json = &of_json,
                            *plain = &of_plain;
    struct oteli_file *file = &config_file.file;
    assert_true(oteli_read_otlp(exporters[0], file, &of_http));
    assert_true(oteli_read_otlp(exporters[4], file, &of_grpc));
    assert_true(oteli_read_otlp(exporters[5], file, &of_json));
    assert_true(oteli_read_otlp(exporters[6], file, &of_plain));
    assert_false(oteli_read_otlp(exporters[1], file, &of_file));
    assert_string_equal(exporters[3]->key, "console");
    assert_false(config_file.settings.is_disabled);
    assert_int_equal(config_file.settings.options.bsp_schedule_delay, OTEL_ZERO);
    assert_int_equal(config_file.settings.options.bsp_export_timeout, 1000);
    assert_int_equal(config_file.settings.options.bsp_max_queue_size, 100);
    assert_int_equal(config_file.settings.options.bsp_max_export_batch_size, 10);
    assert_string_equal(otlp->endpoint, "https://c.example/v1/traces");
    assert_int_equal(otlp->header_count, 3);
    assert_string_equal(otlp->headers[0].name, "api-key");
    assert_string_equal(otlp->headers[0].value, "1234");
    assert_string_equal(otlp->headers[1].name, "a");
    assert_string_equal(otlp->headers[2].value, "d");
    assert_int_equal(otlp->timeout_ms, OTEL_ZERO);
    assert_int_equal(otlp->max_request_bytes, 1000000);
    assert_int_equal(grpc->protocol, OTEL_OTLP_GRPC);
    assert_int_equal(grpc->compression, OTEL_OTLP_COMPRESSION_GZIP);
    assert_string_equal(grpc->endpoint, "collector:4317");
    assert_string_equal(grpc->ca_file, "/ca.pem");
    assert_string_equal(grpc->key_file, "/key.pem");
    assert_string_equal(grpc->certificate_file, "/cert.pem");
    assert_true(grpc->insecure);
    assert_int_equal(grpc->header_count, 1);
    assert_int_equal(grpc->max_response_bytes, 10);
    assert_int_equal(grpc->timeout_ms, 7);
    assert_int_equal(json->protocol, OTEL_OTLP_HTTP_JSON);
    assert_int_equal(json->compression, OTEL_OTLP_COMPRESSION_NONE);
    assert_string_equal(json->endpoint, "unix:///c");
    assert_null(json->ca_file);
    assert_int_equal(plain->protocol, OTEL_OTLP_GRPC);
    assert_null(plain->endpoint);
    assert_string_equal(config_file_warnings, "");
}

/* spec: D4 configuration/sdk.md#create MUST stable */
TEST(D4_limits_are_read_and_null_is_the_default)
{
    good(PROVIDER "  limits:\n"
                  "    attribute_value_length_limit: 10\n"
                  "    attribute_value_depth_limit: 3\n"
                  "    attribute_count_limit: 0\n"
                  "    event_count_limit:\n"
                  "    link_count_limit: 5\n"
                  "    event_attribute_count_limit: 6\n"
                  "    link_attribute_count_limit: 7\n"
                  "attribute_limits:\n"
                  "  attribute_value_length_limit: 4096\n"
                  "  attribute_value_depth_limit:\n"
                  "  attribute_count_limit: 64\n");
    const otel_sdk_options *read = &config_file.settings.options;
    assert_int_equal(read->span_attribute_value_length_limit, 10);
    assert_int_equal(read->attribute_value_depth_limit, 3);
    assert_int_equal(read->span_attribute_count_limit, OTEL_ZERO);
    assert_int_equal(read->span_event_count_limit, 0);
    assert_int_equal(read->span_link_count_limit, 5);
    assert_int_equal(read->event_attribute_count_limit, 6);
    assert_int_equal(read->link_attribute_count_limit, 7);
    assert_int_equal(read->attribute_value_length_limit, 4096);
    assert_int_equal(read->attribute_count_limit, 64);
}

/* spec: D4 configuration/sdk.md#create MUST stable */
TEST(D4_the_resource_is_read_with_types)
{
    good(HEAD "disabled: true\n"
              "resource:\n"
              "  attributes:\n"
              "    - {name: s, value: text}\n"
              "    - {name: b, value: true, type: bool}\n"
              "    - {name: i, value: -3, type: int}\n"
              "    - {name: d, value: 2, type: double}\n"
              "    - {name: gone, value: }\n"
              "    - {name: ss, value: [a, b], type: string_array}\n"
              "    - {name: bs, value: [true, false], type: bool_array}\n"
              "    - {name: is, value: [1, 0x10], type: int_array}\n"
              "    - {name: ds, value: [1.5, 2], type: double_array}\n"
              "  attributes_list: a=1,b=2\n"
              "  schema_url: https://opentelemetry.io/schemas/1.37.0\n"
              "  detection/development: {detectors: [{process: }, {host: {}}, {service: }]}\n");
    const otel_attribute *a = config_file.settings.attributes;
    assert_int_equal(config_file.settings.attribute_count, 8);
    assert_string_equal(a[0].value.as.string, "text");
    assert_true(a[1].value.as.boolean);
    assert_int_equal(a[2].value.as.integer, -3);
    assert_true(a[3].value.type == OTEL_VALUE_DOUBLE && a[3].value.as.real == 2);
    assert_string_equal(a[4].key, "ss");
    assert_string_equal(a[4].value.as.strings[1], "b");
    assert_true(a[5].value.as.booleans[0] && !a[5].value.as.booleans[1]);
    assert_int_equal(a[6].value.as.integers[1], 16);
    assert_true(a[7].value.as.reals[0] == 1.5 && a[7].value.as.reals[1] == 2);
    assert_string_equal(config_file.settings.options.resource_attributes, "a=1,b=2");
    assert_string_equal(config_file.settings.options.resource_schema_url,
                        "https://opentelemetry.io/schemas/1.37.0");
    assert_string_equal(config_file.settings.options.resource_detectors, "process,host,service");
    assert_true(config_file.settings.detects_service);
}

/* spec: D4 configuration/sdk.md#create MUST stable */
TEST(D4_propagators_are_merged_each_once)
{
    static const struct {
        const char *text;
        const char *expected;
    } table[] = {
        {PROVIDER, NULL},
        {PROVIDER "propagator: {}\n", "none"},
        {PROVIDER "propagator: {composite: [{tracecontext: }, {b3: }, {tracecontext: }]}\n",
         "tracecontext,b3"},
        {PROVIDER "propagator: {composite_list: \"baggage, none,b3multi,baggage\"}\n",
         "baggage,b3multi"},
        {PROVIDER
         "propagator: {composite: [{baggage: }], composite_list: \"tracecontext,baggage\"}\n",
         "baggage,tracecontext"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        good(table[i].text);
        if (table[i].expected == NULL) {
            assert_null(config_file.settings.options.propagators);
            continue;
        }
        struct oteli_config config;
        assert_int_equal(oteli_config_load(&config, &config_file.settings.options, false), OTEL_OK);
        assert_string_equal(config.propagators, table[i].expected);
        oteli_config_fini(&config);
    }
}

/* The sampler of a good file; the caller's. */
static otel_sampler sampler_of(const char *text)
{
    otel_sampler sampler = {.size = 0};
    good(text);
    assert_int_equal(oteli_make_sampler(&config_file.settings, "shop", &config_file.file, &sampler),
                     OTEL_OK);
    return sampler;
}

static void assert_sampler(const char *text, const char *expected)
{
    char found[256];
    const otel_sampler sampler = sampler_of(text);
    sampler.describe(sampler.state, found, sizeof found);
    assert_string_equal(found, expected);
    if (sampler.free != NULL)
        sampler.free(sampler.state);
}

/* spec: D4 configuration/sdk.md#create MUST stable */
TEST(D4_samplers_of_samplers_are_made)
{
    assert_sampler(PROVIDER "  sampler:\n"
                            "    parent_based:\n"
                            "      root: {trace_id_ratio_based: {ratio: 0.25}}\n"
                            "      local_parent_not_sampled:\n"
                            "        always_record: {root: {always_off: }}\n",
                   "ParentBased{root:TraceIdRatioBased{0.250000},remoteParentSampled:"
                   "AlwaysOnSampler,remoteParentNotSampled:AlwaysOffSampler,localParentSampled:"
                   "AlwaysOnSampler,localParentNotSampled:AlwaysRecord{AlwaysOffSampler}}");
    assert_sampler(PROVIDER "  sampler: {probability/development: }\n",
                   "ProbabilitySampler{1.000000}");
    assert_sampler(PROVIDER "  sampler: {composite/development: {rule_based: {rules: [\n"
                            "    {sampler: {always_on: }},\n"
                            "    {sampler: {parent_threshold: {root: {probability: {ratio: 0.5}}}}}"
                            "]}}}\n",
                   "CompositeSampler{ComposableRuleBased{ComposableAlwaysOn,"
                   "ComposableParentThreshold{root:ComposableProbability{0.500000}}}}");
}

static bool is_sampled(const otel_sampler *sampler, otel_span_kind kind, const char *key,
                       const char *value)
{
    static const uint8_t trace_id[16] = {1};
    const otel_attribute attribute = otel_attribute_of(key, otel_value_string(value));
    const otel_sampling_query query = {.parent_tracestate = "",
                                       .trace_id = trace_id,
                                       .kind = kind,
                                       .attributes = &attribute,
                                       .attribute_count = 1};
    otel_sampling_result result = {.decision = OTEL_SAMPLING_DROP};
    sampler->sample(sampler->state, &query, &result);
    return result.decision == OTEL_SAMPLING_RECORD_AND_SAMPLE;
}

/* spec: D4 configuration/sdk.md#create MUST development */
TEST(D4_rules_have_conditions)
{
    const otel_sampler sampler =
        sampler_of(PROVIDER "  sampler:\n"
                            "    composite/development:\n"
                            "      rule_based:\n"
                            "        rules:\n"
                            "          - parent: [remote, local]\n"
                            "            sampler: {always_on: }\n"
                            "          - attribute_values: {key: k, values: [a, \"404\"]}\n"
                            "            span_kinds: [client, server]\n"
                            "            parent: [none]\n"
                            "            sampler: {always_on: }\n"
                            "          - attribute_patterns: {key: p, included: [x*], "
                            "excluded: [xy?]}\n"
                            "            sampler: {always_on: }\n");
    assert_true(is_sampled(&sampler, OTEL_SPAN_KIND_CLIENT, "k", "404"));
    assert_true(is_sampled(&sampler, OTEL_SPAN_KIND_SERVER, "k", "a"));
    assert_false(is_sampled(&sampler, OTEL_SPAN_KIND_PRODUCER, "k", "a"));
    assert_false(is_sampled(&sampler, OTEL_SPAN_KIND_SERVER, "k", "b"));
    assert_true(is_sampled(&sampler, OTEL_SPAN_KIND_INTERNAL, "p", "xy"));
    assert_false(is_sampled(&sampler, OTEL_SPAN_KIND_INTERNAL, "p", "xyz"));
    sampler.free(sampler.state);
}

static bool enables(const char *tracer)
{
    const otel_scope_view scope = {.name = {tracer, strlen(tracer)}};
    return oteli_file_enables_tracer((void *)(uintptr_t)config_file.settings.configurator, &scope);
}

TEST(tracers_and_the_level_of_the_log_are_read)
{
    good(PROVIDER "  id_generator: {random: }\n"
                  "  tracer_configurator/development:\n"
                  "    default_config: {enabled: false}\n"
                  "    tracers:\n"
                  "      - {name: shop.*, config: {enabled: true}}\n"
                  "      - {name: x, config: {}}\n"
                  "log_level: warn3\n");
    assert_true(enables("shop.cart"));
    assert_false(enables("shops"));
    assert_true(enables("x"));
    assert_string_equal(config_file.settings.options.log_level, "warn");
}

/* spec: D1 configuration/data-model.md#versioning-policy-and-stability-guarantees SHOULD stable */
TEST(D1_the_version_of_the_file_is_checked)
{
    static const struct {
        const char *version;
        const char *error;
        const char *warning;
    } table[] = {
        {"\"1.0\"", "", ""},
        {"\"1.1\"", "", ""},
        {"1.1", "", ""},
        {"\"1.2\"", "", "is newer than \"1.1\""},
        {"\"2.0\"", "t.yaml:1:14: file_format is not a version 1", ""},
        {"\"0.4\"", "t.yaml:1:14: file_format is not a version 1", ""},
        {"\"1.0-rc.3\"", "t.yaml:1:14: file_format is no version that has been released", ""},
        {"one", "t.yaml:1:14: file_format is no version that has been released", ""},
        {"1", "t.yaml:1:14: file_format is no version that has been released", ""},
        {"", "t.yaml:1:", ""},
        {"[1]", "t.yaml:1:14: file_format has to be a text, and is a list", ""},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[128];
        snprintf(text, sizeof text,
                 "file_format: %s\ndisabled: true\ntracer_provider: "
                 "{processors: [{simple: {exporter: {console: }}}]}\n",
                 table[i].version);
        config_file_read(text);
        assert_int_equal(config_file.status == OTEL_OK, table[i].error[0] == '\0');
        assert_memory_equal(config_file_errors, table[i].error, strlen(table[i].error));
        assert_non_null(strstr(config_file_warnings, table[i].warning));
    }
}

/* --- What is not done, and said --- */

TEST(what_is_not_of_traces_is_ignored_with_a_warning)
{
    good(PROVIDER "meter_provider: {readers: [{whatever: 1}]}\nlogger_provider:\n"
                  "mine: 1\ninstrumentation/development: {c: {x: }}\ndistribution: {me: {}}\n");
    assert_string_equal(config_file_warnings,
                        "t.yaml:5:1: meter_provider is ignored: this SDK has traces, and neither "
                        "metrics nor logs\n"
                        "t.yaml:6:1: logger_provider is ignored: this SDK has traces, and neither "
                        "metrics nor logs\n"
                        "t.yaml:7:1: mine is not known, and is ignored\n");
}

TEST(without_a_tracer_provider_nothing_is_recorded)
{
    good(HEAD);
    assert_true(config_file.settings.is_disabled);
    assert_string_equal(config_file_warnings,
                        "t.yaml:1:1: there is no tracer_provider: spans are not recorded\n");

    good(PROVIDER "disabled: true\n");
    assert_true(config_file.settings.is_disabled);
    assert_string_equal(config_file_warnings, "");
}

/* --- Bad files --- */

struct bad_file {
    const char *text;
    const char *line; /* a part of the only one */
};

static void expect_refusals(const struct bad_file *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        config_file_read(table[i].text);
        if (config_file.status != OTEL_ERROR_INVALID_ARGUMENT || config_file.file.faults != 1 ||
            strncmp(config_file_errors, "t.yaml:", 7) != 0 ||
            strstr(config_file_errors, table[i].line) == NULL)
            fail_msg("%s: %s\nnot: %s", table[i].text, config_file_errors, table[i].line);
    }
}

/* spec: D5 configuration/sdk.md#parse SHOULD stable */
TEST(D5_each_fault_is_a_line_with_its_place_and_reason)
{
    static const struct bad_file table[] = {
        {"disabled: true\n", "1:1: file_format is required, and is not there"},
        {HEAD "disabled: yes\n", "2:11: disabled has to be true or false, and is \"yes\""},
        {HEAD "disabled: \"true\"\n", "2:11: disabled has to be true or false, and is \"true\""},
        {HEAD "log_level: loud\n", "2:12: log_level has to be one of trace, trace2, "},
        {HEAD "attribute_limits:\n", "2:1"},
        {HEAD "attribute_limits: {attribute_count_limit: -1}\n",
         "2:43: attribute_limits.attribute_count_limit has to be an integer from 0 to 2147483647, "
         "and is -1"},
        {HEAD "attribute_limits: {attribute_count_limit: 1.5}\n",
         "2:43: attribute_limits.attribute_count_limit has to be an integer from 0 to 2147483647, "
         "and is \"1.5\""},
        {HEAD "attribute_limits: {attribute_value_depth_limit: 32}\n",
         "2:49: attribute_limits.attribute_value_depth_limit has to be an integer from 1 to 31, "
         "and is 32"},
        {HEAD "attribute_limits: {attribute_count_limits: 1}\n",
         "2:20: attribute_limits.attribute_count_limits is not known"},
        {HEAD "tracer_provider: {}\n",
         "2:18: tracer_provider.processors is required, and is not there"},
        {HEAD "tracer_provider: {processors: []}\n",
         "2:31: tracer_provider.processors is an empty list"},
        {HEAD "tracer_provider: {processors: {batch: }}\n",
         "2:31: tracer_provider.processors has to be a list, and is a mapping"},
        {HEAD "tracer_provider: {processors: [{batch: &b {exporter: {console: }}, "
              "simple: *b}]}\n",
         "2:32: tracer_provider.processors[0] has to have one key, which says the kind of span "
         "processor, and has 2"},
        {HEAD "tracer_provider: {processors: [{batch: }]}\n",
         "tracer_provider.processors[0].batch has to be a mapping, and is null"},
        {HEAD "tracer_provider: {processors: [{queue: }]}\n",
         "2:33: tracer_provider.processors[0].queue is no span processor that this build knows"},
        {HEAD "tracer_provider: {processors: [{simple: {exporter: {zipkin: }}}]}\n",
         "2:53: tracer_provider.processors[0].simple.exporter.zipkin is no span exporter that "
         "this build knows"},
        {HEAD "tracer_provider: {processors: [{simple: {exporter: {otlp_grpc: {endpoint: "
              "\"grpc://c\"}}}}]}\n",
         "simple.exporter.otlp_grpc.endpoint is neither a URL nor a host with a port"},
        {HEAD "tracer_provider: {processors: [{simple: {exporter: {otlp_grpc: {encoding: json}}}}]}"
              "\n",
         "simple.exporter.otlp_grpc.encoding"},
        {HEAD
         "tracer_provider: {processors: [{batch: {max_queue_size: 0, exporter: {console: }}}]}\n",
         "tracer_provider.processors[0].batch.max_queue_size has to be an integer from 1 to "
         "2147483647, and is 0"},
    };
    expect_refusals(table, sizeof table / sizeof table[0]);
}

/* spec: D5 configuration/sdk.md#create SHOULD stable */
TEST(D5_faults_of_samplers_propagators_and_resources_too)
{
    static const struct bad_file table[] = {
        {PROVIDER "  sampler: {trace_id_ratio_based: {ratio: 1.5}}\n",
         "5:43: tracer_provider.sampler.trace_id_ratio_based.ratio has to be a number from 0 to 1, "
         "and is \"1.5\""},
        {PROVIDER "  sampler: {trace_id_ratio_based: {ratio: .nan}}\n",
         "has to be a number from 0"},
        {PROVIDER "  sampler: {jaeger_remote/development: {endpoint: \"h:1\", initial_sampler: "
                  "{always_on: }}}\n",
         "tracer_provider.sampler.jaeger_remote/development.endpoint is no http or https URL"},
        {PROVIDER "  sampler: {composite/development: {trace_id_ratio_based: }}\n",
         "is no composable sampler that this build knows"},
        {PROVIDER "  sampler: {always_record: }\n", "has to be a mapping, and is null"},
        {PROVIDER "  sampler: {always_on: {ratio: 1}}\n",
         "tracer_provider.sampler.always_on.ratio is not known"},
        {PROVIDER "  id_generator: {mine: }\n", "is no id generator that this build knows"},
        {PROVIDER "propagator: {composite_list: \"tracecontext,xray\"}\n",
         "5:30: propagator.composite_list has \"xray\", which is not in this build"},
        {PROVIDER "propagator: {composite: [{xray: }]}\n",
         "5:27: propagator.composite[0].xray is not in this build"},
        {PROVIDER "resource: {attributes: [{name: a, value: 1}]}\n",
         "resource.attributes[0] has a value that is not of its type"},
        {PROVIDER "resource: {attributes: [{name: a, value: x, type: int}]}\n",
         "resource.attributes[0] has a value that is not of its type"},
        {PROVIDER "resource: {attributes: [{name: a, value: [1, x], type: int_array}]}\n",
         "resource.attributes[0] has a value that is not of its type"},
        {PROVIDER "resource: {attributes: [{name: a, value: {b: c}}]}\n",
         "resource.attributes[0].value has to be a scalar or a list of scalars, and is a mapping"},
        {PROVIDER "resource: {attributes: [{name: \"\", value: c}]}\n",
         "resource.attributes[0].name is empty"},
        {PROVIDER "resource: {attributes: [{name: a}]}\n",
         "resource.attributes[0].value is required, and is not there"},
        {PROVIDER "resource: {schema_url: 5}\n",
         "resource.schema_url has to be a text, and is \"5\" without quotes"},
        {PROVIDER "resource: {detection/development: {detectors: [{moon: }]}}\n",
         "is no resource detector that this build knows"},
    };
    expect_refusals(table, sizeof table / sizeof table[0]);
}

/* The faults of the OTLP exporter. */
TEST(D5_what_an_exporter_cannot_be_given_is_refused)
{
    static const struct {
        const char *property;
        const char *line;
    } table[] = {
        {"endpoint: collector:4318", "otlp_http.endpoint is no http or https URL"},
        {"endpoint: ftp://x/", "otlp_http.endpoint is no http or https URL"},
        {"encoding: xml", "otlp_http.encoding has to be one of protobuf, json, and is \"xml\""},
        {"compression: zip", "otlp_http.compression has to be one of none, gzip, zstd"},
        {"timeout: -1", "otlp_http.timeout has to be an integer from 0"},
        {"tls: {key_file: /k.pem}", "otlp_http.tls has only one of key_file and cert_file"},
        {"tls: {cert_file: /c.pem}", "otlp_http.tls has only one of key_file and cert_file"},
        {"tls: {insecure: true}", "otlp_http.tls.insecure"},
        {"headers: [{name: \"a b\", value: c}]", "has a name that cannot be that of a header"},
        {"headers: [{name: a, value: \"c\\nd\"}]", "has a value with a line break"},
        {"headers: [{name: a, value: 5}]",
         "headers[0].value has to be a text, and is an integer without quotes"},
        {"headers: \"a=secret\"", "headers has to be a list, and is a text\n"},
        {"headers_list: true", "has to be a text, and is a boolean without quotes"},
        {"encoding: http://user:secret@h", "and is \"http://***@h\""},
        {"headers: {a: b}", "otlp_http.headers has to be a list, and is a mapping"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 HEAD "tracer_provider:\n  processors:\n  - simple:\n      exporter:\n"
                      "        otlp_http:\n          %s\n",
                 table[i].property);
        config_file_read(text);
        if (config_file.file.faults != 1 || strstr(config_file_errors, table[i].line) == NULL)
            fail_msg("%s: %s", table[i].property, config_file_errors);
    }
    config_file_read(HEAD
                     "tracer_provider: {processors: [{simple: {exporter: {otlp_file/development: "
                     "{output_stream: \"file:relative\"}}}}]}\n");
    assert_non_null(strstr(config_file_errors, "is neither stdout nor file:// and an absolute"));
}

TEST(D5_all_faults_are_said_at_once)
{
    config_file_read("file_format: \"1.1\"\ndisabled: 1\n"
                     "resource: {attributes: [{name: a}], x: }\n"
                     "tracer_provider: {sampler: {}}\n");
    assert_int_equal(config_file.file.faults, 5);
    assert_non_null(strstr(config_file_errors, "t.yaml:2:11: disabled"));
    assert_non_null(strstr(config_file_errors, "t.yaml:3:25: resource.attributes[0].value"));
    assert_non_null(strstr(config_file_errors, "t.yaml:3:37: resource.x is not known"));
    assert_non_null(strstr(config_file_errors, "t.yaml:4:18: tracer_provider.processors"));
    assert_non_null(strstr(config_file_errors, "t.yaml:4:28: tracer_provider.sampler has to"));
}

TEST(batch_processors_have_to_agree)
{
    static const char first[] = "tracer_provider:\n  processors:\n"
                                "    - batch: {max_queue_size: 2048, exporter: {console: }}\n";
    char text[400];
    snprintf(text, sizeof text, "%s%s%s", HEAD, first,
             "    - batch: {schedule_delay: 70, export_timeout: , exporter: {console: }}\n"
             "    - batch: {max_queue_size: 2048, exporter: {otlp_http: }}\n");
    good(text);
    assert_int_equal(config_file.settings.options.bsp_max_queue_size, 2048);
    assert_int_equal(config_file.settings.options.bsp_schedule_delay, 70);
    assert_int_equal(config_file.settings.options.bsp_export_timeout, 0);

    snprintf(text, sizeof text, "%s%s%s", HEAD, first,
             "    - batch: {max_queue_size: 4096, exporter: {otlp_http: }}\n");
    config_file_read(text);
    assert_string_equal(config_file_errors,
                        "t.yaml:5:7: tracer_provider.processors[1].batch has other settings than "
                        "a batch processor before it, and all of them share one queue in this "
                        "build\n");
}

TEST(faults_beyond_a_hundred_are_only_counted)
{
    static char text[32768] = HEAD "attribute_limits:\n";
    size_t length = strlen(text);
    for (int i = 0; i < 150; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "  k%d: 1\n", i);

    config_file_read(text);

    assert_int_equal(config_file.file.faults, 150);
    assert_non_null(strstr(config_file_errors,
                           "attribute_limits.k99 is not known\nt.yaml: there are "
                           "more faults\n"));
}

TEST(every_allocation_may_fail)
{
    static const char text[] =
        PROVIDER "  sampler: {parent_based: {root: {trace_id_ratio_based: },\n"
                 "    local_parent_sampled: {composite/development: {rule_based: {rules: [\n"
                 "      {attribute_values: {key: k, values: [a]}, sampler: {always_on: }},\n"
                 "      {sampler: {parent_threshold: {root: {probability: }}}}]}}}}}\n"
                 "  tracer_configurator/development: {tracers: [{name: a, config: {}}]}\n"
                 "resource: {attributes: [{name: a, value: [b], type: string_array}],\n"
                 "  detection/development: {detectors: [{host: }]}}\n"
                 "propagator: {composite: [{tracecontext: }]}\n";
    for (size_t nth = 1;; nth++) {
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        otel_sampler sampler = {.size = 0};
        config_file_read(text);
        if (config_file.status == OTEL_OK)
            config_file.status =
                oteli_make_sampler(&config_file.settings, "shop", &config_file.file, &sampler);
        if (sampler.free != NULL)
            sampler.free(sampler.state);
        const bool has_failed = oteli_leaks_failed();
        assert_int_equal(config_file.status, has_failed ? OTEL_ERROR_NO_MEMORY : OTEL_OK);
        config_file_free();
        oteli_leaks_check();
        if (!has_failed)
            break;
    }
}
