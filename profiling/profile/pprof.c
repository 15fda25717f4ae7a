/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profile/pprof.c - a profile as the bytes of a pprof file. Any thread; owns what it
 * makes until it gives it away.
 *
 * Ids of mappings and locations are their indices, from 1, and those of functions the strings of
 * their names. A reader of the file finds functions and lines by path, address and build id; where
 * the profile has names of functions they are in it, and then a reader does not look for itself.
 *
 * Source: google/pprof, proto/profile.proto. */
#include "common/text/text.h"
#include "profiling/labels/labels.h"
#include "profiling/profile/profile_model.h"
#include "profiling/profile/protobuf_writer.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

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

enum { ID_TEXT = 40, STRINGS_MAX = 1024 * 1024, STRING_BYTES_MAX = 64 * 1024 * 1024 };

enum {
    GZIP_WINDOW = 15 + 16, /* zlib's way to ask for gzip's head and tail */
    MEMORY = 8,
    LEVEL = 1
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

struct encoder {
    const otel_profile *profile;
    const struct names *names;
    struct oteli_interner strings;
    struct oteli_protobuf_writer file;
};

/* ---- pieces ------------------------------------------------------------------------------- */

static uint32_t string_of(struct encoder *encoder, const char *text)
{
    uint32_t index = 0;
    if (!oteli_interner_add(&encoder->strings, text, strlen(text), &index))
        encoder->file.has_failed = true;
    return index;
}

static uint32_t string_of_bytes(struct encoder *encoder, const uint8_t *bytes, size_t length)
{
    char text[2 * 20 + 1];
    return string_of(encoder, oteli_hex_put(text, bytes, length));
}

/* An id as digits, in the base that the style has. */
static uint32_t string_of_span(struct encoder *encoder, const uint8_t id[8])
{
    char text[ID_TEXT];
    uint64_t number = 0;
    if (!encoder->names->has_decimal_ids)
        return string_of_bytes(encoder, id, 8);
    for (unsigned i = 0; i < 8; i++)
        number = number << 8 | id[i];
    snprintf(text, sizeof text, "%" PRIu64, number);
    return string_of(encoder, text);
}

static void put_type(struct encoder *encoder, uint32_t field, const char *type, const char *unit)
{
    const size_t begun = oteli_protobuf_begin(&encoder->file, field);
    oteli_protobuf_number(&encoder->file, VALUE_TYPE, string_of(encoder, type));
    oteli_protobuf_number(&encoder->file, VALUE_UNIT, string_of(encoder, unit));
    oteli_protobuf_end(&encoder->file, begun);
}

/* ---- labels of a sample ------------------------------------------------------------------- */

static void put_label(struct encoder *encoder, const char *key, uint32_t field, uint64_t value)
{
    if (key == NULL || value == 0)
        return;
    const size_t begun = oteli_protobuf_begin(&encoder->file, SAMPLE_LABEL);
    oteli_protobuf_number(&encoder->file, LABEL_KEY, string_of(encoder, key));
    oteli_protobuf_number(&encoder->file, field, value);
    oteli_protobuf_end(&encoder->file, begun);
}

static void put_link(struct encoder *encoder, const struct oteli_span_ids *link)
{
    const struct names *names = encoder->names;
    const bool has_root = !oteli_is_no_id(link->root_id);
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

static void put_pairs(struct encoder *encoder, uint32_t set)
{
    const otel_profile *profile = encoder->profile;
    const struct oteli_profile_pair *pairs = oteli_interner_at(&profile->label_sets, set);
    const uint32_t count = oteli_interner_elements(&profile->label_sets, set, sizeof *pairs);
    for (uint32_t i = 0; i < count; i++) {
        const char *key = oteli_profile_text(profile, pairs[i].key);
        if (strcmp(key, "http.route") == 0)
            key = encoder->names->route;
        else if (is_taken(encoder->names, key))
            continue;
        put_label(encoder, key, LABEL_TEXT,
                  string_of(encoder, oteli_profile_text(profile, pairs[i].value)));
    }
}

static void put_thread(struct encoder *encoder, const struct oteli_profile_thread *thread)
{
    put_label(encoder, encoder->names->thread, LABEL_NUMBER, (uint64_t)thread->id);
    put_label(encoder, encoder->names->thread_name, LABEL_TEXT,
              string_of(encoder, oteli_profile_text(encoder->profile, thread->name)));
}

/* ---- tables ------------------------------------------------------------------------------- */

static void put_stack(struct encoder *encoder, uint32_t stack)
{
    const struct oteli_interner *stacks = &encoder->profile->stacks;
    const uint32_t *locations = oteli_interner_at(stacks, stack);
    const uint32_t count = oteli_interner_elements(stacks, stack, sizeof *locations);
    if (count == 0)
        return;
    const size_t begun = oteli_protobuf_begin(&encoder->file, SAMPLE_LOCATIONS);
    for (uint32_t i = 0; i < count; i++)
        oteli_protobuf_packed(&encoder->file, (uint64_t)locations[i] + 1);
    oteli_protobuf_end(&encoder->file, begun);
}

static void put_samples(struct encoder *encoder)
{
    const otel_profile *profile = encoder->profile;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const struct oteli_profile_sample *sample =
            oteli_interner_at(&profile->samples, profile->first_sample + i);
        const size_t begun = oteli_protobuf_begin(&encoder->file, PROFILE_SAMPLE);
        put_stack(encoder, sample->stack);
        const size_t values = oteli_protobuf_begin(&encoder->file, SAMPLE_VALUES);
        oteli_protobuf_packed(&encoder->file, sample->count);
        oteli_protobuf_packed(&encoder->file, sample->cpu_ns);
        oteli_protobuf_end(&encoder->file, values);
        if (sample->link != 0)
            put_link(encoder, oteli_interner_at(&profile->links, sample->link));
        put_pairs(encoder, sample->label_set);
        put_thread(encoder, oteli_interner_at(&profile->threads, sample->thread));
        oteli_protobuf_end(&encoder->file, begun);
    }
}

static void put_mappings(struct encoder *encoder)
{
    const otel_profile *profile = encoder->profile;
    struct oteli_protobuf_writer *file = &encoder->file;
    bool *is_named = calloc(profile->mappings.count + 1, sizeof *is_named);
    if (is_named == NULL) {
        file->has_failed = true;
        return;
    }
    for (uint32_t i = 0; i < profile->locations.count; i++) {
        const struct oteli_profile_location *location = oteli_interner_at(&profile->locations, i);
        is_named[location->mapping] |= location->name != 0;
    }
    for (uint32_t i = 1; i < profile->mappings.count; i++) {
        const struct oteli_profile_mapping *mapping = oteli_interner_at(&profile->mappings, i);
        const struct oteli_elf_identity *identity = &mapping->identity;
        const size_t begun = oteli_protobuf_begin(file, PROFILE_MAPPING);
        oteli_protobuf_number(file, MAPPING_ID, i);
        oteli_protobuf_number(file, MAPPING_START, mapping->start);
        oteli_protobuf_number(file, MAPPING_LIMIT, mapping->limit);
        oteli_protobuf_number(file, MAPPING_OFFSET, mapping->file_offset);
        oteli_protobuf_number(file, MAPPING_FILE,
                              string_of(encoder, oteli_profile_text(profile, mapping->path)));
        if (identity->build_id_length != 0)
            oteli_protobuf_number(
                file, MAPPING_BUILD_ID,
                string_of_bytes(encoder, identity->build_id, identity->build_id_length));
        oteli_protobuf_number(file, MAPPING_HAS_FUNCTIONS, is_named[i]);
        oteli_protobuf_end(file, begun);
    }
    free(is_named);
}

static void put_locations(struct encoder *encoder)
{
    struct oteli_protobuf_writer *file = &encoder->file;
    for (uint32_t i = 0; i < encoder->profile->locations.count; i++) {
        const struct oteli_profile_location *location =
            oteli_interner_at(&encoder->profile->locations, i);
        const size_t begun = oteli_protobuf_begin(file, PROFILE_LOCATION);
        oteli_protobuf_number(file, LOCATION_ID, (uint64_t)i + 1);
        oteli_protobuf_number(file, LOCATION_MAPPING, location->mapping);
        oteli_protobuf_number(file, LOCATION_ADDRESS, location->address);
        if (location->name != 0) {
            const size_t line = oteli_protobuf_begin(file, LOCATION_LINE);
            oteli_protobuf_number(file, LINE_FUNCTION, location->name);
            oteli_protobuf_end(file, line);
        }
        oteli_protobuf_end(file, begun);
    }
}

/* Each once. */
static void put_functions(struct encoder *encoder)
{
    const otel_profile *profile = encoder->profile;
    struct oteli_protobuf_writer *file = &encoder->file;
    bool *is_there = calloc(profile->strings.count + 1, sizeof *is_there);
    file->has_failed |= is_there == NULL;
    for (uint32_t i = 0; is_there != NULL && i < profile->locations.count; i++) {
        const struct oteli_profile_location *location = oteli_interner_at(&profile->locations, i);
        const uint32_t id = location->name;
        if (id == 0 || is_there[id])
            continue;
        const uint32_t name = string_of(encoder, oteli_profile_text(profile, id));
        const size_t begun = oteli_protobuf_begin(file, PROFILE_FUNCTION);
        is_there[id] = true;
        oteli_protobuf_number(file, FUNCTION_ID, id);
        oteli_protobuf_number(file, FUNCTION_NAME, name);
        oteli_protobuf_number(file, FUNCTION_SYSTEM_NAME, name);
        oteli_protobuf_end(file, begun);
    }
    free(is_there);
}

static void put_profile(struct encoder *encoder)
{
    struct oteli_protobuf_writer *file = &encoder->file;
    const otel_profile *profile = encoder->profile;
    (void)string_of(encoder, "");
    put_type(encoder, PROFILE_SAMPLE_TYPE, "samples", "count");
    put_type(encoder, PROFILE_SAMPLE_TYPE, "cpu", "nanoseconds");
    put_samples(encoder);
    put_mappings(encoder);
    put_locations(encoder);
    put_functions(encoder);
    oteli_protobuf_number(file, PROFILE_TIME, profile->start_unix_ns);
    oteli_protobuf_number(file, PROFILE_DURATION, profile->duration_ns);
    put_type(encoder, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
    oteli_protobuf_number(file, PROFILE_PERIOD, profile->period_ns);
    oteli_protobuf_number(file, PROFILE_DEFAULT_SAMPLE_TYPE, string_of(encoder, "cpu"));
    oteli_protobuf_rows(file, PROFILE_STRING, &encoder->strings);
}

/* pprof files are gzipped, always. *compressed is the caller's, to free(). false: no memory, or 4
 * GiB and more of it. */
static bool compress_gzip(const void *bytes, size_t length, void **compressed,
                          size_t *compressed_length)
{
    z_stream stream = {.next_in = (z_const Bytef *)bytes};
    if (length > UINT_MAX / 2 ||
        deflateInit2(&stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    const size_t room = deflateBound(&stream, length);
    void *out = malloc(room);
    stream.avail_in = (uInt)length;
    stream.next_out = out;
    stream.avail_out = (uInt)room;
    const bool is_whole = out != NULL && deflate(&stream, Z_FINISH) == Z_STREAM_END;
    *compressed_length = stream.total_out;
    deflateEnd(&stream);
    if (!is_whole) {
        free(out);
        return false;
    }
    *compressed = out;
    return true;
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
    const bool is_made = !encoder.file.has_failed &&
                         compress_gzip(encoder.file.bytes, encoder.file.used, bytes, length);
    oteli_interner_fini(&encoder.strings);
    free(encoder.file.bytes);
    return is_made ? OTEL_OK : OTEL_ERROR_NO_MEMORY;
}
