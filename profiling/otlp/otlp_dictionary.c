/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/otlp/otlp_dictionary.c - the contracts are in otlp_dictionary.h. One thread at a time;
 * owns the rows, borrows the profile. */
#include "profiling/otlp/otlp_dictionary.h"

#include "common/text/utf8.h"
#include "common/wire.h"

#include <stdio.h>
#include <stdlib.h>

/* Fields of the messages, by their numbers in profiles.proto and common.proto. */
enum {
    DICTIONARY_MAPPINGS = 1,
    DICTIONARY_LOCATIONS,
    DICTIONARY_FUNCTIONS,
    DICTIONARY_LINKS,
    DICTIONARY_STRINGS,
    DICTIONARY_ATTRIBUTES,
    DICTIONARY_STACKS,
    MAPPING_START = 1,
    MAPPING_LIMIT,
    MAPPING_OFFSET,
    MAPPING_FILE,
    MAPPING_ATTRIBUTES,
    LOCATION_MAPPING = 1,
    LOCATION_ADDRESS,
    LOCATION_LINES,
    LOCATION_ATTRIBUTES,
    LINE_FUNCTION = 1,
    FUNCTION_NAME = 1,
    FUNCTION_SYSTEM_NAME,
    LINK_TRACE = 1,
    LINK_SPAN,
    STACK_LOCATIONS = 1,
    ATTRIBUTE_KEY = 1,
    ATTRIBUTE_VALUE,
    VALUE_STRING = 1,
    VALUE_INT = 3
};

enum { ROW_ROOM = 64, HEX_MAX = 2 * 20 + 1, FIRST_SCRATCH = 1024 };

/* --- Memory --- */

static uint8_t *scratch(struct oteli_otlp_dictionary *dictionary, size_t needed)
{
    if (needed <= dictionary->scratch_room)
        return dictionary->scratch;
    size_t room = FIRST_SCRATCH;
    while (room < needed)
        room *= 2;
    uint8_t *larger = realloc(dictionary->scratch, room);
    if (larger == NULL) {
        dictionary->failed = true;
        return NULL;
    }
    dictionary->scratch = larger;
    dictionary->scratch_room = room;
    return larger;
}

bool oteli_otlp_dictionary_begin(struct oteli_otlp_dictionary *dictionary,
                                 const otel_profile *profile)
{
    const size_t count =
        profile->mapping_count + profile->location_count + profile->stack_count + 1;
    dictionary->profile = profile;
    dictionary->failed = false;
    if (count > dictionary->known_room) {
        free(dictionary->known);
        dictionary->known = calloc(count, sizeof *dictionary->known);
        dictionary->known_room = dictionary->known != NULL ? count : 0;
        if (dictionary->known == NULL)
            return false;
    } else {
        memset(dictionary->known, 0, count * sizeof *dictionary->known);
    }
    oteli_otlp_table_begin(&dictionary->mappings);
    oteli_otlp_table_begin(&dictionary->locations);
    oteli_otlp_table_begin(&dictionary->functions);
    oteli_otlp_table_begin(&dictionary->links);
    oteli_otlp_table_begin(&dictionary->strings);
    oteli_otlp_table_begin(&dictionary->attributes);
    oteli_otlp_table_begin(&dictionary->stacks);
    return scratch(dictionary, FIRST_SCRATCH) != NULL;
}

void oteli_otlp_dictionary_fini(struct oteli_otlp_dictionary *dictionary)
{
    oteli_otlp_table_fini(&dictionary->mappings);
    oteli_otlp_table_fini(&dictionary->locations);
    oteli_otlp_table_fini(&dictionary->functions);
    oteli_otlp_table_fini(&dictionary->links);
    oteli_otlp_table_fini(&dictionary->strings);
    oteli_otlp_table_fini(&dictionary->attributes);
    oteli_otlp_table_fini(&dictionary->stacks);
    free(dictionary->known);
    free(dictionary->scratch);
    *dictionary = (struct oteli_otlp_dictionary){.failed = false};
}

static uint32_t put(struct oteli_otlp_dictionary *dictionary, struct oteli_otlp_table *table,
                    const void *bytes, size_t length)
{
    const uint32_t row = oteli_otlp_table_put(table, bytes, length);
    dictionary->failed |= table->failed;
    return row;
}

/* What is zero is not written, as in every message of proto3. */
static uint8_t *put_number(uint8_t *at, uint32_t field, uint64_t value)
{
    return value != 0 ? oteli_put_varint_field(at, field, value) : at;
}

/* --- Texts and attributes --- */

uint32_t oteli_otlp_dictionary_text(struct oteli_otlp_dictionary *dictionary, const char *text)
{
    const size_t length = strlen(text);
    if (oteli_utf8_is_valid(text, length))
        return put(dictionary, &dictionary->strings, text, length);
    const size_t size = oteli_utf8_replace(text, length, NULL);
    char *clean = (char *)scratch(dictionary, size);
    if (clean == NULL)
        return 0;
    oteli_utf8_replace(text, length, clean);
    return put(dictionary, &dictionary->strings, clean, size);
}

static uint32_t put_text_attribute(struct oteli_otlp_dictionary *dictionary, uint32_t key,
                                   const char *text)
{
    const size_t length = strlen(text);
    const size_t size = oteli_utf8_replace(text, length, NULL);
    const size_t value_size = oteli_bytes_field_size(VALUE_STRING, size);
    uint8_t *row = scratch(dictionary, size + ROW_ROOM);
    if (row == NULL)
        return 0;
    uint8_t *at = oteli_put_varint_field(row, ATTRIBUTE_KEY, key);
    at = oteli_put_bytes_head(at, ATTRIBUTE_VALUE, value_size);
    at = oteli_put_bytes_head(at, VALUE_STRING, size);
    oteli_utf8_replace(text, length, (char *)at);
    return put(dictionary, &dictionary->attributes, row, (size_t)(at - row) + size);
}

static uint32_t put_number_attribute(struct oteli_otlp_dictionary *dictionary, uint32_t key,
                                     uint64_t value)
{
    uint8_t row[ROW_ROOM];
    uint8_t *at = oteli_put_varint_field(row, ATTRIBUTE_KEY, key);
    at = oteli_put_bytes_head(at, ATTRIBUTE_VALUE, oteli_varint_field_size(VALUE_INT, value));
    at = oteli_put_varint_field(at, VALUE_INT, value);
    return put(dictionary, &dictionary->attributes, row, (size_t)(at - row));
}

static uint32_t put_hex_attribute(struct oteli_otlp_dictionary *dictionary, const char *key,
                                  const uint8_t *bytes, size_t length)
{
    char hex[HEX_MAX];
    for (size_t i = 0; i < length; i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    return put_text_attribute(dictionary, oteli_otlp_dictionary_text(dictionary, key), hex);
}

struct gathering {
    uint32_t *attributes;
    uint32_t keys[OTELI_SAMPLE_ATTRIBUTES];
    size_t count;
};

static bool is_new_key(const struct gathering *gathering, uint32_t key)
{
    for (size_t i = 0; i < gathering->count; i++) {
        if (gathering->keys[i] == key)
            return false;
    }
    return true;
}

/* In ascending order. */
static void gather(struct gathering *gathering, uint32_t key, uint32_t attribute)
{
    size_t at = gathering->count;
    gathering->keys[gathering->count++] = key;
    for (; at != 0 && gathering->attributes[at - 1] > attribute; at--)
        gathering->attributes[at] = gathering->attributes[at - 1];
    gathering->attributes[at] = attribute;
}

size_t oteli_otlp_dictionary_attributes(struct oteli_otlp_dictionary *dictionary,
                                        const struct oteli_profile_sample *sample,
                                        uint32_t attributes[OTELI_SAMPLE_ATTRIBUTES])
{
    const otel_profile *profile = dictionary->profile;
    const struct oteli_profile_thread *thread = &profile->threads[sample->thread];
    const struct oteli_profile_label_set *labels = &profile->label_sets[sample->label_set];
    struct gathering gathering = {.attributes = attributes};
    uint32_t key = oteli_otlp_dictionary_text(dictionary, "thread.id");
    gather(&gathering, key, put_number_attribute(dictionary, key, (uint64_t)thread->id));
    if (thread->name != 0) {
        key = oteli_otlp_dictionary_text(dictionary, "thread.name");
        gather(&gathering, key,
               put_text_attribute(dictionary, key, profile->strings[thread->name]));
    }
    for (uint32_t i = 0; i < labels->count; i++) {
        const struct oteli_profile_pair *pair = &profile->pairs[labels->first + i];
        const char *name = profile->strings[pair->key];
        if (name[0] == '\0' || gathering.count == OTELI_SAMPLE_ATTRIBUTES)
            continue;
        key = oteli_otlp_dictionary_text(dictionary, name);
        if (is_new_key(&gathering, key))
            gather(&gathering, key,
                   put_text_attribute(dictionary, key, profile->strings[pair->value]));
    }
    return gathering.count;
}

/* --- Stacks, and what they are made of --- */

/* Each must say which build it is of: one that cannot is left out. */
static uint32_t put_mapping(struct oteli_otlp_dictionary *dictionary, uint32_t index)
{
    const struct oteli_profile_mapping *mapping = &dictionary->profile->mappings[index];
    uint32_t ids[2];
    size_t count = 0;
    if (mapping->build_id_length != 0)
        ids[count++] = put_hex_attribute(dictionary, "process.executable.build_id.gnu",
                                         mapping->build_id, mapping->build_id_length);
    if (mapping->has_htlhash)
        ids[count++] = put_hex_attribute(dictionary, "process.executable.build_id.htlhash",
                                         mapping->htlhash, sizeof mapping->htlhash);
    if (count == 0)
        return 0;
    const uint32_t file =
        oteli_otlp_dictionary_text(dictionary, dictionary->profile->strings[mapping->path]);
    uint8_t row[ROW_ROOM];
    uint8_t *at = put_number(row, MAPPING_START, mapping->start);
    at = put_number(at, MAPPING_LIMIT, mapping->limit);
    at = put_number(at, MAPPING_OFFSET, mapping->file_offset);
    at = put_number(at, MAPPING_FILE, file);
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += oteli_varint_size(ids[i]);
    at = oteli_put_bytes_head(at, MAPPING_ATTRIBUTES, size);
    for (size_t i = 0; i < count; i++)
        at = oteli_put_varint(at, ids[i]);
    return put(dictionary, &dictionary->mappings, row, (size_t)(at - row));
}

/* There is one name, which is the system's as well: what is mangled stays so. */
static uint32_t put_function(struct oteli_otlp_dictionary *dictionary, const char *text)
{
    const uint32_t name = oteli_otlp_dictionary_text(dictionary, text);
    uint8_t row[ROW_ROOM];
    uint8_t *at = put_number(row, FUNCTION_NAME, name);
    at = put_number(at, FUNCTION_SYSTEM_NAME, name);
    return put(dictionary, &dictionary->functions, row, (size_t)(at - row));
}

static uint8_t *put_line(uint8_t *at, uint32_t function)
{
    if (function == 0)
        return at;
    at = oteli_put_bytes_head(at, LOCATION_LINES, oteli_varint_field_size(LINE_FUNCTION, function));
    return oteli_put_varint_field(at, LINE_FUNCTION, function);
}

static uint32_t put_location(struct oteli_otlp_dictionary *dictionary, uint32_t index)
{
    const struct oteli_profile_location *location = &dictionary->profile->locations[index];
    uint32_t *known = &dictionary->known[location->mapping];
    if (*known == 0)
        *known = 1 + (location->mapping != 0 ? put_mapping(dictionary, location->mapping) : 0);
    const uint32_t key = oteli_otlp_dictionary_text(dictionary, "profile.frame.type");
    const uint32_t native = put_text_attribute(dictionary, key, "native");
    const char *name = dictionary->profile->strings[location->name];
    const uint32_t function = name[0] != '\0' ? put_function(dictionary, name) : 0;
    uint8_t row[ROW_ROOM];
    uint8_t *at = put_number(row, LOCATION_MAPPING, *known - 1);
    at = put_number(at, LOCATION_ADDRESS, location->address);
    at = put_line(at, function);
    at = oteli_put_bytes_head(at, LOCATION_ATTRIBUTES, oteli_varint_size(native));
    at = oteli_put_varint(at, native);
    return put(dictionary, &dictionary->locations, row, (size_t)(at - row));
}

/* The row of the number in the profile that stands at this place of a stack. */
static uint32_t location_at(struct oteli_otlp_dictionary *dictionary, uint32_t place)
{
    const uint32_t index = dictionary->profile->location_of_stack[place];
    uint32_t *known = &dictionary->known[dictionary->profile->mapping_count + index];
    if (*known == 0)
        *known = 1 + put_location(dictionary, index);
    return *known - 1;
}

static uint32_t put_stack(struct oteli_otlp_dictionary *dictionary, uint32_t index)
{
    const struct oteli_profile_stack *stack = &dictionary->profile->stacks[index];
    if (stack->count == 0)
        return 0;
    size_t size = 0; /* which makes the rows that are missing, too */
    for (uint32_t i = 0; i < stack->count; i++)
        size += oteli_varint_size(location_at(dictionary, stack->first + i));
    uint8_t *row = scratch(dictionary, size + ROW_ROOM);
    if (row == NULL)
        return 0;
    uint8_t *at = oteli_put_bytes_head(row, STACK_LOCATIONS, size);
    for (uint32_t i = 0; i < stack->count; i++)
        at = oteli_put_varint(at, location_at(dictionary, stack->first + i));
    return put(dictionary, &dictionary->stacks, row, (size_t)(at - row));
}

uint32_t oteli_otlp_dictionary_stack(struct oteli_otlp_dictionary *dictionary, uint32_t stack)
{
    const otel_profile *profile = dictionary->profile;
    uint32_t *known = &dictionary->known[profile->mapping_count + profile->location_count + stack];
    if (*known == 0)
        *known = 1 + put_stack(dictionary, stack);
    return *known - 1;
}

uint32_t oteli_otlp_dictionary_link(struct oteli_otlp_dictionary *dictionary, uint32_t link)
{
    if (link == 0)
        return 0;
    const struct oteli_profile_link *from = &dictionary->profile->links[link];
    uint8_t row[ROW_ROOM];
    uint8_t *at = oteli_put_bytes_field(row, LINK_TRACE, from->trace_id, sizeof from->trace_id);
    at = oteli_put_bytes_field(at, LINK_SPAN, from->span_id, sizeof from->span_id);
    return put(dictionary, &dictionary->links, row, (size_t)(at - row));
}

/* --- All of it --- */

size_t oteli_otlp_dictionary_size(const struct oteli_otlp_dictionary *dictionary)
{
    return oteli_otlp_table_size(&dictionary->mappings, DICTIONARY_MAPPINGS) +
           oteli_otlp_table_size(&dictionary->locations, DICTIONARY_LOCATIONS) +
           oteli_otlp_table_size(&dictionary->functions, DICTIONARY_FUNCTIONS) +
           oteli_otlp_table_size(&dictionary->links, DICTIONARY_LINKS) +
           oteli_otlp_table_size(&dictionary->strings, DICTIONARY_STRINGS) +
           oteli_otlp_table_size(&dictionary->attributes, DICTIONARY_ATTRIBUTES) +
           oteli_otlp_table_size(&dictionary->stacks, DICTIONARY_STACKS);
}

uint8_t *oteli_otlp_dictionary_write(uint8_t *at, const struct oteli_otlp_dictionary *dictionary)
{
    at = oteli_otlp_table_write(at, &dictionary->mappings, DICTIONARY_MAPPINGS);
    at = oteli_otlp_table_write(at, &dictionary->locations, DICTIONARY_LOCATIONS);
    at = oteli_otlp_table_write(at, &dictionary->functions, DICTIONARY_FUNCTIONS);
    at = oteli_otlp_table_write(at, &dictionary->links, DICTIONARY_LINKS);
    at = oteli_otlp_table_write(at, &dictionary->strings, DICTIONARY_STRINGS);
    at = oteli_otlp_table_write(at, &dictionary->attributes, DICTIONARY_ATTRIBUTES);
    return oteli_otlp_table_write(at, &dictionary->stacks, DICTIONARY_STACKS);
}
