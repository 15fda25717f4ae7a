/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/composable/annotating.c - ComposableAnnotating: what another sampler decides, and attributes
 * for the spans that are sampled. App threads; owns that sampler and copies of the attributes. */
#include "common/base/pool.h"
#include "common/log.h"
#include "sdk/sampling/owned_sampler.h"
#include "sdk/sampling/sampler_description.h"

#include <stdlib.h>
#include <string.h>

struct annotating {
    otel_composable inner;
    struct oteli_pool pool; /* of the attributes */
    otel_attribute *attributes;
    size_t count;
};

/* Put the attributes behind those that `inner` added, in the room for this span's. */
static void add_behind(const struct annotating *annotating, otel_sampling_intent *intent)
{
    const size_t before =
        intent->attribute_count < OTEL_SAMPLING_ROOM ? intent->attribute_count : OTEL_SAMPLING_ROOM;
    const size_t room = OTEL_SAMPLING_ROOM - before;
    const size_t added = annotating->count < room ? annotating->count : room;
    if (intent->attributes != intent->room)
        memcpy(intent->room, intent->attributes, before * sizeof *intent->room);
    memcpy(intent->room + before, annotating->attributes, added * sizeof *intent->room);
    if (before < intent->attribute_count || added < annotating->count)
        OTELI_LOG(OTEL_LOG_WARN,
                  "samplers add more than %d attributes to one span; the rest is "
                  "left out",
                  OTEL_SAMPLING_ROOM);
    intent->attributes = intent->room;
    intent->attribute_count = before + added;
}

static void intend(const void *state, const otel_sampling_query *query,
                   otel_sampling_intent *intent)
{
    const struct annotating *annotating = state;
    annotating->inner.intend(annotating->inner.state, query, intent);
    if (intent->attribute_count != 0) {
        add_behind(annotating, intent);
    } else {
        intent->attributes = annotating->attributes;
        intent->attribute_count = annotating->count;
    }
}

static size_t describe(const void *state, char *text, size_t size)
{
    const struct annotating *annotating = state;
    struct oteli_text_builder words = {text, size, 0};
    oteli_build(&words, "ComposableAnnotating{");
    oteli_describe_composable(&words, &annotating->inner);
    for (size_t i = 0; i < annotating->count; i++) {
        oteli_build(&words, "%s%s", i == 0 ? ",attributes:" : ";", annotating->attributes[i].key);
    }
    oteli_build(&words, "}");
    return words.length;
}

static void free_state(void *state)
{
    struct annotating *annotating = state;
    oteli_composable_free(&annotating->inner);
    oteli_pool_fini(&annotating->pool);
    free(annotating);
}

/* Let a value point to a copy of the bytes that it points to. */
static otel_status copy_bytes(struct oteli_pool *pool, otel_value *value, size_t size)
{
    void *copy = oteli_pool_take(pool, size);
    if (copy == NULL)
        return OTEL_ERROR_NO_MEMORY;
    if (size != 0)
        memcpy(copy, value->as.bytes, size);
    value->as.bytes = copy;
    return OTEL_OK;
}

/* The same of strings. A NULL among them stays one. */
static otel_status copy_strings(struct oteli_pool *pool, otel_value *value)
{
    const char *const *strings = value->as.strings;
    const char **copies = oteli_pool_array(pool, value->length, sizeof *copies);
    value->as.strings = copies;
    for (size_t i = 0; copies != NULL && i < value->length; i++) {
        if (strings[i] == NULL)
            continue;
        copies[i] = oteli_pool_text(pool, strings[i], strlen(strings[i]));
        if (copies[i] == NULL)
            return OTEL_ERROR_NO_MEMORY;
    }
    return copies != NULL ? OTEL_OK : OTEL_ERROR_NO_MEMORY;
}

/* What points nowhere is empty. */
static otel_status copy_value(struct oteli_pool *pool, otel_value *copy)
{
    if (copy->as.bytes == NULL)
        copy->length = 0;
    switch (copy->type) {
    case OTEL_VALUE_EMPTY:
    case OTEL_VALUE_BOOL:
    case OTEL_VALUE_INT:
    case OTEL_VALUE_DOUBLE:
        return OTEL_OK;
    case OTEL_VALUE_STRING:
    case OTEL_VALUE_BYTES:
        return copy_bytes(pool, copy, copy->length);
    case OTEL_VALUE_STRING_ARRAY:
        return copy_strings(pool, copy);
    case OTEL_VALUE_BOOL_ARRAY:
        return copy_bytes(pool, copy, copy->length * sizeof(bool));
    case OTEL_VALUE_INT_ARRAY:
        return copy_bytes(pool, copy, copy->length * sizeof(int64_t));
    case OTEL_VALUE_DOUBLE_ARRAY:
        return copy_bytes(pool, copy, copy->length * sizeof(double));
    case OTEL_VALUE_ARRAY:
    case OTEL_VALUE_MAP:
        break;
    }
    return OTEL_ERROR_INVALID_ARGUMENT;
}

static otel_status copy_attributes(struct annotating *annotating, const otel_attribute *attributes,
                                   size_t count)
{
    struct oteli_pool *pool = &annotating->pool;
    otel_attribute *copies = oteli_pool_array(pool, count, sizeof *copies);
    otel_status status = copies != NULL ? OTEL_OK : OTEL_ERROR_NO_MEMORY;
    for (size_t i = 0; status == OTEL_OK && i < count; i++) {
        const otel_slice key = oteli_key_of(&attributes[i]);
        copies[i].value = attributes[i].value;
        status = copy_value(pool, &copies[i].value);
        copies[i].key = oteli_pool_text(pool, key.data, key.length);
        copies[i].key_length = key.length;
        if (status == OTEL_OK && copies[i].key == NULL)
            status = OTEL_ERROR_NO_MEMORY;
    }
    annotating->attributes = copies;
    annotating->count = count;
    return status;
}

otel_status otel_composable_annotating(otel_composable inner, const otel_attribute *attributes,
                                       size_t count, otel_composable *composable)
{
    otel_status status = OTEL_ERROR_INVALID_ARGUMENT;
    if (inner.intend == NULL)
        goto fail;
    struct annotating *annotating = calloc(1, sizeof *annotating);
    status = OTEL_ERROR_NO_MEMORY;
    if (annotating == NULL)
        goto fail;
    annotating->inner = inner;
    status = copy_attributes(annotating, attributes, count);
    if (status != OTEL_OK) {
        free_state(annotating);
        return status;
    }
    *composable = OTEL_COMPOSABLE(.state = annotating, .intend = intend, .describe = describe,
                                  .free = free_state);
    return OTEL_OK;

fail:
    oteli_composable_free(&inner);
    return status;
}
