/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_pprof.c - see flame_pprof.h. One thread.
 *
 * protobuf-c decodes the file; here its texts, mappings, functions and locations become tables
 * sorted by id, and each sample is checked against them. */
#include "tools/flame/flame_pprof.h"

#include "tools/view/view_inflate.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 29 /* unpacked; a day's profile has a hundredth of that */ };

/* Of memory: a file of empty messages takes fifty times its size. */
static const size_t MOST_MEMORY = (size_t)1 << 32;

static const char broken[] = "is no pprof profile, or only a part of one";
static const char dangling[] = "refers to something that is not in it";
static const char too_long[] = "has a sample with more frames, values or labels than are read here";
static const char no_memory[] = "does not fit into memory";

/* --- Tables --- */

static bool string_at(const struct flame_profile *profile, int64_t index, otel_slice *text)
{
    if (index < 0 || (uint64_t)index >= profile->string_count)
        return false;
    *text = profile->strings[index];
    return true;
}

/* Rows whose first member is their id, sorted by it. */
static int compare_rows(const void *left, const void *right)
{
    uint64_t ids[2];
    memcpy(&ids[0], left, sizeof ids[0]);
    memcpy(&ids[1], right, sizeof ids[1]);
    return (ids[0] > ids[1]) - (ids[0] < ids[1]);
}

static const void *row_of(const void *rows, size_t count, size_t size, uint64_t id)
{
    return count != 0 ? bsearch(&id, rows, count, size, compare_rows) : NULL;
}

static bool read_value_types(struct flame_profile *profile)
{
    for (size_t i = 0; i < profile->value_count; i++) {
        const Perftools__Profiles__ValueType *type = profile->file->sample_type[i];
        if (!string_at(profile, type->type, &profile->value_names[i]) ||
            !string_at(profile, type->unit, &profile->value_units[i]))
            return false;
    }
    return true;
}

static bool read_mappings(struct flame_profile *profile)
{
    for (size_t i = 0; i < profile->mapping_count; i++) {
        const Perftools__Profiles__Mapping *from = profile->file->mapping[i];
        struct flame_mapping *mapping = &profile->mappings[i];
        *mapping = (struct flame_mapping){.id = from->id,
                                          .start = from->memory_start,
                                          .limit = from->memory_limit,
                                          .offset = from->file_offset};
        if (!string_at(profile, from->filename, &mapping->file) ||
            !string_at(profile, from->build_id, &mapping->build_id))
            return false;
    }
    qsort(profile->mappings, profile->mapping_count, sizeof *profile->mappings, compare_rows);
    return true;
}

static bool read_functions(struct flame_profile *profile)
{
    for (size_t i = 0; i < profile->function_count; i++) {
        const Perftools__Profiles__Function *from = profile->file->function[i];
        profile->functions[i].id = from->id;
        if (!string_at(profile, from->name, &profile->functions[i].name))
            return false;
    }
    qsort(profile->functions, profile->function_count, sizeof *profile->functions, compare_rows);
    return true;
}

/* A function, or none where the line says 0. */
static bool read_line(struct flame_profile *profile, const Perftools__Profiles__Line *line)
{
    if (line->function_id == 0)
        return true;
    const struct flame_function *function = row_of(profile->functions, profile->function_count,
                                                   sizeof *profile->functions, line->function_id);
    if (function != NULL)
        profile->inlined[profile->inlined_count++] = function;
    return function != NULL;
}

static bool read_locations(struct flame_profile *profile)
{
    for (size_t i = 0; i < profile->location_count; i++) {
        const Perftools__Profiles__Location *from = profile->file->location[i];
        struct flame_location *location = &profile->locations[i];
        *location = (struct flame_location){
            .id = from->id, .address = from->address, .first_function = profile->inlined_count};
        if (from->mapping_id != 0)
            location->mapping = row_of(profile->mappings, profile->mapping_count,
                                       sizeof *profile->mappings, from->mapping_id);
        if (from->mapping_id != 0 && location->mapping == NULL)
            return false;
        for (size_t k = 0; k < from->n_line; k++)
            if (!read_line(profile, from->line[k]))
                return false;
        location->function_count = profile->inlined_count - location->first_function;
    }
    qsort(profile->locations, profile->location_count, sizeof *profile->locations, compare_rows);
    return true;
}

/* The value to show: the one that the file names, or its last. */
static bool choose_value(struct flame_profile *profile)
{
    otel_slice chosen;
    if (!string_at(profile, profile->file->default_sample_type, &chosen))
        return false;
    profile->default_value = profile->value_count - 1;
    for (size_t i = 0; chosen.length != 0 && i < profile->value_count; i++)
        if (profile->value_names[i].length == chosen.length &&
            memcmp(profile->value_names[i].data, chosen.data, chosen.length) == 0)
            profile->default_value = i;
    return true;
}

static const char *allocate(struct flame_profile *profile)
{
    const Perftools__Profiles__Profile *file = profile->file;
    size_t lines = 0;
    for (size_t i = 0; i < file->n_location; i++)
        lines += file->location[i]->n_line;
    profile->string_count = file->n_string_table;
    profile->mapping_count = file->n_mapping;
    profile->function_count = file->n_function;
    profile->location_count = file->n_location;
    profile->value_count = file->n_sample_type;
    profile->strings = calloc(profile->string_count + 1, sizeof *profile->strings);
    profile->mappings = calloc(profile->mapping_count + 1, sizeof *profile->mappings);
    profile->functions = calloc(profile->function_count + 1, sizeof *profile->functions);
    profile->locations = calloc(profile->location_count + 1, sizeof *profile->locations);
    profile->inlined = calloc(lines + 1, sizeof *profile->inlined);
    if (profile->strings == NULL || profile->mappings == NULL || profile->functions == NULL ||
        profile->locations == NULL || profile->inlined == NULL)
        return no_memory;
    for (size_t i = 0; i < profile->string_count; i++)
        profile->strings[i] = (otel_slice){file->string_table[i], strlen(file->string_table[i])};
    return NULL;
}

/* --- Samples --- */

static const char *read_frames(const struct flame_profile *profile,
                               const Perftools__Profiles__Sample *from, struct flame_sample *sample)
{
    size_t names = 0; /* with those of inlined functions */
    sample->depth = 0;
    for (size_t i = 0; i < from->n_location_id; i++) {
        const struct flame_location *location =
            row_of(profile->locations, profile->location_count, sizeof *profile->locations,
                   from->location_id[i]);
        if (location == NULL)
            return dangling;
        names += location->function_count != 0 ? location->function_count : 1;
        if (names > FLAME_FRAMES_MAX)
            return too_long;
        sample->frames[sample->depth++] = location;
    }
    return NULL;
}

static const char *read_labels(const struct flame_profile *profile,
                               const Perftools__Profiles__Sample *from, struct flame_sample *sample)
{
    if (from->n_label > FLAME_LABELS_MAX)
        return too_long;
    sample->label_count = from->n_label;
    for (size_t i = 0; i < from->n_label; i++) {
        struct flame_label *label = &sample->labels[i];
        label->number = from->label[i]->num;
        if (!string_at(profile, from->label[i]->key, &label->key) ||
            !string_at(profile, from->label[i]->str, &label->text) ||
            !string_at(profile, from->label[i]->num_unit, &label->unit))
            return dangling;
    }
    return NULL;
}

static const char *read_sample(const struct flame_profile *profile,
                               const Perftools__Profiles__Sample *from, struct flame_sample *sample)
{
    const char *fault = read_frames(profile, from, sample);
    if (fault == NULL)
        fault = read_labels(profile, from, sample);
    if (fault != NULL)
        return fault;
    if (from->n_value != profile->value_count)
        return "has a sample with more or fewer values than it has types of values";
    sample->value_count = from->n_value;
    memcpy(sample->values, from->value, from->n_value * sizeof from->value[0]);
    return NULL;
}

static const char *check_samples(const struct flame_profile *profile)
{
    struct flame_sample *sample = malloc(sizeof *sample);
    const char *fault = sample == NULL ? no_memory : NULL;
    for (size_t i = 0; fault == NULL && i < profile->file->n_sample; i++)
        fault = read_sample(profile, profile->file->sample[i], sample);
    free(sample);
    return fault;
}

/* --- The file --- */

/* What protobuf-c may still allocate for a file. */
struct budget {
    size_t left;
    bool is_spent;
};

static void *take_memory(void *state, size_t size)
{
    struct budget *budget = state;
    void *memory = size <= budget->left ? malloc(size) : NULL;
    if (memory == NULL)
        budget->is_spent = true;
    else
        budget->left -= size;
    return memory;
}

static void free_memory(void *state, void *memory)
{
    (void)state;
    free(memory);
}

static const char *decode(struct flame_profile *profile, const uint8_t *bytes, size_t length)
{
    struct budget budget = {.left = MOST_MEMORY};
    ProtobufCAllocator allocator = {take_memory, free_memory, &budget};
    profile->file = perftools__profiles__profile__unpack(&allocator, length, bytes);
    if (profile->file == NULL)
        return budget.is_spent ? no_memory : broken;
    if (profile->file->n_string_table == 0)
        return broken;
    if (profile->file->n_sample_type == 0)
        return "has no values";
    if (profile->file->n_sample_type > FLAME_VALUES_MAX)
        return too_long;
    const char *fault = allocate(profile);
    if (fault != NULL)
        return fault;
    if (!read_value_types(profile) || !read_mappings(profile) || !read_functions(profile) ||
        !read_locations(profile) || !choose_value(profile))
        return dangling;
    profile->time_ns = profile->file->time_nanos;
    profile->duration_ns = profile->file->duration_nanos;
    return check_samples(profile);
}

/* Gzipped bytes are unpacked into memory that is the caller's to free. */
static const char *unzip(const void *bytes, size_t length, uint8_t **unpacked, size_t *size)
{
    switch (view_inflate(VIEW_GZIP, bytes, length, MOST_BYTES, unpacked, size)) {
    case VIEW_INFLATE_DONE:
        return NULL;
    case VIEW_INFLATE_TOO_LARGE:
        return "has more than 512 MiB when it is unpacked";
    case VIEW_INFLATE_NO_MEMORY:
        return no_memory;
    default:
        return "is a gzip file that is broken or cut off";
    }
}

const char *flame_profile_read(struct flame_profile *profile, const void *bytes, size_t length)
{
    const uint8_t *read = bytes;
    uint8_t *unpacked = NULL;
    const char *fault = NULL;
    *profile = (struct flame_profile){0};
    if (length == 0)
        return "is empty";
    if (length >= 2 && read[0] == 0x1f && read[1] == 0x8b) {
        fault = unzip(bytes, length, &unpacked, &length);
        read = unpacked;
    }
    if (fault == NULL)
        fault = decode(profile, read, length);
    free(unpacked);
    if (fault != NULL)
        flame_profile_fini(profile);
    return fault;
}

void flame_profile_fini(struct flame_profile *profile)
{
    perftools__profiles__profile__free_unpacked(profile->file, NULL);
    free(profile->strings);
    free(profile->mappings);
    free(profile->functions);
    free(profile->locations);
    free(profile->inlined);
    *profile = (struct flame_profile){0};
}

bool flame_profile_each(const struct flame_profile *profile, struct flame_sample *sample,
                        bool (*take)(void *state, const struct flame_sample *sample), void *state)
{
    for (size_t i = 0; i < profile->file->n_sample; i++)
        if (read_sample(profile, profile->file->sample[i], sample) == NULL && !take(state, sample))
            return false;
    return true;
}
