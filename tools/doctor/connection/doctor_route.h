/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_route.h - where requests go and what they need: everything that
 * the exporter would use, secrets among it, so it is never shown; doctor_target has what can be.
 *
 * One thread, before anything is sent. Owns its texts; reads the environment for proxies. */
#ifndef DOCTOR_ROUTE_H
#define DOCTOR_ROUTE_H

#include "exporters/otlp/otlp_options.h"
#include "exporters/start_otlp.h"
#include "tools/doctor/settings/doctor_files.h"
#include "tools/doctor/settings/doctor_settings.h"

struct doctor_route {
    struct oteli_options options; /* as the exporter takes them */
    bool is_ready;                /* options are there */
    bool has_otlp;
    struct oteli_start_otlp otlp; /* what the settings mean; its texts are used by the options */
    const char *proxy;            /* of the environment, borrowed; "": none */
    const char *no_proxy;
};

/* The way that the settings of the environment say. What is wrong with it goes into
 * record->settings, and then there is no way: is_ready is false. False: no memory. */
bool doctor_route_from_settings(struct doctor_route *route, const struct doctor_settings *settings,
                                struct doctor_record *record);

/* Take options whose texts stay, and describe them in record->target, but for the names of the
 * settings that they come from. What is wrong, with the files too, goes into record->settings.
 * False: no memory. */
bool doctor_route_take(struct doctor_route *route, const otel_otlp_options *given,
                       const struct doctor_tls_files *files, struct doctor_record *record);

void doctor_route_fini(struct doctor_route *route);

/* Whether a list of hosts, as in no_proxy, has this one. */
bool doctor_skips_proxy(const char *host, const char *no_proxy);

/* What should stand where `given` is no URL, as the end of a sentence. */
const char *doctor_url_hint(const char *given, char *out, size_t size);

#endif
