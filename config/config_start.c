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
    struct oteli_file file;
    struct oteli_settings settings;
};

static struct loaded *current;
static struct loaded *former;

static void unload(struct loaded *loaded)
{
    if (loaded != NULL)
        oteli_pool_fini(&loaded->file.pool);
    free(loaded);
}

static void keep(struct loaded *loaded)
{
    unload(former);
    former = current;
    current = loaded;
}

/* Nothing but the settings and what they are made of stays. */
static otel_status load(const char *path, struct loaded **loaded_out)
{
    struct loaded *loaded = path != NULL ? calloc(1, sizeof *loaded) : NULL;
    *loaded_out = loaded;
    if (loaded == NULL)
        return path != NULL ? OTEL_ERROR_NO_MEMORY : OTEL_ERROR_INVALID_ARGUMENT;
    loaded->file.path = path;
    return oteli_file_read(&loaded->file, &loaded->settings);
}

static otel_status start_with(struct loaded *loaded, const otel_sdk_options *options)
{
    struct oteli_creation creation;
    const otel_status status = oteli_create(&loaded->settings, options, &loaded->file, &creation);
    if (status != OTEL_OK)
        return status;
    const struct oteli_start_file file = {.path = loaded->file.path,
                                          .exporters = creation.file_exporters,
                                          .processors = creation.file_processors,
                                          .has_sampler = loaded->settings.sampler != NULL};
    return oteli_start_as(&creation.options, &file);
}

otel_status otel_start_from_file(const char *path, const otel_sdk_options *options)
{
    struct loaded *loaded;
    otel_status status = load(path, &loaded);
    if (status == OTEL_OK) {
        status = start_with(loaded, options);
    } else {
        const struct oteli_engine_options own = oteli_start_options(options);
        oteli_start_discard(&own);
    }
    if (status == OTEL_OK) {
        keep(loaded->settings.configurator != NULL ? loaded : NULL);
        if (current == loaded)
            return status;
    }
    unload(loaded);
    return status;
}

otel_status otel_check_file(const char *path)
{
    struct loaded *loaded;
    const otel_status status = load(path, &loaded);
    unload(loaded);
    return status;
}
