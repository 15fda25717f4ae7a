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

enum table { STRINGS, MAPPINGS, LOCATIONS, STACKS, LINKS, SETS, THREADS, TABLES };

/* Of each table: how many rows, from which on they have to be referred to, and which are. */
struct check {
    const otel_profile *profile;
    size_t counts[TABLES];
    size_t firsts[TABLES];
    bool *used[TABLES];
};

static void use(const struct check *check, enum table table, size_t index)
{
    assert_true(index < check->counts[table]);
    check->used[table][index] = true;
}

/* Rows of structs without holes, by their first bytes. */
static void assert_different(const void *rows, size_t count, size_t size, size_t key)
{
    const char *at = rows;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(at + i * size, at + j * size, key);
}

/* Rows that are lists: so many of `size` bytes from `first` on, in an array of all. */
static void assert_other_list(const void *all, size_t size, uint32_t first, uint32_t count,
                              uint32_t other_first, uint32_t other_count)
{
    const char *at = all;
    assert_false(count == other_count &&
                 memcmp(at + first * size, at + other_first * size, count * size) == 0);
}

static void check_places(const struct check *check)
{
    static const struct oteli_profile_mapping none;
    const otel_profile *profile = check->profile;
    assert_memory_equal(&profile->mappings[0], &none, sizeof none);
    for (size_t i = 0; i < profile->location_count; i++) {
        const struct oteli_profile_location *location = &profile->locations[i];
        use(check, MAPPINGS, location->mapping);
        use(check, STRINGS, location->name);
        const struct oteli_profile_mapping *mapping = &profile->mappings[location->mapping];
        if (location->mapping != 0)
            assert_in_range(location->address, mapping->start, mapping->limit - 1);
        for (size_t j = 0; j < i; j++)
            assert_false(profile->locations[j].address == location->address &&
                         profile->locations[j].mapping == location->mapping);
    }
    for (size_t i = 1; i < profile->mapping_count; i++)
        use(check, STRINGS, profile->mappings[i].path);
}

static void check_stacks(const struct check *check)
{
    const otel_profile *profile = check->profile;
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct oteli_profile_stack *stack = &profile->stacks[i];
        for (uint32_t j = 0; j < stack->count; j++)
            use(check, LOCATIONS, profile->location_of_stack[stack->first + j]);
        for (size_t j = 0; j < i; j++)
            assert_other_list(profile->location_of_stack, sizeof *profile->location_of_stack,
                              stack->first, stack->count, profile->stacks[j].first,
                              profile->stacks[j].count);
    }
}

static void check_sets(const struct check *check)
{
    const otel_profile *profile = check->profile;
    assert_int_equal(profile->label_sets[0].count, 0);
    for (size_t i = 0; i < profile->label_set_count; i++) {
        const struct oteli_profile_label_set *set = &profile->label_sets[i];
        const struct oteli_profile_pair *pairs = profile->pairs + set->first;
        for (uint32_t j = 0; j < set->count; j++) {
            use(check, STRINGS, pairs[j].key);
            use(check, STRINGS, pairs[j].value);
            assert_true(pairs[j].key != 0);
            assert_true(j == 0 || strcmp(profile->strings[pairs[j - 1].key],
                                         profile->strings[pairs[j].key]) < 0);
        }
        for (size_t j = 0; j < i; j++)
            assert_other_list(profile->pairs, sizeof *pairs, set->first, set->count,
                              profile->label_sets[j].first, profile->label_sets[j].count);
    }
}

static void check_samples(const struct check *check)
{
    const otel_profile *profile = check->profile;
    assert_different(profile->samples, profile->sample_count, sizeof *profile->samples,
                     4 * sizeof(uint32_t));
    assert_different(profile->links, profile->link_count, sizeof *profile->links, 16 + 8);
    assert_different(profile->threads, profile->thread_count, sizeof *profile->threads,
                     sizeof(pid_t));
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct oteli_profile_sample *sample = &profile->samples[i];
        use(check, STACKS, sample->stack);
        use(check, LINKS, sample->link);
        use(check, SETS, sample->label_set);
        use(check, THREADS, sample->thread);
        assert_true(sample->count != 0);
        assert_true(sample->cpu_ns >= sample->count * profile->period_ns);
    }
    for (size_t i = 0; i < profile->thread_count; i++)
        use(check, STRINGS, profile->threads[i].name);
}

void profile_check(const otel_profile *profile)
{
    assert_non_null(profile);
    struct check check = {
        .profile = profile,
        .counts = {profile->string_count, profile->mapping_count, profile->location_count,
                   profile->stack_count, profile->link_count, profile->label_set_count,
                   profile->thread_count},
        .firsts = {[STRINGS] = 1, [MAPPINGS] = 1, [LINKS] = 1, [SETS] = 1},
    };
    for (enum table table = 0; table < TABLES; table++) {
        assert_true(check.counts[table] >= check.firsts[table]);
        check.used[table] = calloc(check.counts[table] + 1, sizeof *check.used[table]);
        assert_non_null(check.used[table]);
    }
    assert_string_equal(profile->strings[0], "");
    for (size_t i = 0; i < profile->string_count; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(profile->strings[i], profile->strings[j]);
    check_places(&check);
    check_stacks(&check);
    check_sets(&check);
    check_samples(&check);
    for (enum table table = 0; table < TABLES; table++) {
        for (size_t i = check.firsts[table]; i < check.counts[table]; i++)
            assert_true(check.used[table][i]);
        free(check.used[table]);
    }
}

/* ---- text --------------------------------------------------------------------------------- */

static uint64_t number(const uint8_t *id)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value = value << 8 | id[i];
    return value;
}

static void say_sample(FILE *text, const otel_profile *profile,
                       const struct oteli_profile_sample *sample, uint64_t base)
{
    const struct oteli_profile_stack *stack = &profile->stacks[sample->stack];
    const struct oteli_profile_label_set *set = &profile->label_sets[sample->label_set];
    const struct oteli_profile_link *link = &profile->links[sample->link];
    fprintf(text, "%" PRIu64 " %" PRIu64 " |", sample->count, sample->cpu_ns);
    for (uint32_t i = 0; i < stack->count; i++)
        fprintf(text, " %" PRIu64,
                profile->locations[profile->location_of_stack[stack->first + i]].address - base);
    if (sample->link != 0)
        fprintf(text, " | %" PRIx64 " %" PRIx64 " %" PRIx64 " |", number(link->trace_id + 8),
                number(link->span_id), number(link->root_id));
    else
        fprintf(text, " | - |");
    for (uint32_t i = 0; i < set->count; i++)
        fprintf(text, " %s=%s", profile->strings[profile->pairs[set->first + i].key],
                profile->strings[profile->pairs[set->first + i].value]);
    fprintf(text, " | %s\n", profile->strings[profile->threads[sample->thread].name]);
}

char *profile_text(const otel_profile *profile, uint64_t base)
{
    char *data = NULL;
    size_t length;
    FILE *text = open_memstream(&data, &length);
    assert_non_null(text);
    for (size_t i = 0; i < profile->sample_count; i++)
        say_sample(text, profile, &profile->samples[i], base);
    fclose(text);
    return data;
}
