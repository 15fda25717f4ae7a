/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/resource/resource.h - what is being traced: attributes of all sources, merged once at start,
 * as the bytes of an OTLP Resource message. Immutable.
 *
 * Later wins: defaults, detectors, the program's defaults, OTEL_ENTITIES, OTEL_RESOURCE_ATTRIBUTES,
 * OTEL_SERVICE_NAME, code. Nothing in it counts against the limits of attributes.
 * Source: OpenTelemetry specification, resource/sdk.md; semantic conventions, resource. */
#ifndef OTELI_RESOURCE_H
#define OTELI_RESOURCE_H

#include "common/config/configuration.h"
#include "sdk/resource/detectors.h"

struct oteli_resource {
    char *otlp;
    size_t otlp_length;
    size_t own_length; /* in front: attributes of this process, which a forked child has not … */
    bool has_pid;      /* … its number, … */
    char instance[OTELI_UUID_SIZE]; /* … and the random id that it was given; "": none */
    char *schema_url;               /* NULL: none */
};

otel_status oteli_resource_init(struct oteli_resource *resource, const struct oteli_config *config,
                                const otel_attribute *attributes, size_t count);

/* The same for a forked child, which is another process and another instance of the service:
 * process.pid and service.instance.id are its own, where they were found out and not given. */
otel_status oteli_resource_renew(struct oteli_resource *resource,
                                 const struct oteli_resource *parents);
/* What it calls the service; empty: nothing that is a text. Points into the resource. */
otel_slice oteli_resource_service(const struct oteli_resource *resource);

void oteli_resource_fini(struct oteli_resource *resource);

#endif
