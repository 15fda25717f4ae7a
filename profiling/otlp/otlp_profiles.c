/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/otlp/otlp_profiles.c - the contract is in otlp_profiles.h. One thread at a time. First
 * all rows are made, then everything is written. */
#include "profiling/otlp/otlp_profiles.h"

#include "common/wire.h"
#include "profiling/otlp/otlp_dictionary.h"

#include <stdlib.h>
#include <string.h>

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
    SAMPLE_VALUES
};

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
    struct oteli_otlp_dictionary dictionary;
    struct oteli_interner identities;
    struct oteli_protobuf_writer sample; /* while it is put together */
    struct oteli_protobuf_writer request;
};

/* --- Samples --- */

/* What is known of the thread goes before labels that say the same. */
static void put_attributes(struct encoder *encoder, const struct oteli_profile_sample *sample)
{
    const otel_profile *profile = encoder->profile;
    const struct oteli_profile_thread *thread = &profile->threads[sample->thread];
    const struct oteli_profile_range *labels = &profile->label_sets[sample->label_set];
    struct oteli_otlp_dictionary *dictionary = &encoder->dictionary;
    const size_t begun = oteli_protobuf_begin(&encoder->sample, SAMPLE_ATTRIBUTES);
    oteli_protobuf_packed(&encoder->sample, oteli_otlp_dictionary_number(dictionary, "thread.id",
                                                                         (uint64_t)thread->id));
    if (thread->name != 0)
        oteli_protobuf_packed(&encoder->sample,
                              oteli_otlp_dictionary_attribute(dictionary, "thread.name",
                                                              profile->strings[thread->name]));
    for (uint32_t i = 0; i < labels->count; i++) {
        const struct oteli_profile_pair *pair = &profile->pairs[labels->first + i];
        const char *key = profile->strings[pair->key];
        if (strcmp(key, "thread.id") != 0 && (strcmp(key, "thread.name") != 0 || thread->name == 0))
            oteli_protobuf_packed(
                &encoder->sample,
                oteli_otlp_dictionary_attribute(dictionary, key, profile->strings[pair->value]));
    }
    oteli_protobuf_end(&encoder->sample, begun);
}

/* Values are int64. */
static void add(uint64_t *sum, uint64_t more)
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
    struct oteli_otlp_dictionary *dictionary = &encoder->dictionary;
    struct oteli_interner *identities = &encoder->identities;
    uint32_t identity;
    encoder->sample.used = 0;
    oteli_protobuf_number(&encoder->sample, SAMPLE_STACK,
                          oteli_otlp_dictionary_stack(dictionary, sample->stack));
    put_attributes(encoder, sample);
    oteli_protobuf_number(&encoder->sample, SAMPLE_LINK,
                          oteli_otlp_dictionary_link(dictionary, sample->link));
    if (encoder->sample.has_failed || dictionary->row.has_failed ||
        !oteli_interner_add(identities, encoder->sample.bytes, encoder->sample.used, &identity))
        return false;
    struct sums sums = sums_of(encoder, identity);
    add(&sums.of[TIME_SUM], sample->cpu_ns);
    add(&sums.of[COUNT_SUM], sample->count);
    memcpy(oteli_interner_tail(identities, identity), &sums, sizeof sums);
    return true;
}

/* --- The request --- */

static void put_type(struct encoder *encoder, uint32_t field, size_t kind)
{
    struct oteli_protobuf_writer *request = &encoder->request;
    struct oteli_otlp_dictionary *dictionary = &encoder->dictionary;
    const size_t begun = oteli_protobuf_begin(request, field);
    oteli_protobuf_number(request, TYPE_TYPE, oteli_otlp_dictionary_text(dictionary, types[kind]));
    oteli_protobuf_number(request, TYPE_UNIT, oteli_otlp_dictionary_text(dictionary, units[kind]));
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

static void put_scope(struct encoder *encoder)
{
    struct oteli_protobuf_writer *request = &encoder->request;
    const size_t begun = oteli_protobuf_begin(request, RESOURCE_PROFILES_SCOPES);
    const size_t scope = oteli_protobuf_begin(request, SCOPE_PROFILES_SCOPE);
    oteli_protobuf_bytes(request, SCOPE_NAME, "otel-c", strlen("otel-c"));
    oteli_protobuf_bytes(request, SCOPE_VERSION, OTEL_VERSION, strlen(OTEL_VERSION));
    oteli_protobuf_end(request, scope);
    for (size_t kind = 0; kind < OTELI_OTLP_PROFILES; kind++)
        put_profile(encoder, kind);
    oteli_protobuf_end(request, begun);
}

static void put_request(struct encoder *encoder)
{
    const struct oteli_otlp_origin *origin = encoder->origin;
    struct oteli_protobuf_writer *request = &encoder->request;
    size_t begun = oteli_protobuf_begin(request, REQUEST_RESOURCE_PROFILES);
    oteli_protobuf_bytes(request, RESOURCE_PROFILES_RESOURCE, origin->resource,
                         origin->resource_length);
    put_scope(encoder);
    if (origin->schema_url != NULL && origin->schema_url[0] != '\0')
        oteli_protobuf_bytes(request, RESOURCE_PROFILES_SCHEMA_URL, origin->schema_url,
                             strlen(origin->schema_url));
    oteli_protobuf_end(request, begun);
    begun = oteli_protobuf_begin(request, REQUEST_DICTIONARY);
    for (uint32_t table = OTELI_OTLP_MAPPINGS; table < OTELI_OTLP_TABLES; table++)
        oteli_protobuf_rows(request, table, &encoder->dictionary.tables[table]);
    oteli_protobuf_end(request, begun);
}

uint8_t *oteli_otlp_profiles_encode(const otel_profile *profile,
                                    const struct oteli_otlp_origin *origin, size_t *length)
{
    struct encoder encoder = {.profile = profile, .origin = origin};
    bool is_made = oteli_otlp_dictionary_init(&encoder.dictionary, profile);
    oteli_interner_init(&encoder.identities, INT32_MAX, UINT32_MAX, sizeof(struct sums), 0);
    for (size_t i = 0; is_made && i < profile->sample_count; i++)
        is_made = add_sample(&encoder, &profile->samples[i]);
    if (is_made)
        put_request(&encoder);
    is_made = is_made && !encoder.request.has_failed && !encoder.dictionary.row.has_failed;
    oteli_otlp_dictionary_fini(&encoder.dictionary);
    oteli_interner_fini(&encoder.identities);
    free(encoder.sample.bytes);
    if (!is_made)
        free(encoder.request.bytes);
    *length = encoder.request.used;
    return is_made ? encoder.request.bytes : NULL;
}
