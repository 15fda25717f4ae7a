/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/slow_sink.h - an HTTP receiver that reads as slowly as it is told to, answers
 * every request with 200, and keeps nothing of it.
 *
 * Threads:  one of its own; start and stop from one thread at a time, the rest any thread. */
#ifndef OTELI_TESTS_SLOW_SINK_H
#define OTELI_TESTS_SLOW_SINK_H

#include <stdint.h>

struct slow_sink;

/* Listens on a free loopback port; aborts the program when there is none. One that begins
 * slowly has a small receive buffer as well, and is not quite fast later. */
struct slow_sink *slow_sink_start(uint64_t bytes_per_second);
void slow_sink_stop(struct slow_sink *sink);

/* http://127.0.0.1:PORT/v1/traces */
const char *slow_sink_url(const struct slow_sink *sink);

/* From now on; UINT64_MAX: as fast as it can. */
void slow_sink_set_speed(struct slow_sink *sink, uint64_t bytes_per_second);

/* Requests that were answered. */
uint64_t slow_sink_requests(const struct slow_sink *sink);

#endif
