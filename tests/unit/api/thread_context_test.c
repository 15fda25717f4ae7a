/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/thread_context_test.c - specification of what each thread publishes
 * (otel/thread_context.h): at every moment the context that is current on it. */
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"
#include <otel/fibre.h>
#include <otel/lines.h>
#include <otel/thread_context.h>

#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static otel_context wrapped(uint8_t number, uint8_t flags, bool is_remote)
{
    otel_span_context context = {.flags = flags, .is_remote = is_remote};
    memset(context.trace_id, number, sizeof context.trace_id);
    memset(context.span_id, number, sizeof context.span_id);
    return (otel_context){.span = otel_span_wrap(&context)};
}

static otel_span enter(void)
{
    return otel_span_enter(NULL, "span", NULL);
}

static bool says(const otel_thread_context_record *record, otel_span span)
{
    const otel_span_context context = otel_span_get_context(span);
    if (!otel_span_context_is_valid(&context))
        return record == NULL || record->valid == 0;
    return record != NULL && record->valid == 1 && record->attributes_size == 0 &&
           record->trace_flags == context.flags &&
           memcmp(record->trace_id, context.trace_id, sizeof context.trace_id) == 0 &&
           memcmp(record->span_id, context.span_id, sizeof context.span_id) == 0;
}

static bool publishes(otel_span span)
{
    return says(otel_thread_ctx_v1, span);
}

static bool publishes_nothing(void)
{
    return otel_thread_ctx_v1 == NULL || otel_thread_ctx_v1->valid == 0;
}

static bool publishes_what_is_current(void)
{
    const otel_span current = otel_current_span();
    return oteli_span_is_collected(&current) ? publishes_nothing() : publishes(current);
}

AROUND_EACH(recorder_setup, recorder_teardown);

TEST_FAST_TOO(what_is_collected_has_no_trace_that_others_know)
{
    otel_lines_begin();
    assert_true(publishes_nothing());
    const otel_span span = enter();
    assert_true(publishes_nothing());
    otel_span_end(span);
    otel_lines_free(otel_lines_end());
    assert_true(publishes_nothing());
}

TEST_FAST_TOO(what_was_published_by_another_library_comes_back)
{
    static const otel_thread_context_record theirs = {.valid = 1};
    otel_thread_ctx_v1 = &theirs;
    const otel_span first = enter();
    assert_true(publishes(first));
    otel_span_end(first);
    assert_ptr_equal(otel_thread_ctx_v1, &theirs);
    const otel_context_token token = otel_context_attach(wrapped(1, 1, true));
    assert_true(otel_context_detach(token));
    assert_ptr_equal(otel_thread_ctx_v1, &theirs);
    otel_stack *const fibre = otel_stack_new();
    otel_stack_switch(fibre);
    assert_true(publishes_nothing());
    otel_stack_switch(NULL);
    assert_ptr_equal(otel_thread_ctx_v1, &theirs);
    otel_stack_free(fibre);
    otel_thread_ctx_v1 = NULL;

    const otel_span outer = enter(); /* and what it publishes inside of one of our spans */
    const otel_thread_context_record *const ours = otel_thread_ctx_v1;
    otel_thread_ctx_v1 = &theirs;
    const otel_span inner = enter();
    assert_true(publishes(inner));
    otel_span_end(inner);
    assert_ptr_equal(otel_thread_ctx_v1, &theirs);
    otel_thread_ctx_v1 = ours;
    otel_span_end(enter());
    assert_true(publishes(outer));
    otel_span_end(outer);
    assert_null(otel_thread_ctx_v1);
}

static otel_context with_tracestate(uint8_t number)
{
    uint8_t id[16];
    memset(id, number, sizeof id);
    const otel_span_context context =
        otel_span_context_make(id, id, OTEL_TRACE_FLAG_SAMPLED, true, "vendor=value");
    return (otel_context){.span = otel_span_wrap(&context)};
}

TEST(what_a_span_reads_of_its_thread_is_beside_what_it_writes)
{
    assert_int_equal((uintptr_t)&oteli_self / OTELI_CACHELINE,
                     (uintptr_t)&otel_thread_ctx_v1 / OTELI_CACHELINE);
}

TEST(a_tracestate_is_not_in_what_is_published)
{
    for (uint8_t i = 1; i < 40; i++) { /* references to them differ in every part */
        const otel_context context = with_tracestate(i);
        const otel_context_token token = otel_context_attach(context);
        assert_true(publishes(context.span));
        const otel_span child = enter();
        assert_true(publishes(child));
        otel_span_end(child);
        assert_true(publishes(context.span));
        assert_true(otel_context_detach(token));
        const otel_span other = enter();
        assert_true(publishes(other));
        otel_span_end(other);
        assert_null(otel_thread_ctx_v1);
    }
}

TEST_WITH(recorder_setup_without_sdk, recorder_teardown,
          without_memory_for_a_record_apart_nothing_is_published)
{
    const otel_context context = with_tracestate(1);
    const otel_context_token plain = otel_context_attach(wrapped(1, 1, true));
    oteli_leaks_fail_at(1);
    const otel_context_token token = otel_context_attach(context);
    assert_true(oteli_leaks_failed());
    assert_true(publishes_nothing());
    const otel_span current = otel_current_span();
    assert_memory_equal(&current, &context.span, sizeof current);
    assert_true(otel_context_detach(token));
    assert_true(publishes(wrapped(1, 1, true).span));
    assert_true(otel_context_detach(plain));
    assert_null(otel_thread_ctx_v1);
}

TEST_WITH(recorder_setup_without_sdk, recorder_teardown,
          a_context_in_the_place_of_the_last_of_too_many)
{
    enum { MANY = 1100 };
    static otel_context_token tokens[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        const otel_context context = wrapped((uint8_t)(1 + i % 200), i & 1, true);
        tokens[i] = otel_context_attach(context);
        assert_true(publishes(context.span));
    }
    for (unsigned i = MANY; i > 0; i--)
        otel_context_detach(tokens[i - 1]);
    assert_null(otel_thread_ctx_v1);
}

TEST(a_shutdown_leaves_current_what_is)
{
    const otel_span span = enter();
    recorder_stop();
    assert_true(publishes(span));
    otel_span_end(span);
    assert_null(otel_thread_ctx_v1);
}

static void *leave_open(void *state)
{
    (void)state;
    assert_null(otel_thread_ctx_v1); /* also where it has taken over the state of another */
    const otel_span span = enter();
    assert_true(publishes(span));
    return NULL;
}

TEST(a_thread_that_ends_leaves_nothing_to_the_next)
{
    for (unsigned i = 0; i < 3; i++)
        recorder_on_thread(leave_open, NULL);
    assert_null(otel_thread_ctx_v1);
}

static int in_child(const void *spans)
{
    const otel_span outer = ((const otel_span *)spans)[0];
    const otel_span inner = ((const otel_span *)spans)[1];
    if (!publishes(inner))
        return 1;
    otel_span_end(inner);
    if (!publishes(outer))
        return 2;
    otel_span_end(outer);
    return otel_thread_ctx_v1 == NULL ? 0 : 3;
}

TEST_WITH(recorder_setup_fast, recorder_teardown, a_forked_child_goes_on_with_what_is_current)
{
    const otel_span outer = enter();
    const otel_span spans[] = {outer, enter()};
    recorder_in_child(in_child, spans);
    otel_span_end(spans[1]);
    otel_span_end(outer);
}

/* --- thousands of operations in any order, on the thread's own stack and those of fibres --- */

enum { MOST_OPEN = 40, FIBRES = 3, OPERATIONS = 20000 };

static struct fibre {
    otel_stack *stack; /* NULL: the thread's own */
    size_t open;
    struct {
        bool is_token;
        otel_span span;
        otel_context_token token;
    } entries[MOST_OPEN];
} fibres[FIBRES];

static uint32_t next_number(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 16;
}

static otel_context any_context(uint32_t *seed)
{
    const uint32_t number = next_number(seed);
    if (number % 8 == 0)
        return (otel_context){.span = {{0}}};
    if (number % 8 == 1)
        return otel_current_context();
    return wrapped((uint8_t)(1 + number % 250), (uint8_t)(number >> 4 & 1), (number >> 5 & 1) != 0);
}

static void leave(struct fibre *fibre, size_t index)
{
    if (fibre->entries[index].is_token)
        otel_context_detach(fibre->entries[index].token);
    else
        otel_span_end(fibre->entries[index].span);
    fibre->open--;
    memmove(&fibre->entries[index], &fibre->entries[index + 1],
            (fibre->open - index) * sizeof *fibre->entries);
}

static void do_anything(struct fibre *fibre, uint32_t *seed)
{
    const uint32_t number = next_number(seed) % 8;
    if (number < 2 && fibre->open < MOST_OPEN) {
        fibre->entries[fibre->open].is_token = false;
        fibre->entries[fibre->open++].span = enter();
    } else if (number < 4 && fibre->open < MOST_OPEN) {
        fibre->entries[fibre->open].is_token = true;
        fibre->entries[fibre->open++].token = otel_context_attach(any_context(seed));
    } else if (number < 7 && fibre->open != 0) {
        leave(fibre, fibre->open - 1);
    } else if (fibre->open != 0) {
        leave(fibre, next_number(seed) % fibre->open);
    }
}

TEST_QUEUED_FAST_TOO(what_is_published_is_what_is_current_whatever_happens)
{
    uint32_t seed = 4947;
    memset(fibres, 0, sizeof fibres);
    for (size_t i = 1; i < FIBRES; i++)
        fibres[i].stack = otel_stack_new();
    struct fibre *fibre = &fibres[0];
    for (unsigned i = 0; i < OPERATIONS; i++) {
        if (next_number(&seed) % 16 == 0) {
            fibre = &fibres[next_number(&seed) % FIBRES];
            otel_stack_switch(fibre->stack);
        } else {
            do_anything(fibre, &seed);
        }
        assert_true(publishes_what_is_current());
        recorder_collect();
        recorder.count = 0;
    }
    for (size_t i = FIBRES; i > 0; i--) {
        fibre = &fibres[i - 1];
        otel_stack_switch(fibre->stack);
        while (fibre->open != 0)
            leave(fibre, 0);
        assert_true(publishes_nothing());
    }
    for (size_t i = 1; i < FIBRES; i++)
        otel_stack_free(fibres[i].stack);
    assert_null(otel_thread_ctx_v1);
}

/* --- a reader that stops the thread at every instruction --- */

enum { STATES = 200, DEEP = 16 };

/* What is current one after the other: in the child what was, in the parent what was seen. */
static otel_thread_context_record states[STATES];
static size_t state_count;

static void add_state(const otel_thread_context_record *record)
{
    static const otel_thread_context_record none;
    const otel_thread_context_record *const now =
        record != NULL && record->valid != 0 ? record : &none;
    if (state_count < STATES &&
        (state_count == 0 || memcmp(&states[state_count - 1], now, sizeof *now) != 0))
        states[state_count++] = *now;
}

static void note_current(void)
{
    const otel_span_context context = otel_span_get_context(otel_current_span());
    otel_thread_context_record record = {.valid = otel_span_context_is_valid(&context),
                                         .trace_flags = context.flags};
    memcpy(record.trace_id, context.trace_id, sizeof record.trace_id);
    memcpy(record.span_id, context.span_id, sizeof record.span_id);
    add_state(&record);
}

/* A context that is published apart, because of its tracestate, in turn with what a fibre has. */
static void change_stacks(void)
{
    static otel_stack *fibre;
    if (fibre == NULL)
        fibre = otel_stack_new();
    const otel_context_token token = otel_context_attach(with_tracestate(3));
    note_current();
    otel_stack_switch(fibre);
    note_current();
    otel_stack_switch(NULL);
    note_current();
    otel_context_detach(token);
    note_current();
}

static void change_what_is_current(size_t depth)
{
    otel_span spans[DEEP];
    state_count = 0;
    note_current();
    change_stacks();
    const otel_context_token outer = otel_context_attach(wrapped(1, 1, true));
    note_current();
    for (size_t i = 0; i < depth; i++) {
        spans[i] = enter();
        note_current();
    }
    const otel_context_token inner = otel_context_attach(wrapped(2, 0, false));
    note_current();
    otel_context_detach(outer); /* out of order */
    note_current();
    otel_context_detach(inner);
    note_current();
    for (size_t i = depth; i > 2; i--) {
        otel_span_end(spans[i - 1]);
        note_current();
    }
    otel_span_end(spans[0]); /* likewise */
    note_current();
    otel_span_end(spans[1]);
    note_current();
}

static void be_stopped(void)
{
    void *state = NULL;
    recorder_setup_fast(&state);
    change_what_is_current(2); /* once, so that everything is there */
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    change_what_is_current(DEEP); /* the stack grows */
    raise(SIGSTOP);
    _exit(0);
}

static void read_child(pid_t child, void *to, const volatile void *from, size_t size)
{
    const struct iovec local = {to, size};
    const struct iovec remote = {(void *)(uintptr_t)from, size};
    assert_int_equal(process_vm_readv(child, &local, 1, &remote, 1, 0), size);
}

static void see(pid_t child)
{
    const otel_thread_context_record *pointer;
    otel_thread_context_record record;
    read_child(child, &pointer, &otel_thread_ctx_v1, sizeof pointer);
    if (pointer != NULL)
        read_child(child, &record, pointer, sizeof record);
    add_state(pointer != NULL ? &record : NULL);
}

static int wait_for(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSTOPPED(status));
    return WSTOPSIG(status);
}

/* The child is this thread once more, so its pointer is where this one's is. */
TEST_WITH(recorder_setup_without_sdk, recorder_teardown,
          whoever_stops_a_thread_finds_what_was_current_or_what_is)
{
    const pid_t child = fork();
    if (child == 0)
        be_stopped();
    assert_int_equal(wait_for(child), SIGSTOP);
    state_count = 0;
    do {
        see(child);
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
    } while (wait_for(child) == SIGTRAP);
    static otel_thread_context_record expected[STATES];
    size_t expected_count;
    read_child(child, &expected_count, &state_count, sizeof expected_count);
    read_child(child, expected, states, sizeof expected);
    assert_int_equal(ptrace(PTRACE_KILL, child, NULL, NULL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(expected_count > 2 * DEEP && expected_count < STATES);
    assert_int_equal(state_count, expected_count);
    for (size_t i = 0; i < expected_count; i++)
        assert_memory_equal(&states[i], &expected[i], sizeof *expected);
}
