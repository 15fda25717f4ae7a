/* SPDX-License-Identifier: Apache-2.0 */
/* otel/otel.h - all of otel-c that a program needs to trace itself, but for the names of the
 * semantic conventions: include otel/semconv.h for them. Libraries that only
 * instrument include otel/trace.h; exporters have otel/exporter.h; the exporters of this
 * project have otel/otlp.h, otel/file.h, otel/console.h and otel/memory.h. */
#ifndef OTEL_OTEL_H
#define OTEL_OTEL_H

#include <otel/baggage.h>
#include <otel/base.h>
#include <otel/context.h>
#include <otel/metrics.h>
#include <otel/propagate.h>
#include <otel/record.h>
#include <otel/sdk.h>
#include <otel/trace.h>
#include <otel/tracestate.h>
#include <otel/value.h>

#endif
