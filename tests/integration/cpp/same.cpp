/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/cpp/same.cpp - the same spans in C and with otel/otel.hpp: cpp.sh compiles
 * it in both languages and compares the instructions. */
#include <otel/otel.h>

#ifdef __cplusplus
#include <otel/otel.hpp>
#define SCOPED(span, tracer, name) otel::scoped_span span(tracer, name)
#define STARTED(span, tracer, name) otel::span span(tracer, name)
#define SET(type, span, key, value) span.set(key, value)
#define END(span)
#else
#define SCOPED(span, tracer, name) OTEL_SCOPED(span, tracer, name)
#define STARTED(span, tracer, name) otel_span span = otel_span_start(tracer, name, NULL)
#define SET(type, span, key, value) otel_span_set_##type(span, key, value)
#define END(span) otel_span_end(span)
#endif

OTEL_BEGIN_DECLS

int work(int cents);
int scoped(otel_tracer *tracer, int cents);
int several(otel_tracer *tracer, int cents);
void detached(otel_tracer *tracer, int cents);

int scoped(otel_tracer *tracer, int cents)
{
    SCOPED(span, tracer, "charge");
    SET(int, span, "payment.cents", cents);
    SET(string, span, "payment.kind", "card");
    return 0;
}

int several(otel_tracer *tracer, int cents)
{
    SCOPED(span, tracer, "charge");
    SET(bool, span, "payment.large", cents > 3);
    SET(double, span, "payment.rate", 1.5);
    return work(cents);
}

void detached(otel_tracer *tracer, int cents)
{
    STARTED(span, tracer, "charge");
    SET(int, span, "payment.cents", cents);
    END(span);
}

OTEL_END_DECLS
