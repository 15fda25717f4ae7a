/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/batch_double.h - a batch made by hand, and a call that keeps its answer.
 *
 * Linked instead of the SDK: it implements what an exporter needs of otel/exporter.h (size,
 * span, span_otlp, resource, resource_schema_url; reject, drop, spool), and nothing else.
 *
 *     struct batch_double batch = {0};
 *     batch_double_add(&batch, &scope, bytes, length);
 *     struct export_double call = export_double_of(&batch, UINT64_MAX);
 *     exporter.export_batch(exporter.state, &call.export);
 *     assert_int_equal(call.rejected, 0);
 *     batch_double_fini(&batch);
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_TESTS_BATCH_DOUBLE_H
#define OTELI_TESTS_BATCH_DOUBLE_H

#include <otel/exporter.h>

/* Scopes, resource and schema URL are borrowed; the bytes of spans are copied. */
struct batch_double {
    struct batch_double_span {
        uint8_t *bytes;
        size_t length;
        const otel_scope_view *scope;
    } * spans;
    size_t size;
    otel_slice resource;
    otel_slice schema_url;
};

void batch_double_add(struct batch_double *batch, const otel_scope_view *scope, const void *bytes,
                      size_t length);
void batch_double_fini(struct batch_double *batch);

/* The same as the type that exporters know. */
const otel_batch *batch_double_view(const struct batch_double *batch);

struct export_double {
    otel_export export; /* first: the functions that answer find the rest behind it */
    size_t rejected;
    size_t spooled;
    size_t dropped[OTEL_DROP_REASON_COUNT];
};
struct export_double export_double_of(const struct batch_double *batch, uint64_t deadline_ns);

/* All that were reported, whatever the reason. */
size_t export_double_lost(const struct export_double *call);

#endif
