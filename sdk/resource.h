/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/resource.h - who is being traced: attributes merged from all sources, once at start,
 * as the bytes of an OTLP Resource message. Immutable.
 *
 * Later wins: defaults, process, OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME, code.
 * Source: OpenTelemetry specification, resource/sdk.md; semantic conventions, resource. */
#ifndef OTELI_RESOURCE_H
#define OTELI_RESOURCE_H

#include "common/config.h"

struct oteli_resource {
    char *otlp;
    size_t otlp_length;
    int64_t pid; /* of the process that made it */
};

otel_status oteli_resource_init(struct oteli_resource *resource, const struct oteli_config *config,
                                const otel_attribute *attributes, size_t count);
/* The same for a forked child: all but process.pid is as the parent's. */
otel_status oteli_resource_renew(struct oteli_resource *resource,
                                 const struct oteli_resource *parents);
void oteli_resource_fini(struct oteli_resource *resource);

#endif
