/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/simple_processor.h - what the SDK knows of otel_simple_processor_new's. */
#ifndef OTELI_SIMPLE_PROCESSOR_H
#define OTELI_SIMPLE_PROCESSOR_H

#include <otel/processor.h>

/* In a forked child: if it is a simple processor, put another one in its place, whose exporter
 * was made anew (otel_exporter.renew), or which drops what it is given. The parent's is left
 * alone. */
void oteli_simple_processor_renew(otel_processor *processor);

/* The exporter of a simple processor; NULL: this is another processor. */
const otel_exporter *oteli_simple_processor_exporter(const otel_processor *processor);

#endif
