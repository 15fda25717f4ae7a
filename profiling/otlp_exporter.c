/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/otlp_exporter.c - profiles by OTLP: otel_otlp_profile_exporter. Encoding is in
 * otlp_profiles.c; sending, with all that can go wrong, is what library otel-otlp lends.
 *
 * The profiler's thread, but for wake; owns the encoder and the connection. */
#include "common/log.h"
#include "common/random.h"
#include "exporters/otlp/posting.h"
#include "exporters/start_otlp.h"
#include "profiling/otlp_profiles.h"
#include "sdk/identity.h"

#include <inttypes.h>
#include <stdlib.h>

struct exporter {
    struct oteli_posting *posting;
    struct oteli_identity identity;
    struct oteli_otlp_profiles encoder;
};

static bool make_ids(struct oteli_otlp_origin *origin)
{
    struct oteli_random random;
    if (!oteli_random_seed(&random))
        return false;
    for (size_t i = 0; i < OTELI_OTLP_PROFILES; i++) {
        uint64_t second;
        uint64_t first = oteli_random_pair(&random, &second);
        first += first == 0;
        memcpy(origin->ids[i], &first, sizeof first);
        memcpy(origin->ids[i] + sizeof first, &second, sizeof second);
    }
    return true;
}

static uint64_t samples_of(const otel_profile *profile)
{
    uint64_t samples = 0;
    for (size_t i = 0; i < profile->sample_count; i++)
        samples += profile->samples[i].count;
    return samples;
}

/* Profiles are new enough for most receivers not to have them, so what is missing is said. */
static void say_no_service(const struct exporter *exporter, const struct oteli_posted *posted)
{
    OTELI_LOG(
        OTEL_LOG_ERROR,
        "%s does not take profiles (%s): it needs OTLP 1.10 and profiles switched on, for the "
        "OpenTelemetry Collector 0.148 with --feature-gates=service.profilesSupport and a "
        "pipeline \"profiles\"",
        oteli_posting_receiver(exporter->posting), posted->text);
}

static otel_status account(const struct exporter *exporter, const struct oteli_posted *posted,
                           const otel_profile *profile)
{
    const char *receiver = oteli_posting_receiver(exporter->posting);
    if (posted->is_delivered) {
        if (posted->rejected != 0)
            OTELI_LOG(OTEL_LOG_ERROR, "%s rejected %" PRIu64 " of %d profiles: %s", receiver,
                      posted->rejected, OTELI_OTLP_PROFILES, posted->text);
        else if (posted->text[0] != '\0')
            OTELI_LOG(OTEL_LOG_WARN, "%s accepted all profiles and warns: %s", receiver,
                      posted->text);
        return posted->rejected < OTELI_OTLP_PROFILES ? OTEL_OK : OTEL_ERROR_EXPORT_FAILED;
    }
    if (posted->has_no_memory)
        return OTEL_ERROR_NO_MEMORY;
    if (posted->has_no_service)
        say_no_service(exporter, posted);
    else
        OTELI_LOG(OTEL_LOG_ERROR,
                  "OTLP export of a profile to %s failed after %u attempt%s: %s; %" PRIu64
                  " samples are lost%s",
                  receiver, posted->attempts, posted->attempts == 1 ? "" : "s", posted->text,
                  samples_of(profile), posted->may_have_arrived ? ", or arrived unconfirmed" : "");
    return posted->has_no_time ? OTEL_ERROR_TIMEOUT : OTEL_ERROR_EXPORT_FAILED;
}

static otel_status export_profile(void *state, const otel_profile *profile, int64_t timeout_ms)
{
    struct exporter *exporter = state;
    if (profile->sample_count == 0)
        return OTEL_OK;
    const otel_status status = oteli_identity_renew(&exporter->identity);
    if (status != OTEL_OK && exporter->identity.resource == NULL)
        return status;
    struct oteli_otlp_origin origin = {.resource = exporter->identity.resource,
                                       .resource_length = exporter->identity.resource_length,
                                       .schema_url = exporter->identity.schema_url};
    if (!make_ids(&origin))
        return OTEL_ERROR_SYSTEM;
    size_t length = 0;
    const uint8_t *request =
        oteli_otlp_profiles_encode(&exporter->encoder, profile, &origin, &length);
    if (request == NULL)
        return OTEL_ERROR_NO_MEMORY;
    if (length > oteli_posting_max_bytes(exporter->posting)) {
        OTELI_LOG(
            OTEL_LOG_ERROR,
            "a profile of %zu bytes is larger than an OTLP request may be (%zu bytes); %" PRIu64
            " samples are lost",
            length, oteli_posting_max_bytes(exporter->posting), samples_of(profile));
        return OTEL_ERROR_EXPORT_FAILED;
    }
    const struct oteli_posted posted =
        oteli_posting_post(exporter->posting, request, length, timeout_ms);
    return account(exporter, &posted, profile);
}

static void wake(void *state)
{
    struct exporter *exporter = state;
    oteli_posting_wake(exporter->posting);
}

static void free_exporter(void *state)
{
    struct exporter *exporter = state;
    if (exporter == NULL)
        return;
    oteli_posting_free(exporter->posting);
    oteli_identity_fini(&exporter->identity);
    oteli_otlp_profiles_fini(&exporter->encoder);
    free(exporter);
}

static bool asks_for_json(const otel_otlp_options *options)
{
    otel_otlp_options given = {.size = 0};
    memcpy(&given, options, options->size < sizeof given ? options->size : sizeof given);
    return given.protocol == OTEL_OTLP_HTTP_JSON;
}

/* As otel_otlp_exporter_new says; after an error what add_headers needs stays the caller's. */
static otel_status new_posting(const otel_otlp_options *options, struct oteli_posting **posting)
{
    struct oteli_config config;
    struct oteli_start_otlp otlp;
    if (options != NULL)
        return oteli_posting_new(options, OTELI_SIGNAL_PROFILES, posting);
    otel_status status = oteli_config_look(&config);
    if (status != OTEL_OK)
        return status;
    status = OTEL_ERROR_NO_MEMORY;
    if (oteli_start_otlp_init_of(&otlp, OTELI_SIGNAL_PROFILES, &config)) {
        status = oteli_posting_new(&otlp.options, OTELI_SIGNAL_PROFILES, posting);
        oteli_start_otlp_fini(&otlp);
    }
    oteli_config_fini(&config);
    return status;
}

otel_profile_exporter otel_otlp_profile_exporter(const otel_otlp_options *options)
{
    static const otel_profile_exporter none = {.state = NULL};
    if (options != NULL && asks_for_json(options)) {
        OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "there is no OTLP exporter for profiles: they have no "
                                         "http/json, only http/protobuf and grpc");
        return none;
    }
    struct exporter *made = calloc(1, sizeof *made);
    const otel_status status =
        made != NULL ? new_posting(options, &made->posting) : OTEL_ERROR_NO_MEMORY;
    if (status != OTEL_OK) {
        OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "there is no OTLP exporter for profiles: %s",
                         otel_status_string(status));
        free(made);
        return none;
    }
    return (otel_profile_exporter){
        .state = made, .export_profile = export_profile, .wake = wake, .free = free_exporter};
}
