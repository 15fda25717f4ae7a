/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/counted.h - the counters of all threads, added up: of every origin, and with the
 * spans that were refused. */
#ifndef OTEL_TESTS_SUPPORT_COUNTED_H
#define OTEL_TESTS_SUPPORT_COUNTED_H

#include <otel/exporter.h>

struct counted {
    uint64_t recorded;
    uint64_t unsampled;
    uint64_t ended;
    uint64_t dropped[OTEL_DROP_REASON_COUNT];
};

#endif
