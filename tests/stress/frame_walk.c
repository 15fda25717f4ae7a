/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/frame_walk.c - a thread takes memory away and brings it back, as fast as it can, while
 * frame pointers of another one point there, as the numbers do that functions without frames leave in
 * their register: first with walks one behind the other, and then with samples of the signal source. */
#include "common/atomic.h"
#include "profiling/frame_walk.h"
#include "profiling/signal_source.h"
#include "profiling/thread_timers.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    STACK_BYTES = 1 << 18,
    FAR_BYTES = 1 << 16,
    FAR_WORD = FAR_BYTES / 16, /* in its midst */
    WALKS = 50000,
    SAMPLES = 100,
    PERIOD_NS = 200000,
    CODE = 0x400000
};

static char *area;         /* a stack, and what comes and goes behind it */
static uint32_t is_over;   /* atomic */
static uint32_t worker_id; /* atomic; 0: it is not there yet */
static uint64_t changes;   /* atomic */

static uint64_t *far_words(void)
{
    return (uint64_t *)(void *)(area + STACK_BYTES);
}

static void *change(void *unused)
{
    while (oteli_load_relaxed_32(&is_over) == 0)
        for (int protection = 0; protection <= (PROT_READ | PROT_WRITE);
             protection += PROT_READ | PROT_WRITE) {
            STRESS_CHECK(mmap(area + STACK_BYTES, FAR_BYTES, protection,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
            oteli_add_full_64(&changes, 1);
        }
    return unused;
}

static void start_changes(pthread_t *thread)
{
    const uint64_t before = oteli_load_relaxed_64(&changes);
    oteli_store_relaxed_32(&is_over, 0);
    STRESS_CHECK(pthread_create(thread, NULL, change, NULL) == 0);
    while (oteli_load_relaxed_64(&changes) == before)
        stress_sleep_us(100);
}

static void end_changes(pthread_t thread)
{
    oteli_store_relaxed_32(&is_over, 1);
    pthread_join(thread, NULL);
}

/* --- walks --- */

static void walk(uint64_t count)
{
    static struct oteli_stack_view view;
    uint64_t frames[4];
    pthread_t thread;
    uint64_t ends[3] = {0};
    uint64_t *const stack = (uint64_t *)(void *)area;
    const struct oteli_registers registers = {
        .pc = CODE, .sp = (uint64_t)(uintptr_t)stack, .fp = (uint64_t)(uintptr_t)(stack + 10)};
    stack[10] = (uint64_t)(uintptr_t)(far_words() + FAR_WORD);
    stack[11] = CODE;
    view.process = getpid();
    start_changes(&thread);
    for (uint64_t i = 0; i < count; i++) {
        oteli_stack_view_begin(&view, registers.sp, registers.sp + STACK_BYTES + FAR_BYTES);
        const size_t depth = oteli_frame_walk(&registers, &view, 4, frames);
        STRESS_CHECK(depth == 1 && frames[0] == CODE);
        ends[view.copied_size == 0]++;
    }
    end_changes(thread);
    printf("%" PRIu64 " walks to memory that was there, %" PRIu64 " to none, %" PRIu64 " changes\n",
           ends[0], ends[1], oteli_load_relaxed_64(&changes));
}

/* --- samples --- */

static __attribute__((noinline)) uint32_t burn(uint32_t value)
{
    while (oteli_load_relaxed_32(&is_over) == 0)
        value = value * 1664525 + 1013904223;
    return value;
}

/* Says of its caller that it is far away, while it works. */
static __attribute__((noinline)) uint32_t burn_as_if_called_from_afar(uint32_t value)
{
    volatile uint64_t *record = __builtin_frame_address(0);
    const uint64_t caller = record[0];
    record[0] = (uint64_t)(uintptr_t)(far_words() + FAR_WORD);
    value = burn(value);
    record[0] = caller;
    return value;
}

static void *work(void *argument)
{
    oteli_store_release_32(&worker_id, (uint32_t)process_this_thread());
    const uint32_t value = burn_as_if_called_from_afar((uint32_t)(uintptr_t)argument + 1);
    return (void *)(uintptr_t)value; /* NOLINT(performance-no-int-to-ptr) */
}

static void take(void *state, const struct oteli_sample *sample)
{
    uint64_t *samples = state;
    *samples += sample->thread == (pid_t)oteli_load_relaxed_32(&worker_id) && sample->depth >= 2;
}

static void sample_until(uint64_t count)
{
    const struct oteli_source_options options = {
        .period_ns = PERIOD_NS, .ring_bytes = 1 << 16, .signal_number = SIGPROF};
    struct oteli_source_counts counts;
    pthread_attr_t attributes;
    pthread_t worker;
    pthread_t changer;
    void *source;
    uint64_t samples = 0;
    oteli_store_relaxed_32(&is_over, 0);
    pthread_attr_init(&attributes);
    STRESS_CHECK(pthread_attr_setstack(&attributes, area, STACK_BYTES) == 0);
    STRESS_CHECK(pthread_create(&worker, &attributes, work, NULL) == 0);
    while (oteli_load_acquire_32(&worker_id) == 0)
        stress_sleep_us(100);
    STRESS_CHECK(oteli_signal_source.start(&options, &source) == 0); /* all of it is there now */
    start_changes(&changer);
    while (samples < count) {
        stress_sleep_us(5000);
        oteli_signal_source.drain(source, take, &samples, &counts);
    }
    end_changes(changer);
    pthread_join(worker, NULL);
    oteli_signal_source.stop(source);
    pthread_attr_destroy(&attributes);
    printf("%" PRIu64 " samples\n", samples);
}

int main(int argc, char **argv)
{
    const uint64_t scale = stress_scale(argc, argv, 50);
    void *mapped = mmap(NULL, STACK_BYTES + FAR_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    STRESS_CHECK(mapped != MAP_FAILED);
    area = mapped;
    walk(WALKS * scale);
    sample_until(SAMPLES * scale);
    return 0;
}
