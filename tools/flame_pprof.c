/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame_pprof.c - see flame_pprof.h. One thread.
 *
 * A file is walked over three times: to count, to fill the tables, and to check each sample. */
#include "tools/flame_pprof.h"

#include "exporters/otlp/fields.h"
#include "tools/view_inflate.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_BYTES = 1 << 29, /* unpacked; a day's profile has a hundredth of that */
    MOST_ROWS = 1 << 24   /* of all tables: empty ones take more memory here than in a file */
};

/* The fields of profile.proto. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_TIME = 9,
    PROFILE_DURATION = 10,
    PROFILE_DEFAULT_TYPE = 14
};
enum { LOCATION_LINE = 4 };

static const char broken[] = "is no pprof profile, or only a part of one";
static const char dangling[] = "refers to something that is not in it";
static const char too_long[] = "has a sample with more frames, values or labels than are read here";
static const char no_memory[] = "does not fit into memory";

static bool is_number(const struct oteli_field *field)
{
    return field->wire_type == OTELI_WIRE_VARINT;
}

static bool is_message(const struct oteli_field *field)
{
    return field->wire_type == OTELI_WIRE_BYTES;
}

static bool get_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        const uint8_t byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return true;
    }
    return false;
}

/* Numbers of a repeated field, packed or one by one. False: `take` does not want it, or the bytes
 * are no numbers. */
static bool each_number(const struct oteli_field *field, bool (*take)(void *, uint64_t),
                        void *state)
{
    if (is_number(field))
        return take(state, field->value);
    if (!is_message(field))
        return false;
    const uint8_t *at = field->bytes;
    const uint8_t *end = at + field->length;
    uint64_t value;
    while (at < end)
        if (!get_varint(&at, end, &value) || !take(state, value))
            return false;
    return true;
}

/* --- Tables --- */

static bool string_at(const struct flame_profile *profile, uint64_t index, otel_slice *text)
{
    if (index >= profile->string_count)
        return false;
    *text = profile->strings[index];
    return true;
}

static int compare_ids(uint64_t left, uint64_t right)
{
    return (left > right) - (left < right);
}

/* Rows whose first member is their id, sorted by it. */
static int compare_rows(const void *left, const void *right)
{
    uint64_t ids[2];
    memcpy(&ids[0], left, sizeof ids[0]);
    memcpy(&ids[1], right, sizeof ids[1]);
    return compare_ids(ids[0], ids[1]);
}

static const void *row_of(const void *rows, size_t count, size_t size, uint64_t id)
{
    return count != 0 ? bsearch(&id, rows, count, size, compare_rows) : NULL;
}

static bool read_value_type(struct flame_profile *profile, const struct oteli_field *message)
{
    struct oteli_walk walk = oteli_walk_into(message);
    struct oteli_field field;
    enum oteli_walk_step step = OTELI_WALK_END;
    if (profile->value_count == FLAME_VALUES_MAX)
        return false;
    otel_slice *name = &profile->value_names[profile->value_count];
    otel_slice *unit = &profile->value_units[profile->value_count++];
    while ((step = oteli_walk_next(&walk, &field)) == OTELI_WALK_FIELD)
        if ((field.number == 1 && !(is_number(&field) && string_at(profile, field.value, name))) ||
            (field.number == 2 && !(is_number(&field) && string_at(profile, field.value, unit))))
            return false;
    return step == OTELI_WALK_END;
}

static bool read_mapping(struct flame_profile *profile, const struct oteli_field *message)
{
    struct flame_mapping *mapping = &profile->mappings[profile->mapping_count++];
    struct oteli_walk walk = oteli_walk_into(message);
    struct oteli_field field;
    enum oteli_walk_step step = OTELI_WALK_END;
    bool is_well = true;
    while (is_well && (step = oteli_walk_next(&walk, &field)) == OTELI_WALK_FIELD) {
        if (field.number > 6)
            continue;
        is_well = is_number(&field);
        if (field.number == 1)
            mapping->id = field.value;
        else if (field.number == 2)
            mapping->start = field.value;
        else if (field.number == 3)
            mapping->limit = field.value;
        else if (field.number == 4)
            mapping->offset = field.value;
        else if (field.number == 5)
            is_well = is_well && string_at(profile, field.value, &mapping->file);
        else if (field.number == 6)
            is_well = is_well && string_at(profile, field.value, &mapping->build_id);
    }
    return is_well && step == OTELI_WALK_END;
}

static bool read_function(struct flame_profile *profile, const struct oteli_field *message)
{
    struct flame_function *function = &profile->functions[profile->function_count++];
    struct oteli_walk walk = oteli_walk_into(message);
    struct oteli_field field;
    enum oteli_walk_step step = OTELI_WALK_END;
    while ((step = oteli_walk_next(&walk, &field)) == OTELI_WALK_FIELD) {
        if (field.number == 1 && is_number(&field))
            function->id = field.value;
        else if (field.number == 2 &&
                 !(is_number(&field) && string_at(profile, field.value, &function->name)))
            return false;
    }
    return step == OTELI_WALK_END;
}

/* Line{function_id = 1}; 0 or a function that is there. */
static bool read_line(struct flame_profile *profile, const struct oteli_field *message)
{
    struct oteli_walk walk = oteli_walk_into(message);
    struct oteli_field field;
    enum oteli_walk_step step = OTELI_WALK_END;
    const struct flame_function *function = NULL;
    while ((step = oteli_walk_next(&walk, &field)) == OTELI_WALK_FIELD) {
        if (field.number != 1 || !is_number(&field) || field.value == 0)
            continue;
        function = row_of(profile->functions, profile->function_count, sizeof *profile->functions,
                          field.value);
        if (function == NULL)
            return false;
    }
    if (function != NULL)
        profile->inlined[profile->inlined_count++] = function;
    return step == OTELI_WALK_END;
}

static bool read_location(struct flame_profile *profile, const struct oteli_field *message)
{
    struct flame_location *location = &profile->locations[profile->location_count++];
    struct oteli_walk walk = oteli_walk_into(message);
    struct oteli_field field;
    enum oteli_walk_step step = OTELI_WALK_END;
    location->first_function = profile->inlined_count;
    while ((step = oteli_walk_next(&walk, &field)) == OTELI_WALK_FIELD) {
        if (field.number == 1 && is_number(&field))
            location->id = field.value;
        else if (field.number == 2 && is_number(&field) && field.value != 0) {
            location->mapping = row_of(profile->mappings, profile->mapping_count,
                                       sizeof *profile->mappings, field.value);
            if (location->mapping == NULL)
                return false;
        } else if (field.number == 3 && is_number(&field))
            location->address = field.value;
        else if (field.number == LOCATION_LINE &&
                 !(is_message(&field) && read_line(profile, &field)))
            return false;
    }
    location->function_count = profile->inlined_count - location->first_function;
    return step == OTELI_WALK_END;
}

/* --- Passes --- */

static size_t lines_in(const struct oteli_field *message)
{
    struct oteli_walk walk = oteli_walk_into(message);
    struct oteli_field field;
    size_t count = 0;
    while (oteli_walk_next(&walk, &field) == OTELI_WALK_FIELD)
        count += field.number == LOCATION_LINE;
    return count;
}

static bool has_type(const struct oteli_field *field)
{
    switch (field->number) {
    case PROFILE_SAMPLE_TYPE:
    case PROFILE_SAMPLE:
    case PROFILE_MAPPING:
    case PROFILE_LOCATION:
    case PROFILE_FUNCTION:
    case PROFILE_STRING:
        return is_message(field);
    default:
        return true;
    }
}

struct counts {
    size_t strings, mappings, functions, locations, lines;
};

static const char *count(const struct flame_profile *profile, struct counts *counts)
{
    struct oteli_walk walk = {profile->bytes, profile->bytes + profile->length};
    struct oteli_field field;
    enum oteli_walk_step step = OTELI_WALK_END;
    while ((step = oteli_walk_next(&walk, &field)) == OTELI_WALK_FIELD) {
        if (!has_type(&field))
            return broken;
        counts->strings += field.number == PROFILE_STRING;
        counts->mappings += field.number == PROFILE_MAPPING;
        counts->functions += field.number == PROFILE_FUNCTION;
        counts->locations += field.number == PROFILE_LOCATION;
        if (field.number == PROFILE_LOCATION)
            counts->lines += lines_in(&field);
    }
    if (step != OTELI_WALK_END || counts->strings == 0)
        return broken;
    return counts->strings + counts->mappings + counts->functions + counts->locations +
                       counts->lines >
                   MOST_ROWS
               ? "has more than 16,777,216 texts and places"
               : NULL;
}

static const char *allocate(struct flame_profile *profile, const struct counts *counts)
{
    profile->strings = calloc(counts->strings + 1, sizeof *profile->strings);
    profile->mappings = calloc(counts->mappings + 1, sizeof *profile->mappings);
    profile->functions = calloc(counts->functions + 1, sizeof *profile->functions);
    profile->locations = calloc(counts->locations + 1, sizeof *profile->locations);
    profile->inlined = calloc(counts->lines + 1, sizeof *profile->inlined);
    if (profile->strings == NULL || profile->mappings == NULL || profile->functions == NULL ||
        profile->locations == NULL || profile->inlined == NULL)
        return no_memory;
    return NULL;
}

typedef bool read_row(struct flame_profile *profile, const struct oteli_field *message);

static bool read_string(struct flame_profile *profile, const struct oteli_field *message)
{
    profile->strings[profile->string_count++] = oteli_field_text(message);
    return true;
}

static const char *read_all(struct flame_profile *profile, uint32_t number, read_row *read)
{
    struct oteli_walk walk = {profile->bytes, profile->bytes + profile->length};
    struct oteli_field field;
    while (oteli_walk_next(&walk, &field) == OTELI_WALK_FIELD)
        if (field.number == number && !read(profile, &field))
            return dangling;
    return NULL;
}

static const char *read_numbers(struct flame_profile *profile)
{
    struct oteli_walk walk = {profile->bytes, profile->bytes + profile->length};
    struct oteli_field field;
    otel_slice chosen = {0};
    while (oteli_walk_next(&walk, &field) == OTELI_WALK_FIELD) {
        if (!is_number(&field))
            continue;
        if (field.number == PROFILE_TIME)
            profile->time_ns = (int64_t)field.value;
        else if (field.number == PROFILE_DURATION)
            profile->duration_ns = (int64_t)field.value;
        else if (field.number == PROFILE_DEFAULT_TYPE && !string_at(profile, field.value, &chosen))
            return dangling;
    }
    if (profile->value_count == 0)
        return "has no values";
    profile->default_value = profile->value_count - 1;
    for (size_t i = 0; chosen.length != 0 && i < profile->value_count; i++)
        if (profile->value_names[i].length == chosen.length &&
            memcmp(profile->value_names[i].data, chosen.data, chosen.length) == 0)
            profile->default_value = i;
    return NULL;
}

static const char *read_tables(struct flame_profile *profile)
{
    const char *fault = read_all(profile, PROFILE_STRING, read_string);
    if (fault == NULL)
        fault = read_all(profile, PROFILE_SAMPLE_TYPE, read_value_type);
    if (fault == NULL)
        fault = read_all(profile, PROFILE_MAPPING, read_mapping);
    if (fault == NULL)
        fault = read_all(profile, PROFILE_FUNCTION, read_function);
    if (fault != NULL)
        return fault;
    qsort(profile->mappings, profile->mapping_count, sizeof *profile->mappings, compare_rows);
    qsort(profile->functions, profile->function_count, sizeof *profile->functions, compare_rows);
    fault = read_all(profile, PROFILE_LOCATION, read_location);
    if (fault != NULL)
        return fault;
    qsort(profile->locations, profile->location_count, sizeof *profile->locations, compare_rows);
    return read_numbers(profile);
}

/* --- Samples --- */

struct filling {
    const struct flame_profile *profile;
    struct flame_sample *sample;
    size_t names; /* of frames, with those of inlined functions */
    const char *fault;
};

static bool add_frame(void *state, uint64_t id)
{
    struct filling *filling = state;
    const struct flame_profile *profile = filling->profile;
    const struct flame_location *location =
        row_of(profile->locations, profile->location_count, sizeof *profile->locations, id);
    if (location == NULL) {
        filling->fault = dangling;
        return false;
    }
    filling->names += location->function_count != 0 ? location->function_count : 1;
    if (filling->names > FLAME_FRAMES_MAX)
        filling->fault = too_long;
    else
        filling->sample->frames[filling->sample->depth++] = location;
    return filling->fault == NULL;
}

static bool add_value(void *state, uint64_t value)
{
    struct filling *filling = state;
    if (filling->sample->value_count == FLAME_VALUES_MAX)
        filling->fault = too_long;
    else
        filling->sample->values[filling->sample->value_count++] = (int64_t)value;
    return filling->fault == NULL;
}

static bool add_label(struct filling *filling, const struct oteli_field *message)
{
    if (!is_message(message))
        return false;
    if (filling->sample->label_count == FLAME_LABELS_MAX) {
        filling->fault = too_long;
        return false;
    }
    struct flame_label *label = &filling->sample->labels[filling->sample->label_count++];
    *label = (struct flame_label){0};
    struct oteli_walk walk = oteli_walk_into(message);
    struct oteli_field field;
    enum oteli_walk_step step = OTELI_WALK_END;
    bool is_well = true;
    while (is_well && (step = oteli_walk_next(&walk, &field)) == OTELI_WALK_FIELD) {
        is_well = is_number(&field);
        if (field.number == 1)
            is_well = is_well && string_at(filling->profile, field.value, &label->key);
        else if (field.number == 2)
            is_well = is_well && string_at(filling->profile, field.value, &label->text);
        else if (field.number == 3)
            label->number = (int64_t)field.value;
        else if (field.number == 4)
            is_well = is_well && string_at(filling->profile, field.value, &label->unit);
    }
    return is_well && step == OTELI_WALK_END;
}

static const char *fill_sample(const struct flame_profile *profile,
                               const struct oteli_field *message, struct flame_sample *sample)
{
    struct filling filling = {.profile = profile, .sample = sample};
    struct oteli_walk walk = oteli_walk_into(message);
    struct oteli_field field;
    enum oteli_walk_step step = OTELI_WALK_END;
    sample->depth = sample->value_count = sample->label_count = 0;
    bool is_well = true;
    while (is_well && (step = oteli_walk_next(&walk, &field)) == OTELI_WALK_FIELD) {
        if (field.number == 1)
            is_well = each_number(&field, add_frame, &filling);
        else if (field.number == 2)
            is_well = each_number(&field, add_value, &filling);
        else if (field.number == 3)
            is_well = add_label(&filling, &field);
    }
    if (!is_well)
        return filling.fault != NULL ? filling.fault : dangling;
    if (step != OTELI_WALK_END)
        return broken;
    return sample->value_count == profile->value_count
               ? NULL
               : "has a sample with more or fewer values than it has types of values";
}

static const char *check_samples(const struct flame_profile *profile)
{
    struct flame_sample *sample = malloc(sizeof *sample);
    if (sample == NULL)
        return no_memory;
    struct oteli_walk walk = {profile->bytes, profile->bytes + profile->length};
    struct oteli_field field;
    const char *fault = NULL;
    while (fault == NULL && oteli_walk_next(&walk, &field) == OTELI_WALK_FIELD)
        if (field.number == PROFILE_SAMPLE)
            fault = fill_sample(profile, &field, sample);
    free(sample);
    return fault;
}

static const char *unpack(struct flame_profile *profile, const void *bytes, size_t length)
{
    const uint8_t *magic = bytes;
    if (length >= 2 && magic[0] == 0x1f && magic[1] == 0x8b) {
        switch (
            view_inflate(VIEW_GZIP, bytes, length, MOST_BYTES, &profile->bytes, &profile->length)) {
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
    profile->bytes = malloc(length + 1);
    if (profile->bytes == NULL)
        return no_memory;
    memcpy(profile->bytes, bytes, length);
    profile->length = length;
    return NULL;
}

const char *flame_profile_read(struct flame_profile *profile, const void *bytes, size_t length)
{
    *profile = (struct flame_profile){0};
    if (length == 0)
        return "is empty";
    struct counts counts = {0};
    const char *fault = unpack(profile, bytes, length);
    if (fault == NULL)
        fault = count(profile, &counts);
    if (fault == NULL)
        fault = allocate(profile, &counts);
    if (fault == NULL)
        fault = read_tables(profile);
    if (fault == NULL)
        fault = check_samples(profile);
    if (fault != NULL)
        flame_profile_fini(profile);
    return fault;
}

void flame_profile_fini(struct flame_profile *profile)
{
    free(profile->bytes);
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
    struct oteli_walk walk = {profile->bytes, profile->bytes + profile->length};
    struct oteli_field field;
    while (oteli_walk_next(&walk, &field) == OTELI_WALK_FIELD)
        if (field.number == PROFILE_SAMPLE && fill_sample(profile, &field, sample) == NULL &&
            !take(state, sample))
            return false;
    return true;
}
