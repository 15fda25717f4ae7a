/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/program_print.c - a program for people to read: see program.h. */
#include "tests/support/program.h"

#include <inttypes.h>
#include <stdio.h>

static void print_context(struct program_context context)
{
    static const char *const words[] = {"none", "n", "stretch ", "remote "};
    printf(" %s", words[context.kind]);
    if (context.kind != PROGRAM_NO_SPAN)
        printf("%d", context.index);
}

static void print_begin(const struct program *program, const struct program_op *op)
{
    const struct program_span *span = &program->spans[op->span];
    printf(" n%d%s%s, under", op->span, op->hold ? " hold" : "",
           op->parent == PROGRAM_CURRENT ? ""
           : op->parent == PROGRAM_ROOT  ? " root"
                                         : " explicit");
    print_context(span->parent);
    printf(", set %d%s%s", span->set, span->holds ? " holds" : "", span->is_late ? " late" : "");
}

static void print_op(const struct program *program, const struct program_op *op)
{
    static const char *const words[] = {"enter",  "start", "end",    "cancel", "collect",
                                        "set",    "fail",  "attach", "detach", "begin",
                                        "finish", "mount", "free",   "record", "exit"};
    printf("%2d %s", op->life, words[op->kind]);
    if (op->kind <= PROGRAM_START || op->kind == PROGRAM_RECORD)
        print_begin(program, op);
    else if (op->kind <= PROGRAM_FAIL)
        printf(" n%d", op->span);
    if (op->kind == PROGRAM_ATTACH)
        print_context(op->context);
    if (op->kind == PROGRAM_BEGIN)
        printf(" set %d", op->value);
    if (op->kind >= PROGRAM_FINISH || op->kind == PROGRAM_COLLECT)
        printf(" lines %d, expected %d", op->lines, op->expected);
    for (int i = 0; i < op->parent_count; i++)
        print_context(op->parents[i]);
    printf("   after");
    for (int life = 0; life < PROGRAM_LIVES; life++)
        if (op->needs[life] != 0 && life != op->life)
            printf(" %d:%d", life, op->needs[life]);
    printf("\n");
}

void program_print(const struct program *program)
{
    printf("SEED=%" PRIu64 "%s%s\n", program->seed, program->is_simple ? " simple" : "",
           program->has_rules ? " rules" : "");
    for (int i = 0; i < program->op_count; i++) {
        printf("%3d: ", i);
        print_op(program, &program->ops[i]);
    }
}
