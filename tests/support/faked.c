/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/faked.c - see faked.h. */
#include "tests/support/faked.h"

#include "sdk/stats.h"
#include "tests/support/leaks.h"
#include "tests/support/traced.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct fake_exporter fakes[3];
struct fake_exporter *const fake = &fakes[0];
struct hand_engine hand;

static size_t used; /* of them, by hand */
static uint32_t is_held;
static uint32_t is_inside;

int faked_begin(void **state)
{
    (void)state;
    memset(fakes, 0, sizeof fakes);
    hand.engine = NULL;
    used = 0;
    is_held = 1;
    is_inside = 0;
    oteli_leaks_begin();
    return 0;
}

static void check_fakes(void)
{
    for (size_t i = 0; i < sizeof fakes / sizeof *fakes; i++) {
        assert_int_equal(fakes[i].overlaps, 0);
        assert_int_equal(fakes[i].unprepared, 0);
    }
}

int by_hand_end(void **state)
{
    (void)state;
    oteli_leaks_fail_at(0);
    if (hand.engine != NULL) {
        hand_stop(&hand);
        for (size_t i = 0; i < used; i++)
            assert_int_equal(fakes[i].frees, 1);
    }
    hand.engine = NULL;
    check_fakes();
    oteli_leaks_check();
    return 0;
}

static void give_fakes(otel_sdk_options *options, size_t count, otel_exporter *exporters)
{
    for (size_t i = 0; i < count; i++)
        exporters[i] = fake_exporter(&fakes[i]);
    options->size = sizeof *options;
    options->exporters = exporters;
    options->exporter_count = count;
    if (options->log_level == NULL)
        options->log_level = "none";
}

void by_hand(size_t count, otel_sdk_options *options)
{
    otel_exporter exporters[3];
    give_fakes(options, count, exporters);
    options->clock = "fake";
    if (options->bsp_schedule_delay == 0)
        options->bsp_schedule_delay = 1000;
    used = count;
    hand_start(&hand, options);
}

enum oteli_round by_hand_go_on(void)
{
    return oteli_worker_round(hand.engine, false, &hand.wanted, &hand.deadline_ns);
}

otel_status faked_start(size_t count, otel_sdk_options *options)
{
    otel_exporter exporters[3];
    give_fakes(options, count, exporters);
    if (options->bsp_schedule_delay == 0)
        options->bsp_schedule_delay = FOREVER_MS;
    return otel_start_with(options);
}

void faked_restart(void)
{
    (void)!otel_shutdown(FOREVER_MS);
    check_fakes();
    oteli_lifecycle_reset();
    oteli_api_reset();
}

int faked_end(void **state)
{
    (void)state;
    faked_restart();
    oteli_leaks_check();
    return 0;
}

void faked_span(const char *name)
{
    otel_span_end(otel_span_enter(otel_tracer_get("test", NULL), name, NULL));
}

void *faked_span_of_thread(void *name)
{
    faked_span(name);
    return NULL;
}

otel_stats faked_stats(size_t pipeline)
{
    otel_stats stats = {.size = sizeof stats};
    if (hand.engine != NULL)
        oteli_stats_fill(&stats, hand.engine, pipeline);
    else
        assert_int_equal(otel_stats_read(pipeline, &stats), OTEL_OK);
    return stats;
}

const char *faked_sums(size_t pipeline)
{
    const otel_stats stats = faked_stats(pipeline);
    return stats_text(&stats);
}

void faked_hold(void *context, otel_export *call)
{
    (void)context;
    (void)call;
    oteli_store_release_32(&is_inside, 1);
    while (oteli_load_acquire_32(&is_held) != 0)
        sched_yield();
}

void faked_wait_until_held(void)
{
    while (oteli_load_acquire_32(&is_inside) == 0)
        sched_yield();
}

void faked_let_go(void)
{
    oteli_store_release_32(&is_held, 0);
}
