/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/sdk_start.h - start an SDK from a configuration and a set of exporters: what
 * library `otel-sdk` lends to the composition root in library `otel`. Start/stop only. */
#ifndef OTELI_SDK_START_H
#define OTELI_SDK_START_H

#include "common/base/internal_api.h"
#include "common/config/configuration.h"
#include <otel/processor.h>
#include <otel/sampler.h>

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
    const otel_attribute *resource;
    size_t resource_count;
    const otel_exporter *exporters; /* adopted, also on failure */
    size_t exporter_count;
    bool simple;
    bool threadless;
    size_t thread_stack_bytes;
    void (*thread_started)(void *state);
    void *thread_started_state;
    const otel_sampler *sampler;      /* adopted likewise; NULL: the one that has a name */
    const otel_processor *processors; /* adopted likewise */
    size_t processor_count;
    void (*generate_ids)(void *state, uint8_t *trace_id, uint8_t *span_id);
    void *generate_ids_state;
    bool generated_ids_are_random;
    bool (*tracer_enabled)(void *state, const otel_scope_view *scope);
    void *tracer_enabled_state;
    const otel_propagator *propagator; /* NULL: as the configuration says */

    /* For the message of the start: what is not said here is from code. */
    struct oteli_start_origins origins;
};

/* What the program's options (or NULL) say of it, as far as their size goes; the configuration
 * is the caller's to fill in. */
OTELI_LENT struct oteli_engine_options oteli_start_options(const otel_sdk_options *options);

/* Free what is adopted, of options with which nothing is started. */
OTELI_LENT void oteli_start_discard(const struct oteli_engine_options *options);

/* Says at the end where spans go. */
OTELI_LENT otel_status oteli_start(const struct oteli_engine_options *options);

#endif
