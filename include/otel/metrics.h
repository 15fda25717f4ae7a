/* SPDX-License-Identifier: Apache-2.0 */
/* otel/metrics.h - what the SDK says of itself in numbers, by the names of OpenTelemetry's
 * semantic conventions (otel.sdk.*). For programs that export metrics, by whatever library:
 *
 *     otel_metric metric = {.size = sizeof metric};
 *     for (size_t cursor = 0; otel_metric_next(&cursor, &metric);)
 *         report(metric.name, metric.attributes, metric.attribute_count, metric.value);
 *
 * The numbers come from the counters of otel_stats_read. They count from otel_start, and stay
 * after otel_shutdown until the next start. Each is read at its own moment: while spans are
 * recorded and exported, two of them can be of different moments; when nothing happens, all are
 * exact. docs/METRICS.md lists them.
 *
 * Threads:  any thread.
 * Signals:  never in a handler: it takes a lock.
 * Errors:   none.
 * Cost:     a look at the counters of each thread, for each number; nothing is recorded for this
 *           that is not counted anyway, and no span comes of it.
 * Source:   semantic conventions, otel/sdk-metrics.md (in development). */
#ifndef OTEL_METRICS_H
#define OTEL_METRICS_H

#include <otel/base.h>

OTEL_BEGIN_DECLS

typedef enum otel_metric_kind {
    OTEL_METRIC_COUNTER = 1,         /* monotonic, in `value` */
    OTEL_METRIC_UP_DOWN_COUNTER = 2, /* the present number, in `value` */
    OTEL_METRIC_HISTOGRAM = 3        /* `value` measurements, `sum` of them; no buckets */
} otel_metric_kind;

enum { OTEL_METRIC_ATTRIBUTES_MOST = 4, OTEL_METRIC_TEXT_SIZE = 64 };

typedef struct otel_metric_attribute {
    const char *key;                   /* static, for example "otel.component.name" */
    char value[OTEL_METRIC_TEXT_SIZE]; /* cut if need be */
} otel_metric_attribute;

/* One number, with everything that tells it from others of its name. */
typedef struct otel_metric {
    size_t size;      /* sizeof(otel_metric), set by the caller */
    const char *name; /* static, for example "otel.sdk.span.started" */
    const char *unit; /* static, UCUM: "{span}", "s" */
    otel_metric_kind kind;
    uint64_t value;
    double sum;
    size_t attribute_count;
    otel_metric_attribute attributes[OTEL_METRIC_ATTRIBUTES_MOST];
} otel_metric;

/* Read the next number; `*cursor` is 0 at first, and is moved on. Causes of failure (error.type)
 * have a number once they have occurred. False: that was the last one, or no SDK was ever started
 * here. */
OTEL_API bool otel_metric_next(size_t *cursor, otel_metric *metric);

OTEL_END_DECLS
#endif
