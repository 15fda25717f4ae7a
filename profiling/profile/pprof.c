/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profile/pprof.c - a profile as the bytes of a pprof file. Any thread; owns what it
 * makes until it gives it away.
 *
 * Ids of mappings and locations are their indices, from 1, and those of functions the strings of
 * their names. Who reads the file finds functions and lines by path, address and build id; where
 * the profile has names of functions they are in it, and then a reader does not look for itself.
 *
 * Source: google/pprof, proto/profile.proto. */
#include "common/wire.h"
#include "profiling/profile/gzip.h"
#include "profiling/profile/interner.h"
#include "profiling/profile/profile_model.h"

#include <stdlib.h>

enum { /* numbers of fields */
       PROFILE_SAMPLE_TYPE = 1,
       PROFILE_SAMPLE = 2,
       PROFILE_MAPPING = 3,
       PROFILE_LOCATION = 4,
       PROFILE_FUNCTION = 5,
       PROFILE_STRING = 6,
       PROFILE_TIME = 9,
       PROFILE_DURATION = 10,
       PROFILE_PERIOD_TYPE = 11,
       PROFILE_PERIOD = 12,
       PROFILE_DEFAULT_SAMPLE_TYPE = 14,
       VALUE_TYPE = 1,
       VALUE_UNIT = 2,
       SAMPLE_LOCATIONS = 1,
       SAMPLE_VALUES = 2,
       SAMPLE_LABEL = 3,
       LABEL_KEY = 1,
       LABEL_TEXT = 2,
       LABEL_NUMBER = 3,
       MAPPING_ID = 1,
       MAPPING_START = 2,
       MAPPING_LIMIT = 3,
       MAPPING_OFFSET = 4,
       MAPPING_FILE = 5,
       MAPPING_BUILD_ID = 6,
       MAPPING_HAS_FUNCTIONS = 7,
       LOCATION_ID = 1,
       LOCATION_MAPPING = 2,
       LOCATION_ADDRESS = 3,
       LOCATION_LINE = 4,
       LINE_FUNCTION = 1,
       FUNCTION_ID = 1,
       FUNCTION_NAME = 2,
       FUNCTION_SYSTEM_NAME = 3
};

enum {
    FIELD_MAX = 1 + OTELI_VARINT_MAX,
    LEAST_ROOM = 4096,
    ID_TEXT = 40,
    STRINGS_MAX = 1024 * 1024,
    STRING_BYTES_MAX = 64 * 1024 * 1024
};

/* What each style calls things; NULL: it has no word for it, and leaves it out. */
struct names {
    const char *trace;
    const char *span;
    const char *root;
    const char *route; /* instead of http.route */
    const char *thread;
    const char *thread_name;
    bool has_decimal_ids;
    bool needs_root; /* the span stands for its local root where that is not known */
};

static const struct names names_of_styles[] = {
    [OTEL_PPROF_OTEL] = {"trace_id", "span_id", "local_root_span_id", "http.route", "thread.id",
                         "thread.name", false, false},
    [OTEL_PPROF_DATADOG] = {NULL, "span id", "local root span id", "trace endpoint", "thread id",
                            "thread name", true, false},
    [OTEL_PPROF_PYROSCOPE] = {NULL, NULL, "profile_id", "span_name", "thread.id", "thread.name",
                              false, true}};

struct out {
    uint8_t *bytes;
    size_t used;
    size_t room;
};

struct encoder {
    const otel_profile *profile;
    const struct names *names;
    struct oteli_interner strings;
    struct out file;
    struct out message; /* that is being made */
    bool has_failed;    /* no memory */
};

/* ---- pieces ------------------------------------------------------------------------------- */

/* Where `length` bytes can be written; NULL: no memory, and nothing that follows matters. */
static uint8_t *reserve(struct encoder *encoder, struct out *out, size_t length)
{
    if (encoder->has_failed)
        return NULL;
    if (length > out->room - out->used) {
        size_t room = out->room != 0 ? out->room : LEAST_ROOM;
        while (room - out->used < length)
            room *= 2;
        uint8_t *moved = realloc(out->bytes, room);
        if (moved == NULL) {
            encoder->has_failed = true;
            return NULL;
        }
        out->bytes = moved;
        out->room = room;
    }
    return out->bytes + out->used;
}

static void put_number(struct encoder *encoder, struct out *out, uint32_t field, uint64_t number)
{
    uint8_t *at = reserve(encoder, out, FIELD_MAX);
    if (at != NULL && number != 0)
        out->used = (size_t)(oteli_put_varint_field(at, field, number) - out->bytes);
}

static void put_bytes(struct encoder *encoder, struct out *out, uint32_t field, const void *bytes,
                      size_t length)
{
    uint8_t *at = reserve(encoder, out, 2 * FIELD_MAX + length);
    if (at != NULL)
        out->used = (size_t)(oteli_put_bytes_field(at, field, bytes, length) - out->bytes);
}

/* The message that was made, as a field of the profile. */
static void put_message(struct encoder *encoder, uint32_t field)
{
    put_bytes(encoder, &encoder->file, field, encoder->message.bytes, encoder->message.used);
    encoder->message.used = 0;
}

static uint32_t string_of(struct encoder *encoder, const char *text)
{
    uint32_t index = 0;
    if (!oteli_interner_add(&encoder->strings, text, strlen(text) + 1, &index))
        encoder->has_failed = true;
    return index;
}

/* Also used for ids: as a text of digits, in the base that the style has. */
static uint32_t string_of_bytes(struct encoder *encoder, const uint8_t *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    char text[2 * 20 + 1];
    for (size_t i = 0; i < length; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * length] = '\0';
    return string_of(encoder, text);
}

static uint32_t string_of_span(struct encoder *encoder, const uint8_t id[8])
{
    char text[ID_TEXT];
    char *at = text + sizeof text - 1;
    uint64_t number = 0;
    if (!encoder->names->has_decimal_ids)
        return string_of_bytes(encoder, id, 8);
    for (unsigned i = 0; i < 8; i++)
        number = number << 8 | id[i];
    *at = '\0';
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    return string_of(encoder, at);
}

static void put_type(struct encoder *encoder, uint32_t field, const char *type, const char *unit)
{
    put_number(encoder, &encoder->message, VALUE_TYPE, string_of(encoder, type));
    put_number(encoder, &encoder->message, VALUE_UNIT, string_of(encoder, unit));
    put_message(encoder, field);
}

/* ---- labels of a sample ------------------------------------------------------------------- */

static void put_label(struct encoder *encoder, const char *key, uint32_t field, uint64_t value)
{
    uint8_t label[2 * FIELD_MAX];
    if (key == NULL || value == 0)
        return;
    uint8_t *at = oteli_put_varint_field(label, LABEL_KEY, string_of(encoder, key));
    at = oteli_put_varint_field(at, field, value);
    put_bytes(encoder, &encoder->message, SAMPLE_LABEL, label, (size_t)(at - label));
}

static bool is_zero(const uint8_t *id, size_t size)
{
    uint8_t seen = 0;
    for (size_t i = 0; i < size; i++)
        seen |= id[i];
    return seen == 0;
}

static void put_link(struct encoder *encoder, const struct oteli_profile_link *link)
{
    const struct names *names = encoder->names;
    const bool has_root = !is_zero(link->root_id, sizeof link->root_id);
    if (names->trace != NULL)
        put_label(encoder, names->trace, LABEL_TEXT,
                  string_of_bytes(encoder, link->trace_id, sizeof link->trace_id));
    if (names->span != NULL)
        put_label(encoder, names->span, LABEL_TEXT, string_of_span(encoder, link->span_id));
    if (has_root || names->needs_root)
        put_label(encoder, names->root, LABEL_TEXT,
                  string_of_span(encoder, has_root ? link->root_id : link->span_id));
}

/* Whether it would be taken for one of those that are not the program's. */
static bool is_taken(const struct names *names, const char *key)
{
    const char *const taken[] = {names->trace, names->span,   names->root,
                                 names->route, names->thread, names->thread_name};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (taken[i] != NULL && strcmp(taken[i], key) == 0)
            return true;
    return false;
}

static void put_pairs(struct encoder *encoder, const struct oteli_profile_label_set *set)
{
    const otel_profile *profile = encoder->profile;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct oteli_profile_pair *pair = &profile->pairs[set->first + i];
        const char *key = profile->strings[pair->key];
        if (strcmp(key, "http.route") == 0)
            key = encoder->names->route;
        else if (is_taken(encoder->names, key))
            continue;
        put_label(encoder, key, LABEL_TEXT, string_of(encoder, profile->strings[pair->value]));
    }
}

static void put_thread(struct encoder *encoder, const struct oteli_profile_thread *thread)
{
    put_label(encoder, encoder->names->thread, LABEL_NUMBER, (uint64_t)thread->id);
    put_label(encoder, encoder->names->thread_name, LABEL_TEXT,
              string_of(encoder, encoder->profile->strings[thread->name]));
}

/* ---- tables ------------------------------------------------------------------------------- */

static void put_locations_of(struct encoder *encoder, const struct oteli_profile_stack *stack)
{
    const uint32_t *of_stack = encoder->profile->location_of_stack + stack->first;
    size_t length = 0;
    for (uint32_t i = 0; i < stack->count; i++)
        length += oteli_varint_size((uint64_t)of_stack[i] + 1);
    uint8_t *at = reserve(encoder, &encoder->message, 2 * FIELD_MAX + length);
    if (at == NULL || length == 0)
        return;
    at = oteli_put_bytes_head(at, SAMPLE_LOCATIONS, length);
    for (uint32_t i = 0; i < stack->count; i++)
        at = oteli_put_varint(at, (uint64_t)of_stack[i] + 1);
    encoder->message.used = (size_t)(at - encoder->message.bytes);
}

static void put_samples(struct encoder *encoder)
{
    const otel_profile *profile = encoder->profile;
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct oteli_profile_sample *sample = &profile->samples[i];
        uint8_t values[2 * OTELI_VARINT_MAX];
        uint8_t *end = oteli_put_varint(oteli_put_varint(values, sample->count), sample->cpu_ns);
        put_locations_of(encoder, &profile->stacks[sample->stack]);
        put_bytes(encoder, &encoder->message, SAMPLE_VALUES, values, (size_t)(end - values));
        if (sample->link != 0)
            put_link(encoder, &profile->links[sample->link]);
        put_pairs(encoder, &profile->label_sets[sample->label_set]);
        put_thread(encoder, &profile->threads[sample->thread]);
        put_message(encoder, PROFILE_SAMPLE);
    }
}

/* Whether each mapping has functions that are named. NULL: no memory. */
static bool *find_named(struct encoder *encoder)
{
    const otel_profile *profile = encoder->profile;
    bool *is_named = calloc(profile->mapping_count + 1, sizeof *is_named);
    encoder->has_failed |= is_named == NULL;
    for (size_t i = 0; is_named != NULL && i < profile->location_count; i++)
        is_named[profile->locations[i].mapping] |= profile->locations[i].name != 0;
    return is_named;
}

static void put_mappings(struct encoder *encoder)
{
    struct out *message = &encoder->message;
    bool *is_named = find_named(encoder);
    if (is_named == NULL)
        return;
    for (size_t i = 1; i < encoder->profile->mapping_count; i++) {
        const struct oteli_profile_mapping *mapping = &encoder->profile->mappings[i];
        put_number(encoder, message, MAPPING_ID, i);
        put_number(encoder, message, MAPPING_START, mapping->start);
        put_number(encoder, message, MAPPING_LIMIT, mapping->limit);
        put_number(encoder, message, MAPPING_OFFSET, mapping->file_offset);
        put_number(encoder, message, MAPPING_FILE,
                   string_of(encoder, encoder->profile->strings[mapping->path]));
        if (mapping->build_id_length != 0)
            put_number(encoder, message, MAPPING_BUILD_ID,
                       string_of_bytes(encoder, mapping->build_id, mapping->build_id_length));
        put_number(encoder, message, MAPPING_HAS_FUNCTIONS, is_named[i]);
        put_message(encoder, PROFILE_MAPPING);
    }
    free(is_named);
}

static void put_line(struct encoder *encoder, uint32_t function)
{
    uint8_t line[FIELD_MAX];
    if (function == 0)
        return;
    const uint8_t *end = oteli_put_varint_field(line, LINE_FUNCTION, function);
    put_bytes(encoder, &encoder->message, LOCATION_LINE, line, (size_t)(end - line));
}

static void put_locations(struct encoder *encoder)
{
    struct out *message = &encoder->message;
    for (size_t i = 0; i < encoder->profile->location_count; i++) {
        const struct oteli_profile_location *location = &encoder->profile->locations[i];
        put_number(encoder, message, LOCATION_ID, i + 1);
        put_number(encoder, message, LOCATION_MAPPING, location->mapping);
        put_number(encoder, message, LOCATION_ADDRESS, location->address);
        put_line(encoder, location->name);
        put_message(encoder, PROFILE_LOCATION);
    }
}

/* Each once. */
static void put_functions(struct encoder *encoder)
{
    const otel_profile *profile = encoder->profile;
    struct out *message = &encoder->message;
    bool *is_there = calloc(profile->string_count + 1, sizeof *is_there);
    encoder->has_failed |= is_there == NULL;
    for (size_t i = 0; is_there != NULL && i < profile->location_count; i++) {
        const uint32_t id = profile->locations[i].name;
        if (id == 0 || is_there[id])
            continue;
        const uint32_t name = string_of(encoder, profile->strings[id]);
        is_there[id] = true;
        put_number(encoder, message, FUNCTION_ID, id);
        put_number(encoder, message, FUNCTION_NAME, name);
        put_number(encoder, message, FUNCTION_SYSTEM_NAME, name);
        put_message(encoder, PROFILE_FUNCTION);
    }
    free(is_there);
}

static void put_strings(struct encoder *encoder)
{
    for (uint32_t i = 0; i < encoder->strings.count; i++) {
        const char *text = oteli_interner_at(&encoder->strings, i);
        put_bytes(encoder, &encoder->file, PROFILE_STRING, text, strlen(text));
    }
}

static void put_profile(struct encoder *encoder)
{
    struct out *file = &encoder->file;
    const otel_profile *profile = encoder->profile;
    (void)string_of(encoder, "");
    put_type(encoder, PROFILE_SAMPLE_TYPE, "samples", "count");
    put_type(encoder, PROFILE_SAMPLE_TYPE, "cpu", "nanoseconds");
    put_samples(encoder);
    put_mappings(encoder);
    put_locations(encoder);
    put_functions(encoder);
    put_number(encoder, file, PROFILE_TIME, profile->start_unix_ns);
    put_number(encoder, file, PROFILE_DURATION, profile->duration_ns);
    put_type(encoder, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
    put_number(encoder, file, PROFILE_PERIOD, profile->period_ns);
    put_number(encoder, file, PROFILE_DEFAULT_SAMPLE_TYPE, string_of(encoder, "cpu"));
    put_strings(encoder);
}

otel_status otel_profile_encode_pprof(const otel_profile *profile, otel_pprof_style style,
                                      void **bytes, size_t *length)
{
    if (profile == NULL || bytes == NULL || length == NULL)
        return OTEL_ERROR_INVALID_ARGUMENT;
    const size_t styles = sizeof names_of_styles / sizeof names_of_styles[0];
    struct encoder encoder = {
        .profile = profile, .names = &names_of_styles[(size_t)style < styles ? (size_t)style : 0]};
    oteli_interner_init(&encoder.strings, STRINGS_MAX, STRING_BYTES_MAX, 0, 0);
    put_profile(&encoder);
    const bool is_made =
        !encoder.has_failed && oteli_gzip(encoder.file.bytes, encoder.file.used, bytes, length);
    oteli_interner_fini(&encoder.strings);
    free(encoder.file.bytes);
    free(encoder.message.bytes);
    return is_made ? OTEL_OK : OTEL_ERROR_NO_MEMORY;
}
