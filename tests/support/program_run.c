/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/program_run.c - do what a program says, on threads: see program.h. */
#include "api/thread/thread_state.h"
#include "sdk/engine/engine.h"
#include "tests/support/oracle.h"
#include "tests/support/program.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static struct {
    struct program *program;
    otel_tracer *tracer;
    otel_context_token tokens[PROGRAM_OPS];
    uint32_t done[PROGRAM_LIVES]; /* operations; atomic */
    uint32_t over[PROGRAM_LIVES]; /* nothing is left but to end the thread; atomic */
    pthread_t threads[PROGRAM_LIVES];
    bool has_begun[PROGRAM_LIVES];
    bool has_ended[PROGRAM_LIVES];
} run;

static otel_context context_of(struct program_context from)
{
    otel_context context = {.values = NULL};
    if (from.kind == PROGRAM_SPAN)
        context.span = run.program->spans[from.index].handle;
    else if (from.kind == PROGRAM_STRETCH)
        context.span = run.program->sets[from.index].stretch;
    else if (from.kind == PROGRAM_REMOTE)
        context.span = otel_span_wrap(&run.program->remotes[from.index]);
    return context;
}

static void begin(struct program_op *op)
{
    char name[16];
    struct program_span *span = &run.program->spans[op->span];
    snprintf(name, sizeof name, "n%d", op->span);
    otel_context parent = {.values = NULL};
    if (op->parent == PROGRAM_EXPLICIT) /* of any other the model has not seen who writes it */
        parent = context_of(op->context);
    const bool is_plain = op->parent == PROGRAM_CURRENT && !op->hold;
    const otel_span_options *options =
        OTEL_SPAN_OPTIONS(.root = op->parent == PROGRAM_ROOT,
                          .parent = op->parent == PROGRAM_EXPLICIT ? &parent : NULL,
                          .hold = op->hold);
    if (is_plain)
        options = NULL;
    span->handle = op->kind == PROGRAM_ENTER ? otel_span_enter(run.tracer, name, options)
                                             : otel_span_start(run.tracer, name, options);
    span->ids = otel_span_get_context(span->handle);
}

static void record(const struct program_op *op)
{
    char name[16];
    char key[16];
    struct program_span *span = &run.program->spans[op->span];
    snprintf(name, sizeof name, "n%d", op->span);
    snprintf(key, sizeof key, "key.%d", op->life);
    const otel_attribute attribute = otel_attribute_of(key, otel_value_int(op->value));
    const otel_span_context parent =
        otel_span_get_context(context_of(span->parent).span); /* of zeros: there is none */
    const bool has_parent = span->parent.kind != PROGRAM_NO_SPAN;
    const uint8_t own[16] = {0xec, (uint8_t)op->span, (uint8_t)(op->span >> 8), 0xec};
    span->ids =
        otel_span_context_make(has_parent ? parent.trace_id : own, own,
                               has_parent ? parent.flags : OTEL_TRACE_FLAG_SAMPLED, false, NULL);
    span->handle = otel_span_wrap(&span->ids);
    otel_span_record(
        run.tracer, OTEL_FINISHED_SPAN(.trace_id = span->ids.trace_id, .span_id = span->ids.span_id,
                                       .parent_span_id = parent.span_id, .flags = span->ids.flags,
                                       .parent_is_remote = span->parent.kind == PROGRAM_REMOTE,
                                       .name = name, .start_ns = op->value % 2 != 0 ? 1 : 0,
                                       .status = span->has_failed ? OTEL_SPAN_STATUS_ERROR
                                                                  : OTEL_SPAN_STATUS_UNSET,
                                       .attributes = &attribute, .attribute_count = 1));
}

static void check_lines(const struct program_op *op, const otel_lines *lines)
{
    const struct program *program = run.program;
    size_t cursor = 0;
    int count = 0;
    otel_span_view view;
    program_require(program, (lines == NULL) == (op->expected == 0), "makes no lines", op->span);
    program_require(program, otel_lines_size(lines) == (size_t)op->expected,
                    "makes lines of another size", op->span);
    while (otel_lines_next(lines, &cursor, &view)) {
        STRESS_CHECK(view.name.data[0] == 'n' && view.end_ns >= view.start_ns);
        count++;
    }
    program_require(program, count == op->expected, "makes lines with other spans", op->span);
}

static void take_lines(const struct program_op *op, otel_lines *lines)
{
    check_lines(op, lines);
    if (op->lines != PROGRAM_NONE)
        run.program->lines[op->lines].lines = lines;
}

static void set_one(const struct program_op *op, otel_span span)
{
    char key[16];
    snprintf(key, sizeof key, "key.%d", op->life);
    if (op->value % 2 != 0)
        otel_span_set_int(span, key, op->value);
    else
        otel_span_set_value(span, key, otel_value_int(op->value));
}

static void mount(const struct program_op *op)
{
    otel_span parents[PROGRAM_PARENTS];
    for (int i = 0; i < op->parent_count; i++)
        parents[i] = context_of(op->parents[i]).span;
    const otel_mount_options *options = OTEL_MOUNT_OPTIONS(.linked = &run.program->remotes[0]);
    otel_lines_mount(run.program->lines[op->lines].lines, parents, (size_t)op->parent_count,
                     op->linked ? options : NULL);
}

static void carry_out(struct program_op *op)
{
    struct program *program = run.program;
    otel_span span = {{0}};
    if (op->kind >= PROGRAM_END && op->span != PROGRAM_NONE)
        span = program->spans[op->span].handle;
    switch (op->kind) {
    case PROGRAM_ENTER:
    case PROGRAM_START:
        begin(op);
        break;
    case PROGRAM_END:
        otel_span_end(span);
        break;
    case PROGRAM_CANCEL:
        otel_span_cancel(span);
        break;
    case PROGRAM_COLLECT:
        take_lines(op, otel_span_collect(span));
        break;
    case PROGRAM_SET:
        set_one(op, span);
        break;
    case PROGRAM_FAIL:
        otel_span_fail(span, "it did");
        break;
    case PROGRAM_ATTACH:
        run.tokens[op->token] = otel_context_attach(context_of(op->context));
        break;
    case PROGRAM_DETACH:
        (void)otel_context_detach(run.tokens[op->token]);
        break;
    case PROGRAM_BEGIN:
        otel_lines_begin();
        program->sets[op->value].stretch = otel_current_span();
        break;
    case PROGRAM_FINISH:
        take_lines(op, otel_lines_end());
        break;
    case PROGRAM_MOUNT:
        mount(op);
        break;
    case PROGRAM_FREE:
        otel_lines_free(program->lines[op->lines].lines);
        break;
    case PROGRAM_RECORD:
        record(op);
        break;
    case PROGRAM_EXIT:
        break;
    }
}

static void wait_for(const struct program_op *op)
{
    for (int life = 0; life < PROGRAM_LIVES; life++)
        while (oteli_load_acquire_32(&run.done[life]) < (uint32_t)op->needs[life])
            sched_yield();
}

/* What a thread loses it counts itself, so each operation answers for its own losses. */
static void carry_out_and_check(struct program_op *op)
{
    const struct oteli_thread *before = oteli_self;
    const struct oteli_thread_counts counts = before->counts;
    carry_out(op);
    if (oteli_self != before || op->kind == PROGRAM_EXIT)
        return; /* a state with the counts of another life */
    for (int i = 0; i < OTEL_DROP_REASON_COUNT; i++) {
        const uint64_t lost = before->counts.dropped[i] - counts.dropped[i];
        if (lost != (uint64_t)op->lost[i])
            program_fail_at(run.program, op, otel_drop_reason_string((otel_drop_reason)i), lost,
                            op->lost[i]);
    }
    for (int i = 0; i < OTEL_WITHHELD_REASON_COUNT; i++) {
        const uint64_t withheld = before->counts.withheld[i] - counts.withheld[i];
        if (withheld != (uint64_t)op->withheld[i])
            program_fail_at(run.program, op, otel_withheld_reason_string((otel_withheld_reason)i),
                            withheld, op->withheld[i]);
    }
}

static void *live(void *argument)
{
    const int life = (int)(intptr_t)argument;
    uint32_t done = 0;
    for (int i = 0; i < run.program->op_count; i++) {
        struct program_op *op = &run.program->ops[i];
        if (op->life != life)
            continue;
        wait_for(op);
        carry_out_and_check(op);
        if (op->kind != PROGRAM_EXIT) /* that is done when the thread is gone */
            oteli_store_release_32(&run.done[life], ++done);
    }
    oteli_store_release_32(&run.over[life], 1);
    return NULL;
}

/* Begin the thread of a life whose turn it is, or end one. True: it is over. */
static bool see_to(int life)
{
    const int after = run.program->lives[life].after;
    if (!run.has_begun[life] && (after == PROGRAM_NONE || run.has_ended[after])) {
        run.has_begun[life] = true;
        STRESS_CHECK(pthread_create(&run.threads[life], NULL, live, (void *)(intptr_t)life) == 0);
    }
    if (run.has_begun[life] && !run.has_ended[life] &&
        oteli_load_acquire_32(&run.over[life]) != 0) {
        pthread_join(run.threads[life], NULL);
        run.has_ended[life] = true;
        oteli_store_release_32(&run.done[life], (uint32_t)run.program->lives[life].op_count);
    }
    return run.has_ended[life];
}

int program_number(otel_slice text, size_t skip)
{
    int number = 0;
    for (size_t i = skip; i < text.length; i++)
        number = 10 * number + text.data[i] - '0';
    return number;
}

static bool keep(void *state, const otel_tail *tail)
{
    const struct program *program = state;
    const int root = program_number(tail->name, 1);
    program_require(program, root < program->span_count, "is none of the program's", root);
    program_require(program, tail->span_count == (size_t)program->tails[root].span_count,
                    "is asked about with another number of spans", root);
    program_require(program, tail->has_error == program->tails[root].has_error,
                    "is asked about with another error", root);
    return program_keeps(root, tail->has_error);
}

static void say_nothing(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    (void)message;
}

void program_run(struct program *program, otel_memory *memory)
{
    memset(&run, 0, sizeof run);
    run.program = program;
    otel_log_set_handler(say_nothing, NULL);
    const otel_exporter exporter = otel_memory_exporter(memory);
    STRESS_CHECK(
        otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                         .simple = program->is_simple, .bsp_schedule_delay = 1,
                                         .bsp_max_queue_size = 1 << 20,
                                         .bsp_max_export_batch_size = 64,
                                         .tail_keep = program->has_rules ? keep : NULL,
                                         .tail_keep_state = program)) == OTEL_OK);
    run.tracer = otel_tracer_get("program", NULL);
    int over;
    do {
        over = 0;
        for (int life = 0; life < program->life_count; life++)
            over += see_to(life);
        sched_yield();
    } while (over != program->life_count);
    STRESS_CHECK(stress_is_done(otel_flush(60000)));
}
