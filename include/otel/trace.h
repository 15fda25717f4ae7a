/* SPDX-License-Identifier: Apache-2.0 */
/* otel/trace.h - start, describe and end spans.
 *
 * Threads:  call anything from any thread. An entered span belongs to its thread: its handle does
 *           nothing on another. A started span may be used and ended by any thread; several at once
 *           take turns, a call each, and sleep if they wait for longer than some microseconds.
 * Signals:  in a handler all of these may allocate: otel/context.h says what is safe there.
 * Cost:     no lock on entered spans that nothing holds back; no system call but to wake the
 *           exporter thread; memory only while a thread, a nesting or a span outgrows all before.
 * Errors:   nothing here fails. Unsampled, no SDK or no room: the call does nothing,
 *           and otel_stats (otel/sdk.h) counts what was lost and why.
 * Strings:  UTF-8, copied before return; NULL is an empty string. Empty keys are left out.
 * Source:   OpenTelemetry specification, trace/api.md. */
#ifndef OTEL_TRACE_H
#define OTEL_TRACE_H

#include <otel/context.h>
#include <string.h>

OTEL_BEGIN_DECLS

/* Where spans come from: a library or a part of a program, with its version. Tracers
 * live until the process ends. One taken before the SDK starts records after it starts. */
typedef struct otel_tracer otel_tracer;

typedef struct otel_tracer_options {
    size_t size; /* sizeof(otel_tracer_options) */
    const char *schema_url;
    const otel_attribute *attributes;
    size_t attribute_count;
    size_t schema_url_length; /* 0: up to its NUL */
} otel_tracer_options;
#define OTEL_TRACER_OPTIONS(...) \
    (&(otel_tracer_options){.size = sizeof(otel_tracer_options), __VA_ARGS__})

/* Get a tracer, never NULL: the same one for the same name and version. Slow: not once a span. */
OTEL_API otel_tracer *otel_tracer_get(const char *name, const char *version);
OTEL_API otel_tracer *otel_tracer_get_with(const char *name, const char *version,
                                           const otel_tracer_options *options);

/* Whether a span started now could reach an exporter or a processor: not without an SDK, nor with
 * OTEL_TRACES_EXPORTER=none where the program has none of its own. It changes: ask for each. */
OTEL_API bool otel_tracer_enabled(const otel_tracer *tracer);

/* Ask otel_sdk_options.tracer_enabled about every tracer again. Any thread. */
OTEL_API void otel_tracers_reconfigure(void);

typedef enum otel_span_kind {
    OTEL_SPAN_KIND_INTERNAL = 0,
    OTEL_SPAN_KIND_SERVER = 1,
    OTEL_SPAN_KIND_CLIENT = 2,
    OTEL_SPAN_KIND_PRODUCER = 3,
    OTEL_SPAN_KIND_CONSUMER = 4
} otel_span_kind;

typedef enum otel_span_status {
    OTEL_SPAN_STATUS_UNSET = 0,
    OTEL_SPAN_STATUS_OK = 1,
    OTEL_SPAN_STATUS_ERROR = 2
} otel_span_status;

/* A pointer to a span that is no parent: another trace, or one of many. */
typedef struct otel_link {
    otel_span_context context;
    const otel_attribute *attributes;
    size_t attribute_count;
} otel_link;

typedef struct otel_span_options {
    size_t size; /* sizeof(otel_span_options) */
    otel_span_kind kind;
    bool root;                        /* start a new trace, whatever the context */
    const otel_context *parent;       /* NULL: this thread's current context */
    const otel_attribute *attributes; /* what is known now is what a sampler can see */
    size_t attribute_count;
    const otel_link *links;
    size_t link_count;
    uint64_t start_ns; /* Unix time; 0: now. Below 2^63 */
    bool hold;         /* hold the spans below this one back until it ends: see otel_span_cancel */
} otel_span_options;
#define OTEL_SPAN_OPTIONS(...) \
    (&(otel_span_options){.size = sizeof(otel_span_options), __VA_ARGS__})

/* Set once a span can have ids: until then, starting one is a look at this. Not for programs. */
extern OTEL_API_DATA uint32_t otel_is_in_use_;
/* Behind the inline functions of the same name: lengths, and what of a span names it. */
OTEL_API OTEL_NOTHROW void otel_span_enter_p(otel_span *span, otel_tracer *tracer, const char *name,
                                             size_t name_length, const otel_span_options *options);
OTEL_API OTEL_NOTHROW void otel_span_start_p(otel_span *span, otel_tracer *tracer, const char *name,
                                             size_t name_length, const otel_span_options *options);
OTEL_API OTEL_NOTHROW void otel_span_end_n(otel_span_ref span, uint64_t end_ns); /* 0: now */
OTEL_API OTEL_NOTHROW void otel_span_end_scope_n(otel_span_ref span);
OTEL_API OTEL_NOTHROW void otel_span_set_string_n(otel_span_ref span, const char *key,
                                                  size_t key_length, const char *value,
                                                  size_t length);
OTEL_API OTEL_NOTHROW void otel_span_set_int_n(otel_span_ref span, const char *key,
                                               size_t key_length, int64_t value);
OTEL_API OTEL_NOTHROW void otel_span_set_double_n(otel_span_ref span, const char *key,
                                                  size_t key_length, double value);
OTEL_API OTEL_NOTHROW void otel_span_set_bool_n(otel_span_ref span, const char *key,
                                                size_t key_length, bool value);
OTEL_API OTEL_NOTHROW void otel_span_set_value_n(otel_span_ref span, const char *key,
                                                 size_t key_length, const otel_value *value);

OTEL_INLINE bool otel_is_idle_(void)
{
#if defined(__GNUC__)
    return __atomic_load_n(&otel_is_in_use_, __ATOMIC_RELAXED) == 0;
#else
    return otel_is_in_use_ == 0;
#endif
}
OTEL_INLINE size_t otel_length_(const char *text)
{
    return text ? strlen(text) : 0;
}

OTEL_INLINE otel_span otel_span_enter_n(otel_tracer *tracer, const char *name, size_t name_length,
                                        const otel_span_options *options)
{
    otel_span span;
    otel_span_enter_p(&span, tracer, name, name_length, options);
    return span;
}
OTEL_INLINE otel_span otel_span_start_n(otel_tracer *tracer, const char *name, size_t name_length,
                                        const otel_span_options *options)
{
    otel_span span;
    otel_span_start_p(&span, tracer, name, name_length, options);
    return span;
}

OTEL_INLINE otel_span otel_span_none_(void)
{
    otel_span none = {{0, 0, 0, 0}};
    return none;
}

/* Start a span and make it current on this thread until its end; options may be NULL. With a parent
 * in them and without `root`, all of that context, baggage and values too, is current as long. */
OTEL_INLINE otel_span otel_span_enter(otel_tracer *tracer, const char *name,
                                      const otel_span_options *options)
{
    if (!(options && options->parent) && otel_is_idle_()) /* in this order compilers know both */
        return otel_span_none_();
    return otel_span_enter_n(tracer, name, otel_length_(name), options);
}

/* Start a span that any thread may use and end; it does not become current. */
OTEL_INLINE otel_span otel_span_start(otel_tracer *tracer, const char *name,
                                      const otel_span_options *options)
{
    if (!(options && options->parent) && otel_is_idle_()) /* in this order compilers know both */
        return otel_span_none_();
    return otel_span_start_n(tracer, name, otel_length_(name), options);
}

/* End a span, now or at a Unix time (otel_now_ns; below 2^63), kept also if before the start. The
 * first call counts. What this thread entered below it and is open stays so, but is not current. */
OTEL_INLINE void otel_span_end(otel_span span)
{
    if (span.opaque[3] & OTEL_SPAN_IS_OPEN_)
        otel_span_end_n(otel_span_ref_of(&span), 0);
}
OTEL_INLINE void otel_span_end_at(otel_span span, uint64_t end_ns)
{
    if (span.opaque[3] & OTEL_SPAN_IS_OPEN_)
        otel_span_end_n(otel_span_ref_of(&span), end_ns);
}

/* End a span and export nothing of it, nor of what it holds back (otel_span_options.hold: the spans
 * below it, of any thread, that end before it; those that end later are withheld then). When it
 * just ends, a rule of otel_sdk_options (tail_keep…) or a span around it that holds back decides
 * instead, and else all is exported. Below one that was decided against, .hold does nothing. */
OTEL_API void otel_span_cancel(otel_span span);

/* End a span. If it took less than `min_ns` and has no children, withhold it
 * (OTEL_WITHHELD_TOO_SHORT). The children of an entered span are all spans that its thread has
 * started since, but entered ones that were withheld by this call. Those of a started span are the
 * spans of any thread below it; if it was attached, it has some. Children in another process and
 * those of otel_span_record are not known: they lose their parent. */
OTEL_API void otel_span_end_unless_shorter(otel_span span, uint64_t min_ns);

/* An entered span that is named by an address, and what looks its name up when it is exported: that
 * writes up to `size` bytes, without a NUL, and returns the whole length; 0: unknown. The exporter
 * thread calls it. NULL: names are "0x…". Start/stop only. */
OTEL_API otel_span otel_span_enter_address(otel_tracer *tracer, const void *address);
typedef size_t otel_name_resolver(const void *address, char *name, size_t size);
OTEL_API void otel_set_name_resolver(otel_name_resolver *resolver);

/* Whether what is set on this span is kept: not once it has ended, nor if it is unsampled. */
OTEL_API bool otel_span_is_recording(otel_span span);

/* Set an attribute; better in the options if it is known then. The same key again replaces it. */
OTEL_INLINE void otel_span_set_string(otel_span span, const char *key, const char *value)
{
    if (span.opaque[3] & OTEL_SPAN_IS_RECORDING_)
        otel_span_set_string_n(otel_span_ref_of(&span), key, otel_length_(key), value,
                               otel_length_(value));
}
OTEL_INLINE void otel_span_set_int(otel_span span, const char *key, int64_t value)
{
    if (span.opaque[3] & OTEL_SPAN_IS_RECORDING_)
        otel_span_set_int_n(otel_span_ref_of(&span), key, otel_length_(key), value);
}
OTEL_INLINE void otel_span_set_double(otel_span span, const char *key, double value)
{
    if (span.opaque[3] & OTEL_SPAN_IS_RECORDING_)
        otel_span_set_double_n(otel_span_ref_of(&span), key, otel_length_(key), value);
}
OTEL_INLINE void otel_span_set_bool(otel_span span, const char *key, bool value)
{
    if (span.opaque[3] & OTEL_SPAN_IS_RECORDING_)
        otel_span_set_bool_n(otel_span_ref_of(&span), key, otel_length_(key), value);
}
OTEL_INLINE void otel_span_set_value(otel_span span, const char *key, otel_value value)
{
    if (span.opaque[3] & OTEL_SPAN_IS_RECORDING_)
        otel_span_set_value_n(otel_span_ref_of(&span), key, otel_length_(key), &value);
}
OTEL_INLINE void otel_span_set_bytes(otel_span span, const char *key, const void *bytes,
                                     size_t length)
{
    otel_span_set_value(span, key, otel_value_bytes(bytes, length));
}
OTEL_INLINE void otel_span_set_string_array(otel_span span, const char *key,
                                            const char *const *strings, size_t count)
{
    otel_span_set_value(span, key, otel_value_string_array(strings, count));
}
OTEL_INLINE void otel_span_set_bool_array(otel_span span, const char *key, const bool *booleans,
                                          size_t count)
{
    otel_span_set_value(span, key, otel_value_bool_array(booleans, count));
}
OTEL_INLINE void otel_span_set_int_array(otel_span span, const char *key, const int64_t *integers,
                                         size_t count)
{
    otel_span_set_value(span, key, otel_value_int_array(integers, count));
}
OTEL_INLINE void otel_span_set_double_array(otel_span span, const char *key, const double *reals,
                                            size_t count)
{
    otel_span_set_value(span, key, otel_value_double_array(reals, count));
}

/* Add an event that happened now, or at `time_ns` (Unix time below 2^63; 0: now). */
OTEL_API void otel_span_add_event_at(otel_span span, const char *name, uint64_t time_ns,
                                     const otel_attribute *attributes, size_t count);
OTEL_INLINE void otel_span_add_event(otel_span span, const char *name,
                                     const otel_attribute *attributes, size_t count)
{
    otel_span_add_event_at(span, name, 0, attributes, count);
}

/* Add a link to another span; those known at the start belong into the options. */
OTEL_API void otel_span_add_link(otel_span span, const otel_link *link);

/* Set how it went. Ok beats Error beats Unset, and is final; an Error may have a description. */
OTEL_API void otel_span_set_status(otel_span span, otel_span_status status,
                                   const char *description);
OTEL_INLINE void otel_span_fail(otel_span span, const char *description)
{
    otel_span_set_status(span, OTEL_SPAN_STATUS_ERROR, description);
}

/* Give the span another name. */
OTEL_API void otel_span_update_name(otel_span span, const char *name);

/* Add an "exception" event with the attributes exception.type, .message and .stacktrace
 * (each may be NULL) and yours. Does not set the status. */
OTEL_API void otel_span_record_exception(otel_span span, const char *type, const char *message,
                                         const char *stacktrace, const otel_attribute *attributes,
                                         size_t count);

#if defined(__GNUC__)
OTEL_INLINE void otel_span_end_scope_(const otel_span *span)
{
    if (span->opaque[3] & OTEL_SPAN_IS_OPEN_)
        otel_span_end_scope_n(otel_span_ref_of(span));
}

/* OTEL_SCOPED(span, tracer, "name"): an entered span that ends on every way out of its block,
 * as by otel_span_unwind: what was left open in the block ends first. GCC and Clang. */
#define OTEL_SCOPED(variable, tracer, name)                                     \
    __attribute__((cleanup(otel_span_end_scope_), unused)) otel_span variable = \
        otel_span_enter(tracer, name, OTEL_NULL_)

/* One line at the top of a function: a span with the function's name, until it returns. */
#define OTEL_FUNCTION_SPAN(tracer)                                                 \
    __attribute__((cleanup(otel_span_end_scope_), unused)) otel_span OTEL_UNIQUE_( \
        otel_function_span_, __LINE__) =                                           \
        otel_is_idle_() ? otel_span_none_()                                        \
                        : otel_span_enter_n(tracer, __func__, sizeof __func__ - 1, OTEL_NULL_)
#define OTEL_UNIQUE_(a, b) OTEL_PASTE_(a, b)
#define OTEL_PASTE_(a, b) a##b
#endif

OTEL_END_DECLS
#endif
