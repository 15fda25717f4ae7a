/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/hand_engine.c - see hand_engine.h. */
#include "tests/support/hand_engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

void hand_start(struct hand_engine *hand, const otel_sdk_options *options)
{
    memset(hand, 0, sizeof *hand);
    oteli_fake_clock = (struct oteli_fake_clock){.ticks = 1000,
                                                 .monotonic_ns = UINT64_C(1000000000),
                                                 .wall_ns = UINT64_C(1700000000000000000)};
    assert_int_equal(oteli_config_load(&hand->config, options, false), OTEL_OK);
    assert_null(oteli_clock_start("fake"));
    const struct oteli_engine_options start = {
        .config = &hand->config,
        .program.resource = options->resource,
        .program.resource_count = options->resource_count,
        .program.exporters = options->exporters,
        .program.exporter_count = options->exporter_count,
        .program.simple = options->simple,
    };
    assert_int_equal(oteli_engine_new(&start, &hand->engine), OTEL_OK);
    oteli_sdk_install(&hand->engine->sdk);
    hand->tracer = otel_tracer_get("test", NULL);
    hand->deadline_ns = UINT64_MAX;
}

static enum oteli_round one_round(struct hand_engine *hand)
{
    const enum oteli_round round =
        oteli_worker_round(hand->engine, true, &hand->wanted, &hand->deadline_ns);
    hand->has_stopped = round == OTELI_ROUND_STOPPED;
    return round;
}

bool hand_round(struct hand_engine *hand)
{
    while (one_round(hand) == OTELI_ROUND_WORKED && hand->engine->pass.reason != OTELI_REASON_BATCH)
        continue;
    return !hand->has_stopped;
}

void hand_tick(struct hand_engine *hand)
{
    assert_true(hand->deadline_ns != UINT64_MAX);
    if (oteli_fake_clock.monotonic_ns < hand->deadline_ns)
        oteli_fake_clock.monotonic_ns = hand->deadline_ns;
    assert_true(hand_round(hand));
}

void hand_flush(struct hand_engine *hand)
{
    const uint64_t ticket = oteli_add_full_64(&hand->engine->flush_wanted, 1) + 1;
    assert_int_equal(one_round(hand), OTELI_ROUND_WORKED);
    assert_true(hand->engine->flush_done == ticket);
}

void hand_ask_to_stop(struct hand_engine *hand, uint64_t deadline_ns)
{
    oteli_sdk_uninstall();
    oteli_store_release_64(&hand->engine->stop_deadline_ns, deadline_ns);
}

void hand_stop(struct hand_engine *hand)
{
    if (hand->engine->stop_deadline_ns == 0)
        hand_ask_to_stop(hand, UINT64_MAX - 1);
    if (!hand->engine->sdk.synchronous && !hand->has_stopped)
        assert_false(hand_round(hand));
    oteli_engine_free(hand->engine);
    oteli_config_fini(&hand->config);
    oteli_api_reset();
}

void hand_spans(const struct hand_engine *hand, const char *name, size_t count)
{
    for (size_t i = 0; i < count; i++)
        otel_span_end(otel_span_enter(hand->tracer, name, NULL));
}

struct counted hand_counts(const struct hand_engine *hand)
{
    return counted_of(hand->engine->sdk.generation);
}
