/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/program_check.c - what came of a program: see program.h. */
#include "sdk/engine/engine.h"
#include "sdk/lifecycle/lifecycle.h"
#include "tests/support/oracle.h"
#include "tests/support/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The exported spans, in the order of their numbers. */
struct arrival {
    int number;
    otel_span_view view;
};
static struct {
    const struct program *program;
    struct arrival *arrivals;
    size_t count;
} check;

void program_require(const struct program *program, bool condition, const char *what, int number)
{
    if (condition)
        return;
    fprintf(stderr, "SEED=%" PRIu64 ": span n%d: %s\n", program->seed, number, what);
    exit(1);
}

void program_fail_at(const struct program *program, const struct program_op *op, const char *reason,
                     uint64_t count, int wanted)
{
    fprintf(stderr, "SEED=%" PRIu64 ": operation %d has %" PRIu64 " %s, and not %d\n",
            program->seed, (int)(op - program->ops), count, reason, wanted);
    exit(1);
}

static void require(bool condition, const char *what, int number)
{
    program_require(check.program, condition, what, number);
}

static int by_number(const void *a, const void *b)
{
    const struct arrival *first = a;
    const struct arrival *second = b;
    if (first->number != second->number)
        return first->number < second->number ? -1 : 1;
    return memcmp(first->view.span_id, second->view.span_id, 8);
}

static int by_id(const void *a, const void *b)
{
    return memcmp(((const struct arrival *)a)->view.span_id,
                  ((const struct arrival *)b)->view.span_id, 8);
}

static void load(const otel_memory *memory)
{
    check.count = otel_memory_count(memory);
    check.arrivals = calloc(check.count + 1, sizeof *check.arrivals);
    STRESS_CHECK(check.arrivals != NULL);
    for (size_t i = 0; i < check.count; i++) {
        struct arrival *at = &check.arrivals[i];
        STRESS_CHECK(otel_memory_span(memory, i, &at->view));
        at->number = program_number(at->view.name, 1);
        require(at->number < check.program->span_count, "is none of the program's", at->number);
    }
    qsort(check.arrivals, check.count, sizeof *check.arrivals, by_id);
    for (size_t i = 1; i < check.count; i++)
        require(by_id(&check.arrivals[i - 1], &check.arrivals[i]) != 0, "has another's id",
                check.arrivals[i].number);
    qsort(check.arrivals, check.count, sizeof *check.arrivals, by_number);
}

/* The arrivals of a number: from the first one on, so many. */
static struct arrival *arrivals_of(int number, size_t *count)
{
    size_t first = 0;
    while (first < check.count && check.arrivals[first].number < number)
        first++;
    size_t end = first;
    while (end < check.count && check.arrivals[end].number == number)
        end++;
    *count = end - first;
    return &check.arrivals[first];
}

static otel_span_context ids_of(struct program_context context)
{
    if (context.kind == PROGRAM_SPAN)
        return check.program->spans[context.index].ids;
    if (context.kind == PROGRAM_REMOTE)
        return check.program->remotes[context.index];
    return (otel_span_context){{0}, {0}, 0, false, {0}, 0};
}

static bool is_in_trace(const otel_span_view *view, const otel_span_context *context)
{
    return memcmp(view->trace_id, context->trace_id, 16) == 0;
}

static bool is_child_of(const otel_span_view *view, const otel_span_context *parent)
{
    return is_in_trace(view, parent) && view->parent_span_id != NULL &&
           memcmp(view->parent_span_id, parent->span_id, 8) == 0;
}

static void check_content(int number, const otel_span_view *view)
{
    const struct program_span *span = &check.program->spans[number];
    otel_slice rest = view->attributes;
    otel_attribute_view attribute;
    int values[PROGRAM_LIVES] = {0};
    while (otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute)) {
        const int life = program_number(attribute.key, 4);
        require(values[life] == 0, "has a key twice", number);
        values[life] = (int)attribute.value.integer;
    }
    require(memcmp(values, span->values, sizeof values) == 0, "has other attributes", number);
    require((view->status == OTEL_SPAN_STATUS_ERROR) == span->has_failed, "has another status",
            number);
    require(view->end_ns >= view->start_ns, "ends before it starts", number);
}

static void check_exported(int number, const otel_span_view *view)
{
    const struct program_span *span = &check.program->spans[number];
    const otel_span_context parent = ids_of(span->parent);
    const bool is_remote = span->parent.kind == PROGRAM_REMOTE;
    require(is_in_trace(view, &span->ids), "is in another trace", number);
    require(memcmp(view->span_id, span->ids.span_id, 8) == 0, "has another id", number);
    if (span->parent.kind == PROGRAM_NO_SPAN)
        require(view->parent_span_id == NULL, "has a parent", number);
    else
        require(is_child_of(view, &parent),
                view->parent_span_id == NULL ? "has no parent" : "has another parent", number);
    require(((view->flags & 0x200) != 0) == is_remote, "is wrong about its parent's place", number);
    check_content(number, view);
}

/* --- what was mounted --- */

static bool is_outermost(const struct program_span *span)
{
    if (span->parent.kind != PROGRAM_SPAN)
        return true;
    const struct program_span *parent = &check.program->spans[span->parent.index];
    return parent->set != span->set || parent->fate != PROGRAM_IN_SET;
}

static size_t count_mounts(int set, const struct program_mount *like, bool same_parent, bool linked)
{
    size_t count = 0;
    const otel_span_context wanted =
        like != NULL ? ids_of(like->parent) : ids_of((struct program_context){PROGRAM_NO_SPAN, 0});
    for (int i = 0; i < check.program->mount_count; i++) {
        const struct program_mount *mount = &check.program->mounts[i];
        const otel_span_context ids = ids_of(mount->parent);
        count += mount->set == set && (!linked || mount->linked) &&
                 (like == NULL || memcmp(ids.trace_id, wanted.trace_id, 16) == 0) &&
                 (!same_parent || memcmp(ids.span_id, wanted.span_id, 8) == 0);
    }
    return count;
}

/* In each trace as many copies as mounts, the outermost under the parents they were mounted
 * under. */
static void check_mount(int number, const struct program_mount *mount)
{
    const struct program_span *span = &check.program->spans[number];
    const otel_span_context parent = ids_of(mount->parent);
    size_t count;
    const struct arrival *at = arrivals_of(number, &count);
    size_t in_trace = 0;
    size_t under_parent = 0;
    size_t linked = 0;
    for (size_t i = 0; i < count; i++) {
        in_trace += is_in_trace(&at[i].view, &parent);
        under_parent += is_child_of(&at[i].view, &parent);
        linked += is_child_of(&at[i].view, &parent) && at[i].view.links.length != 0;
    }
    require(in_trace == count_mounts(span->set, mount, false, false), "has lost a copy", number);
    if (!is_outermost(span))
        return;
    require(under_parent == count_mounts(span->set, mount, true, false), "is not under its parent",
            number);
    require(linked == count_mounts(span->set, mount, true, true), "has lost its link", number);
}

/* Each copy is a child of another copy of its parent. */
static void check_inner(int number)
{
    const struct program_span *span = &check.program->spans[number];
    size_t count;
    size_t parents;
    const struct arrival *at = arrivals_of(number, &count);
    const struct arrival *above = arrivals_of(span->parent.index, &parents);
    require(count == parents, "is not where its parent is", number);
    for (size_t p = 0; p < parents; p++) {
        size_t children = 0;
        for (size_t i = 0; i < count; i++)
            children += at[i].view.parent_span_id != NULL &&
                        memcmp(at[i].view.parent_span_id, above[p].view.span_id, 8) == 0 &&
                        memcmp(at[i].view.trace_id, above[p].view.trace_id, 16) == 0;
        require(children == 1, "is not once under each copy of its parent", number);
    }
    for (size_t i = 0; i < count; i++)
        require(at[i].view.links.length == 0, "is linked, but not outermost", number);
}

static void check_copies(int number)
{
    const struct program_span *span = &check.program->spans[number];
    size_t count;
    const struct arrival *at = arrivals_of(number, &count);
    require(count == count_mounts(span->set, NULL, false, false), "came another number of times",
            number);
    for (size_t i = 0; i < count; i++)
        check_content(number, &at[i].view);
    if (count != 0 && !is_outermost(span))
        check_inner(number);
    for (int i = 0; i < check.program->mount_count; i++)
        if (check.program->mounts[i].set == span->set)
            check_mount(number, &check.program->mounts[i]);
}

static void check_counts(void)
{
    const otel_stats stats = stress_stats();
    otel_stats wanted = check.program->expected;
    wanted.size = stats.size;
    wanted.batches = stats.batches;
    wanted.queued_bytes = stats.queued_bytes;
    if (memcmp(&stats, &wanted, sizeof stats) == 0)
        return;
    char text[512];
    fprintf(stderr, "SEED=%" PRIu64 ": not the same counts\n", check.program->seed);
    otel_stats_describe(&stats, text, sizeof text);
    fprintf(stderr, "started %" PRIu64 ", unsampled %" PRIu64 ", open %" PRIu64 ", %s\n",
            stats.started, stats.unsampled, stats.open, text);
    otel_stats_describe(&wanted, text, sizeof text);
    fprintf(stderr, "started %" PRIu64 ", unsampled %" PRIu64 ", open %" PRIu64 ", %s\n",
            wanted.started, wanted.unsampled, wanted.open, text);
    exit(1);
}

void program_check(struct program *program, const otel_memory *memory)
{
    check.program = program;
    load(memory);
    for (int number = 0; number < program->span_count; number++) {
        size_t count;
        const struct arrival *at = arrivals_of(number, &count);
        const enum program_fate fate = program->spans[number].fate;
        require(fate == PROGRAM_EXPORTED || fate == PROGRAM_IN_SET || count == 0,
                "was exported all the same", number);
        require(fate != PROGRAM_EXPORTED || count == 1, "did not come once", number);
        if (fate == PROGRAM_EXPORTED)
            check_exported(number, &at->view);
        else if (fate == PROGRAM_IN_SET)
            check_copies(number);
    }
    check_counts();
    free(check.arrivals);
}

static void print_context(const char *role, struct program_context context)
{
    static const char *const words[] = {"none", "n", "stretch ", "remote "};
    if (context.kind != PROGRAM_NO_SPAN)
        printf(", %s %s%d", role, words[context.kind], context.index);
}

/* For people to read: the number of an operation, its life, and what it does to which span. */
static void print_program(const struct program *program)
{
    static const char *const words[] = {"enter",  "start", "end",    "cancel", "collect",
                                        "set",    "fail",  "attach", "detach", "begin",
                                        "finish", "mount", "free",   "record", "exit"};
    printf("SEED=%" PRIu64 "%s%s\n", program->seed, program->is_simple ? " simple" : "",
           program->has_rules ? " rules" : "");
    for (int i = 0; i < program->op_count; i++) {
        const struct program_op *op = &program->ops[i];
        printf("%3d: %2d %s n%d%s, lines %d, value %d, expected %d", i, op->life, words[op->kind],
               op->span, op->hold ? " hold" : "", op->lines, op->value, op->expected);
        if (op->kind <= PROGRAM_START || op->kind == PROGRAM_RECORD)
            print_context("under", program->spans[op->span].parent);
        print_context("context", op->context);
        for (int parent = 0; parent < op->parent_count; parent++)
            print_context("under", op->parents[parent]);
        for (int life = 0; life < PROGRAM_LIVES; life++)
            if (op->needs[life] != 0 && life != op->life)
                printf(", after %d:%d", life, op->needs[life]);
        printf("\n");
    }
}

void program_try(struct program *program, uint64_t seed, bool print)
{
    otel_memory *memory = otel_memory_new();
    program_make(program, seed);
    if (print)
        print_program(program);
    program_run(program, memory);
    program_check(program, memory);
    STRESS_CHECK(stress_is_done(otel_shutdown(60000)));
    for (int i = 0; i < program->span_count; i++)
        otel_span_end(program->spans[i].handle);
    const otel_stats stats = stress_stats();
    stress_check_sums(&stats, false);
    otel_memory_free(memory);
    oteli_lifecycle_reset();
    oteli_api_reset();
}
