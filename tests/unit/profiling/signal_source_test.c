/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/signal_source_test.c - specification of profiling/signal/signal_source.h,
 * and of sample_buffer.h, which its handler fills. This thread is the profiler's; others work until
 * they have been sampled. */
#include "common/base/atomic.h"
#include "common/clock/clock.h"
#include "profiling/signal/frame_walk.h"
#include "profiling/signal/sample_buffer.h"
#include "profiling/signal/signal_source.h"
#include "profiling/signal/thread_timers.h"
#include "tests/support/leaks.h"
#include "tests/support/said.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_NS = 1000000, ENOUGH = 5, OURS = SIGPROF };

static const struct oteli_source_options options = {
    .period_ns = PERIOD_NS, .ring_bytes = 1 << 16, .signal_number = OURS};

/* --- a thread that works --- */

struct worker {
    pthread_t thread;
    uint32_t id;
    uint32_t is_done;
    uint32_t turns;  /* of its work */
    uint32_t spoilt; /* errno has changed under its hands */
    bool blocks;
    const otel_thread_context_record *context;
};

static void block(bool blocks)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, OURS);
    pthread_sigmask(blocks ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

__attribute__((noinline)) static uint64_t burn(struct worker *worker)
{
    uint64_t sum = 1;
    while (oteli_load_relaxed_32(&worker->is_done) == 0)
        sum += oteli_add_full_32(&worker->turns, 1) * 2 + 1;
    return sum;
}

/* The last call of it, and what comes behind, is what a sample's caller lies in. */
__attribute__((noinline)) static void work_on(struct worker *worker)
{
    errno = EDOM;
    const uint64_t sum = burn(worker);
    if (errno != EDOM || sum == 0)
        oteli_store_relaxed_32(&worker->spoilt, 1);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    if (worker->blocks)
        block(true);
    otel_thread_ctx_v1 = worker->context;
    oteli_store_release_32(&worker->id, (uint32_t)syscall(SYS_gettid));
    work_on(worker);
    otel_thread_ctx_v1 = NULL;
    return NULL;
}

static void start_worker(struct worker *worker)
{
    assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
    while (oteli_load_acquire_32(&worker->id) == 0)
        sched_yield();
}

/* The kernel forgets a thread after its join: until then it is in lists of threads, and blocks
 * all. */
static void end_worker(struct worker *worker)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/self/task/%u", (unsigned)worker->id);
    oteli_store_release_32(&worker->is_done, 1);
    pthread_join(worker->thread, NULL);
    while (access(path, F_OK) == 0)
        sched_yield();
    assert_int_equal(worker->spoilt, 0);
}

/* What it has had of the processors. */
static int64_t worked_ms(const struct worker *worker)
{
    clockid_t clock;
    struct timespec now;
    assert_int_equal(pthread_getcpuclockid(worker->thread, &clock), 0);
    assert_int_equal(clock_gettime(clock, &now), 0);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* Until it has had so much more. */
static void let_work(const struct worker *worker, long ms)
{
    const int64_t until_ms = worked_ms(worker) + ms;
    while (worked_ms(worker) < until_ms)
        sched_yield();
}

/* --- what has been sampled of it --- */

struct taken {
    pid_t of;
    uint64_t samples;
    uint64_t others; /* of other threads */
    uint64_t periods;
    uint64_t with_callers;
    uint64_t deepest;
    struct oteli_sample last;
    uint64_t frames[OTELI_FRAMES_MAX];
};

static void take(void *state, const struct oteli_sample *sample)
{
    struct taken *taken = state;
    if (sample->thread != taken->of) {
        taken->others++;
        return;
    }
    taken->samples++;
    taken->periods += sample->periods;
    taken->with_callers += sample->depth > 1;
    if (taken->deepest < sample->depth)
        taken->deepest = sample->depth;
    taken->last = *sample;
    assert_true(sample->depth >= 1 && sample->depth <= OTELI_FRAMES_MAX);
    memcpy(taken->frames, sample->frames, sample->depth * sizeof sample->frames[0]);
}

/* Those of a test; what is left of them when it ends is stopped. */
static void *source;
static struct worker worker;

static void start_source_with(const struct oteli_source_options *with)
{
    assert_int_equal(oteli_signal_source.start(with, &source), 0);
    assert_non_null(source);
}

static void start_source(void)
{
    start_source_with(&options);
}

static void stop_source(void)
{
    if (source != NULL)
        oteli_signal_source.stop(source);
    source = NULL;
}

static void drain(struct taken *taken)
{
    struct oteli_source_counts counts = {0};
    oteli_signal_source.drain(source, take, taken, &counts);
}

static struct taken sample(void)
{
    struct taken taken = {.of = (pid_t)worker.id};
    while (taken.samples < ENOUGH) {
        drain(&taken);
        sched_yield();
    }
    return taken;
}

static void end_test_worker(void)
{
    if (worker.id != 0)
        end_worker(&worker);
    worker = (struct worker){0};
}

static int end(void **state)
{
    (void)state;
    stop_source();
    end_test_worker();
    return 0;
}

AROUND_EACH(NULL, end);

/* --- tests --- */

TEST(samples_threads_that_were_there_before_and_that_come_later)
{
    struct oteli_source_options other = options;
    other.signal_number = SIGRTMAX - 1;
    for (int is_later = 0; is_later < 2; is_later++) {
        const uint64_t before_ns = oteli_monotonic_ns();
        if (!is_later)
            start_worker(&worker);
        start_source_with(is_later ? &other : &options);
        if (is_later)
            start_worker(&worker);
        const struct taken taken = sample();
        const uint64_t after_ns = oteli_monotonic_ns();
        assert_true(taken.periods >= taken.samples);
        assert_true(taken.last.time_ns >= before_ns && taken.last.time_ns <= after_ns);
        assert_false(taken.last.has_context);
        assert_int_equal(taken.others, 0); /* this thread is not sampled */
        (void)end(NULL);
    }
}

TEST(a_sample_begins_where_the_thread_was_and_goes_up_its_callers)
{
    start_worker(&worker);
    start_source();
    struct taken taken = {.of = (pid_t)worker.id};
    while (taken.with_callers < ENOUGH) {
        drain(&taken);
        sched_yield();
    }
#ifndef OTELI_TSAN /* which delivers signals in functions of its own */
    const uint64_t start = (uint64_t)(uintptr_t)burn; /* of 256 bytes of code, at most, … */
    bool is_in_burn = false;
    for (size_t i = 0; i < 3; i++) /* … or what it does with atomics */
        is_in_burn |= taken.frames[i] - start < 256;
    assert_true(is_in_burn);
#endif
    assert_true(taken.deepest > 1);
    assert_non_null(taken.last.stack);
    assert_int_equal(taken.last.stack_size, sizeof(uint64_t));
}

TEST(a_sample_has_the_span_that_its_thread_publishes)
{
    static const otel_thread_context_record contexts[] = {
        {.trace_id = {1}, .span_id = {2}},
        {.trace_id = {1, 2, 3}, .span_id = {4, 5, 6}, .valid = 1, .trace_flags = 1}};
    for (uint8_t valid = 0; valid < 2; valid++) {
        worker.context = &contexts[valid];
        start_worker(&worker);
        start_source();
        const struct taken taken = sample();
        assert_int_equal(taken.last.has_context, valid);
        if (valid)
            assert_memory_equal(&taken.last.context, &contexts[1], sizeof contexts[1]);
        (void)end(NULL);
    }
}

TEST(samples_lost_for_want_of_room_are_counted)
{
    struct oteli_source_options small = options;
    struct oteli_source_counts counts = {0};
    struct taken taken = {0};
    small.ring_bytes = 1; /* which becomes 4 KiB, for some fifty samples at most */
    start_worker(&worker);
    start_source_with(&small);
    for (long ms = 200; counts.lost == 0; ms *= 2) { /* there are kernels with 100 ticks a second */
        let_work(&worker, ms);
        oteli_signal_source.drain(source, take, &taken, &counts);
    }
    assert_true(counts.lost != 0);
}

/* A timer that comes less often than it is asked to says how often it should have. */
TEST(periods_add_up_to_the_time_that_a_thread_has_worked)
{
    start_worker(&worker);
    start_source();
    struct taken taken = sample();
    const int64_t before_ms = worked_ms(&worker) - (int64_t)taken.periods;
    for (const int64_t until_ms = before_ms + 300; worked_ms(&worker) < until_ms; sched_yield())
        drain(&taken); /* what found no room would be missing */
    const int64_t after_ms = worked_ms(&worker);
    drain(&taken);
    assert_true((int64_t)taken.periods * 4 >= (after_ms - before_ms) * 3);
}

/* --- the program's signals --- */

static uint32_t program_signals;

static void on_program_signal(int signal_number)
{
    (void)signal_number;
    oteli_add_full_32(&program_signals, 1);
}

static struct sigaction action_now(void)
{
    struct sigaction now;
    assert_int_equal(sigaction(OURS, NULL, &now), 0);
    return now;
}

static void set_handler(void (*handler)(int))
{
    const struct sigaction action = {.sa_handler = handler};
    assert_int_equal(sigaction(OURS, &action, NULL), 0);
}

/* No call of the program fails for it that can go on, and nothing comes between. */
TEST(the_handler_disturbs_as_little_as_it_can)
{
    start_source();
    const struct sigaction ours = action_now();
    assert_int_equal(ours.sa_flags & (SA_RESTART | SA_ONSTACK), SA_RESTART | SA_ONSTACK);
    for (int i = 1; i < 32; i++)
        assert_true(i == SIGKILL || i == SIGSTOP || sigismember(&ours.sa_mask, i));
}

TEST(a_handler_of_the_program_is_left_alone)
{
    set_handler(on_program_signal);
    assert_int_equal(oteli_signal_source.start(&options, &source), EBUSY);
    assert_null(source);
    assert_ptr_equal(action_now().sa_handler, on_program_signal);
    set_handler(SIG_DFL);
}

TEST(what_the_signal_did_before_comes_back)
{
    void (*const before[])(int) = {SIG_DFL, SIG_IGN};
    for (unsigned i = 0; i < 2; i++) {
        set_handler(before[i]);
        start_source();
        stop_source();
        assert_ptr_equal(action_now().sa_handler, before[i]);
    }
    set_handler(SIG_DFL);
}

TEST(a_handler_that_comes_later_ends_the_sampling)
{
    struct taken taken = {0};
    start_worker(&worker);
    start_source();
    (void)sample();
    set_handler(on_program_signal);
    drain(&taken); /* which notices it */
    const uint32_t before = oteli_load_relaxed_32(&program_signals);
    let_work(&worker, 50);
    end_test_worker();
    drain(&taken);
    stop_source();

    assert_true(oteli_load_relaxed_32(&program_signals) <= before + 1);
    assert_ptr_equal(action_now().sa_handler, on_program_signal);
    set_handler(SIG_DFL);
}

static bool is_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, OURS) == 1;
}

/* By default it would end this process. */
TEST(a_signal_that_is_pending_at_the_stop_does_no_harm)
{
    start_source();
    block(true);
    raise(OURS);
    assert_true(is_pending());
    stop_source();
    block(false);
    assert_false(is_pending());
}

/* Nor is a timer of a session before this one, for instance. */
TEST(a_signal_of_somebody_else_is_no_sample)
{
    const pid_t self = (pid_t)syscall(SYS_gettid);
    struct taken taken = {.of = self};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = OURS};
    const struct itimerspec soon = {.it_value = {.tv_nsec = 1}};
    timer_t timer;
    start_source();
    raise(OURS);
    kill(getpid(), OURS);
    event.sigev_value.sival_ptr = (void *)(uintptr_t)(UINT64_C(0x7fffffff) << 32 | (uint32_t)self);
    block(true);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    assert_int_equal(timer_settime(timer, 0, &soon, NULL), 0);
    while (!is_pending())
        sched_yield();
    block(false); /* here it comes */
    drain(&taken);

    assert_int_equal(taken.samples + taken.others, 0);
    timer_delete(timer);
}

TEST(only_signals_that_are_free_for_it_are_usable)
{
    const int not_usable[] = {0, -1, SIGSEGV, SIGKILL, SIGSTOP, 32, 33, 65, 1000};
    for (unsigned i = 0; i < sizeof not_usable / sizeof not_usable[0]; i++) {
        struct oteli_source_options wrong = options;
        void *none;
        wrong.signal_number = not_usable[i];
        assert_false(oteli_signal_is_usable(not_usable[i]));
        assert_int_equal(oteli_signal_source.start(&wrong, &none), EINVAL);
    }
    assert_true(oteli_signal_is_usable(SIGPROF));
    assert_true(oteli_signal_is_usable(SIGURG));
    assert_true(oteli_signal_is_usable(SIGRTMAX));
}

/* --- what is said --- */

/* Before those that say it too: a line of one kind is said once in ten seconds. */
TEST(that_nobody_is_sampled_is_said_at_once)
{
    worker = (struct worker){.blocks = true};
    said_begin(OTEL_LOG_WARN);
    start_worker(&worker);
    start_source();
    stop_source();
    said_end();
    assert_non_null(strstr(said, "all threads block signal"));
}

/* --- a stop while a handler is under way --- */

/* The walk of a stack and the wait of a stop come here first (--wrap), so that a handler stays
 * where it is until it is let go. All atomic. */
static uint32_t is_held;    /* handlers stay */
static uint32_t inside;     /* handlers that do */
static uint32_t waits;      /* of a stop; those of others are left alone */
static uint32_t lets_go_at; /* so many of them; 0: this is not the test */
static uint32_t forks_at;

size_t __wrap_oteli_frame_walk(const struct oteli_registers *registers,
                               struct oteli_stack_view *view, size_t most, uint64_t *found);
size_t __real_oteli_frame_walk(const struct oteli_registers *registers,
                               struct oteli_stack_view *view, size_t most, uint64_t *found);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);
int __real_nanosleep(const struct timespec *wanted, struct timespec *left);

size_t __wrap_oteli_frame_walk(const struct oteli_registers *registers,
                               struct oteli_stack_view *view, size_t most, uint64_t *found)
{
    oteli_add_full_32(&inside, 1);
    while (oteli_load_acquire_32(&is_held) != 0)
        sched_yield();
    oteli_add_full_32(&inside, UINT32_MAX);
    return __real_oteli_frame_walk(registers, view, most, found);
}

/* In a child, which has none of the threads that are sampled: its stop waits for nobody. */
static int start_and_stop(void)
{
    waits = 0;
    lets_go_at = UINT32_MAX; /* nobody would go */
    forks_at = 0;
    start_source();
    stop_source();
    return waits != 0;
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    if (lets_go_at == 0)
        return __real_nanosleep(wanted, left);
    waits++;
    if (waits == forks_at)
        check_child(start_and_stop);
    if (waits == lets_go_at) {
        const uint32_t before = oteli_load_relaxed_32(&worker.turns);
        oteli_store_release_32(&is_held, 0);
        while (oteli_load_relaxed_32(&worker.turns) == before)
            sched_yield();
    }
    return 0;
}

/* A stop, when there is a handler that stays for so many waits. */
static void stop_with_handler(uint32_t for_waits)
{
    waits = 0;
    lets_go_at = for_waits;
    oteli_store_release_32(&is_held, 1);
    start_source();
    while (oteli_load_acquire_32(&inside) == 0)
        sched_yield();
    stop_source();
    lets_go_at = 0;
}

TEST(a_stop_waits_for_the_handler_and_frees_all)
{
    start_worker(&worker);
    for (forks_at = 0; forks_at <= 2; forks_at += 2) { /* in the midst of it */
        oteli_leaks_begin();
        stop_with_handler(3);
        assert_int_equal(waits, 3);
        oteli_leaks_check();
    }
    forks_at = 0;
}

TEST(a_handler_that_stays_keeps_the_memory)
{
    start_worker(&worker);
    oteli_leaks_begin();
    stop_with_handler(UINT32_MAX);
    assert_true(waits > 3 && waits < 10000);
    assert_true(oteli_leaks_live() != 0);
    oteli_store_release_32(&is_held, 0);
    start_source();
    stop_source();
}

/* --- fork, and again --- */

static int life_of_child(void)
{
    oteli_signal_source.forget(source);
    worker = (struct worker){0}; /* which is not in this process */
    start_worker(&worker);
    if (oteli_signal_source.start(&options, &source) != 0)
        return 2;
    const struct taken taken = sample();
    (void)end(NULL);
    return action_now().sa_handler == SIG_DFL && taken.samples >= ENOUGH ? 0 : 3;
}

TEST(a_forked_child_has_none_and_may_start_its_own)
{
    start_worker(&worker);
    start_source();
    (void)sample();
    check_child(life_of_child);
    assert_true(sample().samples >= ENOUGH); /* nothing has changed here */
}

/* --- the buffer --- */

enum { LOOPS = 10000 };

static struct oteli_sample_buffer buffer;

static int begin_buffer(void **state)
{
    (void)state;
    return oteli_sample_buffer_init(&buffer, 1) ? 0 : 1;
}

static int end_buffer(void **state)
{
    (void)state;
    oteli_sample_buffer_fini(&buffer);
    return 0;
}

#define BUFFER_TEST(name) TEST_WITH(begin_buffer, end_buffer, name)

static struct oteli_sample_slot *reserve(uint64_t time_ns)
{
    struct oteli_sample_slot *slot = oteli_sample_buffer_reserve(&buffer);
    if (slot != NULL)
        slot->sample.time_ns = time_ns;
    return slot;
}

static bool push(uint64_t time_ns)
{
    struct oteli_sample_slot *slot = reserve(time_ns);
    if (slot != NULL)
        oteli_sample_buffer_publish(slot);
    return slot != NULL;
}

static void expect(uint64_t time_ns)
{
    const struct oteli_sample *oldest = oteli_sample_buffer_oldest(&buffer);
    assert_non_null(oldest);
    assert_true(oldest->time_ns == time_ns);
    oteli_sample_buffer_give_back(&buffer);
}

BUFFER_TEST(goes_round_for_ever)
{
    for (uint32_t i = 0; i < LOOPS; i++) {
        assert_true(push(i));
        assert_true(push(i + 1));
        expect(i);
        expect(i + 1);
    }
    assert_null(oteli_sample_buffer_oldest(&buffer));
}

BUFFER_TEST(waits_for_one_that_is_being_written)
{
    struct oteli_sample_slot *slot = reserve(40);
    assert_non_null(slot);
    assert_true(push(30));
    assert_null(oteli_sample_buffer_oldest(&buffer));
    oteli_sample_buffer_publish(slot);
    expect(40);
    expect(30);
}

BUFFER_TEST(refuses_and_counts_what_there_is_no_slot_for)
{
    for (uint64_t i = 0; i < buffer.count; i++)
        assert_true(push(i));
    assert_false(push(1));
    assert_int_equal(buffer.lost, 1);
    expect(0);
    assert_true(push(2));
    assert_false(push(3));
    expect(1);
}
