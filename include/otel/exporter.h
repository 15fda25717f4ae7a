/* SPDX-License-Identifier: Apache-2.0 */
/* otel/exporter.h - write an exporter: what it is given, and what it answers.
 *
 * An exporter is a struct of functions. The SDK calls export_batch, poll, flush and free
 * from one thread at a time (the exporter thread, or the thread that ends a span where
 * `simple` was chosen) and never two of them at once. Only wake comes from any thread.
 *
 *     otel_export_result print_spans(void *state, otel_export *call)
 *     {
 *         otel_span_view span;
 *         for (size_t i = 0; i < otel_batch_size(call->batch); i++) {
 *             otel_batch_span(call->batch, i, &span);
 *             printf("%.*s\n", (int)span.name.length, span.name.data);
 *         }
 *         return OTEL_EXPORT_DONE;
 *     }
 *
 * Threads:  a batch and its call: one thread at a time, which may be one of the exporter's own.
 * Signals:  none of these in a handler, but for the functions that name a reason.
 * Errors:   an exporter reports what it loses by otel_export_drop and otel_export_reject; the
 *           functions that read a batch do not fail.
 * Source:   OpenTelemetry specification, trace/sdk.md "Span Exporter". */
#ifndef OTEL_EXPORTER_H
#define OTEL_EXPORTER_H

#include <otel/base.h>
#include <otel/trace.h>
#include <otel/value.h>

OTEL_BEGIN_DECLS

/* Why a span that ended was lost. New reasons come at the end. */
typedef enum otel_drop_reason {
    OTEL_DROP_QUEUE_FULL = 0,   /* OTEL_BSP_MAX_QUEUE_SIZE spans were waiting */
    OTEL_DROP_BYTE_LIMIT,       /* waiting spans filled OTEL_C_QUEUE_MAX_BYTES */
    OTEL_DROP_TOO_LARGE,        /* this span alone is above a size limit */
    OTEL_DROP_ALREADY_SHUTDOWN, /* it ended after otel_shutdown */
    OTEL_DROP_SHUTDOWN_TIMEOUT, /* still waiting when otel_shutdown had to return */
    OTEL_DROP_RETRY_EXHAUSTED,  /* away or busy, and no attempt more before the deadline */
    OTEL_DROP_PERMANENT_ERROR,  /* the receiver refused it, or TLS cannot work */
    OTEL_DROP_UNCONFIRMED,      /* sent, but no answer came until the deadline */
    OTEL_DROP_EXPORT_TIMEOUT,   /* the exporter did not finish in OTEL_BSP_EXPORT_TIMEOUT */
    OTEL_DROP_NO_MEMORY,
    OTEL_DROP_REENTRANT,    /* it was started inside the SDK's own code: in a signal handler */
    OTEL_DROP_HELD_LIMIT,   /* OTEL_C_HELD_MAX_BYTES of held-back and collected spans */
    OTEL_DROP_ABANDONED,    /* its thread ended, or left 1,024 behind, while it was open; or that
                               of the root that held it */
    OTEL_DROP_FORKED_CHILD, /* the exporter does not work in a forked child */
    OTEL_DROP_REASON_COUNT
} otel_drop_reason;

/* The reason as it is counted and logged, for example "queue_full". Static. */
OTEL_API const char *otel_drop_reason_string(otel_drop_reason reason);

/* Why a span that ended was not handed to an exporter though nothing was lost: the program, or
 * a rule that it or the environment has set, decided so. New reasons come at the end. */
typedef enum otel_withheld_reason {
    OTEL_WITHHELD_CANCELLED = 0, /* otel_span_cancel, of it or of the root that held it */
    OTEL_WITHHELD_NOT_KEPT,      /* the decision at the end of its local root */
    OTEL_WITHHELD_COLLECTED,     /* taken in process by otel_span_collect */
    OTEL_WITHHELD_TOO_SHORT,     /* otel_span_end_unless_shorter */
    OTEL_WITHHELD_LATE,          /* it ended after the decision to drop, or after otel_lines_end */
    OTEL_WITHHELD_UNMOUNTED,     /* collected, and freed without having been mounted */
    OTEL_WITHHELD_REASON_COUNT
} otel_withheld_reason;

/* Arrays have room for reasons of later versions, which are zero in this one. */
enum { OTEL_DROP_REASONS_MOST = 32, OTEL_WITHHELD_REASONS_MOST = 16 };

/* The reason as it is counted, for example "not_kept". Static. */
OTEL_API const char *otel_withheld_reason_string(otel_withheld_reason reason);

/* The tracer of a span, with the OTLP bytes of its InstrumentationScope message. The slices of all
 * views are memory of the batch, valid until the export is answered. Of an empty one `data` is an
 * empty string, never NULL. */
typedef struct otel_scope_view {
    otel_slice name;
    otel_slice version;
    otel_slice schema_url;
    otel_slice attributes; /* for otel_attribute_next with OTEL_FIELD_SCOPE_ATTRIBUTE */
    otel_slice otlp;
} otel_scope_view;

/* A finished span. `otlp` is the whole of it as an OTLP Span message, ready to be copied
 * behind the tag and length of ScopeSpans.spans; everything else points into it. */
typedef struct otel_span_view {
    size_t size;                   /* sizeof(otel_span_view), set by otel_batch_span */
    const uint8_t *trace_id;       /* 16 bytes */
    const uint8_t *span_id;        /* 8 bytes */
    const uint8_t *parent_span_id; /* 8 bytes, or NULL: a root */
    otel_slice tracestate;
    otel_slice name;
    otel_span_kind kind;
    uint32_t flags;    /* as in OTLP: W3C flags, 0x100 and 0x200 for the parent's is_remote */
    uint64_t start_ns; /* Unix time */
    uint64_t end_ns;
    otel_span_status status;
    otel_slice status_message;
    uint32_t dropped_attributes_count;
    uint32_t dropped_events_count;
    uint32_t dropped_links_count;
    otel_slice attributes; /* for otel_attribute_next with OTEL_FIELD_SPAN_ATTRIBUTE */
    otel_slice events;     /* for otel_event_next */
    otel_slice links;      /* for otel_link_next */
    const otel_scope_view *scope;
    otel_slice otlp;
    const void *reserved[4]; /* NULL */
} otel_span_view;

/* The field number under which attributes stand in the message they are part of. */
enum {
    OTEL_FIELD_RESOURCE_ATTRIBUTE = 1,
    OTEL_FIELD_SCOPE_ATTRIBUTE = 3,
    OTEL_FIELD_SPAN_ATTRIBUTE = 9,
    OTEL_FIELD_EVENT_ATTRIBUTE = 3,
    OTEL_FIELD_LINK_ATTRIBUTE = 4,
    OTEL_FIELD_MAP_ENTRY = 1 /* in the slice of a value that is a map */
};

/* A value inside a batch. Arrays are walked with otel_array_next, maps with
 * otel_attribute_next and OTEL_FIELD_MAP_ENTRY; what is in them may be either again. */
typedef struct otel_value_view {
    otel_value_type type; /* any array is OTEL_VALUE_STRING_ARRAY here: look at its elements */
    otel_slice slice;     /* string, bytes, elements, or entries */
    bool boolean;
    int64_t integer;
    double real;
} otel_value_view;

typedef struct otel_attribute_view {
    otel_slice key;
    otel_value_view value;
} otel_attribute_view;

typedef struct otel_event_view {
    uint64_t time_ns;
    otel_slice name;
    otel_slice attributes; /* OTEL_FIELD_EVENT_ATTRIBUTE */
    uint32_t dropped_attributes_count;
} otel_event_view;

typedef struct otel_link_view {
    const uint8_t *trace_id;
    const uint8_t *span_id;
    otel_slice tracestate;
    otel_slice attributes; /* OTEL_FIELD_LINK_ATTRIBUTE */
    uint32_t dropped_attributes_count;
    uint32_t flags;
} otel_link_view;

/* Take the next thing from the front of `rest`; false when there is none left. */
OTEL_API bool otel_attribute_next(otel_slice *rest, uint32_t field, otel_attribute_view *attribute);
OTEL_API bool otel_event_next(otel_slice *rest, otel_event_view *event);
OTEL_API bool otel_link_next(otel_slice *rest, otel_link_view *link);
OTEL_API bool otel_array_next(otel_slice *rest, otel_value_view *element);

/* Spans to export, all of one resource. At most OTEL_BSP_MAX_EXPORT_BATCH_SIZE of them. */
typedef struct otel_batch otel_batch;

/* How many spans a batch has. */
OTEL_API size_t otel_batch_size(const otel_batch *batch);

/* Fill in `*span` with the view of span number `index`, which is below otel_batch_size. */
OTEL_API void otel_batch_span(const otel_batch *batch, size_t index, otel_span_view *span);

/* The cheap part of otel_batch_span, for exporters that copy OTLP bytes. */
OTEL_API otel_slice otel_batch_span_otlp(const otel_batch *batch, size_t index,
                                         const otel_scope_view **scope);

/* The resource: its attributes (OTEL_FIELD_RESOURCE_ATTRIBUTE), its schema URL, and the
 * OTLP bytes of its Resource message. Valid until the exporter is freed. */
OTEL_API otel_slice otel_batch_resource(const otel_batch *batch);
OTEL_API otel_slice otel_batch_resource_schema_url(const otel_batch *batch);

typedef enum otel_export_result {
    OTEL_EXPORT_DONE = 0,   /* every span that was not reported otherwise is delivered */
    OTEL_EXPORT_PENDING = 1 /* not yet: poll will say. Only from exporters that have poll */
} otel_export_result;

/* An export call: one batch that this exporter has to export. It says through the functions below
 * what became of the spans. The same object until the export is done. */
typedef struct otel_export {
    const otel_batch *batch;
    uint64_t deadline_ns; /* CLOCK_MONOTONIC; UINT64_MAX: none. It can only become earlier */
    bool is_stopping;     /* otel_shutdown waits: do not wait for a receiver that is not there */
} otel_export;

/* Say that the receiver refused some spans, or that some were dropped and why: a reason that this
 * version does not know is counted as OTEL_DROP_PERMANENT_ERROR. */
OTEL_API void otel_export_reject(otel_export *call, size_t count);
OTEL_API void otel_export_drop(otel_export *call, otel_drop_reason reason, size_t count);

/* Say that the exporter has put some spans where they outlive it, on disk for example, and that
 * it will send them later: neither delivered nor dropped, but otel_stats.spooled. */
OTEL_API void otel_export_spool(otel_export *call, size_t count);

typedef struct otel_exporter {
    size_t size;      /* sizeof(otel_exporter) */
    const char *name; /* static text, for messages: "otlp_http_span_exporter" */
    void *state;

    /* Export a batch. Batch and call stay valid until the export is done. Should be done
     * by call->deadline_ns; what is not is counted as OTEL_DROP_EXPORT_TIMEOUT. */
    otel_export_result (*export_batch)(void *state, otel_export *call);

    /* Go on with a pending export for at most timeout_ms. When `abandon` is true there is
     * no time left: report what became of the spans and be done. NULL: never pending. */
    otel_export_result (*poll)(void *state, otel_export *call, int timeout_ms, bool abandon);

    /* Make a poll that is waiting return early, and one that will wait. Any thread. Or NULL. */
    void (*wake)(void *state);

    /* Hand over what the exporter itself holds back, within timeout_ms (0: without waiting).
     * Or NULL. */
    otel_status (*flush)(void *state, int64_t timeout_ms);

    /* The last call. Or NULL. */
    void (*free)(void *state);

    /* While an export is pending: the batch that comes next is complete. What needs no answer
     * can be done now, encoding for example. If there is another export_batch, it is with this
     * batch, and `next` stays as it is until then. Or NULL. */
    void (*prepare)(void *state, const otel_batch *next);

    /* For programs without an exporter thread (otel_poll): a descriptor that is readable when
     * a pending export can go on, and in *timeout_ms the time after which it can in any case
     * (-1: no such time). The same descriptor for all exports; -1: none. NULL: a pending export
     * is polled every few milliseconds.
     * While none is pending, and with an exporter thread as well: the one that is readable when
     * `attend` has something to do; -1: there is nothing but its time. */
    int (*descriptor)(void *state, int *timeout_ms);

    /* In a forked child: make in *renewed another exporter of the same kind. `state` is the
     * parent's, as its exporter thread had it in the middle of anything: only what is constant
     * since the exporter was made may be read, and nothing written, locked or freed; the child's
     * copies of descriptors may be closed.
     * NULL: its pipeline drops what the child exports (OTEL_DROP_FORKED_CHILD). */
    otel_status (*renew)(const void *state, struct otel_exporter *renewed);

    /* For what an exporter has to do without being given a batch, such as sending what it has
     * spooled. Called while no export is pending: once before the first one, after each, and
     * whenever it has asked for that. It must not wait: exports do meanwhile. Returns after how
     * many milliseconds it wants to be called again at the latest (0: at once, -1: not before the
     * next export); before that if its descriptor is readable. It is not called any more once the
     * SDK stops: `finish` is. Where each span is exported by the thread that ends it, only after
     * exports. Or NULL: then nothing wakes up for it. */
    int (*attend)(void *state);

    /* Where spans go, for the message of the start: a URL without secrets, a path, "stdout"; valid
     * until `free`. NULL: the message has the name only. */
    const char *destination;
    bool destination_is_default; /* no setting has chosen it */

    /* otel_shutdown waits, and every batch is exported: go on with what `attend` does, without
     * waiting. Returns -1 when there is nothing left that can be done now; otherwise after how many
     * milliseconds to call it again at the latest (0: at once), before that if its descriptor is
     * readable. It is called until it returns -1 or otel_shutdown has no time left; only with an
     * exporter thread. Or NULL: otel_shutdown does not wait for what `attend` does. */
    int (*finish)(void *state);

    const void *reserved[4]; /* NULL */
} otel_exporter;

#define OTEL_EXPORTER(...) ((otel_exporter){.size = sizeof(otel_exporter), __VA_ARGS__})

OTEL_END_DECLS
#endif
