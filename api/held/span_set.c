/* SPDX-License-Identifier: Apache-2.0 */
/* api/held/span_set.c - held sets: which spans belong to them, what ends in them, and what becomes
 * of them. Any thread. */
#include "api/held/span_set.h"
#include "api/record/hold_table.h"
#include "api/record/set_roots.h"
#include "api/thread/detached_pool.h"
#include "api/thread/line_writer.h"
#include "common/base/spin_lock.h"
#include "common/clock/clock.h"

#include <string.h>

/* --- which spans belong to a set --- */

/* The set of an open parent, joined, and what the ends of its children do. */
static struct otel_lines *set_of(const struct oteli_thread *thread, const otel_span *parent,
                                 uint8_t *end_as)
{
    const struct oteli_active_span *active = oteli_thread_place(thread, otel_span_ref_of(parent));
    struct oteli_active_span *locked =
        active == NULL ? oteli_detached_lock(otel_span_ref_of(parent)) : NULL;
    struct otel_lines *hold = NULL;
    if (locked != NULL)
        active = locked;
    if (active != NULL && oteli_active_hold(active) != 0) {
        hold = oteli_hold_at(active->hold);
        oteli_hold_join(hold);
    }
    if (active != NULL &&
        (active->traits.end_as == OTELI_END_LATE || active->traits.end_as == OTELI_END_ABANDONED))
        *end_as = active->traits.end_as;
    if (locked != NULL)
        oteli_detached_unlock(locked);
    else if (active == NULL && (parent->opaque[3] & OTELI_REF_HELD) != 0)
        hold = oteli_holders_find(parent->opaque, oteli_ref_holder(parent->opaque[3]), end_as);
    return hold;
}

/* The set that takes what this one would: itself, or the one around it once that has what it
 * kept. */
static struct otel_lines *taker_of(struct otel_lines *hold)
{
    while (oteli_hold_state_of(hold) == OTELI_KEPT && hold->outer != 0)
        hold = oteli_hold_at(hold->outer);
    return hold;
}

/* `outer`: the set that the span would be a member of, joined, or 0. */
static void begin_to_hold(struct oteli_thread *thread, struct oteli_active_span *active,
                          uint32_t outer, const uint64_t trace_id[2], uint64_t *ref)
{
    struct otel_lines *hold = oteli_hold_new(thread->generation, trace_id);
    if (hold == NULL)
        return; /* no memory: its spans are exported as they end, or go where it goes */
    hold->outer = outer;
    active->hold = oteli_hold_index(hold);
    active->traits.bits |= OTELI_HOLDS;
    active->traits.is_unusual = true;
    oteli_holders_add(hold);
    *ref &= ~OTELI_REF_HOLDER;
    *ref |= OTELI_REF_HELD | (uint64_t)hold->number << OTELI_REF_HOLDER_SHIFT;
}

/* Whether the parent's set, or a verdict on it, is this span's as well. */
static bool is_member(const struct oteli_thread *thread, struct oteli_active_span *active,
                      const otel_span *parent)
{
    struct otel_lines *hold = set_of(thread, parent, &active->traits.end_as);
    struct otel_lines *taker = hold != NULL ? taker_of(hold) : NULL;
    if (taker != hold) {
        oteli_hold_join(taker);
        oteli_hold_leave(hold);
        hold = taker;
    }
    const bool is_of_another_sdk = hold != NULL && hold->generation != thread->generation;
    if (is_of_another_sdk || (hold != NULL && oteli_hold_state_of(hold) == OTELI_KEPT)) {
        oteli_hold_leave(hold);
        if (!oteli_span_is_collected(parent))
            return false; /* its trace is kept, or its SDK has stopped */
        hold = NULL;
        active->traits.end_as = OTELI_END_LATE;
    }
    active->hold = hold != NULL ? oteli_hold_index(hold) : 0;
    return hold != NULL || active->traits.end_as != OTELI_END_EXPORTED;
}

void oteli_hold_inherit(struct oteli_thread *thread, struct oteli_active_span *active,
                        const otel_span *parent, const otel_span_options *options,
                        const uint64_t trace_id[2], uint64_t *ref)
{
    const uint64_t bits = OTELI_REF_HELD | OTELI_REF_COLLECTED;
    const bool is_root = parent->opaque[2] == 0 || oteli_ref_is_remote(parent->opaque[3]);
    if (!is_root && (parent->opaque[3] & bits) != 0 && is_member(thread, active, parent)) {
        active->traits.is_unusual = true;
        *ref |= parent->opaque[3] & (bits | OTELI_REF_HOLDER);
        if (oteli_hold_is_wanted(options) && !oteli_span_is_collected(parent) &&
            active->hold != 0 && oteli_hold_state_of(oteli_hold_at(active->hold)) == OTELI_HOLDING)
            begin_to_hold(thread, active, active->hold, trace_id, ref);
    } else if (oteli_hold_is_wanted(options) || (is_root && thread->limits.roots_hold)) {
        begin_to_hold(thread, active, 0, trace_id, ref);
    }
}

/* --- what ends in a set, and what becomes of it --- */

/* There always is room behind the records to mark them in. */
enum outcome { ADDED, NO_ROOM, NOT_HOLDING };

static enum outcome add(struct otel_lines *hold, const struct oteli_active_span *active,
                        uint64_t end)
{
    enum outcome outcome = NOT_HOLDING;
    oteli_spin_lock(&hold->lock);
    if (oteli_hold_state_of(hold) == OTELI_HOLDING) {
        uint8_t *at = oteli_hold_room(hold, oteli_compose_bound(active) +
                                                oteli_outermost_scratch(hold->count + 1));
        outcome = at != NULL ? ADDED : NO_ROOM;
        if (at != NULL) {
            hold->records.length += oteli_compose((struct oteli_record *)(void *)at, active, end);
            hold->count++;
        }
        hold->has_error |= active->unusual.status == OTEL_SPAN_STATUS_ERROR;
    }
    oteli_spin_unlock(&hold->lock);
    return outcome;
}

/* Whether an answer was overtaken: the set has passed everything on meanwhile. */
static bool is_overtaken(enum outcome outcome, const struct otel_lines *hold)
{
    return outcome == NOT_HOLDING && oteli_hold_state_of(hold) == OTELI_KEPT && hold->outer != 0;
}

/* The same for the set that takes what `hold` would. */
static enum outcome add_to(struct otel_lines **taker, struct otel_lines *hold,
                           const struct oteli_active_span *active, uint64_t end)
{
    enum outcome outcome;
    do {
        *taker = taker_of(hold);
        outcome = add(*taker, active, end);
    } while (is_overtaken(outcome, *taker));
    return outcome;
}

static uint64_t duration_of(const struct oteli_active_span *active, uint64_t end)
{
    const struct oteli_span_times times =
        oteli_clock_span_times(oteli_active_start(active), end, active->epoch);
    return times.end_ns > times.start_ns ? times.end_ns - times.start_ns : 0;
}

static bool is_kept(struct oteli_thread *thread, struct otel_lines *hold,
                    const struct oteli_active_span *active, uint64_t end)
{
    if (hold->is_cancelled || hold->is_collected)
        return false;
    if (hold->outer != 0)
        return true; /* its root decides */
    bool kept = true;
    oteli_spin_lock(&hold->lock);
    const size_t span_count = hold->count;
    const bool has_error = hold->has_error;
    oteli_spin_unlock(&hold->lock);
    const struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    if (sdk != NULL && sdk->generation == thread->generation && sdk->keep != NULL) {
        const otel_tail tail = {.size = sizeof tail,
                                .root = otel_span_get_context(active->self),
                                .name = {oteli_active_name(active), active->name_length},
                                .duration_ns = duration_of(active, end),
                                .span_count = span_count,
                                .has_error = has_error};
        kept = sdk->keep(sdk, &tail);
    }
    oteli_sdk_return(thread);
    return kept;
}

static void hand_on(struct oteli_thread *thread, const struct otel_lines *hold)
{
    for (uint32_t at = 0; at < hold->records.length;) {
        const struct oteli_record *record =
            (const struct oteli_record *)(const void *)(hold->records.data + at);
        at += record->size;
        oteli_append_copy(thread, record);
    }
}

static enum outcome add_all(struct otel_lines *outer, const struct otel_lines *hold)
{
    enum outcome outcome = NOT_HOLDING;
    oteli_spin_lock(&outer->lock);
    if (oteli_hold_state_of(outer) == OTELI_HOLDING) {
        uint8_t *at = oteli_hold_room(
            outer, hold->records.length + oteli_outermost_scratch(outer->count + hold->count));
        outcome = at != NULL ? ADDED : NO_ROOM;
        if (at != NULL && hold->records.length != 0) {
            memcpy(at, hold->records.data, hold->records.length);
            outer->records.length += hold->records.length;
            outer->count += hold->count;
        }
        outer->has_error |= hold->has_error;
    }
    oteli_spin_unlock(&outer->lock);
    return outcome;
}

/* Spans that a closed set takes no more. */
static void refuse(struct oteli_thread *thread, const struct otel_lines *hold, uint64_t count)
{
    if (hold->is_abandoned)
        oteli_thread_lose(thread, OTEL_DROP_ABANDONED, count);
    else
        oteli_thread_withhold(thread, OTEL_WITHHELD_LATE, count);
}

/* What is kept goes to the set around it; or the way that was decided there. */
static void pass_on(struct oteli_thread *thread, struct otel_lines *hold)
{
    struct otel_lines *outer;
    enum outcome outcome;
    do {
        outer = taker_of(hold);
        outcome = outer != hold ? add_all(outer, hold) : NOT_HOLDING;
    } while (is_overtaken(outcome, outer));
    if (outcome == NO_ROOM)
        oteli_thread_lose(thread, OTEL_DROP_HELD_LIMIT, hold->count);
    else if (outcome == NOT_HOLDING && oteli_hold_state_of(outer) == OTELI_KEPT)
        hand_on(thread, hold);
    else if (outcome == NOT_HOLDING)
        refuse(thread, outer, hold->count);
}

static void decide(struct oteli_thread *thread, struct otel_lines *hold,
                   const struct oteli_active_span *active, uint64_t end)
{
    const bool kept = is_kept(thread, hold, active, end);
    if (kept && hold->outer != 0)
        oteli_holders_pass_on(hold, oteli_hold_at(hold->outer));
    else
        oteli_holders_decide(hold, kept);
    oteli_hold_set_state(hold, kept ? OTELI_KEPT : OTELI_CLOSED);
    oteli_store_relaxed_32(&hold->is_unaccounted, 0);
    if (kept)
        pass_on(thread, hold);
    else if (hold->is_collected)
        oteli_thread_withhold(thread, OTEL_WITHHELD_COLLECTED, hold->count);
    else if (hold->is_cancelled)
        oteli_thread_withhold(thread, OTEL_WITHHELD_CANCELLED, hold->count);
    else
        oteli_thread_withhold(thread, OTEL_WITHHELD_NOT_KEPT, hold->count);
}

static bool is_kept_for_good(const struct otel_lines *hold)
{
    return oteli_hold_state_of(hold) == OTELI_KEPT && hold->outer == 0;
}

/* The end of a member, or of a span that is withheld. */
static void end_while_busy(struct oteli_thread *thread, struct oteli_active_span *active,
                           uint64_t end)
{
    const bool holds = (active->traits.bits & OTELI_HOLDS) != 0;
    const uint8_t end_as = active->traits.end_as;
    struct otel_lines *hold = oteli_active_hold(active) != 0 ? oteli_hold_at(active->hold) : NULL;
    active->hold = 0;
    active->traits.bits &= (uint8_t)~OTELI_HOLDS;
    active->traits.end_as = OTELI_END_EXPORTED;
    struct otel_lines *taker = hold;
    enum outcome outcome = ADDED;
    if (end_as == OTELI_END_CANCELLED)
        oteli_thread_withhold(thread, OTEL_WITHHELD_CANCELLED, 1);
    else if (end_as == OTELI_END_TOO_SHORT)
        oteli_thread_withhold(thread, OTEL_WITHHELD_TOO_SHORT, 1);
    else if (end_as == OTELI_END_LATE)
        oteli_thread_withhold(thread, OTEL_WITHHELD_LATE, 1);
    else if (end_as == OTELI_END_ABANDONED)
        oteli_thread_lose(thread, OTEL_DROP_ABANDONED, 1);
    else if (hold != NULL)
        outcome = add_to(&taker, hold, active, end);
    if (outcome == NOT_HOLDING && is_kept_for_good(taker))
        oteli_append_any(thread, active, end);
    else if (outcome == NOT_HOLDING)
        refuse(thread, taker, 1);
    else if (outcome == NO_ROOM && !holds)
        oteli_thread_lose(thread, OTEL_DROP_HELD_LIMIT, 1);
    if (holds && hold != NULL)
        decide(thread, hold, active, end);
    if (outcome == NO_ROOM && holds && is_kept_for_good(hold))
        oteli_append_any(thread, active, end); /* a root needs no room once it is decided */
    else if (outcome == NO_ROOM && holds)
        oteli_thread_lose(thread, OTEL_DROP_HELD_LIMIT, 1);
    if (hold != NULL)
        oteli_hold_leave(hold);
}

void oteli_record_end(struct oteli_thread *thread, struct oteli_active_span *active, uint64_t end)
{
    if ((active->traits.bits & OTELI_RECORD_ONLY) != 0)
        return;
    if (oteli_active_hold(active) != 0 || active->traits.end_as != OTELI_END_EXPORTED)
        end_while_busy(thread, active, end);
    else
        oteli_append_any(thread, active, end);
}

void oteli_hold_close(struct otel_lines *hold)
{
    oteli_hold_set_state(hold, OTELI_CLOSED);
    if (hold->count == 0)
        return;
    uint8_t *scratch = oteli_hold_room(hold, oteli_outermost_scratch(hold->count));
    oteli_outermost_mark(hold->records.data, hold->records.length, scratch, hold->count);
    for (uint32_t at = 0; at < hold->records.length;) {
        struct oteli_record *record = (struct oteli_record *)(void *)(hold->records.data + at);
        at += record->size;
        oteli_record_convert(record);
    }
}
