/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/schema_table.c - the table of schema.h: data, from the leaves to the whole file.
 *
 * What the schema marks as nullable may be null here, and nothing else. Samplers contain
 * samplers, so those are declared before they are defined. */
#include "config/read/schema.h"

#include "common/config/configuration.h"

#define OBJECT_OR_NULL(list)                                                \
    {                                                                       \
        .shape = OTELI_SHAPE_MAP, .may_be_null = true, .properties = (list) \
    }
#define OBJECT(list)                                   \
    {                                                  \
        .shape = OTELI_SHAPE_MAP, .properties = (list) \
    }
#define LIST_OF(schema)                                 \
    {                                                   \
        .shape = OTELI_SHAPE_LIST, .element = &(schema) \
    }
#define INTEGER(least, most)                                                         \
    {                                                                                \
        .shape = OTELI_SHAPE_INT, .may_be_null = true, .min = (least), .max = (most) \
    }
#define CHOICE(list, name)                                                \
    {                                                                     \
        .shape = OTELI_SHAPE_CHOICE, .properties = (list), .what = (name) \
    }
#define OPEN_CHOICE(list, name, type)                                                          \
    {                                                                                          \
        .shape = OTELI_SHAPE_CHOICE, .properties = (list), .what = (name), .component = (type) \
    }

/* --- Leaves --- */

static const struct oteli_property no_properties[] = {{NULL, NULL, 0}};
static const struct oteli_schema anything = {.shape = OTELI_SHAPE_ANY};
static const struct oteli_schema empty_object = OBJECT_OR_NULL(no_properties);
static const struct oteli_schema boolean = {.shape = OTELI_SHAPE_BOOL};
static const struct oteli_schema boolean_or_null = {.shape = OTELI_SHAPE_BOOL, .may_be_null = true};
static const struct oteli_schema text = {.shape = OTELI_SHAPE_TEXT};
static const struct oteli_schema name_text = {.shape = OTELI_SHAPE_TEXT,
                                              .check = oteli_check_not_empty};
static const struct oteli_schema text_or_null = {.shape = OTELI_SHAPE_TEXT, .may_be_null = true};
static const struct oteli_schema texts = LIST_OF(text);
static const struct oteli_schema count_or_null = INTEGER(0, INT32_MAX);
static const struct oteli_schema positive_or_null = INTEGER(1, INT32_MAX);
static const struct oteli_schema length_or_null = INTEGER(0, INT64_MAX);
static const struct oteli_schema ratio_or_null = {.shape = OTELI_SHAPE_RATIO, .may_be_null = true};

/* --- Limits --- */

static const struct oteli_property general_limit_list[] = {
    {"attribute_value_length_limit", &length_or_null, 0},
    {"attribute_value_depth_limit", &positive_or_null, 0},
    {"attribute_count_limit", &count_or_null, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema general_limits = OBJECT(general_limit_list);

static const struct oteli_property span_limit_list[] = {
    {"attribute_value_length_limit", &length_or_null, 0},
    {"attribute_value_depth_limit", &positive_or_null, 0},
    {"attribute_count_limit", &count_or_null, 0},
    {"event_count_limit", &count_or_null, 0},
    {"link_count_limit", &count_or_null, 0},
    {"event_attribute_count_limit", &count_or_null, 0},
    {"link_attribute_count_limit", &count_or_null, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema span_limits = OBJECT(span_limit_list);

/* --- Resource --- */

static const struct oteli_schema attribute_value = {.shape = OTELI_SHAPE_VALUE,
                                                    .may_be_null = true};
static const struct oteli_schema attribute_type = {
    .shape = OTELI_SHAPE_WORD,
    .may_be_null = true,
    .words = "string bool int double string_array bool_array int_array double_array"};
static const struct oteli_property attribute_list[] = {
    {"name", &name_text, OTELI_REQUIRED},
    {"value", &attribute_value, OTELI_REQUIRED},
    {"type", &attribute_type, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema attribute = {
    .shape = OTELI_SHAPE_MAP, .properties = attribute_list, .check = oteli_check_attribute};
static const struct oteli_schema attributes = LIST_OF(attribute);

static const struct oteli_property include_exclude_list[] = {
    {"included", &texts, 0},
    {"excluded", &texts, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema include_exclude = OBJECT(include_exclude_list);
static const struct oteli_property detector_list[] = {
    {"container", &empty_object, 0},
    {"host", &empty_object, 0},
    {"process", &empty_object, 0},
    {"service", &empty_object, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema detector = CHOICE(detector_list, "resource detector");
static const struct oteli_schema detectors = LIST_OF(detector);
static const struct oteli_property detection_list[] = {
    {"attributes", &include_exclude, OTELI_NOT_HERE},
    {"detectors", &detectors, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema detection = OBJECT(detection_list);
static const struct oteli_property resource_list[] = {
    {"attributes", &attributes, 0},
    {"attributes_list", &text_or_null, 0},
    {"schema_url", &text_or_null, 0},
    {"detection/development", &detection, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema resource = OBJECT(resource_list);

/* --- Propagators --- */

static const struct oteli_property propagator_list[] = {
    {"tracecontext", &empty_object, 0},
    {"baggage", &empty_object, 0},
    {"b3", &empty_object, 0},
    {"b3multi", &empty_object, 0},
    {"jaeger", &empty_object, 0},
    {"xray", &anything, OTELI_NOT_HERE},
    {NULL, NULL, 0},
};
static const struct oteli_schema propagator = CHOICE(propagator_list, "propagator");
static const struct oteli_schema propagators = LIST_OF(propagator);
static const struct oteli_property propagation_list[] = {
    {"composite", &propagators, 0},
    {"composite_list", &text_or_null, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema propagation = OBJECT(propagation_list);

/* --- Exporters and processors --- */

static const struct oteli_property header_list[] = {
    {"name", &text, OTELI_REQUIRED},
    {"value", &text_or_null, OTELI_REQUIRED},
    {NULL, NULL, 0},
};
static const struct oteli_schema header = {
    .shape = OTELI_SHAPE_MAP, .properties = header_list, .check = oteli_check_header};
static const struct oteli_schema headers = LIST_OF(header);
static const struct oteli_schema header_pairs = {
    .shape = OTELI_SHAPE_TEXT, .may_be_null = true, .check = oteli_check_headers_list};
#define TLS(list)                                                            \
    {                                                                        \
        .shape = OTELI_SHAPE_MAP, .may_be_null = true, .properties = (list), \
        .check = oteli_check_tls                                             \
    }
static const struct oteli_property http_tls_list[] = {
    {"ca_file", &text_or_null, 0},
    {"key_file", &text_or_null, 0},
    {"cert_file", &text_or_null, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema http_tls = TLS(http_tls_list);
static const struct oteli_property grpc_tls_list[] = {
    {"ca_file", &text_or_null, 0},
    {"key_file", &text_or_null, 0},
    {"cert_file", &text_or_null, 0},
    {"insecure", &boolean_or_null, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema grpc_tls = TLS(grpc_tls_list);
static const struct oteli_schema endpoint = {
    .shape = OTELI_SHAPE_TEXT, .may_be_null = true, .check = oteli_check_endpoint};
static const struct oteli_schema grpc_endpoint = {
    .shape = OTELI_SHAPE_TEXT, .may_be_null = true, .check = oteli_check_grpc_endpoint};
static const struct oteli_schema compression = {
    .shape = OTELI_SHAPE_WORD, .may_be_null = true, .words = "none gzip zstd"};
static const struct oteli_schema encoding = {
    .shape = OTELI_SHAPE_WORD, .may_be_null = true, .words = "protobuf json"};
static const struct oteli_property otlp_http_list[] = {
    {"endpoint", &endpoint, 0},
    {"tls", &http_tls, 0},
    {"headers", &headers, 0},
    {"headers_list", &header_pairs, 0},
    {"compression", &compression, 0},
    {"max_request_size", &length_or_null, 0},
    {"max_response_size", &positive_or_null, 0},
    {"timeout", &count_or_null, 0},
    {"encoding", &encoding, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema otlp_http = OBJECT_OR_NULL(otlp_http_list);
static const struct oteli_property otlp_grpc_list[] = {
    {"endpoint", &grpc_endpoint, 0},
    {"tls", &grpc_tls, 0},
    {"headers", &headers, 0},
    {"headers_list", &header_pairs, 0},
    {"compression", &compression, 0},
    {"max_request_size", &length_or_null, 0},
    {"max_response_size", &positive_or_null, 0},
    {"timeout", &count_or_null, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema otlp_grpc = OBJECT_OR_NULL(otlp_grpc_list);
static const struct oteli_schema output_stream = {
    .shape = OTELI_SHAPE_TEXT, .may_be_null = true, .check = oteli_check_output_stream};
static const struct oteli_property otlp_file_list[] = {
    {"output_stream", &output_stream, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema otlp_file = OBJECT_OR_NULL(otlp_file_list);
static const struct oteli_property exporter_list[] = {
    {"otlp_http", &otlp_http, 0},
    {"otlp_grpc", &otlp_grpc, 0},
    {"otlp_file/development", &otlp_file, 0},
    {"console", &empty_object, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema exporter =
    OPEN_CHOICE(exporter_list, "span exporter", OTEL_COMPONENT_EXPORTER);

static const struct oteli_property batch_list[] = {
    {"schedule_delay", &count_or_null, 0},    {"export_timeout", &count_or_null, 0},
    {"max_queue_size", &positive_or_null, 0}, {"max_export_batch_size", &positive_or_null, 0},
    {"exporter", &exporter, OTELI_REQUIRED},  {NULL, NULL, 0},
};
static const struct oteli_schema batch = OBJECT(batch_list);
static const struct oteli_property simple_list[] = {
    {"exporter", &exporter, OTELI_REQUIRED},
    {NULL, NULL, 0},
};
static const struct oteli_schema simple = OBJECT(simple_list);
static const struct oteli_property processor_list[] = {
    {"batch", &batch, 0},
    {"simple", &simple, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema processor =
    OPEN_CHOICE(processor_list, "span processor", OTEL_COMPONENT_PROCESSOR);
static const struct oteli_schema processors = LIST_OF(processor);

/* --- Samplers --- */

static const struct oteli_schema sampler;
static const struct oteli_schema composable;

static const struct oteli_property ratio_list[] = {
    {"ratio", &ratio_or_null, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema with_ratio = OBJECT_OR_NULL(ratio_list);
static const struct oteli_property parent_based_list[] = {
    {"root", &sampler, 0},
    {"remote_parent_sampled", &sampler, 0},
    {"remote_parent_not_sampled", &sampler, 0},
    {"local_parent_sampled", &sampler, 0},
    {"local_parent_not_sampled", &sampler, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema parent_based = OBJECT_OR_NULL(parent_based_list);
static const struct oteli_property always_record_list[] = {
    {"root", &sampler, OTELI_REQUIRED},
    {NULL, NULL, 0},
};
static const struct oteli_schema always_record = OBJECT(always_record_list);
/* Asking all the time is not what anybody means by 0. */
static const struct oteli_schema polling = INTEGER(1, INT32_MAX);
static const struct oteli_schema url = {.shape = OTELI_SHAPE_TEXT, .check = oteli_check_endpoint};
static const struct oteli_property jaeger_remote_list[] = {
    {"endpoint", &url, OTELI_REQUIRED},
    {"interval", &polling, 0},
    {"initial_sampler", &sampler, OTELI_REQUIRED},
    {NULL, NULL, 0},
};
static const struct oteli_schema jaeger_remote = OBJECT_OR_NULL(jaeger_remote_list);
static const struct oteli_property sampler_list[] = {
    {"always_on", &empty_object, 0},
    {"always_off", &empty_object, 0},
    {"always_record", &always_record, 0},
    {"composite/development", &composable, 0},
    {"jaeger_remote/development", &jaeger_remote, 0},
    {"parent_based", &parent_based, 0},
    {"probability/development", &with_ratio, 0},
    {"trace_id_ratio_based", &with_ratio, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema sampler =
    OPEN_CHOICE(sampler_list, "sampler", OTEL_COMPONENT_SAMPLER);

static const struct oteli_property rule_values_list[] = {
    {"key", &text, OTELI_REQUIRED},
    {"values", &texts, OTELI_REQUIRED},
    {NULL, NULL, 0},
};
static const struct oteli_schema rule_values = OBJECT(rule_values_list);
static const struct oteli_property rule_patterns_list[] = {
    {"key", &text, OTELI_REQUIRED},
    {"included", &texts, 0},
    {"excluded", &texts, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema rule_patterns = OBJECT(rule_patterns_list);
static const struct oteli_schema span_kind = {.shape = OTELI_SHAPE_WORD,
                                              .may_be_null = true,
                                              .words = "internal server client producer consumer"};
static const struct oteli_schema span_kinds = LIST_OF(span_kind);
static const struct oteli_schema span_parent = {
    .shape = OTELI_SHAPE_WORD, .may_be_null = true, .words = "none remote local"};
static const struct oteli_schema span_parents = LIST_OF(span_parent);
static const struct oteli_property rule_list[] = {
    {"attribute_values", &rule_values, 0},    {"attribute_patterns", &rule_patterns, 0},
    {"span_kinds", &span_kinds, 0},           {"parent", &span_parents, 0},
    {"sampler", &composable, OTELI_REQUIRED}, {NULL, NULL, 0},
};
static const struct oteli_schema rule = OBJECT(rule_list);
static const struct oteli_schema rules = LIST_OF(rule);
static const struct oteli_property rule_based_list[] = {
    {"rules", &rules, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema rule_based = OBJECT_OR_NULL(rule_based_list);
static const struct oteli_property parent_threshold_list[] = {
    {"root", &composable, OTELI_REQUIRED},
    {NULL, NULL, 0},
};
static const struct oteli_schema parent_threshold = OBJECT(parent_threshold_list);
static const struct oteli_property composable_list[] = {
    {"always_on", &empty_object, 0},
    {"always_off", &empty_object, 0},
    {"parent_threshold", &parent_threshold, 0},
    {"probability", &with_ratio, 0},
    {"rule_based", &rule_based, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema composable = CHOICE(composable_list, "composable sampler");

/* --- The tracer provider --- */

static const struct oteli_property id_generator_list[] = {
    {"random", &empty_object, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema id_generator = CHOICE(id_generator_list, "id generator");
static const struct oteli_property tracer_config_list[] = {
    {"enabled", &boolean, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema tracer_config = OBJECT(tracer_config_list);
static const struct oteli_property tracer_list[] = {
    {"name", &text, OTELI_REQUIRED},
    {"config", &tracer_config, OTELI_REQUIRED},
    {NULL, NULL, 0},
};
static const struct oteli_schema tracer = OBJECT(tracer_list);
static const struct oteli_schema tracers = LIST_OF(tracer);
static const struct oteli_property configurator_list[] = {
    {"default_config", &tracer_config, 0},
    {"tracers", &tracers, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema configurator = OBJECT(configurator_list);
static const struct oteli_property tracer_provider_list[] = {
    {"processors", &processors, OTELI_REQUIRED},
    {"limits", &span_limits, 0},
    {"sampler", &sampler, 0},
    {"id_generator", &id_generator, 0},
    {"tracer_configurator/development", &configurator, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema tracer_provider = OBJECT(tracer_provider_list);

/* --- What belongs to this SDK alone --- */

static const struct oteli_schema profiler_source = {
    .shape = OTELI_SHAPE_WORD, .may_be_null = true, .words = "off on auto perf signal"};
static const struct oteli_schema profiler_hz = INTEGER(1, OTELI_MAX_PROFILER_HZ);
static const struct oteli_schema profiler_signal = INTEGER(1, 64);
static const struct oteli_schema label_style = {
    .shape = OTELI_SHAPE_WORD, .may_be_null = true, .words = "otel datadog pyroscope"};
static const struct oteli_schema profiler_names = {
    .shape = OTELI_SHAPE_WORD, .may_be_null = true, .words = "auto on off"};
static const struct oteli_property profiler_list[] = {
    {"source", &profiler_source, 0}, {"hz", &profiler_hz, 0},
    {"signal", &profiler_signal, 0}, {"out", &text_or_null, 0},
    {"endpoint", &endpoint, 0},      {"label_style", &label_style, 0},
    {"names", &profiler_names, 0},   {NULL, NULL, 0},
};
static const struct oteli_schema profiler = OBJECT_OR_NULL(profiler_list);
static const struct oteli_property own_list[] = {
    {"profiler", &profiler, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema own = OBJECT(own_list);
static const struct oteli_property distribution_list[] = {
    {"otel-c", &own, 0},
    {NULL, NULL, 0},
};
static const struct oteli_schema distribution = {.shape = OTELI_SHAPE_MAP,
                                                 .may_be_null = true,
                                                 .may_have_others = true,
                                                 .properties = distribution_list};

/* --- The file --- */

static const struct oteli_schema file_format = {.shape = OTELI_SHAPE_SCALAR,
                                                .check = oteli_check_file_format,
                                                .doubt = oteli_doubt_file_format};
static const struct oteli_schema log_level = {
    .shape = OTELI_SHAPE_WORD,
    .may_be_null = true,
    .words = "trace trace2 trace3 trace4 debug debug2 debug3 debug4 info info2 info3 info4 warn "
             "warn2 warn3 warn4 error error2 error3 error4 fatal fatal2 fatal3 fatal4"};
static const struct oteli_property file_list[] = {
    {"file_format", &file_format, OTELI_REQUIRED},
    {"disabled", &boolean_or_null, 0},
    {"log_level", &log_level, 0},
    {"attribute_limits", &general_limits, 0},
    {"resource", &resource, 0},
    {"propagator", &propagation, 0},
    {"tracer_provider", &tracer_provider, 0},
    {"meter_provider", &anything, OTELI_NOT_TRACES},
    {"logger_provider", &anything, OTELI_NOT_TRACES},
    {"instrumentation/development", &anything, 0},
    {"distribution", &distribution, 0},
    {NULL, NULL, 0},
};
const struct oteli_schema oteli_schema_file = {
    .shape = OTELI_SHAPE_MAP, .properties = file_list, .may_have_more = true};
