/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/cold_floor.h - the least that a span can cost which a shared library writes down: four
 * calls, two readings of the counter, random ids, and a record of 96 bytes that points to names,
 * keys and strings. The records are never exported.
 *
 * Threads:  each has records of its own. */
#ifndef OTELI_BENCH_COLD_FLOOR_H
#define OTELI_BENCH_COLD_FLOOR_H

#include <stdint.h>

#define FLOOR_API __attribute__((visibility("default")))

FLOOR_API void floor_enter(const char *name);
FLOOR_API void floor_set_string(const char *key, const char *value);
FLOOR_API void floor_set_int(const char *key, int64_t value);
FLOOR_API void floor_end(void);

/* Marsaglia's xorshift64: one id. */
static inline uint64_t floor_id(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

#endif
