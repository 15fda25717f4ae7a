/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/resource_snapshot.h - the resource of the running SDK, for parts that export it
 * beside spans: what library otel-sdk lends to otel-profiling.
 *
 * Threads:  one thread at a time for an identity. */
#ifndef OTELI_RESOURCE_SNAPSHOT_H
#define OTELI_RESOURCE_SNAPSHOT_H

#include "common/base/internal_api.h"
#include <otel/base.h>

struct oteli_resource_snapshot {
    char *resource; /* the bytes of an OTLP Resource message; NULL: not known yet */
    size_t resource_length;
    char *schema_url;    /* NULL: none */
    uint64_t generation; /* of that SDK; 0: of none */
};

/* Make it that of the SDK that runs, or ran last. Where there has been none it is what otel_start
 * would make of the environment, and stays so until there is one. Begins with a zeroed identity.
 * OTEL_ERROR_NO_MEMORY: it is as it was. */
OTELI_INTERNAL_API otel_status
oteli_resource_snapshot_renew(struct oteli_resource_snapshot *identity);

/* Also of one that is all zero. */
OTELI_INTERNAL_API void oteli_resource_snapshot_fini(struct oteli_resource_snapshot *identity);

#endif
