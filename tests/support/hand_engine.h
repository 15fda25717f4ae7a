/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/hand_engine.h - an engine without a thread: the test is its worker.
 *
 *     struct hand_engine hand;
 *     hand_start(&hand, OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1));
 *     otel_span_end(otel_span_enter(hand.tracer, "a", NULL));
 *     hand_round(&hand);           what the worker would do, once
 *     hand_stop(&hand);            the last round, and everything is freed
 *
 * The clock is the fake one: it stands still until a test moves it.
 *
 * Threads:  hand_* the test's main thread. Threads that trace end before hand_stop. */
#ifndef OTELI_TESTS_HAND_ENGINE_H
#define OTELI_TESTS_HAND_ENGINE_H

#include "common/clock/clock.h"
#include "sdk/engine/engine.h"
#include "sdk/lifecycle/engine_life.h"
#include "sdk/worker/export.h"
#include "sdk/worker/worker.h"
#include "tests/support/counted.h"

#include <otel/sdk.h>

struct hand_engine {
    struct oteli_engine *engine;
    struct oteli_config config;
    otel_tracer *tracer;
    int64_t wanted;       /* by the last round: spans worth a wake-up */
    uint64_t deadline_ns; /* by the last round: when to look again; UINT64_MAX: never */
    bool has_stopped;     /* it was the last one */
};

void hand_start(struct hand_engine *hand, const otel_sdk_options *options);

/* Rounds of the worker until it would sleep, or has exported whole batches. False: it has shut
 * down. */
bool hand_round(struct hand_engine *hand);

/* Move the clock to the deadline of the last round, and do the next one. */
void hand_tick(struct hand_engine *hand);

/* A flush: asked for, and done. */
void hand_flush(struct hand_engine *hand);

/* Let no thread in any more, as otel_shutdown does, and ask the worker to be done by the
 * deadline. */
void hand_ask_to_stop(struct hand_engine *hand, uint64_t deadline_ns);

/* hand_ask_to_stop without a limit unless it was asked, the last round, free. */
void hand_stop(struct hand_engine *hand);

/* End `count` spans of one name. */
void hand_spans(const struct hand_engine *hand, const char *name, size_t count);

/* Of all threads, for this engine. */
struct counted hand_counts(const struct hand_engine *hand);

#endif
