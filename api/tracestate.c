/* SPDX-License-Identifier: Apache-2.0 */
/* api/tracestate.c - the ring of tracestates, and what a valid one is. Any thread.
 *
 * A place has one word: how often it was filled (its reference must agree), whether it is
 * being filled, and how many spans hold it. All changes are compare-and-swap of it. */
#include "api/tracestate.h"
#include "api/sdk_link.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 4096, PART = 256, PARTS = PLACES / PART, TRIES = 64 };
enum { FILLED_SHIFT = 32, FILLED_MASK = 0xfff, BEING_FILLED = 1 << 30 };
enum { LONG_MEMBER = 128, LONGEST_KEY = 256, LONGEST_VALUE = 256 };

struct place {
    uint64_t word;
    uint64_t trace_id[2];
    uint32_t length;
    char text[OTELI_TRACESTATE_BYTES];
};

static struct place *parts[PARTS];
static uint32_t next_place;

static uint32_t reference_of(uint32_t index, uint64_t word)
{
    return (uint32_t)(word >> FILLED_SHIFT & FILLED_MASK) << 12 | index;
}

static struct place *part_of(uint32_t index, bool make)
{
    struct place **slot = &parts[index / PART];
    struct place *part = OTELI_LOAD_ACQUIRE_PTR(slot);
    if (part != NULL || !make)
        return part;
    oteli_notice_fork();
    if (oteli_fork_is_orphan())
        return NULL;
    const int saved_errno = errno;
    part = calloc(PART, sizeof *part);
    errno = saved_errno;
    if (part != NULL && !OTELI_CAS_FULL_PTR(slot, NULL, part)) {
        free(part);
        part = OTELI_LOAD_ACQUIRE_PTR(slot);
    }
    return part;
}

/* Claim the oldest place that no span holds. Its word is BEING_FILLED then. */
static struct place *claim(uint32_t *index)
{
    for (unsigned i = 0; i < TRIES; i++) {
        *index = oteli_add_full_32(&next_place, 1) % PLACES;
        struct place *part = part_of(*index, true);
        if (part == NULL)
            return NULL;
        struct place *place = &part[*index % PART];
        const uint64_t word = oteli_load_acquire_64(&place->word);
        if ((uint32_t)word != 0)
            continue;
        uint64_t filled = ((word >> FILLED_SHIFT) + 1) & FILLED_MASK;
        if (filled == 0)
            filled = 1;
        if (oteli_cas_full_64(&place->word, word, filled << FILLED_SHIFT | BEING_FILLED))
            return place;
    }
    return NULL;
}

uint32_t oteli_tracestate_make(const char *text, size_t length, const uint8_t trace_id[16])
{
    char clean[OTELI_TRACESTATE_BYTES];
    const size_t clean_length = oteli_tracestate_clean(text, length, clean);
    if (clean_length == 0)
        return 0;
    uint32_t index;
    struct place *place = claim(&index);
    if (place == NULL)
        return 0;
    memcpy(place->trace_id, trace_id, sizeof place->trace_id);
    memcpy(place->text, clean, clean_length);
    place->length = (uint32_t)clean_length;
    const uint64_t word = oteli_load_relaxed_64(&place->word) & ~(uint64_t)BEING_FILLED;
    oteli_store_release_64(&place->word, word); /* pairs with the load of hold */
    return reference_of(index, word);
}

static struct place *hold(uint32_t reference)
{
    if (reference == 0)
        return NULL;
    const uint32_t index = reference % PLACES;
    struct place *part = part_of(index, false);
    if (part == NULL)
        return NULL;
    struct place *place = &part[index % PART];
    for (;;) {
        const uint64_t word = oteli_load_acquire_64(&place->word);
        if (reference_of(index, word) != reference || (word & BEING_FILLED) != 0)
            return NULL;
        if (oteli_cas_full_64(&place->word, word, word + 1))
            return place;
    }
}

/* Nobody holds it any more where a fork was in between. */
static void let_go(struct place *place)
{
    uint64_t word;
    do {
        word = oteli_load_acquire_64(&place->word);
    } while ((uint32_t)word != 0 && !oteli_cas_full_64(&place->word, word, word - 1));
}

uint32_t oteli_tracestate_retain(uint32_t reference)
{
    return hold(reference) != NULL ? reference : 0;
}

void oteli_tracestate_release(uint32_t reference)
{
    if (reference != 0)
        let_go(&part_of(reference % PLACES, false)[reference % PART]);
}

size_t oteli_tracestate_copy(uint32_t reference, const uint8_t trace_id[16], char *text,
                             size_t size)
{
    if (size != 0)
        text[0] = '\0';
    struct place *place = hold(reference);
    if (place == NULL)
        return 0;
    size_t length = 0;
    if (memcmp(place->trace_id, trace_id, sizeof place->trace_id) == 0) {
        length = place->length;
        if (size != 0) {
            const size_t copied = length < size ? length : size - 1;
            memcpy(text, place->text, copied);
            text[copied] = '\0';
        }
    }
    let_go(place);
    return length;
}

void oteli_tracestates_forget(void)
{
    for (unsigned i = 0; i < PARTS; i++)
        for (unsigned k = 0; k < PART && parts[i] != NULL; k++)
            if ((uint32_t)parts[i][k].word != 0) /* a page that is not written to is shared */
                parts[i][k].word &= ~(uint64_t)UINT32_MAX;
}

void oteli_tracestates_free(void)
{
    for (unsigned i = 0; i < PARTS; i++) {
        free(parts[i]);
        parts[i] = NULL;
    }
}

struct member {
    const char *text;
    size_t length;
    size_t key_length;
};

static bool is_key_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_key_character(char c)
{
    return is_key_start(c) || c == '_' || c == '-' || c == '*' || c == '/' || c == '@';
}

static bool is_value_character(char c)
{
    return c >= 0x20 && c <= 0x7e && c != ',' && c != '=';
}

/* key "=" value, without blanks around it. */
static bool parse_member(struct member *member)
{
    const char *text = member->text;
    size_t key = 0;
    if (member->length == 0 || !is_key_start(text[0]))
        return false;
    while (key < member->length && is_key_character(text[key]))
        key++;
    const size_t value = member->length - key - 1;
    if (key == member->length || text[key] != '=' || key > LONGEST_KEY || value == 0 ||
        value > LONGEST_VALUE)
        return false;
    for (size_t i = key + 1; i < member->length; i++)
        if (!is_value_character(text[i]))
            return false;
    member->key_length = key;
    return true;
}

static bool has_key(const struct member *members, size_t count, const struct member *like)
{
    for (size_t i = 0; i < count; i++)
        if (members[i].key_length == like->key_length &&
            memcmp(members[i].text, like->text, like->key_length) == 0)
            return true;
    return false;
}

/* Split at commas. Returns the number of members kept, or -1: one is malformed. */
static int split(const char *text, size_t length, struct member *members)
{
    size_t count = 0;
    for (size_t at = 0; at <= length;) {
        const char *comma = at < length ? memchr(text + at, ',', length - at) : NULL;
        size_t end = comma != NULL ? (size_t)(comma - text) : length;
        const size_t next = end + 1;
        while (at < end && (text[at] == ' ' || text[at] == '\t'))
            at++;
        while (end > at && (text[end - 1] == ' ' || text[end - 1] == '\t'))
            end--;
        struct member member = {text + at, end - at, 0};
        at = next;
        if (member.length == 0)
            continue;
        if (!parse_member(&member))
            return -1;
        if (count < OTELI_TRACESTATE_MEMBERS && !has_key(members, count, &member))
            members[count++] = member;
    }
    return (int)count;
}

static size_t joined_length(const struct member *members, size_t count)
{
    size_t length = count > 0 ? count - 1 : 0;
    for (size_t i = 0; i < count; i++)
        length += members[i].length;
    return length;
}

/* Take members out until the rest fits: long ones first, then the last. */
static size_t shorten(struct member *members, size_t count)
{
    for (size_t i = count; i-- > 0 && joined_length(members, count) > OTELI_TRACESTATE_BYTES;) {
        if (members[i].length <= LONG_MEMBER)
            continue;
        memmove(&members[i], &members[i + 1], (count - i - 1) * sizeof *members);
        count--;
    }
    while (joined_length(members, count) > OTELI_TRACESTATE_BYTES)
        count--;
    return count;
}

size_t oteli_tracestate_clean(const char *text, size_t length, char *clean)
{
    enum { LONGEST_TEXT = 32 * 1024 }; /* 32 members of the longest kind, and blanks */
    struct member members[OTELI_TRACESTATE_MEMBERS];
    if (text == NULL || length > LONGEST_TEXT)
        return 0;
    const int found = split(text, length, members);
    if (found <= 0)
        return 0;
    const size_t count = shorten(members, (size_t)found);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (i != 0)
            clean[at++] = ',';
        memcpy(clean + at, members[i].text, members[i].length);
        at += members[i].length;
    }
    return at;
}
