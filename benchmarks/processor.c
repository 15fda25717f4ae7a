/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/processor.c - the queue study: which queue should be between the threads that end
 * spans and the one that exports them? docs/PROCESSOR.md tells the story.
 *
 *     bench-processor [--design NAME]... [--threads N]... [--load max|steady]... [--rounds N]
 *                     [--quick]
 *
 * Each round measures every design with every number of threads under both loads, one
 * after the other (processor_measure.c), beginning with another design each time; so slow and
 * fast times of the machine meet all designs alike, and ratios within one run can be
 * trusted further than figures. What is printed are medians over the rounds, and means where
 * a round counts few events (wake-ups, signals). */
#include "benchmarks/processor.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 5, QUICK_ROUNDS = 1, MOST_CHOICES = 16, MOST_ROUNDS = 1000 };
enum { PERIOD_NS = 1000000, BURST = 10, WORK_NS = 2000, QUICK_NS = 2000000 };

const struct processor_design *const processor_designs[] = {
    &processor_mutex_signal, &processor_fifo_signal,     &processor_padded_block,
    &processor_padded_sleep, &processor_mutex_batched,   &processor_fifo_batched,
    &processor_mpsc_batched, &processor_ck_ring_batched, &processor_ring_span,
    &processor_lines,        &processor_control,         &processor_control_copy};
const unsigned processor_design_count = sizeof processor_designs / sizeof *processor_designs;

static const unsigned usual_threads[] = {1, 2, 5, 10, 20};
enum { USUAL_THREADS = sizeof usual_threads / sizeof *usual_threads, QUICK_THREADS = 3 };
static const char *const load_names[] = {"max", "steady"};

struct study {
    struct bench_options options;
    const struct processor_design *designs[MOST_CHOICES];
    unsigned design_count;
    unsigned threads[MOST_CHOICES];
    unsigned thread_count;
    bool is_steady[2];
    unsigned load_count;
    unsigned rounds;
    unsigned work;
    double *figures; /* [design][threads][load][figure][round] */
};

static double *figures_of(const struct study *study, unsigned design, unsigned threads,
                          unsigned load)
{
    const size_t cell = ((size_t)design * study->thread_count + threads) * study->load_count + load;
    return study->figures + cell * PROCESSOR_FIGURES * study->rounds;
}

const struct processor_design *processor_design_find(const char *name)
{
    for (unsigned i = 0; i < processor_design_count; i++)
        if (strcmp(processor_designs[i]->name, name) == 0)
            return processor_designs[i];
    return NULL;
}

/* --- the command line --- */

__attribute__((noreturn)) static void complain(const char *program)
{
    fprintf(stderr,
            "usage: %s [--design NAME]... [--threads N]... [--load max|steady]... "
            "[--rounds N] [--quick]\n\n",
            program);
    for (unsigned i = 0; i < processor_design_count; i++)
        fprintf(stderr, "  %-16s %s\n", processor_designs[i]->name, processor_designs[i]->about);
    exit(2);
}

/* Take a choice of ours; false: it is none, or makes no sense. */
static bool take_choice(struct study *study, const char *option, const char *value)
{
    if (strcmp(option, "--design") == 0 && study->design_count < MOST_CHOICES) {
        const struct processor_design *design = processor_design_find(value);
        study->designs[study->design_count++] = design;
        return design != NULL;
    }
    if (strcmp(option, "--threads") == 0 && study->thread_count < MOST_CHOICES) {
        const unsigned long threads = strtoul(value, NULL, 10);
        study->threads[study->thread_count++] = (unsigned)threads;
        return threads >= 1 && threads <= PROCESSOR_MOST_THREADS;
    }
    if (strcmp(option, "--load") == 0 && study->load_count < 2) {
        study->is_steady[study->load_count++] = strcmp(value, "steady") == 0;
        return strcmp(value, "steady") == 0 || strcmp(value, "max") == 0;
    }
    return false;
}

static void read_options(struct study *study, int count, char **arguments)
{
    char *others[MOST_CHOICES] = {arguments[0]};
    int other_count = 1;
    for (int i = 1; i < count; i++) {
        const bool is_other =
            strcmp(arguments[i], "--quick") == 0 || strcmp(arguments[i], "--rounds") == 0;
        const bool has_value = strcmp(arguments[i], "--quick") != 0;
        if ((has_value && i + 1 == count) || other_count + 2 > MOST_CHOICES)
            complain(arguments[0]);
        if (!is_other && !take_choice(study, arguments[i], arguments[i + 1]))
            complain(arguments[0]);
        if (is_other)
            others[other_count++] = arguments[i];
        if (has_value)
            i++;
        if (is_other && has_value)
            others[other_count++] = arguments[i];
    }
    study->options = bench_options_read(other_count, others);
    study->rounds = bench_rounds(&study->options, ROUNDS, QUICK_ROUNDS);
    if (study->rounds > MOST_ROUNDS)
        study->rounds = MOST_ROUNDS;
}

static void choose_the_usual(struct study *study)
{
    if (study->design_count == 0) {
        memcpy(study->designs, processor_designs, sizeof processor_designs);
        study->design_count = processor_design_count;
    }
    if (study->thread_count == 0) {
        memcpy(study->threads, usual_threads, sizeof usual_threads);
        study->thread_count = study->options.quick ? (unsigned)QUICK_THREADS : USUAL_THREADS;
    }
    if (study->load_count == 0) {
        study->is_steady[1] = true;
        study->load_count = 2;
    }
    study->work = processor_steps(WORK_NS);
    const size_t cells = (size_t)study->design_count * study->thread_count * study->load_count;
    study->figures = calloc(cells * PROCESSOR_FIGURES * study->rounds, sizeof *study->figures);
    if (study->figures == NULL)
        bench_fail("no memory");
}

/* --- measuring --- */

/* In a new process, whose memory no other design has touched. */
static void measure_apart(const struct processor_design *design,
                          const struct processor_setting *setting,
                          double figures[PROCESSOR_FIGURES])
{
    const size_t size = PROCESSOR_FIGURES * sizeof *figures;
    int ends[2];
    int status;
    if (pipe(ends) != 0)
        bench_fail("pipe: %s", strerror(errno));
    const pid_t child = fork();
    if (child == 0) {
        processor_measure(design, setting, figures);
        _exit(write(ends[1], figures, size) != (ssize_t)size);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], figures, size) != (ssize_t)size ||
        waitpid(child, &status, 0) != child || status != 0)
        bench_fail("%s could not be measured", design->name);
    close(ends[0]);
}

static void measure(const struct study *study, unsigned design, unsigned threads, unsigned load,
                    unsigned round)
{
    const bool is_steady = study->is_steady[load];
    struct processor_setting setting = {.threads = study->threads[threads],
                                        .is_steady = is_steady,
                                        .warm_up_ns = is_steady ? 400000000 : 50000000,
                                        .window_ns = is_steady ? 1000000000 : 400000000};
    if (is_steady) {
        setting.period_ns = PERIOD_NS;
        setting.burst = BURST;
        setting.work = study->work;
    }
    if (study->options.quick) {
        setting.warm_up_ns = QUICK_NS;
        setting.window_ns = 2 * QUICK_NS;
    }
    double figures[PROCESSOR_FIGURES];
    measure_apart(study->designs[design], &setting, figures);
    for (unsigned i = 0; i < PROCESSOR_FIGURES; i++)
        figures_of(study, design, threads, load)[i * study->rounds + round] = figures[i];
}

static void run_round(const struct study *study, unsigned round)
{
    for (unsigned load = 0; load < study->load_count; load++)
        for (unsigned threads = 0; threads < study->thread_count; threads++)
            for (unsigned i = 0; i < study->design_count; i++)
                measure(study, (i + round) % study->design_count, threads, load, round);
}

/* --- reporting --- */

struct summary {
    double median[PROCESSOR_FIGURES];
    double mean[PROCESSOR_FIGURES];
    double least[PROCESSOR_FIGURES];
    double most[PROCESSOR_FIGURES];
};

/* A round that could not tell a figure does not count for it. */
static struct summary summarise(const struct study *study, unsigned design, unsigned threads,
                                unsigned load)
{
    struct summary summary;
    for (unsigned i = 0; i < PROCESSOR_FIGURES; i++) {
        const double *figures = figures_of(study, design, threads, load) + i * study->rounds;
        double told[MOST_ROUNDS];
        unsigned count = 0;
        double sum = 0;
        for (unsigned round = 0; round < study->rounds; round++) {
            if (isnan(figures[round]))
                continue;
            sum += figures[round];
            told[count++] = figures[round];
        }
        bench_sort(told, count);
        summary.median[i] = bench_median(told, count);
        summary.mean[i] = count != 0 ? sum / count : NAN;
        summary.least[i] = count != 0 ? told[0] : NAN;
        summary.most[i] = count != 0 ? told[count - 1] : NAN;
    }
    return summary;
}

/* How often as long it takes as in the control, which is here if it was measured. */
static void report_ratios(const struct study *study, const struct summary *summary,
                          unsigned threads, unsigned load)
{
    for (unsigned i = 0; i < study->design_count; i++) {
        if (study->designs[i] != &processor_control)
            continue;
        const struct summary control = summarise(study, i, threads, load);
        bench_figure("end_p99_to_control",
                     summary->median[PROCESSOR_END_P99] / control.median[PROCESSOR_END_P99], 2);
        bench_figure("end_p999_to_control",
                     summary->median[PROCESSOR_END_P999] / control.median[PROCESSOR_END_P999], 2);
        bench_figure("end_max_to_control",
                     summary->median[PROCESSOR_END_MAX] / control.median[PROCESSOR_END_MAX], 2);
        bench_figure("most_end_max_to_control",
                     summary->most[PROCESSOR_END_MAX] / control.most[PROCESSOR_END_MAX], 2);
        bench_figure("offered_to_control",
                     summary->median[PROCESSOR_OFFERED] / control.median[PROCESSOR_OFFERED], 3);
        return;
    }
}

static void report(const struct study *study, unsigned design, unsigned threads, unsigned load)
{
    char name[96];
    const char *design_name = study->designs[design]->name;
    const char *load_name = load_names[study->is_steady[load]];
    const struct summary summary = summarise(study, design, threads, load);
    snprintf(name, sizeof name, "%s_%u_%s", design_name, study->threads[threads], load_name);
    bench_line_begin("processor", name);
    bench_text("design", design_name);
    bench_count("threads", study->threads[threads]);
    bench_text("load", load_name);
    bench_figure("offered_per_s", summary.median[PROCESSOR_OFFERED], 0);
    bench_figure("exported_per_s", summary.median[PROCESSOR_EXPORTED], 0);
    bench_figure("least_exported_per_s", summary.least[PROCESSOR_EXPORTED], 0);
    bench_figure("best_exported_per_s", summary.most[PROCESSOR_EXPORTED], 0);
    bench_figure("dropped_percent", summary.median[PROCESSOR_DROPPED], 3);
    bench_figure("worker_cpu_percent", summary.median[PROCESSOR_WORKER_CPU], 3);
    bench_figure("least_worker_cpu_percent", summary.least[PROCESSOR_WORKER_CPU], 3);
    bench_figure("process_cpu_percent", summary.median[PROCESSOR_PROCESS_CPU], 2);
    bench_figure("worker_wakeups_per_s", summary.mean[PROCESSOR_WAKEUPS], 1);
    bench_figure("signals_per_s", summary.mean[PROCESSOR_SIGNALS], 1);
    bench_figure("end_p50_us", summary.median[PROCESSOR_END_P50], 4);
    bench_figure("end_p99_us", summary.median[PROCESSOR_END_P99], 3);
    bench_figure("first_second_end_p99_us", summary.median[PROCESSOR_FIRST_SECOND_END_P99], 3);
    bench_figure("end_p999_us", summary.median[PROCESSOR_END_P999], 3);
    bench_figure("end_max_us", summary.median[PROCESSOR_END_MAX], 1);
    bench_figure("least_end_max_us", summary.least[PROCESSOR_END_MAX], 1);
    bench_figure("most_end_max_us", summary.most[PROCESSOR_END_MAX], 1);
    bench_figure("end_max_unpreempted_us", summary.median[PROCESSOR_END_MAX_UNPREEMPTED], 1);
    report_ratios(study, &summary, threads, load);
    bench_count("rounds", study->rounds);
    bench_line_end();
}

int main(int count, char **arguments)
{
    static struct study study;
    read_options(&study, count, arguments);
    choose_the_usual(&study);
    for (unsigned round = 0; round < study.rounds; round++)
        run_round(&study, round);
    for (unsigned load = 0; load < study.load_count; load++)
        for (unsigned threads = 0; threads < study.thread_count; threads++)
            for (unsigned design = 0; design < study.design_count; design++)
                report(&study, design, threads, load);
    free(study.figures);
    return 0;
}
