/* SPDX-License-Identifier: Apache-2.0 */
/* Start, flush, poll and shutdown with an exporter of the program's own. */
#include "blackbox.h"
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <time.h>

enum { ROUNDS = 300 };

/* What the exporter has seen, and how it behaves. */
static struct {
    int exports;
    int flushes;
    int frees;
    int flushes_when_freed;
    int flushes_without_time;
    bool waits; /* an export, until it is let go */
    bool asks_when_freed;
    size_t rejects; /* so many spans of each batch */
} seen;

static sem_t is_inside, is_let_go;

static otel_export_result export_batch(void *state, otel_export *call)
{
    (void)state;
    seen.exports++;
    otel_export_reject(call, seen.rejects);
    if (seen.waits) {
        sem_post(&is_inside);
        sem_wait(&is_let_go);
    }
    return OTEL_EXPORT_DONE;
}

static otel_status flush(void *state, int64_t timeout_ms)
{
    (void)state;
    seen.flushes++;
    seen.flushes_without_time += timeout_ms == 0;
    return timeout_ms == 0 ? OTEL_ERROR_TIMEOUT : OTEL_OK;
}

static void free_exporter(void *state)
{
    otel_stats stats = {.size = sizeof stats};
    (void)state;
    seen.frees++;
    seen.flushes_when_freed = seen.flushes;
    if (seen.asks_when_freed)
        (void)otel_stats_read(0, &stats);
}

static const otel_exporter exporter = {.size = sizeof exporter,
                                       .name = "watched",
                                       .export_batch = export_batch,
                                       .flush = flush,
                                       .free = free_exporter};

#define START(...) \
    otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1, __VA_ARGS__))

static int forget(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof seen);
    return 0;
}

static void *end_a_span(void *unused)
{
    otel_span_end(otel_span_enter(otel_tracer_get("blackbox", NULL), "work", NULL));
    return unused;
}

static void an_exporter_that_cannot_export_is_refused(void **state)
{
    const otel_exporter failed = {0};
    const otel_exporter half = {.size = sizeof half, .name = "half", .free = free_exporter};
    (void)state;

    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &failed, .exporter_count = 1)),
                     OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &half, .exporter_count = 1)),
                     OTEL_ERROR_INVALID_ARGUMENT);

    assert_int_equal(seen.frees, 1);
    assert_int_equal(otel_shutdown(0), OTEL_ERROR_NOT_STARTED);
}

static void an_exporter_may_ask_for_statistics_when_it_is_freed(void **state)
{
    (void)state;
    seen.asks_when_freed = true;
    assert_int_equal(START(.threadless = false), OTEL_OK);

    assert_int_equal(START(.threadless = false), OTEL_ERROR_ALREADY_STARTED);
    assert_int_equal(otel_shutdown(PATIENCE_MS), OTEL_OK);

    assert_int_equal(seen.frees, 2);
}

static int is_polling;

static void *poll_all_the_time(void *unused)
{
    while (__atomic_load_n(&is_polling, __ATOMIC_ACQUIRE) != 0)
        (void)otel_poll(0);
    return unused;
}

static void another_thread_that_polls_takes_no_time_from_a_flush(void **state)
{
    pthread_t poller;
    (void)state;
    is_polling = 1;
    assert_int_equal(START(.threadless = true), OTEL_OK);
    assert_int_equal(pthread_create(&poller, NULL, poll_all_the_time, NULL), 0);

    for (int i = 0; i < ROUNDS; i++) {
        end_a_span(NULL);
        assert_int_equal(otel_flush(PATIENCE_MS), OTEL_OK);
    }
    assert_int_equal(otel_shutdown(PATIENCE_MS), OTEL_OK);

    __atomic_store_n(&is_polling, 0, __ATOMIC_RELEASE);
    pthread_join(poller, NULL);
    assert_int_equal(seen.flushes_without_time, 0);
    assert_int_equal(seen.frees, 1);
}

/* A span that ends, whose export waits. */
static pthread_t ending;

static void begin_to_end(void)
{
    sem_init(&is_inside, 0, 0);
    sem_init(&is_let_go, 0, 0);
    seen.waits = true;
    assert_int_equal(START(.simple = true), OTEL_OK);
    assert_int_equal(pthread_create(&ending, NULL, end_a_span, NULL), 0);
    sem_wait(&is_inside);
}

static void finish_ending(void)
{
    sem_post(&is_let_go);
    pthread_join(ending, NULL);
}

/* The thread that finds the mutex taken goes on when the other has let go of it and returned. */
static bool is_late;

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_trylock");
    const int error = real(mutex);
    if (error == EBUSY && is_late) {
        is_late = false;
        finish_ending();
    }
    return error;
}

static void an_export_that_returns_after_the_shutdown_finishes_it(void **state)
{
    (void)state;
    begin_to_end();

    assert_int_equal(otel_shutdown(0), OTEL_ERROR_TIMEOUT);
    assert_int_equal(seen.frees, 0);
    finish_ending();

    assert_int_equal(seen.frees, 1);
    assert_int_equal(seen.flushes_when_freed, 1);
}

static void an_export_that_returns_just_as_the_shutdown_gives_it_up_is_finished_there(void **state)
{
    (void)state;
    begin_to_end();
    is_late = true;

    (void)!otel_shutdown(0);

    assert_false(is_late);
    assert_int_equal(seen.frees, 1);
    assert_int_equal(seen.flushes_when_freed, 1);
}

static void a_program_with_timers_only_is_told_of_spans(void **state)
{
    (void)state;
    assert_int_equal(START(.threadless = true, .bsp_schedule_delay = 1), OTEL_OK);
    assert_int_equal(otel_poll_timeout(), -1);

    end_a_span(NULL);
    assert_int_equal(otel_poll_timeout(), 0);

    for (int64_t wait_ms; (wait_ms = otel_poll_timeout()) >= 0;) {
        const struct timespec wait = {0, (long)wait_ms * 1000000};
        nanosleep(&wait, NULL);
        assert_int_equal(otel_poll(0), OTEL_OK);
    }
    assert_int_equal(seen.exports, 1);
    assert_int_equal(otel_shutdown(PATIENCE_MS), OTEL_OK);
}

static void a_loss_is_answered_for_by_the_next_flush_and_by_the_shutdown(void **state)
{
    (void)state;
    seen.rejects = 1;
    assert_int_equal(START(.bsp_schedule_delay = 1), OTEL_OK);
    end_a_span(NULL);
    while (stats_now().rejected == 0)
        sched_yield();

    assert_int_equal(otel_flush(PATIENCE_MS), OTEL_ERROR_EXPORT_FAILED);
    assert_int_equal(otel_flush(PATIENCE_MS), OTEL_OK);
    seen.rejects = 0;
    end_a_span(NULL);
    assert_int_equal(otel_flush(PATIENCE_MS), OTEL_OK);
    assert_int_equal(otel_shutdown(PATIENCE_MS), OTEL_ERROR_EXPORT_FAILED);
}

static void what_is_withheld_is_no_loss(void **state)
{
    (void)state;
    assert_int_equal(START(.threadless = false), OTEL_OK);
    otel_span_cancel(otel_span_enter(otel_tracer_get("blackbox", NULL), "work", NULL));

    assert_int_equal(otel_flush(PATIENCE_MS), OTEL_OK);
    assert_int_equal(otel_shutdown(PATIENCE_MS), OTEL_OK);
}

static bool keep_nothing(void *unused, const otel_tail *tail)
{
    (void)unused;
    (void)tail;
    return false;
}

static void what_ends_after_a_rule_dropped_its_trace_is_no_loss(void **state)
{
    otel_tracer *tracer = otel_tracer_get("blackbox", NULL);
    (void)state;
    assert_int_equal(START(.tail_keep = keep_nothing), OTEL_OK);
    const otel_span root = otel_span_enter(tracer, "root", NULL);
    const otel_span late = otel_span_start(tracer, "late", NULL);
    otel_span_end(root);
    otel_span_end(late);

    assert_int_equal(otel_flush(PATIENCE_MS), OTEL_OK);
    assert_int_equal(otel_shutdown(PATIENCE_MS), OTEL_OK);
}

static void what_is_collected_and_not_mounted_is_no_loss(void **state)
{
    (void)state;
    assert_int_equal(START(.threadless = false), OTEL_OK);
    otel_lines_begin();
    end_a_span(NULL);
    otel_lines_free(otel_lines_end());

    assert_int_equal(otel_flush(PATIENCE_MS), OTEL_OK);
    assert_int_equal(otel_shutdown(PATIENCE_MS), OTEL_OK);
}

static void *leave_a_root_open(void *root)
{
    *(otel_span *)root = otel_span_enter(otel_tracer_get("blackbox", NULL), "root", NULL);
    return NULL;
}

/* No rule decided about this trace. */
static void what_ends_below_a_root_that_was_left_open_is_a_loss(void **state)
{
    otel_span root;
    (void)state;
    assert_int_equal(START(.tail_keep = keep_nothing), OTEL_OK);
    run_in_thread(leave_a_root_open, &root);
    assert_int_equal(otel_flush(PATIENCE_MS), OTEL_ERROR_EXPORT_FAILED);
    const otel_context below = {.span = root};
    otel_span_end(otel_span_start(otel_tracer_get("blackbox", NULL), "below",
                                  OTEL_SPAN_OPTIONS(.parent = &below)));

    assert_int_equal(otel_flush(PATIENCE_MS), OTEL_ERROR_EXPORT_FAILED);
    assert_int_equal(stats_now().dropped[OTEL_DROP_ABANDONED], 2);
    assert_int_equal(otel_shutdown(PATIENCE_MS), OTEL_ERROR_EXPORT_FAILED);
}

static void spans_for_which_there_was_no_room_are_a_loss(void **state)
{
    (void)state;
    assert_int_equal(
        START(.threadless = true, .bsp_max_queue_size = 2, .bsp_max_export_batch_size = 2),
        OTEL_OK);
    do
        end_a_span(NULL);
    while (stats_now().dropped[OTEL_DROP_QUEUE_FULL] == 0);

    assert_int_equal(otel_flush(PATIENCE_MS), OTEL_ERROR_EXPORT_FAILED);
    assert_int_equal(otel_flush(PATIENCE_MS), OTEL_OK);
    assert_int_equal(otel_shutdown(PATIENCE_MS), OTEL_ERROR_EXPORT_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_exporter_that_cannot_export_is_refused, forget),
        cmocka_unit_test_setup(an_exporter_may_ask_for_statistics_when_it_is_freed, forget),
        cmocka_unit_test_setup(another_thread_that_polls_takes_no_time_from_a_flush, forget),
        cmocka_unit_test_setup(an_export_that_returns_after_the_shutdown_finishes_it, forget),
        cmocka_unit_test_setup(
            an_export_that_returns_just_as_the_shutdown_gives_it_up_is_finished_there, forget),
        cmocka_unit_test_setup(a_program_with_timers_only_is_told_of_spans, forget),
        cmocka_unit_test_setup(a_loss_is_answered_for_by_the_next_flush_and_by_the_shutdown,
                               forget),
        cmocka_unit_test_setup(what_is_withheld_is_no_loss, forget),
        cmocka_unit_test_setup(what_ends_after_a_rule_dropped_its_trace_is_no_loss, forget),
        cmocka_unit_test_setup(what_is_collected_and_not_mounted_is_no_loss, forget),
        cmocka_unit_test_setup(what_ends_below_a_root_that_was_left_open_is_a_loss, forget),
        cmocka_unit_test_setup(spans_for_which_there_was_no_room_are_a_loss, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
