/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/profile_double.c - the contracts are in profile_double.h. */
#include "tests/support/profile_double.h"

#include <assert.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

static void check_room(size_t count)
{
    assert(count < PROFILE_DOUBLE_MOST);
    (void)count;
}

void profile_double_begin(struct profile_double *made)
{
    memset(made, 0, sizeof *made);
    made->profile = (otel_profile){
        .start_unix_ns = 1800000000 * SECOND,
        .duration_ns = 10 * SECOND,
        .period_ns = PROFILE_DOUBLE_PERIOD_NS,
        .strings = made->strings,
        .string_count = 1,
        .mappings = made->mappings,
        .mapping_count = 1,
        .locations = made->locations,
        .location_of_stack = made->location_of_stack,
        .stacks = made->stacks,
        .links = made->links,
        .link_count = 1,
        .pairs = made->pairs,
        .label_sets = made->label_sets,
        .label_set_count = 1,
        .threads = made->threads,
        .thread_count = 1,
        .samples = made->samples,
    };
    made->strings[0] = "";
    made->threads[0].id = 4711;
}

uint32_t profile_double_text(struct profile_double *made, const char *text)
{
    for (uint32_t i = 0; i < made->profile.string_count; i++) {
        if (strcmp(made->strings[i], text) == 0)
            return i;
    }
    check_room(made->profile.string_count);
    made->strings[made->profile.string_count] = text;
    return (uint32_t)made->profile.string_count++;
}

uint32_t profile_double_stack(struct profile_double *made, const uint32_t *locations,
                              uint32_t count)
{
    uint32_t first = 0;
    check_room(made->profile.stack_count);
    for (size_t i = 0; i < made->profile.stack_count; i++)
        first = made->stacks[i].first + made->stacks[i].count;
    for (uint32_t i = 0; i < count; i++)
        made->location_of_stack[first + i] = locations[i];
    made->stacks[made->profile.stack_count] = (struct oteli_profile_range){first, count};
    return (uint32_t)made->profile.stack_count++;
}

uint32_t profile_double_link(struct profile_double *made, uint8_t trace, uint8_t span, uint8_t root)
{
    check_room(made->profile.link_count);
    struct oteli_profile_link *link = &made->links[made->profile.link_count];
    memset(link->trace_id, trace, sizeof link->trace_id);
    memset(link->span_id, span, sizeof link->span_id);
    memset(link->root_id, root, sizeof link->root_id);
    return (uint32_t)made->profile.link_count++;
}

uint32_t profile_double_labels(struct profile_double *made, const char *const *texts,
                               uint32_t count)
{
    uint32_t first = 0;
    check_room(made->profile.label_set_count);
    for (size_t i = 0; i < made->profile.label_set_count; i++)
        first = made->label_sets[i].first + made->label_sets[i].count;
    check_room(first + count);
    for (uint32_t i = 0; i < count; i++)
        made->pairs[first + i] = (struct oteli_profile_pair){
            profile_double_text(made, texts[2 * i]), profile_double_text(made, texts[2 * i + 1])};
    made->label_sets[made->profile.label_set_count] = (struct oteli_profile_range){first, count};
    return (uint32_t)made->profile.label_set_count++;
}

void profile_double_sample(struct profile_double *made, struct oteli_profile_sample sample)
{
    check_room(made->profile.sample_count);
    sample.cpu_ns = sample.count * PROFILE_DOUBLE_PERIOD_NS;
    made->samples[made->profile.sample_count++] = sample;
}

static void add_mappings(struct profile_double *made)
{
    made->mappings[1] =
        (struct oteli_profile_mapping){.start = 0x400000,
                                       .limit = 0x500000,
                                       .file_offset = 0x1000,
                                       .path = profile_double_text(made, "/usr/bin/shop"),
                                       .build_id_length = 20};
    memset(made->mappings[1].build_id, 0xb1, 20);
    made->mappings[2] =
        (struct oteli_profile_mapping){.start = 0x7f0000000000,
                                       .limit = 0x7f0000200000,
                                       .path = profile_double_text(made, "/lib/libfast.so"),
                                       .has_htlhash = true};
    memset(made->mappings[2].htlhash, 0xa5, 16);
    made->mappings[3] = (struct oteli_profile_mapping){
        .start = 0x600000, .limit = 0x601000, .path = profile_double_text(made, "//anon")};
    made->profile.mapping_count = 4;
}

void profile_double_init(struct profile_double *made)
{
    static const char *const find[] = {"http.route", "/find", "query", "A"};
    static const char *const sell[] = {"http.route", "/sell"};
    static const struct oteli_profile_location locations[] = {{1, 0x401000, 0},
                                                              {1, 0x401234, 0},
                                                              {2, 0x7f0000001000, 0},
                                                              {3, 0x600010, 0},
                                                              {0, 0x1234, 0}};
    profile_double_begin(made);
    add_mappings(made);
    memcpy(made->locations, locations, sizeof locations);
    made->locations[0].name = profile_double_text(made, "main");
    made->locations[1].name = made->locations[2].name = profile_double_text(made, "sort");
    made->profile.location_count = sizeof locations / sizeof *locations;
    made->threads[0].name = profile_double_text(made, "worker");
    made->threads[1].id = 4712;
    made->profile.thread_count = 2;
    const uint32_t in_find = profile_double_stack(made, (const uint32_t[]){2, 1, 0}, 3);
    const uint32_t in_sell = profile_double_stack(made, (const uint32_t[]){1, 0}, 2);
    const uint32_t in_code = profile_double_stack(made, (const uint32_t[]){3, 4, 0}, 3);
    const uint32_t first = profile_double_link(made, 0x11, 0x21, 0x20);
    const uint32_t second = profile_double_link(made, 0x12, 0x22, 0);
    const uint32_t finds = profile_double_labels(made, find, 2);
    const uint32_t sells = profile_double_labels(made, sell, 1);
    const struct oteli_profile_sample samples[] = {
        {.stack = in_find, .link = first, .label_set = finds, .count = 70},
        {.stack = in_find, .link = first, .label_set = finds, .thread = 1, .count = 5},
        {.stack = in_sell, .link = second, .label_set = sells, .thread = 1, .count = 20},
        {.stack = in_sell, .thread = 1, .count = 4},
        {.stack = in_code, .count = 1},
    };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        profile_double_sample(made, samples[i]);
}
