/* SPDX-License-Identifier: Apache-2.0 */
/* api/context/context.c - the current context, and values under keys. Any thread. */
#include "api/thread/thread_state.h"

otel_span otel_current_span(void)
{
    otel_span span = oteli_self->top->self;
    span.opaque[3] &= ~OTELI_REF_OF_STACK;
    return span;
}

otel_context otel_current_context(void)
{
    return (otel_context){otel_current_span(), oteli_self->values, oteli_self->baggage};
}

otel_context_key otel_context_create_key(const char *name)
{
    static uint64_t last;
    (void)name; /* for people who read the calling code */
    return (otel_context_key){oteli_add_full_64(&last, 1) + 1};
}

otel_context otel_context_with_value(otel_context context, otel_context_key key, void *value,
                                     otel_context_value *place)
{
    place->next = context.values;
    place->key = key.opaque;
    place->value = value;
    context.values = place;
    return context;
}

void *otel_context_get_value(const otel_context *context, otel_context_key key)
{
    for (const otel_context_value *at = context->values; at != NULL; at = at->next)
        if (at->key == key.opaque)
            return at->value;
    return NULL;
}
