/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/processor_measure.c - one measurement of the queue study: a design, so many threads,
 * a load.
 *
 * At `max` threads end spans one after another; every 16th end is timed. At `steady` each
 * thread is a little service: every millisecond it has a request with 10 spans, during
 * each of which it works for about 2 us, and then it sleeps until the next; every end is timed.
 * Deadlines are absolute, so a thread that is late catches up, and the average is 10,000
 * spans a second where the machine can do it. The threads' requests are spread evenly.
 *
 * A thread may lose its core while it ends a span. That is in the maximum; a second one leaves
 * out what took long while the kernel counts that the thread was preempted.
 *
 * After a warm-up a window is opened and closed by reading every count while the threads go
 * on. In the end everything that was accepted must have been exported. */
#include "benchmarks/processor.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>

enum {
    MAX_BURST = 64,
    MAX_TIME_MASK = 15,
    SLOW_US = 2,
    STACK_BYTES = 256 * 1024,
    SPINS_TO_START = 1000000
};

const char processor_span_name[] = "GET /users";

/* --- histograms --- */

void processor_histogram_merge(struct processor_histogram *all,
                               const struct processor_histogram *one)
{
    for (unsigned i = 0; i < PROCESSOR_BUCKETS; i++)
        all->counts[i] += one->counts[i];
    if (one->most > all->most)
        all->most = one->most;
}

double processor_histogram_percentile(const struct processor_histogram *histogram, double percent)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < PROCESSOR_BUCKETS; i++)
        total += histogram->counts[i];
    if (total == 0)
        return NAN;
    const double rank = ceil(percent / 100 * (double)total);
    uint64_t below = 0;
    unsigned i = 0;
    for (; i < PROCESSOR_BUCKETS - 1; i++) {
        below += histogram->counts[i];
        if ((double)below >= rank)
            break;
    }
    const unsigned octave = i / PROCESSOR_STEPS;
    const double step = PROCESSOR_STEPS + i % PROCESSOR_STEPS;
    const double upper = ldexp(step + 1, (int)octave) - 1;
    return upper < (double)histogram->most ? upper : (double)histogram->most;
}

/* --- units --- */

static double ticks_per_us(void)
{
    static double rate;
    if (rate == 0) {
        const struct timespec some = {0, 20000000};
        const uint64_t start_ns = bench_now_ns();
        const uint64_t start = processor_ticks();
        clock_nanosleep(CLOCK_MONOTONIC, 0, &some, NULL);
        const uint64_t ticks = processor_ticks() - start;
        rate = (double)ticks * 1000 / (double)(bench_now_ns() - start_ns);
        if (!(rate > 0))
            bench_fail("this machine has no counter");
    }
    return rate;
}

unsigned processor_steps(double ns)
{
    enum { TRIES = 20, STEPS = 10000 };
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < TRIES; i++) {
        const uint64_t start_ns = bench_now_ns();
        const uint64_t result = processor_work(start_ns, STEPS);
        __asm__ volatile("" : : "r"(result));
        const uint64_t took_ns = bench_now_ns() - start_ns;
        if (took_ns < least)
            least = took_ns;
    }
    return (unsigned)(ns * STEPS / (double)least);
}

/* --- producing threads --- */

static int64_t preemptions(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

void processor_note_slow(struct processor_thread *thread, uint64_t ticks)
{
    const int64_t now = preemptions();
    const bool is_preempted = now != thread->preempted;
    thread->preempted = now;
    if (thread->is_measured && !is_preempted && ticks > thread->longest_unpreempted)
        thread->longest_unpreempted = ticks;
}

enum phase { WARM_UP, MEASURE, STOP };

struct run {
    const struct processor_design *design;
    const struct processor_setting *setting;
    uint32_t phase; /* enum phase; written by the conductor */
    uint32_t ready; /* threads that are */
    uint64_t start_ns;
    struct processor_thread *threads;
};

struct producer {
    struct run *run;
    struct processor_thread *thread;
    pthread_t id;
};

static void sleep_until(uint64_t ns)
{
    const struct timespec until = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

static void *produce(void *argument)
{
    const struct producer *producer = argument;
    struct run *run = producer->run;
    struct processor_thread *thread = producer->thread;
    const struct processor_setting *setting = run->setting;
    oteli_add_full_32(&run->ready, 1);
    uint64_t due_ns;
    while ((due_ns = oteli_load_acquire_64(&run->start_ns)) == 0)
        sched_yield();
    const uint64_t first_second_ns = due_ns + 1000000000;
    due_ns += setting->period_ns * thread->index / setting->threads;
    for (;;) {
        const uint32_t phase = oteli_load_relaxed_32(&run->phase);
        if (phase == STOP)
            return NULL;
        thread->is_measured = phase == MEASURE;
        if (setting->is_steady) {
            sleep_until(due_ns);
            due_ns += setting->period_ns;
            thread->is_first = due_ns < first_second_ns;
        }
        thread->preempted = preemptions();
        run->design->burst(thread, setting->is_steady ? setting->burst : (unsigned)MAX_BURST);
    }
}

static void prepare_threads(struct run *run)
{
    for (unsigned i = 0; i < run->setting->threads; i++) {
        struct processor_thread *thread = &run->threads[i];
        memset(thread, 0, sizeof *thread);
        thread->index = i;
        thread->work = run->setting->work;
        thread->slow = (uint64_t)(SLOW_US * ticks_per_us());
        thread->time_mask = run->setting->is_steady ? 0 : MAX_TIME_MASK;
        thread->span.name_length = sizeof processor_span_name - 1;
        if (getrandom(&thread->random, sizeof thread->random, 0) != sizeof thread->random)
            bench_fail("getrandom: %s", strerror(errno));
        thread->random.step |= 1;
    }
}

static void start_producers(struct run *run, struct producer *producers)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (unsigned i = 0; i < run->setting->threads; i++) {
        producers[i] = (struct producer){.run = run, .thread = &run->threads[i]};
        if (pthread_create(&producers[i].id, &attributes, produce, &producers[i]) != 0)
            bench_fail("no thread");
    }
    pthread_attr_destroy(&attributes);
    while (oteli_load_acquire_32(&run->ready) != run->setting->threads)
        sched_yield();
    oteli_store_release_64(&run->start_ns, bench_now_ns());
}

/* --- the window --- */

struct reading {
    uint64_t ns;
    uint64_t exported;
    uint64_t offered;
    uint64_t dropped;
    uint64_t process_cpu_ns;
    uint64_t worker_cpu_ns;
    uint64_t wakeups;
    uint64_t signals;
};

static uint64_t cpu_ns_of(pid_t thread)
{
    /* The clock of a thread by its number, as pthread_getcpuclockid makes it. */
    const clockid_t clock = (clockid_t)((~(unsigned)thread << 3) | 6);
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        bench_fail("the CPU time of the exporter thread cannot be read: %s", strerror(errno));
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* How often a thread has gone to sleep. */
static uint64_t wakeups_of(pid_t thread)
{
    static const char key[] = "voluntary_ctxt_switches:";
    char path[64];
    char line[256];
    unsigned long long count = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)thread);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        bench_fail("%s: %s", path, strerror(errno));
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, sizeof key - 1) == 0)
            count = strtoull(line + sizeof key - 1, NULL, 10);
    fclose(file);
    return count;
}

static struct reading read_all(const struct run *run, void *queue, pid_t worker,
                               const struct processor_exporter *exporter)
{
    const struct processor_design *design = run->design;
    struct reading reading = {.process_cpu_ns = bench_process_cpu_ns(), .ns = bench_now_ns()};
    reading.exported = oteli_load_relaxed_64(&exporter->exported);
    for (unsigned i = 0; i < run->setting->threads; i++) {
        reading.offered += oteli_load_relaxed_64(&run->threads[i].offered);
        reading.dropped += oteli_load_relaxed_64(&run->threads[i].dropped);
    }
    if (design->dropped != NULL)
        reading.dropped = design->dropped(queue);
    if (worker != 0) {
        reading.worker_cpu_ns = cpu_ns_of(worker);
        reading.wakeups = wakeups_of(worker);
    }
    if (design->signals != NULL)
        reading.signals = design->signals(queue);
    return reading;
}

/* Whatever was not slow counts as well. */
static double longest_unpreempted(const struct run *run, const struct processor_histogram *all)
{
    uint64_t longest = 0;
    for (unsigned i = 0; i < run->setting->threads; i++)
        if (run->threads[i].longest_unpreempted > longest)
            longest = run->threads[i].longest_unpreempted;
    if (longest != 0)
        return (double)longest;
    const uint64_t slow = run->threads[0].slow;
    return (double)(all->most < slow ? all->most : slow);
}

/* What a window says about spans that were exported. A batch at its edges is a matter of luck:
 * at `steady` it has few of them, and hardly anything is dropped, so spans that were not
 * dropped are counted there. At `max` it has thousands, while spans end so fast that two
 * counts which are not read at the same moment cannot be subtracted. */
static double exported_between(const struct run *run, const struct reading *from,
                               const struct reading *to)
{
    const double offered = (double)(to->offered - from->offered);
    const double exported = (double)(to->exported - from->exported);
    if (run->setting->is_steady)
        return offered - (double)(to->dropped - from->dropped);
    return exported < offered ? exported : offered;
}

static void write_figures(double figures[PROCESSOR_FIGURES], const struct run *run,
                          const struct reading *from, const struct reading *to)
{
    static struct processor_histogram all;
    const double s = (double)(to->ns - from->ns) / 1e9;
    const double offered = (double)(to->offered - from->offered);
    const double exported = exported_between(run, from, to);
    const bool has_worker = run->design->worker != NULL;
    const bool has_signals = run->design->signals != NULL;
    figures[PROCESSOR_OFFERED] = offered / s;
    figures[PROCESSOR_EXPORTED] = has_worker ? exported / s : NAN;
    figures[PROCESSOR_DROPPED] =
        has_worker ? (offered > 0 ? 100 * (1 - exported / offered) : 0) : NAN;
    figures[PROCESSOR_WORKER_CPU] =
        has_worker ? (double)(to->worker_cpu_ns - from->worker_cpu_ns) / 1e7 / s : NAN;
    figures[PROCESSOR_PROCESS_CPU] = (double)(to->process_cpu_ns - from->process_cpu_ns) / 1e7 / s;
    figures[PROCESSOR_WAKEUPS] = has_worker ? (double)(to->wakeups - from->wakeups) / s : NAN;
    figures[PROCESSOR_SIGNALS] = has_signals ? (double)(to->signals - from->signals) / s : NAN;

    memset(&all, 0, sizeof all);
    for (unsigned i = 0; i < run->setting->threads; i++)
        processor_histogram_merge(&all, &run->threads[i].first_second);
    figures[PROCESSOR_FIRST_SECOND_END_P99] =
        processor_histogram_percentile(&all, 99) / ticks_per_us();
    memset(&all, 0, sizeof all);
    for (unsigned i = 0; i < run->setting->threads; i++)
        processor_histogram_merge(&all, &run->threads[i].histogram);
    figures[PROCESSOR_END_P50] = processor_histogram_percentile(&all, 50) / ticks_per_us();
    figures[PROCESSOR_END_P99] = processor_histogram_percentile(&all, 99) / ticks_per_us();
    figures[PROCESSOR_END_P999] = processor_histogram_percentile(&all, 99.9) / ticks_per_us();
    if (isnan(figures[PROCESSOR_END_P50])) {
        figures[PROCESSOR_END_MAX] = NAN; /* not one span was ended meanwhile */
        figures[PROCESSOR_END_MAX_UNPREEMPTED] = NAN;
        return;
    }
    figures[PROCESSOR_END_MAX] = (double)all.most / ticks_per_us();
    figures[PROCESSOR_END_MAX_UNPREEMPTED] = longest_unpreempted(run, &all) / ticks_per_us();
}

/* Nothing that was accepted may be missing, or be there twice. */
static void check_books(const struct run *run, uint64_t dropped,
                        const struct processor_exporter *exporter)
{
    uint64_t offered = 0;
    for (unsigned i = 0; i < run->setting->threads; i++)
        offered += run->threads[i].offered;
    if (exporter->exported != offered - dropped)
        bench_fail("%s: %llu spans ended, %llu were dropped, and %llu exported", run->design->name,
                   (unsigned long long)offered, (unsigned long long)dropped,
                   (unsigned long long)exporter->exported);
}

static pid_t wait_for_worker(const struct processor_design *design, void *queue)
{
    pid_t worker = 0;
    if (design->worker == NULL)
        return 0;
    for (unsigned i = 0; i < SPINS_TO_START && worker == 0; i++) {
        worker = design->worker(queue);
        sched_yield();
    }
    if (worker == 0)
        bench_fail("%s: there is no exporter thread", design->name);
    return worker;
}

void processor_measure(const struct processor_design *design,
                       const struct processor_setting *setting, double figures[PROCESSOR_FIGURES])
{
    static struct processor_thread threads[PROCESSOR_MOST_THREADS];
    struct producer producers[PROCESSOR_MOST_THREADS] = {0};
    struct processor_exporter exporter = {0};
    struct run run = {.design = design, .setting = setting, .threads = threads};
    ticks_per_us();
    prepare_threads(&run);
    void *queue = design->start(design, &exporter, threads, setting->threads);
    for (unsigned i = 0; i < setting->threads; i++)
        threads[i].queue = queue;
    const pid_t worker = wait_for_worker(design, queue);
    start_producers(&run, producers);

    sleep_until(run.start_ns + setting->warm_up_ns);
    oteli_store_relaxed_32(&run.phase, MEASURE);
    const struct reading from = read_all(&run, queue, worker, &exporter);
    sleep_until(run.start_ns + setting->warm_up_ns + setting->window_ns);
    const struct reading to = read_all(&run, queue, worker, &exporter);
    oteli_store_relaxed_32(&run.phase, STOP);
    for (unsigned i = 0; i < setting->threads; i++)
        pthread_join(producers[i].id, NULL);

    uint64_t dropped = 0;
    for (unsigned i = 0; i < setting->threads; i++)
        dropped += threads[i].dropped;
    if (design->dropped != NULL)
        dropped = design->dropped(queue);
    design->stop(queue);
    if (design->worker != NULL)
        check_books(&run, dropped, &exporter);
    write_figures(figures, &run, &from, &to);
}
