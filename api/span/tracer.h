/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/tracer.h - a tracer: an instrumentation scope, in the forms that others want it.
 * Immutable once made; one for each different set of arguments; any thread. */
#ifndef OTELI_TRACER_H
#define OTELI_TRACER_H

#include "common/base/atomic.h"
#include "common/base/internal_api.h"
#include <otel/exporter.h>

struct oteli_thread;

struct otel_tracer {
    otel_scope_view scope; /* its slices point behind the struct */
    otel_tracer *next;
    uint64_t verdict; /* the stamp (tracer.c) under which it was asked for, and 1: enabled */
};

/* Without a name, version or attributes: of spans for which there is no other. */
OTELI_INTERNAL_API extern otel_tracer oteli_tracer_nameless;

/* Whether the program has this tracer enabled; NULL: the nameless one. Asks where that is not
 * known. App threads that fit an SDK with program.asks_tracers. */
OTELI_COLD bool oteli_tracer_is_enabled(struct oteli_thread *thread, const otel_tracer *tracer);

void oteli_tracers_free(void);

#endif
