/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/faked.h - fixtures with exporters that do what they are told (fake_exporter.h):
 * an engine whose worker is the test (hand_engine.h), or the real SDK.
 *
 *     AROUND_EACH(faked_begin, by_hand_end);      or faked_end, for the SDK
 *
 *     by_hand(1, &(otel_sdk_options){.bsp_max_export_batch_size = 5});
 *     hand_spans(&hand, "a", 5);
 *     hand_flush(&hand);
 *     assert_string_equal(fake->text, "a a a a a|");
 *     assert_string_equal(faked_sums(0), "5 started, 5 ended: delivered 5, dropped 0");
 *
 * A test ends with exporters that were freed once and with nothing allocated.
 *
 * Threads:  the test's main thread, but for faked_span. */
#ifndef OTELI_TESTS_FAKED_H
#define OTELI_TESTS_FAKED_H

#include "tests/support/fake_exporter.h"
#include "tests/support/hand_engine.h"

#include <otel/otel.h>

enum { FOREVER_MS = INT32_MAX, NS_PER_MS = 1000000 };

extern struct fake_exporter fakes[3];
extern struct fake_exporter *const fake; /* the first */
extern struct hand_engine hand;

int faked_begin(void **state);
int by_hand_end(void **state);
int faked_end(void **state);

/* An engine with the fake clock and so many of the exporters. A tick of 1000 ms, unless it is
 * said. */
void by_hand(size_t count, otel_sdk_options *options);

/* Steps, with blanks between them, and what comes of them as text, until the next call:
 *
 *     a5       five spans "a" end
 *     almost   the clock goes to the last moment before the time that a round has told
 *     round    rounds of the worker until it would sleep
 *     tick     the same at that time
 *     go       one round for somebody who may not wait
 *     end      the same until nothing is left to do, or it has stopped
 *     flush    hand_flush
 *     ask      a flush is asked for
 *     stop     a shutdown is asked for; "stop!" one without time
 *
 * For each: how the first exporter was called meanwhile (fake_exporter.h), how a round ended, or
 * when the next is due and whether spans find the worker asleep: "T 250 ms asleep; EF; E 1000
 * ms". */
const char *by_hand_play(const char *steps);

/* The SDK with so many of the exporters; its tick is far away, and its log silent, unless it is
 * said. */
otel_status faked_start(size_t count, otel_sdk_options *options);
void faked_restart(void); /* stop it, and all is as it was before */

/* End a span of the SDK; any thread. */
void faked_span(const char *name);

otel_stats faked_stats(size_t pipeline);
const char *faked_sums(size_t pipeline); /* the same as text, until the next call */

/* For pthread_create: end a span of this name. */
void *faked_span_of_thread(void *name);

/* An export that goes on until it is let go: told to `during` of an exporter. */
void faked_hold(void *context, otel_export *call);
void faked_wait_until_held(void);
void faked_let_go(void);

#endif
