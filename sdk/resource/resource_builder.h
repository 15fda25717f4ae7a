/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/resource/resource_builder.h - a resource while it is being made: attributes, each key once,
 * and a schema URL.
 *
 * Each source (defaults, detectors, environment, code) fills facts of its own, and they are
 * merged in the order of their weight. Attributes of code are borrowed; whatever is found out
 * is kept in memory of the facts, and is there until oteli_facts_fini. Without memory the facts
 * have failed, and go on doing nothing.
 *
 * Threads:  start/stop only.
 * Source:   OpenTelemetry specification, resource/sdk.md "Merge". */
#ifndef OTELI_RESOURCE_BUILDER_H
#define OTELI_RESOURCE_BUILDER_H

#include "common/base/pool.h"
#include <otel/exporter.h>

struct oteli_facts {
    otel_attribute *attributes;
    size_t count;
    size_t capacity;
    const char *schema_url; /* NULL: none. Static, or there as long as the facts */
    bool has_two_schemas;   /* of which none is right: there is no URL any more */
    bool failed;            /* no memory */
    struct oteli_pool pool;
};

/* Set an attribute; a key that is there gets the new value, also an empty one. NULL and "" are
 * no keys, and are left out. Key and value are borrowed, the attribute itself is not. */
void oteli_facts_set(struct oteli_facts *facts, const char *key, otel_value value);
void oteli_facts_add(struct oteli_facts *facts, const otel_attribute *attribute);

/* The same with a string that is copied. */
void oteli_facts_set_text(struct oteli_facts *facts, const char *key, otel_slice text);

/* The value of a key, or NULL. */
const otel_value *oteli_facts_get(const struct oteli_facts *facts, const char *key);

/* Memory that is there as long as the facts; NULL when there is none. */
void *oteli_facts_keep(struct oteli_facts *facts, size_t size);

/* A NUL-terminated copy that is. */
char *oteli_facts_copy(struct oteli_facts *facts, otel_slice text);

/* What a file says, up to 64 KiB, with a NUL behind it; empty if it cannot be read. */
otel_slice oteli_facts_read(struct oteli_facts *facts, const char *path);

/* Put `updating` over `facts`, which has everything then; `updating` is left empty. The schema
 * URL is that of the only one that has any. Two different ones are a warning, and none. */
void oteli_facts_merge(struct oteli_facts *facts, struct oteli_facts *updating);

void oteli_facts_fini(struct oteli_facts *facts);

#endif
