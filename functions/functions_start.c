/* SPDX-License-Identifier: Apache-2.0 */
/* functions/functions_start.c - puts the parts together when the library is loaded, and answers
 * otel/functions.h.
 *
 * A program that is traced without being changed calls nothing of this library. So this runs when
 * the library is loaded, before main. It reads three settings and, if functions are excluded by
 * name, the symbol tables. Spans are made once the program has started an SDK. */
#include <otel/functions.h>

#include "common/os/fork.h"
#include "functions/entry_hooks.h"
#include "functions/exclude.h"
#include "functions/functions_settings.h"
#include "functions/symbols.h"

#include <pthread.h>

static struct oteli_function_settings settings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one update at a time */
static uint64_t excluded_serial; /* the modules that the exclude list was last applied to */

/* In a forked child: without the locks of the parent's threads, which it does not have. */
static void forget(void)
{
    pthread_mutex_init(&lock, NULL);
    oteli_symbols_forget();
}

void otel_functions_rescan(void)
{
    if (settings.exclude == NULL)
        return;
    pthread_mutex_lock(&lock);
    const uint64_t serial = oteli_symbols_serial();
    if (serial != excluded_serial) {
        oteli_exclude_update(settings.exclude);
        excluded_serial = serial;
    }
    pthread_mutex_unlock(&lock);
}

/* Exporter thread. It is also the one that notices when modules have come. */
static size_t resolve(const void *address, char *name, size_t size)
{
    static bool has_warned; /* when there are spans of functions, so that the program is up */
    otel_functions_rescan();
    if (!has_warned)
        oteli_exclude_warn(settings.exclude);
    has_warned = true;
    return oteli_symbols_name(address, name, size);
}

void otel_functions_enable(bool enabled)
{
    oteli_custom_enable(enabled);
}

size_t otel_functions_name(const void *address, char *name, size_t size)
{
    if (size == 0)
        return oteli_symbols_name(address, NULL, 0);
    const size_t length = oteli_symbols_name(address, name, size - 1);
    name[length < size ? length : size - 1] = '\0';
    return length;
}

__attribute__((constructor)) static void on_load(void)
{
    oteli_function_settings_read(&settings);
    oteli_fork_add(forget);
    otel_functions_rescan();
    otel_set_name_resolver(resolve);
    oteli_custom_start(otel_tracer_get("otel.functions", OTEL_VERSION), &settings.limits);
}

/* What is excluded stays: other threads may be asking while the process ends. */
__attribute__((destructor)) static void free_at_exit(void)
{
    oteli_fork_notice();
    oteli_symbols_fini();
}
