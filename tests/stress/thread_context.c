/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/thread_context.c - threads that change their context without a pause are stopped at
 * any instruction and read from outside: what is found is always the context of one moment.
 *
 * Every id says which turn of which thread it is from, so that halves of two are noticed, and what is
 * left of one before; the flags say so too. OTEL_TEST_LONG=1 looks a hundred times as often.
 *
 * Threads:  the parent reads; the child's change their contexts until it is killed. */
#include "tests/support/context_reader.h"
#include "tests/support/oracle.h"

#include <otel/context.h>
#include <otel/sdk.h>
#include <otel/trace.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 3, LOOKS = 150, TURN_BITS = 32 };

/* An odd factor can be undone, and spreads what is small over all bytes. */
#define FACTOR UINT64_C(0x9e3779b97f4a7c15)

#define CHECK(condition) check((condition), #condition, __LINE__)

static __thread uint64_t turn, spans;
static volatile uint64_t *turns; /* of each worker, in memory of both processes */

static void check(bool is_so, const char *text, int line)
{
    if (is_so)
        return;
    fprintf(stderr, "thread_context.c:%d: not so: %s\n", line, text);
    abort();
}

static void make_trace(uint8_t id[16], uint64_t of)
{
    const uint64_t words[2] = {of * FACTOR, ~(of * FACTOR)};
    memcpy(id, words, sizeof words);
}

/* The number of a span in its turn is small: what is left of it are the turn's own bits. */
static void make_span(uint8_t id[8], uint64_t of, uint64_t number)
{
    const uint64_t word = (of << 8 | (number & 0xff)) * FACTOR;
    memcpy(id, &word, sizeof word);
}

static uint64_t undo(uint64_t word)
{
    uint64_t inverse = FACTOR;
    for (unsigned i = 0; i < 6; i++)
        inverse *= 2 - FACTOR * inverse;
    return word * inverse;
}

/* The turn that all of a record is from; 0: it is not from one. */
static uint64_t turn_of(const struct context_record *record)
{
    uint64_t words[2], span;
    memcpy(words, record->trace_id, sizeof words);
    memcpy(&span, record->span_id, sizeof span);
    const uint64_t of = undo(words[0]);
    const bool is_whole = words[1] == ~words[0] && undo(span) >> 8 == of &&
                          (record->flags & OTEL_TRACE_FLAG_SAMPLED) == (of & 1);
    return is_whole ? of : 0;
}

static void generate_ids(void *state, uint8_t *trace_id, uint8_t *span_id)
{
    (void)state;
    if (trace_id)
        make_trace(trace_id, turn);
    if (span_id)
        make_span(span_id, turn, ++spans);
}

static otel_span remote(void)
{
    uint8_t trace_id[16], span_id[8];
    make_trace(trace_id, turn);
    make_span(span_id, turn, 0);
    otel_span_context context =
        otel_span_context_make(trace_id, span_id, turn & OTEL_TRACE_FLAG_SAMPLED, true, NULL);
    return otel_span_wrap(&context);
}

/* Only where nothing is current. */
static void begin_turn(unsigned further)
{
    turn += further;
    spans = 0;
    turns[turn >> TURN_BITS] = turn;
}

static void *work(void *argument)
{
    otel_tracer *tracer = otel_tracer_get("stress", NULL);
    turn = (uint64_t)(uintptr_t)argument << TURN_BITS;
    for (unsigned round = 0;; round++) {
        begin_turn(1 + (round & 1));
        otel_context_token token =
            otel_context_attach(otel_context_with_span(otel_current_context(), remote()));
        otel_span outer = otel_span_enter(tracer, "outer", NULL);
        otel_span inner = otel_span_enter(tracer, "inner", NULL);
        otel_span_end(turn & 2 ? inner : outer);
        otel_span_end(turn & 2 ? outer : inner);
        otel_context_detach(token);
        /* A root of its own is sampled, as its turn says then. */
        begin_turn(1 + (turn & 1));
        otel_span_end(otel_span_enter(tracer, "root", NULL));
    }
    return NULL;
}

static void be_read(int ready)
{
    pthread_t threads[WORKERS];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    CHECK(otel_start_with(OTEL_SDK_OPTIONS(.service_name = "stress", .generate_ids = generate_ids,
                                           .generated_ids_are_random = true,
                                           .ignore_environment = true)) == OTEL_OK);
    for (uintptr_t i = 0; i < WORKERS; i++)
        CHECK(!pthread_create(&threads[i], NULL, work, (void *)(i + 1)));
    CHECK(write(ready, "", 1) == 1);
    pthread_join(threads[0], NULL);
}

/* Which thread each worker is. The thread stands still, and so does its turn. */
static pid_t workers[WORKERS + 1];

static void check_turn(pid_t thread, uint64_t of)
{
    const uint64_t worker = of >> TURN_BITS;
    CHECK(worker >= 1 && worker <= WORKERS);
    CHECK(workers[worker] == 0 || workers[worker] == thread);
    CHECK(of == turns[worker]);
    workers[worker] = thread;
}

/* On a busy machine one of them may not run for many looks. */
static bool has_seen_all(void)
{
    bool has_all = true;
    for (size_t i = 1; i <= WORKERS; i++)
        has_all = has_all && workers[i] != 0;
    return has_all;
}

static unsigned look(pid_t child)
{
    pid_t threads[WORKERS + 8];
    unsigned found = 0;
    struct context_reader *reader = context_reader_open(child);
    CHECK(reader != NULL);
    size_t count = context_reader_threads(reader, threads, WORKERS + 8);
    CHECK(count >= WORKERS + 1 && count <= WORKERS + 8);
    for (size_t i = 0; i < count; i++) {
        struct context_record record;
        enum context_found way = context_reader_thread(reader, threads[i], &record);
        if (way != CONTEXT_FOUND && way != CONTEXT_NONE)
            fprintf(stderr, "%s\n", context_reader_why(reader));
        CHECK(way == CONTEXT_FOUND || way == CONTEXT_NONE);
        if (way != CONTEXT_FOUND)
            continue;
        CHECK(turn_of(&record) != 0);
        check_turn(threads[i], turn_of(&record));
        found++;
    }
    context_reader_close(reader);
    return found;
}

/* What is put together of two turns is noticed, or the rest would prove nothing. */
static void check_halves(void)
{
    struct context_record record = {.flags = 1};
    make_trace(record.trace_id, 77);
    make_span(record.span_id, 77, 3);
    CHECK(turn_of(&record) == 77);
    record.flags = 0;
    CHECK(turn_of(&record) == 0);
    record.flags = 1;
    make_span(record.span_id, 79, 3);
    CHECK(turn_of(&record) == 0);
    make_span(record.span_id, 77, 3);
    record.trace_id[15] ^= 1;
    CHECK(turn_of(&record) == 0);
}

int main(int count, char **arguments)
{
    int ends[2];
    char byte;
    unsigned found = 0, looks = LOOKS * stress_scale(count, arguments, 100);
    check_halves();
    turns = mmap(NULL, (WORKERS + 1) * sizeof *turns, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(turns != MAP_FAILED && !pipe(ends));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        be_read(ends[1]);
        _exit(1);
    }
    CHECK(read(ends[0], &byte, 1) == 1);
    for (unsigned i = 0; i < looks || !has_seen_all(); i++)
        found += look(child);
    CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
    printf("%u looks, %u contexts of %d threads\n", looks, found, WORKERS);
    return 0;
}
