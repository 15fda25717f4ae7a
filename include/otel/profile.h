/* SPDX-License-Identifier: Apache-2.0 */
/* otel/profile.h - labels: which query, request or route the processor time went to.
 *
 *     otel_profile_label label = otel_profile_label_for_span(&span);
 *     otel_profile_apply(&label, run_query, query);     // run_query(query), under the label
 *     otel_profile_label_release(&label);
 *
 * or, with the span current as well, otel_span_run(span, run_query, query). Library otel-profiling.
 *
 * otel_profile_apply calls the function through a small piece of code, a trampoline, of which there
 * is one for each label in use. Its return address is on the stack as long as the function runs, so
 * that every sample of a profiler says which label it was under; that costs about 1 ns a call, and
 * nothing a sample. What a label stood for at which time is remembered apart (a history).
 *
 * A label covers one stack while the function runs: work that is handed to another thread, or goes
 * on later in an event loop, is applied again there. Leave the function by returning, or by an
 * exception: after a longjmp past otel_profile_apply other samples may get the label
 * (docs/PROFILING.md). Labels are for queries, requests and routes, not for micro-spans.
 *
 * Without a profiler (otel/profiler.h) that runs, and on machines that have no trampolines
 * (anything but Linux on x86-64 and AArch64), labels are empty and otel_profile_apply is a call of
 * the function.
 *
 * Threads:  any thread. A label is a value: apply it on several threads at once if you like.
 * Signals:  a handler may call otel_profile_apply with a label that was made elsewhere.
 * Errors:   none; where there is no label to be had it is an empty one, and that is counted.
 * Source:   Rockset, "Profiling Individual Queries in a Concurrent System", 2024. */
#ifndef OTEL_PROFILE_H
#define OTEL_PROFILE_H

#include <otel/base.h>
#include <otel/context.h>

OTEL_BEGIN_DECLS

typedef struct otel_profile_label {
    void *(*trampoline)(void *argument, void *(*function)(void *)); /* NULL: as an empty one */
    uint32_t index;                                                 /* 0: an empty label */
    uint32_t generation; /* tells a released label from one that is in use */
} otel_profile_label;

typedef struct otel_profile_kv {
    const char *key;
    const char *value;
} otel_profile_kv;

/* The most bytes that keys and values of a label may have together, each with one for its end; what
 * is above it is left out, and counted. */
enum { OTEL_PROFILE_LABEL_BYTES = 96 };

/* A label that says these keys and values (copied), and, with `span` (may be NULL), this span and
 * its trace, the local root above it, and its attribute "http.route" if it has one by now. */
OTEL_API otel_profile_label otel_profile_label_make(const otel_span *span,
                                                    const otel_profile_kv *kv, size_t count);

/* A label of keys and values alone. */
OTEL_INLINE otel_profile_label otel_profile_label_acquire(const otel_profile_kv *kv, size_t count)
{
    return otel_profile_label_make(OTEL_NULL_, kv, count);
}

/* A label of a span alone. */
OTEL_INLINE otel_profile_label otel_profile_label_for_span(const otel_span *span)
{
    return otel_profile_label_make(span, OTEL_NULL_, 0);
}

/* Give a label back, when every otel_profile_apply with it has returned; it is empty then. A second
 * release, of the same label or of a copy, is harmless. */
OTEL_API void otel_profile_label_release(otel_profile_label *label);

/* otel_profile_apply, with a look at mistakes: a label that is applied after its release, or
 * released before otel_profile_apply has returned, is reported to the log (a debug build of the
 * library aborts), and harms no other label. Costs two atomic additions; define
 * OTEL_PROFILE_CHECKED before this header to have it in place of otel_profile_apply. */
OTEL_API void *otel_profile_apply_checked(const otel_profile_label *label,
                                          void *(*function)(void *), void *argument);

/* Call function(argument) under a label, and return what it returns. Labels nest: of equal keys the
 * inner one counts. */
OTEL_INLINE void *otel_profile_apply(const otel_profile_label *label, void *(*function)(void *),
                                     void *argument)
{
#ifdef OTEL_PROFILE_CHECKED
    return otel_profile_apply_checked(label, function, argument);
#else
    return label->trampoline != OTEL_NULL_ ? label->trampoline(argument, function)
                                           : function(argument);
#endif
}

/* Call function(argument) with a span current and under its label, and return what it returns: a
 * context attached and a label applied, both taken back afterwards. Samples find the span whatever
 * the function's stack frames are like. An exception that leaves the function takes both back;
 * longjmp leaves the label taken, so jump within the function, and otel_span_unwind takes back the
 * context alone. */
OTEL_API void *otel_span_run(otel_span span, void *(*function)(void *), void *argument);

OTEL_END_DECLS
#endif
