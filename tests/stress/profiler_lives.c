/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/profiler_lives.c - the profiler in programs of many kinds, each of them a process:
 * where perf events are refused, as an ordinary user, with threads that come and go, with many that
 * were there before, and in programs that end without a word.
 *
 * Whether the kernel allows perf events is the kernel's: what is asked for is that samples come,
 * and that the statistics say with what. */
#include "common/base/atomic.h"
#include "profiling/profile/profile_model.h"
#include "tests/support/oracle.h"

#include <otel/profiler.h>
#include <otel/thread_context.h>

#include <errno.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FOREVER_MS = INT32_MAX, NOBODY = 65534, ENOUGH = 5, MANY = 40, SECONDS = 60, MOST = 1024 };

static unsigned scale;

/* --- where profiles go --- */

static uint64_t exported;     /* atomic */
static uint32_t threads_seen; /* atomic */
static pid_t seen[MOST];

static otel_status take_profile(void *state, const otel_profile *profile, int64_t timeout_ms)
{
    (void)state;
    (void)timeout_ms;
    uint32_t count = oteli_load_relaxed_32(&threads_seen);
    for (uint32_t i = 0; i < profile->threads.count; i++) {
        const struct oteli_profile_thread *thread = oteli_interner_at(&profile->threads, i);
        uint32_t at = 0;
        while (at < count && seen[at] != thread->id)
            at++;
        if (at == count && count < MOST)
            seen[count++] = thread->id;
    }
    oteli_store_release_32(&threads_seen, count);
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const struct oteli_profile_sample *sample = oteli_interner_at(&profile->samples, i);
        oteli_add_full_64(&exported, sample->count);
    }
    return OTEL_OK;
}

static otel_status start(otel_profiler_source source, uint32_t hz, otel_profiler **profiler)
{
    static int state;
    const otel_profiler_options options = {
        .size = sizeof options,
        .source = source,
        .frequency_hz = hz,
        .export_interval_ms = 20,
        .exporter = {.state = &state, .export_profile = take_profile}};
    return otel_profiler_start(&options, profiler);
}

static otel_profiler_stats stats_of(const otel_profiler *profiler)
{
    otel_profiler_stats stats = {.size = sizeof stats};
    STRESS_CHECK(otel_profiler_get_stats(profiler, &stats) == OTEL_OK);
    STRESS_CHECK(stats.samples == stats.by_chain + stats.by_scan + stats.by_thread +
                                      stats.unlabelled + stats.no_history);
    STRESS_CHECK(stats.samples >= stats.exported + stats.dropped);
    return stats;
}

/* --- threads that work --- */

static uint32_t is_over; /* atomic */
static const otel_thread_context_record span = {.trace_id = {1}, .span_id = {2}, .valid = 1};

/* With the C library's locks, which a handler that allocated would wait for. */
static void *work(void *unused)
{
    otel_thread_ctx_v1 = &span;
    while (oteli_load_relaxed_32(&is_over) == 0)
        for (unsigned i = 0; i < 100; i++)
            free(malloc(64 + i));
    otel_thread_ctx_v1 = NULL;
    return unused;
}

static void start_workers(pthread_t *threads, unsigned count)
{
    oteli_store_release_32(&is_over, 0);
    for (unsigned i = 0; i < count; i++)
        STRESS_CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
}

static void end_workers(const pthread_t *threads, unsigned count)
{
    oteli_store_release_32(&is_over, 1);
    stress_join(threads, count);
}

static otel_profiler_stats sample_one_worker(otel_profiler_source source)
{
    pthread_t worker;
    otel_profiler *profiler;
    start_workers(&worker, 1);
    STRESS_CHECK(start(source, 1000, &profiler) == OTEL_OK);
    while (oteli_load_acquire_64(&exported) < ENOUGH)
        sched_yield();
    STRESS_CHECK(otel_profiler_flush(profiler, FOREVER_MS) == OTEL_OK);
    const otel_profiler_stats stats = stats_of(profiler);
    STRESS_CHECK(otel_profiler_stop(profiler, FOREVER_MS) == OTEL_OK);
    end_workers(&worker, 1);
    return stats;
}

/* --- where perf events are refused --- */

/* As container runtimes do it by default. */
static void refuse_perf_events(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    STRESS_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    STRESS_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void live_refused(void)
{
    refuse_perf_events();
    const otel_profiler_stats stats = sample_one_worker(OTEL_PROFILER_AUTO);
    STRESS_CHECK(stats.source == OTEL_PROFILER_SIGNAL);
    STRESS_CHECK(stats.refused_errno == EPERM);
    STRESS_CHECK(strstr(stats.why, "seccomp") != NULL);
    STRESS_CHECK(stats.by_thread != 0);
}

static void live_refused_and_asked_for(void)
{
    otel_profiler *profiler = NULL;
    refuse_perf_events();
    STRESS_CHECK(start(OTEL_PROFILER_PERF, 99, &profiler) == OTEL_ERROR_SYSTEM);
    STRESS_CHECK(profiler == NULL);
}

static void live_as_ordinary_user(void)
{
    if (geteuid() == 0) {
        STRESS_CHECK(setgid(NOBODY) == 0);
        STRESS_CHECK(setuid(NOBODY) == 0);
        prctl(PR_SET_DUMPABLE, 1);
    }
    const otel_profiler_stats stats = sample_one_worker(OTEL_PROFILER_AUTO);
    printf("as an ordinary user: %s (%s)\n",
           stats.source == OTEL_PROFILER_PERF ? "perf events" : "a signal", stats.why);
    oteli_exchange_full_64(&exported, 0);
    STRESS_CHECK(sample_one_worker(OTEL_PROFILER_SIGNAL).by_thread != 0);
}

/* --- where /proc is not ours --- */

static bool enter_namespace(int kind)
{
    const bool is_in = unshare(kind) == 0 || unshare(CLONE_NEWUSER | kind) == 0;
    if (!is_in)
        printf("no namespaces for us here: %s\n", strerror(errno));
    return is_in;
}

static int start_none(void *unused)
{
    otel_profiler *profiler = NULL;
    (void)unused;
    STRESS_CHECK(start(OTEL_PROFILER_AUTO, 99, &profiler) == OTEL_ERROR_SYSTEM);
    STRESS_CHECK(start(OTEL_PROFILER_PERF, 99, &profiler) == OTEL_ERROR_SYSTEM);
    STRESS_CHECK(start(OTEL_PROFILER_SIGNAL, 99, &profiler) == OTEL_ERROR_SYSTEM);
    STRESS_CHECK(profiler == NULL);
    return 0;
}

/* Threads have other numbers there, and nothing would be sampled. */
static void live_in_another_pid_namespace(void)
{
    if (!enter_namespace(CLONE_NEWPID))
        return;
    STRESS_CHECK(stress_in_child(start_none, NULL) == 0);
    _exit(0); /* who looks for leaks at exit() can make no thread any more, here as well as there */
}

/* --- threads that come and go --- */

static unsigned count_timers(void)
{
    char line[128];
    unsigned count = 0;
    FILE *file = fopen("/proc/self/timers", "re");
    if (file == NULL)
        return 0; /* this kernel does not show them */
    while (fgets(line, sizeof line, file) != NULL)
        count += strncmp(line, "ID:", 3) == 0;
    fclose(file);
    return count;
}

static void *live_shortly(void *unused)
{
    for (unsigned i = 0; i < 200; i++)
        free(malloc(100 + i));
    return unused;
}

static void *come_and_go(void *lives)
{
    pthread_t threads[8];
    for (uint64_t i = *(const uint64_t *)lives; i != 0; i--) {
        for (unsigned t = 0; t < 8; t++)
            STRESS_CHECK(pthread_create(&threads[t], NULL, live_shortly, NULL) == 0);
        for (unsigned t = 0; t < 8; t++)
            pthread_join(threads[t], NULL);
    }
    return NULL;
}

static void churn(otel_profiler_source source)
{
    uint64_t lives = UINT64_C(200) * scale;
    pthread_t makers[2];
    pthread_t worker;
    otel_profiler *profiler;
    start_workers(&worker, 1);
    STRESS_CHECK(start(source, 2000, &profiler) == OTEL_OK);
    for (unsigned i = 0; i < 2; i++)
        STRESS_CHECK(pthread_create(&makers[i], NULL, come_and_go, &lives) == 0);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(makers[i], NULL);
    while (oteli_load_acquire_64(&exported) < ENOUGH)
        sched_yield();
    const otel_profiler_stats stats = stats_of(profiler);
    STRESS_CHECK(otel_profiler_stop(profiler, FOREVER_MS) == OTEL_OK);
    end_workers(&worker, 1);
    STRESS_CHECK(count_timers() == 0);
    printf("%" PRIu64 " threads came and went: %" PRIu64 " samples, %" PRIu64 " lost\n", lives * 16,
           stats.samples, stats.kernel_lost);
}

static void live_with_short_threads(void)
{
    churn(OTEL_PROFILER_SIGNAL);
}

static void live_with_short_threads_by_default(void)
{
    churn(OTEL_PROFILER_AUTO);
}

/* The profiler comes and goes while threads do. */
static void live_with_short_profilers(void)
{
    uint64_t lives = UINT64_C(300) * scale;
    pthread_t maker;
    STRESS_CHECK(pthread_create(&maker, NULL, come_and_go, &lives) == 0);
    for (uint64_t i = UINT64_C(30) * scale; i != 0; i--) {
        otel_profiler *profiler;
        STRESS_CHECK(start(i % 2 != 0 ? OTEL_PROFILER_SIGNAL : OTEL_PROFILER_AUTO, 4000,
                           &profiler) == OTEL_OK);
        STRESS_CHECK(otel_profiler_flush(profiler, FOREVER_MS) == OTEL_OK);
        STRESS_CHECK(otel_profiler_stop(profiler, FOREVER_MS) == OTEL_OK);
    }
    pthread_join(maker, NULL);
    STRESS_CHECK(count_timers() == 0);
}

/* --- threads that were there before --- */

static void sample_all(otel_profiler_source source)
{
    pthread_t threads[MANY];
    otel_profiler *profiler;
    oteli_store_release_32(&threads_seen, 0);
    start_workers(threads, MANY);
    STRESS_CHECK(start(source, 1000, &profiler) == OTEL_OK);
    while (oteli_load_acquire_32(&threads_seen) < MANY)
        sched_yield();
    STRESS_CHECK(otel_profiler_stop(profiler, FOREVER_MS) == OTEL_OK);
    end_workers(threads, MANY);
}

static void live_with_many_threads(void)
{
    sample_all(OTEL_PROFILER_SIGNAL);
    sample_all(OTEL_PROFILER_AUTO);
}

/* --- programs that end without a word --- */

static void live_without_end(void)
{
    pthread_t workers[2];
    otel_profiler *profiler;
    start_workers(workers, 2);
    STRESS_CHECK(start(OTEL_PROFILER_SIGNAL, 4000, &profiler) == OTEL_OK);
    while (oteli_load_acquire_64(&exported) < ENOUGH)
        sched_yield();
    exit(0);
}

static void live_until_main_thread_leaves(void)
{
    otel_profiler *profiler;
    STRESS_CHECK(start(OTEL_PROFILER_AUTO, 99, &profiler) == OTEL_OK);
    STRESS_CHECK(otel_profiler_stop(profiler, FOREVER_MS) == OTEL_OK); /* the program's duty */
    pthread_exit(NULL);
}

static int be_another(void *unused)
{
    (void)unused;
    return execl("/bin/true", "true", (char *)NULL);
}

/* Programs that it starts know nothing of it. */
static void live_and_start_programs(void)
{
    pthread_t worker;
    otel_profiler *profiler;
    start_workers(&worker, 1);
    STRESS_CHECK(start(OTEL_PROFILER_SIGNAL, 4000, &profiler) == OTEL_OK);
    for (uint64_t i = UINT64_C(20) * scale; i != 0; i--) {
        STRESS_CHECK(stress_in_child(be_another, NULL) == 0);
    }
    STRESS_CHECK(otel_profiler_stop(profiler, FOREVER_MS) == OTEL_OK);
    end_workers(&worker, 1);
}

/* --- all of them --- */

struct life {
    const char *name;
    void (*live)(void);
};

static int begin(void *argument)
{
    alarm(SECONDS * scale);
    ((const struct life *)argument)->live();
    exit(0);
}

int main(int argc, char **argv)
{
    static struct life lives[] = {
        {"perf events refused", live_refused},
        {"perf events refused and asked for", live_refused_and_asked_for},
        {"an ordinary user", live_as_ordinary_user},
        {"another PID namespace", live_in_another_pid_namespace},
        {"short threads", live_with_short_threads},
        {"short threads, default source", live_with_short_threads_by_default},
        {"short profilers", live_with_short_profilers},
        {"many threads", live_with_many_threads},
        {"no stop", live_without_end},
        {"the main thread leaves", live_until_main_thread_leaves},
        {"starts programs", live_and_start_programs},
    };
    scale = stress_scale(argc, argv, 20);
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        printf("%s\n", lives[i].name);
        STRESS_CHECK(stress_in_child(begin, &lives[i]) == 0);
    }
    return 0;
}
