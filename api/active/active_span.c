/* SPDX-License-Identifier: Apache-2.0 */
/* api/active/active_span.c - collect what is said about an open span, in wire form and under the
 * limits: name and status. Attributes are in active_attributes.c, events and links in
 * active_events.c. Runs on the app thread that owns the slot. */
#include "api/active/active_span.h"
#include "api/context/tracestate_pool.h"
#include "api/encode/leaf_value.h"
#include "common/base/alloc.h"
#include "common/log.h"
#include "common/text/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST_BUFFER = 1 << 30 };

uint8_t *oteli_buffer_grow(struct oteli_buffer *buffer, size_t more)
{
    if (more > LARGEST_BUFFER - (size_t)buffer->length)
        return NULL;
    const size_t needed = buffer->length + more;
    size_t capacity = buffer->capacity != 0 ? buffer->capacity : OTELI_BUFFER_FIRST;
    while (capacity < needed)
        capacity *= 2;
    uint8_t *data = oteli_realloc(buffer->data, capacity);
    if (data == NULL)
        return NULL;
    buffer->data = data;
    buffer->capacity = (uint32_t)capacity;
    return data + buffer->length;
}

void oteli_buffer_fini(struct oteli_buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct oteli_buffer){0};
}

/* An attached context only mentions its tracestate; an open span holds it, and is unusual. */
static void let_tracestate_go(struct oteli_active_span *active)
{
    if (OTELI_LIKELY((active->self.opaque[3] & OTELI_REF_TRACESTATE) == 0))
        return;
    if (active->traits.is_unusual && (active->self.opaque[3] & OTELI_REF_ATTACHED) == 0)
        oteli_tracestate_release(oteli_active_tracestate(active));
    active->self.opaque[3] &= ~OTELI_REF_TRACESTATE;
}

/* --- texts --- */

/* Append a text, with bad UTF-8 replaced. False: no memory. */
static bool append_text(struct oteli_buffer *buffer, const char *text, size_t length)
{
    if (length == 0)
        return true;
    uint8_t *at = oteli_buffer_room(buffer, length);
    if (at == NULL)
        return false;
    uint8_t *end = oteli_text_copy(at, text, length);
    if (OTELI_UNLIKELY(end == NULL)) { /* it is longer where it is mended */
        const size_t size = oteli_text_size(text, length);
        at = oteli_buffer_room(buffer, size);
        if (at == NULL)
            return false;
        end = oteli_text_put(at, text, length, size);
    }
    buffer->length = (uint32_t)(end - buffer->data);
    return true;
}

/* A name that has no place inline. Without memory it is cut to what has. */
static void keep_long_name(struct oteli_active_span *active, const char *name, size_t length)
{
    struct oteli_buffer *buffer = &active->unusual.name;
    active->traits.is_unusual |= OTELI_HAS_MORE;
    buffer->length = 0;
    if (OTELI_LIKELY(append_text(buffer, name, length))) {
        active->name_length = buffer->length;
        return;
    }
    const size_t most = length < OTELI_NAME_INLINE ? length : OTELI_NAME_INLINE;
    active->name_length = (uint32_t)oteli_utf8_valid_prefix(name, most);
    memcpy(active->name, name, active->name_length);
}

/* --- memory for attributes --- */

static void free_own(struct oteli_active_span *active)
{
    free(active->own);
    active->own = NULL;
    active->unusual.own_size = 0;
}

/* Its own memory has at least `needed` bytes from now on, and begins with `attributes`. */
static bool own_at_least(struct oteli_active_span *active, size_t needed,
                         const struct oteli_buffer *attributes)
{
    unsigned size = active->unusual.own_size != 0 ? active->unusual.own_size : OTELI_OWN_SIZE_FIRST;
    while (size < OTELI_OWN_SIZE_MOST && (size_t)1 << size < needed)
        size++;
    if (needed > (size_t)1 << size)
        return false;
    uint8_t *own = active->own;
    if (size != active->unusual.own_size)
        own = oteli_malloc((size_t)1 << size);
    if (own == NULL)
        return false;
    if (attributes->length != 0 && own != attributes->data)
        memcpy(own, attributes->data, attributes->length);
    if (own != active->own)
        free(active->own);
    active->own = own;
    active->unusual.own_size = (uint8_t)size;
    return true;
}

void oteli_active_take_back(struct oteli_active_span *active)
{
    const struct oteli_buffer lent = active->attributes;
    const uint32_t count = active->attribute_count;
    const uint64_t filter = active->attribute_filter;
    if (OTELI_LIKELY(active->name_length <= OTELI_NAME_INLINE))
        (void)oteli_move(active->name, oteli_active_name(active), active->name_length);
    else
        keep_long_name(active, oteli_active_name(active), active->name_length);
    const bool has_room = lent.length == 0 || own_at_least(active, lent.length, &lent);
    oteli_active_begin_own(active);
    if (OTELI_UNLIKELY(!has_room)) {
        active->unusual.dropped_attributes += count;
        active->traits.is_unusual |= OTELI_HAS_MORE;
        return;
    }
    active->attributes.length = lent.length;
    active->attribute_count = count;
    active->attribute_filter = filter;
}

uint8_t *oteli_active_grow(struct oteli_active_span *active, size_t more)
{
    if (active->traits.is_lent) {
        const uint32_t length = active->attributes.length;
        oteli_active_take_back(active);
        if (OTELI_UNLIKELY(active->attributes.length != length))
            return NULL; /* what the caller has found among them is gone */
        return oteli_active_room(active, more);
    }
    struct oteli_buffer *attributes = &active->attributes;
    if (!own_at_least(active, attributes->length + more, attributes))
        return NULL;
    attributes->data = active->own;
    attributes->capacity = oteli_active_own_capacity(active);
    return attributes->data + attributes->length;
}

void oteli_active_forget(struct oteli_active_span *active)
{
    struct oteli_unusual *unusual = &active->unusual;
    const size_t from = offsetof(struct oteli_unusual, status);
    unusual->name.length = unusual->events.length = unusual->links.length = 0;
    unusual->message.length = 0;
    memset((char *)unusual + from, 0, offsetof(struct oteli_unusual, name) - from);
    active->traits.is_unusual = 0;
    oteli_active_begin_own(active);
}

/* Give back what is large. */
static OTELI_COLD void shrink(struct oteli_active_span *active)
{
    struct oteli_unusual *unusual = &active->unusual;
    struct oteli_buffer *const buffers[] = {&unusual->name, &unusual->events, &unusual->links,
                                            &unusual->message};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        if (buffers[i]->capacity > OTELI_BUFFER_KEPT)
            oteli_buffer_fini(buffers[i]);
    if (oteli_active_own_capacity(active) > OTELI_BUFFER_KEPT)
        free_own(active);
}

void oteli_active_lighten(struct oteli_active_span *active)
{
    const struct oteli_unusual *unusual = &active->unusual;
    let_tracestate_go(active);
    const uint32_t largest = unusual->name.capacity | unusual->events.capacity |
                             unusual->links.capacity | unusual->message.capacity |
                             oteli_active_own_capacity(active); /* they are powers of two */
    if (OTELI_UNLIKELY(largest > OTELI_BUFFER_KEPT))
        shrink(active);
    oteli_active_forget(active);
}

void oteli_active_leave(struct oteli_active_span *active)
{
    if (active->traits.is_unusual)
        oteli_active_lighten(active);
    oteli_active_begin_own(active);
    if (active->below == OTELI_PASSED)
        active->below = OTELI_NOT_A_COVER;
    active->self = (otel_span){{0, 0, 0, 0}};
}

void oteli_active_fini(struct oteli_active_span *active)
{
    let_tracestate_go(active);
    free_own(active);
    oteli_buffer_fini(&active->unusual.events);
    oteli_buffer_fini(&active->unusual.links);
    oteli_buffer_fini(&active->unusual.message);
    oteli_buffer_fini(&active->unusual.name);
    memset(active, 0, sizeof *active);
}

void oteli_active_set_long_name(struct oteli_active_span *active, const char *name, size_t length)
{
    const struct oteli_buffer *buffer = &active->unusual.name;
    if (active->traits.is_lent)
        oteli_active_take_back(active);
    active->traits.bits &= (uint8_t)~OTELI_NAME_IS_ADDRESS;
    active->name_length = (uint32_t)length;
    if (length <= OTELI_NAME_INLINE &&
        oteli_text_copy((uint8_t *)active->name, name, length) != NULL)
        return;
    keep_long_name(active, name, length);
    if (buffer->length != 0 && buffer->length <= OTELI_NAME_INLINE)
        memcpy(active->name, buffer->data, buffer->length);
}

void oteli_active_warn(struct oteli_active_span *active, enum oteli_warning_about about)
{
    active->traits.is_unusual |= OTELI_HAS_MORE;
    if (active->unusual.has_warned)
        return;
    active->unusual.has_warned = true;
    active->unusual.warning = (uint8_t)about;
}

void oteli_active_take_warning(struct oteli_active_span *active, struct oteli_warning *warning)
{
    warning->about = (enum oteli_warning_about)active->unusual.warning;
    active->unusual.warning = OTELI_NO_COMPLAINT;
    const size_t size = sizeof warning->name - 1;
    const size_t length = oteli_utf8_valid_prefix(
        oteli_active_name(active), active->name_length < size ? active->name_length : size);
    memcpy(warning->name, oteli_active_name(active), length);
    warning->name[length] = '\0';
}

/* Each kind is a line of its own for the log, which says each at most now and then. */
void oteli_warn_later(const struct oteli_warning *warning)
{
    static struct oteli_log_site sites[OTELI_BAD_ATTRIBUTE + 1];
    static const char *const texts[] = {
        [OTELI_TOO_MANY_ATTRIBUTES] = " has more attributes than its limit; they are left out",
        [OTELI_TOO_MANY_EVENTS] = " has more events than its limit; they are left out",
        [OTELI_TOO_MANY_LINKS] = " has more links than its limit; they are left out",
        [OTELI_TOO_MANY_EVENT_ATTRIBUTES] =
            " has an event with more attributes than its limit; they are left out",
        [OTELI_TOO_MANY_LINK_ATTRIBUTES] =
            " has a link with more attributes than its limit; they are left out",
        [OTELI_BAD_ATTRIBUTE] = ": an attribute with an empty key, or too large, is left out"};
    if (warning->about != OTELI_NO_COMPLAINT)
        oteli_log_write(&sites[warning->about], OTEL_LOG_WARN, 0, "span \"%s\"%s", warning->name,
                        texts[warning->about]);
}

void oteli_active_set_status(struct oteli_active_span *active, otel_span_status status,
                             otel_slice description)
{
    const bool is_known = status == OTEL_SPAN_STATUS_OK || status == OTEL_SPAN_STATUS_ERROR;
    if (!is_known || active->unusual.status == OTEL_SPAN_STATUS_OK)
        return;
    active->traits.is_unusual |= OTELI_HAS_MORE;
    active->unusual.status = (uint8_t)status;
    active->unusual.message.length = 0;
    if (status != OTEL_SPAN_STATUS_ERROR || description.length == 0)
        return;
    append_text(&active->unusual.message, description.data, description.length);
}
