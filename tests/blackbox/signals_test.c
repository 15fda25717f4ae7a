/* SPDX-License-Identifier: Apache-2.0 */
/* signals_test.c - what context.h says is always safe in signal handlers: to read what is current,
 * also where the signal has interrupted malloc or otel-c. */
#include "blackbox.h"
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SIGNALS = 5000, DEPTH = 40 };

static _Thread_local volatile sig_atomic_t is_in_handler;
static atomic_uint allocations;  /* in handlers */
static atomic_uint wrong;        /* what handlers have read */
static atomic_bool is_over;      /* for the thread that traces */
static otel_span_context wanted; /* all zeros: nothing is current */
static sem_t handled;
static uint64_t started_ns;
static otel_parents *waiting;

/* --- the allocator of this program and of the libraries --- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

static void note(void)
{
    if (is_in_handler)
        atomic_fetch_add(&allocations, 1);
}

void *malloc(size_t size)
{
    note();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    note();
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    note();
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    note();
    return __libc_memalign(alignment, size);
}

void free(void *memory)
{
    note();
    __libc_free(memory);
}

/* --- the handler --- */

static void read_current(int signal)
{
    (void)signal;
    is_in_handler = 1;
    const otel_span span = otel_current_span();
    const otel_span_context now = otel_span_get_context(span);
    const uint64_t time_ns = otel_now_ns();
    (void)otel_parents_add(waiting, &span); /* it is full soon */
    char hex[33];
    char tracestate[8];
    otel_trace_id_hex(&now, hex);
    otel_span_id_hex(&now, hex);
    const size_t length = otel_span_context_tracestate(&now, tracestate, sizeof tracestate);
    const bool is_wanted = otel_span_context_is_valid(&wanted);
    const bool is_right = memcmp(now.trace_id, wanted.trace_id, sizeof now.trace_id) == 0 &&
                          otel_span_context_is_valid(&now) == is_wanted &&
                          length == (is_wanted ? 3 : 0) &&
                          strcmp(tracestate, is_wanted ? "a=1" : "") == 0 && time_ns >= started_ns;
    if (!is_right)
        atomic_fetch_add(&wrong, 1);
    is_in_handler = 0;
    sem_post(&handled);
}

/* --- what is interrupted --- */

static otel_context arrive(void)
{
    const uint8_t id[16] = {1};
    wanted = otel_span_context_make(id, id, OTEL_TRACE_FLAG_SAMPLED, true, "a=1");
    return otel_context_with_span(otel_current_context(), otel_span_wrap(&wanted));
}

static void nest(otel_tracer *tracer, int depth)
{
    OTEL_SCOPED(span, tracer, "step");
    otel_span_set_int(span, "depth", depth);
    void *volatile memory = malloc((size_t)depth * 100); /* volatile: it is not left out */
    free(memory);
    const otel_span detached = otel_span_start(tracer, "detached", NULL);
    otel_span_set_string(detached, "key", "value");
    otel_span_end(detached);
    if (depth > 0)
        nest(tracer, depth - 1);
}

static void *trace(void *barrier)
{
    otel_tracer *const tracer = otel_tracer_get("signals", NULL);
    const otel_context parent = arrive();
    const otel_span root = otel_span_enter(tracer, "request", OTEL_SPAN_OPTIONS(.parent = &parent));
    pthread_barrier_wait(barrier);
    while (!is_over)
        nest(tracer, DEPTH);
    otel_span_end(root);
    return NULL;
}

static void assert_nothing_wrong(void)
{
    assert_int_equal(allocations, 0);
    assert_int_equal(wrong, 0);
}

static void a_handler_reads_that_nothing_is_current(void **state)
{
    (void)state;
    raise(SIGUSR1);
    sem_wait(&handled);
    assert_nothing_wrong();
}

static void a_handler_reads_the_current_span(void **state)
{
    (void)state;
    pthread_barrier_t barrier;
    pthread_t thread;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, trace, &barrier), 0);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < SIGNALS; i++) {
        pthread_kill(thread, SIGUSR1);
        while (sem_wait(&handled) != 0)
            continue;
    }
    is_over = true;
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    assert_nothing_wrong();
    assert_int_equal(stats_now().dropped[OTEL_DROP_REENTRANT], 0);
}

static otel_export_result forget(void *state, otel_export *call)
{
    (void)state;
    (void)call;
    return OTEL_EXPORT_DONE;
}

int main(void)
{
    const struct sigaction action = {.sa_handler = read_current};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handler_reads_that_nothing_is_current),
        cmocka_unit_test(a_handler_reads_the_current_span),
    };
    const otel_exporter exporter = OTEL_EXPORTER(.name = "forget", .export_batch = forget);
    if (sem_init(&handled, 0, 0) != 0 || sigaction(SIGUSR1, &action, NULL) != 0 ||
        otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1)) != OTEL_OK)
        return EXIT_FAILURE;
    started_ns = otel_now_ns();
    waiting = otel_parents_new(64);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    otel_parents_free(waiting);
    return failed + (otel_shutdown(5000) == OTEL_ERROR_TIMEOUT);
}
