/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/oracle.h - an exporter that knows every span by its number, and what the
 * stress tests share: scale, seeds, checks.
 *
 * A span's number is its name, in hexadecimal (oracle_name). The oracle says for each
 * number how often it was delivered.
 *
 * Threads:  oracle_seen any thread; the rest as an exporter, or start/stop only. */
#ifndef OTELI_TESTS_ORACLE_H
#define OTELI_TESTS_ORACLE_H

#include <otel/otel.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { ORACLE_NAME = 8 };

struct oracle {
    uint32_t *seen; /* by number; atomic, written by the exporter thread */
    uint32_t numbers;
    uint64_t delivered;
    uint64_t unknown; /* deliveries that are no such span */
    uint64_t largest; /* batch */
    uint32_t blocked; /* atomic: exports wait while it is set */
    uint32_t waiting; /* atomic: one does */
};

void oracle_init(struct oracle *oracle, uint32_t numbers);
void oracle_fini(struct oracle *oracle);
otel_exporter oracle_exporter(struct oracle *oracle);

/* How often this span was delivered. */
uint32_t oracle_seen(const struct oracle *oracle, uint32_t number);

/* How many spans were delivered more than once, or were none of ours. */
uint64_t oracle_wrong(const struct oracle *oracle);

/* The name of a span, not terminated; the number of a name, UINT32_MAX when it has none; and spans
 * with the name of a number. */
void oracle_name(uint32_t number, char name[ORACLE_NAME]);
uint32_t oracle_number(otel_slice name);
otel_span oracle_enter(otel_tracer *tracer, uint32_t number);
otel_span oracle_start(otel_tracer *tracer, uint32_t number);

/* 1, or what `--long` or OTEL_TEST_LONG=1 makes of it. */
unsigned stress_scale(int argc, char **argv, unsigned long_scale);

/* The seed of this run, printed: always the same one in the short form, so that no change is
 * refused for what chance has found, and another each time in the long form. OTEL_TEST_SEED repeats
 * one. Call it after stress_scale. */
uint64_t stress_seed(void);

/* Whether a flush or a shutdown came to its end in time, with losses or without. */
static inline bool stress_is_done(otel_status status)
{
    return status == OTEL_OK || status == OTEL_ERROR_EXPORT_FAILED;
}

/* End the program when this is not so. */
#define STRESS_CHECK(condition) stress_check((condition), #condition, __FILE__, __LINE__)
void stress_check(bool condition, const char *text, const char *file, int line);

/* The two equations of otel/sdk.h. `is_final`: and nothing is queued or open. */
void stress_check_sums(const otel_stats *stats, bool is_final);

/* The statistics of the only pipeline. */
otel_stats stress_stats(void);

/* The next of random numbers (xorshift64): any state but zero. */
uint64_t stress_random(uint64_t *random);

/* So many threads, which get their number in place of a pointer; and wait until they have ended. */
void stress_start(pthread_t *threads, unsigned count, void *(*main)(void *number));
void stress_join(const pthread_t *threads, unsigned count);

void stress_sleep_us(unsigned us);

/* Until it is so many, or more; atomic. */
void stress_wait(const uint32_t *count, uint32_t wanted);

/* Start the SDK with this exporter alone, and the rest of the options. */
void stress_start_sdk(otel_exporter exporter, otel_sdk_options *options);

/* Shut it down, in time; its last statistics, whose sums close. */
otel_stats stress_stop_sdk(void);

/* Run that in a forked child, and have its exit status. */
int stress_in_child(int (*run)(void *), void *argument);

#endif
