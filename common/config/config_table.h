/* SPDX-License-Identifier: Apache-2.0 */
/* common/config/config_table.h - one row a variable; common/config/configuration.h says what comes
 * from it.
 *
 *     ROW(name, variable, type, default_text, min, max, words, option, doc)
 *
 * name          the field of oteli_config, and the member of otel_sdk_options if any
 * default_text  as it would stand in the environment; NULL: unset, which is no limit for
 *               numbers unless common/config/configuration.c names another row to look at
 * min, max      of numbers, in the unit of the variable
 * words         of enumerations and lists. "-word" is one of the specification that this build
 *               does not have, and is refused by that name; any other word is unknown. "!word" is
 *               for code only, not for the environment
 * option        OTELI_OPTION, or OTELI_NO_OPTION: environment only
 * doc           for docs/CONFIGURATION.md; Markdown, full sentences
 *
 * To add a setting: add its row; append a member to otel_sdk_options if code may choose it too;
 * generate docs/CONFIGURATION.md again; add a row to tests/blackbox/settings_test.py. What the
 * engine keeps of it is a member of its settings (sdk/engine/engine.h), set by settings_of in
 * sdk/lifecycle/engine_life.c; forked children copy them all. What a YAML file may set is in
 * config/read/schema_table.c, and is read in config/settings.c. The level of the log stays the
 * first row, so that it holds for what is said about the others. */
#ifndef OTELI_CONFIG_TABLE_H
#define OTELI_CONFIG_TABLE_H

#include <stdint.h>

#define OTELI_MAX_COUNT INT32_MAX
#define OTELI_MAX_VALUE_DEPTH 31 /* as in api/encode/key_value.h */
#define OTELI_MAX_MS INT32_MAX
#define OTELI_MIN_QUEUE_BYTES (INT64_C(1) << 20)
#define OTELI_MAX_QUEUE_BYTES (INT64_C(1) << 40)
#define OTELI_LEAST_SPAN_BYTES 64 /* of an ended one in the queue */
#define OTELI_MIN_SPOOL_BYTES (INT64_C(1) << 16)
#define OTELI_MAX_CONCURRENCY 16
#define OTELI_MAX_FUNCTION_DEPTH 256
#define OTELI_MAX_PROFILER_HZ 10000

/* The table is one macro of all its groups; nothing but reading order separates them. */
#define OTELI_CONFIG_TABLE(ROW)  \
    OTELI_CONFIG_GENERAL(ROW)    \
    OTELI_CONFIG_RESOURCE(ROW)   \
    OTELI_CONFIG_SAMPLING(ROW)   \
    OTELI_CONFIG_LIMITS(ROW)     \
    OTELI_CONFIG_PROCESSING(ROW) \
    OTELI_CONFIG_HOLDING(ROW)    \
    OTELI_CONFIG_EXPORT(ROW)     \
    OTELI_CONFIG_OTLP(ROW)       \
    OTELI_CONFIG_PROFILING(ROW)  \
    OTELI_CONFIG_FUNCTIONS(ROW)

#define OTELI_CONFIG_GENERAL(ROW)                                                                  \
    ROW(log_level, "OTEL_LOG_LEVEL", OTELI_TYPE_ENUM, "info", 0, 0, "none error warn info debug",  \
        OTELI_OPTION,                                                                              \
        "How much otel-c says about itself. Without a handler of your own, `info` shows "          \
        "warnings and errors on stderr, and where spans go if that is the default; `debug` shows " \
        "everything.")                                                                             \
    ROW(config_file, "OTEL_CONFIG_FILE", OTELI_TYPE_STRING, NULL, 0, 0, NULL, OTELI_NO_OPTION,     \
        "A YAML file instead of variables, as docs/DECLARATIVE.md describes it. All other "        \
        "variables are ignored then, but for those that the file refers to. It needs the "         \
        "library `otel-config`.")                                                                  \
    ROW(experimental_config_file, "OTEL_EXPERIMENTAL_CONFIG_FILE", OTELI_TYPE_STRING, NULL, 0, 0,  \
        NULL, OTELI_NO_OPTION, "The former name of `OTEL_CONFIG_FILE`, which beats it.")           \
    ROW(sdk_disabled, "OTEL_SDK_DISABLED", OTELI_TYPE_BOOL, "false", 0, 0, NULL, OTELI_OPTION,     \
        "`true` records and exports nothing. Contexts are still propagated.")                      \
    ROW(service_name, "OTEL_SERVICE_NAME", OTELI_TYPE_STRING, NULL, 0, 0, NULL, OTELI_OPTION,      \
        "The resource attribute `service.name`. It beats the one in "                              \
        "`OTEL_RESOURCE_ATTRIBUTES`. Unset everywhere: `unknown_service:` and the name of the "    \
        "program.")                                                                                \
    ROW(resource_attributes, "OTEL_RESOURCE_ATTRIBUTES", OTELI_TYPE_STRING, NULL, 0, 0, NULL,      \
        OTELI_OPTION,                                                                              \
        "More resource attributes, as `key=value,key=value`. Values are percent-decoded. One "     \
        "bad pair and the whole text is left out, with a warning.")                                \
    ROW(propagators, "OTEL_PROPAGATORS", OTELI_TYPE_LIST, "tracecontext,baggage", 0, 0,            \
        "tracecontext baggage b3 b3multi jaeger none -xray -ottrace", OTELI_OPTION,                \
        "How a context travels to another process, in this order: W3C Trace Context, W3C "         \
        "Baggage, B3 in one header or in several, Jaeger's headers; or not at all.")               \
    ROW(http_known_methods, "OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS", OTELI_TYPE_STRING, NULL, 0, \
        0, NULL, OTELI_NO_OPTION,                                                                  \
        "Which methods the HTTP spans of `otel/http.h` know, as `GET,PURGE`, instead of those of " \
        "the semantic conventions. Others are `_OTHER`.")                                          \
    ROW(clock, "OTEL_C_CLOCK", OTELI_TYPE_ENUM, "auto", 0, 0, "auto tsc monotonic coarse !fake",   \
        OTELI_OPTION,                                                                              \
        "Where timestamps come from. `auto` takes the processor's counter if it can be trusted "   \
        "and `monotonic` if not; `tsc` asks for the counter, `monotonic` for "                     \
        "`CLOCK_MONOTONIC`, `coarse` for its cheap variant with a resolution of milliseconds.")    \
    ROW(thread_context, "OTEL_C_THREAD_CONTEXT", OTELI_TYPE_ENUM, "on", 0, 0, "on off",            \
        OTELI_OPTION,                                                                              \
        "Whether profilers outside the process, such as OpenTelemetry's eBPF profiler, can see "   \
        "which service it is and which span each thread is working for. `off` does not publish "   \
        "the context of the process, without which they do not look at its threads; nor what "     \
        "`otel-doctor --pid` shows, where spans go and which settings count.")                     \
    ROW(thread_context_schema, "OTEL_C_THREAD_CONTEXT_SCHEMA", OTELI_TYPE_STRING,                  \
        "tlsdesc_v1_dev", 0, 0, NULL, OTELI_OPTION,                                                \
        "The name that these profilers are given for the layout of what threads publish, at "      \
        "most 63 bytes. There is one layout; its name is in development: set another if your "     \
        "profiler expects that.")

#define OTELI_CONFIG_RESOURCE(ROW)                                                            \
    ROW(entities, "OTEL_ENTITIES", OTELI_TYPE_STRING, NULL, 0, 0, NULL, OTELI_OPTION,         \
        "What the process is part of, as `type{id=value,...}[description=value,...]@schema` " \
        "with `;` between them. Their attributes are put into the resource. One that is "     \
        "malformed is left out, with a warning. (In development in the specification.)")      \
    ROW(resource_detectors, "OTEL_C_RESOURCE_DETECTORS", OTELI_TYPE_LIST,                     \
        "process,host,container,service", 0, 0,                                               \
        "process process_command process_owner host os container service none", OTELI_OPTION, \
        "Which attributes the resource gets by itself: of the `process` (id, executable, C "  \
        "library), the `host` (name, id, architecture, operating system), the `os` alone, "   \
        "the `container` (id), the `service` (a random `service.instance.id`). Because they " \
        "can be personal, `process_command` (arguments) and `process_owner` (the user's "     \
        "name) have to be asked for.")

#define OTELI_CONFIG_SAMPLING(ROW)                                                               \
    ROW(traces_sampler, "OTEL_TRACES_SAMPLER", OTELI_TYPE_ENUM, "parentbased_always_on", 0, 0,   \
        "always_on always_off traceidratio parentbased_always_on parentbased_always_off "        \
        "parentbased_traceidratio jaeger_remote parentbased_jaeger_remote -xray",                \
        OTELI_OPTION,                                                                            \
        "Which traces are recorded. The `parentbased_` samplers do what the parent span did, "   \
        "and decide only for spans without a parent. `jaeger_remote` asks a Jaeger server for "  \
        "its rules.")                                                                            \
    ROW(traces_sampler_arg, "OTEL_TRACES_SAMPLER_ARG", OTELI_TYPE_STRING, NULL, 0, 0, NULL,      \
        OTELI_OPTION,                                                                            \
        "For the `traceidratio` samplers: which part of all traces, from 0 to 1. Unset or bad: " \
        "1. For the `jaeger_remote` samplers: `endpoint=http://localhost:5778,"                  \
        "pollingIntervalMs=60000,initialSamplingRate=0.001`, each part or none. The other "      \
        "samplers take no argument.")

#define OTELI_CONFIG_LIMITS(ROW)                                                                   \
    ROW(attribute_value_length_limit, "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", OTELI_TYPE_COUNT, NULL, \
        0, INT64_MAX, NULL, OTELI_OPTION,                                                          \
        "The longest attribute value: characters (code points) of strings, bytes of byte "         \
        "arrays, for each element of an array or a map. What is longer is cut. Unset: no limit.")  \
    ROW(attribute_count_limit, "OTEL_ATTRIBUTE_COUNT_LIMIT", OTELI_TYPE_COUNT, "128", 0,           \
        OTELI_MAX_COUNT, NULL, OTELI_OPTION,                                                       \
        "How many attributes are kept. The others are counted as dropped.")                        \
    ROW(attribute_value_depth_limit, "OTEL_C_ATTRIBUTE_VALUE_DEPTH_LIMIT", OTELI_TYPE_COUNT, "31", \
        0, OTELI_MAX_VALUE_DEPTH, NULL, OTELI_OPTION,                                              \
        "How deep the arrays and maps of an attribute value may be nested: the value itself is "   \
        "at depth 1. What is deeper is an empty value instead. Protobuf's parsers refuse whole "   \
        "requests in which maps are nested more deeply than 31.")                                  \
    ROW(span_attribute_value_length_limit, "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",               \
        OTELI_TYPE_COUNT, NULL, 0, INT64_MAX, NULL, OTELI_OPTION,                                  \
        "The same for spans. Unset: `OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT`.")                         \
    ROW(span_attribute_count_limit, "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", OTELI_TYPE_COUNT, NULL, 0,  \
        OTELI_MAX_COUNT, NULL, OTELI_OPTION,                                                       \
        "How many attributes of a span are kept. Unset: `OTEL_ATTRIBUTE_COUNT_LIMIT`.")            \
    ROW(span_event_count_limit, "OTEL_SPAN_EVENT_COUNT_LIMIT", OTELI_TYPE_COUNT, "128", 0,         \
        OTELI_MAX_COUNT, NULL, OTELI_OPTION, "How many events of a span are kept.")                \
    ROW(span_link_count_limit, "OTEL_SPAN_LINK_COUNT_LIMIT", OTELI_TYPE_COUNT, "128", 0,           \
        OTELI_MAX_COUNT, NULL, OTELI_OPTION, "How many links of a span are kept.")                 \
    ROW(event_attribute_count_limit, "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", OTELI_TYPE_COUNT, "128",  \
        0, OTELI_MAX_COUNT, NULL, OTELI_OPTION,                                                    \
        "How many attributes of an event are kept. `OTEL_ATTRIBUTE_COUNT_LIMIT` does not "         \
        "change it.")                                                                              \
    ROW(link_attribute_count_limit, "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT", OTELI_TYPE_COUNT, "128", 0, \
        OTELI_MAX_COUNT, NULL, OTELI_OPTION,                                                       \
        "How many attributes of a link are kept. `OTEL_ATTRIBUTE_COUNT_LIMIT` does not "           \
        "change it.")

#define OTELI_CONFIG_PROCESSING(ROW)                                                               \
    ROW(bsp_schedule_delay, "OTEL_BSP_SCHEDULE_DELAY", OTELI_TYPE_DURATION, "5000", 0,             \
        OTELI_MAX_MS, NULL, OTELI_OPTION,                                                          \
        "How long spans wait for their batch to become full before they are exported anyway.")     \
    ROW(bsp_export_timeout, "OTEL_BSP_EXPORT_TIMEOUT", OTELI_TYPE_TIMEOUT, "30000", 0,             \
        OTELI_MAX_MS, NULL, OTELI_OPTION,                                                          \
        "How long the export of one batch may take. What is not done by then is dropped and "      \
        "counted.")                                                                                \
    ROW(bsp_max_queue_size, "OTEL_BSP_MAX_QUEUE_SIZE", OTELI_TYPE_COUNT, NULL, 1, OTELI_MAX_COUNT, \
        NULL, OTELI_OPTION,                                                                        \
        "How many ended spans may wait for their export. The newest are dropped and counted. "     \
        "Unset: as many as `OTEL_C_QUEUE_MAX_BYTES` has room for.")                                \
    ROW(bsp_max_export_batch_size, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", OTELI_TYPE_COUNT, "512", 1,   \
        OTELI_MAX_COUNT, NULL, OTELI_OPTION,                                                       \
        "The most spans in one export. More than the queue holds: the size of the queue, with "    \
        "a warning. More than half of it also gets a warning, because then spans are dropped "     \
        "while a batch is on its way.")                                                            \
    ROW(queue_max_bytes, "OTEL_C_QUEUE_MAX_BYTES", OTELI_TYPE_COUNT, "16777216",                   \
        OTELI_MIN_QUEUE_BYTES, OTELI_MAX_QUEUE_BYTES, NULL, OTELI_OPTION,                          \
        "How many bytes the ended spans that wait for their export may occupy, beyond 16 KiB "     \
        "for each thread. The newest are dropped and counted.")

#define OTELI_CONFIG_HOLDING(ROW)                                                               \
    ROW(tail_keep_slower_than, "OTEL_C_TAIL_KEEP_SLOWER_THAN", OTELI_TYPE_DURATION, NULL, 0,    \
        OTELI_MAX_MS, NULL, OTELI_OPTION,                                                       \
        "Decide about a trace at its end: it is exported if its local root took at least this " \
        "long. Local roots then hold back the spans below them until they end.")                \
    ROW(tail_keep_errors, "OTEL_C_TAIL_KEEP_ERRORS", OTELI_TYPE_BOOL, "false", 0, 0, NULL,      \
        OTELI_OPTION,                                                                           \
        "`true` decides about a trace at its end as well: it is exported if one of its spans "  \
        "has the status Error. One reason to keep a trace is enough.")                          \
    ROW(held_max_bytes, "OTEL_C_HELD_MAX_BYTES", OTELI_TYPE_COUNT, "33554432", 0,               \
        OTELI_MAX_QUEUE_BYTES, NULL, OTELI_OPTION,                                              \
        "How many bytes the spans that are held back or collected may occupy. What does not "   \
        "fit is dropped and counted.")

#define OTELI_CONFIG_EXPORT(ROW)                                                                  \
    ROW(traces_exporter, "OTEL_TRACES_EXPORTER", OTELI_TYPE_LIST, "otlp", 0, 0,                   \
        "otlp console otlp/stdout none -zipkin -logging", OTELI_OPTION,                           \
        "Where spans go; with several exporters, to each of them. `none`: spans are sampled and " \
        "propagated, and then discarded, and `otel_tracer_enabled` is false; where the program "  \
        "has exporters or processors of its own, those still get spans.")                         \
    ROW(exporter_otlp_endpoint, "OTEL_EXPORTER_OTLP_ENDPOINT", OTELI_TYPE_STRING, NULL, 0, 0,     \
        NULL, OTELI_OPTION,                                                                       \
        "The base URL of the receiver; `v1/traces` is put behind it. Unset: "                     \
        "`http://localhost:4318`.")                                                               \
    ROW(exporter_otlp_traces_endpoint, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", OTELI_TYPE_STRING,   \
        NULL, 0, 0, NULL, OTELI_OPTION,                                                           \
        "The URL of the receiver, used as it is. It beats `OTEL_EXPORTER_OTLP_ENDPOINT`.")        \
    ROW(exporter_otlp_headers, "OTEL_EXPORTER_OTLP_HEADERS", OTELI_TYPE_STRING, NULL, 0, 0, NULL, \
        OTELI_OPTION,                                                                             \
        "Headers for each request, as `name=value,name=value`. Values are percent-decoded.")      \
    ROW(exporter_otlp_traces_headers, "OTEL_EXPORTER_OTLP_TRACES_HEADERS", OTELI_TYPE_STRING,     \
        NULL, 0, 0, NULL, OTELI_OPTION,                                                           \
        "The same, instead of `OTEL_EXPORTER_OTLP_HEADERS`: the two are not merged.")             \
    ROW(exporter_otlp_timeout, "OTEL_EXPORTER_OTLP_TIMEOUT", OTELI_TYPE_TIMEOUT, "10000", 0,      \
        OTELI_MAX_MS, NULL, OTELI_OPTION,                                                         \
        "How long the receiver has for one batch, all retries included.")                         \
    ROW(exporter_otlp_traces_timeout, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", OTELI_TYPE_TIMEOUT,    \
        NULL, 0, OTELI_MAX_MS, NULL, OTELI_OPTION,                                                \
        "The same for traces. Unset: `OTEL_EXPORTER_OTLP_TIMEOUT`.")                              \
    ROW(no_color, "NO_COLOR", OTELI_TYPE_STRING, NULL, 0, 0, NULL, OTELI_NO_OPTION,               \
        "Any text that is not empty: the console exporter uses no colours.")

#define OTELI_CONFIG_OTLP(ROW)                                                                    \
    ROW(exporter_otlp_protocol, "OTEL_EXPORTER_OTLP_PROTOCOL", OTELI_TYPE_ENUM, "http/protobuf",  \
        0, 0, "http/protobuf http/json grpc", OTELI_OPTION,                                       \
        "How the receiver is spoken to. With `grpc` the endpoint is "                             \
        "`http://localhost:4317` unless there is another; that is taken as it is then, "          \
        "without `v1/traces`, and may be `host:port`.")                                           \
    ROW(exporter_otlp_traces_protocol, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", OTELI_TYPE_ENUM,     \
        NULL, 0, 0, "http/protobuf http/json grpc", OTELI_OPTION,                                 \
        "The same for traces. Unset: `OTEL_EXPORTER_OTLP_PROTOCOL`.")                             \
    ROW(exporter_otlp_compression, "OTEL_EXPORTER_OTLP_COMPRESSION", OTELI_TYPE_ENUM, "none", 0,  \
        0, "none gzip zstd", OTELI_NO_OPTION,                                                     \
        "How requests are compressed. `zstd` does not belong to the specification, nor "          \
        "to every build.")                                                                        \
    ROW(exporter_otlp_traces_compression, "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",                \
        OTELI_TYPE_ENUM, NULL, 0, 0, "none gzip zstd", OTELI_NO_OPTION,                           \
        "The same for traces. Unset: `OTEL_EXPORTER_OTLP_COMPRESSION`.")                          \
    ROW(exporter_otlp_certificate, "OTEL_EXPORTER_OTLP_CERTIFICATE", OTELI_TYPE_STRING, NULL, 0,  \
        0, NULL, OTELI_NO_OPTION,                                                                 \
        "A PEM file with the certificates that the receiver's own is checked with. "              \
        "Unset: those of the system. This file and the two below are read again when "            \
        "they change.")                                                                           \
    ROW(exporter_otlp_traces_certificate, "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",                \
        OTELI_TYPE_STRING, NULL, 0, 0, NULL, OTELI_NO_OPTION,                                     \
        "The same for traces. Unset: `OTEL_EXPORTER_OTLP_CERTIFICATE`.")                          \
    ROW(exporter_otlp_client_key, "OTEL_EXPORTER_OTLP_CLIENT_KEY", OTELI_TYPE_STRING, NULL, 0, 0, \
        NULL, OTELI_NO_OPTION, "A PEM file with the key of the certificate below.")               \
    ROW(exporter_otlp_traces_client_key, "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY",                  \
        OTELI_TYPE_STRING, NULL, 0, 0, NULL, OTELI_NO_OPTION,                                     \
        "The same for traces. Unset: `OTEL_EXPORTER_OTLP_CLIENT_KEY`.")                           \
    ROW(exporter_otlp_client_certificate, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",                \
        OTELI_TYPE_STRING, NULL, 0, 0, NULL, OTELI_NO_OPTION,                                     \
        "A PEM file with a certificate of ours, for a receiver that asks for one.")               \
    ROW(exporter_otlp_traces_client_certificate, "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE",  \
        OTELI_TYPE_STRING, NULL, 0, 0, NULL, OTELI_NO_OPTION,                                     \
        "The same for traces. Unset: `OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE`.")                   \
    ROW(exporter_otlp_insecure, "OTEL_EXPORTER_OTLP_INSECURE", OTELI_TYPE_BOOL, "false", 0, 0,    \
        NULL, OTELI_NO_OPTION,                                                                    \
        "`true`: no TLS with an endpoint that has no scheme, which only `grpc` may "              \
        "have.")                                                                                  \
    ROW(exporter_otlp_traces_insecure, "OTEL_EXPORTER_OTLP_TRACES_INSECURE", OTELI_TYPE_BOOL,     \
        "false", 0, 0, NULL, OTELI_NO_OPTION,                                                     \
        "The same for traces. Unset: `OTEL_EXPORTER_OTLP_INSECURE`.")                             \
    ROW(otlp_tls_min, "OTEL_C_OTLP_TLS_MIN", OTELI_TYPE_ENUM, "1.2", 0, 0, "1.2 1.3",             \
        OTELI_NO_OPTION, "The oldest version of TLS that is good enough.")                        \
    ROW(otlp_concurrency, "OTEL_C_OTLP_CONCURRENCY", OTELI_TYPE_COUNT, "1", 1,                    \
        OTELI_MAX_CONCURRENCY, NULL, OTELI_NO_OPTION,                                             \
        "How many requests may be on their way at a time, each over a connection of its"          \
        " own, when a batch is too large for one.")                                               \
    ROW(profiler_endpoint, "OTEL_C_PROFILER_ENDPOINT", OTELI_TYPE_STRING, NULL, 0, 0, NULL,       \
        OTELI_OPTION,                                                                             \
        "With the library `otel-profiling`, the URL of the receiver of profiles, used as it is. " \
        "Unset: `OTEL_EXPORTER_OTLP_ENDPOINT` with `/v1development/profiles` behind it.")         \
    ROW(spool_dir, "OTEL_C_SPOOL_DIR", OTELI_TYPE_STRING, NULL, 0, 0, NULL, OTELI_NO_OPTION,      \
        "A directory, which must exist, for what is exported while the receiver is "              \
        "away. It is sent when the receiver is back, by this program or by the next "             \
        "that uses the directory. Unset: it is dropped and counted.")                             \
    ROW(spool_max_bytes, "OTEL_C_SPOOL_MAX_BYTES", OTELI_TYPE_COUNT, "67108864",                  \
        OTELI_MIN_SPOOL_BYTES, OTELI_MAX_QUEUE_BYTES, NULL, OTELI_NO_OPTION,                      \
        "How many bytes may be there. The oldest make room for the newest.")                      \
    ROW(spool_max_age, "OTEL_C_SPOOL_MAX_AGE", OTELI_TYPE_TIMEOUT, "86400000", 0, OTELI_MAX_MS,   \
        NULL, OTELI_NO_OPTION, "How many milliseconds they may wait there.")

#define OTELI_CONFIG_PROFILING(ROW)                                                                \
    ROW(profiler, "OTEL_C_PROFILER", OTELI_TYPE_ENUM, "off", 0, 0, "off on auto perf signal",      \
        OTELI_OPTION,                                                                              \
        "`on` samples where the processor time of the program goes, and for which span: "          \
        "docs/PROFILING.md. It takes the kernel's perf events, or where those are refused a "      \
        "timer and a signal for each thread; `perf` and `signal` take one and not the other, "     \
        "`auto` is `on`. It needs the library `otel-profiling`.")                                  \
    ROW(profiler_hz, "OTEL_C_PROFILER_HZ", OTELI_TYPE_COUNT, "99", 1, OTELI_MAX_PROFILER_HZ, NULL, \
        OTELI_OPTION, "Samples in a second of a thread's processor time.")                         \
    ROW(profiler_signal, "OTEL_C_PROFILER_SIGNAL", OTELI_TYPE_COUNT, "27", 1, 64, NULL,            \
        OTELI_OPTION,                                                                              \
        "The number of the signal that the timers send: 27 is `SIGPROF`. Another one, such as 12 " \
        "(`SIGUSR2`), where the program has a handler of that one. Signals of faults, `SIGKILL`, " \
        "`SIGSTOP`, `SIGCONT` and those of the C library (32, 33) cannot be taken.")               \
    ROW(profiler_out, "OTEL_C_PROFILER_OUT", OTELI_TYPE_STRING, "otlp", 0, 0, NULL, OTELI_OPTION,  \
        "Where profiles go: `otlp`, a receiver that takes profiles, which the `OTEL_EXPORTER_"     \
        "OTLP` variables name; or a directory, which must exist, for pprof files.")                \
    ROW(profiler_names, "OTEL_C_PROFILER_NAMES", OTELI_TYPE_ENUM, "auto", 0, 0, "auto on off",     \
        OTELI_OPTION,                                                                              \
        "Names of functions in profiles, from symbol tables: `auto` has them in what is sent to "  \
        "a receiver, and not in pprof files, whose readers find them, with lines, in the "         \
        "programs.")                                                                               \
    ROW(pprof_label_style, "OTEL_C_PPROF_LABEL_STYLE", OTELI_TYPE_ENUM, "otel", 0, 0,              \
        "otel datadog pyroscope", OTELI_OPTION,                                                    \
        "How labels are called in pprof files: `trace_id`, `span_id`, `local_root_span_id` and "   \
        "`http.route`, or as Datadog or Grafana Pyroscope look for them.")

/* Also read by functions/functions_start.c, when that library is loaded. */
#define OTELI_CONFIG_FUNCTIONS(ROW)                                                             \
    ROW(functions_min_duration, "OTEL_C_FUNCTIONS_MIN_DURATION", OTELI_TYPE_COUNT, "10", 0,     \
        OTELI_MAX_COUNT, NULL, OTELI_NO_OPTION,                                                 \
        "Microseconds. With the library `otel-functions`, a function that took less has no "    \
        "span, unless something in it has. `0` keeps all.")                                     \
    ROW(functions_max_depth, "OTEL_C_FUNCTIONS_MAX_DEPTH", OTELI_TYPE_COUNT, "64", 1,           \
        OTELI_MAX_FUNCTION_DEPTH, NULL, OTELI_NO_OPTION,                                        \
        "How many functions, one called by another, have spans. Those further down have none.") \
    ROW(functions_exclude, "OTEL_C_FUNCTIONS_EXCLUDE", OTELI_TYPE_STRING, NULL, 0, 0, NULL,     \
        OTELI_NO_OPTION,                                                                        \
        "Functions without a span of their own: names or patterns with `*`, `?` and `[...]`, "  \
        "separated by commas. Those of C++ are compared as the linker knows them.")

#endif
