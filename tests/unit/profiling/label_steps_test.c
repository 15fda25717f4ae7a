/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/label_steps_test.c - specification of profiling/labels/labels.c between any
 * two of its atomic operations: what others do there, and a signal handler that forks there. */
#include "profiling/labels/labels.h"
#include "profiling/labels/trampolines.h"
#include "profiling/labels/trampolines_shape.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

static OTELI_TLS void (*on_step)(void); /* NULL: nothing happens */
static OTELI_TLS unsigned steps;        /* since it was set */

/* Not within itself. */
void stepped(void)
{
    void (*const step)(void) = on_step;
    if (step == NULL)
        return;
    on_step = NULL;
    steps++;
    step();
    on_step = step;
}

static void begin_steps(void (*step)(void))
{
    steps = 0;
    on_step = step;
}

static void end_steps(void)
{
    on_step = NULL;
    assert_true(steps != 0);
}

/* Runs once, at a step of its own. */
static OTELI_TLS unsigned countdown;
static OTELI_TLS void (*at_the_step)(void);

static void count_down(void)
{
    if (countdown != 0 && --countdown == 0)
        at_the_step();
}

static void begin_steps_until(unsigned step, void (*then)(void))
{
    countdown = step;
    at_the_step = then;
    begin_steps(count_down);
}

/* True: it has been reached. */
static bool end_steps_until(void)
{
    end_steps();
    return countdown == 0;
}

#if OTELI_HAS_TRAMPOLINES /* without them there are no labels */

static int setup(void **state)
{
    const int failed = recorder_setup(state);
    oteli_labels_switch(true);
    return failed;
}

static int teardown(void **state)
{
    on_step = NULL;
    oteli_labels_switch(false);
    return recorder_teardown(state);
}

/* --- a history that is read while it is written --- */

enum { STEP_NS = 100, SEARCH = OTELI_TRAMPOLINES /* steps that look for the one that is free */ };

static otel_profile_label others[OTELI_TRAMPOLINES];
static unsigned index_of_one; /* the trampoline that is not in use */
static unsigned written;      /* the number of its label that is being written */

static void span_id_of(unsigned number, uint8_t span_id[8])
{
    const uint64_t id = number;
    memcpy(span_id, &id, sizeof id);
}

static unsigned number_of(const uint8_t span_id[8])
{
    uint64_t id;
    memcpy(&id, span_id, sizeof id);
    return (unsigned)id;
}

static char letter_of(unsigned number)
{
    return (char)('a' + number % 26);
}

static uint64_t start_of(unsigned number)
{
    return 1000 + (uint64_t)number * STEP_NS;
}

/* Both of its texts are a letter, and its span is one of its own. */
static void write_label(unsigned number)
{
    const char text[] = {letter_of(number), 0};
    const otel_profile_kv kv[] = {{"one", text}, {"two", text}};
    const uint8_t trace_id[16] = {1};
    uint8_t span_id[8];
    span_id_of(number, span_id);
    const otel_span_context context = otel_span_context_make(trace_id, span_id, 0, true, NULL);
    const otel_span span = otel_span_wrap(&context);
    recorder_at(start_of(number));
    written = number;
    otel_profile_label label = otel_profile_label_make(&span, kv, 2);
    assert_int_equal(label.index, index_of_one + 1);
    otel_profile_label_release(&label);
}

static void assert_is_label(const struct oteli_label *found, unsigned number)
{
    const char text[] = {'o', 'n', 'e', 0, letter_of(number), 0,
                         't', 'w', 'o', 0, letter_of(number), 0};
    uint8_t span_id[8];
    span_id_of(number, span_id);
    assert_int_equal(found->text_length, sizeof text);
    assert_memory_equal(found->text, text, sizeof text);
    assert_memory_equal(found->span.span_id, span_id, 8);
}

/* All but one trampoline are in use, so each label is that one's. */
static int setup_one(void **state)
{
    const int failed = setup(state);
    otel_profile_label label = otel_profile_label_acquire(NULL, 0);
    for (unsigned i = 1; i < OTELI_TRAMPOLINES; i++)
        others[i] = otel_profile_label_acquire(NULL, 0);
    index_of_one = label.index - 1;
    otel_profile_label_release(&label);
    write_label(0);
    return failed;
}

static int teardown_one(void **state)
{
    for (unsigned i = 1; i < OTELI_TRAMPOLINES; i++)
        otel_profile_label_release(&others[i]);
    return teardown(state);
}

static bool find_one(unsigned number, uint64_t time_ns, struct oteli_label *found)
{
    uint8_t span_id[8];
    span_id_of(number, span_id);
    recorder_at(time_ns);
    return oteli_labels_find_span(span_id, oteli_monotonic_ns(), found);
}

/* What is found is whole, and nothing is found for a time when it was not yet, or no longer. */
static void find_each(void)
{
    const uint64_t now_ns = oteli_fake_clock.monotonic_ns;
    struct oteli_label found;
    for (unsigned number = 1; steps >= SEARCH && number <= written; number++) {
        recorder_at(start_of(number));
        if (oteli_labels_find(index_of_one, oteli_monotonic_ns(), &found))
            assert_is_label(&found, number < written ? number : number_of(found.span.span_id));
        if (find_one(number, start_of(number), &found))
            assert_is_label(&found, number);
        assert_false(find_one(number, start_of(number) - 1, &found));
        assert_true(number + 1 >= written || !find_one(number, start_of(number + 1), &found));
    }
    oteli_fake_clock.monotonic_ns = now_ns;
}

/* The last eight, each from its start until the next one's. */
static void assert_history(void)
{
    struct oteli_label found;
    for (unsigned number = 1; number <= written; number++) {
        const bool is_kept = written - number < OTELI_LABEL_HISTORY;
        for (unsigned is_end = 0; is_end < 2; is_end++) {
            recorder_at(start_of(number) + (is_end ? STEP_NS - 1 : 0));
            assert_int_equal(oteli_labels_find(index_of_one, oteli_monotonic_ns(), &found),
                             is_kept);
            if (is_kept)
                assert_is_label(&found, number);
        }
        assert_int_equal(find_one(number, start_of(number), &found), is_kept);
    }
}

/* Three times around, so that each place is overwritten. */
TEST_WITH(setup_one, teardown_one, what_is_found_in_a_history_being_written_is_whole)
{
    for (unsigned number = 1; number < 3 * OTELI_LABEL_HISTORY; number++) {
        begin_steps(find_each);
        write_label(number);
        end_steps();
        assert_history();
    }
}

static void write_all_anew(void)
{
    for (unsigned i = 0; i < OTELI_LABEL_HISTORY; i++)
        write_label(written + 1);
}

/* The other way round. */
TEST_WITH(setup_one, teardown_one, what_is_found_is_whole_if_it_is_overwritten_meanwhile)
{
    bool is_reached = true;
    write_label(1);
    for (unsigned step = 1; is_reached; step++) {
        const unsigned number = written;
        struct oteli_label found;
        uint8_t span_id[8];
        span_id_of(number, span_id);
        begin_steps_until(step, write_all_anew);
        const bool is_found = oteli_labels_find_span(span_id, oteli_monotonic_ns(), &found);
        is_reached = end_steps_until();
        if (is_found)
            assert_is_label(&found, number);
        assert_true(is_found || is_reached);
    }
}

/* --- a history that is overwritten in part while it is read --- */

/* The writer is a thread of its own, and stays where it is until the reader has read. */
static sem_t is_there;
static sem_t may_go;
static pthread_t writer;
static unsigned step_of_writer;
static bool is_written; /* before that step */

static void stay(void)
{
    sem_post(&is_there);
    while (sem_wait(&may_go) != 0)
        continue;
}

static void *write_in_part(void *unused)
{
    begin_steps_until(step_of_writer, stay);
    write_label(written + 1);
    is_written = !end_steps_until();
    if (is_written)
        stay();
    return unused;
}

static void start_to_write(void)
{
    assert_int_equal(pthread_create(&writer, NULL, write_in_part, NULL), 0);
    while (sem_wait(&is_there) != 0)
        continue;
}

/* Read the oldest one, in whose place another comes from this step on. False: there is no such
 * step. */
static bool read_what_is_overwritten_from(unsigned step)
{
    const unsigned oldest = written + 1 - OTELI_LABEL_HISTORY;
    struct oteli_label found;
    recorder_at(start_of(oldest));
    const uint64_t time_ns = oteli_monotonic_ns();
    begin_steps_until(step, start_to_write);
    const bool is_found = oteli_labels_find(index_of_one, time_ns, &found);
    const bool is_reached = end_steps_until();
    if (is_reached) {
        sem_post(&may_go);
        pthread_join(writer, NULL);
    }
    if (is_found)
        assert_is_label(&found, oldest);
    return is_reached;
}

TEST_WITH(setup_one, teardown_one, what_is_found_is_whole_if_it_is_half_overwritten_meanwhile)
{
    bool is_reached = true;
    assert_int_equal(sem_init(&is_there, 0, 0), 0);
    assert_int_equal(sem_init(&may_go, 0, 0), 0);
    while (written < OTELI_LABEL_HISTORY)
        write_label(written + 1);
    for (unsigned step = 1; is_reached; step++) {
        is_written = false;
        for (step_of_writer = SEARCH; is_reached && !is_written; step_of_writer++)
            is_reached = read_what_is_overwritten_from(step);
    }
    sem_destroy(&is_there);
    sem_destroy(&may_go);
}

/* --- trampolines --- */

static otel_profile_label made_meanwhile;

static void make_meanwhile(void)
{
    made_meanwhile = otel_profile_label_acquire(NULL, 0);
}

static void make_and_release_many(void)
{
    for (unsigned i = 0; i <= OTELI_TRAMPOLINES; i++) {
        make_meanwhile();
        otel_profile_label_release(&made_meanwhile);
    }
}

/* While others make one, or release what they have made, all of them in turn. */
TEST_WITH(setup, teardown, each_that_makes_a_label_has_a_trampoline_of_its_own)
{
    static void (*const meanwhile[])(void) = {make_meanwhile, make_and_release_many};
    for (size_t i = 0; i < 2; i++) {
        bool is_reached = true;
        for (unsigned step = 1; is_reached; step++) {
            made_meanwhile = (otel_profile_label){0};
            begin_steps_until(step, meanwhile[i]);
            otel_profile_label label = otel_profile_label_acquire(NULL, 0);
            is_reached = end_steps_until();
            assert_int_not_equal(label.index, 0);
            assert_int_not_equal(label.index, made_meanwhile.index);
            otel_profile_label_release(&made_meanwhile);
            otel_profile_label_release(&label);
        }
    }
}

/* --- a signal handler that forks --- */

static pid_t child; /* 0: this is it */

static void fork_here(void)
{
    child = fork();
    assert_true(child >= 0);
}

/* Whatever labels it makes, no two are the same, nor the one that it has. */
static void end_child(uint32_t held)
{
    static bool is_used[OTELI_TRAMPOLINES + 1];
    on_step = NULL;
    is_used[held] = true;
    oteli_labels_switch(true);
    for (unsigned i = 0; i <= OTELI_TRAMPOLINES; i++) {
        const otel_profile_label label = otel_profile_label_acquire(NULL, 0);
        if (label.index == 0)
            _exit(0);
        if (is_used[label.index])
            _exit(1);
        is_used[label.index] = true;
    }
    _exit(2);
}

/* Nor does it have twice what was being released. */
TEST_WITH(setup, teardown, a_child_that_is_forked_while_a_label_is_made_has_it_alone)
{
    const otel_profile_kv kv = {"query", "A"};
    for (unsigned releases = 0; releases < 2; releases++) {
        bool is_reached = true;
        for (unsigned step = 1; is_reached; step++) {
            otel_profile_label label = {0};
            if (releases)
                label = otel_profile_label_acquire(&kv, 1);
            begin_steps_until(step, fork_here);
            if (releases)
                otel_profile_label_release(&label);
            else
                label = otel_profile_label_acquire(&kv, 1);
            is_reached = end_steps_until();
            if (is_reached && child == 0)
                end_child(label.index); /* 0: it has none */
            if (is_reached)
                check_forked(child);
            otel_profile_label_release(&label);
        }
    }
}

#endif
