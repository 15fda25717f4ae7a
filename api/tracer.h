/* SPDX-License-Identifier: Apache-2.0 */
/* api/tracer.h - a tracer: an instrumentation scope, in the forms that others want it.
 * Immutable once made; one for each different set of arguments; any thread. */
#ifndef OTELI_TRACER_H
#define OTELI_TRACER_H

#include "common/lent.h"
#include <otel/exporter.h>

struct otel_tracer {
    otel_scope_view scope; /* its slices point behind the struct */
    otel_tracer *next;
};

/* Without a name, version or attributes: of spans for which there is no other. */
OTELI_LENT extern otel_tracer oteli_tracer_nameless;

void oteli_tracers_free(void);

#endif
