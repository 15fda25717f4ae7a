/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/storm.c - a program that traces for some seconds at a steady rate, and may
 * be ended by kill -9 at any moment.
 *
 *     storm FILE SPANS MILLISECONDS
 *
 * Sixteen threads share the spans; settings come from the environment. FILE is mapped memory, so
 * that it survives the program: the span ids, eight bytes each and zero where there is none yet,
 * each put down just before its span ends; behind them twice a struct counts, of which one is whole
 * at any moment. So at most THREADS spans are in FILE and had not ended when the program was
 * killed, and what counts say has happened had happened.
 *
 * stdout gets the statistics after the shutdown, with the reasons of losses by name. */
#include <otel/otel.h>
#include <otel/spool.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 16, PAUSE_MS = 5, COUNT_MS = 1, SHUTDOWN_MS = 60000 };

struct counts {
    uint64_t is_whole;
    uint64_t ended;
    uint64_t delivered;
    uint64_t spooled;
    uint64_t rejected;
    uint64_t dropped;
};

struct worker {
    pthread_t thread;
    uint64_t spans;
    uint64_t pauses;
    uint8_t *ids;
};

static otel_tracer *tracer;
static struct counts *counts; /* [2], in FILE */
static atomic_bool is_over;

static void trace(uint8_t id[8])
{
    otel_span span = otel_span_enter(tracer, "storm", NULL);
    otel_span_set_string(span, "http.request.method", "GET");
    otel_span_set_string(span, "url.path", "/api/users/12345");
    otel_span_set_int(span, "http.response.status_code", 200);
    const otel_span_context context = otel_span_get_context(span);
    memcpy(id, context.span_id, 8);
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

static otel_stats statistics(void)
{
    otel_stats stats = {.size = sizeof stats};
    if (otel_stats_read(0, &stats) != OTEL_OK)
        abort();
    return stats;
}

static void note(struct counts *to)
{
    const otel_stats stats = statistics();
    struct counts found = {.is_whole = 0,
                           .ended = stats.ended,
                           .delivered = stats.delivered,
                           .spooled = stats.spooled,
                           .rejected = stats.rejected};
    for (int i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        found.dropped += stats.dropped[i];
    *(volatile uint64_t *)&to->is_whole = 0;
    atomic_signal_fence(memory_order_seq_cst);
    *to = found;
    atomic_signal_fence(memory_order_seq_cst);
    *(volatile uint64_t *)&to->is_whole = 1;
}

/* Nobody else reads while the program runs, so the order in this thread is enough. */
static void *keep_counts(void *argument)
{
    (void)argument;
    const struct timespec pause = {0, COUNT_MS * 1000000L};
    for (unsigned i = 0; !atomic_load(&is_over); i++) {
        note(&counts[i % 2]);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void print_statistics(otel_status status)
{
    const otel_stats stats = statistics();
    otel_spool_stats spool = {.size = sizeof spool};
    if (otel_spool_stats_read(&spool) != OTEL_OK)
        exit(1);
    printf("{\"status\":%d,\"started\":%llu,\"open\":%llu,\"ended\":%llu,\"queued\":%llu,"
           "\"delivered\":%llu,\"rejected\":%llu,\"spooled\":%llu,\"dropped\":{",
           (int)status, (unsigned long long)stats.started, (unsigned long long)stats.open,
           (unsigned long long)stats.ended, (unsigned long long)stats.queued,
           (unsigned long long)stats.delivered, (unsigned long long)stats.rejected,
           (unsigned long long)stats.spooled);
    for (int i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        printf("%s\"%s\":%llu", i != 0 ? "," : "", otel_drop_reason_string((otel_drop_reason)i),
               (unsigned long long)stats.dropped[i]);
    printf("},\"spool\":{\"stored\":%llu,\"found\":%llu,\"sent\":%llu,\"rejected\":%llu,"
           "\"refused\":%llu,\"expired\":%llu,\"evicted\":%llu,\"torn\":%llu,\"taken\":%llu,"
           "\"waiting\":%llu,\"failures\":%llu}}\n",
           (unsigned long long)spool.stored, (unsigned long long)spool.found,
           (unsigned long long)spool.sent, (unsigned long long)spool.rejected,
           (unsigned long long)spool.refused, (unsigned long long)spool.expired,
           (unsigned long long)spool.evicted, (unsigned long long)spool.torn,
           (unsigned long long)spool.taken, (unsigned long long)spool.waiting,
           (unsigned long long)spool.failures);
}

/* The ids; the counts are behind them. */
static uint8_t *map(const char *path, uint64_t spans)
{
    const size_t size = spans * 8 + 2 * sizeof(struct counts);
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, (off_t)size) != 0) {
        perror(path);
        exit(1);
    }
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        exit(1);
    counts = (struct counts *)(void *)((uint8_t *)memory + spans * 8);
    return memory;
}

int main(int argc, char **argv)
{
    static struct worker workers[THREADS];
    if (argc != 4) {
        fprintf(stderr, "usage: storm FILE SPANS MILLISECONDS\n");
        return 2;
    }
    const uint64_t spans = strtoull(argv[2], NULL, 10) / THREADS;
    const uint64_t pauses = strtoull(argv[3], NULL, 10) / PAUSE_MS + 1;
    uint8_t *ids = map(argv[1], spans * THREADS);
    tracer = otel_tracer_get("storm", NULL);
    pthread_t counter;
    if (otel_start(NULL) != OTEL_OK || pthread_create(&counter, NULL, keep_counts, NULL) != 0)
        return 1;
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.spans = spans, .pauses = pauses, .ids = ids + i * spans * 8};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return 1;
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    const otel_status status = otel_shutdown(SHUTDOWN_MS);
    atomic_store(&is_over, true);
    pthread_join(counter, NULL);
    print_statistics(status);
    return 0;
}
