/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/resource_snapshot.c - the contracts are in resource_snapshot.h. One thread at a
 * time for an identity, which owns its copies. */
#include "sdk/lifecycle/resource_snapshot.h"

#include "sdk/engine/current_engine.h"

#include <stdlib.h>
#include <string.h>

static otel_status copy(struct oteli_resource_snapshot *made, const struct oteli_resource *resource)
{
    /* Not malloc(0), which may answer NULL. */
    made->resource = malloc(resource->otlp_length + 1);
    made->resource_length = resource->otlp_length;
    made->schema_url = resource->schema_url != NULL ? strdup(resource->schema_url) : NULL;
    if (made->resource == NULL || (resource->schema_url != NULL && made->schema_url == NULL)) {
        oteli_resource_snapshot_fini(made);
        return OTEL_ERROR_NO_MEMORY;
    }
    memcpy(made->resource, resource->otlp, resource->otlp_length);
    return OTEL_OK;
}

/* Leaves it empty where there is nothing new. */
static otel_status take_of_sdk(struct oteli_resource_snapshot *made, uint64_t known)
{
    otel_status status = OTEL_OK;
    oteli_current_lock();
    const struct oteli_engine *engine = oteli_current.engine;
    if (engine != NULL && engine->sdk.generation != known) {
        status = copy(made, &engine->resource);
        made->generation = engine->sdk.generation;
    }
    oteli_current_unlock();
    return status;
}

static otel_status take_of_environment(struct oteli_resource_snapshot *made)
{
    struct oteli_config config;
    struct oteli_resource resource;
    otel_status status = oteli_config_look(&config);
    if (status != OTEL_OK)
        return status;
    status = oteli_resource_init(&resource, &config, NULL, 0);
    if (status == OTEL_OK) {
        status = copy(made, &resource);
        oteli_resource_fini(&resource);
    }
    oteli_config_fini(&config);
    return status;
}

otel_status oteli_resource_snapshot_renew(struct oteli_resource_snapshot *identity)
{
    struct oteli_resource_snapshot made = {0};
    otel_status status = take_of_sdk(&made, identity->generation);
    if (status == OTEL_OK && made.resource == NULL && identity->resource == NULL)
        status = take_of_environment(&made);
    if (status != OTEL_OK || made.resource == NULL)
        return status;
    oteli_resource_snapshot_fini(identity);
    *identity = made;
    return OTEL_OK;
}

void oteli_resource_snapshot_fini(struct oteli_resource_snapshot *identity)
{
    free(identity->resource);
    free(identity->schema_url);
    *identity = (struct oteli_resource_snapshot){0};
}
