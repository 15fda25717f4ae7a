/* SPDX-License-Identifier: Apache-2.0 */
/* functions/exclude.h - the functions that OTEL_C_FUNCTIONS_EXCLUDE names, as addresses.
 *
 * Names are looked up in the symbol tables when the library is loaded, and again on the
 * exporter thread when modules have come or gone; never while a function is entered. There,
 * the question is one look into a table that is indexed by the address, and at the first
 * call of a function two binary searches. In a module that was loaded later nothing is
 * excluded until its symbols were read.
 *
 * Threads:  oteli_is_excluded any thread; oteli_exclude_update one thread at a time. */
#ifndef OTELI_EXCLUDE_H
#define OTELI_EXCLUDE_H

#include "common/base/atomic.h"
#include <stdbool.h>
#include <stdint.h>

/* Read the symbols of all modules, and exclude what the patterns match from now on: names
 * and fnmatch(3) patterns, separated by commas. NULL: nothing. */
void oteli_exclude_update(const char *patterns);

/* One warning for each of the patterns (of the first 64) that has matched nothing in any update.
 * Any thread. */
void oteli_exclude_warn(const char *patterns);

/* Give back everything. No other thread may ask any more. */
void oteli_exclude_fini(void);

/* Written by update; 0: nothing is excluded. */
extern uint32_t oteli_exclude_is_on;

bool oteli_is_among_excluded(const void *function);

static inline bool oteli_is_excluded(const void *function)
{
    return OTELI_UNLIKELY(oteli_load_relaxed_32(&oteli_exclude_is_on) != 0) &&
           oteli_is_among_excluded(function);
}

#endif
