/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/soak.c - a program that traces 20,000 spans a second for a long time, while its
 * receiver fails in every way again and again: what it has of memory, descriptors and threads stays
 * the same, and every span is accounted for.
 *
 *     soak_stress [--seconds N] [--failures N] [--rate N] [--segments N]
 *
 * Without arguments it takes about 15 seconds, which is what CI has time for; with OTEL_TEST_LONG=1
 * (scripts/test.sh --soak) ten minutes. Two hours are --seconds 7200 --failures 200.
 *
 * The time has segments. In each the SDK is started anew, with the next of twelve ways: three
 * protocols, with and without a spool, gzip and TLS. Troubles come at random moments
 * (OTEL_TEST_SEED), and near the segment's end is calm: then, with the producers still at work, and
 * after the shutdown, memory, descriptors and threads are counted. Of the same way they are the
 * same; of memory it is the slope over the second half that counts, as medians of pairs.
 *
 * Spans are numbered: their ids are 1, 2, 3..., and the receiver (soak_peer.h), a process of its
 * own so that its memory is not ours, notes which came. At the end of each segment
 *     what was delivered or rejected came, and was answered with success;
 *     what did not come is counted as lost;
 *     what came but is not called delivered is called unconfirmed. */
#include "common/base/atomic.h"
#include "tests/support/dice.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"
#include "tests/support/soak_peer.h"

#include <otel/otlp.h>
#include <otel/spool.h>

#include <dirent.h>
#include <ftw.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WAYS = 12,
    PRODUCERS = 4,
    CI_SECONDS = 15,
    SANITIZED_SECONDS = 8,
    CI_FAILURES = 14,
    LONG_SECONDS = 600,
    LONG_FAILURES = 60,
    SLOPE_SECONDS = 3600, /* from here on the slope has a bound an hour */
    RATE = 20000,
    PAUSE_US = 2000,
    BURST_MOST = 2000, /* after the machine has taken a producer off the processor */
    MERCY_TRIES = 50,
    MERCY_BURST = 10,
    MERCY_US = 10000,
    TROUBLE_MOST_MS = 4000,
    QUEUE_SPANS = 65536,
    QUEUE_BYTES = 16 << 20,
    SPOOL_BYTES = 256 << 20,
    SLACK_KIB = 24 << 10, /* requests, curl, TLS, stacks, malloc's arenas */
    SLOPE_KIB = 100,
    GROWTH_KIB = 4096, /* of shorter forms */
    CALM_TRIES = 1200,
    CALM_US = 100000,
    CALM_SECONDS = 150, /* at most, in a segment */
    SHUTDOWN_MS = 60000,
    SAMPLES = 8192,
    SPOOL_DESCRIPTORS = 6, /* once something was in the spool: four that the worker waits with, and
                              a connection with what it is waited for */
    KIB = 1024
};

static const uint64_t second_ns = UINT64_C(1000000000);

struct way {
    otel_otlp_protocol protocol;
    bool has_spool;
    bool has_gzip;
    bool has_tls;
};

struct producer {
    pthread_t thread;
    uint64_t spans;
};

struct sum {
    uint64_t started;
    uint64_t delivered; /* by the spool, too */
    uint64_t rejected;
    uint64_t lost;
    uint64_t unconfirmed;
    uint64_t missing; /* from the receiver */
};

static struct {
    uint64_t seconds;
    uint64_t failures;
    uint64_t rate;
    uint64_t segments;
} form;

static struct dice dice;
static struct soak_peer peer;
static char directory[64];
static char spool_directory[128];
static char ca_file[128];
static otel_tracer *tracer;
static uint64_t last_number; /* atomic */
static uint32_t must_stop;   /* atomic */
static uint32_t has_mercy;   /* with a machine that has not come to rest for a while; atomic */
static uint64_t log_lines;   /* atomic */
static uint64_t began_ns;
static struct sum all;
static uint64_t troubles_done[SOAK_TROUBLES];

static struct sample {
    double at_s;
    double kib;
    uint32_t kind; /* those of a kind are compared */
} memory[SAMPLES];
static size_t memory_count;
static uint64_t most_resident_kib;
static uint64_t most_queued_bytes;
static unsigned most_descriptors;
static unsigned most_threads;
static unsigned rest_descriptors; /* before the first start */
static unsigned rest_threads;

/* ---- what the process has ------------------------------------------------------------------ */

static unsigned count_entries(const char *path)
{
    unsigned count = 0;
    DIR *entries = opendir(path);
    STRESS_CHECK(entries != NULL);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(entries);
    return count;
}

static unsigned count_descriptors(void)
{
    return count_entries("/proc/self/fd") - 1;
}

static unsigned count_threads(void)
{
    return count_entries("/proc/self/task");
}

static double passed_s(void)
{
    return (double)(process_now_ns() - began_ns) / (double)second_ns;
}

static void look(void)
{
    otel_stats stats = {.size = sizeof stats};
    const uint64_t resident_kib = process_resident_kib();
    const unsigned descriptors = count_descriptors();
    const unsigned threads = count_threads();
    if (otel_stats_read(0, &stats) == OTEL_OK && stats.queued_bytes > most_queued_bytes)
        most_queued_bytes = stats.queued_bytes;
    most_resident_kib = resident_kib > most_resident_kib ? resident_kib : most_resident_kib;
    most_descriptors = descriptors > most_descriptors ? descriptors : most_descriptors;
    most_threads = threads > most_threads ? threads : most_threads;
}

static void note_memory(uint32_t kind)
{
    if (memory_count < SAMPLES)
        memory[memory_count++] = (struct sample){passed_s(), (double)process_resident_kib(), kind};
}

/* ---- the program --------------------------------------------------------------------------- */

static void generate_ids(void *state, uint8_t *trace_id, uint8_t *span_id)
{
    (void)state;
    uint64_t number;
    if (trace_id != NULL) {
        memset(trace_id, 0x5a, 16);
        return;
    }
    number = oteli_add_full_64(&last_number, 1) + 1;
    for (int i = 7; i >= 0; i--, number >>= 8)
        span_id[i] = (uint8_t)number;
}

static void trace_one(uint64_t number)
{
    const otel_span span = otel_span_enter(tracer, "GET /api/users/{id}", NULL);
    otel_span_set_string(span, "http.request.method", "GET");
    otel_span_set_string(span, "url.path", "/api/users/12345");
    otel_span_set_int(span, "http.response.status_code", 200);
    if (number % 16 == 0)
        otel_span_add_event(span, "cache.miss", NULL, 0);
    otel_span_end(span);
}

static void *produce(void *argument)
{
    struct producer *me = argument;
    const uint64_t start_ns = process_now_ns();
    uint64_t skipped = 0;
    while (oteli_load_acquire_32(&must_stop) == 0) {
        const uint64_t passed_us = (process_now_ns() - start_ns) / 1000;
        uint64_t due = passed_us * form.rate / PRODUCERS / 1000000 - skipped;
        const bool is_slow = oteli_load_acquire_32(&has_mercy) != 0;
        const uint64_t most = is_slow ? MERCY_BURST : BURST_MOST;
        if (due > me->spans + most) {
            skipped += due - me->spans - most;
            due = me->spans + most;
        }
        for (; me->spans < due; me->spans++)
            trace_one(me->spans);
        stress_sleep_us(is_slow ? MERCY_US : PAUSE_US);
    }
    return NULL;
}

/* Once at the start, so that the most that the queue may have is no growth later. */
static void fill_queue(void)
{
    for (uint64_t i = 0; i < QUEUE_SPANS * 5 / 4; i++)
        trace_one(i);
}

static void count_line(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    oteli_add_full_64(&log_lines, 1);
    if (getenv("OTEL_TEST_VERBOSE") != NULL)
        printf("  log: %s\n", message);
}

static void start_sdk(const struct way *way)
{
    char endpoint[128];
    otel_exporter exporter;
    snprintf(endpoint, sizeof endpoint, "%s://127.0.0.1:%u%s", way->has_tls ? "https" : "http",
             (unsigned)peer.port, way->protocol == OTEL_OTLP_GRPC ? "" : "/v1/traces");
    STRESS_CHECK(otel_otlp_exporter_new(
                     OTEL_OTLP_OPTIONS(.endpoint = endpoint, .protocol = way->protocol, .proxy = "",
                                       .compression = way->has_gzip ? OTEL_OTLP_COMPRESSION_GZIP
                                                                    : OTEL_OTLP_COMPRESSION_NONE,
                                       .timeout_ms = form.seconds >= LONG_SECONDS ? 3000 : 500,
                                       .ca_file = way->has_tls ? ca_file : NULL,
                                       .spool_directory = way->has_spool ? spool_directory : NULL,
                                       .spool_max_bytes = SPOOL_BYTES),
                     &exporter) == OTEL_OK);
    STRESS_CHECK(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                  .service_name = "soak", .bsp_schedule_delay = 200,
                                                  .bsp_max_queue_size = QUEUE_SPANS,
                                                  .queue_max_bytes = QUEUE_BYTES,
                                                  .generate_ids = generate_ids,
                                                  .ignore_environment = true)) == OTEL_OK);
    tracer = otel_tracer_get("soak", NULL);
}

/* ---- troubles ------------------------------------------------------------------------------ */

static void wait_until(uint64_t until_ns)
{
    const uint64_t every_ns = form.seconds >= LONG_SECONDS ? second_ns : second_ns / 20;
    for (uint64_t now; (now = process_now_ns()) < until_ns;) {
        const uint64_t left_ns = until_ns - now;
        stress_sleep_us((unsigned)((left_ns < every_ns ? left_ns : every_ns) / 1000 + 1));
        look();
    }
}

static void make_trouble(const struct way *way, uint64_t most_ns)
{
    static uint32_t next;
    const uint64_t most_ms =
        most_ns / 1000000 < TROUBLE_MOST_MS ? most_ns / 1000000 : TROUBLE_MOST_MS;
    /* Each comes as often as any other, in an order that chance has begun. */
    const uint32_t trouble = 1 + next++ % (SOAK_TROUBLES - 1);
    const uint64_t until_ns =
        process_now_ns() + (20 + dice_below(&dice, (uint32_t)most_ms)) * UINT64_C(1000000);
    if (next == 1)
        next += dice_below(&dice, SOAK_TROUBLES - 1);
    troubles_done[trouble]++;
    if (trouble < SOAK_KILLED) {
        oteli_store_release_32(&peer.shared->trouble, trouble);
        wait_until(until_ns);
        oteli_store_release_32(&peer.shared->trouble, SOAK_CALM);
        return;
    }
    soak_peer_kill(&peer);
    if (trouble == SOAK_HANDSHAKES)
        soak_peer_start(&peer, false, true);
    wait_until(until_ns);
    soak_peer_kill(&peer);
    soak_peer_start(&peer, trouble == SOAK_RENEWED && way->has_tls, false);
}

/* ---- one segment --------------------------------------------------------------------------- */

static otel_spool_stats spool_stats(void)
{
    otel_spool_stats stats = {.size = sizeof stats};
    STRESS_CHECK(otel_spool_stats_read(&stats) == OTEL_OK);
    return stats;
}

/* Until all that waited has gone, in memory and on disk; the producers may go on. */
static void wait_for_calm(void)
{
    for (int i = 0;; i++) {
        look();
        const otel_status status = otel_flush(CALM_US / 1000);
        if (status == OTEL_OK && spool_stats().waiting == 0)
            return;
        STRESS_CHECK(i < CALM_TRIES);
        oteli_store_release_32(&has_mercy, i >= MERCY_TRIES);
        stress_sleep_us(CALM_US / 10);
    }
}

static void check_sums(const struct way *way, uint64_t first, const otel_spool_stats *before)
{
    const otel_stats stats = stress_stats();
    const otel_spool_stats spool = spool_stats();
    const uint64_t end = oteli_load_acquire_64(&last_number) + 1;
    const struct soak_counts at_receiver = soak_peer_count(&peer, first, end);
    const uint64_t spool_lost = spool.refused - before->refused + spool.expired - before->expired +
                                spool.evicted - before->evicted;
    struct sum sum = {.started = stats.started,
                      .delivered = stats.delivered + spool.sent - before->sent,
                      .rejected = stats.rejected + spool.rejected - before->rejected,
                      .lost = spool_lost,
                      .unconfirmed = stats.dropped[OTEL_DROP_UNCONFIRMED] + spool_lost,
                      .missing = stats.started - at_receiver.came};
    char text[512];
    stress_check_sums(&stats, true);
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        sum.lost += stats.dropped[i];
    otel_stats_describe(&stats, text, sizeof text);
    printf("    %s; came %" PRIu64 ", taken %" PRIu64 "\n", text, at_receiver.came,
           at_receiver.taken);
    fflush(stdout);
    STRESS_CHECK(stats.started == end - first && stats.unsampled == 0);
    STRESS_CHECK(spool.torn == 0 && spool.taken == 0 && spool.foreign_files == 0);
    STRESS_CHECK(way->has_spool || (stats.spooled == 0 && spool.stored == before->stored));
    STRESS_CHECK(spool.stored + spool.found == spool.sent + spool.rejected + spool.refused +
                                                   spool.expired + spool.evicted + spool.waiting);
    STRESS_CHECK(spool.waiting == 0);
    STRESS_CHECK(sum.delivered + sum.rejected <= at_receiver.taken);
    STRESS_CHECK(sum.missing <= sum.lost);
    STRESS_CHECK(at_receiver.taken <= sum.delivered + sum.rejected + sum.unconfirmed);
    all.started += sum.started;
    all.delivered += sum.delivered;
    all.rejected += sum.rejected;
    all.lost += sum.lost;
    all.unconfirmed += sum.unconfirmed;
    all.missing += sum.missing;
}

/* No more than at the same moment of any other segment of the way, but for `may_differ`. What was
 * given up a moment ago may still be there: a thread in the kernel, or a connection, which goes
 * when something is sent. */
static void check_same(const char *what, unsigned (*count)(void), unsigned *least,
                       unsigned may_differ)
{
    unsigned now = count();
    for (int i = 0; now > *least + may_differ && *least != 0 && i < CALM_TRIES / 2; i++) {
        stress_sleep_us(CALM_US);
        now = count();
    }
    if (*least == 0 || now < *least)
        *least = now;
    if (now > *least + may_differ)
        fprintf(stderr, "%s: %u, were %u\n", what, now, *least);
    STRESS_CHECK(now <= *least + may_differ);
}

static void trace_through(const struct way *way, uint64_t segment)
{
    const uint64_t length_ns = form.seconds * second_ns / form.segments;
    const uint64_t start_ns = process_now_ns();
    const uint64_t count =
        form.failures * (segment + 1) / form.segments - form.failures * segment / form.segments;
    const uint64_t slot_ns = length_ns * 7 / 8 / (count + 1);
    for (uint64_t i = 1; i <= count; i++) {
        const uint64_t jitter_ns = dice_next(&dice) % (slot_ns / 4 + 1);
        wait_until(start_ns + i * slot_ns - slot_ns / 2 + jitter_ns);
        make_trouble(way, slot_ns / 2);
    }
    wait_until(start_ns + length_ns);
}

static void run_segment(uint64_t segment)
{
    static unsigned calm_descriptors[WAYS];
    static const char *const names[] = {"http/protobuf", "http/json", "grpc"};
    const uint32_t kind = (uint32_t)(segment % WAYS);
    const struct way way = {.protocol = (otel_otlp_protocol)(kind % 3),
                            .has_spool = kind / 3 % 2 == 1,
                            .has_gzip = ((kind ^ kind / 6) & 1) != 0,
                            .has_tls = ((kind / 2) & 1) != 0};
    const otel_spool_stats spool_before = spool_stats();
    const uint64_t first = oteli_load_acquire_64(&last_number) + 1;
    struct producer producers[PRODUCERS] = {0};
    peer.has_tls = way.has_tls;
    soak_peer_start(&peer, segment == 0, false);
    start_sdk(&way);
    if (segment == 0)
        fill_queue();
    oteli_store_release_32(&must_stop, 0);
    oteli_store_release_32(&has_mercy, 0);
    for (int i = 0; i < PRODUCERS; i++)
        STRESS_CHECK(pthread_create(&producers[i].thread, NULL, produce, &producers[i]) == 0);
    trace_through(&way, segment);
    unsigned calm_threads = rest_threads + PRODUCERS + 1;
    wait_for_calm();
    check_same("threads", count_threads, &calm_threads, 0);
    check_same("descriptors", count_descriptors, &calm_descriptors[kind],
               way.has_spool ? SPOOL_DESCRIPTORS : 0);
    note_memory(kind);
    const uint64_t calm_kib = process_resident_kib();
    oteli_store_release_32(&must_stop, 1);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(producers[i].thread, NULL);
    wait_for_calm(); /* the last spans have half a second only, and the receiver may not run in
                        it */
    STRESS_CHECK(stress_is_done(otel_shutdown(SHUTDOWN_MS)));
    check_same("threads at rest", count_threads, &rest_threads, 0);
    check_same("descriptors at rest", count_descriptors, &rest_descriptors, 0);
    note_memory(WAYS);
    printf("%7.1f s  %-13s%s%s%s: memory %" PRIu64
           " KiB, at rest %.0f; descriptors %u, at rest %u; "
           "threads %u, %u\n",
           passed_s(), names[way.protocol], way.has_gzip ? " gzip" : "", way.has_tls ? " tls" : "",
           way.has_spool ? " spool" : "", calm_kib, memory[memory_count - 1].kib,
           calm_descriptors[kind], rest_descriptors, calm_threads, rest_threads);
    soak_peer_kill(&peer);
    check_sums(&way, first, &spool_before);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The median slope of all pairs of a kind that are far enough apart, in KiB an hour. */
static double slope_of(const struct sample *samples, size_t count, double apart_s)
{
    double *slopes = calloc(count * count / 2 + 1, sizeof *slopes);
    size_t used = 0;
    STRESS_CHECK(slopes != NULL);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++) {
            const double time_s = samples[j].at_s - samples[i].at_s;
            if (samples[i].kind == samples[j].kind && time_s >= apart_s)
                slopes[used++] = (samples[j].kib - samples[i].kib) / time_s * SLOPE_SECONDS;
        }
    qsort(slopes, used, sizeof *slopes, compare);
    const double slope = used == 0 ? 0 : (slopes[(used - 1) / 2] + slopes[used / 2]) / 2;
    free(slopes);
    return slope;
}

static void check_memory(uint64_t first_kib)
{
    const double duration_s = passed_s();
    size_t half = 0;
    while (half < memory_count && memory[half].at_s < duration_s / 2)
        half++;
    const double slope = slope_of(memory + half, memory_count - half, duration_s / 2 / 8);
    const double growth = slope * duration_s / 2 / SLOPE_SECONDS;
    printf("memory: %.0f KiB an hour over the second half; at most %" PRIu64 " KiB, %" PRIu64
           " at the start; at most %" PRIu64 " bytes queued; at most %u descriptors, %u threads\n",
           slope, most_resident_kib, first_kib, most_queued_bytes, most_descriptors, most_threads);
    STRESS_CHECK(most_queued_bytes <= QUEUE_BYTES);
    if (!process_memory_is_ours())
        return;
    STRESS_CHECK(most_resident_kib <= first_kib + QUEUE_BYTES / KIB * 11 / 10 + SLACK_KIB);
    STRESS_CHECK(form.seconds < SLOPE_SECONDS ? growth < GROWTH_KIB : slope < SLOPE_KIB);
}

static void check_receiver(void)
{
    const struct soak_shared *shared = peer.shared;
    uint64_t troubles = 0;
    if (shared->has_problem != 0)
        fprintf(stderr, "the receiver: %s\n", shared->problem);
    for (int i = SOAK_CALM + 1; i < SOAK_TROUBLES; i++) {
        printf("%s%s %" PRIu64, i == SOAK_CALM + 1 ? "troubles: " : ", ", soak_trouble_names[i],
               troubles_done[i]);
        troubles += troubles_done[i];
    }
    printf("\n%" PRIu64 " spans (%.0f a second), %" PRIu64 " delivered, %" PRIu64
           " rejected, %" PRIu64 " lost and counted, %" PRIu64 " of these unconfirmed; %" PRIu64
           " did not come; %" PRIu64 " came in %" PRIu64 " requests; %" PRIu64
           " lines in the log\n",
           all.started, (double)all.started / passed_s(), all.delivered, all.rejected, all.lost,
           all.unconfirmed, all.missing, shared->received, shared->requests, log_lines);
    STRESS_CHECK(shared->has_problem == 0 && shared->unknown == 0);
    STRESS_CHECK(all.rejected <= shared->rejected);
    STRESS_CHECK(troubles == form.failures);
}

static void read_form(int argc, char **argv)
{
    const bool is_long = stress_scale(1, argv, 2) == 2;
    form.seconds = is_long                    ? LONG_SECONDS
                   : process_memory_is_ours() ? CI_SECONDS
                                              : SANITIZED_SECONDS;
    form.failures = is_long ? LONG_FAILURES : CI_FAILURES;
    form.rate = process_memory_is_ours() || is_long ? RATE : RATE / 4;
    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t *to = strcmp(argv[i], "--seconds") == 0    ? &form.seconds
                       : strcmp(argv[i], "--failures") == 0 ? &form.failures
                       : strcmp(argv[i], "--rate") == 0     ? &form.rate
                       : strcmp(argv[i], "--segments") == 0 ? &form.segments
                                                            : NULL;
        STRESS_CHECK(to != NULL);
        *to = strtoull(argv[i + 1], NULL, 10);
    }
    if (form.segments == 0)
        form.segments = form.seconds < 60 ? WAYS / 2 : form.seconds < 1800 ? 2 * WAYS : 4 * WAYS;
    STRESS_CHECK(form.seconds != 0 && form.rate != 0);
}

static void *do_nothing(void *argument)
{
    return argument;
}

/* ThreadSanitizer makes a thread of its own together with the first one. */
static void count_at_rest(void)
{
    pthread_t thread;
    STRESS_CHECK(pthread_create(&thread, NULL, do_nothing, NULL) == 0);
    pthread_join(thread, NULL);
    stress_sleep_us(CALM_US);
    rest_descriptors = count_descriptors();
    rest_threads = count_threads();
}

static void make_directories(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/otel-c-soak.XXXXXX", base != NULL ? base : "/tmp");
    STRESS_CHECK(mkdtemp(directory) != NULL);
    snprintf(spool_directory, sizeof spool_directory, "%s.spool", directory);
    STRESS_CHECK(mkdtemp(strcat(spool_directory, ".XXXXXX")) != NULL);
    snprintf(ca_file, sizeof ca_file, "%s/ca.pem", directory);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    return remove(path);
}

/* What the certificates and the spool have left there. */
static void remove_directory(const char *path)
{
    (void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "receiver") == 0)
        return soak_peer_serve(argc, argv);
    read_form(argc, argv);
    dice_init(&dice, stress_seed());
    memset(memory, 0xff, sizeof memory); /* so that it is there from the start */
    make_directories();
    soak_peer_init(&peer, form.rate * (form.seconds + form.segments * CALM_SECONDS) * 5 / 4,
                   directory);
    otel_log_set_handler(count_line, NULL);
    began_ns = process_now_ns();
    count_at_rest();
    const uint64_t first_kib = process_resident_kib();
    for (uint64_t i = 0; i < form.segments; i++)
        run_segment(i);
    check_receiver();
    check_memory(first_kib);
    soak_peer_fini(&peer);
    remove_directory(spool_directory);
    remove_directory(directory);
    dice_fini(&dice);
    return 0;
}
