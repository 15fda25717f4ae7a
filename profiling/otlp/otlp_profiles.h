/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/otlp/otlp_profiles.h - a profile as the bytes of an OTLP request.
 *
 *     ExportProfilesServiceRequest
 *     ├─ resource_profiles ─┬─ resource
 *     │                     ├─ scope_profiles ─┬─ scope
 *     │                     │                  └─ profiles: the processor's time, the samples
 *     │                     └─ schema_url
 *     └─ dictionary
 *
 * A Profile of OTLP has one kind of value, so there are two of them, which share the dictionary:
 * the time, which people want to see and which knows of missed periods, is the first. Samples that
 * OTLP calls the same (stack, attributes, link) are added up. They carry no times of their own.
 *
 * Threads:  any; no state.
 * Source:   opentelemetry-proto 1.11, profiles.proto and profiles_service.proto. */
#ifndef OTELI_OTLP_PROFILES_H
#define OTELI_OTLP_PROFILES_H

#include "profiling/profile/profile_model.h"

enum { OTELI_OTLP_PROFILES = 2, OTELI_PROFILE_ID = 16 };

/* Beside the profile. */
struct oteli_otlp_origin {
    const void *resource; /* the bytes of a Resource message */
    size_t resource_length;
    const char *schema_url; /* of the resource; NULL: none */
    uint8_t ids[OTELI_OTLP_PROFILES][OTELI_PROFILE_ID];
};

/* The request, which is the caller's to free; NULL: no memory. The profile has at least one
 * sample. */
uint8_t *oteli_otlp_profiles_encode(const otel_profile *profile,
                                    const struct oteli_otlp_origin *origin, size_t *length);

#endif
