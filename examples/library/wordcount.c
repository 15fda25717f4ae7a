/* SPDX-License-Identifier: Apache-2.0 */
/* examples/library/wordcount.c - a library that brings its own tracing.
 *
 *     cc -c wordcount.c $(pkg-config --cflags otel-api)
 *
 * It includes otel/trace.h and links otel-api: no thread, no network, no decision about
 * where spans go. That is the program's matter; where there is no SDK, a span is a call
 * that finds nothing to do. */
#include "wordcount.h"

#include <ctype.h>
#include <otel/trace.h>
#include <stdatomic.h>

/* The tracer's name says which library made a span. To get it takes a lock, so it is kept;
 * two threads that are here for the first time get the same one. */
static otel_tracer *tracer(void)
{
    static _Atomic(otel_tracer *) kept;
    otel_tracer *tracer = atomic_load(&kept);
    if (tracer == NULL) {
        tracer = otel_tracer_get("example.wordcount", "1.0");
        atomic_store(&kept, tracer);
    }
    return tracer;
}

size_t wordcount(const char *text)
{
    /* Its parent is whatever span the caller has open on this thread. */
    OTEL_SCOPED(span, tracer(), "wordcount");

    size_t words = 0;
    size_t length = 0;
    for (int before = ' '; text[length] != '\0'; length++) {
        const int now = (unsigned char)text[length];
        words += !isspace(now) && isspace(before);
        before = now;
    }
    otel_span_set_int(span, "wordcount.bytes", (int64_t)length);
    otel_span_set_int(span, "wordcount.words", (int64_t)words);
    return words;
}
