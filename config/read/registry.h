/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/registry.h - the components that programs have given names. Start/stop only. */
#ifndef OTELI_CONFIG_REGISTRY_H
#define OTELI_CONFIG_REGISTRY_H

#include "config/read/document.h"

#include <otel/config.h>

/* NULL: there is none. */
const otel_component_provider *oteli_registry_find(otel_component_type type, const char *name);

/* Make the component that an item of a checked document names and describes: an exporter, a
 * processor or a sampler. */
otel_status oteli_registry_create(otel_component_type type, const struct oteli_item *item,
                                  void *component);

/* A node of a document, as a provider sees it. */
const otel_properties *oteli_properties_of(const struct oteli_node *node);

/* For tests: forget all of them. */
void oteli_registry_reset(void);

#endif
