/* SPDX-License-Identifier: Apache-2.0 */
/* config/config_start.c - otel/config.h: read a file, make what it says, start with it.
 *
 * Start/stop only. Owns the settings of the SDK that is running where tracers are decided by
 * them, and those of the one before it: a thread might still be asking. */
#include "config/build_options.h"
#include "config/yaml_file.h"
#include "exporters/otel_start.h"
#include "sdk/lifecycle/sdk_start.h"

#include <stdlib.h>

struct loaded {
    struct oteli_pool pool;
    struct oteli_settings settings;
};

static struct loaded *current;
static struct loaded *former;

static void unload(struct loaded *loaded)
{
    if (loaded != NULL)
        oteli_pool_fini(&loaded->pool);
    free(loaded);
}

static void keep(struct loaded *loaded)
{
    unload(former);
    former = current;
    current = loaded;
}

/* Nothing but the settings and what they are made of stays. */
static otel_status load(const char *path, struct oteli_faults *faults, struct loaded **loaded_out)
{
    struct loaded *loaded = calloc(1, sizeof *loaded);
    *loaded_out = loaded;
    if (loaded == NULL)
        return OTEL_ERROR_NO_MEMORY;
    return oteli_file_read(path, &loaded->pool, faults, &loaded->settings);
}

static otel_status start_with(struct loaded *loaded, const char *path,
                              const otel_sdk_options *options, struct oteli_faults *faults)
{
    struct oteli_creation creation;
    otel_status status = oteli_create(&loaded->settings, options, faults, &creation);
    if (status != OTEL_OK)
        return status;
    const struct oteli_start_file file = {.path = path,
                                          .exporters = creation.file_exporters,
                                          .processors = creation.file_processors,
                                          .has_sampler = loaded->settings.sampler != NULL};
    status = oteli_start_as(&creation.options, &file);
    oteli_creation_free(&creation);
    return status;
}

otel_status otel_start_from_file(const char *path, const otel_sdk_options *options)
{
    struct oteli_faults faults = {.file = path};
    struct loaded *loaded = NULL;
    otel_status status = OTEL_ERROR_INVALID_ARGUMENT;
    if (path != NULL)
        status = load(path, &faults, &loaded);
    if (status == OTEL_OK) {
        status = start_with(loaded, path, options, &faults);
    } else {
        const struct oteli_engine_options own = oteli_start_options(options);
        oteli_start_discard(&own);
    }
    if (status == OTEL_OK) {
        keep(loaded->settings.has_tracer_rules ? loaded : NULL);
        if (current == loaded)
            return status;
    }
    unload(loaded);
    return status;
}

otel_status otel_check_file(const char *path)
{
    struct oteli_faults faults = {.file = path};
    struct loaded *loaded = NULL;
    const otel_status status =
        path != NULL ? load(path, &faults, &loaded) : OTEL_ERROR_INVALID_ARGUMENT;
    unload(loaded);
    return status;
}
