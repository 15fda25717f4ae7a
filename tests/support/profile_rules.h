/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/profile_rules.h - does a request with profiles keep the rules of OTLP? Those that
 * OpenTelemetry's profiling group checks (sig-profiling, profcheck), and those that the messages'
 * own comments and the specification add to them.
 *
 *     char broken[PROFILE_RULES_SIZE];
 *     if (profile_rules_broken(request, broken) != 0)
 *         ... broken is "stack_table.orphan link_table.length" ...
 *
 * Pure functions.
 * Source:   opentelemetry-proto 1.11, profiles.proto; specification, profiles/mappings.md. */
#ifndef OTELI_TESTS_PROFILE_RULES_H
#define OTELI_TESTS_PROFILE_RULES_H

#include <stddef.h>

#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    profiles_request;
typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary profiles_dictionary;
typedef Opentelemetry__Proto__Profiles__V1development__Profile profiles_profile;
typedef Opentelemetry__Proto__Profiles__V1development__Sample profiles_sample;

enum { PROFILE_RULES_SIZE = 1024 };

/* How many times a rule is broken; `broken` has the rules' names, each once. */
size_t profile_rules_broken(const profiles_request *request, char broken[PROFILE_RULES_SIZE]);

#endif
