/* SPDX-License-Identifier: Apache-2.0 */
/* examples/from_log.c - spans out of an access log, of a server that cannot be changed.
 *
 *     cc from_log.c -o from_log $(pkg-config --cflags --libs otel)
 *     tail -F access.log | OTEL_SERVICE_NAME=edge ./from_log
 *
 * A line is a request: when it ended, how long it took, what was asked and answered, and what
 * the client said of its trace (or "-"). nginx writes them with
 *
 *     log_format spans '$msec $request_time $status $request_method $request_uri
 *                      $http_traceparent';
 *
 * Each becomes a span that has ended already (otel/record.h), a child of the client's, or a root.
 * What the client has not sampled is counted, and not sent. With --demo there are four lines. */
#include <otel/otel.h>
#include <otel/semconv.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is read from a file comes faster than a collector takes it: wait for it now and then. */
enum { FLUSH_AFTER = 1000, FLUSH_MS = 10000 };

static const double LATEST_S = 9e9; /* so that nanoseconds have 63 bits */

static const char demo[] =
    "1795276800.250 0.250 200 GET /orders?page=2 "
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n"
    "1795276800.275 0.012 503 POST /orders "
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n"
    "1795276801.004 0.003 200 GET /health 00-5bf92f3577b34da6a3ce929d0e0e4736-10f067aa0ba902b7-00\n"
    "1795276801.100 0.040 404 GET /favicon.ico -\n";

/* A line; texts point into it. */
struct request {
    double ended_s;
    double took_s;
    long status;
    const char *method;
    const char *target;
    const char *traceparent;
};

/* Cuts the line into its fields. */
static bool read_request(char *line, struct request *request)
{
    enum { FIELDS = 6 };
    char *fields[FIELDS];
    char *rest = NULL;
    size_t count = 0;
    for (char *field = strtok_r(line, " \r\n", &rest); field != NULL && count < FIELDS;
         field = strtok_r(NULL, " \r\n", &rest))
        fields[count++] = field;
    if (count < FIELDS)
        return false;
    *request = (struct request){strtod(fields[0], NULL),
                                strtod(fields[1], NULL),
                                strtol(fields[2], NULL, 10),
                                fields[3],
                                fields[4],
                                fields[5]};
    return request->took_s >= 0 && request->took_s < request->ended_s &&
           request->ended_s < LATEST_S;
}

/* A carrier with one header. */
static const char *get_header(void *carrier, const char *name, size_t index, size_t *length)
{
    const struct request *request = carrier;
    if (index != 0 || strcmp(name, "traceparent") != 0 || request->traceparent[0] == '-')
        return NULL;
    *length = strlen(request->traceparent);
    return request->traceparent;
}

static otel_span_context context_of(struct request *request)
{
    const otel_context nothing = {0};
    const otel_context context =
        otel_propagator_extract(otel_propagator_trace_context(), &nothing, get_header, request);
    return otel_span_get_context(context.span);
}

static uint64_t nanoseconds(double seconds)
{
    return (uint64_t)(seconds * 1e6 + 0.5) * 1000; /* a double has no more than microseconds */
}

static void record(otel_tracer *tracer, struct request *request)
{
    const otel_span_context client = context_of(request);
    const bool has_client = otel_span_context_is_valid(&client);
    const uint64_t end_ns = nanoseconds(request->ended_s);
    const size_t path_length = strcspn(request->target, "?");
    const otel_attribute attributes[] = {
        otel_attribute_of(OTEL_SEMCONV_HTTP_REQUEST_METHOD, otel_value_string(request->method)),
        otel_attribute_of(OTEL_SEMCONV_URL_PATH, otel_value_string_n(request->target, path_length)),
        otel_attribute_of(OTEL_SEMCONV_HTTP_RESPONSE_STATUS_CODE, otel_value_int(request->status))};

    otel_span_record(
        tracer,
        OTEL_FINISHED_SPAN(.trace_id = client.trace_id, .parent_span_id = client.span_id,
                           .parent_is_remote = true,
                           .flags = has_client ? client.flags : OTEL_TRACE_FLAG_SAMPLED,
                           .name = request->method, .kind = OTEL_SPAN_KIND_SERVER,
                           .start_ns = end_ns - nanoseconds(request->took_s), .end_ns = end_ns,
                           .status = request->status >= 500 ? OTEL_SPAN_STATUS_ERROR
                                                            : OTEL_SPAN_STATUS_UNSET,
                           .attributes = attributes,
                           .attribute_count = sizeof attributes / sizeof attributes[0]));
}

/* Returns how many lines were none. */
static unsigned long read_log(otel_tracer *tracer, FILE *log)
{
    char line[2048];
    struct request request;
    unsigned long skipped = 0;
    for (unsigned long count = 1; fgets(line, sizeof line, log) != NULL; count++) {
        if (read_request(line, &request))
            record(tracer, &request);
        else
            skipped++;
        if (count % FLUSH_AFTER == 0)
            (void)!otel_flush(FLUSH_MS); /* what could not be sent is in the statistics */
    }
    return skipped;
}

int main(int argc, char **argv)
{
    const bool is_demo = argc == 2 && strcmp(argv[1], "--demo") == 0;
    FILE *log = is_demo ? fmemopen((void *)(uintptr_t)demo, sizeof demo - 1, "r") : stdin;
    if (log == NULL || (argc > 1 && !is_demo)) {
        fprintf(stderr, "usage: from_log [--demo] < access.log\n");
        return 2;
    }
    otel_status status =
        otel_start(OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.service_name = "access-log")));
    if (status != OTEL_OK) {
        fprintf(stderr, "cannot start: %s\n", otel_status_string(status));
        return 1;
    }
    const unsigned long skipped = read_log(otel_tracer_get("example.from_log", NULL), log);
    status = otel_shutdown(FLUSH_MS);

    char text[200];
    otel_stats stats = {.size = sizeof stats};
    (void)!otel_stats_read(0, &stats);
    otel_stats_describe(&stats, text, sizeof text);
    fprintf(stderr, "from_log: %" PRIu64 " requests, %s; lines skipped: %lu\n", stats.started, text,
            skipped);
    return status != OTEL_OK;
}
