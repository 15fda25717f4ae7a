/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/profile_double.c - the contracts are in profile_double.h. */
#include "tests/support/profile_double.h"

#include <assert.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

/* A table whose rows are those of an array. */
static struct oteli_interner table_of(void *array, size_t row, struct oteli_interner_row *rows,
                                      uint32_t count)
{
    for (size_t i = 0; i < PROFILE_DOUBLE_MOST; i++)
        rows[i] =
            (struct oteli_interner_row){.offset = (uint32_t)(i * row), .length = (uint32_t)row};
    return (struct oteli_interner){.bytes = array, .rows = rows, .count = count};
}

/* The next row of a table, which has so many bytes. */
static uint32_t next_row(struct oteli_interner *table, size_t length)
{
    assert(table->count < PROFILE_DOUBLE_MOST && length <= table->rows[table->count].length);
    table->rows[table->count].length = (uint32_t)length;
    return table->count++;
}

void profile_double_begin(struct profile_double *made)
{
    memset(made, 0, sizeof *made);
    struct oteli_interner_row(*rows)[PROFILE_DOUBLE_MOST] = made->rows;
    made->profile = (otel_profile){
        .start_unix_ns = 1800000000 * SECOND,
        .duration_ns = 10 * SECOND,
        .period_ns = PROFILE_DOUBLE_PERIOD_NS,
        .strings = table_of(made->strings, sizeof made->strings[0], rows[0], 0),
        .mappings = table_of(made->mappings, sizeof made->mappings[0], rows[1], 1),
        .locations = table_of(made->locations, sizeof made->locations[0], rows[2], 0),
        .stacks = table_of(made->stacks, sizeof made->stacks[0], rows[3], 0),
        .links = table_of(made->links, sizeof made->links[0], rows[4], 1),
        .label_sets = table_of(made->label_sets, sizeof made->label_sets[0], rows[5], 0),
        .threads = table_of(made->threads, sizeof made->threads[0], rows[6], 1),
        .samples = table_of(made->samples, sizeof made->samples[0], rows[7], 0),
    };
    (void)profile_double_text(made, "");
    (void)profile_double_labels(made, NULL, 0);
    made->threads[0].id = 4711;
}

uint32_t profile_double_text(struct profile_double *made, const char *text)
{
    for (uint32_t i = 0; i < made->profile.strings.count; i++) {
        if (strcmp(made->strings[i], text) == 0)
            return i;
    }
    const uint32_t index = next_row(&made->profile.strings, strlen(text) + 1);
    memcpy(made->strings[index], text, strlen(text) + 1);
    return index;
}

uint32_t profile_double_stack(struct profile_double *made, const uint32_t *locations,
                              uint32_t count)
{
    const uint32_t index = next_row(&made->profile.stacks, count * sizeof *locations);
    for (uint32_t i = 0; i < count; i++)
        made->stacks[index][i] = locations[i];
    return index;
}

uint32_t profile_double_link(struct profile_double *made, uint8_t trace, uint8_t span, uint8_t root)
{
    const uint32_t index = next_row(&made->profile.links, sizeof made->links[0]);
    struct oteli_span_ids *link = &made->links[index];
    memset(link->trace_id, trace, sizeof link->trace_id);
    memset(link->span_id, span, sizeof link->span_id);
    memset(link->root_id, root, sizeof link->root_id);
    return index;
}

uint32_t profile_double_labels(struct profile_double *made, const char *const *texts,
                               uint32_t count)
{
    const uint32_t index =
        next_row(&made->profile.label_sets, count * sizeof made->label_sets[0][0]);
    for (uint32_t i = 0; i < count; i++)
        made->label_sets[index][i] = (struct oteli_profile_pair){
            profile_double_text(made, texts[2 * i]), profile_double_text(made, texts[2 * i + 1])};
    return index;
}

void profile_double_sample(struct profile_double *made, struct oteli_profile_sample sample)
{
    sample.cpu_ns = sample.count * PROFILE_DOUBLE_PERIOD_NS;
    made->samples[next_row(&made->profile.samples, sizeof sample)] = sample;
    made->profile.sample_count = made->profile.samples.count;
}

static void add_mappings(struct profile_double *made)
{
    made->mappings[1] =
        (struct oteli_profile_mapping){.start = 0x400000,
                                       .limit = 0x500000,
                                       .file_offset = 0x1000,
                                       .path = profile_double_text(made, "/usr/bin/shop"),
                                       .identity.build_id_length = 20};
    memset(made->mappings[1].identity.build_id, 0xb1, 20);
    made->mappings[2] =
        (struct oteli_profile_mapping){.start = 0x7f0000000000,
                                       .limit = 0x7f0000200000,
                                       .path = profile_double_text(made, "/lib/libfast.so"),
                                       .identity.has_htlhash = true};
    memset(made->mappings[2].identity.htlhash, 0xa5, 16);
    made->mappings[3] = (struct oteli_profile_mapping){
        .start = 0x600000, .limit = 0x601000, .path = profile_double_text(made, "//anon")};
    made->profile.mappings.count = 4;
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
    made->profile.locations.count = sizeof locations / sizeof *locations;
    made->threads[0].name = profile_double_text(made, "worker");
    made->threads[1].id = 4712;
    made->profile.threads.count = 2;
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
