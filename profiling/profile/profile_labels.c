/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profile/profile_labels.c - the contracts are in profile_labels.h. One thread at a time;
 * owns nothing. */
#include "profiling/profile/profile_labels.h"

#include "common/text/utf8.h"
#include "profiling/labels/resolve.h"
#include "profiling/profile/profile_model.h"

#include <limits.h>
#include <string.h>

enum { TEXT_MAX = PATH_MAX, PAIRS_MAX = OTELI_LABELS_NESTED * OTEL_PROFILE_LABEL_BYTES / 2 };

struct pairs {
    struct oteli_profile_pair all[PAIRS_MAX];
    size_t count;
};

bool oteli_profile_string(struct oteli_interner *strings, const char *text, size_t length,
                          uint32_t *index)
{
    char good[3 * TEXT_MAX + 1];
    if (length > TEXT_MAX)
        length = TEXT_MAX;
    length = oteli_utf8_replace(text, length, good);
    good[length] = '\0';
    return oteli_interner_add(strings, good, length + 1, index);
}

/* The text before the next NUL, or before the end. */
static const char *take_text(const char **at, const char *end, size_t *length)
{
    const char *const text = *at;
    *length = strnlen(text, (size_t)(end - text));
    *at = text + *length < end ? text + *length + 1 : end;
    return text;
}

/* Where this key would stand; *is_there: it stands there already. */
static size_t place_of(const struct pairs *pairs, const struct oteli_interner *strings,
                       uint32_t key, bool *is_there)
{
    size_t place = 0;
    while (place < pairs->count && strcmp(oteli_interner_at(strings, pairs->all[place].key),
                                          oteli_interner_at(strings, key)) < 0)
        place++;
    *is_there = place < pairs->count && pairs->all[place].key == key;
    return place;
}

static bool add_pairs(struct pairs *pairs, struct oteli_interner *strings,
                      const struct oteli_label *label)
{
    const size_t whole =
        label->text_length < sizeof label->text ? label->text_length : sizeof label->text;
    const char *at = label->text;
    const char *const end = at + whole;
    while (at < end && pairs->count < PAIRS_MAX) {
        struct oteli_profile_pair pair;
        size_t key_length;
        size_t length;
        bool is_there;
        const char *key = take_text(&at, end, &key_length);
        const char *value = take_text(&at, end, &length);
        if (key_length == 0)
            continue;
        if (!oteli_profile_string(strings, key, key_length, &pair.key))
            return false;
        const size_t place = place_of(pairs, strings, pair.key, &is_there);
        if (is_there)
            continue;
        if (!oteli_profile_string(strings, value, length, &pair.value))
            return false;
        memmove(pairs->all + place + 1, pairs->all + place, (pairs->count - place) * sizeof pair);
        pairs->all[place] = pair;
        pairs->count++;
    }
    return true;
}

bool oteli_profile_label_set(struct oteli_interner *strings, struct oteli_interner *sets,
                             const struct oteli_label *labels, size_t count, uint32_t *index)
{
    struct pairs pairs;
    pairs.count = 0;
    for (size_t i = 0; i < count; i++)
        if (!add_pairs(&pairs, strings, &labels[i]))
            return false;
    return oteli_interner_add(sets, pairs.all, pairs.count * sizeof pairs.all[0], index);
}
