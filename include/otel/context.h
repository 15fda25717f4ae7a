/* SPDX-License-Identifier: Apache-2.0 */
/* otel/context.h - span handles, span contexts, and the context that carries them.
 *
 * Everything here is a small value: copy it, keep it in a request of your own, pass it
 * to another thread. Nothing needs a destroy call. But the baggage of a context that is attached
 * nowhere is lost once 8,192 others have been made: keep it while the context waits, in a queue for
 * example (otel_baggage_keep). Memory is needed once for a thread's
 * first attach and for the first tracestates, and bounded from then on.
 *
 * Threads:  any thread. The current context belongs to the calling thread.
 * Signals:  any handler may call, whatever it has interrupted, what takes no lock and no memory:
 *           all that reads a span context, otel_span_get_context, otel_span_wrap,
 *           otel_current_span, otel_current_context, otel_now_ns, otel_span_mark_here,
 *           otel_context_with_span, _create_key, _with_value and _get_value, and otel_parents_add.
 *           Calls from the start to the end of a span, attach and detach may take both, so a
 *           handler may make them only where it cannot have interrupted malloc. If it has
 *           interrupted otel-c on its thread they do nothing, and a span that it starts there is
 *           counted as OTEL_DROP_REENTRANT. Never: otel/sdk.h, otel_lines_free, otel_parents_new,
 *           _mount and _free. docs/THREADS.md has them all.
 * Errors:   none. An all-zero value is valid everywhere and means "no span".
 * Source:   OpenTelemetry specification, context/README.md and trace/api.md. */
#ifndef OTEL_CONTEXT_H
#define OTEL_CONTEXT_H

#include <otel/base.h>
#include <otel/value.h>

OTEL_BEGIN_DECLS

/* A span: recording, ended, unsampled, or only the ids of a parent elsewhere. Pass it by
 * value and do not look inside. Ending it twice, or using it after its end, is harmless;
 * it stays a valid parent and keeps its span context for ever. */
typedef struct otel_span {
    uint64_t opaque[4];
} otel_span;

/* The part of a handle that names an open span, in two registers. */
typedef struct otel_span_ref {
    uint64_t id;
    uint64_t place;
} otel_span_ref;

/* The part of a handle that names an open span. Not for programs. */
OTEL_INLINE otel_span_ref otel_span_ref_of(const otel_span *span)
{
    otel_span_ref ref;
    uint64_t place = span->opaque[3];
#if defined(__GNUC__)
    __asm__("" : "+r"(place)); /* or compilers make a vector of the two, in memory */
#endif
    ref.id = span->opaque[2];
    ref.place = place;
    return ref;
}

/* What the inline functions of otel/trace.h look at in opaque[3], so that a span without
 * an SDK, or unsampled, costs no call. Not for programs. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define OTEL_SPAN_IS_OPEN_ UINT64_C(0x3)
#define OTEL_SPAN_IS_RECORDING_ UINT64_C(0x4)
#else
#define OTEL_SPAN_IS_OPEN_ (UINT64_C(0x3) << 32)
#define OTEL_SPAN_IS_RECORDING_ (UINT64_C(0x4) << 32)
#endif

enum {
    OTEL_TRACE_FLAG_SAMPLED = 0x01, /* the parent's decision, and ours when we propagate */
    OTEL_TRACE_FLAG_RANDOM = 0x02   /* W3C level 2: the trace id's low 56 bits are random */
};

/* What identifies a span to others. The tracestate belongs to the SDK; read its text
 * with otel_span_context_tracestate. */
typedef struct otel_span_context {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t flags;       /* OTEL_TRACE_FLAG_*; spans keep no others */
    bool is_remote;      /* it came from another process */
    uint8_t reserved[2]; /* zero, or what propagators keep there: copy it */
    uint32_t tracestate; /* zero: none */
} otel_span_context;

/* A context: the active span, values under keys, and baggage. Immutable: the functions that
 * change one return another. A context needs no thread: one that serves many requests by turns
 * keeps a context in each, and hands it to the functions that take one. */
typedef struct otel_context_value otel_context_value;
typedef struct otel_context {
    otel_span span;
    const otel_context_value *values;
    uint64_t baggage; /* zero: none; see otel/baggage.h */
} otel_context;

/* The span context of a span, the same before and after its end. */
OTEL_API otel_span_context otel_span_get_context(otel_span span);

/* A span that records nothing and has this span context: how a remote parent, or a
 * span of another tracing system, becomes a parent here. */
OTEL_API otel_span otel_span_wrap(const otel_span_context *context);

/* Make a span context from its parts. `tracestate` is the text of a W3C tracestate
 * header or NULL; a text that is not valid is left out. */
OTEL_API otel_span_context otel_span_context_make(const uint8_t trace_id[16],
                                                  const uint8_t span_id[8], uint8_t flags,
                                                  bool is_remote, const char *tracestate);

/* Whether both ids are other than zero. */
OTEL_API bool otel_span_context_is_valid(const otel_span_context *context);

/* Write the trace id, or the span id, as lower-case hexadecimal text with a final NUL. */
OTEL_API void otel_trace_id_hex(const otel_span_context *context, char hex[33]);
OTEL_API void otel_span_id_hex(const otel_span_context *context, char hex[17]);

/* Copy the tracestate's text, cut to `size` and always ended by a NUL when `size` is not
 * zero. Returns its full length without the NUL. The SDK keeps the tracestate of a span
 * while the span is open, and those of the last few thousand extracted contexts. */
OTEL_API size_t otel_span_context_tracestate(const otel_span_context *context, char *text,
                                             size_t size);

/* The calling thread's current context, and its span. */
OTEL_API otel_context otel_current_context(void);
OTEL_API otel_span otel_current_span(void);

/* The time that a span would read now, as Unix time: for otel_span_end_at, events and start_ns. A
 * reading of another clock is not in order with the times that spans read. It is a time of the
 * current span's trace, which goes on evenly when the wall clock is set; so for a span of another
 * trace it can be off by as much as the clock was set since that began. Without an SDK,
 * CLOCK_REALTIME. No lock; some 50 ns, but 2 us once in a millisecond, and always with the clock
 * `monotonic` (OTEL_C_CLOCK). */
OTEL_API uint64_t otel_now_ns(void);

/* This context with another active span. */
OTEL_INLINE otel_context otel_context_with_span(otel_context context, otel_span span)
{
    context.span = span;
    return context;
}

/* What otel_context_attach gives, and otel_context_detach wants back. */
typedef struct otel_context_token {
    uint64_t opaque;
} otel_context_token;

/* The functions behind the inline ones of the same name. */
OTEL_API OTEL_NOTHROW uint64_t otel_context_attach_p(const otel_context *context);
OTEL_API OTEL_NOTHROW bool otel_context_detach_p(uint64_t token);

/* Make a context current on this thread until it is detached; its baggage stays as long. Current
 * is, at every moment, the newest of what became current on the thread (contexts that it attached,
 * and spans that it entered) and has neither been detached nor ended; spans that were entered in a
 * context do not count any more when that is detached, nor those that were entered in a span of
 * their trace when that ends, unless a context was attached in between. They stay open; but where a
 * thread has more than 1,024 spans and contexts, those that are open and not current any more are
 * dropped (OTEL_DROP_ABANDONED). A span that is entered with a parent of other baggage or values
 * (otel_span_options.parent) attaches that context until its end. Where 1,024 contexts are attached
 * and the newest of them is current, another one takes its place. */
OTEL_INLINE otel_context_token otel_context_attach(otel_context context)
{
    otel_context_token token;
    token.opaque = otel_context_attach_p(&context);
    return token;
}

/* Detach a context that is attached. Spans that were entered in this context stay open, but are not
 * current any more. Returns false, and warns in the log, when tokens come back in another order
 * than they were given out: contexts attached later, and their spans, stay as they are, and nothing
 * that has ended becomes current again. False as well for what is not attached on this thread. */
OTEL_INLINE bool otel_context_detach(otel_context_token token)
{
    return otel_context_detach_p(token.opaque);
}

/* Error handling with longjmp (PostgreSQL, Lua, Ruby) leaves functions without ending their spans.
 * Take a mark where setjmp is called, and unwind to it where longjmp arrives: spans that this
 * thread entered after the mark end now and are exported, contexts attached after it are detached,
 * and what otel_lines_begin began after it is given up. OTEL_SCOPED does so at the end of its
 * block.
 *
 *     otel_span_mark mark = otel_span_mark_here();
 *     if (sigsetjmp(handler, 1) != 0)
 *         otel_span_unwind(mark);
 *
 * A mark is good for its thread (and its fibre) as long as the span or the context that was
 * current at the mark is; nothing is done for one that is not, nor for a zeroed one. */
typedef struct otel_span_mark {
    uint64_t opaque;
} otel_span_mark;
OTEL_API otel_span_mark otel_span_mark_here(void);
OTEL_API void otel_span_unwind(otel_span_mark mark);

/* A key of context values. Two keys are never equal, whatever their names. */
typedef struct otel_context_key {
    uint64_t opaque;
} otel_context_key;

/* Make a new key; `name` is for people who read the program. */
OTEL_API otel_context_key otel_context_create_key(const char *name);

/* A value's place in a context: memory of the caller's, which must live as long as any
 * context made with it is in use. Do not look inside. */
struct otel_context_value {
    const otel_context_value *next;
    uint64_t key;
    void *value;
};

/* This context with a value under a key; `place` is filled in. */
OTEL_API otel_context otel_context_with_value(otel_context context, otel_context_key key,
                                              void *value, otel_context_value *place);

/* The value under a key, or NULL. */
OTEL_API void *otel_context_get_value(const otel_context *context, otel_context_key key);

/* Attributes in a context: memory of the caller's, which must live as long as any context made
 * with it is in use. Do not look inside. */
typedef struct otel_context_attributes {
    otel_context_value value;
    const otel_attribute *attributes;
    size_t count;
} otel_context_attributes;

/* This context with attributes that each span gets which is started in it: samplers see them,
 * and limits count them. Of equal keys the span's own wins, then the context's newest; they are
 * not sent to other processes. `attributes` is not copied before spans are started, and must
 * live as long as `place`, which is filled in. (In development: OTEP 4931.) */
OTEL_API otel_context otel_context_with_attributes(otel_context context,
                                                   const otel_attribute *attributes, size_t count,
                                                   otel_context_attributes *place);

/* Copy the attributes of a context (NULL: the current one), at most `size`: each key once, and
 * what they borrow is borrowed still. Returns how many there are; 0 if there are more than 64
 * and no memory to list them. */
OTEL_API size_t otel_context_get_attributes(const otel_context *context, otel_attribute *attributes,
                                            size_t size);

OTEL_END_DECLS
#endif
