/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/program_make.c - choose what a program does: see program.h. */
#include "tests/support/oracle.h"
#include "tests/support/program.h"

#include <string.h>

enum { AT_ONCE = 4, RECENT = 12 };

int program_below(struct program *program, int limit)
{
    program->random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mixed = program->random;
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return (int)((mixed ^ mixed >> 31) % (uint64_t)limit);
}

static bool one_in(struct program *program, int odds)
{
    return program_below(program, odds) == 0;
}

static struct program_op *add(struct program *program, enum program_op_kind kind, int life)
{
    STRESS_CHECK(program->op_count < PROGRAM_OPS);
    struct program_op *op = &program->ops[program->op_count++];
    *op = (struct program_op){
        .kind = kind, .life = life, .span = PROGRAM_NONE, .lines = PROGRAM_NONE};
    return op;
}

/* A span, rather a recent one; PROGRAM_NONE: there are none. */
static int any_span(struct program *program)
{
    const int count = program->span_count;
    if (count == 0)
        return PROGRAM_NONE;
    const int back = program_below(program, one_in(program, 6) || count < RECENT ? count : RECENT);
    return count - 1 - back;
}

static struct program_context any_context(struct program *program, int life)
{
    const struct program_context none = {PROGRAM_NO_SPAN, 0};
    const int span = any_span(program);
    switch (program_below(program, 8)) {
    case 0:
        return none;
    case 1:
    case 2:
        return (struct program_context){PROGRAM_REMOTE, program_below(program, PROGRAM_REMOTES)};
    case 3:
        return program_current(program, life);
    default:
        return span != PROGRAM_NONE ? (struct program_context){PROGRAM_SPAN, span} : none;
    }
}

static void add_begin(struct program *program, int life)
{
    const bool is_local = !one_in(program, 3);
    struct program_op *op = add(program, is_local ? PROGRAM_ENTER : PROGRAM_START, life);
    op->hold = one_in(program, 6);
    if (one_in(program, 10)) {
        op->parent = PROGRAM_ROOT;
    } else if (one_in(program, 3)) {
        op->parent = PROGRAM_EXPLICIT;
        op->context = any_context(program, life);
    }
    program_do(program, op);
}

/* A span of this life that is open, the current one as a rule, or any other span: one that
 * has ended, one that is another life's. */
static int span_to_end(struct program *program, int life)
{
    const struct program_context current = program_current(program, life);
    if (current.kind == PROGRAM_SPAN && !one_in(program, 3))
        return current.index;
    return any_span(program);
}

static void add_end(struct program *program, int life)
{
    static const enum program_op_kind kinds[] = {PROGRAM_END,    PROGRAM_END,    PROGRAM_END,
                                                 PROGRAM_END,    PROGRAM_CANCEL, PROGRAM_COLLECT,
                                                 PROGRAM_CANCEL, PROGRAM_END};
    const int span = span_to_end(program, life);
    if (span == PROGRAM_NONE)
        return;
    struct program_op *op = add(program, kinds[program_below(program, 8)], life);
    op->span = span;
    program_do(program, op);
}

static void add_word(struct program *program, int life)
{
    const int span = span_to_end(program, life);
    if (span == PROGRAM_NONE)
        return;
    struct program_op *op = add(program, one_in(program, 5) ? PROGRAM_FAIL : PROGRAM_SET, life);
    op->span = span;
    op->value = 1 + program_below(program, 1 << 20);
    program_do(program, op);
}

static void add_attach(struct program *program, int life)
{
    struct program_op *op = add(program, PROGRAM_ATTACH, life);
    op->context = any_context(program, life);
    program_do(program, op);
}

static void add_detach(struct program *program, int life)
{
    const struct program_life *at = &program->lives[life];
    if (at->attached_count == 0)
        return;
    int which = at->attached_count - 1;
    if (one_in(program, 5))
        which = program_below(program, at->attached_count);
    const int token = at->places[at->attached[which]].token;
    if (token == PROGRAM_NONE)
        return;
    struct program_op *op = add(program, PROGRAM_DETACH, life);
    op->token = token;
    program_do(program, op);
}

static void add_plain(struct program *program, int life, enum program_op_kind kind)
{
    struct program_op *op = add(program, kind, life);
    program_do(program, op);
}

/* One that is not free yet. */
static int any_lines(struct program *program)
{
    for (int tries = 0; tries < 4 && program->lines_count != 0; tries++) {
        const int lines = program_below(program, program->lines_count);
        if (!program->lines[lines].is_free)
            return lines;
    }
    return PROGRAM_NONE;
}

static void add_mount(struct program *program, int life)
{
    const int lines = any_lines(program);
    if (lines == PROGRAM_NONE)
        return;
    struct program_op *op = add(program, PROGRAM_MOUNT, life);
    op->lines = lines;
    op->linked = one_in(program, 2);
    op->parent_count = program_below(program, PROGRAM_PARENTS + 1);
    for (int i = 0; i < op->parent_count; i++)
        op->parents[i] = any_context(program, life);
    program_do(program, op);
}

static void add_free(struct program *program, int life, int lines)
{
    if (lines == PROGRAM_NONE)
        return;
    struct program_op *op = add(program, PROGRAM_FREE, life);
    op->lines = lines;
    program_do(program, op);
}

static void add_record(struct program *program, int life)
{
    struct program_op *op = add(program, PROGRAM_RECORD, life);
    op->context = any_context(program, life);
    op->value = 1 + program_below(program, 1 << 20);
    program_do(program, op);
}

static void add_any(struct program *program, int life)
{
    const int choice = program_below(program, 100);
    if (choice < 30)
        add_begin(program, life);
    else if (choice < 34)
        add_record(program, life);
    else if (choice < 64)
        add_end(program, life);
    else if (choice < 74)
        add_word(program, life);
    else if (choice < 80)
        add_attach(program, life);
    else if (choice < 86)
        add_detach(program, life);
    else if (choice < 89)
        add_plain(program, life, PROGRAM_BEGIN);
    else if (choice < 93)
        add_plain(program, life, PROGRAM_FINISH);
    else if (choice < 98)
        add_mount(program, life);
    else
        add_free(program, life, any_lines(program));
}

static int begin_life(struct program *program, int after)
{
    if (program->life_count == PROGRAM_LIVES)
        return PROGRAM_NONE;
    program->lives[program->life_count].after = after;
    return program->life_count++;
}

/* A program small enough for all tables: most are, the longest end early. */
static bool has_room(const struct program *program, int most)
{
    enum { SPARE = 8 };
    return program->op_count < most && program->span_count < PROGRAM_SPANS - SPARE &&
           program->set_count < PROGRAM_SETS - SPARE &&
           program->lines_count < PROGRAM_LINES - SPARE;
}

static void make_remotes(struct program *program)
{
    for (int i = 0; i < PROGRAM_REMOTES; i++) {
        otel_span_context *remote = &program->remotes[i];
        for (size_t k = 0; k < sizeof remote->trace_id; k++)
            remote->trace_id[k] = (uint8_t)(1 + program_below(program, 255));
        for (size_t k = 0; k < sizeof remote->span_id; k++)
            remote->span_id[k] = (uint8_t)(1 + program_below(program, 255));
        remote->is_remote = true;
        remote->flags = i != PROGRAM_REMOTES - 1 ? OTEL_TRACE_FLAG_SAMPLED : 0;
    }
}

void program_make(struct program *program, uint64_t seed)
{
    int living[AT_ONCE];
    memset(program, 0, sizeof *program);
    program->seed = program->random = seed;
    program->is_simple = one_in(program, 4);
    program->has_rules = one_in(program, 3);
    make_remotes(program);
    const int most = 40 + program_below(program, PROGRAM_OPS - 2 * PROGRAM_LINES - 40);
    for (int i = 0; i < AT_ONCE; i++)
        living[i] = begin_life(program, PROGRAM_NONE);

    while (has_room(program, most)) {
        int *life = &living[program_below(program, AT_ONCE)];
        if (*life == PROGRAM_NONE)
            continue;
        if (one_in(program, 60) && program->life_count < PROGRAM_LIVES) {
            add_plain(program, *life, PROGRAM_EXIT);
            *life = begin_life(program, *life);
        } else {
            add_any(program, *life);
        }
    }
    for (int i = 0; i < AT_ONCE; i++)
        for (int lines = i; lines < program->lines_count; lines += AT_ONCE)
            if (!program->lines[lines].is_free)
                add_free(program, living[i], lines);
    for (int i = 0; i < AT_ONCE; i++)
        add_plain(program, living[i], PROGRAM_EXIT);
    program->expected.open =
        program->expected.started - program->expected.unsampled - program->expected.ended;
}
