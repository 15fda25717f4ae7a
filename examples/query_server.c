/* SPDX-License-Identifier: Apache-2.0 */
/* examples/query_server.c - which query burned the processor?
 *
 *     cc -O2 -fno-omit-frame-pointer query_server.c -o query_server \
 *         $(pkg-config --cflags --libs otel otel-profiling) -pthread
 *
 *     mkdir profiles
 *     export OTEL_TRACES_EXPORTER=none          # unless a collector is there
 *     OTEL_C_PROFILER=on OTEL_C_PROFILER_OUT=profiles ./query_server [SECONDS]
 *     otel-flame --label http.route profiles/query_server-*.pb.gz      # makes flame.html
 *
 * A pool of threads answers two kinds of queries about a table of orders, until they have had
 * SECONDS (3) of the processor. Each is a span, and otel_span_run is the only line that profiling
 * needs: every sample of the processor then says which span it was taken in, and of which route
 * that is.
 *
 * The load is made here: kinds are chosen such that one has 70 % of the processor time, by the
 * threads' own clocks, so that the profile can be compared with something. */
#include <inttypes.h>
#include <otel/otel.h>
#include <otel/profile.h>
#include <otel/profiler.h>
#include <otel/semconv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, QUEUE = 64, ORDERS = 40000, CUSTOMERS = 2000, NS_PER_S = 1000000000 };

struct order {
    uint32_t number;
    uint32_t customer;
    uint32_t cents;
    char note[20];
};

struct customer {
    uint32_t number;
    uint64_t cents;
};

struct query {
    struct kind *kind;
    uint32_t argument;
    uint64_t answer;
};

/* A kind of queries: its route, what answers it, and the processor time it has had. */
struct kind {
    const char *route;
    const char *name;
    void *(*answer)(void *query);
    double part; /* of all processor time, as it shall be */
    uint64_t cpu_ns;
    uint64_t count;
};

static struct order orders[ORDERS];
static otel_tracer *tracer;

/* ---- the two kinds ---------------------------------------------------------------------- */

__attribute__((noinline)) static void add_up_orders(struct customer *customers)
{
    for (uint32_t i = 0; i < CUSTOMERS; i++)
        customers[i] = (struct customer){.number = i};
    for (size_t i = 0; i < ORDERS; i++)
        customers[orders[i].customer].cents += orders[i].cents;
}

/* Not by qsort: a C library without frame pointers ends the stacks of its samples there. */
__attribute__((noinline)) static void sort_customers(struct customer *customers)
{
    for (size_t gap = CUSTOMERS / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < CUSTOMERS; i++) {
            const struct customer moved = customers[i];
            size_t k = i;
            for (; k >= gap && customers[k - gap].cents < moved.cents; k -= gap)
                customers[k] = customers[k - gap];
            customers[k] = moved;
        }
}

/* Who has spent the most? */
static void *top_customers(void *argument)
{
    struct query *query = argument;
    struct customer *customers = malloc(CUSTOMERS * sizeof *customers);
    if (customers != NULL) {
        add_up_orders(customers);
        sort_customers(customers);
        query->answer = customers[query->argument % 10].number;
    }
    free(customers);
    return NULL;
}

__attribute__((noinline)) static uint32_t checksum(const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    uint32_t sum = 1;
    for (size_t i = 0; i < length; i++)
        sum = sum * 31 + at[i];
    return sum;
}

/* There is no index: what an order is found by is compared with all of them. */
static void *find_order(void *argument)
{
    struct query *query = argument;
    for (size_t i = 0; i < ORDERS; i++)
        if (checksum(orders[i].note, sizeof orders[i].note) == query->argument)
            query->answer = orders[i].number;
    return NULL;
}

static struct kind kinds[] = {
    {"/customers/top", "GET /customers/top", top_customers, 0.7, 0, 0},
    {"/orders/{note}", "GET /orders/{note}", find_order, 0.3, 0, 0},
};

static void fill_table(void)
{
    uint32_t random = 1;
    for (uint32_t i = 0; i < ORDERS; i++) {
        random = random * 1664525 + 1013904223;
        orders[i] = (struct order){i, (random >> 8) % CUSTOMERS, (random >> 4) % 100000, ""};
        snprintf(orders[i].note, sizeof orders[i].note, "note %" PRIu32, random);
    }
}

/* ---- the pool --------------------------------------------------------------------------- */

static struct query queue[QUEUE];
static unsigned waiting;
static bool is_over;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_work = PTHREAD_COND_INITIALIZER;
static pthread_cond_t has_room = PTHREAD_COND_INITIALIZER;

static uint64_t thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static bool take(struct query *query)
{
    pthread_mutex_lock(&lock);
    while (waiting == 0 && !is_over)
        pthread_cond_wait(&has_work, &lock);
    const bool has_one = waiting != 0;
    if (has_one)
        *query = queue[--waiting];
    pthread_cond_signal(&has_room);
    pthread_mutex_unlock(&lock);
    return has_one;
}

static void serve(struct query *query)
{
    struct kind *kind = query->kind;
    otel_span span =
        otel_span_enter(tracer, kind->name, &(otel_span_options){.kind = OTEL_SPAN_KIND_SERVER});
    otel_span_set_string(span, OTEL_SEMCONV_HTTP_ROUTE, kind->route);
    const uint64_t before_ns = thread_cpu_ns();
    otel_span_run(span, kind->answer, query);
    const uint64_t cpu_ns = thread_cpu_ns() - before_ns;
    otel_span_end(span);

    pthread_mutex_lock(&lock);
    kind->cpu_ns += cpu_ns;
    kind->count++;
    pthread_mutex_unlock(&lock);
}

static void *work(void *unused)
{
    struct query query;
    while (take(&query))
        serve(&query);
    return unused;
}

/* The kind that is furthest behind its part of the time. */
static struct kind *next_kind(void)
{
    const double all = (double)kinds[0].cpu_ns + (double)kinds[1].cpu_ns;
    return (double)kinds[0].cpu_ns <= kinds[0].part * all ? &kinds[0] : &kinds[1];
}

/* For so much processor time of the queries, on however busy a machine. */
static void make_load(double seconds)
{
    bool is_enough = false;
    for (uint32_t i = 0; !is_enough; i++) {
        pthread_mutex_lock(&lock);
        while (waiting == THREADS)
            pthread_cond_wait(&has_room, &lock);
        queue[waiting++] = (struct query){.kind = next_kind(), .argument = i};
        pthread_cond_signal(&has_work);
        is_enough = (double)(kinds[0].cpu_ns + kinds[1].cpu_ns) >= seconds * NS_PER_S;
        pthread_mutex_unlock(&lock);
    }
}

/* ---- what it prints --------------------------------------------------------------------- */

static void print_truth(void)
{
    const double all = (double)kinds[0].cpu_ns + (double)kinds[1].cpu_ns;
    printf("by the threads' own clocks:\n");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        printf("%6.1f %%  %6.2f s  %s (%" PRIu64 " queries)\n", 100 * (double)kinds[i].cpu_ns / all,
               (double)kinds[i].cpu_ns / 1e9, kinds[i].route, kinds[i].count);
}

static void print_profiler(void)
{
    otel_profiler_stats stats = {.size = sizeof stats};
    if (otel_profiler_get_stats(otel_profiler_of_environment(), &stats) != OTEL_OK)
        return;
    printf("profiler: %s, %" PRIu64 " samples, %" PRIu64 " of them in a query%s%s\n",
           stats.source == OTEL_PROFILER_PERF ? "perf events" : "timers and a signal",
           stats.samples, stats.by_chain + stats.by_scan + stats.by_thread,
           stats.why[0] != '\0' ? "; " : "", stats.why);
}

int main(int count, char **arguments)
{
    const double seconds = count > 1 ? strtod(arguments[1], NULL) : 3;
    if (otel_start(OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.service_name =
                                                                     "query_server"))) != OTEL_OK)
        return EXIT_FAILURE;
    tracer = otel_tracer_get("query_server", NULL);
    fill_table();

    pthread_t threads[THREADS];
    int started = 0;
    while (started < THREADS && pthread_create(&threads[started], NULL, work, NULL) == 0)
        started++;
    if (started != 0)
        make_load(seconds);
    pthread_mutex_lock(&lock);
    is_over = true;
    pthread_cond_broadcast(&has_work);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);

    print_truth();
    if (otel_profiler_of_environment() != NULL)
        print_profiler();
    const otel_status status = otel_shutdown(5000);
    if (status != OTEL_OK)
        fprintf(stderr, "query_server: %s\n", otel_status_string(status));
    return started == THREADS ? EXIT_SUCCESS : EXIT_FAILURE;
}
