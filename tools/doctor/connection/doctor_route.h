/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_route.h - where requests go and what they need: everything that
 * the exporter would use, secrets among it, so it is never shown; doctor_target has what can be.
 *
 * One thread, before anything is sent. Reads the environment for proxies. */
#ifndef DOCTOR_ROUTE_H
#define DOCTOR_ROUTE_H

#include "exporters/start_otlp.h"
#include "tools/doctor/findings/doctor_findings.h"

struct doctor_route {
    otel_otlp_options given; /* as the exporter takes them, with their defaults */
    bool is_ready;           /* they can be used */
    bool has_otlp;
    struct oteli_start_otlp otlp; /* of the environment: has the texts of the options */
};

/* The route that the settings of the environment say; `endpoint` is that of the command line, or
 * NULL. The configuration stays until doctor_route_fini. False: no memory. */
bool doctor_route_from_settings(struct doctor_route *route, const struct oteli_config *config,
                                const char *endpoint, struct doctor_record *record);

/* Take options whose texts stay, and describe them in record->target, but for the names of the
 * settings that they come from. Where they cannot be used, record->faults says why, and is_ready
 * is false. False: no memory. */
bool doctor_route_take(struct doctor_route *route, const otel_otlp_options *given,
                       struct doctor_record *record);

void doctor_route_fini(struct doctor_route *route);

/* Whether a list of hosts, as in no_proxy, has this one. */
bool doctor_skips_proxy(const char *host, const char *no_proxy);

#endif
