/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/otlp_options.h - what a program asks of the exporter, checked and with its
 * defaults.
 *
 * Threads:  start/stop only: the environment is read where it names proxies. */
#ifndef OTELI_OTLP_OPTIONS_H
#define OTELI_OTLP_OPTIONS_H

#include "exporters/otlp/endpoint.h"
#include "exporters/otlp/transport/transport.h"

struct oteli_options {
    otel_otlp_options given; /* all members, with their defaults; its texts are the caller's */
    struct oteli_endpoint endpoint;
    bool endpoint_is_default; /* it was not given */
    char *user_agent;
    otel_otlp_header *headers; /* of every request, those of the protocol among them; the texts
                                  are borrowed */
    size_t header_count;
    const struct oteli_observer *observer; /* of the transports that are made; NULL: none */
};

/* Copy options, which may be NULL, and put in the defaults. false: a number or an enumeration is
 * out of range. */
bool oteli_options_take(otel_otlp_options *given, const otel_otlp_options *options);

/* `given` may be NULL, and is borrowed until oteli_options_fini. The errors are those of
 * otel_otlp_exporter_new; after one there is nothing to free. */
otel_status oteli_options_init(struct oteli_options *options, enum oteli_otlp_signal signal,
                               const otel_otlp_options *given);
void oteli_options_fini(struct oteli_options *options);

/* A transport for them, which copies all it needs. NULL: no memory. */
struct oteli_transport *oteli_options_transport(const struct oteli_options *options);

#endif
