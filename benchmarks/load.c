/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/load.c - a program that serves requests at a steady rate, and traces them.
 *
 *     load SECONDS SPANS_PER_SECOND
 *
 * For scripts/scaling.sh, which runs many at a time against one collector. A request is five
 * spans, three of which say something; it does nothing else. Settings come from the environment;
 * stdout gets what became of the spans, as one JSON object.
 *
 * Threads:  one. */
#include <otel/otel.h>
#include <otel/semconv.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SPANS_PER_REQUEST = 5, PAUSE_MS = 5, PAUSES_PER_S = 200, SHUTDOWN_MS = 10000 };

static otel_tracer *tracer;

static void serve(uint64_t number)
{
    char path[32];
    snprintf(path, sizeof path, "/api/users/%" PRIu64, number % 1000);
    const otel_span request =
        otel_span_enter(tracer, "GET /api/users/{id}", OTEL_SPAN_OPTIONS(.kind = 1));
    otel_span_set_string(request, OTEL_SEMCONV_HTTP_REQUEST_METHOD, "GET");
    otel_span_set_string(request, OTEL_SEMCONV_URL_PATH, path);
    otel_span_set_int(request, OTEL_SEMCONV_HTTP_RESPONSE_STATUS_CODE, 200);
    for (unsigned i = 0; i < 2; i++) {
        const otel_span step = otel_span_enter(tracer, "step", NULL);
        const otel_span query = otel_span_enter(tracer, "SELECT users", NULL);
        otel_span_set_string(query, OTEL_SEMCONV_DB_QUERY_TEXT, "SELECT * FROM users WHERE id = ?");
        otel_span_set_int(query, "db.response.returned_rows", 1);
        otel_span_end(query);
        otel_span_end(step);
    }
    otel_span_end(request);
}

/* As many requests after each pause as keep the rate, which is that of the clock. */
static void work(double seconds, double requests_per_s)
{
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    const uint64_t pauses = (uint64_t)(seconds * PAUSES_PER_S);
    uint64_t done = 0;
    for (uint64_t i = 1; i <= pauses; i++) {
        const uint64_t due = (uint64_t)((double)i * requests_per_s / PAUSES_PER_S);
        for (; done < due; done++)
            serve(done);
        next.tv_nsec += PAUSE_MS * 1000000L;
        if (next.tv_nsec >= 1000000000L) {
            next.tv_nsec -= 1000000000L;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
}

int main(int argc, char **argv)
{
    const double seconds = argc == 3 ? strtod(argv[1], NULL) : 0;
    const double rate = argc == 3 ? strtod(argv[2], NULL) : 0;
    if (seconds <= 0 || rate < 0) {
        fprintf(stderr, "usage: load SECONDS SPANS_PER_SECOND\n");
        return 2;
    }
    if (otel_start(NULL) != OTEL_OK)
        return 1;
    tracer = otel_tracer_get("load", NULL);
    work(seconds, rate / SPANS_PER_REQUEST);
    const otel_status status = otel_shutdown(SHUTDOWN_MS);

    otel_stats stats = {.size = sizeof stats};
    (void)!otel_stats_read(0, &stats);
    printf("{\"ended\":%" PRIu64 ",\"delivered\":%" PRIu64 ",\"batches\":%" PRIu64 "}\n",
           stats.ended, stats.delivered, stats.batches);
    return status != OTEL_OK && status != OTEL_ERROR_EXPORT_FAILED; /* a loss is in the figures */
}
