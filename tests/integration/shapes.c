/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/shapes.c - records spans of every shape, and what was asked for.
 *
 *     shapes [-r] FOLDER SPANS SEED [TRACE]
 *
 * Eight threads open, describe, hand over and end spans as chance will have it, under the
 * settings in the environment. FOLDER gets setup.json (resource and tracers) and
 * spans-N.jsonl (support/journal.h); stdout gets the statistics after the shutdown. The
 * same seed gives the same calls, except for which thread ends what was handed over.
 *
 * With TRACE, the path of a trace for Perfetto, the spans go there, too.
 *
 * With -r everything can be repeated: nothing is handed over, every time is given, and ids are
 * made from the seed. So two runs send the same spans, and FOLDER may be "-": no journal. */
#include "tests/support/dice.h"
#include "tests/support/journal.h"

#include <otel/file.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 8, DEPTH = 6, DETACHED = 6, EXCHANGE = 32, TRACERS = 7, SHUTDOWN_MS = 300000 };

static const struct {
    const char *name;
    const char *version;
    const char *schema_url;
    size_t attribute_count;
} tracer_parts[TRACERS] = {
    {"test.shapes", "1.2.3", "https://opentelemetry.io/schemas/1.27.0", 0},
    {"test.shapes", "2.0.0", NULL, 0},
    {"test.shapes", NULL, NULL, 0},
    {"", NULL, NULL, 0},
    {"no UTF-8 \xFF", "\xC3(", NULL, 0},
    {"with.attributes", "1", "https://example.com/schema", 4},
    {"with.attributes", "1", "https://example.com/schema", 2},
};

static const int64_t numbers[] = {1, -1, INT64_MAX};
static const char *const words[] = {"", "two", NULL, "\xE2\x82\xAC"};
static const bool answers[] = {true, false};
static const double reals[] = {0.5, -0.0};

/* What is wrong in a tracestate is for a unit test; these come as they went. */
static const char *const tracestates[] = {
    "",
    "vendor=1",
    "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
    "0_t-e*n/a@sys=x y!",
};

static struct journal_span *exchange[EXCHANGE];
static pthread_mutex_t exchange_lock = PTHREAD_MUTEX_INITIALIZER;
static otel_tracer *tracers[TRACERS];
static otel_attribute scope_attributes[4];

struct worker {
    pthread_t thread;
    struct dice dice;
    FILE *file;
    bool is_repeatable;
    uint64_t spans_left;
    uint64_t now_ns; /* explicit times are around it */
    struct journal_span *local[DEPTH];
    size_t local_count;
    struct journal_span *detached[DETACHED];
    size_t detached_count;
};

/* Ids with -r: of the thread that starts the span. */
static _Thread_local struct dice id_dice;

static void generate_ids(void *state, uint8_t *trace_id, uint8_t *span_id)
{
    (void)state;
    uint64_t ids[2] = {dice_next(&id_dice) | 1, dice_next(&id_dice)};
    if (trace_id != NULL)
        memcpy(trace_id, ids, sizeof ids);
    else
        memcpy(span_id, ids, sizeof *ids);
}

static uint64_t some_time(struct worker *worker)
{
    return worker->now_ns + dice_below(&worker->dice, 1000000000);
}

/* A time in one of `odds` cases, and otherwise 0: now. */
static uint64_t maybe_time(struct worker *worker, uint32_t odds)
{
    return worker->is_repeatable || dice_one_in(&worker->dice, odds) ? some_time(worker) : 0;
}

static otel_span_context some_context(struct worker *worker, const char **tracestate)
{
    struct dice *dice = &worker->dice;
    uint64_t ids[3] = {dice_next(dice) | 1, dice_next(dice), dice_next(dice) | 1};
    *tracestate = tracestates[dice_below(dice, sizeof tracestates / sizeof *tracestates)];
    return otel_span_context_make((const uint8_t *)ids, (const uint8_t *)(ids + 2),
                                  (uint8_t)(dice_below(dice, 8) ? 1 + dice_below(dice, 2) * 2 : 0),
                                  dice_below(dice, 4) != 0, *tracestate);
}

static struct journal_parent parent_from(const struct journal_span *span)
{
    return (struct journal_parent){.context = {.span = span->span},
                                   .ids = span->context,
                                   .tracestate = span->tracestate,
                                   .is_local = span->is_local,
                                   .is_sampled = span->is_sampled};
}

/* Choose the parent of a new span: the current one, none, one of ours, or a foreign one. */
static void choose_parent(struct worker *worker, struct journal_start *start,
                          struct journal_parent *parent)
{
    struct dice *dice = &worker->dice;
    const uint32_t choice = dice_below(dice, 10);
    start->parent = parent;
    if (choice == 0) {
        start->parent = NULL;
        start->says_root = true;
    } else if (choice == 1) {
        parent->ids = some_context(worker, &parent->tracestate);
        parent->context.span = otel_span_wrap(&parent->ids);
        parent->is_sampled = parent->ids.flags & OTEL_TRACE_FLAG_SAMPLED;
    } else if (choice <= 4 && worker->detached_count != 0) {
        *parent = parent_from(worker->detached[dice_below(dice, (uint32_t)worker->detached_count)]);
    } else if (worker->local_count != 0) {
        *parent = parent_from(worker->local[worker->local_count - 1]);
        start->parent_is_current = true;
    } else {
        start->parent = NULL;
    }
}

static const otel_link *some_links(struct worker *worker, size_t *count)
{
    static _Thread_local otel_link links[3];
    *count = dice_below(&worker->dice, 4);
    for (size_t i = 0; i < *count; i++) {
        const char *tracestate;
        do
            links[i].context = some_context(worker, &tracestate);
        while (*tracestate != '\0'); /* which the journal notes only for links added later */
        links[i].attributes = dice_attributes(&worker->dice, 2, &links[i].attribute_count);
    }
    return links;
}

static void begin(struct worker *worker, bool is_local)
{
    struct dice *dice = &worker->dice;
    struct journal_span *span = calloc(1, sizeof *span);
    struct journal_start start = {.tracer = dice_below(dice, TRACERS), .is_local = is_local};
    struct journal_parent parent = {0};
    if (span == NULL)
        abort();
    start.handle = tracers[start.tracer];
    start.name = dice_text(dice);
    start.options.kind = (otel_span_kind)dice_below(dice, OTEL_SPAN_KIND_CONSUMER + 1);
    if (dice_one_in(dice, 3))
        start.options.attributes = dice_attributes(dice, 4, &start.options.attribute_count);
    if (dice_one_in(dice, 8))
        start.options.links = some_links(worker, &start.options.link_count);
    start.options.start_ns = maybe_time(worker, 10);
    choose_parent(worker, &start, &parent);
    journal_begin(span, &start);
    worker->spans_left--;
    if (is_local)
        worker->local[worker->local_count++] = span;
    else
        worker->detached[worker->detached_count++] = span;
}

static void describe(struct worker *worker, struct journal_span *span)
{
    struct dice *dice = &worker->dice;
    const uint32_t choice = dice_below(dice, 20);
    if (choice < 11) {
        /* Now and then so many that the limit is reached. */
        for (uint32_t n = dice_one_in(dice, 40) ? 40 : 1 + dice_below(dice, 3); n != 0; n--)
            journal_set(span, dice_key(dice), dice_value(dice));
    } else if (choice < 14) {
        size_t count;
        const otel_attribute *attributes =
            dice_attributes(dice, dice_one_in(dice, 8) ? 12 : 3, &count);
        for (uint32_t n = dice_one_in(dice, 20) ? 12 : 1; n != 0; n--)
            journal_event(span, dice_text(dice), maybe_time(worker, 3), attributes, count);
    } else if (choice == 14 && !worker->is_repeatable) { /* an exception's time is now */
        size_t count;
        const otel_attribute *attributes = dice_attributes(dice, 2, &count);
        journal_exception(span, dice_one_in(dice, 4) ? NULL : "std::bad_alloc",
                          dice_one_in(dice, 4) ? NULL : dice_text(dice),
                          dice_one_in(dice, 2) ? NULL : dice_text(dice), attributes, count);
    } else if (choice < 17) {
        for (uint32_t n = dice_one_in(dice, 10) ? 8 : 1; n != 0; n--) {
            const char *tracestate;
            otel_link link = {.context = some_context(worker, &tracestate)};
            if (dice_one_in(dice, 20))
                memset(&link.context, 0, sizeof link.context), tracestate = "";
            link.attributes =
                dice_attributes(dice, dice_one_in(dice, 10) ? 8 : 2, &link.attribute_count);
            journal_link(span, &link, tracestate);
        }
    } else if (choice < 19) {
        journal_status(span, (otel_span_status)dice_below(dice, OTEL_SPAN_STATUS_ERROR + 1),
                       dice_one_in(dice, 4) ? NULL : dice_text(dice));
    } else {
        journal_rename(span, dice_text(dice));
    }
}

static void finish(struct worker *worker, struct journal_span *span)
{
    journal_end(span, maybe_time(worker, 10), worker->file);
    free(span);
}

static void end_local(struct worker *worker)
{
    finish(worker, worker->local[--worker->local_count]);
}

static struct journal_span *take_detached(struct worker *worker)
{
    const uint32_t at = dice_below(&worker->dice, (uint32_t)worker->detached_count);
    struct journal_span *span = worker->detached[at];
    worker->detached[at] = worker->detached[--worker->detached_count];
    return span;
}

/* Give a detached span away, and get one of another thread if one lies there. */
static void swap(struct worker *worker)
{
    const uint32_t at = dice_below(&worker->dice, EXCHANGE);
    struct journal_span *given = take_detached(worker);
    pthread_mutex_lock(&exchange_lock);
    struct journal_span *got = exchange[at];
    exchange[at] = given;
    pthread_mutex_unlock(&exchange_lock);
    if (got != NULL)
        worker->detached[worker->detached_count++] = got;
}

static void step(struct worker *worker)
{
    struct dice *dice = &worker->dice;
    const uint32_t choice = dice_below(dice, 100);
    dice_forget(dice);
    if (choice < 20 && worker->local_count < DEPTH && worker->spans_left != 0)
        begin(worker, true);
    else if (choice < 30 && worker->detached_count < DETACHED && worker->spans_left != 0)
        begin(worker, false);
    else if (choice < 45 && worker->local_count != 0)
        describe(worker, worker->local[dice_below(dice, (uint32_t)worker->local_count)]);
    else if (choice < 60 && worker->detached_count != 0)
        describe(worker, worker->detached[dice_below(dice, (uint32_t)worker->detached_count)]);
    else if (choice < 80 && worker->local_count != 0)
        end_local(worker);
    else if (choice < 90 && worker->detached_count != 0)
        finish(worker, take_detached(worker));
    else if (worker->detached_count != 0 && !worker->is_repeatable)
        swap(worker);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    id_dice.state = ~worker->dice.state;
    while (worker->spans_left != 0 || worker->local_count != 0 || worker->detached_count != 0)
        step(worker);
    return NULL;
}

static FILE *create(const char *folder, const char *name)
{
    char path[4096] = "/dev/null";
    if (strcmp(folder, "-") != 0)
        snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    return file;
}

static void write_setup(const char *folder, const otel_attribute *resource, size_t resource_count)
{
    FILE *file = create(folder, "setup.json");
    fprintf(file, "{\"resource\":");
    journal_attributes(file, resource, resource_count);
    fprintf(file, ",\"tracers\":[");
    for (size_t i = 0; i < TRACERS; i++) {
        fprintf(file, "%s[", i != 0 ? "," : "");
        journal_string(file, tracer_parts[i].name);
        fprintf(file, ",");
        journal_string(file, tracer_parts[i].version);
        fprintf(file, ",");
        journal_string(file, tracer_parts[i].schema_url);
        fprintf(file, ",");
        journal_attributes(file, scope_attributes, tracer_parts[i].attribute_count);
        fprintf(file, "]");
    }
    fprintf(file, "]}\n");
    fclose(file);
}

static void get_tracers(void)
{
    scope_attributes[0] = otel_attribute_of("text", otel_value_string("scope \xC3\xA9"));
    scope_attributes[1] = otel_attribute_of("number", otel_value_int(-7));
    scope_attributes[2] = otel_attribute_of("words", otel_value_string_array(words, 4));
    scope_attributes[3] = otel_attribute_of("text", otel_value_bytes("\0\xFF", 2));
    for (size_t i = 0; i < TRACERS; i++)
        tracers[i] = otel_tracer_get_with(
            tracer_parts[i].name, tracer_parts[i].version,
            OTEL_TRACER_OPTIONS(.schema_url = tracer_parts[i].schema_url,
                                .attributes = scope_attributes,
                                .attribute_count = tracer_parts[i].attribute_count));
}

static int print_statistics(otel_status status)
{
    otel_stats stats = {.size = sizeof stats};
    if (otel_stats_read(0, &stats) != OTEL_OK)
        return 1;
    printf("{\"status\":%d,\"started\":%llu,\"unsampled\":%llu,\"open\":%llu,\"ended\":%llu,"
           "\"queued\":%llu,\"delivered\":%llu,\"rejected\":%llu,\"dropped\":[",
           (int)status, (unsigned long long)stats.started, (unsigned long long)stats.unsampled,
           (unsigned long long)stats.open, (unsigned long long)stats.ended,
           (unsigned long long)stats.queued, (unsigned long long)stats.delivered,
           (unsigned long long)stats.rejected);
    for (size_t i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        printf("%s%llu", i != 0 ? "," : "", (unsigned long long)stats.dropped[i]);
    printf("]}\n");
    return 0;
}

static void run(const char *folder, uint64_t spans, uint64_t seed, bool is_repeatable)
{
    static struct worker workers[THREADS];
    char name[32];
    for (size_t i = 0; i < THREADS; i++) {
        struct worker *worker = &workers[i];
        snprintf(name, sizeof name, "spans-%zu.jsonl", i);
        worker->file = create(folder, name);
        worker->spans_left = spans / THREADS + (i < spans % THREADS);
        worker->is_repeatable = is_repeatable;
        worker->now_ns = is_repeatable ? 1785600000123456789 : (uint64_t)time(NULL) * 1000000000;
        dice_init(&worker->dice, seed * THREADS + i);
        if (pthread_create(&worker->thread, NULL, work, worker) != 0)
            abort();
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (size_t i = 0; i < EXCHANGE; i++)
        if (exchange[i] != NULL)
            finish(&workers[0], exchange[i]);
    for (size_t i = 0; i < THREADS; i++) {
        fclose(workers[i].file);
        dice_fini(&workers[i].dice);
    }
}

int main(int argc, char **argv)
{
    const bool is_repeatable = argc > 1 && strcmp(argv[1], "-r") == 0;
    argv += is_repeatable;
    argc -= is_repeatable;
    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: shapes [-r] FOLDER SPANS SEED [TRACE]\n");
        return 2;
    }
    const otel_attribute resource[] = {
        otel_attribute_of("deployment.environment.name",
                          otel_value_string("test \xF0\x9F\x90\xA2")),
        otel_attribute_of("from.both", otel_value_string("code")),
        otel_attribute_of("numbers", otel_value_int_array(numbers, 3)),
        otel_attribute_of("answers", otel_value_bool_array(answers, 2)),
        otel_attribute_of("reals", otel_value_double_array(reals, 2)),
        otel_attribute_of("nothing", otel_value_empty()),
        otel_attribute_of("bad \xC0key", otel_value_string("bad \xFF")),
    };
    const size_t resource_count = sizeof resource / sizeof *resource;
    get_tracers();
    write_setup(argv[1], resource, resource_count);
    otel_exporter trace;
    otel_status status = argc == 5 ? otel_perfetto_exporter_new(argv[4], &trace) : OTEL_OK;
    if (status == OTEL_OK)
        status = otel_start(OTEL_SDK_OPTIONS(.resource = resource, .resource_count = resource_count,
                                             .exporters = argc == 5 ? &trace : NULL,
                                             .exporter_count = argc == 5,
                                             .generate_ids = is_repeatable ? generate_ids : NULL,
                                             .generated_ids_are_random = is_repeatable));
    if (status != OTEL_OK) {
        fprintf(stderr, "otel_start: %s\n", otel_status_string(status));
        return 1;
    }
    run(argv[1], strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), is_repeatable);
    return print_statistics(otel_shutdown(SHUTDOWN_MS));
}
