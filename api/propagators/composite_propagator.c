/* SPDX-License-Identifier: Apache-2.0 */
/* api/propagators/composite_propagator.c - several propagators as one. Any thread; lists of names
 * start/stop only.
 *
 * Parts are called in their order, each with the context that the one before has made. */
#include "api/propagators/composite_propagator.h"
#include "common/log.h"
#include "common/text/text.h"

#include <stdlib.h>

static void inject(const void *state, const otel_context *context, otel_set_header *set,
                   void *carrier)
{
    const otel_composite_propagator *composite = state;
    for (size_t i = 0; i < composite->count; i++)
        composite->parts[i]->inject(composite->parts[i]->state, context, set, carrier);
}

static otel_context extract(const void *state, const otel_context *context,
                            const otel_carrier_reader *reader)
{
    const otel_composite_propagator *composite = state;
    otel_context result = *context;
    for (size_t i = 0; i < composite->count; i++)
        result = composite->parts[i]->extract(composite->parts[i]->state, &result, reader);
    return result;
}

static bool has_part(const otel_composite_propagator *composite, const otel_propagator *part)
{
    for (size_t i = 0; i < composite->count; i++)
        if (composite->parts[i] == part)
            return true;
    return false;
}

static void add_field(otel_composite_propagator *composite, const char *field)
{
    size_t count = 0;
    while (composite->fields[count] != NULL)
        if (oteli_is_word(oteli_slice_of(field), composite->fields[count++]))
            return;
    if (count < OTEL_PROPAGATOR_FIELDS_MOST) {
        composite->fields[count] = field;
        composite->fields[count + 1] = NULL;
    }
}

const otel_propagator *otel_propagator_compose(otel_composite_propagator *composite,
                                               const otel_propagator *const *parts, size_t count)
{
    composite->count = 0;
    composite->fields[0] = NULL;
    for (size_t i = 0; i < count; i++) {
        if (parts[i] == NULL || has_part(composite, parts[i]))
            continue;
        if (composite->count == OTEL_PROPAGATORS_MOST) {
            OTELI_LOG(OTEL_LOG_WARN, "more than %d propagators; \"%s\" is left out",
                      (int)OTEL_PROPAGATORS_MOST, parts[i]->name);
            continue;
        }
        composite->parts[composite->count++] = parts[i];
        const char *const *fields = otel_propagator_fields(parts[i]);
        for (size_t k = 0; fields[k] != NULL; k++)
            add_field(composite, fields[k]);
    }
    composite->propagator =
        (otel_propagator)OTEL_PROPAGATOR(.name = "composite", .state = composite, .inject = inject,
                                         .extract = extract, .fields = composite->fields);
    return &composite->propagator;
}

/* --- by name --- */

static const otel_propagator *named(otel_slice name)
{
    static const otel_propagator *(*const known[])(void) = {
        otel_propagator_trace_context, otel_propagator_baggage, otel_propagator_b3,
        otel_propagator_b3_multi,      otel_propagator_jaeger,  otel_propagator_none,
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (oteli_is_word(name, known[i]()->name))
            return known[i]();
    return NULL;
}

const otel_propagator *otel_propagator_named(const char *name)
{
    return named(oteli_slice_of(name));
}

/* Those that were made for lists of names. */
struct made_composite {
    otel_composite_propagator composite;
    struct made_composite *next;
};
static struct made_composite *all_made;

static const otel_propagator *composed(const otel_propagator *const *parts, size_t count)
{
    for (const struct made_composite *at = all_made; at != NULL; at = at->next)
        if (at->composite.count == count &&
            memcmp(at->composite.parts, parts, count * sizeof *parts) == 0)
            return &at->composite.propagator;
    struct made_composite *made = malloc(sizeof *made);
    if (made == NULL)
        return NULL;
    made->next = all_made;
    all_made = made;
    return otel_propagator_compose(&made->composite, parts, count);
}

const otel_propagator *oteli_propagator_of_list(const char *names)
{
    const otel_propagator *parts[OTEL_PROPAGATORS_MOST];
    size_t count = 0;
    otel_slice rest = oteli_slice_of(names);
    otel_slice name;
    while (count < OTEL_PROPAGATORS_MOST && oteli_list_next(&rest, &name)) {
        const otel_propagator *part = named(name);
        if (part != NULL && part != otel_propagator_none())
            parts[count++] = part;
    }
    if (count == 0)
        return otel_propagator_none();
    if (count == 1)
        return parts[0];
    return composed(parts, count);
}

void oteli_propagators_free(void)
{
    while (all_made != NULL) {
        struct made_composite *made = all_made;
        all_made = made->next;
        if (otel_propagator_get() == &made->composite.propagator)
            otel_propagator_set(NULL);
        free(made);
    }
}
