/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/passing.h - what goes out of what came in, for tests of propagators: one of them
 * has understood a header if the next program gets it. In one source a program. */
#ifndef OTELI_TESTS_PASSING_H
#define OTELI_TESTS_PASSING_H

#include "tests/support/carrier.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <string.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

static struct carrier in;
static struct carrier out;
static otel_tracer *tracer;

static inline int passing_begin(void **state)
{
    in.count = out.count = 0;
    return recorder_setup_without_sdk(state);
}

static inline int passing_begin_recorded(void **state)
{
    in.count = out.count = 0;
    recorder_setup(state);
    tracer = otel_tracer_get("p", NULL);
    return 0;
}

#define W3C otel_propagator_trace_context()
#define B3 otel_propagator_b3()
#define B3_MULTI otel_propagator_b3_multi()
#define JAEGER otel_propagator_jaeger()
#define BAGGAGE otel_propagator_baggage()

static inline otel_context extract(const otel_propagator *propagator)
{
    const otel_carrier_reader reader = {carrier_get, carrier_list, &in};
    return otel_propagator_extract_from(propagator, NULL, &reader);
}

/* What is sent of a context: "name: value\n" for each header. */
static inline const char *sent(const otel_propagator *propagator, const otel_context *context)
{
    out.count = 0;
    otel_propagator_inject(propagator, context, carrier_set, &out);
    return carrier_text(&out);
}

/* What came in, as it goes out. */
static inline const char *passed_on(const otel_propagator *reader, const otel_propagator *writer)
{
    const otel_context context = extract(reader);
    return sent(writer, &context);
}

static inline otel_span start_under(const otel_context *parent)
{
    return otel_span_start(tracer, "server", OTEL_SPAN_OPTIONS(.parent = parent));
}

struct row {
    const char *header;
    const char *sent; /* NULL: not valid */
};

static inline void check_row(const otel_propagator *propagator, const char *name,
                             const struct row *row)
{
    in.count = 0;
    carrier_add(&in, name, row->header);
    carrier_add(&in, "tracestate", "k=v");
    (void)passed_on(propagator, propagator);
    const char *value = carrier_sent(&out, name);
    if ((value == NULL) != (row->sent == NULL) || (value != NULL && strcmp(value, row->sent) != 0))
        fail_msg("%s \"%s\" became \"%s\"", name, row->header, value ? value : "nothing");
}

#endif
