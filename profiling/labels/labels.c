/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/labels/labels.c - labels: given out, written down, and taken back; see labels.h.
 *
 * A label belongs to the thread that has acquired it, but for its history, which the profiler reads
 * meanwhile. So each entry is guarded by its own number: zero while it is being written. Everything
 * here is memory that is zero at first and not touched before there are labels.
 *
 * App threads; oteli_labels_find the profiler's thread. */
#include "profiling/labels/labels.h"
#include "api/span/inspect.h"
#include "common/base/copy.h"
#include "common/clock/clock.h"
#include "common/log.h"
#include "common/os/fork.h"
#include "profiling/labels/trampolines.h"

#include <assert.h>
#include <otel/thread_context.h>
#include <string.h>

typedef uint64_t __attribute__((may_alias)) word; /* which is atomic, of a label */
enum {
    WORD = sizeof(word),
    HEAD_WORDS = offsetof(struct oteli_label, text) / WORD,
    LABEL_WORDS = sizeof(struct oteli_label) / WORD
};
_Static_assert(sizeof(struct oteli_label) % WORD == 0, "labels are copied in words");

/* A label in the making: its last word may be filled up behind the text. */
struct draft {
    struct oteli_label label;
    uint64_t room;
};

struct entry {
    uint64_t number; /* which label of its trampoline, from 1; 0: none, or being written. A reader
                        looks at it after the words; they are there before `state` says so */
    uint64_t words[LABEL_WORDS];
};

enum { IS_USED = 1, IS_TAKEN = 2, PHASE_BITS = 2 };

/* Of one trampoline. Its writer is the thread that has the label. */
struct history {
    /* Number of the newest label << PHASE_BITS, and IS_TAKEN while the next one is made, IS_USED
     * while there is one; release. */
    _Alignas(OTELI_CACHELINE) uint64_t state;
    uint32_t running; /* calls of otel_profile_apply_checked that are under way */
    struct entry entries[OTELI_LABEL_HISTORY];
};

static struct history histories[OTELI_TRAMPOLINES];
static uint32_t is_on;
static uint64_t refused;
static uint64_t cut;
_Alignas(OTELI_CACHELINE) static uint32_t in_use; /* trampolines, at least; full */
static uint32_t next;                             /* that is looked at; relaxed */

/* --- trampolines --- */

/* They are tried in turn, so that the one that is taken has been idle for long: it is the next one
 * only after all others that are free. OTELI_NO_TRAMPOLINE: all are in use. Room is reserved before
 * a trampoline is looked for, and given back after the trampoline, so there is one to be found. */
static int take_trampoline(void)
{
    if (oteli_add_full_32(&in_use, 1) >= OTELI_TRAMPOLINES) {
        oteli_add_full_32(&in_use, UINT32_MAX);
        return OTELI_NO_TRAMPOLINE;
    }
    for (uint32_t i = oteli_load_relaxed_32(&next) % OTELI_TRAMPOLINES;;
         i = (i + 1) % OTELI_TRAMPOLINES) {
        const uint64_t state = oteli_load_relaxed_64(&histories[i].state);
        if ((state & (IS_USED | IS_TAKEN)) == 0 &&
            oteli_cas_full_64(&histories[i].state, state, state | IS_TAKEN)) {
            oteli_store_relaxed_32(&next, i + 1);
            return (int)i;
        }
    }
}

/* --- the text --- */

struct text {
    char *bytes;
    size_t length;
    uint64_t cut;
};

/* What of a text fits, in whole characters. */
static size_t fitting(const char *text, size_t length, size_t room)
{
    if (length <= room)
        return length;
    while (room != 0 && ((uint8_t)text[room] & 0xc0) == 0x80)
        room--;
    return room;
}

static void add_pair(struct text *text, const char *key, const char *value, size_t value_length)
{
    const size_t room = OTEL_PROFILE_LABEL_BYTES - text->length;
    const size_t key_length = strnlen(key, room);
    if (key_length + 2 > room || (key_length + 2 == room && value_length != 0)) {
        text->cut++;
        return;
    }
    char *at = text->bytes + text->length;
    const size_t kept = fitting(value, value_length, room - key_length - 2);
    (void)oteli_move(at, key, key_length);
    at[key_length] = 0;
    (void)oteli_move(at + key_length + 1, value, kept);
    at[key_length + 1 + kept] = 0;
    text->length += key_length + kept + 2;
    text->cut += kept != value_length;
}

static void add_pairs(struct text *text, const otel_profile_kv *kv, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = kv[i].value != NULL ? kv[i].value : "";
        if (kv[i].key != NULL && kv[i].key[0] != 0)
            add_pair(text, kv[i].key, value, strnlen(value, OTEL_PROFILE_LABEL_BYTES + 1));
    }
}

/* Its ids, and its route. What is being collected is of no trace that others could know. */
static void add_span(struct oteli_label *label, struct text *text, const otel_span *span)
{
    static const char key[] = "http.route";
    char route[OTEL_PROFILE_LABEL_BYTES];
    struct oteli_peek peek = {
        .key = key, .key_length = sizeof key - 1, .value = route, .size = sizeof route};
    const otel_span_context context = otel_span_get_context(*span);
    oteli_span_peek(span, &peek);
    if (!peek.is_collected) {
        memcpy(label->span.trace_id, context.trace_id, sizeof label->span.trace_id);
        memcpy(label->span.span_id, context.span_id, sizeof label->span.span_id);
        memcpy(label->span.root_id, &peek.root_id, sizeof label->span.root_id);
    }
    if (peek.length != 0) {
        const size_t length = fitting(route, peek.length, sizeof route - 1);
        add_pair(text, key, route, length);
        text->cut += length != peek.length;
    }
}

/* --- the label --- */

static void *call(void *argument, void *(*function)(void *))
{
    return function(argument);
}

static otel_profile_label empty(void)
{
    return (otel_profile_label){.trampoline = call};
}

/* Give the trampoline this label: in its history first, and then it has it. */
static uint64_t write_down(struct history *history, const struct oteli_label *label)
{
    const word *from = (const word *)(const void *)label;
    const uint64_t number = (oteli_load_relaxed_64(&history->state) >> PHASE_BITS) + 1;
    struct entry *entry = &history->entries[number % OTELI_LABEL_HISTORY];
    const size_t used = HEAD_WORDS + (size_t)(label->text_length + WORD - 1) / WORD;
    oteli_store_relaxed_64(&entry->number, 0);
    oteli_fence_before_stores(); /* pairs with read_entry */
    for (size_t i = 0; i < used; i++)
        oteli_store_relaxed_64(&entry->words[i], from[i]);
    oteli_store_relaxed_64(&entry->number, number);
    oteli_store_release_64(&history->state,
                           number << PHASE_BITS | IS_USED); /* pairs with oteli_labels_find */
    return number;
}

otel_profile_label otel_profile_label_make(const otel_span *span, const otel_profile_kv *kv,
                                           size_t count)
{
    if (OTELI_LIKELY(oteli_load_relaxed_32(&is_on) == 0))
        return empty();
    const int index = take_trampoline();
    if (OTELI_UNLIKELY(index == OTELI_NO_TRAMPOLINE)) {
        oteli_add_full_64(&refused, 1);
        return empty();
    }
    struct draft draft;
    struct oteli_label *label = &draft.label;
    struct text text = {.bytes = label->text};
    memset(&draft, 0, offsetof(struct draft, label.text)); /* of the text only what is used */
    label->start_ns = oteli_monotonic_ns(); /* after the last release of this trampoline */
    const otel_thread_context_record *around = otel_thread_ctx_v1;
    if (around != NULL && around->valid != 0)
        memcpy(label->around_id, around->span_id, sizeof label->around_id);
    add_pairs(&text, kv, count);
    if (span != NULL)
        add_span(label, &text, span);
    memset((char *)&draft + offsetof(struct draft, label.text) + text.length, 0, WORD);
    label->text_length = text.length;
    if (OTELI_UNLIKELY(text.cut != 0))
        oteli_add_full_64(&cut, text.cut);
    const uint64_t number = write_down(&histories[index], label);
    return (otel_profile_label){.trampoline = oteli_trampoline_at((unsigned)index),
                                .index = (uint32_t)index + 1,
                                .generation = (uint32_t)number};
}

/* The history of a label that is in use; NULL: it is empty, or has been released. */
static struct history *history_of(const otel_profile_label *label, uint64_t *state)
{
    if (label->index == 0 || label->index > OTELI_TRAMPOLINES)
        return NULL;
    struct history *history = &histories[label->index - 1];
    *state = oteli_load_relaxed_64(&history->state);
    const bool is_its =
        (*state & IS_USED) != 0 && (uint32_t)(*state >> PHASE_BITS) == label->generation;
    return is_its ? history : NULL;
}

void otel_profile_label_release(otel_profile_label *label)
{
    if (label == NULL)
        return;
    const otel_profile_label released = *label;
    uint64_t state;
    struct history *history = history_of(&released, &state);
    *label = empty();
    if (history == NULL)
        return;
    if (OTELI_UNLIKELY(oteli_load_relaxed_32(&history->running) != 0)) {
        OTELI_LOG(OTEL_LOG_ERROR, "a profile label is released while otel_profile_apply with it "
                                  "is under way; it is never used again");
        assert(false && "released while applied");
        return;
    }
    if (oteli_cas_full_64(&history->state, state, state & ~(uint64_t)IS_USED))
        oteli_add_full_32(&in_use, UINT32_MAX);
}

/* Also where an exception leaves the function: this file is compiled with -fexceptions. */
static void end_run(struct history *const *history)
{
    oteli_add_full_32(&(*history)->running, UINT32_MAX);
}

void *otel_profile_apply_checked(const otel_profile_label *label, void *(*function)(void *),
                                 void *argument)
{
    uint64_t state;
    struct history *history = history_of(label, &state);
    if (history == NULL) { /* applied after its release, it would be another's */
        if (label->index != 0)
            OTELI_LOG(OTEL_LOG_ERROR, "a profile label is applied after its release");
        assert(label->index == 0);
        return function(argument);
    }
    oteli_add_full_32(&history->running, 1);
    __attribute__((cleanup(end_run), unused)) struct history *const running = history;
    return label->trampoline(argument, function);
}

/* --- what the profiler asks --- */

/* Read the label with this number, which was there; false: a newer one has taken its place, or is
 * about to. */
static bool read_entry(const struct entry *entry, uint64_t number, struct oteli_label *label)
{
    word *to = (word *)(void *)label;
    for (size_t i = 0; i < LABEL_WORDS; i++)
        to[i] = oteli_load_relaxed_64(&entry->words[i]);
    oteli_fence_after_load(); /* the words before the number; pairs with write_down */
    return oteli_load_relaxed_64(&entry->number) == number;
}

bool oteli_labels_find(unsigned index, uint64_t time_ns, struct oteli_label *label)
{
    const struct history *history = &histories[index % OTELI_TRAMPOLINES];
    const uint64_t newest = oteli_load_acquire_64(&history->state) >> PHASE_BITS;
    for (uint64_t age = 0; age < OTELI_LABEL_HISTORY && age < newest; age++) {
        const uint64_t number = newest - age;
        if (!read_entry(&history->entries[number % OTELI_LABEL_HISTORY], number, label))
            return false;
        if (label->start_ns <= time_ns)
            return true;
    }
    return false;
}

/* One word of an entry. If it is that of a label to come, so is the number that is read after
 * it. */
static uint64_t word_of(const struct entry *entry, size_t offset)
{
    return oteli_load_acquire_64(&entry->words[offset / WORD]);
}

bool oteli_labels_find_span(const uint8_t span_id[8], uint64_t time_ns, struct oteli_label *label)
{
    uint64_t wanted;
    memcpy(&wanted, span_id, sizeof wanted);
    for (unsigned index = 0; index < OTELI_TRAMPOLINES; index++) {
        const struct history *history = &histories[index];
        uint64_t number = oteli_load_acquire_64(&history->state) >> PHASE_BITS;
        const uint64_t oldest = number > OTELI_LABEL_HISTORY ? number - OTELI_LABEL_HISTORY : 0;
        /* Only the one that it stood for at that time. */
        while (number > oldest && word_of(&history->entries[number % OTELI_LABEL_HISTORY],
                                          offsetof(struct oteli_label, start_ns)) > time_ns)
            number--;
        const struct entry *entry = &history->entries[number % OTELI_LABEL_HISTORY];
        if (number > oldest &&
            word_of(entry, offsetof(struct oteli_label, span.span_id)) == wanted &&
            read_entry(entry, number, label))
            return true;
    }
    return false;
}

/* --- start, stop, and fork --- */

/* A child is not profiled. What is in use stays so, and what its parent's other threads were about
 * to take or to give back stays theirs. */
static void forget(void)
{
    is_on = 0;
}

void oteli_labels_switch(bool on)
{
    /* Labels that are given back later need what forks forget: it stays registered. */
    if (on)
        oteli_fork_add(forget);
    oteli_store_relaxed_32(&is_on, on && oteli_trampoline_at(0) != NULL);
}

struct oteli_labels_counts oteli_labels_counts(void)
{
    return (struct oteli_labels_counts){.refused = oteli_load_relaxed_64(&refused),
                                        .cut = oteli_load_relaxed_64(&cut)};
}
