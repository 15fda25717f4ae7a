/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/service.c - how much throughput a real program loses when every request of it
 * is traced and exported.
 *
 * The program is a shop with its database in SQLite (service_shop.c): about 20 us of work a
 * request, 8 spans with 2 attributes each. There are three of it (service_world.h): without a
 * line of tracing, traced without an SDK, and traced with everything exported over OTLP/HTTP
 * to a sink on loopback. A conductor asks them in turn for the same short slice of requests,
 * so each round gives a pair of figures that met the same weather, and the loss is the
 * median over these pairs. All three must have given the same responses, and every span
 * must have been delivered.
 *
 * Where its memory lies makes a process a little faster or slower for as long as it lives.
 * So there are several generations of the three, and their medians say what that is worth.
 *
 * All of it is done twice: with the server's thread on a core of its own, as such programs
 * run, and everything else on the others; and with the kernel free to put everything on any
 * core. Then the exporter thread and the sink interrupt the server now and then. */
#include "benchmarks/bench.h"
#include "benchmarks/service_shop.h"
#include "benchmarks/service_world.h"
#include "benchmarks/sink.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { GENERATIONS = 4, QUICK_GENERATIONS = 2, ROUNDS = 80, QUICK_ROUNDS = 3 };
enum { SLICE_NS = 20000000, QUICK_SLICE_NS = 5000000, WARM_UP = 4 * SERVICE_REQUESTS };

static const char *const mode_names[SERVICE_MODES] = {"bare", "off", "on"};

/* Each mode comes equally often first, second and last, and after each of the others. */
static const enum service_mode orders[][SERVICE_MODES] = {
    {SERVICE_BARE, SERVICE_OFF, SERVICE_ON}, {SERVICE_ON, SERVICE_OFF, SERVICE_BARE},
    {SERVICE_OFF, SERVICE_ON, SERVICE_BARE}, {SERVICE_BARE, SERVICE_ON, SERVICE_OFF},
    {SERVICE_ON, SERVICE_BARE, SERVICE_OFF}, {SERVICE_OFF, SERVICE_BARE, SERVICE_ON}};
enum { ORDERS = sizeof orders / sizeof *orders };

/* Figures of one kind, one for each round: `sorted` is made by finish(). */
struct figures {
    double *all;
    double *sorted;
};

struct study {
    const char *name; /* of the line with the loss */
    struct service_cores cores;
    unsigned generations;
    unsigned rounds; /* of each generation */
    unsigned count;  /* of rounds so far, in all generations */
    uint64_t slice;  /* requests */
    uint64_t traced; /* requests that were traced */
    struct service_books books;
    uint64_t sink_bytes;
    double sink_cpu_us;                    /* a request */
    struct figures wall_us[SERVICE_MODES]; /* a request */
    struct figures cpu_us[SERVICE_MODES];
    struct figures loss_percent[SERVICE_MODES];   /* of throughput, against bare */
    struct figures server_us[SERVICE_MODES];      /* CPU time of the server's thread, a request */
    struct figures server_percent[SERVICE_MODES]; /* the loss by that time */
    struct figures cpu_percent[SERVICE_MODES];    /* what it costs more than bare */
    double *generation_percent;                   /* medians of the loss when on */
};

static service_request requests[SERVICE_REQUESTS];

static void write_requests(void)
{
    for (unsigned i = 0; i < SERVICE_REQUESTS; i++) {
        /* A multiplier without pattern in its bits spreads the numbers over everything. */
        const uint64_t spread = (i + UINT64_C(1)) * UINT64_C(0x9E3779B97F4A7C15);
        char sku[SERVICE_SKU];
        char body[64];
        service_store_sku(sku, (unsigned)(spread >> 16) % SERVICE_PRODUCTS);
        const int length = snprintf(body, sizeof body, "sku=%s&quantity=%u", sku,
                                    1 + (unsigned)(spread >> 20) % 5);
        snprintf(requests[i], sizeof requests[i],
                 "PUT /baskets/%u/lines/%u HTTP/1.1\r\nHost: shop.example.com\r\n"
                 "User-Agent: till/3.1\r\nAccept: application/json\r\n"
                 "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
                 (unsigned)(spread >> 40) % SERVICE_BASKETS,
                 (unsigned)(spread >> 52) % SERVICE_LINES, length, body);
    }
}

static double *make_figures(size_t count)
{
    double *figures = calloc(count, sizeof *figures);
    if (figures == NULL)
        bench_fail("no memory");
    return figures;
}

/* --- measuring --- */

static void run_round(struct study *study, const struct service_world *worlds, uint64_t first)
{
    const enum service_mode *order = orders[study->count % ORDERS];
    struct service_slice slices[SERVICE_MODES];
    for (unsigned i = 0; i < SERVICE_MODES; i++)
        slices[order[i]] = service_world_ask(&worlds[order[i]], first, study->slice);
    for (unsigned mode = 0; mode < SERVICE_MODES; mode++) {
        const double wall_ns = (double)slices[mode].wall_ns;
        const double cpu_ns = (double)slices[mode].cpu_ns;
        if (slices[mode].checksum != slices[SERVICE_BARE].checksum)
            bench_fail("%s gives other responses than bare", mode_names[mode]);
        study->wall_us[mode].all[study->count] = wall_ns / 1000 / (double)study->slice;
        study->cpu_us[mode].all[study->count] = cpu_ns / 1000 / (double)study->slice;
        study->loss_percent[mode].all[study->count] =
            100 * (1 - (double)slices[SERVICE_BARE].wall_ns / wall_ns);
        const double server_ns = (double)slices[mode].server_cpu_ns;
        study->server_us[mode].all[study->count] = server_ns / 1000 / (double)study->slice;
        study->server_percent[mode].all[study->count] =
            100 * (1 - (double)slices[SERVICE_BARE].server_cpu_ns / server_ns);
        study->cpu_percent[mode].all[study->count] =
            100 * (cpu_ns / (double)slices[SERVICE_BARE].cpu_ns - 1);
    }
    study->count++;
}

/* Three new processes, warmed up, and their rounds. */
static void run_generation(struct study *study, unsigned generation, const char *url,
                           double slice_ns)
{
    struct service_world worlds[SERVICE_MODES];
    uint64_t first = 0;
    for (unsigned mode = 0; mode < SERVICE_MODES; mode++)
        worlds[mode] = service_world_start((enum service_mode)mode, requests, url, &study->cores);
    for (unsigned mode = 0; mode < SERVICE_MODES; mode++) {
        const struct service_slice slice = service_world_ask(&worlds[mode], first, WARM_UP);
        if (study->slice == 0)
            study->slice = (uint64_t)(slice_ns * WARM_UP / (double)slice.wall_ns) + 1;
    }
    first += WARM_UP;
    for (unsigned round = 0; round < study->rounds; round++) {
        run_round(study, worlds, first);
        first += study->slice;
    }
    for (unsigned mode = 0; mode < SERVICE_MODES; mode++) {
        const struct service_books books = service_world_stop(&worlds[mode]);
        study->books.delivered += books.delivered;
        study->books.batches += books.batches;
    }
    study->traced += first;

    double *losses = make_figures(study->rounds);
    for (unsigned i = 0; i < study->rounds; i++)
        losses[i] = study->loss_percent[SERVICE_ON].all[study->count - study->rounds + i];
    bench_sort(losses, study->rounds);
    study->generation_percent[generation] = bench_median(losses, study->rounds);
    free(losses);
}

static uint64_t cpu_ns_of(pid_t process)
{
    clockid_t clock;
    struct timespec cpu = {0};
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &cpu) != 0)
        bench_fail("the sink has ended");
    return (uint64_t)cpu.tv_sec * UINT64_C(1000000000) + (uint64_t)cpu.tv_nsec;
}

static void run_study(struct study *study, double slice_ns)
{
    struct bench_sink sink;
    service_cores_use(&study->cores.others);
    bench_sink_start(&sink);
    for (unsigned i = 0; i < study->generations; i++)
        run_generation(study, i, sink.url, slice_ns);
    if (sink.counts->requests != study->books.batches)
        bench_fail("%llu batches, but the sink has seen %llu requests",
                   (unsigned long long)study->books.batches,
                   (unsigned long long)sink.counts->requests);
    if (study->books.delivered != study->traced * SERVICE_SPANS)
        bench_fail("not every span was delivered");
    study->sink_bytes = sink.counts->bytes;
    study->sink_cpu_us = (double)cpu_ns_of(sink.process) / 1000 / (double)study->traced;
    bench_sink_stop(&sink);
}

/* --- reporting --- */

static void finish(struct figures *figures, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        figures->sorted[i] = figures->all[i];
    bench_sort(figures->sorted, count);
}

/* A figure and the quartiles around it. */
static void report_spread(const char *name, const struct figures *figures, unsigned count)
{
    static const struct {
        const char *prefix;
        double percent;
    } parts[] = {{"", 50}, {"q1_", 25}, {"q3_", 75}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char full[64];
        snprintf(full, sizeof full, "%s%s", parts[i].prefix, name);
        bench_figure(full, bench_percentile(figures->sorted, count, parts[i].percent), 2);
    }
}

static void report_mode(const struct study *study, enum service_mode mode)
{
    const double *us = study->wall_us[mode].sorted;
    const unsigned count = study->count;
    bench_line_begin("service", mode_names[mode]);
    bench_figure("requests_per_s", 1e6 / bench_median(us, count), 0);
    bench_figure("min_requests_per_s", 1e6 / us[count - 1], 0);
    bench_figure("q1_requests_per_s", 1e6 / bench_percentile(us, count, 75), 0);
    bench_figure("q3_requests_per_s", 1e6 / bench_percentile(us, count, 25), 0);
    bench_figure("best_requests_per_s", 1e6 / us[0], 0);
    bench_figure("us_per_request", bench_median(us, count), 3);
    bench_figure("min_us_per_request", us[0], 3);
    bench_figure("cpu_us_per_request", bench_median(study->cpu_us[mode].sorted, count), 3);
    bench_figure("min_cpu_us_per_request", study->cpu_us[mode].sorted[0], 3);
    bench_line_end();
}

static void report_loss(struct study *study)
{
    const unsigned count = study->count;
    const uint64_t spans = study->traced * SERVICE_SPANS;
    bench_sort(study->generation_percent, study->generations);
    bench_line_begin("service", study->name);
    report_spread("throughput_loss_percent", &study->loss_percent[SERVICE_ON], count);
    bench_figure("least_generation_loss_percent", study->generation_percent[0], 2);
    bench_figure("most_generation_loss_percent", study->generation_percent[study->generations - 1],
                 2);
    bench_figure(
        "best_slice_loss_percent",
        100 * (1 - study->wall_us[SERVICE_BARE].sorted[0] / study->wall_us[SERVICE_ON].sorted[0]),
        2);
    report_spread("off_throughput_loss_percent", &study->loss_percent[SERVICE_OFF], count);
    report_spread("server_cpu_loss_percent", &study->server_percent[SERVICE_ON], count);
    bench_figure("server_cpu_ns_per_span",
                 (bench_median(study->server_us[SERVICE_ON].sorted, count) -
                  bench_median(study->server_us[SERVICE_BARE].sorted, count)) *
                     1000 / SERVICE_SPANS,
                 0);
    report_spread("cpu_increase_percent", &study->cpu_percent[SERVICE_ON], count);
    bench_figure("us_per_request", bench_median(study->wall_us[SERVICE_BARE].sorted, count), 3);
    bench_figure("added_ns_per_span",
                 (bench_median(study->wall_us[SERVICE_ON].sorted, count) -
                  bench_median(study->wall_us[SERVICE_BARE].sorted, count)) *
                     1000 / SERVICE_SPANS,
                 0);
    bench_count("spans_per_request", SERVICE_SPANS);
    bench_count("attributes_per_span", SERVICE_ATTRIBUTES);
    bench_figure("sink_cpu_us_per_request", study->sink_cpu_us, 3);
    bench_count("spans", spans);
    bench_count("delivered", study->books.delivered);
    bench_count("dropped", 0); /* bench_expect_delivered has made sure */
    bench_count("sink_requests", study->books.batches);
    bench_count("sink_bytes", study->sink_bytes);
    bench_figure("bytes_per_span", (double)study->sink_bytes / (double)spans, 1);
    bench_count("requests_per_slice", study->slice);
    bench_count("slices", count);
    bench_count("generations", study->generations);
    bench_line_end();
}

static void for_all_figures(struct study *study, void (*act)(struct figures *, unsigned),
                            unsigned count)
{
    for (unsigned mode = 0; mode < SERVICE_MODES; mode++) {
        act(&study->wall_us[mode], count);
        act(&study->cpu_us[mode], count);
        act(&study->loss_percent[mode], count);
        act(&study->cpu_percent[mode], count);
        act(&study->server_us[mode], count);
        act(&study->server_percent[mode], count);
    }
}

static void begin(struct figures *figures, unsigned count)
{
    figures->all = make_figures(count);
    figures->sorted = make_figures(count);
}

static void release(struct figures *figures, unsigned count)
{
    (void)count;
    free(figures->all);
    free(figures->sorted);
}

static void prepare(struct study *study, const struct bench_options *options)
{
    study->generations = options->quick ? QUICK_GENERATIONS : GENERATIONS;
    study->rounds = options->rounds != 0 ? options->rounds : options->quick ? QUICK_ROUNDS : ROUNDS;
    for_all_figures(study, begin, study->generations * study->rounds);
    study->generation_percent = make_figures(study->generations);
}

int main(int count, char **arguments)
{
    const struct bench_options options = bench_options_read(count, arguments);
    struct study studies[] = {{.name = "loss", .cores = service_cores_apart()},
                              {.name = "loss_unpinned", .cores = service_cores_any()}};
    enum { STUDIES = sizeof studies / sizeof *studies };

    signal(SIGPIPE, SIG_IGN);
    write_requests();
    for (unsigned i = 0; i < STUDIES; i++) {
        prepare(&studies[i], &options);
        run_study(&studies[i], options.quick ? QUICK_SLICE_NS : SLICE_NS);
        for_all_figures(&studies[i], finish, studies[i].count);
    }
    for (unsigned mode = 0; mode < SERVICE_MODES; mode++)
        report_mode(&studies[0], (enum service_mode)mode);
    for (unsigned i = 0; i < STUDIES; i++) {
        report_loss(&studies[i]);
        for_all_figures(&studies[i], release, 0);
        free(studies[i].generation_percent);
    }
    return 0;
}
