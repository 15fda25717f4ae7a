/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/context_attributes.c - attributes of contexts: put there, listed, and given to a
 * span. Any thread.
 *
 * Source: OpenTelemetry enhancement proposal 4931. */
#include "api/span/context_attributes.h"
#include "api/encode/key_index.h"
#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST = 1024, /* that one span gets from its context */
    LISTED = 64, /* that are looked at without an allocation */
    FEW = sizeof((struct oteli_scoped){0}).few / sizeof(otel_attribute)
};

otel_context otel_context_with_attributes(otel_context context, const otel_attribute *attributes,
                                          size_t count, otel_context_attributes *place)
{
    const otel_context_key key = {OTELI_SCOPED_KEY};
    place->attributes = attributes;
    place->count = attributes != NULL ? count : 0;
    return otel_context_with_value(context, key, place, &place->value);
}

/* The newest place with attributes among these values; NULL: there is none. */
static const otel_context_attributes *place_of(const otel_context_value *values)
{
    while (values != NULL && values->key != OTELI_SCOPED_KEY)
        values = values->next;
    return values != NULL ? values->value : NULL;
}

static void copy(otel_attribute *to, const otel_attribute *from, size_t count)
{
    if (count != 0)
        memcpy(to, from, count * sizeof *to);
}

/* List the attributes of all places, from the oldest to the newest, and `own` behind them: the last
 * with a key is the one that counts. */
static void list_all(otel_attribute *list, size_t count, const otel_context_value *values,
                     const otel_attribute *own, size_t own_count)
{
    copy(list + count, own, own_count);
    const otel_context_attributes *place = place_of(values);
    for (; place != NULL; place = place_of(place->value.next)) {
        count -= place->count;
        copy(list + count, place->attributes, place->count);
    }
}

/* Write those of a context whose keys `own` has not, at most `size`, the newest places first.
 * Returns how many there are; 0 without memory for a list of many. */
static size_t collect(const otel_context_value *values, const otel_attribute *own, size_t own_count,
                      otel_attribute *to, size_t size)
{
    otel_attribute few[LISTED];
    size_t end = 0;
    const otel_context_attributes *place = place_of(values);
    for (; place != NULL; place = place_of(place->value.next))
        end += place->count;
    const size_t listed = end + own_count;
    otel_attribute *list = listed <= LISTED ? few : oteli_calloc(listed, sizeof *list);
    if (list == NULL)
        return 0;
    struct oteli_keys keys;
    list_all(list, end, values, own, own_count);
    oteli_keys_init(&keys, list, listed, true);
    size_t count = 0;
    for (place = place_of(values); place != NULL; place = place_of(place->value.next)) {
        for (size_t i = end - place->count; i < end; i++) {
            if (list[i].key == NULL || oteli_key_is_overwritten(&keys, list, listed, i))
                continue;
            if (count < size)
                to[count] = list[i];
            count++;
        }
        end -= place->count;
    }
    oteli_keys_fini(&keys);
    if (list != few)
        free(list);
    return count;
}

size_t otel_context_get_attributes(const otel_context *context, otel_attribute *attributes,
                                   size_t size)
{
    return collect(context != NULL ? context->values : oteli_self->values, NULL, 0, attributes,
                   size);
}

/* Options of a program that knows fewer of them have less to copy. */
static void copy_options(otel_span_options *to, const otel_span_options *from)
{
    const size_t first_ones = offsetof(otel_span_options, hold);
    size_t size = from->size < sizeof *to ? from->size : sizeof *to;
    if (size < first_ones)
        size = first_ones;
    memset(to, 0, sizeof *to);
    memcpy(to, from, size);
    to->size = sizeof *to;
}

void oteli_scoped_begin(struct oteli_scoped *scoped, const otel_context_value *current,
                        const otel_span_options *options)
{
    scoped->options = (otel_span_options){.size = sizeof scoped->options};
    scoped->attributes = NULL;
    if (options != NULL)
        copy_options(&scoped->options, options);
    otel_span_options *made = &scoped->options;
    const otel_context_value *values = made->parent != NULL ? made->parent->values : current;
    const otel_attribute *own = made->attributes;
    const size_t own_count = own != NULL ? made->attribute_count : 0;
    otel_attribute *all = scoped->few;
    const size_t room = own_count < FEW ? FEW - own_count : 0;
    size_t more = collect(values, own, own_count, all + FEW - room, room);
    if (own_count + more > FEW) {
        if (more > MOST)
            more = MOST;
        all = scoped->attributes = oteli_malloc((own_count + more) * sizeof *all);
        if (all == NULL)
            return; /* no memory: its own */
        collect(values, own, own_count, all + own_count, more);
    }
    copy(all, own, own_count);
    made->attributes = all;
    made->attribute_count = own_count + more;
}

void oteli_scoped_end(struct oteli_scoped *scoped)
{
    free(scoped->attributes);
}
