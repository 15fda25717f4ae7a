/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/traced.h - the real SDK with a memory exporter, for tests of what a trace
 * looks like at the end and of where its spans went.
 *
 * Each case starts it (simple, unless told otherwise) and ends with statistics whose sums
 * close and with nothing allocated.
 *
 * Threads:  the test's main thread, but for traced_thread's. */
#ifndef OTELI_TESTS_TRACED_H
#define OTELI_TESTS_TRACED_H

#include <otel/memory.h>
#include <otel/otel.h>
#include <sys/types.h>

struct traced {
    otel_memory *memory;
    otel_tracer *tracer;
    char text[4096];
};
extern struct traced traced;

/* Start the SDK with these options and the memory exporter; stop it. */
void traced_start(otel_sdk_options *options);
void traced_stop(void);

/* Enter and end a span, so that the tree shows what was current. */
void traced_touch(const char *name);

/* What was exported so far, flushed, as support/span_tree.h writes it. */
const char *traced_tree(void);

/* The statistics, once nothing is queued; the test fails unless their sums close. */
otel_stats traced_stats(void);

/* Statistics as text, but for what is 0, until the next call: "3 started, 1 unsampled, 2 ended:
 * delivered 1, dropped 1 (queue_full 1)". */
const char *traced_sums(void);
const char *stats_text(const otel_stats *stats);

/* Lost, or withheld, for this reason, and none for another. */
#define assert_only_lost(reason, count) traced_assert_only(-1, reason, count, __FILE__, __LINE__)
#define assert_only_withheld(reason, count) \
    traced_assert_only(reason, -1, count, __FILE__, __LINE__)
void traced_assert_only(int withheld, int dropped, uint64_t count, const char *file, int line);

/* Run a function on another thread, to its end. */
void traced_thread(void *(*main)(void *), void *argument);

int traced_setup(void **state);
int traced_setup_queued(void **state);
int traced_setup_without_sdk(void **state);
int traced_teardown(void **state);

/* For unit.h: a test that runs once more with a queue. */
#define TEST_QUEUED_TOO(name) TEST_TWICE(traced_setup, traced_setup_queued, traced_teardown, name)

#endif
