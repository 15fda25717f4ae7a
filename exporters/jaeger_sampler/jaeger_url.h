/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/jaeger_sampler/jaeger_url.h - where to ask for a sampling strategy, and what
 * OTEL_TRACES_SAMPLER_ARG says about that. Any thread; no state.
 *
 * Source:   OpenTelemetry specification, configuration/sdk-environment-variables.md. */
#ifndef OTELI_JAEGER_URL_H
#define OTELI_JAEGER_URL_H

#include "common/base/internal_api.h"

#include <stdbool.h>
#include <stdint.h>

/* The URL of the question: the endpoint (NULL: http://localhost:5778), with /sampling where it
 * has no path, and the service. NULL: no memory. Free with free(). */
char *oteli_jaeger_url(const char *endpoint, const char *service_name);

struct oteli_jaeger_argument {
    char *endpoint;              /* NULL: not given. Free with free() */
    int64_t polling_interval_ms; /* 0: not given */
    double initial_ratio;        /* negative: not given */
};

/* Read "endpoint=http://localhost:5778,pollingIntervalMs=5000,initialSamplingRate=0.25"; NULL is
 * an empty list. false: something in it is wrong, or there is no memory, and nothing is given. */
OTELI_INTERNAL_API bool oteli_jaeger_argument_parse(const char *text,
                                                    struct oteli_jaeger_argument *argument);

#endif
