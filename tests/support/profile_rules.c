/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/profile_rules.c - the contracts are in profile_rules.h. Any thread; owns nothing
 * between calls. */
#include "tests/support/profile_rules.h"

#include "common/utf8.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum table { MAPPINGS, LOCATIONS, FUNCTIONS, LINKS, STRINGS, ATTRIBUTES, STACKS, TABLES };

static const char *const names[TABLES] = {
    "mapping_table", "location_table",  "function_table", "link_table",
    "string_table",  "attribute_table", "stack_table",
};

struct check {
    const profiles_dictionary *dictionary;
    size_t sizes[TABLES];
    ProtobufCMessage **rows[TABLES]; /* but for strings */
    bool *used[TABLES];              /* by anything */
    char *broken;
    size_t count;
};

__attribute__((format(printf, 2, 3))) static void broke(struct check *check, const char *format,
                                                        ...)
{
    char name[96];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    check->count++;
    const size_t used = strlen(check->broken);
    if (strstr(check->broken, name) == NULL && used + strlen(name) + 2 < PROFILE_RULES_SIZE)
        snprintf(check->broken + used, PROFILE_RULES_SIZE - used, "%s%s", used != 0 ? " " : "",
                 name);
}

/* A reference to a row of a table. */
static bool refer(struct check *check, enum table table, int32_t index, const char *from)
{
    if (index < 0 || (size_t)index >= check->sizes[table]) {
        broke(check, "%s.range", from);
        return false;
    }
    check->used[table][index] = true;
    return true;
}

/* References to attributes: in range, and each key once. */
static void refer_attributes(struct check *check, size_t count, const int32_t *indices,
                             const char *from)
{
    const profiles_dictionary *dictionary = check->dictionary;
    char name[64];
    snprintf(name, sizeof name, "%s.attribute_indices", from);
    for (size_t i = 0; i < count; i++) {
        if (!refer(check, ATTRIBUTES, indices[i], name))
            continue;
        for (size_t j = 0; j < i; j++) {
            if (indices[j] >= 0 && (size_t)indices[j] < check->sizes[ATTRIBUTES] &&
                dictionary->attribute_table[indices[j]]->key_strindex ==
                    dictionary->attribute_table[indices[i]]->key_strindex)
                broke(check, "%s.key", name);
        }
    }
}

static size_t pack(const ProtobufCMessage *message, uint8_t **bytes)
{
    const size_t size = protobuf_c_message_get_packed_size(message);
    *bytes = malloc(size + 1);
    if (*bytes == NULL)
        abort();
    return protobuf_c_message_pack(message, *bytes);
}

/* --- Profiles --- */

static void check_type(struct check *check,
                       const Opentelemetry__Proto__Profiles__V1development__ValueType *type,
                       const char *name)
{
    char from[64];
    if (type == NULL)
        return;
    snprintf(from, sizeof from, "%s.type_strindex", name);
    refer(check, STRINGS, type->type_strindex, from);
    snprintf(from, sizeof from, "%s.unit_strindex", name);
    refer(check, STRINGS, type->unit_strindex, from);
}

enum shape { SHAPE_NONE, SHAPE_VALUES, SHAPE_TIMES, SHAPE_BOTH };

static enum shape check_shape(struct check *check, const profiles_sample *sample)
{
    const size_t values = sample->n_values;
    const size_t times = sample->n_timestamps_unix_nano;
    if (values == 0 && times == 0)
        broke(check, "sample.empty");
    if (values != 0 && times != 0 && values != times)
        broke(check, "sample.lengths");
    if (values > 1 && times == 0)
        broke(check, "sample.several_values");
    if (values != 0)
        return times != 0 ? SHAPE_BOTH : SHAPE_VALUES;
    return times != 0 ? SHAPE_TIMES : SHAPE_NONE;
}

/* Whether every attribute of the one is one of the other. */
static bool has_all(const profiles_sample *sample, const profiles_sample *of)
{
    for (size_t i = 0; i < of->n_attribute_indices; i++) {
        bool found = false;
        for (size_t j = 0; j < sample->n_attribute_indices; j++)
            found |= sample->attribute_indices[j] == of->attribute_indices[i];
        if (!found)
            return false;
    }
    return true;
}

static bool are_same(const profiles_sample *one, const profiles_sample *other)
{
    return one->stack_index == other->stack_index && one->link_index == other->link_index &&
           has_all(one, other) && has_all(other, one);
}

static void check_sample(struct check *check, const profiles_profile *profile, size_t index)
{
    const profiles_sample *sample = profile->samples[index];
    const uint64_t start = profile->time_unix_nano;
    refer(check, STACKS, sample->stack_index, "sample.stack_index");
    refer(check, LINKS, sample->link_index, "sample.link_index");
    refer_attributes(check, sample->n_attribute_indices, sample->attribute_indices, "sample");
    for (size_t i = 0; i < sample->n_timestamps_unix_nano; i++) {
        if (sample->timestamps_unix_nano[i] < start ||
            sample->timestamps_unix_nano[i] - start >= profile->duration_nano)
            broke(check, "sample.timestamps");
    }
    if (check_shape(check, sample) != check_shape(check, profile->samples[0]))
        broke(check, "sample.shape");
    for (size_t i = 0; i < index; i++) {
        if (are_same(sample, profile->samples[i]))
            broke(check, "sample.identity");
    }
}

static void check_profile(struct check *check, const profiles_profile *profile)
{
    static const uint8_t zero[16];
    check_type(check, profile->sample_type, "sample_type");
    check_type(check, profile->period_type, "period_type");
    if (profile->sample_type == NULL)
        broke(check, "sample_type.missing");
    refer_attributes(check, profile->n_attribute_indices, profile->attribute_indices, "profile");
    for (size_t i = 0; i < profile->n_samples; i++)
        check_sample(check, profile, i);
    if (profile->profile_id.len != 0 && (profile->profile_id.len != sizeof zero ||
                                         memcmp(profile->profile_id.data, zero, sizeof zero) == 0))
        broke(check, "profile_id");
    if ((profile->original_payload.len != 0) != (profile->original_payload_format[0] != '\0'))
        broke(check, "original_payload");
}

static void check_profiles(struct check *check, const profiles_request *request)
{
    if (request->n_resource_profiles == 0)
        broke(check, "resource_profiles.empty");
    for (size_t i = 0; i < request->n_resource_profiles; i++) {
        const Opentelemetry__Proto__Profiles__V1development__ResourceProfiles *resource =
            request->resource_profiles[i];
        if (resource->n_scope_profiles == 0)
            broke(check, "scope_profiles.empty");
        for (size_t j = 0; j < resource->n_scope_profiles; j++) {
            if (resource->scope_profiles[j]->n_profiles == 0)
                broke(check, "profiles.empty");
            for (size_t k = 0; k < resource->scope_profiles[j]->n_profiles; k++)
                check_profile(check, resource->scope_profiles[j]->profiles[k]);
        }
    }
}

/* --- The dictionary --- */

static bool says_its_build(const struct check *check,
                           const Opentelemetry__Proto__Profiles__V1development__Mapping *mapping)
{
    static const char prefix[] = "process.executable.build_id.";
    const profiles_dictionary *dictionary = check->dictionary;
    for (size_t i = 0; i < mapping->n_attribute_indices; i++) {
        const int32_t index = mapping->attribute_indices[i];
        if (index < 0 || (size_t)index >= check->sizes[ATTRIBUTES])
            continue;
        const int32_t key = dictionary->attribute_table[index]->key_strindex;
        if (key < 0 || (size_t)key >= check->sizes[STRINGS] ||
            strncmp(dictionary->string_table[key], prefix, sizeof prefix - 1) != 0)
            continue;
        const char *kind = dictionary->string_table[key] + sizeof prefix - 1;
        if (strcmp(kind, "gnu") == 0 || strcmp(kind, "go") == 0 || strcmp(kind, "htlhash") == 0)
            return true;
    }
    return false;
}

static void check_mappings(struct check *check)
{
    for (size_t i = 0; i < check->sizes[MAPPINGS]; i++) {
        const Opentelemetry__Proto__Profiles__V1development__Mapping *mapping =
            check->dictionary->mapping_table[i];
        refer(check, STRINGS, mapping->filename_strindex, "mapping.filename_strindex");
        refer_attributes(check, mapping->n_attribute_indices, mapping->attribute_indices,
                         "mapping");
        if ((mapping->memory_start != 0 || mapping->memory_limit != 0) &&
            mapping->memory_start >= mapping->memory_limit)
            broke(check, "mapping.limit");
        if (i != 0 && !says_its_build(check, mapping))
            broke(check, "mapping.build_id");
    }
}

static void check_locations(struct check *check)
{
    for (size_t i = 0; i < check->sizes[LOCATIONS]; i++) {
        const Opentelemetry__Proto__Profiles__V1development__Location *location =
            check->dictionary->location_table[i];
        refer(check, MAPPINGS, location->mapping_index, "location.mapping_index");
        refer_attributes(check, location->n_attribute_indices, location->attribute_indices,
                         "location");
        for (size_t j = 0; j < location->n_lines; j++) {
            refer(check, FUNCTIONS, location->lines[j]->function_index, "line.function_index");
            if (location->lines[j]->line < 0 || location->lines[j]->column < 0)
                broke(check, "line.negative");
        }
    }
}

static void check_functions(struct check *check)
{
    for (size_t i = 0; i < check->sizes[FUNCTIONS]; i++) {
        const Opentelemetry__Proto__Profiles__V1development__Function *function =
            check->dictionary->function_table[i];
        refer(check, STRINGS, function->name_strindex, "function.name_strindex");
        refer(check, STRINGS, function->system_name_strindex, "function.system_name_strindex");
        refer(check, STRINGS, function->filename_strindex, "function.filename_strindex");
        if (function->start_line < 0)
            broke(check, "function.negative");
        if (i != 0 && function->name_strindex == 0 && function->system_name_strindex == 0 &&
            function->filename_strindex == 0)
            broke(check, "function.nameless");
    }
}

static void check_links(struct check *check)
{
    for (size_t i = 1; i < check->sizes[LINKS]; i++) {
        if (check->dictionary->link_table[i]->trace_id.len != 16 ||
            check->dictionary->link_table[i]->span_id.len != 8)
            broke(check, "link_table.length");
    }
}

static void check_attributes(struct check *check)
{
    for (size_t i = 0; i < check->sizes[ATTRIBUTES]; i++) {
        const Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit *attribute =
            check->dictionary->attribute_table[i];
        refer(check, STRINGS, attribute->key_strindex, "attribute.key_strindex");
        refer(check, STRINGS, attribute->unit_strindex, "attribute.unit_strindex");
        if (i != 0 && attribute->key_strindex == 0)
            broke(check, "attribute.keyless");
        if (i != 0 && (attribute->value == NULL ||
                       attribute->value->value_case ==
                           OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE__NOT_SET))
            broke(check, "attribute.valueless");
    }
}

static void check_stacks(struct check *check)
{
    for (size_t i = 0; i < check->sizes[STACKS]; i++) {
        const Opentelemetry__Proto__Profiles__V1development__Stack *stack =
            check->dictionary->stack_table[i];
        for (size_t j = 0; j < stack->n_location_indices; j++)
            refer(check, LOCATIONS, stack->location_indices[j], "stack.location_indices");
    }
}

static void check_strings(struct check *check)
{
    char **strings = check->dictionary->string_table;
    for (size_t i = 0; i < check->sizes[STRINGS]; i++) {
        if (!oteli_utf8_is_valid(strings[i], strlen(strings[i])))
            broke(check, "string_table.utf8");
        if (i == 0 && strings[i][0] != '\0')
            broke(check, "string_table.zero");
        for (size_t j = 0; j < i; j++) {
            if (strcmp(strings[i], strings[j]) == 0)
                broke(check, "string_table.duplicate");
        }
    }
}

/* What is true of the rows of every table: the first is zero, and no two are equal. Rows that are
 * equal refer to the same rows, as long as those are no duplicates. */
static void check_rows(struct check *check, enum table table)
{
    const size_t count = check->sizes[table];
    struct {
        uint8_t *bytes;
        size_t length;
    } *packed = calloc(count + 1, sizeof *packed);
    if (packed == NULL)
        abort();
    for (size_t i = 0; i < count; i++) {
        packed[i].length = pack(check->rows[table][i], &packed[i].bytes);
        if (i == 0 && packed[i].length != 0)
            broke(check, "%s.zero", names[table]);
        for (size_t j = 0; j < i; j++) {
            if (packed[i].length == packed[j].length &&
                memcmp(packed[i].bytes, packed[j].bytes, packed[i].length) == 0)
                broke(check, "%s.duplicate", names[table]);
        }
    }
    for (size_t i = 0; i < count; i++)
        free(packed[i].bytes);
    free(packed);
}

static void check_tables(struct check *check)
{
    for (enum table table = 0; table < TABLES; table++) {
        if (check->sizes[table] == 0)
            broke(check, "%s.empty", names[table]);
        else if (table != STRINGS)
            check_rows(check, table);
        for (size_t i = 1; i < check->sizes[table]; i++) {
            if (!check->used[table][i])
                broke(check, "%s.orphan", names[table]);
        }
    }
}

static void take(struct check *check, enum table table, size_t size, void *rows)
{
    check->sizes[table] = size;
    check->rows[table] = rows;
    check->used[table] = calloc(size + 1, sizeof *check->used[table]);
    if (check->used[table] == NULL)
        abort();
}

size_t profile_rules_broken(const profiles_request *request, char broken[PROFILE_RULES_SIZE])
{
    const profiles_dictionary *dictionary = request->dictionary;
    struct check check = {.dictionary = dictionary, .broken = broken};
    broken[0] = '\0';
    if (dictionary == NULL) {
        broke(&check, "dictionary.missing");
        return check.count;
    }
    take(&check, MAPPINGS, dictionary->n_mapping_table, dictionary->mapping_table);
    take(&check, LOCATIONS, dictionary->n_location_table, dictionary->location_table);
    take(&check, FUNCTIONS, dictionary->n_function_table, dictionary->function_table);
    take(&check, LINKS, dictionary->n_link_table, dictionary->link_table);
    take(&check, STRINGS, dictionary->n_string_table, NULL);
    take(&check, ATTRIBUTES, dictionary->n_attribute_table, dictionary->attribute_table);
    take(&check, STACKS, dictionary->n_stack_table, dictionary->stack_table);
    check_profiles(&check, request);
    check_mappings(&check);
    check_locations(&check);
    check_functions(&check);
    check_links(&check);
    check_attributes(&check);
    check_stacks(&check);
    check_strings(&check);
    check_tables(&check);
    for (enum table table = 0; table < TABLES; table++)
        free(check.used[table]);
    return check.count;
}
