/* SPDX-License-Identifier: Apache-2.0 */
/* api/held/span_set.c - held sets: who belongs to them, what ends in them, and what becomes of
 * them. Any thread. */
#include "api/held/span_set.h"
#include "api/active/detached_pool.h"
#include "api/held/hold_table.h"
#include "api/held/set_roots.h"
#include "api/record/line_writer.h"
#include "common/base/alloc.h"
#include "common/base/slot_pool.h"
#include "common/base/spin_lock.h"
#include "common/clock/clock.h"

#include <string.h>

enum { PART = 64, PARTS = 16384 };
enum { LARGEST_SET = 1 << 30 }; /* lengths have 32 bits */

static void *parts[PARTS]; /* zeros: not in the file */

static struct {
    struct oteli_free_list furnished; /* free, with buffers for the next one … */
    struct oteli_free_list bare;      /* … and without */
    uint64_t bytes;                   /* of all buffers */
    uint64_t bytes_limit;
    struct oteli_slot_pool sets;
} pool = {.bytes_limit = UINT64_MAX,
          .sets = {.parts = parts,
                   .part_count = PARTS,
                   .slots_a_part = PART,
                   .slot_size = sizeof(struct otel_lines)}};

void oteli_holds_set_limit(uint64_t bytes)
{
    oteli_store_relaxed_64(&pool.bytes_limit, bytes);
}

static struct otel_lines *at_index(uint32_t index)
{
    return oteli_slot_at(parts, PART, sizeof(struct otel_lines), index);
}

static uint32_t *link_of(uint32_t index)
{
    static uint32_t nowhere;
    struct otel_lines *hold = at_index(index);
    return hold != NULL ? &hold->free_next : &nowhere;
}

struct otel_lines *oteli_hold_at(uint32_t hold)
{
    struct otel_lines *part = OTELI_LOAD_ACQUIRE_PTR(&parts[(hold - 1) / PART]);
    return &part[(hold - 1) % PART]; /* it is there: its members have it */
}

static void set_state(struct otel_lines *hold, enum oteli_hold_state state)
{
    oteli_spin_lock(&hold->lock);
    oteli_store_release_32(&hold->state, (uint32_t)state);
    oteli_spin_unlock(&hold->lock);
}

static enum oteli_hold_state state_of(const struct otel_lines *hold)
{
    return (enum oteli_hold_state)oteli_load_acquire_32(&hold->state);
}

struct otel_lines *oteli_hold_new(const struct oteli_thread *thread, const uint64_t trace_id[2])
{
    uint32_t index = oteli_free_list_pop(&pool.furnished, link_of);
    if (index == OTELI_NO_PLACE)
        index = oteli_free_list_pop(&pool.bare, link_of);
    if (index == OTELI_NO_PLACE)
        index = oteli_slot_new(&pool.sets);
    struct otel_lines *hold = index != OTELI_NO_PLACE ? at_index(index) : NULL;
    if (hold == NULL)
        return NULL;
    hold->index = index;
    hold->generation = thread->generation;
    oteli_half_copy(hold->trace_id, trace_id);
    hold->count = 0;
    hold->outer = 0;
    hold->records.length = 0;
    hold->has_error = hold->is_cancelled = hold->is_collected = hold->is_abandoned = false;
    oteli_store_relaxed_32(&hold->is_unaccounted, 1);
    oteli_store_relaxed_32(&hold->state, OTELI_HOLDING);
    oteli_store_release_32(&hold->members, 1);
    return hold;
}

void oteli_hold_join(struct otel_lines *hold)
{
    oteli_add_full_32(&hold->members, 1);
}

/* False: it is of before a fork, and the parent's. */
static bool is_in_pool(const struct otel_lines *hold)
{
    return hold == at_index(hold->index);
}

/* Not below zero: after a fork, they may have been counted before it. */
static void give_bytes_back(uint64_t bytes)
{
    uint64_t before;
    do {
        before = oteli_load_relaxed_64(&pool.bytes);
    } while (before >= bytes && !oteli_cas_full_64(&pool.bytes, before, before - bytes));
}

static void strip(struct otel_lines *hold)
{
    give_bytes_back(hold->records.capacity);
    oteli_buffer_fini(&hold->records);
}

void oteli_hold_leave(struct otel_lines *hold)
{
    if (!is_in_pool(hold) || oteli_add_full_32(&hold->members, UINT32_MAX) != 1)
        return;
    const uint32_t outer = hold->outer;
    if (hold->records.capacity > OTELI_BUFFER_KEPT)
        strip(hold);
    oteli_free_list_push(hold->records.capacity != 0 ? &pool.furnished : &pool.bare, link_of,
                         hold->index);
    if (outer != 0)
        oteli_hold_leave(oteli_hold_at(outer));
}

/* Take one buffer away from a set that nobody uses. */
static bool strip_one(void)
{
    const uint32_t index = oteli_free_list_pop(&pool.furnished, link_of);
    if (index == OTELI_NO_PLACE)
        return false;
    strip(at_index(index));
    oteli_free_list_push(&pool.bare, link_of, index);
    return true;
}

static bool reserve(uint64_t bytes)
{
    for (;;) {
        const uint64_t before = oteli_load_relaxed_64(&pool.bytes);
        const uint64_t limit = oteli_load_relaxed_64(&pool.bytes_limit);
        if (before <= limit && bytes <= limit - before) {
            if (oteli_cas_full_64(&pool.bytes, before, before + bytes))
                return true;
        } else if (!strip_one()) {
            return false;
        }
    }
}

/* A buffer of so many bytes in the place of the one before. */
static bool resize(struct oteli_buffer *records, size_t capacity)
{
    const uint64_t more = capacity - records->capacity;
    if (capacity > LARGEST_SET || !reserve(more))
        return false;
    uint8_t *data = oteli_realloc(records->data, capacity);
    if (data == NULL) {
        give_bytes_back(more);
        return false;
    }
    records->data = data;
    records->capacity = (uint32_t)capacity;
    return true;
}

/* Where `bytes` more go in the set, under the limit of all sets together: twice what there
 * was, or a little more than is needed where that is not to be had, or just that. */
static uint8_t *room(struct otel_lines *hold, size_t bytes)
{
    struct oteli_buffer *records = &hold->records;
    const size_t needed = (records->length + bytes + 7) & ~(size_t)7;
    size_t twice = records->capacity != 0 ? records->capacity : OTELI_BUFFER_FIRST;
    while (twice < needed)
        twice *= 2;
    if (needed <= records->capacity || resize(records, twice) ||
        resize(records, needed + needed / 16) || resize(records, needed))
        return records->data + records->length;
    return NULL;
}

/* --- who belongs to a set --- */

/* The set of an open parent, joined, and what the ends of its children do. */
static struct otel_lines *set_of(const struct oteli_thread *thread, const otel_span *parent,
                                 uint8_t *end_as)
{
    const struct oteli_open *open = oteli_thread_place(thread, otel_span_ref_of(parent));
    struct oteli_open *locked = open == NULL ? oteli_detached_lock(otel_span_ref_of(parent)) : NULL;
    struct otel_lines *hold = NULL;
    if (locked != NULL)
        open = locked;
    if (open != NULL && oteli_open_hold(open) != 0) {
        hold = oteli_hold_at(open->hold);
        oteli_hold_join(hold);
    }
    if (open != NULL &&
        (open->traits.end_as == OTELI_END_LATE || open->traits.end_as == OTELI_END_ABANDONED))
        *end_as = open->traits.end_as;
    if (locked != NULL)
        oteli_detached_unlock(locked);
    else if (open == NULL && (parent->opaque[3] & OTELI_REF_HELD) != 0)
        hold = oteli_holders_find(parent->opaque, oteli_ref_holder(parent->opaque[3]), end_as);
    return hold;
}

/* The set that takes what this one would: itself, or the one around it once that has what it
 * kept. */
static struct otel_lines *taker_of(struct otel_lines *hold)
{
    while (state_of(hold) == OTELI_KEPT && hold->outer != 0)
        hold = oteli_hold_at(hold->outer);
    return hold;
}

/* `outer`: the set that the span would be a member of, joined, or 0. */
static void begin_to_hold(struct oteli_thread *thread, struct oteli_open *open, uint32_t outer,
                          const uint64_t trace_id[2], uint64_t *ref)
{
    struct otel_lines *hold = oteli_hold_new(thread, trace_id);
    if (hold == NULL)
        return; /* no memory: its spans are exported as they end, or go where it goes */
    hold->outer = outer;
    open->hold = oteli_hold_index(hold);
    open->traits.bits |= OTELI_HOLDS;
    open->traits.is_unusual = true;
    oteli_holders_add(hold);
    *ref &= ~OTELI_REF_HOLDER;
    *ref |= OTELI_REF_HELD | (uint64_t)hold->number << OTELI_REF_HOLDER_SHIFT;
}

/* Whether the parent's set, or a verdict on it, is this span's as well. */
static bool is_member(const struct oteli_thread *thread, struct oteli_open *open,
                      const otel_span *parent)
{
    struct otel_lines *hold = set_of(thread, parent, &open->traits.end_as);
    struct otel_lines *taker = hold != NULL ? taker_of(hold) : NULL;
    if (taker != hold) {
        oteli_hold_join(taker);
        oteli_hold_leave(hold);
        hold = taker;
    }
    const bool is_of_another_sdk = hold != NULL && hold->generation != thread->generation;
    if (is_of_another_sdk || (hold != NULL && state_of(hold) == OTELI_KEPT)) {
        oteli_hold_leave(hold);
        if (!oteli_span_is_collected(parent))
            return false; /* its trace is kept, or nobody will decide any more */
        hold = NULL;
        open->traits.end_as = OTELI_END_LATE;
    }
    open->hold = hold != NULL ? oteli_hold_index(hold) : 0;
    return hold != NULL || open->traits.end_as != OTELI_END_EXPORTED;
}

void oteli_hold_inherit(struct oteli_thread *thread, struct oteli_open *open,
                        const otel_span *parent, const otel_span_options *options,
                        const uint64_t trace_id[2], uint64_t *ref)
{
    const uint64_t bits = OTELI_REF_HELD | OTELI_REF_COLLECTED;
    const bool is_root = parent->opaque[2] == 0 || oteli_ref_is_remote(parent->opaque[3]);
    if (!is_root && (parent->opaque[3] & bits) != 0 && is_member(thread, open, parent)) {
        open->traits.is_unusual = true;
        *ref |= parent->opaque[3] & (bits | OTELI_REF_HOLDER);
        if (oteli_hold_is_wanted(options) && !oteli_span_is_collected(parent) && open->hold != 0 &&
            state_of(oteli_hold_at(open->hold)) == OTELI_HOLDING)
            begin_to_hold(thread, open, open->hold, trace_id, ref);
    } else if (oteli_hold_is_wanted(options) || (is_root && thread->limits.roots_hold)) {
        begin_to_hold(thread, open, 0, trace_id, ref);
    }
}

/* --- what ends in a set, and what becomes of it --- */

/* There always is room behind the records to mark them in. */
enum outcome { ADDED, NO_ROOM, NOT_HOLDING };

static enum outcome add(struct otel_lines *hold, const struct oteli_open *open, uint64_t end)
{
    enum outcome outcome = NOT_HOLDING;
    oteli_spin_lock(&hold->lock);
    if (state_of(hold) == OTELI_HOLDING) {
        uint8_t *at =
            room(hold, oteli_compose_bound(open) + oteli_outermost_scratch(hold->count + 1));
        outcome = at != NULL ? ADDED : NO_ROOM;
        if (at != NULL) {
            hold->records.length += oteli_compose((struct oteli_record *)(void *)at, open, end);
            hold->count++;
        }
        hold->has_error |= open->unusual.status == OTEL_SPAN_STATUS_ERROR;
    }
    oteli_spin_unlock(&hold->lock);
    return outcome;
}

/* Whether an answer was overtaken: the set has passed everything on meanwhile. */
static bool is_overtaken(enum outcome outcome, const struct otel_lines *hold)
{
    return outcome == NOT_HOLDING && state_of(hold) == OTELI_KEPT && hold->outer != 0;
}

/* The same for the set that takes what `hold` would. */
static enum outcome add_to(struct otel_lines **taker, struct otel_lines *hold,
                           const struct oteli_open *open, uint64_t end)
{
    enum outcome outcome;
    do {
        *taker = taker_of(hold);
        outcome = add(*taker, open, end);
    } while (is_overtaken(outcome, *taker));
    return outcome;
}

static uint64_t duration_of(const struct oteli_open *open, uint64_t end)
{
    const struct oteli_span_times times =
        oteli_clock_span_times(oteli_open_start(open), end, open->epoch);
    return times.end_ns > times.start_ns ? times.end_ns - times.start_ns : 0;
}

static bool is_kept(struct oteli_thread *thread, struct otel_lines *hold,
                    const struct oteli_open *open, uint64_t end)
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
                                .root = otel_span_get_context(open->self),
                                .name = {oteli_open_name(open), open->name_length},
                                .duration_ns = duration_of(open, end),
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
    if (state_of(outer) == OTELI_HOLDING) {
        uint8_t *at =
            room(outer, hold->records.length + oteli_outermost_scratch(outer->count + hold->count));
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
    else if (outcome == NOT_HOLDING && state_of(outer) == OTELI_KEPT)
        hand_on(thread, hold);
    else if (outcome == NOT_HOLDING)
        refuse(thread, outer, hold->count);
}

static void decide(struct oteli_thread *thread, struct otel_lines *hold,
                   const struct oteli_open *open, uint64_t end)
{
    const bool kept = is_kept(thread, hold, open, end);
    if (kept && hold->outer != 0)
        oteli_holders_pass_on(hold, oteli_hold_at(hold->outer));
    else
        oteli_holders_decide(hold, kept);
    set_state(hold, kept ? OTELI_KEPT : OTELI_CLOSED);
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
    return state_of(hold) == OTELI_KEPT && hold->outer == 0;
}

/* The end of a member, or of a span that is withheld. */
static void end_held(struct oteli_thread *thread, struct oteli_open *open, uint64_t end)
{
    const bool holds = (open->traits.bits & OTELI_HOLDS) != 0;
    const uint8_t end_as = open->traits.end_as;
    struct otel_lines *hold = oteli_open_hold(open) != 0 ? oteli_hold_at(open->hold) : NULL;
    open->hold = 0;
    open->traits.bits &= (uint8_t)~OTELI_HOLDS;
    open->traits.end_as = OTELI_END_EXPORTED;
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
        outcome = add_to(&taker, hold, open, end);
    if (outcome == NOT_HOLDING && is_kept_for_good(taker))
        oteli_append_any(thread, open, end);
    else if (outcome == NOT_HOLDING)
        refuse(thread, taker, 1);
    else if (outcome == NO_ROOM && !holds)
        oteli_thread_lose(thread, OTEL_DROP_HELD_LIMIT, 1);
    if (holds && hold != NULL)
        decide(thread, hold, open, end);
    if (outcome == NO_ROOM && holds && is_kept_for_good(hold))
        oteli_append_any(thread, open, end); /* a root needs no room once it is decided */
    else if (outcome == NO_ROOM && holds)
        oteli_thread_lose(thread, OTEL_DROP_HELD_LIMIT, 1);
    if (hold != NULL)
        oteli_hold_leave(hold);
}

void oteli_hold_end(struct oteli_thread *thread, struct oteli_open *open, uint64_t end)
{
    if ((open->traits.bits & OTELI_RECORD_ONLY) != 0)
        return;
    if (oteli_open_hold(open) != 0 || open->traits.end_as != OTELI_END_EXPORTED)
        end_held(thread, open, end);
    else
        oteli_append_any(thread, open, end);
}

void oteli_hold_abandon(struct oteli_thread *thread, struct oteli_open *open)
{
    if (oteli_open_hold(open) == 0)
        return;
    struct otel_lines *hold = oteli_hold_at(open->hold);
    const bool holds = (open->traits.bits & OTELI_HOLDS) != 0;
    const bool is_stretch = (open->self.opaque[3] & OTELI_REF_ATTACHED) != 0;
    const bool is_of_another_sdk = hold->generation != thread->generation;
    if (holds || is_stretch) /* members end on other threads */
        hold->is_abandoned = true;
    if (holds) /* a former SDK's verdict does not bind this one's spans */
        oteli_holders_decide(hold, is_of_another_sdk);
    if (holds || is_stretch) {
        set_state(hold, OTELI_CLOSED);
        if (!is_of_another_sdk)
            oteli_thread_lose(thread, OTEL_DROP_ABANDONED, hold->count);
    }
    open->hold = 0;
    open->traits.bits &= (uint8_t)~OTELI_HOLDS;
    oteli_hold_leave(hold);
}

void oteli_hold_close(struct otel_lines *hold)
{
    set_state(hold, OTELI_CLOSED);
    if (hold->count == 0)
        return;
    uint8_t *scratch = room(hold, oteli_outermost_scratch(hold->count));
    oteli_outermost_mark(hold->records.data, hold->records.length, scratch, hold->count);
    for (uint32_t at = 0; at < hold->records.length;) {
        struct oteli_record *record = (struct oteli_record *)(void *)(hold->records.data + at);
        at += record->size;
        oteli_record_convert(record);
    }
}

static void fini(void *set)
{
    oteli_buffer_fini(&((struct otel_lines *)set)->records);
}

void oteli_holds_free(void)
{
    oteli_slots_free(&pool.sets, fini);
    oteli_holds_forget();
}

void oteli_holds_forget(void)
{
    oteli_slots_forget(&pool.sets);
    pool.furnished.head = 0;
    pool.bare.head = 0;
    pool.bytes = 0;
}
