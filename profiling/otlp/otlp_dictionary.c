/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/otlp/otlp_dictionary.c - the contracts are in otlp_dictionary.h. One thread at a time;
 * owns the rows, borrows the profile. */
#include "profiling/otlp/otlp_dictionary.h"

#include "common/text/text.h"

#include <stdlib.h>
#include <string.h>

/* Fields of the messages, by their numbers in profiles.proto and common.proto. */
enum {
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

/* --- Tables --- */

bool oteli_otlp_table_init(struct oteli_interner *table)
{
    uint32_t index;
    oteli_interner_init(table, INT32_MAX, UINT32_MAX, 0, 0); /* numbers are int32 in OTLP */
    return oteli_interner_add(table, "", 0, &index);
}

bool oteli_otlp_dictionary_init(struct oteli_otlp_dictionary *dictionary,
                                const otel_profile *profile)
{
    const size_t count =
        profile->mapping_count + profile->location_count + profile->stack_count + 1;
    bool is_made = true;
    *dictionary = (struct oteli_otlp_dictionary){.profile = profile};
    for (size_t i = OTELI_OTLP_MAPPINGS; i < OTELI_OTLP_TABLES; i++)
        is_made &= oteli_otlp_table_init(&dictionary->tables[i]);
    dictionary->known = calloc(count, sizeof *dictionary->known);
    return is_made && dictionary->known != NULL;
}

void oteli_otlp_dictionary_fini(struct oteli_otlp_dictionary *dictionary)
{
    for (size_t i = 0; i < OTELI_OTLP_TABLES; i++)
        oteli_interner_fini(&dictionary->tables[i]);
    free(dictionary->known);
    free(dictionary->row.bytes);
}

static uint32_t add(struct oteli_otlp_dictionary *dictionary, enum oteli_otlp_rows table,
                    const void *bytes, size_t length)
{
    uint32_t index = 0;
    dictionary->row.has_failed |=
        !oteli_interner_add(&dictionary->tables[table], bytes, length, &index);
    return index;
}

/* The row that is put together becomes one of this table, and the next one begins. */
static uint32_t add_row(struct oteli_otlp_dictionary *dictionary, enum oteli_otlp_rows table)
{
    const size_t length = dictionary->row.used;
    dictionary->row.used = 0;
    return add(dictionary, table, dictionary->row.bytes, length);
}

/* --- Texts and attributes --- */

uint32_t oteli_otlp_dictionary_text(struct oteli_otlp_dictionary *dictionary, const char *text)
{
    return add(dictionary, OTELI_OTLP_STRINGS, text, strlen(text));
}

/* A value that has one field more to come. */
static size_t begin_attribute(struct oteli_otlp_dictionary *dictionary, const char *key)
{
    const uint32_t text = oteli_otlp_dictionary_text(dictionary, key);
    oteli_protobuf_number(&dictionary->row, ATTRIBUTE_KEY, text);
    return oteli_protobuf_begin(&dictionary->row, ATTRIBUTE_VALUE);
}

uint32_t oteli_otlp_dictionary_attribute(struct oteli_otlp_dictionary *dictionary, const char *key,
                                         const char *value)
{
    const size_t begun = begin_attribute(dictionary, key);
    oteli_protobuf_bytes(&dictionary->row, VALUE_STRING, value, strlen(value));
    oteli_protobuf_end(&dictionary->row, begun);
    return add_row(dictionary, OTELI_OTLP_ATTRIBUTES);
}

uint32_t oteli_otlp_dictionary_number(struct oteli_otlp_dictionary *dictionary, const char *key,
                                      uint64_t value)
{
    const size_t begun = begin_attribute(dictionary, key);
    oteli_protobuf_number(&dictionary->row, VALUE_INT, value);
    oteli_protobuf_end(&dictionary->row, begun);
    return add_row(dictionary, OTELI_OTLP_ATTRIBUTES);
}

/* --- Stacks, and what they are made of --- */

/* What says which build a mapping is of; 0: nothing does. */
static uint32_t build_of(struct oteli_otlp_dictionary *dictionary,
                         const struct oteli_profile_mapping *mapping)
{
    char hex[2 * sizeof mapping->build_id + 1];
    if (mapping->build_id_length != 0)
        return oteli_otlp_dictionary_attribute(
            dictionary, "process.executable.build_id.gnu",
            oteli_hex_put(hex, mapping->build_id, mapping->build_id_length));
    if (mapping->has_htlhash)
        return oteli_otlp_dictionary_attribute(
            dictionary, "process.executable.build_id.htlhash",
            oteli_hex_put(hex, mapping->htlhash, sizeof mapping->htlhash));
    return 0;
}

/* Each must say which build it is of: one that cannot is left out. */
static uint32_t put_mapping(struct oteli_otlp_dictionary *dictionary, uint32_t index)
{
    const struct oteli_profile_mapping *mapping = &dictionary->profile->mappings[index];
    struct oteli_protobuf_writer *row = &dictionary->row;
    const uint32_t build = build_of(dictionary, mapping);
    if (build == 0)
        return 0;
    const char *path = dictionary->profile->strings[mapping->path];
    oteli_protobuf_number(row, MAPPING_START, mapping->start);
    oteli_protobuf_number(row, MAPPING_LIMIT, mapping->limit);
    oteli_protobuf_number(row, MAPPING_OFFSET, mapping->file_offset);
    oteli_protobuf_number(row, MAPPING_FILE, oteli_otlp_dictionary_text(dictionary, path));
    const size_t begun = oteli_protobuf_begin(row, MAPPING_ATTRIBUTES);
    oteli_protobuf_packed(row, build);
    oteli_protobuf_end(row, begun);
    return add_row(dictionary, OTELI_OTLP_MAPPINGS);
}

/* There is one name, which is the system's as well: what is mangled stays so. */
static uint32_t put_function(struct oteli_otlp_dictionary *dictionary, const char *text)
{
    const uint32_t name = oteli_otlp_dictionary_text(dictionary, text);
    oteli_protobuf_number(&dictionary->row, FUNCTION_NAME, name);
    oteli_protobuf_number(&dictionary->row, FUNCTION_SYSTEM_NAME, name);
    return add_row(dictionary, OTELI_OTLP_FUNCTIONS);
}

static uint32_t put_location(struct oteli_otlp_dictionary *dictionary, uint32_t index)
{
    const struct oteli_profile_location *location = &dictionary->profile->locations[index];
    const char *name = dictionary->profile->strings[location->name];
    struct oteli_protobuf_writer *row = &dictionary->row;
    uint32_t *mapping = &dictionary->known[location->mapping];
    if (*mapping == 0)
        *mapping = 1 + (location->mapping != 0 ? put_mapping(dictionary, location->mapping) : 0);
    const uint32_t native =
        oteli_otlp_dictionary_attribute(dictionary, "profile.frame.type", "native");
    const uint32_t function = name[0] != '\0' ? put_function(dictionary, name) : 0;
    oteli_protobuf_number(row, LOCATION_MAPPING, *mapping - 1);
    oteli_protobuf_number(row, LOCATION_ADDRESS, location->address);
    if (function != 0) {
        const size_t line = oteli_protobuf_begin(row, LOCATION_LINES);
        oteli_protobuf_number(row, LINE_FUNCTION, function);
        oteli_protobuf_end(row, line);
    }
    const size_t begun = oteli_protobuf_begin(row, LOCATION_ATTRIBUTES);
    oteli_protobuf_packed(row, native);
    oteli_protobuf_end(row, begun);
    return add_row(dictionary, OTELI_OTLP_LOCATIONS);
}

/* The row of the location that stands at this place of a stack. */
static uint32_t location_at(struct oteli_otlp_dictionary *dictionary, uint32_t place)
{
    const uint32_t index = dictionary->profile->location_of_stack[place];
    uint32_t *known = &dictionary->known[dictionary->profile->mapping_count + index];
    if (*known == 0)
        *known = 1 + put_location(dictionary, index);
    return *known - 1;
}

static uint32_t put_stack(struct oteli_otlp_dictionary *dictionary,
                          const struct oteli_profile_range *stack)
{
    if (stack->count == 0)
        return 0;
    for (uint32_t i = 0; i < stack->count; i++)
        (void)location_at(dictionary, stack->first + i); /* makes the rows that are missing */
    const size_t begun = oteli_protobuf_begin(&dictionary->row, STACK_LOCATIONS);
    for (uint32_t i = 0; i < stack->count; i++)
        oteli_protobuf_packed(&dictionary->row, location_at(dictionary, stack->first + i));
    oteli_protobuf_end(&dictionary->row, begun);
    return add_row(dictionary, OTELI_OTLP_STACKS);
}

uint32_t oteli_otlp_dictionary_stack(struct oteli_otlp_dictionary *dictionary, uint32_t stack)
{
    const otel_profile *profile = dictionary->profile;
    uint32_t *known = &dictionary->known[profile->mapping_count + profile->location_count + stack];
    if (*known == 0)
        *known = 1 + put_stack(dictionary, &profile->stacks[stack]);
    return *known - 1;
}

uint32_t oteli_otlp_dictionary_link(struct oteli_otlp_dictionary *dictionary, uint32_t link)
{
    if (link == 0)
        return 0;
    const struct oteli_profile_link *from = &dictionary->profile->links[link];
    oteli_protobuf_bytes(&dictionary->row, LINK_TRACE, from->trace_id, sizeof from->trace_id);
    oteli_protobuf_bytes(&dictionary->row, LINK_SPAN, from->span_id, sizeof from->span_id);
    return add_row(dictionary, OTELI_OTLP_LINKS);
}
