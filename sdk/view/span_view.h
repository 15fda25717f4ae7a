/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/view/span_view.h - read a Span message of our own making. Any thread. */
#ifndef OTELI_SPAN_VIEW_H
#define OTELI_SPAN_VIEW_H

#include <otel/exporter.h>

void oteli_span_view_fill(otel_span_view *span, otel_slice otlp, const otel_scope_view *scope);

#endif
