/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/collector_down.c - a program that traces hard while its receiver is
 * dead in one of the ways of support/dead_peer.h.
 *
 *     collector_down KIND [--measure]
 *
 * Checked: no call into the API waits for anything (the tracing threads do not give up the
 * processor of their own will, but for the kernel's lock in page faults), memory stays under its
 * cap, otel_shutdown comes back and says what it could not do, and every span is accounted
 * for, under the reasons that fit. With --measure, for a quiet machine: longer, and how
 * long calls took is printed and held against its bounds. */
#include "tests/support/dead_peer.h"

#include <otel/otel.h>

#include <inttypes.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    THREADS = 4,
    TRACE_MS = 1000,
    MEASURE_MS = 5000,
    SHUTDOWN_MS = 2000,
    SHUTDOWN_LATE_MS = 100,
    LOOK_MS = 10,
    QUEUE_MAX_BYTES = 8 << 20,
    RSS_SLACK_BYTES = 32 << 20, /* arenas of malloc, stacks, curl */
    TRIES_MAX = 100,
    LOG_LINES_MAX = 20,
    WAITS_MAX = 5, /* waiting for us would be thousands */
    BUCKETS = 20000,
    BUCKET_NS = 100,
    CALL_MAX_NS = 1000000
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = true };
#else
enum { IS_SANITIZED = false };
#endif

#define REASON(name) (1u << OTEL_DROP_##name)
#define UNTAKEN (REASON(QUEUE_FULL) | REASON(BYTE_LIMIT))

/* What becomes of spans that are exported. Where requests reach the peer, it may also be on
 * a busy machine that there was no time for a connection or an answer. What waits behind an
 * export that takes its time may be left at the end. */
static const struct {
    uint32_t reason;
    bool is_reached;
} expected[DEAD_PEER_KINDS] = {
    [DEAD_PEER_REFUSES] = {REASON(RETRY_EXHAUSTED), false},
    [DEAD_PEER_FULL_BACKLOG] = {REASON(RETRY_EXHAUSTED), false},
    [DEAD_PEER_NEVER_READS] = {REASON(UNCONFIRMED), true},
    [DEAD_PEER_NEVER_ANSWERS] = {REASON(UNCONFIRMED), true},
    [DEAD_PEER_TRICKLES] = {REASON(UNCONFIRMED), true},
    [DEAD_PEER_RESETS] = {REASON(UNCONFIRMED), true},
    [DEAD_PEER_CUTS_HEAD] = {REASON(UNCONFIRMED), true},
    [DEAD_PEER_CONTINUES] = {REASON(UNCONFIRMED), true},
    [DEAD_PEER_BUSY] = {REASON(RETRY_EXHAUSTED), true},
    [DEAD_PEER_ENDLESS_BODY] = {REASON(RETRY_EXHAUSTED), true},
    [DEAD_PEER_HTTP2] = {REASON(PERMANENT_ERROR), true},
    [DEAD_PEER_SILENT_TLS] = {REASON(RETRY_EXHAUSTED), false},
    [DEAD_PEER_PLAIN] = {REASON(RETRY_EXHAUSTED), false},
    [DEAD_PEER_NO_NAME] = {REASON(RETRY_EXHAUSTED), false},
    [DEAD_PEER_SILENT_PROXY] = {REASON(UNCONFIRMED), true},
};

struct tracing {
    pthread_t thread;
    uint64_t spans;
    long waits;              /* voluntary context switches */
    long page_waits;         /* those in page faults: the kernel's lock, not one of ours */
    uint64_t calls[BUCKETS]; /* by how long they took; the last one has all above */
    uint64_t longest_ns;
    uint64_t longest_alone_ns; /* of calls that neither preemption nor a page wait made longer */
};

static otel_tracer *tracer;
static atomic_bool must_stop;
static atomic_uint log_lines;
static bool is_name_server_dead;
static int failures;

static void check(bool fine, const char *what, uint64_t got, uint64_t bound)
{
    if (fine)
        return;
    fprintf(stderr, "FAILED: %s: %" PRIu64 ", not %" PRIu64 "\n", what, got, bound);
    failures++;
}

/* In the place of the C library's, also for curl. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **result)
{
    (void)node;
    (void)service;
    (void)hints;
    (void)result;
    while (is_name_server_dead)
        pause();
    return EAI_NONAME;
}

static void count_line(void *state, otel_log_level level, const char *message)
{
    (void)level;
    if (state != NULL)
        fprintf(stderr, "  log: %s\n", message);
    atomic_fetch_add(&log_lines, 1);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void nap(int ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static uint64_t resident_bytes(void)
{
    unsigned long size = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu %lu", &size, &resident) != 2)
        abort();
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Note how long a call took; returns the time now, where the next one begins. */
static uint64_t note(struct tracing *tracing, uint64_t start_ns, uint64_t *longest_ns)
{
    const uint64_t end_ns = now_ns();
    const uint64_t took_ns = end_ns - start_ns;
    const uint64_t bucket = took_ns / BUCKET_NS;
    tracing->calls[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
    if (took_ns > *longest_ns)
        *longest_ns = took_ns;
    return end_ns;
}

static uint64_t trace_once(struct tracing *tracing, const char *text)
{
    uint64_t longest_ns = 0;
    uint64_t at = now_ns();
    const otel_span span = otel_span_enter(tracer, "work", NULL);
    at = note(tracing, at, &longest_ns);
    otel_span_set_string(span, "text", text);
    at = note(tracing, at, &longest_ns);
    otel_span_set_int(span, "number", (int64_t)tracing->spans);
    at = note(tracing, at, &longest_ns);
    if (tracing->spans % 16 == 0) {
        const otel_span detached = otel_span_start(tracer, "detached", NULL);
        otel_span_add_event(detached, "event", NULL, 0);
        otel_span_end(detached);
        at = note(tracing, at, &longest_ns);
        tracing->spans++;
    }
    otel_span_end(span);
    (void)note(tracing, at, &longest_ns);
    tracing->spans++;
    return longest_ns;
}

static void *trace(void *argument)
{
    struct tracing *tracing = argument;
    char text[301];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    const long waits_before = usage.ru_nvcsw;
    while (!atomic_load(&must_stop)) {
        const struct rusage before = usage;
        const uint64_t longest_ns = trace_once(tracing, text);
        getrusage(RUSAGE_THREAD, &usage);
        const long waits = usage.ru_nvcsw - before.ru_nvcsw;
        const bool has_faulted =
            usage.ru_minflt != before.ru_minflt || usage.ru_majflt != before.ru_majflt;
        const long page_waits = has_faulted ? waits : 0;
        tracing->page_waits += page_waits;
        if (longest_ns > tracing->longest_ns)
            tracing->longest_ns = longest_ns;
        if (usage.ru_nivcsw == before.ru_nivcsw && page_waits == 0 &&
            longest_ns > tracing->longest_alone_ns)
            tracing->longest_alone_ns = longest_ns;
    }
    tracing->waits = usage.ru_nvcsw - waits_before;
    return NULL;
}

/* Trace from all threads, and watch the memory meanwhile. */
static void trace_hard(struct tracing *threads, int ms)
{
    const uint64_t resident_before = resident_bytes();
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i].thread, NULL, trace, &threads[i]) != 0)
            abort();
    uint64_t most_queued = 0;
    uint64_t most_resident = 0;
    for (int passed_ms = 0; passed_ms < ms; passed_ms += LOOK_MS) {
        nap(LOOK_MS);
        otel_stats stats = {.size = sizeof stats};
        if (otel_stats_read(0, &stats) == OTEL_OK && stats.queued_bytes > most_queued)
            most_queued = stats.queued_bytes;
        const uint64_t resident = resident_bytes();
        most_resident = resident > most_resident ? resident : most_resident;
    }
    atomic_store(&must_stop, true);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i].thread, NULL);
    const uint64_t growth = most_resident > resident_before ? most_resident - resident_before : 0;
    check(most_queued <= QUEUE_MAX_BYTES, "queued bytes", most_queued, QUEUE_MAX_BYTES);
    check(IS_SANITIZED || growth <= QUEUE_MAX_BYTES + RSS_SLACK_BYTES, "growth of memory", growth,
          QUEUE_MAX_BYTES + RSS_SLACK_BYTES);
    printf(" queued_bytes_max %" PRIu64 " rss_growth %" PRIu64, most_queued, growth);
}

static uint64_t quantile_ns(const struct tracing *threads, double share)
{
    uint64_t total = 0;
    uint64_t below = 0;
    for (size_t i = 0; i < THREADS; i++)
        for (size_t k = 0; k < BUCKETS; k++)
            total += threads[i].calls[k];
    for (size_t k = 0; k < BUCKETS; k++) {
        for (size_t i = 0; i < THREADS; i++)
            below += threads[i].calls[k];
        if ((double)below >= share * (double)total)
            return (k + 1) * BUCKET_NS;
    }
    return BUCKETS * BUCKET_NS;
}

static uint64_t check_calls(const struct tracing *threads, bool measures)
{
    uint64_t spans = 0;
    uint64_t longest_ns = 0;
    uint64_t longest_alone_ns = 0;
    for (size_t i = 0; i < THREADS; i++) {
        const struct tracing *one = &threads[i];
        spans += one->spans;
        longest_ns = one->longest_ns > longest_ns ? one->longest_ns : longest_ns;
        longest_alone_ns =
            one->longest_alone_ns > longest_alone_ns ? one->longest_alone_ns : longest_alone_ns;
        check(one->waits - one->page_waits <= WAITS_MAX, "waits of a tracing thread",
              (uint64_t)(one->waits - one->page_waits), WAITS_MAX);
        printf(" waits %ld page_waits %ld", one->waits, one->page_waits);
    }
    printf(" spans %" PRIu64 " p9999_ns %" PRIu64 " max_ns %" PRIu64 " max_alone_ns %" PRIu64,
           spans, quantile_ns(threads, 0.9999), longest_ns, longest_alone_ns);
    check(!measures || longest_alone_ns <= CALL_MAX_NS, "longest call by itself, ns",
          longest_alone_ns, CALL_MAX_NS);
    return spans;
}

static uint64_t lost_as_expected(enum dead_peer_kind kind)
{
    otel_stats stats = {.size = sizeof stats};
    uint64_t lost = 0;
    if (otel_stats_read(0, &stats) != OTEL_OK)
        abort();
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        lost += (expected[kind].reason >> i & 1) != 0 ? stats.dropped[i] : 0;
    return lost;
}

/* On a busy machine the peer may have answered nothing in time yet, or each time while the request
 * was still on its way. How many spans more, which are small requests, it takes until it has. */
static uint64_t trace_until_lost_as_expected(enum dead_peer_kind kind)
{
    uint64_t spans = 0;
    for (; spans < TRIES_MAX && lost_as_expected(kind) == 0; spans++) {
        otel_span_end(otel_span_enter(tracer, "once more", NULL));
        (void)!otel_flush(SHUTDOWN_MS);
    }
    return spans;
}

static void check_statistics(enum dead_peer_kind kind, otel_status status, uint64_t spans)
{
    const uint32_t allowed =
        UNTAKEN | expected[kind].reason | REASON(SHUTDOWN_TIMEOUT) |
        (expected[kind].is_reached ? REASON(RETRY_EXHAUSTED) | REASON(UNCONFIRMED) : 0);
    otel_stats stats = {.size = sizeof stats};
    char text[512];
    if (otel_stats_read(0, &stats) != OTEL_OK)
        abort();
    uint64_t dropped = 0;
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++) {
        dropped += stats.dropped[i];
        check(stats.dropped[i] == 0 || (allowed >> i & 1) != 0,
              otel_drop_reason_string((otel_drop_reason)i), stats.dropped[i], 0);
        if ((expected[kind].reason >> i & 1) != 0)
            check(stats.dropped[i] != 0, otel_drop_reason_string((otel_drop_reason)i), 0, 1);
    }
    otel_stats_describe(&stats, text, sizeof text);
    printf(" %s\n", text);
    check(stats.started == spans, "started", stats.started, spans);
    check(stats.ended == spans, "ended", stats.ended, spans);
    check(dropped == spans, "dropped in all", dropped, spans);
    check(stats.delivered + stats.rejected + stats.queued + stats.open + stats.unsampled == 0,
          "anything else", stats.delivered, 0);
    const otel_status wanted = stats.dropped[OTEL_DROP_SHUTDOWN_TIMEOUT] != 0
                                   ? OTEL_ERROR_TIMEOUT
                                   : OTEL_ERROR_EXPORT_FAILED;
    check(status == wanted, "status of otel_shutdown", (uint64_t)status, (uint64_t)wanted);
    check(atomic_load(&log_lines) <= LOG_LINES_MAX, "lines in the log", atomic_load(&log_lines),
          LOG_LINES_MAX);
}

static void run(enum dead_peer_kind kind, bool measures)
{
    static struct tracing threads[THREADS];
    struct dead_peer *peer = dead_peer_start(kind);
    if (dead_peer_proxy(peer) != NULL)
        setenv("http_proxy", dead_peer_proxy(peer), 1);
    is_name_server_dead = kind == DEAD_PEER_NO_NAME;
    otel_log_set_handler(count_line, getenv("OTEL_TEST_VERBOSE"));
    const otel_status started = otel_start(
        OTEL_SDK_OPTIONS(.traces_exporter = "otlp", .exporter_otlp_endpoint = dead_peer_url(peer),
                         .exporter_otlp_timeout = 300, .bsp_schedule_delay = 100,
                         .bsp_max_queue_size = 60000, .queue_max_bytes = QUEUE_MAX_BYTES));
    if (started != OTEL_OK)
        abort();
    tracer = otel_tracer_get("collector_down", NULL);
    printf("%s:", dead_peer_name(kind));
    trace_hard(threads, measures ? MEASURE_MS : TRACE_MS);
    const uint64_t more = trace_until_lost_as_expected(kind);
    otel_span_end(otel_span_enter(tracer, "so that the shutdown has something to lose", NULL));
    const uint64_t spans = check_calls(threads, measures) + more + 1;
    const uint64_t before_ns = now_ns();
    const otel_status status = otel_shutdown(SHUTDOWN_MS);
    const uint64_t took_ms = (now_ns() - before_ns) / 1000000;
    printf(" shutdown_ms %" PRIu64, took_ms);
    check(!measures || took_ms <= SHUTDOWN_MS + SHUTDOWN_LATE_MS, "otel_shutdown, ms", took_ms,
          SHUTDOWN_MS + SHUTDOWN_LATE_MS);
    check_statistics(kind, status, spans);
    dead_peer_stop(peer);
}

int main(int argc, char **argv)
{
    const bool measures = argc == 3 && strcmp(argv[2], "--measure") == 0;
    for (int kind = 0; kind < DEAD_PEER_KINDS && argc >= 2; kind++) {
        if (strcmp(argv[1], dead_peer_name((enum dead_peer_kind)kind)) == 0) {
            run((enum dead_peer_kind)kind, measures);
            return failures != 0;
        }
    }
    fprintf(stderr, "usage: collector_down KIND [--measure]; the kinds are\n");
    for (int kind = 0; kind < DEAD_PEER_KINDS; kind++)
        fprintf(stderr, "  %s\n", dead_peer_name((enum dead_peer_kind)kind));
    return 2;
}
