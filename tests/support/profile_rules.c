/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/profile_rules.c - the contracts are in profile_rules.h. References are found by the
 * names of fields (stack_index, filename_strindex), in whatever message they are. */
#include "tests/support/profile_rules.h"

#include "common/text/utf8.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(type, message, offset) (*(type const *)((const char *)(message) + (offset)))

enum table { MAPPINGS, LOCATIONS, FUNCTIONS, LINKS, ATTRIBUTES, STACKS, STRINGS, TABLES };

static const char *const names[TABLES] = {
    "mapping_table",   "location_table", "function_table", "link_table",
    "attribute_table", "stack_table",    "string_table",
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

/* --- References --- */

/* Of mapping_table for "mapping_index" and "mapping_indices"; TABLES: of none. */
static enum table table_of(const char *field)
{
    if (strstr(field, "_strindex") != NULL)
        return STRINGS;
    for (enum table table = 0; table < TABLES; table++) {
        const size_t length = strlen(names[table]) - strlen("_table");
        if (strncmp(field, names[table], length) == 0 && strncmp(field + length, "_ind", 4) == 0)
            return table;
    }
    return TABLES;
}

/* All are in range, and no two attributes of a row have one key. */
static void refer(struct check *check, const char *from, const char *field, size_t count,
                  const int32_t *indices)
{
    const enum table table = table_of(field);
    for (size_t i = 0; table < TABLES && i < count; i++) {
        if (indices[i] < 0 || (size_t)indices[i] >= check->sizes[table]) {
            broke(check, "%s.%s.range", from, field);
            return;
        }
        check->used[table][indices[i]] = true;
        for (size_t j = 0; table == ATTRIBUTES && j < i; j++) {
            if (check->dictionary->attribute_table[indices[j]]->key_strindex ==
                check->dictionary->attribute_table[indices[i]]->key_strindex)
                broke(check, "%s.%s.key", from, field);
        }
    }
}

static void follow(struct check *check, const ProtobufCMessage *message);

static void follow_field(struct check *check, const ProtobufCMessage *message,
                         const ProtobufCFieldDescriptor *field)
{
    const char *from = message->descriptor->short_name;
    const bool is_list = field->label == PROTOBUF_C_LABEL_REPEATED;
    const size_t count = is_list ? FIELD(size_t, message, field->quantifier_offset) : 1;
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
        FIELD(uint32_t, message, field->quantifier_offset) != field->id)
        return;
    if (field->type == PROTOBUF_C_TYPE_INT32) {
        const int32_t *one = &FIELD(int32_t, message, field->offset);
        refer(check, from, field->name, count,
              is_list ? FIELD(const int32_t *, message, field->offset) : one);
    } else if (field->type == PROTOBUF_C_TYPE_MESSAGE && is_list) {
        for (size_t i = 0; i < count; i++)
            follow(check, FIELD(ProtobufCMessage **, message, field->offset)[i]);
    } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        follow(check, FIELD(const ProtobufCMessage *, message, field->offset));
    }
}

/* What this message, and those in it, refer to; NULL: nothing. */
static void follow(struct check *check, const ProtobufCMessage *message)
{
    for (unsigned i = 0; message != NULL && i < message->descriptor->n_fields; i++)
        follow_field(check, message, &message->descriptor->fields[i]);
}

/* --- Profiles --- */

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

static void check_profile(struct check *check, const profiles_profile *profile)
{
    static const uint8_t zero[16];
    if (profile->sample_type == NULL)
        broke(check, "Profile.sample_type");
    if (profile->profile_id.len != sizeof zero ||
        memcmp(profile->profile_id.data, zero, sizeof zero) == 0)
        broke(check, "Profile.profile_id");
    for (size_t i = 0; i < profile->n_samples; i++) {
        const profiles_sample *sample = profile->samples[i];
        if (sample->n_values != 1 || sample->n_timestamps_unix_nano != 0)
            broke(check, "Sample.values"); /* one for all its times */
        for (size_t j = 0; j < i; j++) {
            if (are_same(sample, profile->samples[j]))
                broke(check, "Sample.identity");
        }
    }
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

static bool says_its_build(const profiles_dictionary *dictionary,
                           const Opentelemetry__Proto__Profiles__V1development__Mapping *mapping)
{
    static const char *const keys[] = {"process.executable.build_id.gnu",
                                       "process.executable.build_id.go",
                                       "process.executable.build_id.htlhash"};
    for (size_t i = 0; i < mapping->n_attribute_indices; i++) {
        const int32_t key =
            dictionary->attribute_table[mapping->attribute_indices[i]]->key_strindex;
        for (size_t j = 0; j < sizeof keys / sizeof *keys; j++) {
            if (strcmp(dictionary->string_table[key], keys[j]) == 0)
                return true;
        }
    }
    return false;
}

/* What is true of rows beyond the first. All that they refer to is in range. */
static void check_meanings(struct check *check)
{
    const profiles_dictionary *dictionary = check->dictionary;
    for (size_t i = 1; i < check->sizes[MAPPINGS]; i++) {
        const Opentelemetry__Proto__Profiles__V1development__Mapping *mapping =
            dictionary->mapping_table[i];
        if (mapping->memory_start >= mapping->memory_limit)
            broke(check, "Mapping.limit");
        if (!says_its_build(dictionary, mapping))
            broke(check, "Mapping.build_id");
    }
    for (size_t i = 1; i < check->sizes[FUNCTIONS]; i++) {
        if (dictionary->function_table[i]->name_strindex == 0)
            broke(check, "Function.nameless");
    }
    for (size_t i = 1; i < check->sizes[LINKS]; i++) {
        if (dictionary->link_table[i]->trace_id.len != 16 ||
            dictionary->link_table[i]->span_id.len != 8)
            broke(check, "Link.length");
    }
    for (size_t i = 1; i < check->sizes[ATTRIBUTES]; i++) {
        const Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit *attribute =
            dictionary->attribute_table[i];
        if (attribute->key_strindex == 0 || attribute->value == NULL ||
            attribute->value->value_case ==
                OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE__NOT_SET)
            broke(check, "KeyValueAndUnit.empty");
    }
}

struct row {
    uint8_t *bytes;
    size_t length;
};

static struct row row_at(const struct check *check, enum table table, size_t index)
{
    const char *string = table == STRINGS ? check->dictionary->string_table[index] : NULL;
    struct row row = {
        .length = string != NULL ? strlen(string)
                                 : protobuf_c_message_get_packed_size(check->rows[table][index])};
    row.bytes = malloc(row.length + 1);
    if (row.bytes == NULL)
        abort();
    if (string != NULL)
        memcpy(row.bytes, string, row.length);
    else
        protobuf_c_message_pack(check->rows[table][index], row.bytes);
    return row;
}

/* What is true of the rows of every table: the first is zero, no two are equal, and each but the
 * first is referred to. Rows that are equal refer to the same rows, as those are no duplicates. */
static void check_rows(struct check *check, enum table table)
{
    const size_t count = check->sizes[table];
    struct row *rows = calloc(count + 1, sizeof *rows);
    if (rows == NULL)
        abort();
    if (count == 0)
        broke(check, "%s.empty", names[table]);
    for (size_t i = 0; i < count; i++) {
        rows[i] = row_at(check, table, i);
        if (i == 0 && rows[i].length != 0)
            broke(check, "%s.zero", names[table]);
        if (i != 0 && !check->used[table][i])
            broke(check, "%s.orphan", names[table]);
        if (table == STRINGS && !oteli_utf8_is_valid((char *)rows[i].bytes, rows[i].length))
            broke(check, "string_table.utf8");
        for (size_t j = 0; j < i; j++) {
            if (rows[i].length == rows[j].length &&
                memcmp(rows[i].bytes, rows[j].bytes, rows[i].length) == 0)
                broke(check, "%s.duplicate", names[table]);
        }
    }
    for (size_t i = 0; i < count; i++)
        free(rows[i].bytes);
    free(rows);
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
    const ProtobufCMessageDescriptor *descriptor = dictionary->base.descriptor;
    for (enum table table = 0; table < TABLES; table++) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field_by_name(descriptor, names[table]);
        check.sizes[table] = FIELD(size_t, dictionary, field->quantifier_offset);
        check.rows[table] = FIELD(ProtobufCMessage **, dictionary, field->offset);
        check.used[table] = calloc(check.sizes[table] + 1, sizeof *check.used[table]);
        if (check.used[table] == NULL)
            abort();
    }
    follow(&check, &request->base);
    if (check.count == 0)
        check_meanings(&check);
    check_profiles(&check, request);
    for (enum table table = 0; table < TABLES; table++) {
        check_rows(&check, table);
        free(check.used[table]);
    }
    return check.count;
}
