/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/resource/entities.h - the entities of OTEL_ENTITIES: which attributes of the resource
 * identify what, and which describe it.
 *
 *     type{id=value,…}[description=value,…]@schema_url;…
 *
 * An entity that is malformed is left out with a warning; the others count. There is one of each
 * type: the last. Everything lies in memory of the facts that they were parsed with.
 *
 * Threads:  start/stop only.
 * Source:   OpenTelemetry specification, entities/entity-propagation.md and
 *           resource/data-model.md (both in development); opentelemetry-proto, EntityRef. */
#ifndef OTELI_ENTITIES_H
#define OTELI_ENTITIES_H

#include "sdk/resource/resource_builder.h"

struct oteli_entity_fact {
    const char *key;
    otel_slice value;
    bool is_out; /* another entity has it */
};

struct oteli_entity {
    const char *type;
    const char *schema_url;          /* "": none */
    struct oteli_entity_fact *facts; /* those that identify it, and then those that describe it */
    size_t identifying;
    size_t count;
    bool is_out;
};

struct oteli_entities {
    const char *setting; /* what the text is called; static */
    struct oteli_entity *list;
    size_t count;
};

/* Read the text of `setting`, which complaints name, and settle which of the entities in it
 * stay. */
void oteli_entities_parse(struct oteli_entities *entities, struct oteli_facts *memory,
                          const char *setting, const char *text);

/* Leave out every entity that has another value for one of these attributes: they stand alone,
 * and weigh more. */
void oteli_entities_yield(struct oteli_entities *entities, const struct oteli_facts *loose);

/* Set the attributes of those that stay. */
void oteli_entities_apply(const struct oteli_entities *entities, struct oteli_facts *facts);

/* The fields Resource.entity_refs for those that stay. */
size_t oteli_entities_size(const struct oteli_entities *entities);
uint8_t *oteli_entities_put(uint8_t *at, const struct oteli_entities *entities);

#endif
