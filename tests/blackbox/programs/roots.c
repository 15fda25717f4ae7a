/* SPDX-License-Identifier: Apache-2.0 */
/* Makes root spans, and says on stdout what they were given.
 *
 *     roots count COUNT              how many of them record
 *     roots bits COUNT enter|start   in how many of them each bit of the trace id (128 numbers) and
 *                                    of the span id (64) is set, and how many say that the trace id
 *                                    is random; the first bit is the highest of the first byte
 *
 * The SDK is started from the environment. */
#include <otel/otel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_BITS = 128 + 64 };

static otel_tracer *tracer;

static uint64_t count_recording(uint64_t count)
{
    uint64_t recording = 0;
    for (uint64_t i = 0; i < count; i++) {
        const otel_span span = otel_span_enter(tracer, "root", NULL);
        recording += otel_span_is_recording(span);
        otel_span_end(span);
    }
    return recording;
}

static void count_bits(uint64_t count, bool is_entered)
{
    static uint64_t set[ID_BITS];
    uint64_t random = 0;
    for (uint64_t i = 0; i < count; i++) {
        const otel_span span = is_entered ? otel_span_enter(tracer, "root", NULL)
                                          : otel_span_start(tracer, "root", NULL);
        const otel_span_context context = otel_span_get_context(span);
        uint8_t ids[ID_BITS / 8];
        memcpy(ids, context.trace_id, 16);
        memcpy(ids + 16, context.span_id, 8);
        for (unsigned bit = 0; bit < ID_BITS; bit++)
            set[bit] += ids[bit / 8] >> (7 - bit % 8) & 1;
        random += (context.flags & OTEL_TRACE_FLAG_RANDOM) != 0;
        otel_span_end(span);
    }
    for (unsigned bit = 0; bit < ID_BITS; bit++)
        printf("%llu ", (unsigned long long)set[bit]);
    printf("%llu\n", (unsigned long long)random);
}

int main(int count, char **arguments)
{
    if (count < 3 || otel_start(NULL) != OTEL_OK)
        return EXIT_FAILURE;
    const uint64_t roots = strtoull(arguments[2], NULL, 10);
    tracer = otel_tracer_get("roots", NULL);
    if (strcmp(arguments[1], "count") == 0)
        printf("%llu\n", (unsigned long long)count_recording(roots));
    else if (count == 4)
        count_bits(roots, strcmp(arguments[3], "enter") == 0);
    return otel_shutdown(5000) == OTEL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
