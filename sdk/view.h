/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/view.h - read a Span message of our own making. Any thread. */
#ifndef OTELI_VIEW_H
#define OTELI_VIEW_H

#include <otel/exporter.h>

void oteli_span_view_fill(otel_span_view *span, otel_slice otlp, const otel_scope_view *scope);

#endif
