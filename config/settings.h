/* SPDX-License-Identifier: Apache-2.0 */
/* config/settings.h - what a configuration file says, as plain values where otel_sdk_options has
 * them, and what is made of the rest.
 *
 * Numbers are as otel_sdk_options has them: 0 is unset, OTEL_ZERO is zero. Everything is in the
 * pool of the file.
 *
 * Threads:  start/stop only; immutable once it has been read. */
#ifndef OTELI_CONFIG_SETTINGS_H
#define OTELI_CONFIG_SETTINGS_H

#include "config/read/read_value.h"

#include <otel/config.h>
#include <otel/otlp.h>
#include <otel/sdk.h>

struct oteli_settings {
    bool is_disabled;         /* by `disabled`, or because there is no tracer_provider */
    otel_sdk_options options; /* what it says of settings; NULL and 0: nothing */

    const otel_attribute *attributes;
    size_t attribute_count;
    bool detects_service;

    /* Parts of the document that are made into something; NULL: not there. */
    const struct oteli_node *processors;   /* a list */
    const struct oteli_node *sampler;      /* NULL: the default one */
    const struct oteli_node *configurator; /* says which tracers are enabled */
};

/* Read a document that oteli_schema_check has found nothing wrong with. What is wrong with
 * several parts of it together is said here. */
void oteli_settings_read(const struct oteli_node *root, struct oteli_file *file,
                         struct oteli_settings *settings);
void oteli_resource_read(const struct oteli_node *resource, struct oteli_file *file,
                         struct oteli_settings *settings);

/* --- What is made of them --- */

/* The exporter of an element of `processors`; NULL: it has none, as it is of a registered kind. */
const struct oteli_item *oteli_exporter_of(const struct oteli_node *processor);

/* The options of an OTLP exporter; false: it is another one. */
bool oteli_read_otlp(const struct oteli_item *exporter, struct oteli_file *file,
                     otel_otlp_options *otlp);

/* Make a processor; of one of the kind batch, its exporter alone, and `is_batch`. Why it cannot be
 * made is in the log. */
otel_status oteli_make_processor(const struct oteli_node *processor, struct oteli_file *file,
                                 bool *is_batch, otel_exporter *exporter, otel_processor *made);

/* Make the sampler of the settings; why it cannot be made is in the log. One that asks a server
 * asks for the rules of this service (NULL: unknown). */
otel_status oteli_make_sampler(const struct oteli_settings *settings, const char *service_name,
                               struct oteli_file *file, otel_sampler *sampler);

#endif
