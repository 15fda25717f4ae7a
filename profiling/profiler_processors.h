/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profiler_processors.h - which processors are switched on; that changes while programs
 * run.
 *
 * Threads:  the profiler's thread. */
#ifndef OTELI_PROFILER_PROCESSORS_H
#define OTELI_PROFILER_PROCESSORS_H

#include <stdbool.h>
#include <stdint.h>

enum { OTELI_PROCESSORS_MOST = 8192 };

struct oteli_processors {
    uint64_t bits[OTELI_PROCESSORS_MOST / 64];
};

static inline bool oteli_processors_has(const struct oteli_processors *processors, unsigned number)
{
    return (processors->bits[number / 64] >> number % 64 & 1) != 0;
}

static inline void oteli_processors_add(struct oteli_processors *processors, unsigned number)
{
    processors->bits[number / 64] |= UINT64_C(1) << number % 64;
}

/* Those that are on now. Where the kernel does not say, as many as the C library knows, of which
 * some may be off. */
void oteli_processors_online(struct oteli_processors *processors);

/* For its test: "0-3,8,10-11". False: it is no such list. */
bool oteli_processors_parse(struct oteli_processors *processors, const char *text);

#endif
