/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/storm.c - a program that traces for some seconds at a steady rate.
 *
 *     storm IDS SPANS SECONDS
 *
 * Eight threads share the spans; settings come from the environment. IDS gets the span id
 * of every span that ended, eight bytes each; stdout gets the statistics after the
 * shutdown, with the reasons of losses by name. */
#include <otel/otel.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 8, PAUSE_MS = 5, SHUTDOWN_MS = 10000 };

struct worker {
    pthread_t thread;
    uint64_t spans;
    uint64_t pauses;
    uint8_t *ids;
};

static otel_tracer *tracer;

static void trace(uint8_t id[8])
{
    otel_span span = otel_span_enter(tracer, "storm", NULL);
    otel_span_set_string(span, "http.request.method", "GET");
    otel_span_set_string(span, "url.path", "/api/users/12345");
    otel_span_set_int(span, "http.response.status_code", 200);
    const otel_span_context context = otel_span_get_context(span);
    for (size_t i = 0; i < 8; i++)
        id[i] = context.span_id[i];
    otel_span_end(span);
}

/* As many spans after each pause as keep the rate. */
static void *work(void *argument)
{
    struct worker *worker = argument;
    const struct timespec pause = {0, PAUSE_MS * 1000000L};
    uint64_t done = 0;
    for (uint64_t i = 1; i <= worker->pauses; i++) {
        for (; done < worker->spans * i / worker->pauses; done++)
            trace(worker->ids + done * 8);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void print_statistics(otel_status status)
{
    otel_stats stats = {.size = sizeof stats};
    if (otel_stats_read(0, &stats) != OTEL_OK)
        exit(1);
    printf("{\"status\":%d,\"started\":%llu,\"open\":%llu,\"ended\":%llu,\"queued\":%llu,"
           "\"delivered\":%llu,\"rejected\":%llu,\"dropped\":{",
           (int)status, (unsigned long long)stats.started, (unsigned long long)stats.open,
           (unsigned long long)stats.ended, (unsigned long long)stats.queued,
           (unsigned long long)stats.delivered, (unsigned long long)stats.rejected);
    for (int i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        printf("%s\"%s\":%llu", i != 0 ? "," : "", otel_drop_reason_string((otel_drop_reason)i),
               (unsigned long long)stats.dropped[i]);
    printf("}}\n");
}

int main(int argc, char **argv)
{
    static struct worker workers[THREADS];
    if (argc != 4) {
        fprintf(stderr, "usage: storm IDS SPANS SECONDS\n");
        return 2;
    }
    FILE *ids = fopen(argv[1], "wb");
    const uint64_t spans = strtoull(argv[2], NULL, 10) / THREADS;
    const uint64_t pauses = strtoull(argv[3], NULL, 10) * 1000 / PAUSE_MS;
    tracer = otel_tracer_get("storm", NULL);
    if (ids == NULL || otel_start(NULL) != OTEL_OK)
        return 1;
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.spans = spans, .pauses = pauses, .ids = malloc(spans * 8)};
        if (workers[i].ids == NULL ||
            pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return 1;
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        if (fwrite(workers[i].ids, 8, spans, ids) != spans)
            return 1;
        free(workers[i].ids);
    }
    if (fclose(ids) != 0)
        return 1;
    print_statistics(otel_shutdown(SHUTDOWN_MS));
    return 0;
}
