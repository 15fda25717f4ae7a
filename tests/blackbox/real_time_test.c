/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of different priorities use one started span on one core. A real-time thread that finds
 * the span in use by a thread of a lower priority gives the core away until that one is done. */
#include "blackbox.h"
#include <dlfcn.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SKIPPED = 77, HANGING_S = 60, CALLS = 5000, LONG_NAME = 4000, URGENT = 2 };

static otel_tracer *tracer;
static otel_span span;

struct urgent {
    int priority;
    sem_t may_start;
    long gave_way; /* how often it slept in its call */
};
static struct urgent urgent[URGENT] = {{.priority = 10}, {.priority = 20}};

/* The thread that gives the span a long name, which takes memory while the span is locked. */
static __thread bool is_holder;
static bool were_started;

void *realloc(void *old, size_t size)
{
    static void *(*real)(void *, size_t);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "realloc");
    if (is_holder && size >= LONG_NAME && !were_started) {
        were_started = true;
        for (int i = 0; i < URGENT; i++)
            sem_post(&urgent[i].may_start); /* it runs at once, and this thread does not */
    }
    return real(old, size);
}

static long times_it_slept(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw;
}

static void *set_while_it_is_held(void *argument)
{
    struct urgent *self = argument;
    const char *key = self->priority == 10 ? "low" : "high";
    sem_wait(&self->may_start);
    const long before = times_it_slept();
    otel_span_set_int(span, key, self->priority);
    self->gave_way = times_it_slept() - before;
    return NULL;
}

static void start_thread(pthread_t *thread, void *(*run)(void *), void *argument, int priority)
{
    pthread_attr_t attributes;
    const struct sched_param parameter = {.sched_priority = priority};
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &parameter);
    assert_int_equal(pthread_create(thread, &attributes, run, argument), 0);
    pthread_attr_destroy(&attributes);
}

/* The one span that was exported, and how many attributes it has. */
static otel_span_view exported(size_t *attributes)
{
    otel_span_view view;
    otel_attribute_view attribute;
    assert_int_equal(otel_flush(5000), OTEL_OK);
    assert_int_equal(otel_memory_count(memory), 1);
    assert_true(otel_memory_span(memory, 0, &view));
    otel_slice rest = view.attributes;
    *attributes = 0;
    while (otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute))
        ++*attributes;
    return view;
}

static void test_urgent_threads_give_way_to_a_holder_of_lower_priority(void **state)
{
    (void)state;
    pthread_t threads[URGENT];
    char name[LONG_NAME + 1];
    size_t attributes;
    memset(name, 'n', LONG_NAME);
    name[LONG_NAME] = '\0';
    span = otel_span_start(tracer, "shared", NULL);
    for (int i = 0; i < URGENT; i++)
        start_thread(&threads[i], set_while_it_is_held, &urgent[i], urgent[i].priority);

    is_holder = true;
    otel_span_update_name(span, name);
    is_holder = false;
    assert_true(were_started); /* while the span was locked */

    for (int i = 0; i < URGENT; i++)
        pthread_join(threads[i], NULL);
    otel_span_end(span);
    assert_true(urgent[0].gave_way > 0);
    assert_true(urgent[1].gave_way > 0);
    assert_int_equal(exported(&attributes).name.length, LONG_NAME);
    assert_int_equal(attributes, URGENT);
}

static void *use_often(void *unused)
{
    (void)unused;
    for (int i = 0; i < CALLS; i++) {
        otel_span_set_int(span, "count", i);
        otel_span_set_string(span, "text", "some text");
    }
    otel_span_end(span);
    return NULL;
}

static void test_threads_of_three_priorities_finish(void **state)
{
    (void)state;
    pthread_t threads[URGENT];
    size_t attributes;
    span = otel_span_start(tracer, "shared", NULL);

    for (int i = 0; i < URGENT; i++)
        start_thread(&threads[i], use_often, NULL, urgent[i].priority);
    use_often(NULL);

    for (int i = 0; i < URGENT; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(exported(&attributes).name.length, strlen("shared"));
    assert_int_equal(attributes, 2);
}

static int start(void **state)
{
    (void)state;
    for (int i = 0; i < URGENT; i++)
        sem_init(&urgent[i].may_start, 0, 0);
    tracer = otel_tracer_get("real_time", NULL);
    return start_with_memory(OTEL_SDK_OPTIONS(.threadless = false)) != OTEL_OK;
}

static int (*const stop)(void **) = stop_memory;

/* Whether this thread is alone on one core now, and may start real-time threads there. */
static bool is_on_one_core(void)
{
    const struct sched_param usual = {0};
    const struct sched_param lowest = {.sched_priority = 1};
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    return sched_setaffinity(0, sizeof one, &one) == 0 &&
           sched_setscheduler(0, SCHED_FIFO, &lowest) == 0 &&
           sched_setscheduler(0, SCHED_OTHER, &usual) == 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AROUND(test_urgent_threads_give_way_to_a_holder_of_lower_priority),
        AROUND(test_threads_of_three_priorities_finish),
    };
    if (!is_on_one_core()) {
        fputs("no right to real-time threads here\n", stderr);
        return SKIPPED;
    }
    alarm(HANGING_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
