/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/start.h - start an SDK from a configuration and a set of exporters: what library
 * `otel-sdk` lends to the composition root in library `otel`. Start/stop only. */
#ifndef OTELI_START_H
#define OTELI_START_H

#include "common/config.h"
#include "common/lent.h"

struct oteli_engine_options {
    const struct oteli_config *config;
    const otel_attribute *resource;
    size_t resource_count;
    const otel_exporter *exporters; /* adopted, also on failure */
    size_t exporter_count;
    bool simple;
    bool threadless;
    size_t thread_stack_bytes;
    void (*thread_started)(void *state);
    void *thread_started_state;
    const otel_propagator *propagator; /* NULL: as the configuration says */
};

/* What the program's options (or NULL) say of it, as far as their size goes; the configuration
 * is the caller's to fill in. */
OTELI_LENT struct oteli_engine_options oteli_start_options(const otel_sdk_options *options);

OTELI_LENT otel_status oteli_start(const struct oteli_engine_options *options);

#endif
