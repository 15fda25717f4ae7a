/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/recorder.h - an SDK that only writes down what the API hands to it, so that
 * tests of api/ need no sdk/.
 *
 * Started, it samples everything, has the limits of the specification, and copies every
 * ended span into memory of its own, which is not allocated, with its times as Unix
 * nanoseconds. The clock is the fake one, which the fast path of spans is not for: cases that
 * are FAST go that way all the same, and their spans have times that mean nothing.
 *
 * Threads:  spans may end on any of them; everything else on the test's thread. */
#ifndef OTELI_TESTS_RECORDER_H
#define OTELI_TESTS_RECORDER_H

#include "api/thread/thread_state.h"
#include "common/clock/clock.h"
#include "common/wire.h"
#include "tests/support/counted.h"
#include <otel/otel.h>

struct recorded_span {
    const uint8_t *message;
    uint32_t length;
    uint32_t epoch;
    uint32_t times_at;
    uint32_t events_at;
    const otel_tracer *tracer; /* or NULL */
    const otel_scope_view *scope;
};

struct recorder {
    struct oteli_sdk sdk; /* first */
    size_t count;         /* spans recorded since the start, the too many included */
    size_t raw;           /* of them: the records that had yet to be finished */
    uint32_t quota;       /* what the next takers of quotas get */
    uint32_t lots_taken;
    uint32_t last_ended; /* what the last taker said it had ended */
    uint32_t lines_handed_over;
    uint32_t wakes;
    uint32_t logs; /* lines the SDK has said */
    char last_log[256];
    void (*inside)(void); /* called inside take_quota and export_one */
};
extern struct recorder recorder;

/* Start: as a synchronous SDK, or one with a queue. Stop, and start again as another. */
void recorder_start(void);
void recorder_start_queued(void);
void recorder_stop(void);

/* With a queue: take what was handed over and what stands in the lines of threads. */
void recorder_collect(void);

struct recorded_span recorder_span(size_t index);

/* Field `number` of a message: the nth of them, from 0. */
bool recorder_find(const uint8_t *message, size_t length, uint32_t number, size_t nth,
                   struct oteli_field *field);

/* Field `number` of a recorded span; the test fails when it is not there. */
struct oteli_field recorder_field(size_t index, uint32_t number);
bool recorder_has_field(size_t index, uint32_t number);
size_t recorder_count(size_t index, uint32_t number);

enum { RECORDER_ATTRIBUTES = 9 }; /* the field of a span */

/* The attributes in field `number` of a message, or of a recorded span, as "key=value key=value ",
 * where values are strings and integers; until the next call. */
const char *recorder_attributes(const uint8_t *message, size_t length, uint32_t number);
const char *recorder_span_attributes(size_t index);

/* Where the clock starts, and put it that many nanoseconds later. */
#define RECORDER_TICKS UINT64_C(1000)
#define RECORDER_WALL_NS UINT64_C(1700000000000000000)
void recorder_at(uint64_t ns);

/* What is counted for this start, over all threads. */
struct counted recorder_counts(void);

/* For cmocka: each case starts a recorder and ends with nothing allocated. */
int recorder_setup(void **state);
int recorder_setup_queued(void **state);
int recorder_setup_without_sdk(void **state);
int recorder_setup_fast(void **state);
int recorder_setup_queued_fast(void **state);
int recorder_teardown(void **state);

/* For unit.h: tests that run once more where spans go the fast path. */
#define TEST_FAST_TOO(name) TEST_TWICE(recorder_setup, recorder_setup_fast, recorder_teardown, name)
#define TEST_QUEUED_FAST_TOO(name) \
    TEST_TWICE(recorder_setup_queued, recorder_setup_queued_fast, recorder_teardown, name)

/* Run a function on another thread, to its end. */
void recorder_on_thread(void *(*main)(void *), void *argument);

/* Run a function in a forked child; the test fails unless it gives 0. */
void recorder_in_child(int (*main)(const void *), const void *argument);

#endif
