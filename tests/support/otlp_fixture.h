/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/otlp_fixture.h - the OTLP exporter between a batch made by hand and a
 * scripted receiver, with time that stands still unless the test moves it.
 *
 * Threads:  one thread at a time, but for fixture_wake. */
#ifndef OTELI_TESTS_OTLP_FIXTURE_H
#define OTELI_TESTS_OTLP_FIXTURE_H

#include "tests/support/batch_double.h"
#include "tests/support/http_sink.h"

#include <otel/otlp.h>

struct fixture {
    struct http_sink *sink;
    otel_exporter exporter;
    struct batch_double batch;
    struct export_double call; /* of the last export */
    char log[4096];            /* what was logged since the fixture was made, line by line */
};

/* A receiver with this script, an exporter for it with these options (may be NULL; the
 * endpoint is filled in unless it is given), and a batch of three spans. Takes over the
 * clock, and counts allocations until fixture_fini. The log is the fixture's own: link it
 * without common/log.c. */
void fixture_init(struct fixture *fixture, const struct http_sink_answer *script, size_t count,
                  const otel_otlp_options *options);
void fixture_fini(struct fixture *fixture);

/* For AROUND_EACH: fini of the one that is there, if there is one. It must be static. */
int fixture_end(void **state);

/* Start to export; true when it is done already. No deadline but the exporter's. */
bool fixture_export(struct fixture *fixture);

/* The same, and go on until that many requests have come. */
void fixture_send(struct fixture *fixture, size_t requests);

/* Poll until it is done, while time stands still. */
void fixture_finish(struct fixture *fixture);

/* Poll until it is done, while time runs so fast that back-offs take milliseconds. */
void fixture_finish_fast(struct fixture *fixture);

/* Poll until the exporter has an answer and waits to try again. */
void fixture_wait_for_backoff(struct fixture *fixture);

/* Go on once, without waiting; true when it is done. */
bool fixture_step(struct fixture *fixture);

void fixture_advance_ms(uint64_t ms);

/* Export and finish, nothing in between: while time stands still, or fast; that is not done at
 * once. */
void fixture_deliver(struct fixture *fixture);
void fixture_deliver_fast(struct fixture *fixture);

/* Lost for this reason, and for no other. */
#define assert_only_dropped(fixture, reason, count)                    \
    do {                                                               \
        assert_int_equal((fixture)->call.dropped[reason], count);      \
        assert_int_equal(export_double_lost(&(fixture)->call), count); \
    } while (0)
#define assert_all_delivered(fixture) assert_int_equal(export_double_lost(&(fixture)->call), 0)

#endif
