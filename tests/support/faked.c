/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/faked.c - see faked.h. */
#include "tests/support/faked.h"
#include "sdk/lifecycle/lifecycle.h"
#include "sdk/worker/worker.h"

#include "sdk/stats/stats.h"
#include "tests/support/leaks.h"
#include "tests/support/traced.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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
    for (size_t i = 0; i < used; i++)
        fakes[i].during = NULL; /* its context may be gone with the test */
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

static enum oteli_round go_on(void)
{
    return oteli_worker_round(hand.engine, false, &hand.wanted, &hand.deadline_ns);
}

static enum oteli_round go_on_to_the_end(void)
{
    enum oteli_round round = go_on();
    for (unsigned i = 0; i < 1000 && round != OTELI_ROUND_IDLE && round != OTELI_ROUND_STOPPED; i++)
        round = go_on();
    return round;
}

static const char *word_of(enum oteli_round round)
{
    hand.has_stopped = round == OTELI_ROUND_STOPPED;
    return round == OTELI_ROUND_IDLE      ? " idle"
           : round == OTELI_ROUND_WORKED  ? " worked"
           : round == OTELI_ROUND_PENDING ? " pending"
                                          : " stopped";
}

static const char *word_of_deadline(void)
{
    static char text[40];
    const uint64_t now_ns = oteli_fake_clock.monotonic_ns;
    const uint64_t left_ns = hand.deadline_ns > now_ns ? hand.deadline_ns - now_ns : 0;
    const bool is_asleep = oteli_asleep == hand.engine->sdk.generation;
    if (hand.deadline_ns == UINT64_MAX)
        return is_asleep ? " never asleep" : " never";
    snprintf(text, sizeof text, " %llu ms%s",
             (unsigned long long)((left_ns + NS_PER_MS - 1) / NS_PER_MS),
             is_asleep ? " asleep" : "");
    return text;
}

/* How it ended; NULL: it is not the worker's. */
static const char *play_step(const char *step)
{
    if (strcmp(step, "go") == 0)
        return word_of(go_on());
    if (strcmp(step, "end") == 0)
        return word_of(go_on_to_the_end());
    if (strcmp(step, "round") == 0)
        return hand_round(&hand) ? word_of_deadline() : " stopped";
    if (strcmp(step, "tick") == 0) {
        hand_tick(&hand);
        return word_of_deadline();
    }
    if (strcmp(step, "flush") == 0)
        hand_flush(&hand);
    else if (strcmp(step, "almost") == 0)
        oteli_fake_clock.monotonic_ns = hand.deadline_ns - 1;
    else if (strcmp(step, "ask") == 0)
        (void)oteli_add_full_64(&hand.engine->flush_wanted, 1);
    else if (strncmp(step, "stop", 4) == 0)
        hand_ask_to_stop(&hand, step[4] == '!' ? oteli_fake_clock.monotonic_ns : UINT64_MAX - 1);
    else
        hand_spans(&hand, (const char[]){step[0], '\0'}, (size_t)atoi(step + 1));
    return NULL;
}

const char *by_hand_play(const char *steps)
{
    static char text[1000];
    size_t length = 0;
    text[0] = '\0';
    while (*steps != '\0') {
        char step[16];
        const int size = (int)strcspn(steps, " ");
        const size_t calls = fake->call_count;
        snprintf(step, sizeof step, "%.*s", size, steps);
        steps += size + (steps[size] == ' ');
        const char *ending = play_step(step);
        if (fake->call_count == calls) {
            if (ending == NULL)
                continue;
            ending++; /* no blank before it */
        }
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%.*s%s",
                                   length != 0 ? "; " : "", (int)(fake->call_count - calls),
                                   fake->calls + calls, ending != NULL ? ending : "");
        assert_true(length < sizeof text);
    }
    return text;
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
