/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profile/profile_builder.c - the contracts are in profile_builder.h. The profiler's
 * thread; owns the tables of the interval, and what is known of the process's mappings.
 *
 * Rows of links, locations, threads and samples are in their tables as they are in the profile:
 * what makes them equal is at their front, what is only told of them in the tail. Addresses are
 * looked up as they come, while what lies there is still mapped. */
#include "profiling/profile/profile_builder.h"

#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "profiling/base/interner.h"
#include "profiling/profile/profile_labels.h"
#include "profiling/symbols/mappings.h"
#include "profiling/symbols/symbolizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How much an interval may have: all tables together, full, take some 40 MiB. */
enum {
    SAMPLES_MAX = 64 * 1024,
    STACKS_MAX = 64 * 1024,
    STACK_BYTES_MAX = 8 * 1024 * 1024,
    LOCATIONS_MAX = 128 * 1024,
    LABEL_SETS_MAX = 64 * 1024,
    LABEL_SET_BYTES_MAX = 2 * 1024 * 1024,
    STRINGS_MAX = 128 * 1024,
    STRING_BYTES_MAX = 4 * 1024 * 1024,
    NAMES_MAX = 128 * 1024, /* of functions, besides */
    NAME_BYTES_MAX = 8 * 1024 * 1024,
    PATHS_MAX = 8 * 1024, /* of mappings, for which there is room when all else is full */
    PATH_BYTES_MAX = 4 * 1024 * 1024,
    THREADS_MAX = 32 * 1024,
    LINKS_MAX = 64 * 1024,
    NAMES_NS = 100 * 1000 * 1000 /* of the processor's time, for names */
};

enum {
    LOCATION_KEY = offsetof(struct oteli_profile_location, name),
    LINK_KEY = offsetof(struct oteli_profile_link, root_id),
    THREAD_KEY = offsetof(struct oteli_profile_thread, name),
    SAMPLE_KEY = offsetof(struct oteli_profile_sample, count)
};

enum table { STRINGS, LOCATIONS, STACKS, LINKS, LABEL_SETS, THREADS, SAMPLES, TABLES };

/* What finish makes besides. */
struct made {
    const char **strings;
    struct oteli_profile_mapping *mappings;
    struct oteli_profile_range *stacks;
    struct oteli_profile_range *label_sets;
};

struct interval {
    struct oteli_interner tables[TABLES];
    uint32_t span_links; /* of the samples' own spans */
    uint32_t root_links; /* of local roots, instead of those */
    uint64_t links_over;
    uint64_t samples;
    bool is_open; /* its tables have what each begins with */
    struct made made;
    otel_profile profile;
};

struct oteli_profile_builder {
    struct interval intervals[2]; /* they take turns: one is being exported */
    struct interval *now;
    struct oteli_mappings *mappings;
    uint64_t period_ns;
    uint32_t max_links;
    uint64_t start_ns;
};

/* ---- lifetime ----------------------------------------------------------------------------- */

/* Without memory, and without a profile. */
static void clear(struct interval *interval)
{
    free(interval->made.strings);
    free(interval->made.mappings);
    free(interval->made.stacks);
    free(interval->made.label_sets);
    interval->made = (struct made){0};
    for (size_t i = 0; i < TABLES; i++)
        oteli_interner_fini(&interval->tables[i]);
    interval->is_open = false;
}

/* Tables for what comes, with the empty rows that index 0 means. */
static bool open_interval(struct interval *interval)
{
    static const struct oteli_profile_link none;
    uint32_t index;
    clear(interval);
    interval->tables[STRINGS].most_rows = STRINGS_MAX;
    interval->tables[STRINGS].most_bytes = STRING_BYTES_MAX;
    interval->span_links = interval->root_links = 0;
    interval->links_over = 0;
    interval->samples = 0;
    interval->is_open = oteli_interner_add(&interval->tables[STRINGS], "", 1, &index) &&
                        oteli_interner_add(&interval->tables[LINKS], &none, LINK_KEY, &index) &&
                        oteli_interner_add(&interval->tables[LABEL_SETS], "", 0, &index);
    return interval->is_open;
}

static void init_tables(struct oteli_interner *tables)
{
    const uint32_t seed = (uint32_t)(oteli_monotonic_ns() ^ (uintptr_t)tables >> 4);
    const uint32_t location = sizeof(struct oteli_profile_location);
    const uint32_t link = sizeof(struct oteli_profile_link);
    const uint32_t thread = sizeof(struct oteli_profile_thread);
    const uint32_t sample = sizeof(struct oteli_profile_sample);
    oteli_interner_init(&tables[STRINGS], STRINGS_MAX, STRING_BYTES_MAX, 0, seed);
    oteli_interner_init(&tables[LOCATIONS], LOCATIONS_MAX, LOCATIONS_MAX * location,
                        location - LOCATION_KEY, seed);
    oteli_interner_init(&tables[STACKS], STACKS_MAX, STACK_BYTES_MAX, 0, seed);
    oteli_interner_init(&tables[LINKS], 2 * LINKS_MAX + 1, (2 * LINKS_MAX + 1) * link,
                        link - LINK_KEY, seed);
    oteli_interner_init(&tables[LABEL_SETS], LABEL_SETS_MAX, LABEL_SET_BYTES_MAX, 0, seed);
    oteli_interner_init(&tables[THREADS], THREADS_MAX, THREADS_MAX * thread, thread - THREAD_KEY,
                        seed);
    oteli_interner_init(&tables[SAMPLES], SAMPLES_MAX, SAMPLES_MAX * sample, sample - SAMPLE_KEY,
                        seed);
}

struct oteli_profile_builder *oteli_profile_builder_new(uint64_t period_ns, uint32_t max_links)
{
    struct oteli_profile_builder *builder = calloc(1, sizeof *builder);
    if (builder == NULL)
        return NULL;
    builder->period_ns = period_ns;
    builder->max_links = max_links < LINKS_MAX ? max_links : LINKS_MAX;
    builder->start_ns = oteli_monotonic_ns();
    builder->now = &builder->intervals[0];
    for (size_t i = 0; i < 2; i++)
        init_tables(builder->intervals[i].tables);
    builder->mappings = oteli_mappings_new();
    if (builder->mappings != NULL && open_interval(builder->now))
        return builder;
    oteli_profile_builder_free(builder);
    return NULL;
}

void oteli_profile_builder_free(struct oteli_profile_builder *builder)
{
    if (builder == NULL)
        return;
    for (size_t i = 0; i < 2; i++)
        clear(&builder->intervals[i]);
    oteli_mappings_free(builder->mappings);
    free(builder);
}

/* ---- a sample ----------------------------------------------------------------------------- */

/* Index 0 is the leaf, which is where the processor was; behind it are return addresses. *is_code:
 * it counts. */
static bool add_location(struct oteli_profile_builder *builder,
                         const struct oteli_resolved *resolved, size_t frame, uint32_t *index,
                         bool *is_code)
{
    struct oteli_profile_location location;
    memset(&location, 0, sizeof location);
    location.address = resolved->frames[frame] - (frame != 0);
    location.mapping = oteli_mappings_find(builder->mappings, location.address, is_code);
    *is_code = *is_code || frame == 0;
    return !*is_code ||
           oteli_interner_add(&builder->now->tables[LOCATIONS], &location, LOCATION_KEY, index);
}

/* A frame in no code, and what is behind it, is what a walk finds that lost its way: functions
 * without frame pointers lead it anywhere. */
static bool add_stack(struct oteli_profile_builder *builder, const struct oteli_resolved *resolved,
                      uint32_t *index)
{
    uint32_t locations[OTELI_FRAMES_MAX];
    const size_t depth = resolved->depth < OTELI_FRAMES_MAX ? resolved->depth : OTELI_FRAMES_MAX;
    size_t count = 0;
    for (bool is_code = true; count < depth; count++) {
        if (!add_location(builder, resolved, count, &locations[count], &is_code))
            return false;
        if (!is_code)
            break;
    }
    return oteli_interner_add(&builder->now->tables[STACKS], locations, count * sizeof locations[0],
                              index);
}

/* The link to this span, which is added while its kind has less than its share. *index is 0 where
 * it has not. */
static bool add_link(struct oteli_profile_builder *builder, const struct oteli_profile_link *link,
                     uint32_t *of_kind, uint32_t *index)
{
    struct oteli_interner *links = &builder->now->tables[LINKS];
    if (!oteli_interner_find(links, link, LINK_KEY, index)) {
        *index = 0;
        if (*of_kind >= builder->max_links)
            return true;
        if (!oteli_interner_add(links, link, LINK_KEY, index))
            return false;
        ++*of_kind;
    }
    struct oteli_profile_link *row = oteli_interner_at(links, *index);
    if (*index != 0 && oteli_is_no_id(row->root_id))
        memcpy(row->root_id, link->root_id, sizeof row->root_id);
    return true;
}

static bool find_link(struct oteli_profile_builder *builder, const struct oteli_resolved *resolved,
                      uint32_t *index)
{
    struct oteli_profile_link link = {{0}, {0}, {0}};
    *index = 0;
    if (!resolved->has_span)
        return true;
    memcpy(link.trace_id, resolved->trace_id, sizeof link.trace_id);
    memcpy(link.span_id, resolved->span_id, sizeof link.span_id);
    memcpy(link.root_id, resolved->root_id, sizeof link.root_id);
    if (!add_link(builder, &link, &builder->now->span_links, index))
        return false;
    if (*index != 0)
        return true;
    builder->now->links_over++;
    if (oteli_is_no_id(link.root_id))
        return true;
    memcpy(link.span_id, link.root_id, sizeof link.span_id);
    return add_link(builder, &link, &builder->now->root_links, index);
}

static size_t read_name(pid_t thread, char *name, int size)
{
    char path[64];
    name[0] = '\0';
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)thread);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    const size_t length = fgets(name, size, file) != NULL ? strcspn(name, "\n") : 0;
    fclose(file);
    return length;
}

static bool add_thread(struct oteli_profile_builder *builder, pid_t id, uint32_t *index)
{
    struct oteli_interner *threads = &builder->now->tables[THREADS];
    const uint32_t before = threads->count;
    char name[64];
    if (!oteli_interner_add(threads, &id, THREAD_KEY, index))
        return false;
    if (threads->count == before)
        return true;
    struct oteli_profile_thread *thread = oteli_interner_at(threads, *index);
    const size_t length = read_name(id, name, sizeof name);
    return oteli_profile_string(&builder->now->tables[STRINGS], name, length, &thread->name);
}

static bool add_rows(struct oteli_profile_builder *builder, const struct oteli_resolved *resolved)
{
    struct oteli_profile_sample key = {0};
    struct oteli_interner *tables = builder->now->tables;
    uint32_t index;
    if (!add_stack(builder, resolved, &key.stack) ||
        !oteli_profile_label_set(&tables[STRINGS], &tables[LABEL_SETS], resolved->labels,
                                 resolved->label_count, &key.label_set) ||
        !add_thread(builder, resolved->sample->thread, &key.thread) ||
        !find_link(builder, resolved, &key.link) ||
        !oteli_interner_add(&tables[SAMPLES], &key, SAMPLE_KEY, &index))
        return false;
    struct oteli_profile_sample *sample = oteli_interner_at(&tables[SAMPLES], index);
    sample->count++;
    sample->cpu_ns += resolved->sample->periods * builder->period_ns;
    return true;
}

bool oteli_profile_builder_add(struct oteli_profile_builder *builder,
                               const struct oteli_resolved *resolved)
{
    if (!builder->now->is_open && !open_interval(builder->now))
        return false;
    oteli_mappings_follow(builder->mappings);
    const bool is_added = add_rows(builder, resolved);
    builder->now->samples += is_added;
    return is_added;
}

uint64_t oteli_profile_builder_samples(const struct oteli_profile_builder *builder)
{
    return builder->now->is_open ? builder->now->samples : 0;
}

/* ---- names -------------------------------------------------------------------------------- */

static void take_name(void *state, const struct oteli_elf_place *place, const char *name,
                      size_t length)
{
    struct oteli_interner *tables = state;
    struct oteli_profile_location *location = oteli_interner_at(&tables[LOCATIONS], place->index);
    if (!oteli_profile_string(&tables[STRINGS], name, length, &location->name))
        location->name = 0;
}

void oteli_profile_builder_name(struct oteli_profile_builder *builder, uint64_t deadline_ns)
{
    struct oteli_interner *tables = builder->now->tables;
    const struct oteli_interner *locations = &tables[LOCATIONS];
    struct oteli_elf_place *places = malloc((locations->count + 1) * sizeof *places);
    if (places != NULL && builder->now->is_open) {
        size_t count = 0;
        for (uint32_t i = 0; i < locations->count; i++) {
            const struct oteli_profile_location *location = oteli_interner_at(locations, i);
            if (location->mapping == 0)
                continue;
            const struct oteli_known_mapping *known =
                oteli_mappings_at(builder->mappings, location->mapping);
            places[count++] = (struct oteli_elf_place){.offset = location->address - known->start +
                                                                 known->file_offset,
                                                       .index = i,
                                                       .mapping = location->mapping};
        }
        tables[STRINGS].most_rows = STRINGS_MAX + NAMES_MAX;
        tables[STRINGS].most_bytes = STRING_BYTES_MAX + NAME_BYTES_MAX;
        oteli_symbolizer_find(builder->mappings, places, count, NAMES_NS, deadline_ns, take_name,
                              tables);
    }
    free(places);
}

/* ---- the profile -------------------------------------------------------------------------- */

/* Where the elements of each row stand among those of all rows. NULL: no memory. */
static struct oteli_profile_range *make_ranges(const struct oteli_interner *table, uint32_t size)
{
    struct oteli_profile_range *ranges = malloc((table->count + 1) * sizeof *ranges);
    for (uint32_t i = 0; ranges != NULL && i < table->count; i++)
        ranges[i] = (struct oteli_profile_range){.first = table->rows[i].offset / size,
                                                 .count = table->rows[i].length / size};
    return ranges;
}

static bool make_rows(struct interval *interval)
{
    struct made *made = &interval->made;
    made->stacks = make_ranges(&interval->tables[STACKS], sizeof(uint32_t));
    made->label_sets =
        make_ranges(&interval->tables[LABEL_SETS], sizeof(struct oteli_profile_pair));
    return made->stacks != NULL && made->label_sets != NULL;
}

static bool make_strings(struct interval *interval)
{
    const struct oteli_interner *strings = &interval->tables[STRINGS];
    struct made *made = &interval->made;
    made->strings = malloc(strings->count * sizeof *made->strings);
    if (made->strings == NULL)
        return false;
    for (uint32_t i = 0; i < strings->count; i++)
        made->strings[i] = oteli_interner_at(strings, i);
    return true;
}

static bool make_mapping(struct oteli_profile_builder *builder,
                         struct oteli_profile_mapping *mapping, uint32_t number)
{
    const struct oteli_known_mapping *known = oteli_mappings_at(builder->mappings, number);
    const struct oteli_elf_identity *identity = &known->identity;
    struct oteli_interner *strings = &builder->now->tables[STRINGS];
    mapping->start = known->start;
    mapping->limit = known->limit;
    mapping->file_offset = known->file_offset;
    mapping->build_id_length = identity->build_id_length;
    memcpy(mapping->build_id, identity->build_id, sizeof mapping->build_id);
    mapping->has_htlhash = identity->has_htlhash;
    memcpy(mapping->htlhash, identity->htlhash, sizeof mapping->htlhash);
    return oteli_profile_string(strings, known->path, strlen(known->path), &mapping->path);
}

/* Mappings in the order in which locations come to them, the program before all others; locations
 * have their indices then. `index_of` has room for the highest number. */
static bool order_mappings(struct oteli_profile_builder *builder, uint32_t *index_of)
{
    const struct oteli_interner *locations = &builder->now->tables[LOCATIONS];
    struct oteli_profile_mapping *mappings = builder->now->made.mappings;
    uint32_t count = 1;
    for (int is_program = 1; is_program >= 0; is_program--)
        for (uint32_t i = 0; i < locations->count; i++) {
            const struct oteli_profile_location *location = oteli_interner_at(locations, i);
            const uint32_t number = location->mapping;
            if (number == 0 || index_of[number] != 0 ||
                oteli_mappings_at(builder->mappings, number)->is_program != is_program)
                continue;
            if (!make_mapping(builder, &mappings[count], number))
                return false;
            index_of[number] = count++;
        }
    for (uint32_t i = 0; i < locations->count; i++) {
        struct oteli_profile_location *location = oteli_interner_at(locations, i);
        location->mapping = index_of[location->mapping];
    }
    builder->now->profile.mapping_count = count;
    return true;
}

static bool make_mappings(struct oteli_profile_builder *builder)
{
    builder->now->tables[STRINGS].most_rows = STRINGS_MAX + NAMES_MAX + PATHS_MAX;
    builder->now->tables[STRINGS].most_bytes = STRING_BYTES_MAX + NAME_BYTES_MAX + PATH_BYTES_MAX;
    const struct oteli_interner *locations = &builder->now->tables[LOCATIONS];
    uint32_t highest = 0;
    for (uint32_t i = 0; i < locations->count; i++) {
        const struct oteli_profile_location *location = oteli_interner_at(locations, i);
        highest = location->mapping > highest ? location->mapping : highest;
    }
    uint32_t *index_of = calloc((size_t)highest + 1, sizeof *index_of);
    builder->now->made.mappings = calloc((size_t)highest + 1, sizeof *builder->now->made.mappings);
    const bool is_made = index_of != NULL && builder->now->made.mappings != NULL &&
                         order_mappings(builder, index_of);
    free(index_of);
    return is_made;
}

static void describe(struct interval *interval)
{
    const struct oteli_interner *tables = interval->tables;
    otel_profile *profile = &interval->profile;
    profile->strings = interval->made.strings;
    profile->string_count = tables[STRINGS].count;
    profile->mappings = interval->made.mappings;
    profile->locations = (const void *)tables[LOCATIONS].bytes;
    profile->location_count = tables[LOCATIONS].count;
    profile->location_of_stack = (const void *)tables[STACKS].bytes;
    profile->stacks = interval->made.stacks;
    profile->stack_count = tables[STACKS].count;
    profile->links = (const void *)tables[LINKS].bytes;
    profile->link_count = tables[LINKS].count;
    profile->pairs = (const void *)tables[LABEL_SETS].bytes;
    profile->label_sets = interval->made.label_sets;
    profile->label_set_count = tables[LABEL_SETS].count;
    profile->threads = (const void *)tables[THREADS].bytes;
    profile->thread_count = tables[THREADS].count;
    profile->samples = (const void *)tables[SAMPLES].bytes;
    profile->sample_count = tables[SAMPLES].count;
    profile->links_over = interval->links_over;
}

const otel_profile *oteli_profile_builder_finish(struct oteli_profile_builder *builder)
{
    const uint64_t now_ns = oteli_monotonic_ns();
    struct interval *interval = builder->now;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    bool is_made = interval->is_open || open_interval(interval);
    is_made = is_made && make_mappings(builder) && make_rows(interval) && make_strings(interval);
    interval->profile.period_ns = builder->period_ns;
    interval->profile.duration_ns = now_ns - builder->start_ns;
    interval->profile.start_unix_ns = oteli_timespec_ns(now) - interval->profile.duration_ns;
    describe(interval);
    interval->is_open = false;
    builder->start_ns = now_ns;
    builder->now = interval == builder->intervals ? interval + 1 : builder->intervals;
    oteli_mappings_settle(builder->mappings);
    return is_made ? &interval->profile : NULL;
}

void oteli_profile_builder_forget(struct oteli_profile_builder *builder)
{
    clear(builder->now == builder->intervals ? builder->now + 1 : builder->intervals);
}
