/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/e2e.c - the whole way of 200,000 spans: from one thread that does nothing but
 * make them, through OTLP over HTTP, to a sink on loopback.
 *
 * Each repetition is a fresh process, linked like a user's, that starts the SDK, makes the
 * spans as fast as it can and flushes. The clocks run from before the first span until
 * the flush is done, so connecting is in them, and starting and stopping the SDK is not.
 * The queue is large enough for all spans, because none may be dropped: the thread makes
 * them faster than any receiver takes them, and memory is where they wait.
 *
 * After each repetition the same requests are sent twice more, by libcurl alone and by a socket:
 * what is left of the way when the SDK is taken off it. */
#include "benchmarks/bench.h"
#include "benchmarks/e2e_floor.h"
#include "benchmarks/sink.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SPANS = 200000, QUICK_SPANS = 20000, REPETITIONS = 15, QUICK_REPETITIONS = 2 };
enum { QUEUE_SIZE = 262144, FLUSH_MS = 60000, MOST_REPETITIONS = 1000 };
#define QUEUE_BYTES (INT64_C(256) << 20)

struct result {
    uint64_t wall_ns;
    uint64_t cpu_ns;
    uint64_t made_ns; /* until the last span had ended, on the thread that made them */
    uint64_t max_rss_kib;
    uint64_t batches;
};

static void start_sdk(const char *url)
{
    static const char *const not_ours[] = {
        "OTEL_SDK_DISABLED", "OTEL_TRACES_SAMPLER", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
        "http_proxy",        "all_proxy",           "ALL_PROXY"};
    for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++)
        unsetenv(not_ours[i]);
    bench_expect_ok(otel_start(OTEL_SDK_OPTIONS(.service_name = "bench", .traces_exporter = "otlp",
                                                .exporter_otlp_traces_endpoint = url,
                                                .bsp_max_queue_size = QUEUE_SIZE,
                                                .queue_max_bytes = QUEUE_BYTES)),
                    "otel_start");
}

/* The traced program. */
static struct result trace(const char *url, uint64_t spans)
{
    start_sdk(url);
    otel_tracer *tracer = otel_tracer_get("bench", "1.0");
    struct result result = {0};

    const uint64_t start_cpu_ns = bench_process_cpu_ns();
    const uint64_t start_ns = bench_now_ns();
    for (uint64_t i = 0; i < spans; i++) {
        const otel_span span = otel_span_enter(tracer, "GET /users", NULL);
        bench_set_5_attributes(span);
        otel_span_end(span);
    }
    result.made_ns = bench_now_ns() - start_ns;
    const otel_status flushed = otel_flush(FLUSH_MS);
    result.wall_ns = bench_now_ns() - start_ns;
    result.cpu_ns = bench_process_cpu_ns() - start_cpu_ns;

    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    result.max_rss_kib = (uint64_t)usage.ru_maxrss;
    bench_expect_delivered(spans);
    bench_expect_ok(flushed, "otel_flush");
    otel_stats stats = {.size = sizeof stats};
    bench_expect_ok(otel_stats_read(0, &stats), "otel_stats_read");
    result.batches = stats.batches;
    bench_expect_ok(otel_shutdown(FLUSH_MS), "otel_shutdown");
    return result;
}

/* What is sent: 200,000 spans; or so many requests of so many bytes, which say nothing. */
struct load {
    void (*send)(const char *url, uint64_t requests, size_t bytes); /* NULL: spans */
    uint64_t spans;
    uint64_t requests;
    size_t bytes;
};

static struct result send_requests(const char *url, const struct load *load)
{
    struct result result = {.batches = load->requests};
    const uint64_t start_cpu_ns = bench_process_cpu_ns();
    const uint64_t start_ns = bench_now_ns();
    load->send(url, load->requests, load->bytes);
    result.wall_ns = bench_now_ns() - start_ns;
    result.cpu_ns = bench_process_cpu_ns() - start_cpu_ns;
    return result;
}

/* Run it in a process of its own. */
static struct result run_elsewhere(const char *url, const struct load *load)
{
    struct result result;
    int ends[2];
    int status;
    if (pipe(ends) != 0)
        bench_fail("pipe: %s", strerror(errno));
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0)
        bench_fail("fork: %s", strerror(errno));
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        result = load->send != NULL ? send_requests(url, load) : trace(url, load->spans);
        _exit(write(ends[1], &result, sizeof result) == (ssize_t)sizeof result ? 0 : 1);
    }
    close(ends[1]);
    const bool has_result = read(ends[0], &result, sizeof result) == (ssize_t)sizeof result;
    close(ends[0]);
    if (waitpid(child, &status, 0) != child || !has_result || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 0)
        bench_fail("the traced program did not end well");
    return result;
}

struct repetitions {
    double ns_per_span[MOST_REPETITIONS];
    double cpu_ns_per_span[MOST_REPETITIONS];
    double made_ns_per_span[MOST_REPETITIONS];
    unsigned count;
    uint64_t max_rss_kib;
    uint64_t requests; /* of the last one */
    uint64_t bytes;
};

static void repeat(struct repetitions *all, const struct bench_sink *sink, const struct load *load)
{
    const uint64_t requests = sink->counts->requests;
    const uint64_t bytes = sink->counts->bytes;
    const struct result result = run_elsewhere(sink->url, load);
    all->requests = sink->counts->requests - requests;
    all->bytes = sink->counts->bytes - bytes;
    if (all->requests != result.batches)
        bench_fail("%llu requests, but the sink has seen %llu", (unsigned long long)result.batches,
                   (unsigned long long)all->requests);
    all->ns_per_span[all->count] = (double)result.wall_ns / (double)load->spans;
    all->cpu_ns_per_span[all->count] = (double)result.cpu_ns / (double)load->spans;
    all->made_ns_per_span[all->count] = (double)result.made_ns / (double)load->spans;
    if (result.max_rss_kib > all->max_rss_kib)
        all->max_rss_kib = result.max_rss_kib;
    all->count++;
}

static void report_sending(const char *name, struct repetitions *all)
{
    bench_sort(all->ns_per_span, all->count);
    bench_sort(all->cpu_ns_per_span, all->count);
    bench_line_begin("e2e", name);
    bench_figure("spans_per_s", 1e9 / all->ns_per_span[0], 0);
    bench_figure("median_spans_per_s", 1e9 / bench_median(all->ns_per_span, all->count), 0);
    bench_figure("cpu_us_per_span", all->cpu_ns_per_span[0] / 1000, 4);
    bench_figure("median_cpu_us_per_span", bench_median(all->cpu_ns_per_span, all->count) / 1000,
                 4);
    bench_count("requests", all->requests);
    bench_count("repetitions", all->count);
}

static void report(struct repetitions *all, uint64_t spans)
{
    report_sending("e2e", all);
    bench_sort(all->made_ns_per_span, all->count);
    bench_figure("made_ns_per_span", all->made_ns_per_span[0], 1);
    bench_count("max_rss_kib", all->max_rss_kib);
    bench_figure("bytes_per_span", (double)all->bytes / (double)spans, 1);
    bench_count("spans", spans);
    bench_count("dropped", 0); /* bench_expect_delivered has made sure */
    bench_line_end();
}

int main(int count, char **arguments)
{
    static struct repetitions ours;
    static struct repetitions libcurl;
    static struct repetitions raw_socket;
    const struct bench_options options = bench_options_read(count, arguments);
    struct load load = {.spans = options.quick ? QUICK_SPANS : SPANS};
    unsigned repetitions = bench_rounds(&options, REPETITIONS, QUICK_REPETITIONS);
    if (repetitions > MOST_REPETITIONS)
        repetitions = MOST_REPETITIONS;

    struct bench_sink sink;
    bench_sink_start(&sink);
    for (unsigned i = 0; i < repetitions; i++) {
        load.send = NULL;
        repeat(&ours, &sink, &load);
        if (ours.requests == 0)
            bench_fail("nothing was sent");
        load.requests = ours.requests;
        load.bytes = (size_t)(ours.bytes / ours.requests);
        load.send = e2e_floor_libcurl;
        repeat(&libcurl, &sink, &load);
        load.send = e2e_floor_socket;
        repeat(&raw_socket, &sink, &load);
    }
    bench_sink_stop(&sink);
    report(&ours, load.spans);
    report_sending("libcurl_alone", &libcurl);
    bench_line_end();
    report_sending("raw_socket", &raw_socket);
    bench_line_end();
    return 0;
}
