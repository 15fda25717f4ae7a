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
    MAPPINGS_MAX = 16 * 1024,
    THREADS_MAX = 32 * 1024,
    LINKS_MAX = 64 * 1024,
    NAMES_NS = 100 * 1000 * 1000 /* of the processor's time, for names */
};

enum {
    LOCATION_KEY = offsetof(struct oteli_profile_location, name),
    LINK_KEY = offsetof(struct oteli_span_ids, root_id),
    THREAD_KEY = offsetof(struct oteli_profile_thread, name),
    SAMPLE_KEY = offsetof(struct oteli_profile_sample, count)
};

struct interval {
    otel_profile profile;
    uint32_t span_links; /* of the samples' own spans */
    uint32_t root_links; /* of local roots, instead of those */
    uint64_t samples;
    bool is_open; /* its tables have what each begins with */
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
    otel_profile *profile = &interval->profile;
    struct oteli_interner *const tables[] = {
        &profile->strings, &profile->mappings,   &profile->locations, &profile->stacks,
        &profile->links,   &profile->label_sets, &profile->threads,   &profile->samples};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        oteli_interner_fini(tables[i]);
    interval->is_open = false;
}

/* Tables for what comes, with the empty rows that index 0 means. */
static bool open_interval(struct interval *interval)
{
    static const struct oteli_span_ids no_link;
    static const struct oteli_profile_mapping no_mapping;
    otel_profile *profile = &interval->profile;
    uint32_t index;
    clear(interval);
    profile->strings.most_rows = STRINGS_MAX;
    profile->strings.most_bytes = STRING_BYTES_MAX;
    interval->span_links = interval->root_links = 0;
    profile->links_over = 0;
    interval->samples = 0;
    interval->is_open =
        oteli_interner_add(&profile->strings, "", 1, &index) &&
        oteli_interner_add(&profile->mappings, &no_mapping, sizeof no_mapping, &index) &&
        oteli_interner_add(&profile->links, &no_link, LINK_KEY, &index) &&
        oteli_interner_add(&profile->label_sets, "", 0, &index);
    return interval->is_open;
}

static void init_tables(otel_profile *profile)
{
    const uint32_t seed = (uint32_t)(oteli_monotonic_ns() ^ (uintptr_t)profile >> 4);
    oteli_interner_init(&profile->strings, STRINGS_MAX, STRING_BYTES_MAX, 0, seed);
    oteli_interner_init(&profile->mappings, MAPPINGS_MAX + 1, UINT32_MAX, 0, seed); /* 0: none */
    oteli_interner_init(&profile->locations, LOCATIONS_MAX, UINT32_MAX,
                        sizeof(struct oteli_profile_location) - LOCATION_KEY, seed);
    oteli_interner_init(&profile->stacks, STACKS_MAX, STACK_BYTES_MAX, 0, seed);
    oteli_interner_init(&profile->links, 2 * LINKS_MAX + 1, UINT32_MAX,
                        sizeof(struct oteli_span_ids) - LINK_KEY, seed);
    oteli_interner_init(&profile->label_sets, LABEL_SETS_MAX, LABEL_SET_BYTES_MAX, 0, seed);
    oteli_interner_init(&profile->threads, THREADS_MAX, UINT32_MAX,
                        sizeof(struct oteli_profile_thread) - THREAD_KEY, seed);
    oteli_interner_init(&profile->samples, SAMPLES_MAX, UINT32_MAX,
                        sizeof(struct oteli_profile_sample) - SAMPLE_KEY, seed);
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
        init_tables(&builder->intervals[i].profile);
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
           oteli_interner_add(&builder->now->profile.locations, &location, LOCATION_KEY, index);
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
    return oteli_interner_add(&builder->now->profile.stacks, locations, count * sizeof locations[0],
                              index);
}

/* The link to this span, which is added while its kind has less than its share. *index is 0 where
 * it has not. */
static bool add_link(struct oteli_profile_builder *builder, const struct oteli_span_ids *link,
                     uint32_t *of_kind, uint32_t *index)
{
    struct oteli_interner *links = &builder->now->profile.links;
    if (!oteli_interner_find(links, link, LINK_KEY, index)) {
        *index = 0;
        if (*of_kind >= builder->max_links)
            return true;
        if (!oteli_interner_add(links, link, LINK_KEY, index))
            return false;
        ++*of_kind;
    }
    struct oteli_span_ids *row = oteli_interner_at(links, *index);
    if (*index != 0 && oteli_is_no_id(row->root_id))
        memcpy(row->root_id, link->root_id, sizeof row->root_id);
    return true;
}

static bool find_link(struct oteli_profile_builder *builder, const struct oteli_resolved *resolved,
                      uint32_t *index)
{
    *index = 0;
    if (!resolved->has_span)
        return true;
    struct oteli_span_ids link = resolved->span;
    if (!add_link(builder, &link, &builder->now->span_links, index))
        return false;
    if (*index != 0)
        return true;
    builder->now->profile.links_over++;
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
    struct oteli_interner *threads = &builder->now->profile.threads;
    const uint32_t before = threads->count;
    char name[64];
    if (!oteli_interner_add(threads, &id, THREAD_KEY, index))
        return false;
    if (threads->count == before)
        return true;
    struct oteli_profile_thread *thread = oteli_interner_at(threads, *index);
    const size_t length = read_name(id, name, sizeof name);
    return oteli_profile_string(&builder->now->profile.strings, name, length, &thread->name);
}

static bool add_rows(struct oteli_profile_builder *builder, const struct oteli_resolved *resolved)
{
    struct oteli_profile_sample key = {0};
    otel_profile *profile = &builder->now->profile;
    uint32_t index;
    if (!add_stack(builder, resolved, &key.stack) ||
        !oteli_profile_label_set(&profile->strings, &profile->label_sets, resolved->labels,
                                 resolved->label_count, &key.label_set) ||
        !add_thread(builder, resolved->sample->thread, &key.thread) ||
        !find_link(builder, resolved, &key.link) ||
        !oteli_interner_add(&profile->samples, &key, SAMPLE_KEY, &index))
        return false;
    struct oteli_profile_sample *sample = oteli_interner_at(&profile->samples, index);
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
    otel_profile *profile = state;
    struct oteli_profile_location *location = oteli_interner_at(&profile->locations, place->index);
    if (!oteli_profile_string(&profile->strings, name, length, &location->name))
        location->name = 0;
}

void oteli_profile_builder_name(struct oteli_profile_builder *builder, uint64_t deadline_ns)
{
    otel_profile *profile = &builder->now->profile;
    const struct oteli_interner *locations = &profile->locations;
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
        profile->strings.most_rows = STRINGS_MAX + NAMES_MAX;
        profile->strings.most_bytes = STRING_BYTES_MAX + NAME_BYTES_MAX;
        oteli_symbolizer_find(builder->mappings, places, count, NAMES_NS, deadline_ns, take_name,
                              profile);
    }
    free(places);
}

/* ---- the profile -------------------------------------------------------------------------- */

/* The row of a mapping, by its number among those that are known. */
static bool add_mapping(struct oteli_profile_builder *builder, uint32_t number, uint32_t *index)
{
    const struct oteli_known_mapping *known = oteli_mappings_at(builder->mappings, number);
    otel_profile *profile = &builder->now->profile;
    struct oteli_profile_mapping mapping;
    memset(&mapping, 0, sizeof mapping); /* the bytes between its members count for equality */
    mapping.start = known->start;
    mapping.limit = known->limit;
    mapping.file_offset = known->file_offset;
    memcpy(&mapping.identity, &known->identity, sizeof mapping.identity);
    return oteli_profile_string(&profile->strings, known->path, strlen(known->path),
                                &mapping.path) &&
           oteli_interner_add(&profile->mappings, &mapping, sizeof mapping, index);
}

/* Mappings in the order in which locations come to them, the program before all others; locations
 * have their indices then. */
static bool make_mappings(struct oteli_profile_builder *builder)
{
    otel_profile *profile = &builder->now->profile;
    uint32_t index;
    profile->strings.most_rows = STRINGS_MAX + NAMES_MAX + PATHS_MAX;
    profile->strings.most_bytes = STRING_BYTES_MAX + NAME_BYTES_MAX + PATH_BYTES_MAX;
    for (int is_program = 1; is_program >= 0; is_program--)
        for (uint32_t i = 0; i < profile->locations.count; i++) {
            struct oteli_profile_location *location = oteli_interner_at(&profile->locations, i);
            const uint32_t number = location->mapping;
            if (number == 0 ||
                (is_program && !oteli_mappings_at(builder->mappings, number)->is_program))
                continue;
            if (!add_mapping(builder, number, &index))
                return false;
            if (!is_program)
                location->mapping = index;
        }
    return true;
}

const otel_profile *oteli_profile_builder_finish(struct oteli_profile_builder *builder)
{
    const uint64_t now_ns = oteli_monotonic_ns();
    struct interval *interval = builder->now;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const bool is_made = (interval->is_open || open_interval(interval)) && make_mappings(builder);
    interval->profile.period_ns = builder->period_ns;
    interval->profile.duration_ns = now_ns - builder->start_ns;
    interval->profile.start_unix_ns = oteli_timespec_ns(now) - interval->profile.duration_ns;
    interval->profile.sample_count = interval->profile.samples.count;
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
