/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/unload_plugin.h - what the plug-ins of unload.c export. */
#ifndef OTELI_TESTS_UNLOAD_PLUGIN_H
#define OTELI_TESTS_UNLOAD_PLUGIN_H

#include <semaphore.h>
#include <stdbool.h>

/* Found by its name, "plugin". What is NULL the plug-in cannot do. */
struct plugin {
    bool (*start)(const char *endpoint);

    /* With an exporter of its own that says it is there and waits until it is told to go on. */
    bool (*start_hanging)(sem_t *is_there, sem_t *goes_on);
    void (*trace)(void);

    /* A state for this thread without any span, as a library leaves it that only passes
     * contexts on. */
    void (*attach)(void);

    /* Whether everything came back. */
    bool (*shut_down)(int timeout_ms);

    /* Call otel_shutdown when it is unloaded. */
    void (*shut_down_late)(void);
};

#endif
