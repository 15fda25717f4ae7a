/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/end.c - end spans: from an open span to a committed record. App threads. start.c has the
 * other half of the hot path. */
#include "api/held/span_set.h"
#include "api/span/processor_calls.h"
#include "api/thread/detached_pool.h"
#include "api/thread/line_writer.h"
#include "common/base/spin_lock.h"
#include "common/clock/clock.h"
#include "common/clock/counter.h"

#include <otel/lines.h>
#include <string.h>

/* The end of a recording span: now, or the time that the caller has given. */
static inline uint64_t time_of_end(uint64_t end_ns)
{
    return end_ns == 0 ? oteli_ticks() | OTELI_TICKS_BIT : end_ns & ~OTELI_TICKS_BIT;
}

/* Whether the end of a detached span may call the program, to export or to ask whether a trace is
 * kept, which takes its time. */
static inline bool calls_program(const struct oteli_thread *thread,
                                 const struct oteli_active_span *active)
{
    return thread->program.gets_exports || (active->traits.bits & OTELI_HOLDS) != 0;
}

/* Other threads that look for the span meanwhile do not find it, and its lock is free. */
static OTELI_COLD void append_aside(struct oteli_thread *thread, struct oteli_active_span *active,
                                    otel_span_ref span, uint64_t end)
{
    struct oteli_ending ending = {.span = span};
    oteli_detached_take_aside(active, &ending);
    oteli_record_end(thread, &ending.aside.active, end);
    if (oteli_detached_is_known(active)) /* or the program has forked, and this is the child */
        oteli_detached_put_back(active, &ending);
}

/* A detached span has ended: its slot is free for another one. */
static inline void free_slot(struct oteli_thread *thread, struct oteli_active_span *active)
{
    if (OTELI_UNLIKELY(active->traits.is_unusual))
        oteli_active_lighten(active);
    oteli_store_relaxed_64(&active->self.opaque[2], 0);
    oteli_detached_unlock(active);
    oteli_detached_give(thread, active);
}

/* End any span. The state is busy, and free afterwards. */
static OTELI_NOINLINE void end_any(otel_span_ref span, uint64_t end_ns, struct oteli_thread *thread)
{
    const bool is_detached = oteli_ref_where(span.place) == OTELI_SPAN_IN_POOL;
    const uint64_t end = time_of_end(end_ns);
    oteli_thread_take_back(thread);
    struct oteli_active_span *active =
        is_detached ? oteli_detached_try_lock(span) : oteli_thread_find(thread, span);
    if (OTELI_UNLIKELY(active == NULL) && is_detached)
        active = oteli_detached_lock(span);
    if (OTELI_UNLIKELY(active == NULL)) {
        oteli_thread_leave_call(thread);
        return;
    }
    if (is_detached && OTELI_UNLIKELY(active->generation != thread->generation))
        oteli_thread_for_end(active->generation); /* takes the span's SDK, if it is the last one */
    if (OTELI_UNLIKELY(oteli_processing_knows(active))) {
        active = oteli_processing_end(thread, active, span, end);
        if (active == NULL)
            return;
    }
    const bool is_of_sdk =
        is_detached ? active->generation == thread->generation : oteli_active_records(active);
    if (OTELI_UNLIKELY(!is_of_sdk))
        oteli_hold_abandon(thread, active); /* its SDK is gone */
    else if (is_detached && OTELI_UNLIKELY(calls_program(thread, active)))
        append_aside(thread, active, span, end);
    else
        oteli_record_end(thread, active, end);
    if (is_detached)
        free_slot(thread, active);
    else
        oteli_thread_leave(thread, active);
    oteli_thread_leave_call(thread);
    if ((span.place & OTEL_SPAN_IS_RECORDING_) != 0)
        oteli_wake(); /* for a span that records nothing there is nothing to do */
}

static OTELI_NOINLINE void end_slow(otel_span_ref span, uint64_t end_ns)
{
    oteli_notice_fork();
    if (oteli_ref_where(span.place) == OTELI_SPAN_NOWHERE)
        return;
    struct oteli_thread *thread = oteli_self;
    if (oteli_ref_where(span.place) == OTELI_SPAN_IN_POOL)
        thread = oteli_thread_own();
    if (thread != NULL && oteli_thread_enter_call(thread))
        end_any(span, end_ns, thread);
}

/* Write all but name and attributes of the current span's record, which is plain, behind the last
 * one in the line. The state is busy, and free afterwards. */
static OTELI_INLINE void append_current(struct oteli_thread *thread,
                                        struct oteli_active_span *active, struct oteli_line *line,
                                        uint32_t used, uint32_t attributes_length, size_t size)
{
    oteli_raw_write_head(oteli_line_raw(line, used), active, size, attributes_length,
                         oteli_counter());
    oteli_commit_to(thread, line, used + (uint32_t)size, 1);
    oteli_thread_return(thread, active - 1);
    oteli_thread_leave_call(thread);
    oteli_wake();
}

/* The fast path for a span that has more than most; anything is left to end_any. */
static OTELI_NOINLINE void end_with_more(struct oteli_thread *thread,
                                         struct oteli_active_span *active)
{
    if (OTELI_UNLIKELY(!oteli_append_more(thread, active, oteli_counter() | OTELI_TICKS_BIT))) {
        end_any(otel_span_ref_of(&active->self), 0, thread);
        return;
    }
    oteli_active_lighten(active);
    oteli_thread_return(thread, active - 1);
    oteli_thread_leave_call(thread);
    oteli_wake();
}

/* The fast path for a span that is no leaf: its name and attributes have to be copied. */
static OTELI_INLINE void copy_and_append(struct oteli_thread *thread,
                                         struct oteli_active_span *active, bool is_small)
{
    struct oteli_line *const line = thread->line;
    const uint32_t used = thread->used;
    const uint32_t attributes_length = is_small ? 0 : active->attributes.length;
    const size_t size = oteli_raw_size_of(active->name_length, attributes_length);
    if (!oteli_is_plain(thread, active) || !oteli_line_has_room(thread, size)) {
        end_with_more(thread, active);
        return;
    }
    if (is_small)
        oteli_raw_write_short_name(oteli_line_raw(line, used), active);
    else
        oteli_raw_write_rest(oteli_line_raw(line, used), active);
    append_current(thread, active, line, used, attributes_length, size);
}

static OTELI_NOINLINE OTELI_HOT void end_larger(struct oteli_thread *thread,
                                                struct oteli_active_span *active)
{
    copy_and_append(thread, active, false);
}

static OTELI_NOINLINE OTELI_HOT void end_copied(struct oteli_thread *thread,
                                                struct oteli_active_span *active)
{
    if (active->name_length > OTELI_RAW_SHORT_NAME || active->attributes.length != 0)
        end_larger(thread, active);
    else
        copy_and_append(thread, active, true);
}

/* The fast path for a detached span, which is mostly ended by the thread that has started it.
 * Anything is left to end_any. The state is busy, and free afterwards. */
static OTELI_NOINLINE OTELI_HOT void end_detached(otel_span_ref span, struct oteli_thread *thread)
{
    const uint64_t end = oteli_counter(); /* first: the processor takes the lock meanwhile */
    struct oteli_active_span *active = oteli_detached_try_lock(span);
    if (OTELI_UNLIKELY(active == NULL)) {
        end_any(span, 0, thread);
        return;
    }
    const uint32_t size = oteli_raw_size(active);
    if (!oteli_is_plain(thread, active) || !oteli_line_has_room(thread, size) ||
        OTELI_UNLIKELY(active->generation != thread->generation) ||
        OTELI_UNLIKELY(thread->top->traits.is_lent)) {
        oteli_detached_unlock(active);
        end_any(span, 0, thread);
        return;
    }
    oteli_append_plain(thread, active, size, end);
    free_slot(thread, active);
    oteli_thread_leave_call(thread);
    oteli_wake();
}

/* --- what longjmp has jumped past --- */

/* Each span ends by the call that its function would have made, so it is held back, processed and
 * exported as any other. Processors that are told of an end may enter spans, and so move the
 * stack. */
static void close_place(const struct oteli_active_span *active)
{
    const uint64_t ref = active->self.opaque[3];
    if (oteli_active_is_stretch(active))
        otel_lines_free(otel_lines_end());
    else if ((active->traits.bits & OTELI_IS_ATTACHED) != 0 && !oteli_context_is_of_span(active))
        (void)otel_context_detach_p(active->token);
    else if ((ref & OTELI_REF_OF_STACK) == 0)
        otel_span_end_n((otel_span_ref){active->self.opaque[2], ref}, 0);
}

static OTELI_COLD void unwind(struct oteli_thread *thread, uint32_t depth)
{
    if (oteli_thread_is_busy(thread))
        return;
    for (size_t at = (size_t)(thread->top - thread->stack); at > depth; at--)
        if (thread->stack + at <= thread->top)
            close_place(&thread->stack[at]);
}

/* Scopes are lexical: what was entered in this one, and is open, was jumped past. */
static OTELI_NOINLINE void unwind_and_end(otel_span_ref span)
{
    struct oteli_thread *thread = oteli_self;
    const struct oteli_active_span *active = oteli_thread_find(thread, span);
    if (active != NULL)
        unwind(thread, (uint32_t)(active - thread->stack));
    end_slow(span, 0);
}

static OTELI_NOINLINE void let_go_and_unwind(otel_span_ref span, struct oteli_thread *thread)
{
    oteli_thread_leave_call(thread);
    unwind_and_end(span);
}

/* The fast path is for the current span when nothing about it is unusual; like the fast path of
 * starting it finds out first and calls nothing. The span is compared with the top of the
 * stack, and its data taken from there: the handle has been through memory several times by
 * now, and what the next span does would have to wait for it. */
static OTELI_INLINE void end_fast(otel_span_ref span, uint64_t end_ns, bool is_scope)
{
    struct oteli_thread *thread = oteli_self;
    const uint64_t generation = thread->fast;
    if (OTELI_UNLIKELY(!oteli_is_relaxed_64(&oteli_fast_generation, generation))) {
        if (is_scope)
            unwind_and_end(span);
        else
            end_slow(span, end_ns);
        return;
    }
    oteli_thread_mark_busy(
        thread); /* first: a signal handler that forks would take the line away, and
                                   one that goes deep would move the places */
    struct oteli_active_span *active = thread->top;
    if (OTELI_UNLIKELY(span.place != active->self.opaque[3] || span.id != active->self.opaque[2])) {
        if (is_scope)
            let_go_and_unwind(span, thread);
        else if (oteli_ref_where(span.place) == OTELI_SPAN_IN_POOL && end_ns == 0)
            end_detached(span, thread);
        else
            end_any(span, end_ns, thread);
        return;
    }
    if ((span.place & OTEL_SPAN_IS_RECORDING_) == 0) { /* nor has it an end, then */
        if (OTELI_UNLIKELY(active->traits.is_unusual)) {
            end_any(span, end_ns, thread);
            return;
        }
        oteli_thread_return(thread, active - 1);
        oteli_thread_leave_call_as(thread, generation);
        return;
    }
    if (OTELI_UNLIKELY(end_ns != 0)) {
        end_any(span, end_ns, thread);
        return;
    }
    if (!active->traits.is_lent) {
        end_copied(thread, active);
        return;
    }
    if (!oteli_is_plain(thread, active)) {
        end_with_more(thread, active);
        return;
    }
    struct oteli_line *const line = thread->line;
    const uint32_t used = thread->used;
    const uint32_t attributes_length = active->attributes.length;
    append_current(thread, active, line, used, attributes_length,
                   oteli_raw_size_of(active->name_length, attributes_length));
}

OTELI_HOT void otel_span_end_n(otel_span_ref span, uint64_t end_ns)
{
    end_fast(span, end_ns, false);
}

OTELI_HOT void otel_span_end_scope_n(otel_span_ref span)
{
    end_fast(span, 0, true);
}

/* --- from a mark on --- */

/* How deep, and half of the span's id, which an ended span has not any more. */
static uint64_t mark_of(const struct oteli_thread *thread, const struct oteli_active_span *active)
{
    const uint64_t depth = (uint64_t)(active - thread->stack) + 1;
    return depth << 32 | (uint32_t)active->self.opaque[2];
}

otel_span_mark otel_span_mark_here(void)
{
    const struct oteli_thread *thread = oteli_self;
    return (otel_span_mark){mark_of(thread, thread->top)};
}

void otel_span_unwind(otel_span_mark mark)
{
    struct oteli_thread *thread = oteli_self;
    const uint64_t depth = (mark.opaque >> 32) - 1;
    if (mark.opaque == 0 || depth >= (uint64_t)(thread->top - thread->stack))
        return;
    const struct oteli_active_span *active = &thread->stack[depth];
    if ((active->self.opaque[3] & OTELI_REF_DEAD) != 0 || mark_of(thread, active) == mark.opaque)
        unwind(thread, (uint32_t)depth);
}

/* --- ends that withhold --- */

void otel_span_cancel(otel_span span)
{
    struct oteli_thread *thread = oteli_thread_own();
    if (thread == NULL || !oteli_thread_enter_call(thread))
        return;
    struct oteli_active_span *active = oteli_open_find(thread, otel_span_ref_of(&span));
    if (active != NULL && (active->traits.bits & OTELI_HOLDS) != 0) {
        oteli_hold_at(active->hold)->is_cancelled = true;
    } else if (active != NULL) {
        active->traits.end_as = OTELI_END_CANCELLED;
        active->traits.is_unusual = true;
    }
    oteli_open_release(active);
    oteli_thread_leave_call(thread);
    otel_span_end(span);
}

otel_span otel_span_enter_address(otel_tracer *tracer, const void *address)
{
    if (otel_is_idle_())
        return otel_span_none_();
    const otel_span span = otel_span_enter_n(tracer, "", 0, NULL);
    struct oteli_thread *thread = oteli_self;
    if (!oteli_thread_enter_call(thread))
        return span;
    struct oteli_active_span *active = oteli_thread_find(thread, otel_span_ref_of(&span));
    if (active != NULL && oteli_active_records(active)) {
        oteli_thread_take_back(thread);
        memcpy(active->name, &address, sizeof address);
        active->name_length = sizeof address;
        active->traits.bits |= OTELI_NAME_IS_ADDRESS;
        active->traits.is_unusual = true;
    }
    oteli_thread_leave_call(thread);
    return span;
}

/* Each span that a thread starts takes a number of the thread's sequence. So as long as that stands
 * where the id of an entered span was made, no other was started in it; and a span that is withheld
 * notes in the one around it that what was started up to now is gone. */

/* Whether nothing is left of what was started from an entered span on up to this state of the
 * sequence. */
static bool is_quiet(const struct oteli_thread *thread, struct oteli_active_span *active,
                     uint64_t state)
{
    const uint64_t id = active->self.opaque[2];
    if (thread->program.makes_ids || oteli_random_id_at(active->made_at) == id)
        return active->quiet_to == state;
    active->made_at = active->quiet_to = state;
    return oteli_random_id_at(state) == id;
}

/* An entered span that is quiet will be withheld. */
static void note_in_outer(const struct oteli_thread *thread, const struct oteli_active_span *active)
{
    const uint64_t numbers = active->parent_id == 0 ? 2 : 1; /* a trace id, and the span's */
    const uint64_t before = active->made_at - numbers * thread->random.step;
    struct oteli_active_span *outer = thread->stack + (active - thread->stack) - 1;
    while (outer != thread->stack && (outer->self.opaque[3] & OTELI_REF_OF_STACK) != 0)
        outer--;
    if (outer != thread->stack && oteli_active_records(outer) && is_quiet(thread, outer, before))
        outer->quiet_to = thread->random.state;
}

/* Whether spans, also of other threads, have ended or will end into what this one holds back. */
static bool holds_others(const struct oteli_active_span *active)
{
    struct otel_lines *hold = oteli_hold_at(active->hold);
    oteli_spin_lock(&hold->lock);
    const uint32_t count = hold->count;
    oteli_spin_unlock(&hold->lock);
    return count != 0 || oteli_load_acquire_32(&hold->members) > 1;
}

static bool has_no_children(const struct oteli_thread *thread, struct oteli_active_span *active)
{
    if ((active->traits.bits & OTELI_HOLDS) != 0 && holds_others(active))
        return false;
    if (oteli_ref_where(active->usual_ref) == OTELI_SPAN_IN_POOL)
        return (active->traits.bits & OTELI_IS_PARENT) == 0;
    return is_quiet(thread, active, thread->random.state);
}

static bool is_shorter(const struct oteli_active_span *active, uint64_t min_ns)
{
    if (OTELI_UNLIKELY((active->traits.bits & OTELI_START_IS_GIVEN) != 0))
        return oteli_clock_now_ns(active->epoch) - active->start < min_ns;
    return oteli_ticks() - active->start < oteli_clock_ticks_of_ns(min_ns);
}

/* If it has a held set, the set is empty: it is closed as cancelled, without asking a tail rule. */
static void withhold(const struct oteli_thread *thread, struct oteli_active_span *active)
{
    if (oteli_ref_where(active->usual_ref) == OTELI_SPAN_ON_STACK)
        note_in_outer(thread, active);
    if ((active->traits.bits & OTELI_HOLDS) != 0)
        oteli_hold_at(active->hold)->is_cancelled = true;
    active->traits.end_as = OTELI_END_TOO_SHORT;
    active->traits.is_unusual = true;
}

void otel_span_end_unless_shorter(otel_span span, uint64_t min_ns)
{
    const otel_span_ref ref = otel_span_ref_of(&span);
    const bool is_detached = oteli_ref_where(ref.place) == OTELI_SPAN_IN_POOL;
    oteli_notice_fork();
    const bool has_state = !is_detached || oteli_thread_own() != NULL;
    struct oteli_thread *thread = oteli_self;
    if ((ref.place & OTEL_SPAN_IS_RECORDING_) != 0 && has_state &&
        oteli_thread_enter_call(thread)) {
        struct oteli_active_span *active = oteli_open_find(thread, ref);
        if (active != NULL && oteli_active_records(active) && is_shorter(active, min_ns) &&
            has_no_children(thread, active))
            withhold(thread, active);
        oteli_open_release(active);
        oteli_thread_leave_call(thread);
    }
    otel_span_end(span);
}

otel_lines *otel_span_collect(otel_span span)
{
    struct oteli_thread *thread = oteli_thread_own();
    if (thread == NULL || !oteli_thread_enter_call(thread))
        return NULL;
    struct oteli_active_span *active = oteli_open_find(thread, otel_span_ref_of(&span));
    otel_lines *lines = NULL; /* the set that the span holds, joined: from now on the caller's */
    if (active != NULL && (active->traits.bits & OTELI_HOLDS) != 0 &&
        oteli_active_hold(active) != 0 && !oteli_hold_at(active->hold)->is_collected) {
        lines = oteli_hold_at(active->hold);
        lines->is_collected = true;
        oteli_hold_join(lines);
    }
    oteli_open_release(active);
    oteli_thread_leave_call(thread);
    otel_span_end(span);
    return lines != NULL ? oteli_hold_give_to_caller(lines) : NULL;
}
