/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/pipeline/span_fields.h - the spans of a batch as the fields `spans` of ScopeSpans messages,
 * written to where they are sent from. For exporters of our own: otel/exporter.h has each
 * span's message, which would have to be made before it is copied.
 *
 * Threads:  one thread at a time for a batch. */
#ifndef OTELI_SPAN_FIELDS_H
#define OTELI_SPAN_FIELDS_H

#include "common/base/internal_api.h"
#include <otel/exporter.h>

OTELI_INTERNAL_API const otel_scope_view *oteli_batch_scope(const otel_batch *batch, size_t index);

/* How many spans from number `first` on, at most `most` and at most to the end of the batch, have
 * one scope and take no more than `room` bytes; *bytes is what they take. */
OTELI_INTERNAL_API size_t oteli_batch_measure(const otel_batch *batch, size_t first, size_t most,
                                              size_t room, size_t *bytes);

/* Write them at `at`; returns what is behind them. */
OTELI_INTERNAL_API uint8_t *oteli_batch_put(const otel_batch *batch, size_t first, size_t count,
                                            uint8_t *at);

#endif
