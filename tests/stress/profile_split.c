/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/profile_split.c - is the processor time of two queries told apart rightly? Threads
 * run tasks of query A and of query B, about 70 to 30, and write down when each of them ran and of
 * how many pieces of the same work it was; these are compared with the samples, and each sample
 * with the task that ran at its time. Their clocks of processor time are not asked: on a busy
 * machine a thread that asks loses the processor there more often than elsewhere, so between two
 * tasks, and the kernel's tick, by which timers of processor time expire, then meets long tasks too
 * often.
 *
 *     profile_split_stress [perf | signal]         otherwise each of them
 *
 * For code with frame pointers and without, inside of libc, and with the frame pointer's register
 * used for something else; with spans (otel_span_run) and with labels alone (otel_profile_apply);
 * as root and as an ordinary user. No label may be wrong, and nearly all samples have one.
 *
 * Without --long a few seconds and bounds of 5 sigma, which chance may pass once but not a second
 * time with four times the samples; with it 20,000 samples of each kind, within a percentage point
 * or 3 sigma. */
#include "common/base/atomic.h"
#include "profiling/base/sample.h"
#include "profiling/labels/resolve.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"
#include "tests/support/split_work.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 2, TASKS_MOST = 1 << 20, SAMPLES_MOST = 1 << 18 };
enum {
    LONG_SAMPLES = 20400,
    CI_SAMPLES = 400,
    CI_SIGNALS = 150,
    AGAIN_TIMES = 4,
    DRAIN_US = 20000,
    NOBODY = 65534
};

/* --- what is run --- */

/* How the label gets onto the stack. */
enum way { BY_SPAN, BY_LABEL };

struct kind {
    const char *name;
    uint32_t (*work)(uint32_t seed);
    enum way way;
    bool has_frames; /* so that every sample's stack shows its trampoline */
};

static const struct kind kinds[] = {
    {"frame pointers, span", split_work_framed, BY_SPAN, true},
    {"frame pointers, label", split_work_framed, BY_LABEL, true},
    {"no frame pointers, span", split_work_frameless, BY_SPAN, false},
    {"no frame pointers, label", split_work_frameless, BY_LABEL, false},
    {"libc, span", split_work_libc_framed, BY_SPAN, false},
    {"libc from code without frame pointers, label", split_work_libc_frameless, BY_LABEL, false},
    {"frame pointer clobbered, span", split_work_clobber, BY_SPAN, false},
    {"frame pointer clobbered, label", split_work_clobber, BY_LABEL, false},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* --- what has run: each thread's own book --- */

struct task {
    uint64_t start_ns; /* before the label, and after it */
    uint64_t end_ns;
    uint64_t under_ns; /* in the function that runs under it */
    uint64_t over_ns;
    uint8_t span_id[8];
    char query; /* 'A' or 'B' */
};

struct book {
    const struct kind *kind;
    struct task *tasks;
    size_t count;
    uint64_t pieces[2]; /* of A and of B */
    pid_t thread;
    uint32_t seed;
};

static struct book books[THREADS];
static uint32_t is_over; /* atomic */
static otel_tracer *tracer;

static uint32_t next_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed >> 8;
}

struct query {
    const struct kind *kind;
    struct task *task;
    unsigned amount;
    uint32_t value;
};

static void *run_query(void *argument)
{
    struct query *query = argument;
    query->task->under_ns = process_now_ns();
    for (unsigned i = 0; i < query->amount; i++)
        query->value += query->kind->work(query->value);
    query->task->over_ns = process_now_ns();
    return NULL;
}

static void run_with_span(struct query *query)
{
    struct task *task = query->task;
    const otel_span span = otel_span_start(tracer, "query", NULL);
    otel_span_set_string(span, "http.route", task->query == 'A' ? "A" : "B");
    const otel_span_context context = otel_span_get_context(span);
    memcpy(task->span_id, context.span_id, sizeof task->span_id);
    task->start_ns = process_now_ns();
    otel_span_run(span, run_query, query);
    task->end_ns = process_now_ns();
    otel_span_end(span);
}

static void run_with_label(struct query *query)
{
    struct task *task = query->task;
    const otel_profile_kv kv = {"http.route", task->query == 'A' ? "A" : "B"};
    otel_profile_label label = otel_profile_label_acquire(&kv, 1);
    task->start_ns = process_now_ns();
    otel_profile_apply(&label, run_query, query);
    task->end_ns = process_now_ns();
    otel_profile_label_release(&label);
}

/* As many tasks of the one as of the other, of 7 and 3 pieces of work, or twice as many. */
static void run_task(struct book *book)
{
    struct task *task = &book->tasks[book->count];
    *task = (struct task){.query = next_random(&book->seed) % 2 == 0 ? 'A' : 'B'};
    const unsigned pieces = 1 + next_random(&book->seed) % 2;
    struct query query = {.kind = book->kind,
                          .task = task,
                          .amount = (task->query == 'A' ? 7 : 3) * pieces,
                          .value = book->seed};
    if (book->kind->way == BY_SPAN)
        run_with_span(&query);
    else
        run_with_label(&query);
    book->pieces[task->query == 'B'] += query.amount;
    book->count++;
}

static void *run_tasks(void *argument)
{
    struct book *book = argument;
    book->thread = process_this_thread();
    while (oteli_load_acquire_32(&is_over) == 0 && book->count < TASKS_MOST)
        run_task(book);
    return NULL;
}

/* --- what was sampled --- */

struct seen {
    uint64_t time_ns;
    uint64_t periods;
    pid_t thread;
    bool has_span;
    uint8_t span_id[8];
    char query; /* what its label says; 0: nothing */
    enum oteli_found found;
};

static struct seen *samples;
static uint64_t sample_count; /* atomic */

/* The value of http.route in the innermost label that has it; 0: none. */
static char query_of(const struct oteli_resolved *resolved)
{
    for (size_t i = 0; i < resolved->label_count; i++) {
        const struct oteli_label *label = &resolved->labels[i];
        for (const char *text = label->text; text < label->text + label->text_length;) {
            const char *value = text + strlen(text) + 1;
            if (strcmp(text, "http.route") == 0)
                return value[0];
            text = value + strlen(value) + 1;
        }
    }
    return 0;
}

static void take(void *state, const struct oteli_sample *sample)
{
    static struct oteli_resolved resolved_one; /* of the only thread that drains */
    struct oteli_resolved *resolved = &resolved_one;
    (void)state;
    oteli_resolve(sample, resolved);
    const uint64_t count = oteli_load_relaxed_64(&sample_count);
    if (count == SAMPLES_MOST)
        return;
    struct seen *seen = &samples[count];
    *seen = (struct seen){.time_ns = resolved->sample->time_ns,
                          .periods = resolved->sample->periods,
                          .thread = resolved->sample->thread,
                          .has_span = resolved->has_span,
                          .query = query_of(resolved),
                          .found = resolved->found};
    memcpy(seen->span_id, resolved->span.span_id, sizeof seen->span_id);
    oteli_store_release_64(&sample_count, count + 1);
}

/* --- the source, drained on a thread of its own as the profiler does it --- */

enum phase { STARTING, RUNNING, STOPPING };

static struct draining {
    const struct oteli_source *source;
    struct oteli_source_options options;
    struct oteli_source_counts counts; /* after the stop */
    pthread_t thread;
    uint32_t phase; /* atomic */
    int error;
} draining;

/* NULL: not in this build: where there is ThreadSanitizer signals come late, and not where they
 * were sent. */
static const struct oteli_source *source_of(const char *name)
{
#ifndef OTELI_TSAN
    if (strcmp(name, "signal") == 0)
        return &oteli_signal_source;
#endif
    return strcmp(name, "perf") == 0 ? &oteli_perf_source : NULL;
}

static void *drain(void *unused)
{
    void *running;
    draining.error = draining.source->start(&draining.options, &running);
    oteli_store_release_32(&draining.phase, RUNNING);
    if (draining.error != 0)
        return unused;
    bool is_last;
    do {
        is_last = oteli_load_acquire_32(&draining.phase) == STOPPING;
        draining.source->drain(running, take, NULL, &draining.counts);
        stress_sleep_us(is_last ? 0 : DRAIN_US);
    } while (!is_last);
    draining.source->stop(running);
    return unused;
}

/* No more of labels and samples; everything that was sampled has been taken. */
static void stop_draining(void)
{
    oteli_store_release_32(&draining.phase, STOPPING);
    pthread_join(draining.thread, NULL);
    oteli_labels_switch(false);
}

/* What the source refuses with, or 0. */
static int start_draining(const struct oteli_source *source, uint64_t period_ns)
{
    draining = (struct draining){.source = source,
                                 .options = {.period_ns = period_ns,
                                             .ring_bytes = 256 * 1024,
                                             .stack_bytes = 4096,
                                             .signal_number = SIGPROF}};
    oteli_labels_switch(true);
    STRESS_CHECK(pthread_create(&draining.thread, NULL, drain, NULL) == 0);
    stress_wait(&draining.phase, RUNNING);
    if (draining.error != 0)
        stop_draining();
    return draining.error;
}

/* --- the comparison --- */

struct sums {
    uint64_t outside; /* samples between two tasks, or of another thread */
    uint64_t inside;
    uint64_t labelled; /* of those inside */
    uint64_t wrong;
    uint64_t by[5];
    double periods[2]; /* of A and of B */
    double squares;
};

/* The task that ran at that time on that thread; NULL: none. */
static const struct task *task_at(pid_t thread, uint64_t time_ns)
{
    for (unsigned i = 0; i < THREADS; i++) {
        const struct book *book = &books[i];
        if (book->thread != thread)
            continue;
        size_t low = 0, high = book->count; /* the first that begins later */
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (book->tasks[middle].start_ns <= time_ns)
                low = middle + 1;
            else
                high = middle;
        }
        if (low != 0 && time_ns <= book->tasks[low - 1].end_ns)
            return &book->tasks[low - 1];
    }
    return NULL;
}

/* Between two tasks nothing may say that there was one, and in one nothing that it was another. */
static bool is_wrong(const struct seen *seen, const struct task *task)
{
    if (task == NULL)
        return seen->query != 0 || seen->has_span;
    return (seen->has_span && memcmp(seen->span_id, task->span_id, sizeof task->span_id) != 0) ||
           (seen->query != 0 && seen->query != task->query);
}

static void judge(const struct seen *seen, struct sums *sums)
{
    const struct task *task = task_at(seen->thread, seen->time_ns);
    const double periods = (double)seen->periods;
    sums->by[seen->found]++;
    sums->wrong += is_wrong(seen, task);
    if (task == NULL || seen->time_ns < task->under_ns || seen->time_ns > task->over_ns) {
        sums->outside++;
        return;
    }
    sums->inside++;
    sums->labelled += seen->query != 0 || seen->has_span;
    sums->periods[task->query == 'B'] += periods;
    sums->squares += periods * periods;
}

/* As percentages of A, and the standard deviation of what samples say: by chance of the sampling,
 * and because a task takes a quarter more or less than others of its size. With sanitizers on a
 * busy machine the samples of a short run are those of a handful of tasks. */
struct split {
    double truth;
    double sampled;
    double sigma;
};

static struct split split_of(const struct sums *sums)
{
    const double varies = 0.25;
    double pieces[2] = {0, 0};
    double tasks = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        tasks += (double)books[i].count;
        pieces[0] += (double)books[i].pieces[0];
        pieces[1] += (double)books[i].pieces[1];
    }
    const double all = sums->periods[0] + sums->periods[1];
    const double truth = pieces[0] / (pieces[0] + pieces[1]);
    const double variance = sums->squares / (all * all) + varies * varies / tasks;
    return (struct split){.truth = 100 * truth,
                          .sampled = 100 * sums->periods[0] / all,
                          .sigma = 100 * sqrt(truth * (1 - truth) * variance)};
}

/* Whether the time is split as it should be; all else has to be right. */
static bool check(bool is_long, const struct oteli_source_counts *counts)
{
    struct sums sums = {0};
    for (uint64_t i = 0; i < sample_count; i++)
        judge(&samples[i], &sums);
    const struct split split = split_of(&sums);
    printf("  %" PRIu64 " samples, %.2f %% labelled (chain %" PRIu64 ", scan %" PRIu64
           ", thread %" PRIu64 ", none %" PRIu64 ", no history %" PRIu64 "), %" PRIu64
           " wrong; A %.2f %%, sampled %.2f (sigma %.2f); %" PRIu64 " lost\n",
           sums.inside, 100 * (double)sums.labelled / (double)sums.inside,
           sums.by[OTELI_FOUND_BY_CHAIN], sums.by[OTELI_FOUND_BY_SCAN],
           sums.by[OTELI_FOUND_BY_THREAD], sums.by[OTELI_UNLABELLED], sums.by[OTELI_NO_HISTORY],
           sums.wrong, split.truth, split.sampled, split.sigma, counts->lost);
    fflush(stdout);
    const double most = is_long ? fmax(1, 3 * split.sigma) : 5 * split.sigma;
    STRESS_CHECK(sums.wrong == 0);
    /* What sanitizers put between, and the frames of their copies of libc, are larger than the
     * scan. */
    const uint64_t least_percent = process_memory_is_ours() ? 99 : 80;
    STRESS_CHECK(100 * sums.labelled >= least_percent * sums.inside);
    STRESS_CHECK(sums.outside * 100 <= sums.inside * (process_memory_is_ours() ? 5 : 25));
    /* What a full ring has lost was not lost by chance: on a busy machine there is no saying. */
    const bool has_lost_few = counts->lost * 20 <= sums.inside;
    return (!is_long && !has_lost_few) || fabs(split.sampled - split.truth) <= most;
}

/* --- a run --- */

struct run {
    const char *source;
    bool is_long;
};

static void start_books(pthread_t threads[THREADS], const struct kind *kind)
{
    oteli_store_release_32(&is_over, 0);
    for (unsigned i = 0; i < THREADS; i++) {
        books[i] = (struct book){.kind = kind, .tasks = books[i].tasks, .seed = 77777 * (i + 1)};
        STRESS_CHECK(pthread_create(&threads[i], NULL, run_tasks, &books[i]) == 0);
    }
}

/* False: the kernel refuses. */
static bool run_kind(const struct run *run, const struct kind *kind, uint64_t enough,
                     bool *is_right)
{
    pthread_t threads[THREADS];
    oteli_store_release_64(&sample_count, 0);
    const int error = start_draining(source_of(run->source), run->is_long ? 500000 : 250000);
    if (error != 0) {
        printf("  the kernel refuses: %s\n", strerror(error));
        return false;
    }
    start_books(threads, kind);
    while (oteli_load_acquire_64(&sample_count) < enough)
        stress_sleep_us(10000);
    oteli_store_release_32(&is_over, 1);
    stress_join(threads, THREADS);
    stop_draining();
    *is_right = check(run->is_long, &draining.counts);
    return true;
}

/* The signal's handler looks at frames and at what the thread publishes, and scans nothing. */
static bool is_seen_by(const struct kind *kind, const char *source)
{
    return strcmp(source, "signal") != 0 || kind->has_frames || kind->way == BY_SPAN;
}

/* The timers of signals come with the kernel's tick only, 250 times a second. */
static uint64_t samples_wanted(const struct run *run)
{
    if (run->is_long)
        return LONG_SAMPLES;
    return strcmp(run->source, "signal") == 0 ? CI_SIGNALS : CI_SAMPLES;
}

static int run_all(void *argument)
{
    const struct run *run = argument;
    const uint64_t enough = samples_wanted(run);
    for (unsigned i = 0; i < KINDS; i++) {
        if (!is_seen_by(&kinds[i], run->source))
            continue;
        printf("%s, uid %u, %s\n", run->source, (unsigned)getuid(), kinds[i].name);
        bool is_right;
        if (!run_kind(run, &kinds[i], enough, &is_right))
            return 0;
        if (!is_right && !run->is_long)
            STRESS_CHECK(run_kind(run, &kinds[i], enough * AGAIN_TIMES, &is_right));
        STRESS_CHECK(is_right && "the sampled split is the true one");
    }
    return 0;
}

static otel_export_result forget_spans(void *state, otel_export *call)
{
    (void)state;
    (void)call;
    return OTEL_EXPORT_DONE;
}

static int run_with_sdk(void *argument)
{
    stress_start_sdk((otel_exporter){.export_batch = forget_spans}, &(otel_sdk_options){0});
    tracer = otel_tracer_get("split", NULL);
    const int result = run_all(argument);
    (void)stress_stop_sdk();
    return result;
}

static int run_as_nobody(void *argument)
{
    STRESS_CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    return run_with_sdk(argument);
}

/* As an ordinary user first: what is root's may stay behind. */
static int run_source(const char *source, bool is_long)
{
    struct run run = {source, is_long};
    if (getuid() == 0)
        STRESS_CHECK(stress_in_child(run_as_nobody, &run) == 0);
    return run_with_sdk(&run);
}

int main(int argc, char **argv)
{
    static const char *const sources[] = {"perf", "signal"};
    const bool is_long = stress_scale(argc, argv, 2) != 1;
    samples = calloc(SAMPLES_MOST, sizeof *samples);
    STRESS_CHECK(samples != NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        books[i].tasks = calloc(TASKS_MOST, sizeof *books[i].tasks);
        STRESS_CHECK(books[i].tasks != NULL);
    }
    if (argc > 1 && source_of(argv[1]) != NULL)
        return run_source(argv[1], is_long);
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        if (source_of(sources[i]) != NULL)
            STRESS_CHECK(run_source(sources[i], is_long) == 0);
        else
            printf("%s: not under this sanitizer\n", sources[i]);
    }
    return 0;
}
