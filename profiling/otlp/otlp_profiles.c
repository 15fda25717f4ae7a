/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/otlp/otlp_profiles.c - the contracts are in otlp_profiles.h. One thread at a time; owns
 * the request and the tables. First all rows are made, then it is known how long everything is,
 * then it is written. */
#include "profiling/otlp/otlp_profiles.h"

#include "common/wire.h"

#include <stdlib.h>

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

static const char SCOPE[] = "otel-c";

/* Kinds of values, as rows of strings. */
struct kind {
    uint32_t type;
    uint32_t unit;
};

/* What is known of the request before it is written. */
struct plan {
    const otel_profile *profile;
    const struct oteli_otlp_origin *origin;
    struct kind kinds[OTELI_OTLP_PROFILES];
    size_t profile_sizes[OTELI_OTLP_PROFILES];
    size_t scope_size;
    size_t scope_profiles_size;
    size_t resource_profiles_size;
    size_t dictionary_size;
};

void oteli_otlp_profiles_fini(struct oteli_otlp_profiles *encoder)
{
    oteli_otlp_dictionary_fini(&encoder->dictionary);
    oteli_otlp_table_fini(&encoder->identities);
    free(encoder->sums);
    free(encoder->request);
    *encoder = (struct oteli_otlp_profiles){.sums = NULL};
}

/* What is zero is not written, as in every message of proto3. */
static size_t number_size(uint32_t field, uint64_t value)
{
    return value != 0 ? oteli_varint_field_size(field, value) : 0;
}

static uint8_t *put_number(uint8_t *at, uint32_t field, uint64_t value)
{
    return value != 0 ? oteli_put_varint_field(at, field, value) : at;
}

/* --- Samples --- */

/* The fields of a sample but its values. Gives the number of that identity. */
static uint32_t identify(struct oteli_otlp_profiles *encoder,
                         const struct oteli_profile_sample *sample)
{
    struct oteli_otlp_dictionary *dictionary = &encoder->dictionary;
    uint32_t attributes[OTELI_SAMPLE_ATTRIBUTES];
    uint8_t identity[(OTELI_SAMPLE_ATTRIBUTES + 6) * OTELI_VARINT_MAX];
    const uint32_t stack = oteli_otlp_dictionary_stack(dictionary, sample->stack);
    const size_t count = oteli_otlp_dictionary_attributes(dictionary, sample, attributes);
    const uint32_t link = oteli_otlp_dictionary_link(dictionary, sample->link);
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += oteli_varint_size(attributes[i]);
    uint8_t *at = put_number(identity, SAMPLE_STACK, stack);
    at = oteli_put_bytes_head(at, SAMPLE_ATTRIBUTES, size);
    for (size_t i = 0; i < count; i++)
        at = oteli_put_varint(at, attributes[i]);
    at = put_number(at, SAMPLE_LINK, link);
    return oteli_otlp_table_put(&encoder->identities, identity, (size_t)(at - identity));
}

/* Values are int64. */
static void add(uint64_t *sum, uint64_t more)
{
    *sum = more < INT64_MAX - *sum ? *sum + more : INT64_MAX;
}

static bool add_samples(struct oteli_otlp_profiles *encoder, const otel_profile *profile)
{
    const size_t room = profile->sample_count + 1;
    if (room > encoder->sum_room) {
        free(encoder->sums);
        encoder->sums = malloc(room * sizeof *encoder->sums);
        encoder->sum_room = encoder->sums != NULL ? room : 0;
        if (encoder->sums == NULL)
            return false;
    }
    memset(encoder->sums, 0, room * sizeof *encoder->sums);
    oteli_otlp_table_begin(&encoder->identities);
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct oteli_profile_sample *sample = &profile->samples[i];
        struct oteli_otlp_sums *sums = &encoder->sums[identify(encoder, sample)];
        add(&sums->of[TIME_SUM], sample->cpu_ns);
        add(&sums->of[COUNT_SUM], sample->count);
    }
    return !encoder->identities.failed && !encoder->dictionary.failed;
}

static size_t sample_size(const struct oteli_otlp_profiles *encoder, size_t identity, size_t kind)
{
    return encoder->identities.rows.rows[identity].length +
           oteli_bytes_field_size(SAMPLE_VALUES,
                                  oteli_varint_size(encoder->sums[identity].of[kind]));
}

static uint8_t *put_sample(uint8_t *at, const struct oteli_otlp_profiles *encoder, size_t identity,
                           size_t kind)
{
    const uint64_t value = encoder->sums[identity].of[kind];
    size_t length;
    const uint8_t *fields = oteli_otlp_table_row(&encoder->identities, identity, &length);
    at = oteli_put_bytes_head(at, PROFILE_SAMPLES, sample_size(encoder, identity, kind));
    at = oteli_put_bytes(at, fields, length);
    at = oteli_put_bytes_head(at, SAMPLE_VALUES, oteli_varint_size(value));
    return oteli_put_varint(at, value);
}

/* --- Profiles --- */

static size_t kind_size(const struct kind *kind)
{
    return number_size(TYPE_TYPE, kind->type) + number_size(TYPE_UNIT, kind->unit);
}

static uint8_t *put_kind(uint8_t *at, uint32_t field, const struct kind *kind)
{
    at = oteli_put_bytes_head(at, field, kind_size(kind));
    at = put_number(at, TYPE_TYPE, kind->type);
    return put_number(at, TYPE_UNIT, kind->unit);
}

/* Identity 0 is that of no sample: each has a thread. */
static size_t profile_size(const struct oteli_otlp_profiles *encoder, const struct plan *plan,
                           size_t kind)
{
    const otel_profile *profile = plan->profile;
    size_t size = oteli_bytes_field_size(PROFILE_SAMPLE_TYPE, kind_size(&plan->kinds[kind])) +
                  (profile->start_unix_ns != 0 ? 1 + sizeof(uint64_t) : 0) +
                  number_size(PROFILE_DURATION, profile->duration_ns) +
                  oteli_bytes_field_size(PROFILE_PERIOD_TYPE, kind_size(&plan->kinds[TIME_SUM])) +
                  number_size(PROFILE_PERIOD, profile->period_ns) +
                  oteli_bytes_field_size(PROFILE_ID, OTELI_PROFILE_ID);
    for (size_t i = 1; i < encoder->identities.rows.count; i++)
        size += oteli_bytes_field_size(PROFILE_SAMPLES, sample_size(encoder, i, kind));
    return size;
}

static uint8_t *put_profile(uint8_t *at, const struct oteli_otlp_profiles *encoder,
                            const struct plan *plan, size_t kind)
{
    const otel_profile *profile = plan->profile;
    at = oteli_put_bytes_head(at, SCOPE_PROFILES_PROFILES, plan->profile_sizes[kind]);
    at = put_kind(at, PROFILE_SAMPLE_TYPE, &plan->kinds[kind]);
    for (size_t i = 1; i < encoder->identities.rows.count; i++)
        at = put_sample(at, encoder, i, kind);
    if (profile->start_unix_ns != 0)
        at = oteli_put_fixed64(oteli_put_tag(at, PROFILE_TIME, OTELI_WIRE_FIXED64),
                               profile->start_unix_ns);
    at = put_number(at, PROFILE_DURATION, profile->duration_ns);
    at = put_kind(at, PROFILE_PERIOD_TYPE, &plan->kinds[TIME_SUM]);
    at = put_number(at, PROFILE_PERIOD, profile->period_ns);
    return oteli_put_bytes_field(at, PROFILE_ID, plan->origin->ids[kind], OTELI_PROFILE_ID);
}

/* --- The request --- */

static size_t text_size(uint32_t field, const char *text)
{
    return text != NULL && *text != '\0' ? oteli_bytes_field_size(field, strlen(text)) : 0;
}

static uint8_t *put_text(uint8_t *at, uint32_t field, const char *text)
{
    return text != NULL && *text != '\0' ? oteli_put_bytes_field(at, field, text, strlen(text))
                                         : at;
}

static size_t measure(struct oteli_otlp_profiles *encoder, struct plan *plan)
{
    const struct oteli_otlp_origin *origin = plan->origin;
    plan->scope_size = text_size(SCOPE_NAME, SCOPE) + text_size(SCOPE_VERSION, OTEL_VERSION);
    plan->scope_profiles_size = oteli_bytes_field_size(SCOPE_PROFILES_SCOPE, plan->scope_size);
    for (size_t i = 0; i < OTELI_OTLP_PROFILES; i++) {
        plan->profile_sizes[i] = profile_size(encoder, plan, i);
        plan->scope_profiles_size +=
            oteli_bytes_field_size(SCOPE_PROFILES_PROFILES, plan->profile_sizes[i]);
    }
    plan->resource_profiles_size =
        oteli_bytes_field_size(RESOURCE_PROFILES_RESOURCE, origin->resource_length) +
        oteli_bytes_field_size(RESOURCE_PROFILES_SCOPES, plan->scope_profiles_size) +
        text_size(RESOURCE_PROFILES_SCHEMA_URL, origin->schema_url);
    plan->dictionary_size = oteli_otlp_dictionary_size(&encoder->dictionary);
    return oteli_bytes_field_size(REQUEST_RESOURCE_PROFILES, plan->resource_profiles_size) +
           oteli_bytes_field_size(REQUEST_DICTIONARY, plan->dictionary_size);
}

static void write_request(uint8_t *at, const struct oteli_otlp_profiles *encoder,
                          const struct plan *plan)
{
    const struct oteli_otlp_origin *origin = plan->origin;
    at = oteli_put_bytes_head(at, REQUEST_RESOURCE_PROFILES, plan->resource_profiles_size);
    at = oteli_put_bytes_field(at, RESOURCE_PROFILES_RESOURCE, origin->resource,
                               origin->resource_length);
    at = oteli_put_bytes_head(at, RESOURCE_PROFILES_SCOPES, plan->scope_profiles_size);
    at = oteli_put_bytes_head(at, SCOPE_PROFILES_SCOPE, plan->scope_size);
    at = put_text(at, SCOPE_NAME, SCOPE);
    at = put_text(at, SCOPE_VERSION, OTEL_VERSION);
    for (size_t i = 0; i < OTELI_OTLP_PROFILES; i++)
        at = put_profile(at, encoder, plan, i);
    at = put_text(at, RESOURCE_PROFILES_SCHEMA_URL, origin->schema_url);
    at = oteli_put_bytes_head(at, REQUEST_DICTIONARY, plan->dictionary_size);
    oteli_otlp_dictionary_write(at, &encoder->dictionary);
}

const uint8_t *oteli_otlp_profiles_encode(struct oteli_otlp_profiles *encoder,
                                          const otel_profile *profile,
                                          const struct oteli_otlp_origin *origin, size_t *length)
{
    struct oteli_otlp_dictionary *dictionary = &encoder->dictionary;
    struct plan plan = {.profile = profile, .origin = origin};
    if (!oteli_otlp_dictionary_begin(dictionary, profile))
        return NULL;
    plan.kinds[TIME_SUM].type = oteli_otlp_dictionary_text(dictionary, "cpu");
    plan.kinds[TIME_SUM].unit = oteli_otlp_dictionary_text(dictionary, "nanoseconds");
    plan.kinds[COUNT_SUM].type = oteli_otlp_dictionary_text(dictionary, "samples");
    plan.kinds[COUNT_SUM].unit = oteli_otlp_dictionary_text(dictionary, "count");
    if (!add_samples(encoder, profile))
        return NULL;
    *length = measure(encoder, &plan);
    if (*length > encoder->request_room) {
        free(encoder->request);
        encoder->request = malloc(*length);
        encoder->request_room = encoder->request != NULL ? *length : 0;
        if (encoder->request == NULL)
            return NULL;
    }
    write_request(encoder->request, encoder, &plan);
    return encoder->request;
}
