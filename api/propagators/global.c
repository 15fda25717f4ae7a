/* SPDX-License-Identifier: Apache-2.0 */
/* api/propagators/global.c - which propagator is global, and how one is called. Any thread. */
#include "common/base/atomic.h"
#include <otel/propagate.h>

static void inject_nothing(const void *state, const otel_context *context, otel_set_header *set,
                           void *carrier)
{
    (void)state;
    (void)context;
    (void)set;
    (void)carrier;
}

static otel_context extract_nothing(const void *state, const otel_context *context,
                                    const otel_carrier_reader *reader)
{
    (void)state;
    (void)reader;
    return *context;
}

static const char *const no_fields[] = {NULL};
static const otel_propagator none =
    OTEL_PROPAGATOR(.name = "none", .inject = inject_nothing, .extract = extract_nothing,
                    .fields = no_fields);
static const otel_propagator *global = &none;

const otel_propagator *otel_propagator_none(void)
{
    return &none;
}

const otel_propagator *otel_propagator_get(void)
{
    return OTELI_LOAD_ACQUIRE_PTR(&global);
}

void otel_propagator_set(const otel_propagator *propagator)
{
    OTELI_STORE_RELEASE_PTR(&global, propagator != NULL ? propagator : &none);
}

const char *const *otel_propagator_fields(const otel_propagator *propagator)
{
    return propagator != NULL && propagator->fields != NULL ? propagator->fields : no_fields;
}

void otel_propagator_inject(const otel_propagator *propagator, const otel_context *context,
                            otel_set_header *set, void *carrier)
{
    if (propagator == NULL)
        return;
    const otel_context current = otel_current_context();
    propagator->inject(propagator->state, context != NULL ? context : &current, set, carrier);
}

otel_context otel_propagator_extract_from(const otel_propagator *propagator,
                                          const otel_context *context,
                                          const otel_carrier_reader *reader)
{
    if (propagator == NULL)
        propagator = &none;
    if (context != NULL)
        return propagator->extract(propagator->state, context, reader);
    const otel_context current = otel_current_context();
    return propagator->extract(propagator->state, &current, reader);
}

otel_context otel_propagator_extract(const otel_propagator *propagator, const otel_context *context,
                                     otel_get_header *get, void *carrier)
{
    const otel_carrier_reader reader = {.get = get, .carrier = carrier};
    return otel_propagator_extract_from(propagator, context, &reader);
}
