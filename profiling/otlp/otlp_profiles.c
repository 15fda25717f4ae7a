/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/otlp/otlp_profiles.c - the contract is in otlp_profiles.h. One thread at a time; owns
 * what it makes until it gives it away, borrows the profile.
 *
 * First the rows of the dictionary are made, then everything is written. A row comes to be when a
 * sample asks for it, so there is none that nothing refers to, and none twice: what makes two rows
 * equal is that they are encoded equally, so that a row that refers to rows of other tables is
 * equal to another by what it says, all the way down.
 *
 * Source: opentelemetry-proto, profiles.proto; specification, profiles/mappings.md; semantic
 * conventions, general/profiles.md and attributes of threads and processes. */
#include "profiling/otlp/otlp_profiles.h"

#include "common/text/text.h"
#include "common/wire.h"
#include "profiling/profile/protobuf_writer.h"

#include <stdlib.h>
#include <string.h>

/* Fields of the messages, by their numbers in profiles_service.proto, profiles.proto and
 * common.proto. */
enum {
    REQUEST_RESOURCE_PROFILES = 1,
    REQUEST_DICTIONARY,
    RESOURCE_PROFILES_RESOURCE = 1,
    RESOURCE_PROFILES_SCOPES,
    RESOURCE_PROFILES_SCHEMA_URL,
    SCOPE_PROFILES_SCOPE = 1,
    SCOPE_PROFILES_PROFILES,
    SCOPE_NAME = 1,
    SCOPE_VERSION,
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLES,
    PROFILE_TIME,
    PROFILE_DURATION,
    PROFILE_PERIOD_TYPE,
    PROFILE_PERIOD,
    PROFILE_ID,
    TYPE_TYPE = 1,
    TYPE_UNIT,
    SAMPLE_STACK = 1,
    SAMPLE_ATTRIBUTES,
    SAMPLE_LINK,
    SAMPLE_VALUES,
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

/* Tables of the dictionary, by their fields in it. */
enum table { MAPPINGS = 1, LOCATIONS, FUNCTIONS, LINKS, STRINGS, ATTRIBUTES, STACKS, TABLES };

enum { TIME_SUM, COUNT_SUM }; /* the two profiles */

static const char *const types[] = {[TIME_SUM] = "cpu", [COUNT_SUM] = "samples"};
static const char *const units[] = {[TIME_SUM] = "nanoseconds", [COUNT_SUM] = "count"};

/* Behind the key of an identity: the fields of a sample but its values. */
struct sums {
    uint64_t of[OTELI_OTLP_PROFILES];
};

struct encoder {
    const otel_profile *profile;
    const struct oteli_otlp_origin *origin;
    struct oteli_interner tables[TABLES]; /* row 0 of each is the empty one */
    uint32_t *known; /* 1 + row of each mapping, location and stack of the profile; 0: not yet */
    struct oteli_interner identities;
    struct oteli_protobuf_writer row;    /* of a table, while it is put together */
    struct oteli_protobuf_writer sample; /* the same */
    struct oteli_protobuf_writer request;
    bool is_full; /* no memory for another row */
};

/* --- Rows --- */

static uint32_t add_bytes(struct encoder *encoder, enum table table, const void *bytes,
                          size_t length)
{
    uint32_t index = 0;
    encoder->is_full |= !oteli_interner_add(&encoder->tables[table], bytes, length, &index);
    return index;
}

/* The row that is put together becomes one of this table, and the next one begins. */
static uint32_t add_row(struct encoder *encoder, enum table table)
{
    const size_t length = encoder->row.used;
    encoder->row.used = 0;
    return add_bytes(encoder, table, encoder->row.bytes, length);
}

static uint32_t add_text(struct encoder *encoder, const char *text)
{
    return add_bytes(encoder, STRINGS, text, strlen(text));
}

/* With a text; NULL: with a number. */
static uint32_t add_attribute(struct encoder *encoder, const char *key, const char *text,
                              uint64_t number)
{
    struct oteli_protobuf_writer *row = &encoder->row;
    oteli_protobuf_number(row, ATTRIBUTE_KEY, add_text(encoder, key));
    const size_t begun = oteli_protobuf_begin(row, ATTRIBUTE_VALUE);
    if (text != NULL)
        oteli_protobuf_bytes(row, VALUE_STRING, text, strlen(text));
    else
        oteli_protobuf_number(row, VALUE_INT, number);
    oteli_protobuf_end(row, begun);
    return add_row(encoder, ATTRIBUTES);
}

/* Each must say which build it is of: one that cannot is left out. */
static uint32_t add_mapping(struct encoder *encoder, const struct oteli_profile_mapping *mapping)
{
    char hex[2 * sizeof mapping->identity.build_id + 1];
    struct oteli_protobuf_writer *row = &encoder->row;
    uint32_t build = 0;
    if (mapping->identity.build_id_length != 0)
        build = add_attribute(
            encoder, "process.executable.build_id.gnu",
            oteli_hex_put(hex, mapping->identity.build_id, mapping->identity.build_id_length), 0);
    else if (mapping->identity.has_htlhash)
        build = add_attribute(
            encoder, "process.executable.build_id.htlhash",
            oteli_hex_put(hex, mapping->identity.htlhash, sizeof mapping->identity.htlhash), 0);
    if (build == 0)
        return 0;
    oteli_protobuf_number(row, MAPPING_START, mapping->start);
    oteli_protobuf_number(row, MAPPING_LIMIT, mapping->limit);
    oteli_protobuf_number(row, MAPPING_OFFSET, mapping->file_offset);
    oteli_protobuf_number(row, MAPPING_FILE,
                          add_text(encoder, oteli_profile_text(encoder->profile, mapping->path)));
    const size_t begun = oteli_protobuf_begin(row, MAPPING_ATTRIBUTES);
    oteli_protobuf_packed(row, build);
    oteli_protobuf_end(row, begun);
    return add_row(encoder, MAPPINGS);
}

/* There is one name, which is the system's as well: what is mangled stays so. */
static uint32_t add_function(struct encoder *encoder, const char *text)
{
    const uint32_t name = add_text(encoder, text);
    oteli_protobuf_number(&encoder->row, FUNCTION_NAME, name);
    oteli_protobuf_number(&encoder->row, FUNCTION_SYSTEM_NAME, name);
    return add_row(encoder, FUNCTIONS);
}

static uint32_t add_location(struct encoder *encoder, const struct oteli_profile_location *location)
{
    const otel_profile *profile = encoder->profile;
    struct oteli_protobuf_writer *row = &encoder->row;
    uint32_t *mapping = &encoder->known[location->mapping];
    if (*mapping == 0 && location->mapping != 0)
        *mapping =
            1 + add_mapping(encoder, oteli_interner_at(&profile->mappings, location->mapping));
    const uint32_t native = add_attribute(encoder, "profile.frame.type", "native", 0);
    const char *name = oteli_profile_text(profile, location->name);
    const uint32_t function = name[0] != '\0' ? add_function(encoder, name) : 0;
    oteli_protobuf_number(row, LOCATION_MAPPING, *mapping != 0 ? *mapping - 1 : 0);
    oteli_protobuf_number(row, LOCATION_ADDRESS, location->address);
    if (function != 0) {
        const size_t line = oteli_protobuf_begin(row, LOCATION_LINES);
        oteli_protobuf_number(row, LINE_FUNCTION, function);
        oteli_protobuf_end(row, line);
    }
    const size_t begun = oteli_protobuf_begin(row, LOCATION_ATTRIBUTES);
    oteli_protobuf_packed(row, native);
    oteli_protobuf_end(row, begun);
    return add_row(encoder, LOCATIONS);
}

static uint32_t add_stack(struct encoder *encoder, uint32_t stack)
{
    const otel_profile *profile = encoder->profile;
    const uint32_t *locations = oteli_interner_at(&profile->stacks, stack);
    const uint32_t count = oteli_interner_elements(&profile->stacks, stack, sizeof *locations);
    uint32_t *known_locations = &encoder->known[profile->mappings.count];
    uint32_t *known = &known_locations[profile->locations.count + stack];
    if (*known != 0 || count == 0)
        return *known != 0 ? *known - 1 : 0;
    for (uint32_t i = 0; i < count; i++)
        if (known_locations[locations[i]] == 0)
            known_locations[locations[i]] =
                1 + add_location(encoder, oteli_interner_at(&profile->locations, locations[i]));
    const size_t begun = oteli_protobuf_begin(&encoder->row, STACK_LOCATIONS);
    for (uint32_t i = 0; i < count; i++)
        oteli_protobuf_packed(&encoder->row, known_locations[locations[i]] - 1);
    oteli_protobuf_end(&encoder->row, begun);
    *known = 1 + add_row(encoder, STACKS);
    return *known - 1;
}

static uint32_t add_link(struct encoder *encoder, const struct oteli_span_ids *link)
{
    oteli_protobuf_bytes(&encoder->row, LINK_TRACE, link->trace_id, sizeof link->trace_id);
    oteli_protobuf_bytes(&encoder->row, LINK_SPAN, link->span_id, sizeof link->span_id);
    return add_row(encoder, LINKS);
}

/* --- Samples --- */

/* What is known of the thread goes before labels that say the same. */
static void put_attributes(struct encoder *encoder, const struct oteli_profile_sample *sample)
{
    const otel_profile *profile = encoder->profile;
    const struct oteli_profile_thread *thread =
        oteli_interner_at(&profile->threads, sample->thread);
    const struct oteli_profile_pair *labels =
        oteli_interner_at(&profile->label_sets, sample->label_set);
    const uint32_t count =
        oteli_interner_elements(&profile->label_sets, sample->label_set, sizeof *labels);
    struct oteli_protobuf_writer *to = &encoder->sample;
    const size_t begun = oteli_protobuf_begin(to, SAMPLE_ATTRIBUTES);
    oteli_protobuf_packed(to, add_attribute(encoder, "thread.id", NULL, (uint64_t)thread->id));
    if (thread->name != 0)
        oteli_protobuf_packed(to, add_attribute(encoder, "thread.name",
                                                oteli_profile_text(profile, thread->name), 0));
    for (uint32_t i = 0; i < count; i++) {
        const char *key = oteli_profile_text(profile, labels[i].key);
        if (strcmp(key, "thread.id") != 0 && (strcmp(key, "thread.name") != 0 || thread->name == 0))
            oteli_protobuf_packed(
                to, add_attribute(encoder, key, oteli_profile_text(profile, labels[i].value), 0));
    }
    oteli_protobuf_end(to, begun);
}

/* Values are int64. */
static void add_value(uint64_t *sum, uint64_t more)
{
    *sum = more < INT64_MAX - *sum ? *sum + more : INT64_MAX;
}

static struct sums sums_of(const struct encoder *encoder, uint32_t identity)
{
    struct sums sums;
    memcpy(&sums, oteli_interner_tail(&encoder->identities, identity), sizeof sums);
    return sums;
}

/* false: no memory. */
static bool add_sample(struct encoder *encoder, const struct oteli_profile_sample *sample)
{
    struct oteli_protobuf_writer *to = &encoder->sample;
    uint32_t identity;
    to->used = 0;
    oteli_protobuf_number(to, SAMPLE_STACK, add_stack(encoder, sample->stack));
    put_attributes(encoder, sample);
    if (sample->link != 0)
        oteli_protobuf_number(
            to, SAMPLE_LINK,
            add_link(encoder, oteli_interner_at(&encoder->profile->links, sample->link)));
    if (encoder->is_full || to->has_failed || encoder->row.has_failed ||
        !oteli_interner_add(&encoder->identities, to->bytes, to->used, &identity))
        return false;
    struct sums sums = sums_of(encoder, identity);
    add_value(&sums.of[TIME_SUM], sample->cpu_ns);
    add_value(&sums.of[COUNT_SUM], sample->count);
    memcpy(oteli_interner_tail(&encoder->identities, identity), &sums, sizeof sums);
    return true;
}

/* --- The request --- */

static void put_type(struct encoder *encoder, uint32_t field, size_t kind)
{
    struct oteli_protobuf_writer *request = &encoder->request;
    const size_t begun = oteli_protobuf_begin(request, field);
    oteli_protobuf_number(request, TYPE_TYPE, add_text(encoder, types[kind]));
    oteli_protobuf_number(request, TYPE_UNIT, add_text(encoder, units[kind]));
    oteli_protobuf_end(request, begun);
}

static void put_sample(struct encoder *encoder, uint32_t identity, size_t kind)
{
    struct oteli_protobuf_writer *request = &encoder->request;
    const size_t begun = oteli_protobuf_begin(request, PROFILE_SAMPLES);
    oteli_protobuf_raw(request, oteli_interner_at(&encoder->identities, identity),
                       encoder->identities.rows[identity].length);
    const size_t values = oteli_protobuf_begin(request, SAMPLE_VALUES);
    oteli_protobuf_packed(request, sums_of(encoder, identity).of[kind]);
    oteli_protobuf_end(request, values);
    oteli_protobuf_end(request, begun);
}

static void put_profile(struct encoder *encoder, size_t kind)
{
    const otel_profile *profile = encoder->profile;
    struct oteli_protobuf_writer *request = &encoder->request;
    uint8_t time[1 + sizeof(uint64_t)] = {OTELI_TAG(PROFILE_TIME, OTELI_WIRE_FIXED64)};
    const size_t begun = oteli_protobuf_begin(request, SCOPE_PROFILES_PROFILES);
    put_type(encoder, PROFILE_SAMPLE_TYPE, kind);
    for (uint32_t i = 0; i < encoder->identities.count; i++)
        put_sample(encoder, i, kind);
    (void)oteli_put_fixed64(time + 1, profile->start_unix_ns);
    oteli_protobuf_raw(request, time, sizeof time);
    oteli_protobuf_number(request, PROFILE_DURATION, profile->duration_ns);
    put_type(encoder, PROFILE_PERIOD_TYPE, TIME_SUM);
    oteli_protobuf_number(request, PROFILE_PERIOD, profile->period_ns);
    oteli_protobuf_bytes(request, PROFILE_ID, encoder->origin->ids[kind], OTELI_PROFILE_ID);
    oteli_protobuf_end(request, begun);
}

static void put_request(struct encoder *encoder)
{
    const struct oteli_otlp_origin *origin = encoder->origin;
    struct oteli_protobuf_writer *request = &encoder->request;
    size_t begun = oteli_protobuf_begin(request, REQUEST_RESOURCE_PROFILES);
    oteli_protobuf_bytes(request, RESOURCE_PROFILES_RESOURCE, origin->resource,
                         origin->resource_length);
    const size_t profiles = oteli_protobuf_begin(request, RESOURCE_PROFILES_SCOPES);
    const size_t scope = oteli_protobuf_begin(request, SCOPE_PROFILES_SCOPE);
    oteli_protobuf_bytes(request, SCOPE_NAME, "otel-c", strlen("otel-c"));
    oteli_protobuf_bytes(request, SCOPE_VERSION, OTEL_VERSION, strlen(OTEL_VERSION));
    oteli_protobuf_end(request, scope);
    for (size_t kind = 0; kind < OTELI_OTLP_PROFILES; kind++)
        put_profile(encoder, kind);
    oteli_protobuf_end(request, profiles);
    if (origin->schema_url != NULL && origin->schema_url[0] != '\0')
        oteli_protobuf_bytes(request, RESOURCE_PROFILES_SCHEMA_URL, origin->schema_url,
                             strlen(origin->schema_url));
    oteli_protobuf_end(request, begun);
    begun = oteli_protobuf_begin(request, REQUEST_DICTIONARY);
    for (uint32_t table = MAPPINGS; table < TABLES; table++)
        oteli_protobuf_rows(request, table, &encoder->tables[table]);
    oteli_protobuf_end(request, begun);
}

uint8_t *oteli_otlp_profiles_encode(const otel_profile *profile,
                                    const struct oteli_otlp_origin *origin, size_t *length)
{
    struct encoder encoder = {.profile = profile, .origin = origin};
    encoder.known =
        calloc(profile->mappings.count + profile->locations.count + profile->stacks.count + 1,
               sizeof *encoder.known);
    for (enum table table = MAPPINGS; table < TABLES; table++) {
        oteli_interner_init(&encoder.tables[table], INT32_MAX, UINT32_MAX, 0, 0); /* as int32 */
        (void)add_bytes(&encoder, table, "", 0);
    }
    oteli_interner_init(&encoder.identities, INT32_MAX, UINT32_MAX, sizeof(struct sums), 0);
    bool is_made = encoder.known != NULL;
    for (uint32_t i = 0; is_made && i < profile->sample_count; i++)
        is_made =
            add_sample(&encoder, oteli_interner_at(&profile->samples, profile->first_sample + i));
    if (is_made)
        put_request(&encoder);
    is_made = is_made && !encoder.request.has_failed && !encoder.is_full;
    for (enum table table = MAPPINGS; table < TABLES; table++)
        oteli_interner_fini(&encoder.tables[table]);
    oteli_interner_fini(&encoder.identities);
    free(encoder.known);
    free(encoder.row.bytes);
    free(encoder.sample.bytes);
    if (!is_made)
        free(encoder.request.bytes);
    *length = encoder.request.used;
    return is_made ? encoder.request.bytes : NULL;
}
