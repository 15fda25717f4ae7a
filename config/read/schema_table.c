/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/schema_table.c - the table of schema.h: data, from the leaves to the whole file.
 *
 * What the schema marks as nullable may be null here, and nothing else. Samplers contain
 * samplers, so those are declared before they are defined. */
#include "config/read/schema.h"

#include "common/config/configuration.h"

#define KEY(key, schema) FLAGGED(key, schema, 0)
#define REQUIRED(key, schema) FLAGGED(key, schema, OTELI_REQUIRED)
#define FLAGGED(key, schema, flags) \
    {                               \
        (key), &(schema), (flags)   \
    }

#define PROPERTIES(...)                           \
    .properties = (const struct oteli_property[]) \
    {                                             \
        __VA_ARGS__,                              \
        {                                         \
            NULL, NULL, 0                         \
        }                                         \
    }
#define OBJECT_OR_NULL(...)                                                    \
    {                                                                          \
        .shape = OTELI_SHAPE_MAP, .may_be_null = true, PROPERTIES(__VA_ARGS__) \
    }
#define OBJECT(...)                                       \
    {                                                     \
        .shape = OTELI_SHAPE_MAP, PROPERTIES(__VA_ARGS__) \
    }
#define LIST_OF(schema)                                 \
    {                                                   \
        .shape = OTELI_SHAPE_LIST, .element = &(schema) \
    }
#define INTEGER(least, most)                                                         \
    {                                                                                \
        .shape = OTELI_SHAPE_INT, .may_be_null = true, .min = (least), .max = (most) \
    }
#define WORD(list)                                                      \
    {                                                                   \
        .shape = OTELI_SHAPE_WORD, .may_be_null = true, .words = (list) \
    }
#define CHOICE(name, ...)                                                    \
    {                                                                        \
        .shape = OTELI_SHAPE_CHOICE, .what = (name), PROPERTIES(__VA_ARGS__) \
    }
/* Names of this type may be registered. */
#define OPEN_CHOICE(name, type, ...)                                                              \
    {                                                                                             \
        .shape = OTELI_SHAPE_CHOICE, .what = (name), .component = (type), PROPERTIES(__VA_ARGS__) \
    }
#define TLS(...)                                                                 \
    {                                                                            \
        .shape = OTELI_SHAPE_MAP, .may_be_null = true, .check = oteli_check_tls, \
        PROPERTIES(__VA_ARGS__)                                                  \
    }

/* --- Leaves --- */

static const struct oteli_schema anything = {.shape = OTELI_SHAPE_ANY};
static const struct oteli_schema empty_object = {.shape = OTELI_SHAPE_MAP, .may_be_null = true};
static const struct oteli_schema boolean = {.shape = OTELI_SHAPE_BOOL};
static const struct oteli_schema boolean_or_null = {.shape = OTELI_SHAPE_BOOL, .may_be_null = true};
static const struct oteli_schema text = {.shape = OTELI_SHAPE_TEXT};
static const struct oteli_schema name_text = {.shape = OTELI_SHAPE_TEXT,
                                              .check = oteli_check_not_empty};
static const struct oteli_schema text_or_null = {.shape = OTELI_SHAPE_TEXT, .may_be_null = true};
static const struct oteli_schema texts = LIST_OF(text);
static const struct oteli_schema count_or_null = INTEGER(0, INT32_MAX);
static const struct oteli_schema positive_or_null = INTEGER(1, INT32_MAX);
static const struct oteli_schema depth_or_null = INTEGER(1, OTELI_MAX_VALUE_DEPTH);
static const struct oteli_schema length_or_null = INTEGER(0, INT64_MAX);
static const struct oteli_schema ratio_or_null = {.shape = OTELI_SHAPE_RATIO, .may_be_null = true};

/* --- Limits --- */

static const struct oteli_schema general_limits = OBJECT(
    KEY("attribute_value_length_limit", length_or_null),
    KEY("attribute_value_depth_limit", depth_or_null), KEY("attribute_count_limit", count_or_null));

static const struct oteli_schema span_limits = OBJECT(
    KEY("attribute_value_length_limit", length_or_null),
    KEY("attribute_value_depth_limit", depth_or_null), KEY("attribute_count_limit", count_or_null),
    KEY("event_count_limit", count_or_null), KEY("link_count_limit", count_or_null),
    KEY("event_attribute_count_limit", count_or_null),
    KEY("link_attribute_count_limit", count_or_null));

/* --- Resource --- */

static const struct oteli_schema attribute_value = {.shape = OTELI_SHAPE_VALUE,
                                                    .may_be_null = true};
static const struct oteli_schema attribute_type =
    WORD("string bool int double string_array bool_array int_array double_array");
static const struct oteli_schema attribute = {.shape = OTELI_SHAPE_MAP,
                                              PROPERTIES(REQUIRED("name", name_text),
                                                         REQUIRED("value", attribute_value),
                                                         KEY("type", attribute_type)),
                                              .check = oteli_check_attribute};
static const struct oteli_schema attributes = LIST_OF(attribute);

static const struct oteli_schema include_exclude =
    OBJECT(KEY("included", texts), KEY("excluded", texts));
static const struct oteli_schema detector =
    CHOICE("resource detector", KEY("container", empty_object), KEY("host", empty_object),
           KEY("process", empty_object), KEY("service", empty_object));
static const struct oteli_schema detectors = LIST_OF(detector);
static const struct oteli_schema detection =
    OBJECT(FLAGGED("attributes", include_exclude, OTELI_NOT_HERE), KEY("detectors", detectors));
static const struct oteli_schema resource =
    OBJECT(KEY("attributes", attributes), KEY("attributes_list", text_or_null),
           KEY("schema_url", text_or_null), KEY("detection/development", detection));

/* --- Propagators --- */

static const struct oteli_schema propagator =
    CHOICE("propagator", KEY("tracecontext", empty_object), KEY("baggage", empty_object),
           KEY("b3", empty_object), KEY("b3multi", empty_object), KEY("jaeger", empty_object),
           FLAGGED("xray", anything, OTELI_NOT_HERE));
static const struct oteli_schema propagators = LIST_OF(propagator);
static const struct oteli_schema propagation =
    OBJECT(KEY("composite", propagators), KEY("composite_list", text_or_null));

/* --- Exporters and processors --- */

static const struct oteli_schema header = {
    .shape = OTELI_SHAPE_MAP,
    PROPERTIES(REQUIRED("name", text), REQUIRED("value", text_or_null)),
    .check = oteli_check_header};
static const struct oteli_schema headers = LIST_OF(header);
static const struct oteli_schema header_pairs = {
    .shape = OTELI_SHAPE_TEXT, .may_be_null = true, .check = oteli_check_headers_list};
static const struct oteli_schema http_tls = TLS(
    KEY("ca_file", text_or_null), KEY("key_file", text_or_null), KEY("cert_file", text_or_null));
static const struct oteli_schema grpc_tls =
    TLS(KEY("ca_file", text_or_null), KEY("key_file", text_or_null), KEY("cert_file", text_or_null),
        KEY("insecure", boolean_or_null));
static const struct oteli_schema endpoint = {
    .shape = OTELI_SHAPE_TEXT, .may_be_null = true, .check = oteli_check_endpoint};
static const struct oteli_schema grpc_endpoint = {
    .shape = OTELI_SHAPE_TEXT, .may_be_null = true, .check = oteli_check_grpc_endpoint};
static const struct oteli_schema compression = WORD("none gzip zstd");
static const struct oteli_schema encoding = WORD("protobuf json");
static const struct oteli_schema otlp_http = OBJECT_OR_NULL(
    KEY("endpoint", endpoint), KEY("tls", http_tls), KEY("headers", headers),
    KEY("headers_list", header_pairs), KEY("compression", compression),
    KEY("max_request_size", length_or_null), KEY("max_response_size", positive_or_null),
    KEY("timeout", count_or_null), KEY("encoding", encoding));
static const struct oteli_schema otlp_grpc =
    OBJECT_OR_NULL(KEY("endpoint", grpc_endpoint), KEY("tls", grpc_tls), KEY("headers", headers),
                   KEY("headers_list", header_pairs), KEY("compression", compression),
                   KEY("max_request_size", length_or_null),
                   KEY("max_response_size", positive_or_null), KEY("timeout", count_or_null));
static const struct oteli_schema output_stream = {
    .shape = OTELI_SHAPE_TEXT, .may_be_null = true, .check = oteli_check_output_stream};
static const struct oteli_schema otlp_file = OBJECT_OR_NULL(KEY("output_stream", output_stream));
static const struct oteli_schema exporter =
    OPEN_CHOICE("span exporter", OTEL_COMPONENT_EXPORTER, KEY("otlp_http", otlp_http),
                KEY("otlp_grpc", otlp_grpc), KEY("otlp_file/development", otlp_file),
                KEY("console", empty_object));

static const struct oteli_schema batch =
    OBJECT(KEY("schedule_delay", count_or_null), KEY("export_timeout", count_or_null),
           KEY("max_queue_size", positive_or_null), KEY("max_export_batch_size", positive_or_null),
           REQUIRED("exporter", exporter));
static const struct oteli_schema simple = OBJECT(REQUIRED("exporter", exporter));
static const struct oteli_schema processor = OPEN_CHOICE(
    "span processor", OTEL_COMPONENT_PROCESSOR, KEY("batch", batch), KEY("simple", simple));
static const struct oteli_schema processors = LIST_OF(processor);

/* --- Samplers --- */

static const struct oteli_schema sampler;
static const struct oteli_schema composable;

static const struct oteli_schema with_ratio = OBJECT_OR_NULL(KEY("ratio", ratio_or_null));
static const struct oteli_schema parent_based =
    OBJECT_OR_NULL(KEY("root", sampler), KEY("remote_parent_sampled", sampler),
                   KEY("remote_parent_not_sampled", sampler), KEY("local_parent_sampled", sampler),
                   KEY("local_parent_not_sampled", sampler));
static const struct oteli_schema always_record = OBJECT(REQUIRED("root", sampler));
/* With 0 the sampler would ask without a pause. */
static const struct oteli_schema polling = INTEGER(1, INT32_MAX);
static const struct oteli_schema url = {.shape = OTELI_SHAPE_TEXT, .check = oteli_check_endpoint};
static const struct oteli_schema jaeger_remote = OBJECT_OR_NULL(
    REQUIRED("endpoint", url), KEY("interval", polling), REQUIRED("initial_sampler", sampler));
static const struct oteli_schema sampler = OPEN_CHOICE(
    "sampler", OTEL_COMPONENT_SAMPLER, KEY("always_on", empty_object),
    KEY("always_off", empty_object), KEY("always_record", always_record),
    KEY("composite/development", composable), KEY("jaeger_remote/development", jaeger_remote),
    KEY("parent_based", parent_based), KEY("probability/development", with_ratio),
    KEY("trace_id_ratio_based", with_ratio));

static const struct oteli_schema rule_values =
    OBJECT(REQUIRED("key", text), REQUIRED("values", texts));
static const struct oteli_schema rule_patterns =
    OBJECT(REQUIRED("key", text), KEY("included", texts), KEY("excluded", texts));
static const struct oteli_schema span_kind = WORD("internal server client producer consumer");
static const struct oteli_schema span_kinds = LIST_OF(span_kind);
static const struct oteli_schema span_parent = WORD("none remote local");
static const struct oteli_schema span_parents = LIST_OF(span_parent);
static const struct oteli_schema rule = OBJECT(
    KEY("attribute_values", rule_values), KEY("attribute_patterns", rule_patterns),
    KEY("span_kinds", span_kinds), KEY("parent", span_parents), REQUIRED("sampler", composable));
static const struct oteli_schema rules = LIST_OF(rule);
static const struct oteli_schema rule_based = OBJECT_OR_NULL(KEY("rules", rules));
static const struct oteli_schema parent_threshold = OBJECT(REQUIRED("root", composable));
static const struct oteli_schema composable =
    CHOICE("composable sampler", KEY("always_on", empty_object), KEY("always_off", empty_object),
           KEY("parent_threshold", parent_threshold), KEY("probability", with_ratio),
           KEY("rule_based", rule_based));

/* --- The tracer provider --- */

static const struct oteli_schema id_generator = CHOICE("id generator", KEY("random", empty_object));
static const struct oteli_schema tracer_config = OBJECT(KEY("enabled", boolean));
static const struct oteli_schema tracer =
    OBJECT(REQUIRED("name", text), REQUIRED("config", tracer_config));
static const struct oteli_schema tracers = LIST_OF(tracer);
static const struct oteli_schema configurator =
    OBJECT(KEY("default_config", tracer_config), KEY("tracers", tracers));
static const struct oteli_schema tracer_provider =
    OBJECT(REQUIRED("processors", processors), KEY("limits", span_limits), KEY("sampler", sampler),
           KEY("id_generator", id_generator), KEY("tracer_configurator/development", configurator));

/* --- What belongs to this SDK alone --- */

static const struct oteli_schema profiler_source = WORD("off on auto perf signal");
static const struct oteli_schema profiler_hz = INTEGER(1, OTELI_MAX_PROFILER_HZ);
static const struct oteli_schema profiler_signal = INTEGER(1, 64);
static const struct oteli_schema label_style = WORD("otel datadog pyroscope");
static const struct oteli_schema profiler_names = WORD("auto on off");
static const struct oteli_schema profiler = OBJECT_OR_NULL(
    KEY("source", profiler_source), KEY("hz", profiler_hz), KEY("signal", profiler_signal),
    KEY("out", text_or_null), KEY("endpoint", endpoint), KEY("label_style", label_style),
    KEY("names", profiler_names));
static const struct oteli_schema own = OBJECT(KEY("profiler", profiler));
static const struct oteli_schema distribution = {.shape = OTELI_SHAPE_MAP,
                                                 .may_be_null = true,
                                                 .may_have_others = true,
                                                 PROPERTIES(KEY("otel-c", own))};

/* --- The file --- */

static const struct oteli_schema file_format = {.shape = OTELI_SHAPE_SCALAR,
                                                .check = oteli_check_file_format,
                                                .doubt = oteli_doubt_file_format};
static const struct oteli_schema log_level =
    WORD("trace trace2 trace3 trace4 debug debug2 debug3 debug4 info info2 info3 info4 warn "
         "warn2 warn3 warn4 error error2 error3 error4 fatal fatal2 fatal3 fatal4");
const struct oteli_schema oteli_schema_file = {
    .shape = OTELI_SHAPE_MAP,
    PROPERTIES(REQUIRED("file_format", file_format), KEY("disabled", boolean_or_null),
               KEY("log_level", log_level), KEY("attribute_limits", general_limits),
               KEY("resource", resource), KEY("propagator", propagation),
               KEY("tracer_provider", tracer_provider),
               FLAGGED("meter_provider", anything, OTELI_NOT_TRACES),
               FLAGGED("logger_provider", anything, OTELI_NOT_TRACES),
               KEY("instrumentation/development", anything), KEY("distribution", distribution)),
    .may_have_more = true};
