/* SPDX-License-Identifier: Apache-2.0 */
/* api/baggage/baggage.c - baggages as programs see them, and how one is put together. Any
 * thread. */
#include "api/baggage/baggage_pool.h"
#include "api/thread/thread_state.h"
#include "common/text/utf8.h"

#include <string.h>

static size_t length_of(const char *text)
{
    return text != NULL ? strlen(text) : 0;
}

static const struct oteli_baggage_entry *find(const struct oteli_baggage_entries *entries,
                                              const char *name, size_t name_length)
{
    uint32_t at = 0;
    const struct oteli_baggage_entry *entry;
    while ((entry = oteli_baggage_entry_at(entries, at)) != NULL) {
        if (entry->name_length == name_length &&
            memcmp(oteli_baggage_name(entry), name, name_length) == 0)
            return entry;
        at += oteli_baggage_entry_length(entry);
    }
    return NULL;
}

/* --- putting one together --- */

void oteli_baggage_begin(struct oteli_baggage_builder *builder, otel_baggage from)
{
    struct oteli_baggage_entries *made = &builder->made.entries;
    builder->text_left = OTELI_BAGGAGE_TEXT + 1; /* and a comma behind the last header */
    const struct oteli_baggage_entries *entries = oteli_baggage_hold(from);
    if (entries == NULL) {
        *made = (struct oteli_baggage_entries){0};
        return;
    }
    memcpy(made, entries, sizeof *entries + entries->length);
    oteli_baggage_release(from);
}

static uint8_t *data_of(struct oteli_baggage_entries *made)
{
    return (uint8_t *)(made + 1);
}

static void take_out(struct oteli_baggage_entries *made, const struct oteli_baggage_entry *entry)
{
    const uint32_t at = (uint32_t)((const uint8_t *)entry - data_of(made));
    const uint32_t length = oteli_baggage_entry_length(entry);
    made->count--;
    made->wire_length = (uint16_t)(made->wire_length - entry->wire_length);
    made->length -= length;
    memmove(data_of(made) + at, data_of(made) + at + length, made->length - at);
}

static void append(struct oteli_baggage_entries *made, const struct oteli_baggage_member *member,
                   const struct oteli_baggage_entry *head)
{
    struct oteli_baggage_entry *entry = (void *)(data_of(made) + made->length);
    *entry = *head;
    char *at = (char *)(entry + 1);
    memcpy(at, member->name, member->name_length);
    at += member->name_length;
    *at++ = '\0';
    at = oteli_baggage_clean(at, member->value, member->value_length, member->is_encoded);
    *at++ = '\0';
    at = oteli_baggage_clean_metadata(at, member->metadata, member->metadata_length);
    *at = '\0';
    made->count++;
    made->wire_length = (uint16_t)(made->wire_length + head->wire_length);
    made->length += oteli_baggage_entry_length(head);
}

bool oteli_baggage_put(struct oteli_baggage_builder *builder,
                       const struct oteli_baggage_member *member)
{
    struct oteli_baggage_entries *made = &builder->made.entries;
    if (member->name_length == 0 || member->name_length > OTELI_BAGGAGE_BYTES ||
        member->value_length > (size_t)3 * OTELI_BAGGAGE_BYTES ||
        member->metadata_length > OTELI_BAGGAGE_BYTES ||
        !oteli_utf8_is_valid(member->name, member->name_length))
        return false;
    const struct oteli_baggage_size value =
        oteli_baggage_measure(member->value, member->value_length, member->is_encoded);
    const struct oteli_baggage_size metadata =
        oteli_baggage_measure_metadata(member->metadata, member->metadata_length);
    const size_t wire =
        member->name_length + 1 + value.wire + (metadata.wire != 0 ? 1 + metadata.wire : 0) + 1;
    const struct oteli_baggage_entry *old = find(made, member->name, member->name_length);
    const size_t others = made->wire_length - (old != NULL ? old->wire_length : 0u);
    if (wire > OTELI_BAGGAGE_BYTES + 1 - others ||
        (old == NULL && made->count == OTELI_BAGGAGE_MEMBERS))
        return false;
    if (old != NULL)
        take_out(made, old);
    const struct oteli_baggage_entry head = {(uint16_t)member->name_length, (uint16_t)value.stored,
                                             (uint16_t)metadata.stored, (uint16_t)wire};
    append(made, member, &head);
    return true;
}

bool oteli_baggage_drop(struct oteli_baggage_builder *builder, const char *name, size_t name_length)
{
    const struct oteli_baggage_entry *entry = find(&builder->made.entries, name, name_length);
    if (entry == NULL)
        return false;
    take_out(&builder->made.entries, entry);
    return true;
}

otel_baggage oteli_baggage_finish(const struct oteli_baggage_builder *builder)
{
    if (builder->made.entries.count == 0)
        return otel_baggage_none();
    return oteli_baggage_store(&builder->made.entries);
}

/* --- otel/baggage.h --- */

otel_baggage otel_context_baggage(const otel_context *context)
{
    return (otel_baggage){context != NULL ? context->baggage : oteli_self->baggage};
}

otel_baggage otel_baggage_set(otel_baggage baggage, const char *name, const char *value,
                              const char *metadata)
{
    struct oteli_baggage_builder builder;
    const struct oteli_baggage_member member = {.name = name,
                                                .name_length = length_of(name),
                                                .value = value,
                                                .value_length = length_of(value),
                                                .metadata = metadata,
                                                .metadata_length = length_of(metadata)};
    oteli_baggage_begin(&builder, baggage);
    if (!oteli_baggage_put(&builder, &member))
        return baggage;
    const otel_baggage made = oteli_baggage_finish(&builder);
    return made.opaque != 0 ? made : baggage;
}

otel_baggage otel_baggage_remove(otel_baggage baggage, const char *name)
{
    struct oteli_baggage_builder builder;
    oteli_baggage_begin(&builder, baggage);
    if (!oteli_baggage_drop(&builder, name, length_of(name)))
        return baggage;
    return oteli_baggage_finish(&builder);
}

static size_t copy(char *out, size_t size, const char *text, size_t length)
{
    if (size != 0) {
        const size_t copied = length < size ? length : size - 1;
        memcpy(out, text, copied);
        out[copied] = '\0';
    }
    return length;
}

/* One of the two texts of an entry. */
static size_t get(otel_baggage baggage, const char *name, bool wants_metadata, char *text,
                  size_t size)
{
    if (size != 0)
        text[0] = '\0';
    const struct oteli_baggage_entries *entries = oteli_baggage_hold(baggage);
    if (entries == NULL)
        return SIZE_MAX;
    const struct oteli_baggage_entry *entry = find(entries, name, length_of(name));
    size_t length = SIZE_MAX;
    if (entry != NULL && wants_metadata)
        length = copy(text, size, oteli_baggage_metadata(entry), entry->metadata_length);
    else if (entry != NULL)
        length = copy(text, size, oteli_baggage_value(entry), entry->value_length);
    oteli_baggage_release(baggage);
    return length;
}

size_t otel_baggage_get(otel_baggage baggage, const char *name, char *value, size_t size)
{
    return get(baggage, name, false, value, size);
}

size_t otel_baggage_get_metadata(otel_baggage baggage, const char *name, char *metadata,
                                 size_t size)
{
    return get(baggage, name, true, metadata, size);
}

void otel_baggage_each(otel_baggage baggage, otel_baggage_visitor *visit, void *state)
{
    const struct oteli_baggage_entries *entries = oteli_baggage_hold(baggage);
    if (entries == NULL)
        return;
    uint32_t at = 0;
    const struct oteli_baggage_entry *entry;
    while ((entry = oteli_baggage_entry_at(entries, at)) != NULL) {
        const char *metadata = entry->metadata_length != 0 ? oteli_baggage_metadata(entry) : NULL;
        if (!visit(state, oteli_baggage_name(entry), oteli_baggage_value(entry), metadata))
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
