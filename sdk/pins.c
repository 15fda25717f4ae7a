/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/pins.c - see pins.h. Owns the pin that stays for threads with states. */
#include "sdk/pins.h"
#include "api/thread.h"
#include "common/pin.h"
#include "sdk/processors.h"

#include <stdlib.h>

struct oteli_pins {
    size_t count;
    void *pinned[];
};

static void *own_pin; /* of this library; exchanged by whoever sets or takes it */

/* By any of its functions. */
static void *pin_processor(const struct oteli_engine_options *options, size_t index)
{
    const otel_processor processor = oteli_processors_known(options, index);
    if (processor.on_end != NULL)
        return oteli_pin((oteli_code *)processor.on_end);
    if (processor.on_ending != NULL)
        return oteli_pin((oteli_code *)processor.on_ending);
    return processor.on_start != NULL ? oteli_pin((oteli_code *)processor.on_start) : NULL;
}

struct oteli_pins *oteli_pins_take(const struct oteli_engine_options *options)
{
    const size_t most = options->exporter_count + options->processor_count + 5;
    struct oteli_pins *pins = calloc(1, sizeof *pins + most * sizeof pins->pinned[0]);
    if (pins == NULL)
        return NULL;
    pins->pinned[pins->count++] = oteli_pin((oteli_code *)oteli_pins_take);
    if (options->thread_started != NULL)
        pins->pinned[pins->count++] = oteli_pin((oteli_code *)options->thread_started);
    if (options->tracer_enabled != NULL)
        pins->pinned[pins->count++] = oteli_pin((oteli_code *)options->tracer_enabled);
    if (options->generate_ids != NULL)
        pins->pinned[pins->count++] = oteli_pin((oteli_code *)options->generate_ids);
    if (options->sampler != NULL)
        pins->pinned[pins->count++] = oteli_pin((oteli_code *)options->sampler->sample);
    for (size_t i = 0; i < options->processor_count; i++)
        pins->pinned[pins->count++] = pin_processor(options, i);
    for (size_t i = 0; i < options->exporter_count; i++)
        pins->pinned[pins->count++] = oteli_pin((oteli_code *)options->exporters[i].export_batch);
    return pins;
}

void oteli_pins_release(struct oteli_pins *pins)
{
    while (pins != NULL && pins->count != 0)
        oteli_unpin(pins->pinned[--pins->count]);
    free(pins);
}

static void keep_library(void)
{
    if (OTELI_LOAD_ACQUIRE_PTR(&own_pin) != NULL)
        return;
    void *pin = oteli_pin((oteli_code *)oteli_pins_take);
    if (pin != NULL && !OTELI_CAS_FULL_PTR(&own_pin, (void *)NULL, pin))
        oteli_unpin(pin);
}

static void stop_keeping_library(void)
{
    void *pin = OTELI_LOAD_ACQUIRE_PTR(&own_pin);
    if (pin != NULL && OTELI_CAS_FULL_PTR(&own_pin, pin, (void *)NULL))
        oteli_unpin(pin);
}

void oteli_pins_settle(struct oteli_pins *pins, bool somebody_is_left_behind)
{
    if (somebody_is_left_behind) {
        free(pins); /* and what it has pinned stays */
        return;
    }
    if (oteli_threads_let_go())
        stop_keeping_library();
    else
        keep_library();
    oteli_pins_release(pins);
}
