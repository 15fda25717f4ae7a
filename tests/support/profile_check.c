/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/profile_check.c - the contracts are in profile_check.h. */
#include "tests/support/profile_check.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* How often each row is referred to. */
struct used {
    unsigned *strings;
    unsigned *mappings;
    unsigned *locations;
    unsigned *stacks;
    unsigned *links;
    unsigned *sets;
    unsigned *threads;
};

static unsigned *counters(size_t count)
{
    unsigned *made = calloc(count + 1, sizeof *made);
    assert_non_null(made);
    return made;
}

static void use(unsigned *counts, size_t index, size_t count)
{
    assert_true(index < count);
    counts[index]++;
}

static void assert_all_used(const unsigned *counts, size_t first, size_t count)
{
    for (size_t i = first; i < count; i++)
        assert_true(counts[i] != 0);
}

/* Rows of structs without holes. */
static void assert_different(const void *rows, size_t count, size_t size, size_t key)
{
    const char *at = rows;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(at + i * size, at + j * size, key);
}

static void check_strings(const otel_profile *profile)
{
    assert_true(profile->string_count >= 1);
    assert_string_equal(profile->strings[0], "");
    for (size_t i = 0; i < profile->string_count; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(profile->strings[i], profile->strings[j]);
}

static void check_places(const otel_profile *profile, struct used *used)
{
    static const struct oteli_profile_mapping none;
    assert_true(profile->mapping_count >= 1);
    assert_memory_equal(&profile->mappings[0], &none, sizeof none);
    for (size_t i = 0; i < profile->location_count; i++) {
        const struct oteli_profile_location *location = &profile->locations[i];
        use(used->mappings, location->mapping, profile->mapping_count);
        use(used->strings, location->name, profile->string_count);
        const struct oteli_profile_mapping *mapping = &profile->mappings[location->mapping];
        if (location->mapping != 0)
            assert_in_range(location->address, mapping->start, mapping->limit - 1);
        for (size_t j = 0; j < i; j++)
            assert_false(profile->locations[j].address == location->address &&
                         profile->locations[j].mapping == location->mapping);
    }
    for (size_t i = 1; i < profile->mapping_count; i++)
        use(used->strings, profile->mappings[i].path, profile->string_count);
    assert_all_used(used->mappings, 1, profile->mapping_count);
}

static void check_stacks(const otel_profile *profile, struct used *used)
{
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct oteli_profile_stack *stack = &profile->stacks[i];
        const uint32_t *at = profile->location_of_stack + stack->first;
        for (uint32_t j = 0; j < stack->count; j++)
            use(used->locations, at[j], profile->location_count);
        for (size_t j = 0; j < i; j++)
            assert_false(profile->stacks[j].count == stack->count &&
                         memcmp(profile->location_of_stack + profile->stacks[j].first, at,
                                stack->count * sizeof *at) == 0);
    }
    assert_all_used(used->locations, 0, profile->location_count);
}

static void check_sets(const otel_profile *profile, struct used *used)
{
    assert_true(profile->label_set_count >= 1);
    assert_int_equal(profile->label_sets[0].count, 0);
    for (size_t i = 0; i < profile->label_set_count; i++) {
        const struct oteli_profile_label_set *set = &profile->label_sets[i];
        const struct oteli_profile_pair *pairs = profile->pairs + set->first;
        for (uint32_t j = 0; j < set->count; j++) {
            use(used->strings, pairs[j].key, profile->string_count);
            use(used->strings, pairs[j].value, profile->string_count);
            assert_true(pairs[j].key != 0);
            assert_true(j == 0 || strcmp(profile->strings[pairs[j - 1].key],
                                         profile->strings[pairs[j].key]) < 0);
        }
        for (size_t j = 0; j < i; j++)
            assert_false(profile->label_sets[j].count == set->count &&
                         memcmp(profile->pairs + profile->label_sets[j].first, pairs,
                                set->count * sizeof *pairs) == 0);
    }
}

static void check_samples(const otel_profile *profile, struct used *used)
{
    assert_different(profile->samples, profile->sample_count, sizeof *profile->samples,
                     4 * sizeof(uint32_t));
    assert_different(profile->links, profile->link_count, sizeof *profile->links, 16 + 8);
    assert_different(profile->threads, profile->thread_count, sizeof *profile->threads,
                     sizeof(pid_t));
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct oteli_profile_sample *sample = &profile->samples[i];
        use(used->stacks, sample->stack, profile->stack_count);
        use(used->links, sample->link, profile->link_count);
        use(used->sets, sample->label_set, profile->label_set_count);
        use(used->threads, sample->thread, profile->thread_count);
        assert_true(sample->count != 0);
        assert_true(sample->cpu_ns >= sample->count * profile->period_ns);
    }
    for (size_t i = 0; i < profile->thread_count; i++)
        use(used->strings, profile->threads[i].name, profile->string_count);
    assert_all_used(used->stacks, 0, profile->stack_count);
    assert_all_used(used->links, 1, profile->link_count);
    assert_all_used(used->sets, 1, profile->label_set_count);
    assert_all_used(used->threads, 0, profile->thread_count);
}

void profile_check(const otel_profile *profile)
{
    assert_non_null(profile);
    struct used used = {counters(profile->string_count),   counters(profile->mapping_count),
                        counters(profile->location_count), counters(profile->stack_count),
                        counters(profile->link_count),     counters(profile->label_set_count),
                        counters(profile->thread_count)};
    check_strings(profile);
    check_places(profile, &used);
    check_stacks(profile, &used);
    check_sets(profile, &used);
    check_samples(profile, &used);
    assert_all_used(used.strings, 1, profile->string_count);
    free(used.strings);
    free(used.mappings);
    free(used.locations);
    free(used.stacks);
    free(used.links);
    free(used.sets);
    free(used.threads);
}

/* ---- text --------------------------------------------------------------------------------- */

struct text {
    char *data;
    size_t used;
    size_t room;
};

static void say(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text *text, const char *format, ...)
{
    char piece[512];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    assert_in_range(length, 0, sizeof piece - 1);
    if (text->used + (size_t)length + 1 > text->room) {
        text->room = 2 * text->room + sizeof piece;
        text->data = realloc(text->data, text->room);
        assert_non_null(text->data);
    }
    memcpy(text->data + text->used, piece, (size_t)length + 1);
    text->used += (size_t)length;
}

static uint64_t number(const uint8_t *id)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value = value << 8 | id[i];
    return value;
}

static void say_sample(struct text *text, const otel_profile *profile,
                       const struct oteli_profile_sample *sample, uint64_t base)
{
    const struct oteli_profile_stack *stack = &profile->stacks[sample->stack];
    const struct oteli_profile_label_set *set = &profile->label_sets[sample->label_set];
    const struct oteli_profile_link *link = &profile->links[sample->link];
    say(text, "%" PRIu64 " %" PRIu64 " |", sample->count, sample->cpu_ns);
    for (uint32_t i = 0; i < stack->count; i++)
        say(text, " %" PRIu64,
            profile->locations[profile->location_of_stack[stack->first + i]].address - base);
    if (sample->link != 0)
        say(text, " | %" PRIx64 " %" PRIx64 " %" PRIx64 " |", number(link->trace_id + 8),
            number(link->span_id), number(link->root_id));
    else
        say(text, " | - |");
    for (uint32_t i = 0; i < set->count; i++)
        say(text, " %s=%s", profile->strings[profile->pairs[set->first + i].key],
            profile->strings[profile->pairs[set->first + i].value]);
    say(text, " | %s\n", profile->strings[profile->threads[sample->thread].name]);
}

char *profile_text(const otel_profile *profile, uint64_t base)
{
    struct text text = {0};
    say(&text, "%s", "");
    for (size_t i = 0; i < profile->sample_count; i++)
        say_sample(&text, profile, &profile->samples[i], base);
    return text.data;
}
