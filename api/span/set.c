/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/set.c - attributes, events, links, status and name of open spans. App threads.
 *
 * Every function is the same three steps: find the open span of the handle, change it, let
 * it go. A handle that is old, unsampled or foreign finds none. */
#include "api/active/fast_attribute.h"
#include "api/thread/detached_pool.h"
#include "api/thread/thread_state.h"
#include "common/base/alloc.h"
#include "common/clock/clock.h"
#include <otel/ffi.h>

#include <string.h>

/* Whether the span is the current one, and records. */
static OTELI_INLINE bool is_current(const struct oteli_active_span *top, otel_span_ref span)
{
    return OTELI_LIKELY(span.place == top->self.opaque[3]) &&
           OTELI_LIKELY(span.id == top->self.opaque[2]) &&
           OTELI_LIKELY((span.place & OTEL_SPAN_IS_RECORDING_) != 0);
}

/* The active span of a handle, with the state busy and a detached one locked for one change; NULL:
 * there is none. */
static OTELI_NOINLINE struct oteli_active_span *grab_any(otel_span_ref span)
{
    struct oteli_thread *thread = oteli_self;
    if (OTELI_UNLIKELY(oteli_ref_where(span.place) == OTELI_SPAN_IN_POOL) &&
        thread->generation == OTELI_NO_GENERATION && !oteli_thread_is_busy(thread)) {
        if (oteli_load_relaxed_64(&oteli_generation) == OTELI_REVIVE ||
            oteli_thread_refresh() == NULL) /* for the limits */
            return NULL; /* in a forked child it can only be of before the fork */
        thread = oteli_self;
    }
    if (!oteli_thread_enter_call(thread))
        return NULL;
    struct oteli_active_span *active = oteli_open_find(thread, span);
    if (OTELI_LIKELY(active != NULL) && OTELI_LIKELY(oteli_active_records(active)))
        return active;
    oteli_open_release(active);
    oteli_thread_leave_call(thread);
    return NULL;
}

/* The same if it takes no more than a look: the current span, or a detached one whose lock is free.
 * NULL: anything else, and the state is free. */
static OTELI_INLINE struct oteli_active_span *grab_fast(struct oteli_thread *thread,
                                                        otel_span_ref span)
{
    if (OTELI_UNLIKELY(thread->fast != oteli_load_relaxed_64(&oteli_fast_generation)))
        return NULL;
    oteli_thread_mark_busy(thread);
    struct oteli_active_span *active = thread->top;
    if (is_current(active, span))
        return active;
    active = oteli_detached_try_lock(span);
    if (OTELI_UNLIKELY(active == NULL))
        oteli_thread_leave_call(thread);
    return active;
}

static struct oteli_active_span *grab(otel_span_ref span)
{
    struct oteli_active_span *active = grab_fast(oteli_self, span);
    return OTELI_LIKELY(active != NULL) ? active : grab_any(span);
}

/* A line for the log is written when the state is free and nothing is locked. */
static OTELI_COLD void let_go_and_warn(struct oteli_active_span *active)
{
    struct oteli_warning warning;
    oteli_active_take_warning(active, &warning);
    oteli_open_release(active);
    oteli_thread_leave_call(oteli_self);
    oteli_warn_later(&warning);
}

static inline void let_go(struct oteli_active_span *active)
{
    if (OTELI_UNLIKELY(active->unusual.warning != OTELI_NO_COMPLAINT)) {
        let_go_and_warn(active);
        return;
    }
    oteli_open_release(active);
    oteli_thread_leave_call(oteli_self);
}

/* The same after what has no cause to warn. */
static OTELI_INLINE void let_go_fast(struct oteli_thread *thread, struct oteli_active_span *active)
{
    oteli_detached_unlock(active);
    oteli_thread_leave_call(thread);
}

bool otel_span_is_recording(otel_span span)
{
    struct oteli_active_span *active = grab(otel_span_ref_of(&span));
    if (active == NULL)
        return false;
    const bool is_local = oteli_ref_where(span.opaque[3]) == OTELI_SPAN_ON_STACK;
    const uint64_t generation = is_local ? oteli_self->generation : active->generation;
    let_go(active);
    const uint64_t now = oteli_load_relaxed_64(&oteli_generation);
    return now == generation;
}

void otel_span_set_value_n(otel_span_ref span, const char *key, size_t key_length,
                           const otel_value *value)
{
    struct oteli_active_span *active = value != NULL ? grab(span) : NULL;
    if (active == NULL)
        return;
    oteli_active_set(active, &oteli_self->limits, key, key_length, value);
    let_go(active);
}

/* What is not short: the state is busy until it is set. Where functions call one another as their
 * last, their arguments stay in the same registers. */
static OTELI_NOINLINE void set_string_busy(struct oteli_active_span *active,
                                           struct oteli_thread *thread, const char *key,
                                           size_t key_length, const char *value, size_t length)
{
    const otel_value any = otel_value_string_n(value, value != NULL ? length : 0);
    oteli_active_set(active, &thread->limits, key, key_length, &any);
    let_go(active);
}

/* It has been written in the short way. */
static OTELI_NOINLINE void set_utf8_busy(struct oteli_active_span *active,
                                         struct oteli_thread *thread, const char *key,
                                         size_t key_length, const char *value, size_t length)
{
    if (OTELI_LIKELY(oteli_keep_short_utf8(active, key_length, length)))
        let_go(active);
    else
        set_string_busy(active, thread, key, key_length, value, length);
}

static OTELI_NOINLINE void set_number_busy(struct oteli_active_span *active,
                                           struct oteli_thread *thread, const char *key,
                                           size_t key_length, uint64_t bits, uint32_t any)
{
    otel_value value = otel_value_int((int64_t)bits);
    value.type = oteli_short_type(any);
    if (any == OTELI_SHORT_DOUBLE)
        memcpy(&value.as.real, &bits, sizeof bits);
    else if (any == OTELI_SHORT_BOOL)
        value.as.boolean = bits != 0;
    oteli_active_set(active, &thread->limits, key, key_length, &value);
    let_go(active);
}

/* Of a span below the current one, or of one whose lock another thread has: these look for it. */
static OTELI_NOINLINE void set_string_any(otel_span_ref span, const char *key, size_t key_length,
                                          const char *value, size_t length)
{
    struct oteli_active_span *active = grab_any(span);
    struct oteli_thread *thread = oteli_self;
    if (active == NULL)
        return;
    if (oteli_set_short_string(active, &thread->limits, key, key_length, value, length) ==
        OTELI_SHORT)
        let_go(active);
    else
        set_string_busy(active, thread, key, key_length, value, length);
}

static OTELI_NOINLINE void set_number_any(otel_span_ref span, const char *key, size_t key_length,
                                          uint64_t bits, uint32_t any)
{
    struct oteli_active_span *active = grab_any(span);
    struct oteli_thread *thread = oteli_self;
    if (active == NULL)
        return;
    if (oteli_set_short_number(active, &thread->limits, key, key_length, bits, any,
                               oteli_short_number))
        let_go(active);
    else
        set_number_busy(active, thread, key, key_length, bits, any);
}

OTELI_HOT void otel_span_set_string_n(otel_span_ref span, const char *key, size_t key_length,
                                      const char *value, size_t length)
{
    struct oteli_thread *thread = oteli_self;
    struct oteli_active_span *active = grab_fast(thread, span);
    if (OTELI_UNLIKELY(active == NULL)) {
        set_string_any(span, key, key_length, value, length);
        return;
    }
    const enum oteli_short how =
        oteli_set_short_string(active, &thread->limits, key, key_length, value, length);
    if (OTELI_LIKELY(how == OTELI_SHORT))
        let_go_fast(thread, active);
    else if (how == OTELI_SHORT_BUT_NOT_ASCII)
        set_utf8_busy(active, thread, key, key_length, value, length);
    else
        set_string_busy(active, thread, key, key_length, value, length);
}

static OTELI_INLINE void set_number(otel_span_ref span, const char *key, size_t key_length,
                                    uint64_t bits, uint32_t any, oteli_short_put *put)
{
    struct oteli_thread *thread = oteli_self;
    struct oteli_active_span *active = grab_fast(thread, span);
    if (OTELI_UNLIKELY(active == NULL))
        set_number_any(span, key, key_length, bits, any);
    else if (OTELI_LIKELY(
                 oteli_set_short_number(active, &thread->limits, key, key_length, bits, any, put)))
        let_go_fast(thread, active);
    else
        set_number_busy(active, thread, key, key_length, bits, any);
}

static OTELI_NOINLINE OTELI_HOT void set_small(otel_span_ref span, const char *key,
                                               size_t key_length, uint64_t bits, uint32_t any)
{
    set_number(span, key, key_length, bits, any, oteli_short_small);
}

static OTELI_NOINLINE OTELI_HOT void set_large(otel_span_ref span, const char *key,
                                               size_t key_length, uint64_t bits, uint32_t any)
{
    set_number(span, key, key_length, bits, any, oteli_short_number);
}

OTELI_HOT void otel_span_set_int_n(otel_span_ref span, const char *key, size_t key_length,
                                   int64_t value)
{
    if (OTELI_LIKELY((uint64_t)value <= OTELI_SHORT_NUMBER_MOST))
        set_small(span, key, key_length, (uint64_t)value, OTELI_SHORT_INT);
    else
        set_large(span, key, key_length, (uint64_t)value, OTELI_SHORT_INT);
}

OTELI_HOT void otel_span_set_double_n(otel_span_ref span, const char *key, size_t key_length,
                                      double value)
{
    set_large(span, key, key_length, oteli_double_bits(value), OTELI_SHORT_DOUBLE);
}

OTELI_HOT void otel_span_set_bool_n(otel_span_ref span, const char *key, size_t key_length,
                                    bool value)
{
    set_small(span, key, key_length, value, OTELI_SHORT_BOOL);
}

void otel_span_add_event_p(const otel_span *span, const char *name, size_t name_length,
                           uint64_t time_ns, const otel_attribute *attributes, size_t count)
{
    struct oteli_active_span *active = grab(otel_span_ref_of(span));
    if (active == NULL)
        return;
    const uint64_t time =
        time_ns != 0 ? time_ns & ~OTELI_TICKS_BIT : oteli_ticks() | OTELI_TICKS_BIT;
    oteli_active_add_event(active, &oteli_self->limits, (otel_slice){name, name_length}, time,
                           attributes, count);
    let_go(active);
}

void otel_span_add_event_at(otel_span span, const char *name, uint64_t time_ns,
                            const otel_attribute *attributes, size_t count)
{
    otel_span_add_event_p(&span, name, otel_length_(name), time_ns, attributes, count);
}

static inline otel_attribute exception_part(const char *key, const char *text, size_t length)
{
    return otel_attribute_n(key, strlen(key), otel_value_string_n(text, length));
}

void otel_span_record_exception_p(const otel_span *span, const char *type, size_t type_length,
                                  const char *message, size_t message_length,
                                  const char *stacktrace, size_t stacktrace_length,
                                  const otel_attribute *attributes, size_t count)
{
    enum { KNOWN = 3, FEW = 16 };
    otel_attribute few[FEW];
    otel_attribute *all = few;
    size_t known = 0;
    if (attributes == NULL || (otel_span_ref_of(span).place & OTEL_SPAN_IS_RECORDING_) == 0)
        count = 0;
    if (count > FEW - KNOWN)
        all = oteli_malloc((KNOWN + count) * sizeof *all);
    if (all == NULL) { /* no memory: without the program's attributes */
        all = few;
        count = 0;
    }
    if (type != NULL)
        all[known++] = exception_part("exception.type", type, type_length);
    if (message != NULL)
        all[known++] = exception_part("exception.message", message, message_length);
    if (stacktrace != NULL)
        all[known++] = exception_part("exception.stacktrace", stacktrace, stacktrace_length);
    if (count != 0)
        memcpy(all + known, attributes, count * sizeof *all);
    static const char name[] = "exception";
    otel_span_add_event_p(span, name, sizeof name - 1, 0, all, known + count);
    if (all != few)
        free(all);
}

void otel_span_record_exception(otel_span span, const char *type, const char *message,
                                const char *stacktrace, const otel_attribute *attributes,
                                size_t count)
{
    otel_span_record_exception_p(&span, type, otel_length_(type), message, otel_length_(message),
                                 stacktrace, otel_length_(stacktrace), attributes, count);
}

void otel_span_add_link(otel_span span, const otel_link *link)
{
    struct oteli_active_span *active = link != NULL ? grab(otel_span_ref_of(&span)) : NULL;
    if (active == NULL)
        return;
    oteli_active_add_link(active, &oteli_self->limits, link);
    let_go(active);
}

void otel_span_set_status_p(const otel_span *span, otel_span_status status, const char *description,
                            size_t length)
{
    struct oteli_active_span *active = grab(otel_span_ref_of(span));
    if (active == NULL)
        return;
    oteli_active_set_status(active, status, (otel_slice){description, length});
    let_go(active);
}

void otel_span_set_status(otel_span span, otel_span_status status, const char *description)
{
    otel_span_set_status_p(&span, status, description, otel_length_(description));
}

void otel_span_update_name_p(const otel_span *span, const char *name, size_t name_length)
{
    struct oteli_active_span *active = grab(otel_span_ref_of(span));
    if (active == NULL)
        return;
    oteli_active_set_long_name(active, name != NULL ? name : "", name_length);
    let_go(active);
}

void otel_span_update_name(otel_span span, const char *name)
{
    otel_span_update_name_p(&span, name, otel_length_(name));
}
