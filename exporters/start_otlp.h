/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/start_otlp.h - the OTLP exporter as the configuration has it. Start/stop only.
 *
 * A bad value in the environment does not keep a program from starting: what cannot be used is
 * one line in the log, and the default instead. */
#ifndef OTELI_START_OTLP_H
#define OTELI_START_OTLP_H

#include "common/base/internal_api.h"
#include "common/config/configuration.h"
#include "exporters/otlp/endpoint.h"

#include <otel/otlp.h>

struct oteli_start_otlp {
    otel_otlp_options options; /* its texts are the configuration's, or below */
    char *endpoint;
    const char *endpoint_origin; /* where it is from: oteli_config_origin */
    otel_otlp_header *headers;
};

/* Choose options by a configuration, which is borrowed until oteli_start_otlp_fini. Profiles have
 * the general settings, but for an endpoint of their own, and are not spooled. False: no memory,
 * and there is nothing to free. */
OTELI_INTERNAL_API bool oteli_start_otlp_init(struct oteli_start_otlp *otlp,
                                              enum oteli_otlp_signal signal,
                                              const struct oteli_config *config);
OTELI_INTERNAL_API void oteli_start_otlp_fini(struct oteli_start_otlp *otlp);

/* Make the exporter that a configuration means. *is_made is false with OTEL_OK where libcurl cannot
 * do what is asked of it: that is in the log, and spans do not go there. *endpoint_origin is
 * oteli_start_otlp.endpoint_origin. */
OTELI_INTERNAL_API otel_status oteli_start_otlp_exporter(const struct oteli_config *config,
                                                         otel_exporter *exporter, bool *is_made,
                                                         const char **endpoint_origin);

#endif
