/* SPDX-License-Identifier: Apache-2.0 */
/* otel/sdk.h - start, flush and shut down the SDK, and ask what became of the spans.
 *
 * Threads:  otel_start and otel_shutdown from one thread at a time; everything else any
 *           thread. The SDK runs one thread of its own, "otel-export", with all signals
 *           blocked, unless otel_sdk_options.threadless or .simple says otherwise.
 * Signals:  never in a handler: these take locks, allocate and wait.
 * Errors:   otel_status. A bad environment value is never an error: it is one warning,
 *           and the default is used.
 * Source:   OpenTelemetry specification, trace/sdk.md and
 *           configuration/sdk-environment-variables.md. */
#ifndef OTEL_SDK_H
#define OTEL_SDK_H

#include <otel/base.h>
#include <otel/exporter.h>
#include <otel/lines.h>
#include <otel/processor.h>
#include <otel/propagate.h>
#include <otel/sampler.h>
#include <otel/value.h>

OTEL_BEGIN_DECLS

/* Everything that can be chosen. What is zero or NULL comes from the environment, and
 * what is not there either from `defaults`, or else is the specification's default;
 * docs/CONFIGURATION.md has the table. Strings and arrays are copied by otel_start; exporters,
 * processors and the sampler are adopted, also when it fails. The struct only grows at its end. */
typedef struct otel_sdk_options {
    size_t size; /* sizeof(otel_sdk_options) */

    /* The resource: who is being traced. */
    const char *service_name;        /* OTEL_SERVICE_NAME */
    const char *resource_attributes; /* OTEL_RESOURCE_ATTRIBUTES: key=value,key=value */
    const otel_attribute *resource;  /* more of them, of any type; these win */
    size_t resource_count;

    /* What is recorded. */
    const char *traces_sampler;                /* OTEL_TRACES_SAMPLER */
    const char *traces_sampler_arg;            /* OTEL_TRACES_SAMPLER_ARG */
    int64_t attribute_value_length_limit;      /* OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT */
    int64_t attribute_count_limit;             /* OTEL_ATTRIBUTE_COUNT_LIMIT */
    int64_t span_attribute_value_length_limit; /* OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT */
    int64_t span_attribute_count_limit;        /* OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT */
    int64_t span_event_count_limit;            /* OTEL_SPAN_EVENT_COUNT_LIMIT */
    int64_t span_link_count_limit;             /* OTEL_SPAN_LINK_COUNT_LIMIT */
    int64_t event_attribute_count_limit;       /* OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT */
    int64_t link_attribute_count_limit;        /* OTEL_LINK_ATTRIBUTE_COUNT_LIMIT */

    /* The batch span processor. */
    int64_t bsp_schedule_delay;        /* ms, OTEL_BSP_SCHEDULE_DELAY */
    int64_t bsp_export_timeout;        /* ms, OTEL_BSP_EXPORT_TIMEOUT */
    int64_t bsp_max_queue_size;        /* spans, OTEL_BSP_MAX_QUEUE_SIZE */
    int64_t bsp_max_export_batch_size; /* spans, OTEL_BSP_MAX_EXPORT_BATCH_SIZE */
    int64_t queue_max_bytes;           /* bytes of ended spans, OTEL_C_QUEUE_MAX_BYTES */

    /* Where spans go. */
    const char *traces_exporter;    /* OTEL_TRACES_EXPORTER; a list */
    const otel_exporter *exporters; /* exporters of your own, each a pipeline more */
    size_t exporter_count;
    bool simple;                        /* export each span when it ends, on the thread that ends
                                          it: for tests and debugging, it makes every end wait */
    const char *exporter_otlp_endpoint; /* OTEL_EXPORTER_OTLP_ENDPOINT */
    const char *exporter_otlp_traces_endpoint; /* OTEL_EXPORTER_OTLP_TRACES_ENDPOINT */
    const char *exporter_otlp_headers;         /* OTEL_EXPORTER_OTLP_HEADERS */
    const char *exporter_otlp_traces_headers;  /* OTEL_EXPORTER_OTLP_TRACES_HEADERS */
    int64_t exporter_otlp_timeout;             /* ms, OTEL_EXPORTER_OTLP_TIMEOUT */
    int64_t exporter_otlp_traces_timeout;      /* ms, OTEL_EXPORTER_OTLP_TRACES_TIMEOUT */
    const char *exporter_otlp_protocol;        /* OTEL_EXPORTER_OTLP_PROTOCOL: http/protobuf */
    const char *exporter_otlp_traces_protocol; /* OTEL_EXPORTER_OTLP_TRACES_PROTOCOL */

    const char *propagators; /* OTEL_PROPAGATORS */
    const char *clock;       /* OTEL_C_CLOCK: auto, tsc, monotonic, coarse */
    const char *log_level;   /* OTEL_LOG_LEVEL */

    /* The decision at the end: where one of the first three is set, every local root (a span
     * without a parent, or with a remote one) holds its spans back, and when it ends they are
     * exported only if it was slow, or one of them failed, or tail_keep says so. */
    int64_t tail_keep_slower_than; /* ms, OTEL_C_TAIL_KEEP_SLOWER_THAN */
    const char *tail_keep_errors;  /* "true" or "false", OTEL_C_TAIL_KEEP_ERRORS */
    bool (*tail_keep)(void *state, const otel_tail *tail); /* on the thread that ends it */
    void *tail_keep_state;
    int64_t held_max_bytes; /* of held-back and collected spans, OTEL_C_HELD_MAX_BYTES */

    /* The exporter thread. `threadless`: there is none, and the program calls otel_poll. */
    bool threadless;
    int64_t thread_stack_bytes;          /* of its stack; 0: 256 KiB */
    void (*thread_started)(void *state); /* called on it before anything else: to name it, to
                                            pin it (pthread_self()), to lower its priority */
    void *thread_started_state;          /* handed over as it is */
    int64_t attribute_value_depth_limit; /* OTEL_C_ATTRIBUTE_VALUE_DEPTH_LIMIT */

    /* What the program does itself, on the threads that start and end spans. */
    const otel_sampler *sampler;      /* in the place of traces_sampler: otel/sampler.h */
    const otel_processor *processors; /* called in this order: otel/processor.h */
    size_t processor_count;

    /* Ids: 16 bytes of a new trace, or 8 of a new span; one of them is wanted in each call, and
     * the other is NULL. What is all zero is asked for once more, and then made by the SDK. Any
     * thread. A span's id is also made if it is not sampled; those of mounts are the SDK's. */
    void (*generate_ids)(void *state, uint8_t *trace_id, uint8_t *span_id);
    void *generate_ids_state;
    bool generated_ids_are_random; /* the trace ids are, as OTEL_TRACE_FLAG_RANDOM says */

    /* False: spans of this tracer are as without an SDK, and pass their parent on. Asked once for
     * each tracer, and again after otel_tracers_reconfigure(). Any thread. */
    bool (*tracer_enabled)(void *state, const otel_scope_view *scope);
    void *tracer_enabled_state;

    const otel_propagator *propagator; /* the global propagator, instead of `propagators`; it has
                                          to stay, also after otel_shutdown */

    const char *resource_schema_url; /* of the attributes in `resource`; if detectors follow
                                        another schema, the resource is sent without a URL */
    const char *resource_detectors;  /* OTEL_C_RESOURCE_DETECTORS: a list */
    const char *entities;            /* OTEL_ENTITIES */
    const char *sdk_disabled;        /* "true" or "false", OTEL_SDK_DISABLED */

    bool ignore_environment; /* nothing is read from the environment: what is zero here is a
                                default */

    const char *thread_context;        /* OTEL_C_THREAD_CONTEXT: on, off */
    const char *thread_context_schema; /* OTEL_C_THREAD_CONTEXT_SCHEMA */

    const char *profiler;          /* OTEL_C_PROFILER: off, on, auto, perf, signal */
    int64_t profiler_hz;           /* OTEL_C_PROFILER_HZ */
    const char *profiler_out;      /* OTEL_C_PROFILER_OUT: otlp, or a directory */
    const char *profiler_endpoint; /* OTEL_C_PROFILER_ENDPOINT */
    const char *profiler_names;    /* OTEL_C_PROFILER_NAMES: auto, on, off */
    const char *pprof_label_style; /* OTEL_C_PPROF_LABEL_STYLE: otel, datadog, pyroscope */
    int64_t profiler_signal;       /* OTEL_C_PROFILER_SIGNAL: a signal's number */

    const char *service_version; /* service.version: beats that of OTEL_RESOURCE_ATTRIBUTES */

    /* The program's own defaults (or NULL): what the environment, a file and the members above
     * beat, and what beats the defaults of the specification. Its members with a variable count,
     * service_version, and `resource` with its schema URL; the others are not looked at. */
    const struct otel_sdk_options *defaults;
} otel_sdk_options;

#define OTEL_SDK_OPTIONS(...) (&(otel_sdk_options){.size = sizeof(otel_sdk_options), __VA_ARGS__})

/* Start the SDK: read the environment (here, on this thread, and never again), build the
 * pipelines, start the exporter thread. Options may be NULL. With OTEL_CONFIG_FILE it is
 * otel_start_from_file (otel/config.h). OTEL_SDK_DISABLED=true makes
 * this answer OTEL_OK and record nothing. One message of level info says where spans go, by which
 * sampler, and whether a default, the environment, a file or code said so. After an error nothing
 * is running. In library `otel`, because it knows every exporter. */
OTEL_API OTEL_MUST_USE otel_status otel_start(const otel_sdk_options *options);

/* As otel_start, but with only the exporters of the options, without reading the environment or
 * knowing any exporter itself. In library `otel-sdk`. */
OTEL_API OTEL_MUST_USE otel_status otel_start_with(const otel_sdk_options *options);

/* Export every span that ended before this call. OTEL_OK: all that ended since the last flush were
 * delivered, withheld, or put into the exporter's spool, whose files a flush does not wait for.
 * OTEL_ERROR_EXPORT_FAILED: spans were dropped or rejected since the last flush that did not answer
 * OTEL_ERROR_TIMEOUT (or since otel_start), also before this call. Each loss is reported by one
 * flush. Spans that end while the SDK is shut down (OTEL_DROP_ALREADY_SHUTDOWN) do not count.
 * OTEL_ERROR_TIMEOUT: not done within `timeout_ms` (0: only ask for it, do not wait). Any
 * thread, also concurrently. */
OTEL_API OTEL_MUST_USE otel_status otel_flush(int64_t timeout_ms);

/* Flush, stop the exporter thread, and turn the API back into the harmless one without an SDK.
 * Returns within `timeout_ms` whatever the receiver does, and at most 50 ms later when an exporter
 * does not come back at all; spans that were not exported by then are counted as dropped, and the
 * answer is OTEL_ERROR_TIMEOUT. OTEL_ERROR_EXPORT_FAILED: spans were dropped or rejected since
 * otel_start, whether or not a flush has answered for them: the statistics say why. OTEL_OK says
 * nothing about spans that are open: they are not exported, they stay `open` in the statistics, and
 * one that ends later is dropped (OTEL_DROP_ALREADY_SHUTDOWN). The second call answers
 * OTEL_ERROR_NOT_STARTED. Every program calls this before it ends, and so does a forked child that
 * traces: spans that are queued when a process ends are lost, which the default log handler says
 * after an exit(). A program that leaves main by pthread_exit calls this before its last thread
 * ends, or the exporter thread keeps the process. */
OTEL_API OTEL_MUST_USE otel_status otel_shutdown(int64_t timeout_ms);

/* Without a thread (otel_sdk_options.threadless): be the exporter thread for `timeout_ms` (0:
 * do what can be done at once, and do not wait). The program has to call this, or otel_flush, or
 * spans pile up until the queue is full. Any thread; if several call, one works and the others wait
 * their time. It returns early when the SDK stops. OTEL_ERROR_INVALID_ARGUMENT: the exporter thread
 * does this already. */
OTEL_API otel_status otel_poll(int64_t timeout_ms);

/* For an event loop: call otel_poll(0) whenever the descriptor is readable (epoll, poll, libuv's
 * uv_poll); it is also when it is time for something. The descriptor is the SDK's, and stays the
 * same until it stops, unless the program closes it; -1: none. A forked child has another one.
 * Programs that have only timers call otel_poll(0) after otel_poll_timeout() milliseconds (-1:
 * nothing to do), which they ask again then. */
OTEL_API int otel_poll_fd(void);
OTEL_API int64_t otel_poll_timeout(void);

/* What became of the spans of one pipeline. At every moment
 *     started = unsampled + open + ended
 *     ended   = delivered + rejected + spooled + queued + the sum of withheld[]
 *               + the sum of dropped[]
 * and once flushed or shut down queued is zero. `delivered` were answered with success;
 * `rejected` were refused by a receiver that took the rest of their request; `spooled` are on
 * disk, or were: what becomes of them there otel_spool_stats_read (otel/spool.h) says. `withheld`
 * are those that the program or its rules decided not to export, `dropped` those that were lost.
 * `unsampled` are also those that a sampler has recorded for processors only, open or ended. */
typedef struct otel_stats {
    size_t size; /* sizeof(otel_stats), set by the caller */
    uint64_t started;
    uint64_t unsampled;
    uint64_t open;
    uint64_t ended;
    uint64_t queued;
    uint64_t delivered;
    uint64_t rejected;
    uint64_t spooled;
    uint64_t withheld[OTEL_WITHHELD_REASONS_MOST];
    uint64_t dropped[OTEL_DROP_REASONS_MOST];
    uint64_t batches;      /* handed to the exporter */
    uint64_t queued_bytes; /* memory of ended spans now, all pipelines together, beyond the 16 KiB
                              that each thread keeps for the newest of its own */
} otel_stats;

/* Read the statistics of a pipeline, counted from 0 in the order of OTEL_TRACES_EXPORTER
 * and then of otel_sdk_options.exporters. They count from otel_start and stay readable
 * after otel_shutdown. OTEL_ERROR_INVALID_ARGUMENT: no such pipeline; without an exporter
 * (OTEL_TRACES_EXPORTER=none) there is none, and what spans become is not counted: they are
 * sampled, propagated and shown to processors as with an exporter, and then discarded. */
OTEL_API otel_status otel_stats_read(size_t pipeline, otel_stats *stats);

/* Write one line for people, for example
 *     delivered 9,812, open 3, withheld 12 (cancelled 12), dropped 188 (queue_full 188)
 * Of the other counts, those that are zero are left out; `started` and `ended` are never in it.
 * Returns its length without the NUL; cut to `size`. */
OTEL_API size_t otel_stats_describe(const otel_stats *stats, char *text, size_t size);

OTEL_END_DECLS
#endif
