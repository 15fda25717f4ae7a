/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/sdk_start.h - start an SDK from a configuration and a set of exporters: what
 * library `otel-sdk` lends to the composition root in library `otel`. Start/stop only. */
#ifndef OTELI_SDK_START_H
#define OTELI_SDK_START_H

#include "common/base/internal_api.h"
#include "common/config/configuration.h"
#include <otel/processor.h>
#include <otel/sampler.h>
#include <otel/sdk.h>

enum { OTELI_NAMED_EXPORTERS = 3 }; /* that traces_exporter has words for */

struct oteli_start_origins {
    bool is_sampler_named;  /* `sampler` is what traces_sampler names */
    size_t exporters_named; /* the first ones are what traces_exporter names */
    const char *endpoints[OTELI_NAMED_EXPORTERS]; /* of those with OTLP; NULL: of others */
    const struct oteli_start_file *file;          /* NULL: none */
};

/* A configuration file, and what of the options is made of it. */
struct oteli_start_file {
    const char *path;
    size_t exporters; /* the first ones */
    size_t processors;
    bool has_sampler;
};

struct oteli_engine_options {
    const struct oteli_config *config;
    otel_sdk_options program; /* exporters, processors and sampler are adopted, also on failure */

    /* For the message of the start: what is not said here is from code. */
    struct oteli_start_origins origins;
};

/* What the program's options (or NULL) say of it, as far as their size goes; the configuration
 * is the caller's to fill in. */
OTELI_INTERNAL_API struct oteli_engine_options oteli_start_options(const otel_sdk_options *options);

/* Free what is adopted, of options with which nothing is started. */
OTELI_INTERNAL_API void oteli_start_discard(const struct oteli_engine_options *options);

/* Says at the end where spans go. */
OTELI_INTERNAL_API otel_status oteli_start(const struct oteli_engine_options *options);

#endif
