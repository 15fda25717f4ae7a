/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/spool_child.c - a program with a spool, to be killed at any moment.
 *
 *     spool_child trace RUN HANDED     traces spans "span-RUN-0000000" and on, until it is killed;
 *                                      HANDED, a file of eight bytes, is how many the exporter has
 *                                      taken for certain, because a flush came back
 *     spool_child drain                waits until the spool is empty, and prints its statistics
 *
 * Settings come from the environment. */
#include <otel/otel.h>
#include <otel/spool.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SPANS_A_FLUSH = 20, FLUSH_MS = 20000, PAUSE_MS = 5, DRAIN_MS = 60000 };

static void pause_a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
}

static int trace(const char *run, const char *path)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    volatile uint64_t *handed =
        mmap(NULL, sizeof *handed, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || handed == MAP_FAILED)
        return 1;
    otel_tracer *tracer = otel_tracer_get("spool_child", NULL);
    for (uint64_t number = 0;;) {
        for (unsigned i = 0; i < SPANS_A_FLUSH; i++, number++) {
            char name[32];
            snprintf(name, sizeof name, "span-%.2s-%07llu", run, (unsigned long long)number);
            otel_span_end(otel_span_enter(tracer, name, NULL));
        }
        const otel_status status = otel_flush(FLUSH_MS);
        if (status != OTEL_OK) {
            fprintf(stderr, "flush: %s\n", otel_status_string(status));
            return 1;
        }
        *handed = number;
        pause_a_moment();
    }
}

static otel_spool_stats spool_stats(void)
{
    otel_spool_stats stats = {.size = sizeof stats};
    if (otel_spool_stats_read(&stats) != OTEL_OK)
        exit(1);
    return stats;
}

static int drain(void)
{
    otel_spool_stats stats = spool_stats();
    for (unsigned ms = 0; ms < DRAIN_MS && (stats.found == 0 || stats.waiting != 0);
         ms += PAUSE_MS) {
        pause_a_moment();
        stats = spool_stats();
    }
    if (otel_shutdown(FLUSH_MS) != OTEL_OK)
        return 1;
    printf("{\"found\":%llu,\"sent\":%llu,\"waiting\":%llu,\"torn\":%llu,\"evicted\":%llu}\n",
           (unsigned long long)stats.found, (unsigned long long)stats.sent,
           (unsigned long long)stats.waiting, (unsigned long long)stats.torn,
           (unsigned long long)stats.evicted);
    return stats.waiting == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    const bool traces = argc == 4 && strcmp(argv[1], "trace") == 0;
    if (!traces && !(argc == 2 && strcmp(argv[1], "drain") == 0)) {
        fprintf(stderr, "usage: spool_child trace RUN HANDED | drain\n");
        return 2;
    }
    if (otel_start(NULL) != OTEL_OK)
        return 1;
    return traces ? trace(argv[2], argv[3]) : drain();
}
