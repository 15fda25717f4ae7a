/* SPDX-License-Identifier: Apache-2.0 */
/* api/baggage/baggage.c - baggages as programs see them: otel/baggage.h. Any thread. */
#include "api/baggage/baggage_pool.h"

#include <otel/ffi.h>
#include <string.h>

static otel_baggage set(otel_baggage baggage, otel_slice name, otel_slice value,
                        otel_slice metadata)
{
    struct oteli_baggage_builder builder;
    const struct oteli_baggage_member member = {.name = name, .value = value, .metadata = metadata};
    oteli_baggage_begin(&builder, baggage);
    if (!oteli_baggage_put(&builder, &member))
        return baggage;
    const otel_baggage made = oteli_baggage_finish(&builder);
    return made.opaque != 0 ? made : baggage;
}

otel_baggage otel_baggage_set(otel_baggage baggage, const char *name, const char *value,
                              const char *metadata)
{
    return set(baggage, oteli_slice_of(name), oteli_slice_of(value), oteli_slice_of(metadata));
}

void otel_baggage_set_p(otel_baggage *result, const otel_baggage *baggage, const char *name,
                        size_t name_length, const char *value, size_t value_length,
                        const char *metadata, size_t metadata_length)
{
    *result = set(*baggage, (otel_slice){name, name_length}, (otel_slice){value, value_length},
                  (otel_slice){metadata, metadata_length});
}

static otel_baggage without(otel_baggage baggage, otel_slice name)
{
    struct oteli_baggage_builder builder;
    oteli_baggage_begin(&builder, baggage);
    if (!oteli_baggage_drop(&builder, name))
        return baggage;
    return oteli_baggage_finish(&builder);
}

otel_baggage otel_baggage_remove(otel_baggage baggage, const char *name)
{
    return without(baggage, oteli_slice_of(name));
}

void otel_baggage_remove_p(otel_baggage *result, const otel_baggage *baggage, const char *name,
                           size_t name_length)
{
    *result = without(*baggage, (otel_slice){name, name_length});
}

/* One of the two texts of an entry. */
static size_t get(otel_baggage baggage, otel_slice name, bool wants_metadata, char *text,
                  size_t size)
{
    if (size != 0)
        text[0] = '\0';
    const struct oteli_baggage_entries *entries = oteli_baggage_hold(baggage);
    if (entries == NULL)
        return SIZE_MAX;
    const struct oteli_baggage_entry *entry = oteli_baggage_find(entries, name);
    size_t length = SIZE_MAX;
    if (entry != NULL && wants_metadata)
        length = oteli_slice_fit(
            text, size, (otel_slice){oteli_baggage_metadata(entry), entry->metadata_length});
    else if (entry != NULL)
        length = oteli_slice_fit(text, size,
                                 (otel_slice){oteli_baggage_value(entry), entry->value_length});
    oteli_baggage_release(baggage);
    return length;
}

size_t otel_baggage_get(otel_baggage baggage, const char *name, char *value, size_t size)
{
    return get(baggage, oteli_slice_of(name), false, value, size);
}

size_t otel_baggage_get_p(const otel_baggage *baggage, const char *name, size_t name_length,
                          char *value, size_t size)
{
    return get(*baggage, (otel_slice){name, name_length}, false, value, size);
}

size_t otel_baggage_get_metadata(otel_baggage baggage, const char *name, char *metadata,
                                 size_t size)
{
    return get(baggage, oteli_slice_of(name), true, metadata, size);
}

size_t otel_baggage_get_metadata_p(const otel_baggage *baggage, const char *name,
                                   size_t name_length, char *metadata, size_t size)
{
    return get(*baggage, (otel_slice){name, name_length}, true, metadata, size);
}

void otel_baggage_each(otel_baggage baggage, otel_baggage_visitor *visit, void *state)
{
    const struct oteli_baggage_entries *entries = oteli_baggage_hold(baggage);
    if (entries == NULL)
        return;
    uint32_t at = 0;
    const struct oteli_baggage_entry *entry;
    while ((entry = oteli_baggage_entry_at(entries, at)) != NULL) {
        const otel_baggage_entry shown = {
            .name = {oteli_baggage_name(entry), entry->name_length},
            .value = {oteli_baggage_value(entry), entry->value_length},
            .metadata = {oteli_baggage_metadata(entry), entry->metadata_length},
        };
        if (!visit(state, &shown))
            break;
        at += oteli_baggage_entry_length(entry);
    }
    oteli_baggage_release(baggage);
}

size_t otel_baggage_count(otel_baggage baggage)
{
    const struct oteli_baggage_entries *entries = oteli_baggage_hold(baggage);
    const size_t count = entries != NULL ? entries->count : 0;
    if (entries != NULL)
        oteli_baggage_release(baggage);
    return count;
}
