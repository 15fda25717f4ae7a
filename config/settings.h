/* SPDX-License-Identifier: Apache-2.0 */
/* config/settings.h - what a configuration file says, as plain values: the in-memory model.
 *
 * Numbers are as otel_sdk_options has them: 0 is unset, OTEL_ZERO is zero. Everything is in the
 * pool of the document that it was read from.
 *
 * Threads:  start/stop only; immutable once it has been read. */
#ifndef OTELI_CONFIG_SETTINGS_H
#define OTELI_CONFIG_SETTINGS_H

#include "config/read/read_value.h"

#include <otel/config.h>
#include <otel/otlp.h>
#include <otel/sdk.h>

/* --- Processors: config/read_processor.c --- */

enum oteli_exporter_kind {
    OTELI_EXPORTER_OTLP,
    OTELI_EXPORTER_OTLP_FILE,
    OTELI_EXPORTER_CONSOLE,
    OTELI_EXPORTER_REGISTERED
};

struct oteli_exporter_setting {
    enum oteli_exporter_kind kind;
    const struct oteli_item *item; /* with its name */
    otel_otlp_options otlp;        /* OTLP */
    const char *path;              /* OTLP_FILE; NULL: stdout */
};

enum oteli_processor_kind {
    OTELI_PROCESSOR_BATCH,
    OTELI_PROCESSOR_SIMPLE,
    OTELI_PROCESSOR_REGISTERED
};

struct oteli_processor_setting {
    enum oteli_processor_kind kind;
    const struct oteli_item *item;          /* with its name */
    struct oteli_exporter_setting exporter; /* of those of the first two kinds */
};

/* --- All of it: config/settings.c --- */

struct oteli_tracer_setting {
    const char *pattern; /* of its name, with ? and * */
    bool is_enabled;
};

struct oteli_settings {
    struct oteli_pool *pool;  /* that everything is in */
    bool is_disabled;         /* by `disabled`, or because there is no tracer_provider */
    otel_sdk_options options; /* what it says of settings; NULL and 0: nothing */

    const otel_attribute *attributes;
    size_t attribute_count;
    bool detects_service;

    const struct oteli_processor_setting *processors;
    size_t processor_count;

    const struct oteli_node *sampler; /* NULL: the default one */

    bool has_tracer_rules;
    const struct oteli_tracer_setting *tracers; /* the first that matches counts */
    size_t tracer_count;
    bool are_tracers_enabled; /* where none matches */
};

/* Read a document that oteli_schema_check has found nothing wrong with. What is wrong with
 * several parts of it together is said here. */
void oteli_settings_read(const struct oteli_node *root, struct oteli_pool *pool,
                         struct oteli_faults *faults, struct oteli_settings *settings);

/* Parts of it. */
void oteli_processors_read(const struct oteli_node *processors, struct oteli_pool *pool,
                           struct oteli_faults *faults, struct oteli_settings *settings);
void oteli_resource_read(const struct oteli_node *resource, struct oteli_pool *pool,
                         struct oteli_faults *faults, struct oteli_settings *settings);

/* Make the sampler of the settings; why it cannot be made is in the log. One that asks a server
 * asks for the rules of this service (NULL: unknown). */
otel_status oteli_make_sampler(const struct oteli_settings *settings, const char *service_name,
                               struct oteli_faults *faults, otel_sampler *sampler);

#endif
