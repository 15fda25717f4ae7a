/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/duration.c - how long something took, as people say it. Any thread.
 *
 * Each figure is rounded once, from the nanoseconds, and before it is decided which unit
 * and how many decimals it gets: "1000 µs" and "60.0 s" would be hard to read. */
#include "exporters/console/duration.h"

#include <inttypes.h>
#include <stdio.h>

#define SECOND_NS UINT64_C(1000000000)

/* How many units of `unit_ns`, to the nearest. */
static uint64_t rounded(uint64_t ns, uint64_t unit_ns)
{
    return ns / unit_ns + (ns % unit_ns >= unit_ns / 2);
}

static void format_decimal(char *text, size_t size, uint64_t ns, uint64_t unit_ns, const char *unit)
{
    const uint64_t hundredths = rounded(ns, unit_ns / 100);
    const uint64_t tenths = rounded(ns, unit_ns / 10);
    if (hundredths < 1000)
        snprintf(text, size, "%" PRIu64 ".%02u %s", hundredths / 100, (unsigned)(hundredths % 100),
                 unit);
    else if (tenths < 1000)
        snprintf(text, size, "%" PRIu64 ".%u %s", tenths / 10, (unsigned)(tenths % 10), unit);
    else
        snprintf(text, size, "%" PRIu64 " %s", rounded(ns, unit_ns), unit);
}

void oteli_format_duration(char *text, size_t size, uint64_t ns)
{
    const uint64_t seconds = rounded(ns, SECOND_NS);
    const uint64_t minutes = rounded(ns, 60 * SECOND_NS);
    if (ns < 1000)
        snprintf(text, size, "%u ns", (unsigned)ns);
    else if (rounded(ns, 1000) < 1000)
        format_decimal(text, size, ns, 1000, "µs");
    else if (rounded(ns, 1000000) < 1000)
        format_decimal(text, size, ns, 1000000, "ms");
    else if (rounded(ns, SECOND_NS / 10) < 600)
        format_decimal(text, size, ns, SECOND_NS, "s");
    else if (seconds < 3600)
        snprintf(text, size, "%" PRIu64 "m%02us", seconds / 60, (unsigned)(seconds % 60));
    else
        snprintf(text, size, "%" PRIu64 "h%02um", minutes / 60, (unsigned)(minutes % 60));
}
