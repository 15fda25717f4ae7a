/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/otlp/otlp_exporter.c - profiles by OTLP: otel_otlp_profile_exporter. Encoding is in
 * otlp_profiles.c; sending, with all that can go wrong, is what library otel-otlp lends.
 *
 * A profile that is too large for the receiver is sent in two halves of its samples, each with the
 * dictionary that it needs, and those in halves again, as far as that helps.
 *
 * The profiler's thread, but for wake; owns the connection. */
#include "common/base/random.h"
#include "common/log.h"
#include "exporters/otlp/otlp_client.h"
#include "exporters/start_otlp.h"
#include "profiling/otlp/otlp_profiles.h"
#include "sdk/lifecycle/resource_snapshot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct exporter {
    struct oteli_otlp_client *client;
    struct oteli_resource_snapshot identity;
};

static bool make_ids(struct oteli_otlp_origin *origin)
{
    struct oteli_random random;
    _Static_assert(sizeof random == OTELI_PROFILE_ID, "a seed is as random as an id");
    for (size_t i = 0; i < OTELI_OTLP_PROFILES; i++) {
        if (!oteli_random_seed(&random))
            return false;
        memcpy(origin->ids[i], &random, sizeof random);
    }
    return true;
}

static uint64_t samples_of(const otel_profile *profile)
{
    uint64_t samples = 0;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const struct oteli_profile_sample *sample =
            oteli_interner_at(&profile->samples, profile->first_sample + i);
        samples += sample->count;
    }
    return samples;
}

/* --- Parts of a profile --- */

enum {
    HALVINGS_MOST = 12,
    REFUSALS_MOST = 8 /* of parts that cannot be halved: then there is no size that is taken */
};

/* Samples of a profile, in one request. */
struct part {
    otel_profile profile;
    unsigned halvings;
};

struct sending {
    struct exporter *exporter;
    uint64_t samples; /* of the whole profile */
    uint64_t delivered;
    uint64_t lost;
    unsigned refusals;
    bool is_over;       /* all parts that are to come are lost */
    otel_status status; /* of what was lost last */
};

static bool is_divisible(const struct part *part)
{
    return part->profile.sample_count > 1 && part->halvings < HALVINGS_MOST;
}

static void send_part(struct sending *sending, const struct part *part);

static void send_halves(struct sending *sending, const struct part *part,
                        const struct oteli_otlp_result *result)
{
    struct part first = *part;
    struct part second = *part;
    OTELI_LOG(OTEL_LOG_DEBUG, "OTLP export of a profile to %s: %s; in two parts instead",
              oteli_otlp_client_receiver(sending->exporter->client), result->text);
    first.halvings = second.halvings = part->halvings + 1;
    first.profile.sample_count = (part->profile.sample_count + 1) / 2;
    second.profile.first_sample += first.profile.sample_count;
    second.profile.sample_count -= first.profile.sample_count;
    send_part(sending, &first);
    send_part(sending, &second);
}

/* Count its samples as lost, and with `is_over` those of the parts to come. Gives how many. */
static uint64_t lose(struct sending *sending, const struct part *part, bool is_over,
                     otel_status status)
{
    const uint64_t samples = is_over ? sending->samples - sending->delivered - sending->lost
                                     : samples_of(&part->profile);
    sending->is_over = is_over;
    sending->lost += samples;
    sending->status = status;
    return samples;
}

/* --- What becomes of a part --- */

/* http://host/, as users write it who expect the path to be put behind it. */
static bool lacks_path(const char *receiver)
{
    const char *host = strstr(receiver, "://");
    const char *path = host != NULL ? strchr(host + 3, '/') : NULL;
    return path != NULL && path[1] == '\0';
}

/* Profiles are new enough for most receivers not to have them, so what is missing is said. */
static void say_no_service(const struct exporter *exporter, const struct oteli_otlp_result *result)
{
    const char *receiver = oteli_otlp_client_receiver(exporter->client);
    const bool is_http = strncmp(result->text, "HTTP", 4) == 0;
    if (is_http && lacks_path(receiver)) {
        OTELI_LOG(
            OTEL_LOG_ERROR,
            "%s does not take profiles (%s): an endpoint for profiles alone is used as it is, "
            "so /v1development/profiles has to be behind it",
            receiver, result->text);
        return;
    }
    OTELI_LOG(
        OTEL_LOG_ERROR,
        "%s does not take profiles (%s): it needs OTLP 1.10 and profiles switched on, for the "
        "OpenTelemetry Collector 0.148 with --feature-gates=service.profilesSupport and a "
        "pipeline \"profiles\"",
        receiver, result->text);
}

static void accept(struct sending *sending, const struct part *part,
                   const struct oteli_otlp_result *result)
{
    const char *receiver = oteli_otlp_client_receiver(sending->exporter->client);
    if (result->rejected != 0)
        OTELI_LOG(OTEL_LOG_ERROR, "%s rejected %" PRIu64 " of %d profiles: %s", receiver,
                  result->rejected, OTELI_OTLP_PROFILES, result->text);
    else if (result->text[0] != '\0')
        OTELI_LOG(OTEL_LOG_WARN, "%s accepted all profiles and warns: %s", receiver, result->text);
    if (result->rejected < OTELI_OTLP_PROFILES)
        sending->delivered += samples_of(&part->profile);
    else
        (void)lose(sending, part, false, OTEL_ERROR_EXPORT_FAILED);
}

static void lose_above_limit(struct sending *sending, const struct part *part, size_t length)
{
    const uint64_t samples = lose(sending, part, false, OTEL_ERROR_EXPORT_FAILED);
    OTELI_LOG(
        OTEL_LOG_ERROR,
        "a profile of %zu bytes is larger than an OTLP request may be (%zu bytes), and cannot "
        "be parted; %" PRIu64 " samples are lost",
        length, oteli_otlp_client_max_bytes(sending->exporter->client), samples);
}

/* A part that is not sent again. */
static void lose_part(struct sending *sending, const struct part *part,
                      const struct oteli_otlp_result *result)
{
    if (result->is_too_large)
        sending->refusals++;
    const bool ends = result->has_no_time || result->has_no_service || result->has_no_memory ||
                      sending->refusals == REFUSALS_MOST;
    const otel_status status = result->has_no_memory ? OTEL_ERROR_NO_MEMORY
                               : result->has_no_time ? OTEL_ERROR_TIMEOUT
                                                     : OTEL_ERROR_EXPORT_FAILED;
    const uint64_t samples = lose(sending, part, ends, status);
    if (result->has_no_service)
        say_no_service(sending->exporter, result);
    else
        OTELI_LOG(OTEL_LOG_ERROR,
                  "OTLP export of a profile to %s failed after %u attempt%s: %s; %" PRIu64
                  " samples are lost%s",
                  oteli_otlp_client_receiver(sending->exporter->client), result->attempts,
                  result->attempts == 1 ? "" : "s", result->text, samples,
                  result->may_have_arrived ? ", or arrived unconfirmed" : "");
}

static void send_part(struct sending *sending, const struct part *part)
{
    struct exporter *exporter = sending->exporter;
    struct oteli_otlp_origin origin = {.resource = exporter->identity.resource,
                                       .resource_length = exporter->identity.resource_length,
                                       .schema_url = exporter->identity.schema_url};
    if (sending->is_over)
        return;
    struct oteli_otlp_result result = {.has_no_memory = true, .text = "no memory for the request"};
    uint8_t *bytes = NULL;
    struct oteli_message message = {.items = is_divisible(part) ? part->profile.sample_count : 1,
                                    .is_part = part->halvings != 0};
    if (make_ids(&origin))
        bytes = oteli_otlp_profiles_encode(&part->profile, &origin, &message.length);
    message.bytes = bytes;
    if (bytes != NULL)
        result = oteli_otlp_client_post(exporter->client, &message);
    free(bytes);
    if (result.is_delivered)
        accept(sending, part, &result);
    else if (result.is_too_large && is_divisible(part))
        send_halves(sending, part, &result);
    else if (result.is_too_large && result.attempts == 0)
        lose_above_limit(sending, part, message.length);
    else
        lose_part(sending, part, &result);
}

/* --- A profile --- */

static otel_status send_all(struct exporter *exporter, const otel_profile *profile)
{
    const otel_status status = oteli_resource_snapshot_renew(&exporter->identity);
    if (status != OTEL_OK && exporter->identity.resource == NULL)
        return status;
    struct sending sending = {.exporter = exporter, .samples = samples_of(profile)};
    send_part(&sending, &(struct part){.profile = *profile});
    if (sending.delivered == 0)
        return sending.status;
    otel_profile_drop(profile, sending.lost);
    return OTEL_OK;
}

static int take_in(void *state)
{
    const otel_profile *const *profile = state;
    return otel_profile_meanwhile(*profile);
}

static otel_status export_profile(void *state, const otel_profile *profile, int64_t timeout_ms)
{
    struct exporter *exporter = state;
    if (profile->sample_count == 0)
        return OTEL_OK;
    oteli_otlp_client_open(exporter->client, timeout_ms,
                           (struct oteli_meanwhile){take_in, &profile});
    const otel_status status = send_all(exporter, profile);
    oteli_otlp_client_close(exporter->client);
    return status;
}

static void wake(void *state)
{
    struct exporter *exporter = state;
    oteli_otlp_client_wake(exporter->client);
}

static void free_exporter(void *state)
{
    struct exporter *exporter = state;
    if (exporter == NULL)
        return;
    oteli_otlp_client_free(exporter->client);
    oteli_resource_snapshot_fini(&exporter->identity);
    free(exporter);
}

static bool asks_for_json(const otel_otlp_options *options)
{
    otel_otlp_options given = {.size = 0};
    memcpy(&given, options, options->size < sizeof given ? options->size : sizeof given);
    return given.protocol == OTEL_OTLP_HTTP_JSON;
}

/* As otel_otlp_exporter_new says; after an error what add_headers needs stays the caller's. */
static otel_status new_client(const otel_otlp_options *options, struct oteli_otlp_client **client)
{
    struct oteli_config config;
    struct oteli_start_otlp otlp;
    if (options != NULL)
        return oteli_otlp_client_new(options, OTELI_SIGNAL_PROFILES, client);
    otel_status status = oteli_config_look(&config);
    if (status != OTEL_OK)
        return status;
    status = OTEL_ERROR_NO_MEMORY;
    if (oteli_start_otlp_init(&otlp, OTELI_SIGNAL_PROFILES, &config)) {
        status = oteli_otlp_client_new(&otlp.options, OTELI_SIGNAL_PROFILES, client);
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
        made != NULL ? new_client(options, &made->client) : OTEL_ERROR_NO_MEMORY;
    if (status != OTEL_OK) {
        OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "there is no OTLP exporter for profiles: %s",
                         otel_status_string(status));
        free(made);
        return none;
    }
    return (otel_profile_exporter){.state = made,
                                   .export_profile = export_profile,
                                   .wake = wake,
                                   .free = free_exporter,
                                   .wants_names = true};
}
