/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/program_model.c - what operations mean: see program.h. */
#include "tests/support/program.h"

#include "tests/support/oracle.h"

/* --- who waits for whom --- */

enum thing { HANDLE, USE, SET, LINES }; /* of a span, of a span, of a set, of otel_lines */

static struct program_history *thing_of(struct program *program, enum thing kind, int index)
{
    static const int first[] = {0, PROGRAM_SPANS, 2 * PROGRAM_SPANS,
                                2 * PROGRAM_SPANS + PROGRAM_SETS};
    return &program->things[first[kind] + index];
}

static void need(struct program_op *op, int life, int done)
{
    if (op->needs[life] < done)
        op->needs[life] = done;
}

/* An operation that can be exchanged with others that only read the same thing. */
static void reads(struct program *program, struct program_op *op, enum thing kind, int index)
{
    struct program_history *thing = thing_of(program, kind, index);
    if (thing->written != 0)
        need(op, thing->writer, thing->written);
    thing->read[op->life] = program->lives[op->life].op_count + 1;
}

static void writes(struct program *program, struct program_op *op, enum thing kind, int index)
{
    struct program_history *thing = thing_of(program, kind, index);
    reads(program, op, kind, index);
    for (int life = 0; life < PROGRAM_LIVES; life++) {
        need(op, life, life == op->life ? 0 : thing->read[life]);
        thing->read[life] = 0;
    }
    thing->writer = op->life;
    thing->written = program->lives[op->life].op_count + 1;
}

static void reads_context(struct program *program, struct program_op *op,
                          struct program_context context)
{
    if (context.kind == PROGRAM_SPAN)
        reads(program, op, HANDLE, context.index);
}

/* --- the stack of contexts --- */

/* The trace of a child of it, as a number. */
static int trace_under(const struct program *program, struct program_context parent)
{
    switch (parent.kind) {
    case PROGRAM_SPAN:
        return program->spans[parent.index].trace;
    case PROGRAM_STRETCH:
        return PROGRAM_SPANS + parent.index;
    case PROGRAM_REMOTE:
        return PROGRAM_SPANS + PROGRAM_SETS + parent.index;
    default:
        return program->span_count;
    }
}

struct program_context program_current(const struct program *program, int life)
{
    const struct program_life *at = &program->lives[life];
    return at->places[at->top].context;
}

static int push(struct program_life *life, enum program_place_kind kind,
                struct program_context context)
{
    STRESS_CHECK(life->top + 1 < PROGRAM_PLACES);
    life->places[++life->top] =
        (struct program_place){.kind = kind, .context = context, .token = PROGRAM_NONE};
    return life->top;
}

static bool covers_nothing(const struct program_life *life, int cover)
{
    for (int at = cover - 1; at > life->places[cover].below; at--)
        if (!life->places[at].is_dead && life->places[at].kind != PROGRAM_COVER)
            return false;
    return true;
}

/* A cover repeats the newest place below that is still there. */
static void show_again(struct program_life *life, struct program_place *cover)
{
    while (life->places[cover->below].is_dead || life->places[cover->below].is_passed)
        cover->below--;
    cover->context = life->places[cover->below].context;
}

static void cover_from(struct program_life *life, int below)
{
    const int at = push(life, PROGRAM_COVER, (struct program_context){PROGRAM_NO_SPAN, 0});
    life->places[at].below = below;
    show_again(life, &life->places[at]);
}

static void leave(struct program_life *life, int place)
{
    life->places[place].is_dead = true;
    for (int at = place + 1; at <= life->top; at++)
        if (life->places[at].kind == PROGRAM_COVER)
            show_again(life, &life->places[at]);
    for (;;) {
        while (life->places[life->top].is_dead)
            life->top--;
        if (life->places[life->top].kind != PROGRAM_COVER || !covers_nothing(life, life->top))
            break;
        life->top = life->places[life->top].below;
    }
    if (life->places[life->top].is_passed)
        cover_from(life, life->top);
}

/* Of its trace, up to what was attached since or covers it, nothing above is current any more. */
static void pass_over(const struct program *program, struct program_life *life, int place)
{
    const int trace = program->spans[life->places[place].context.index].trace;
    for (int at = place + 1; at <= life->top; at++) {
        struct program_place *above = &life->places[at];
        if ((above->kind == PROGRAM_ATTACHED && !above->is_dead) ||
            (above->kind == PROGRAM_COVER && above->below < place))
            return;
        if (above->kind == PROGRAM_IS_SPAN && program->spans[above->context.index].trace == trace)
            above->is_passed = true;
    }
}

/* What was current before a place is so again, above what is still open. */
static void cover(struct program_life *life, int place)
{
    if (life->top > place)
        cover_from(life, place - 1);
}

static int place_of(const struct program_life *life, enum program_place_kind kind, int index)
{
    for (int at = life->top; at > 0; at--)
        if (life->places[at].kind == kind && !life->places[at].is_dead &&
            life->places[at].context.index == index)
            return at;
    return PROGRAM_NONE;
}

static int new_set(struct program *program)
{
    STRESS_CHECK(program->set_count < PROGRAM_SETS);
    program->sets[program->set_count] =
        (struct program_set){.state = PROGRAM_HOLDING, .outer = PROGRAM_NONE};
    return program->set_count++;
}

static void lose(struct program *program, otel_drop_reason reason, int count)
{
    program->expected.dropped[reason] += (uint64_t)count;
    program->expected.ended += (uint64_t)count;
}

static void withhold(struct program *program, otel_withheld_reason reason, int count)
{
    program->expected.withheld[reason] += (uint64_t)count;
    program->expected.ended += (uint64_t)count;
}

static void deliver(struct program *program, int count)
{
    program->expected.delivered += (uint64_t)count;
    program->expected.ended += (uint64_t)count;
}

/* Every span that has ended into the set. */
static void settle(struct program *program, int set, enum program_fate fate)
{
    for (int i = 0; i < program->span_count; i++)
        if (program->spans[i].set == set && program->spans[i].fate == PROGRAM_IN_SET)
            program->spans[i].fate = fate;
}

/* The set that takes what this one would: itself, or the one around it once it has passed on what
 * it kept. */
static int taker_of(const struct program *program, int set)
{
    while (program->sets[set].state == PROGRAM_KEPT && program->sets[set].outer != PROGRAM_NONE)
        set = program->sets[set].outer;
    return set;
}

/* The set, and those around it that may take what it would; PROGRAM_NONE: there are none. */
static void reads_sets(struct program *program, struct program_op *op, int set)
{
    for (; set != PROGRAM_NONE; set = program->sets[set].outer)
        reads(program, op, SET, set);
}

static int give(struct program *program, int set)
{
    STRESS_CHECK(program->lines_count < PROGRAM_LINES);
    program->lines[program->lines_count] =
        (struct program_lines){.set = set, .is_given = program->sets[set].count != 0};
    return program->lines_count++;
}

/* --- spans begin --- */

static bool is_collected(const struct program *program, struct program_context context)
{
    return context.kind == PROGRAM_STRETCH ||
           (context.kind == PROGRAM_SPAN && program->spans[context.index].is_collected);
}

static bool is_sampled(const struct program *program, struct program_context context)
{
    if (context.kind == PROGRAM_REMOTE)
        return context.index != PROGRAM_REMOTES - 1;
    return context.kind != PROGRAM_SPAN || program->spans[context.index].is_sampled;
}

static struct program_context parent_of(const struct program *program, const struct program_op *op)
{
    struct program_context parent = program_current(program, op->life);
    if (op->parent != PROGRAM_CURRENT)
        parent = op->context;
    if (op->parent == PROGRAM_ROOT)
        parent.kind = PROGRAM_NO_SPAN;
    if (!is_collected(program, parent))
        return parent;
    const struct program_life *life = &program->lives[op->life];
    const bool is_here = parent.kind == PROGRAM_STRETCH
                             ? place_of(life, PROGRAM_IS_STRETCH, parent.index) != PROGRAM_NONE
                             : place_of(life, PROGRAM_IS_SPAN, parent.index) != PROGRAM_NONE;
    if (op->kind != PROGRAM_ENTER || !is_here)
        parent.kind = PROGRAM_NO_SPAN;
    return parent;
}

/* False: its parent's set is decided, and the span is like any other. */
static bool inherit_set(struct program *program, struct program_op *op, struct program_span *span,
                        const struct program_span *parent)
{
    reads_sets(program, op, parent->set);
    const int set = parent->set != PROGRAM_NONE ? taker_of(program, parent->set) : PROGRAM_NONE;
    if (set != PROGRAM_NONE && program->sets[set].state == PROGRAM_KEPT)
        return false;
    span->is_held = parent->is_held;
    span->is_collected = parent->is_collected;
    const bool is_closed = set != PROGRAM_NONE && program->sets[set].state == PROGRAM_CLOSED;
    span->is_late = parent->is_late || is_closed;
    span->set = set;
    return true;
}

/* It has a set of its own, in the one that it would be a member of. */
static void hold_back(struct program *program, struct program_op *op, struct program_span *span,
                      int outer)
{
    span->set = new_set(program);
    program->sets[span->set].outer = outer;
    span->is_held = span->holds = true;
    program->holders[span->trace]++;
    writes(program, op, SET, span->set);
}

static void find_set(struct program *program, struct program_op *op, int number)
{
    struct program_span *span = &program->spans[number];
    const struct program_context parent = span->parent;
    if (parent.kind == PROGRAM_STRETCH) {
        reads(program, op, SET, parent.index);
        span->set = parent.index;
        span->is_collected = true;
        span->is_late = program->sets[parent.index].state == PROGRAM_CLOSED;
        return;
    }
    const struct program_span *above =
        parent.kind == PROGRAM_SPAN ? &program->spans[parent.index] : NULL;
    if (above != NULL && (above->is_held || above->is_collected) &&
        inherit_set(program, op, span, above)) {
        if (op->hold && !span->is_collected && span->set != PROGRAM_NONE &&
            program->sets[span->set].state == PROGRAM_HOLDING)
            hold_back(program, op, span, span->set);
        return;
    }
    if (op->hold || (program->has_rules && above == NULL))
        hold_back(program, op, span, PROGRAM_NONE);
}

/* Verdicts are forgotten once eight roots after them, of traces with the same row of the table,
 * have had theirs: with so few of a trace none is, unless four traces meet there by chance. */
static void spare_verdicts(struct program *program, struct program_op *op)
{
    enum { MOST = 3 };
    if (program->holders[trace_under(program, parent_of(program, op))] == MOST)
        op->parent = PROGRAM_ROOT;
}

static void begin_span(struct program *program, struct program_op *op)
{
    spare_verdicts(program, op);
    STRESS_CHECK(program->span_count < PROGRAM_SPANS);
    const int number = op->span = program->span_count++;
    struct program_span *span = &program->spans[number];
    *span = (struct program_span){.life = op->kind == PROGRAM_ENTER ? op->life : PROGRAM_NONE,
                                  .parent = parent_of(program, op),
                                  .is_open = true,
                                  .set = PROGRAM_NONE};
    span->trace = trace_under(program, span->parent);
    if (span->parent.kind == PROGRAM_NO_SPAN)
        span->trace = number;
    if (op->parent == PROGRAM_EXPLICIT)
        reads_context(program, op, op->context);
    span->is_sampled = is_sampled(program, span->parent);
    program->expected.started++;
    program->expected.unsampled += !span->is_sampled;
    span->fate = span->is_sampled ? PROGRAM_OPEN : PROGRAM_UNSAMPLED;
    if (span->is_sampled)
        find_set(program, op, number);
    if (op->kind == PROGRAM_ENTER)
        push(&program->lives[op->life], PROGRAM_IS_SPAN,
             (struct program_context){PROGRAM_SPAN, number});
    writes(program, op, HANDLE, number);
    writes(program, op, USE, number);
}

/* One that has ended: it is exported whatever holds others back, and is no more to those that
 * name it as their parent than its ids. */
static void record_span(struct program *program, struct program_op *op)
{
    STRESS_CHECK(program->span_count < PROGRAM_SPANS);
    const int number = op->span = program->span_count++;
    struct program_span *span = &program->spans[number];
    *span = (struct program_span){.life = PROGRAM_NONE,
                                  .parent = op->context,
                                  .has_failed = op->value % 5 == 0,
                                  .set = PROGRAM_NONE};
    if (op->context.kind == PROGRAM_STRETCH) /* that has no ids to name */
        span->parent = (struct program_context){PROGRAM_NO_SPAN, 0};
    span->values[op->life] = op->value;
    span->trace =
        span->parent.kind == PROGRAM_NO_SPAN ? number : trace_under(program, span->parent);
    reads_context(program, op, span->parent);
    span->is_sampled = is_sampled(program, span->parent);
    span->fate = span->is_sampled ? PROGRAM_EXPORTED : PROGRAM_UNSAMPLED;
    program->expected.started++;
    if (span->is_sampled)
        deliver(program, 1);
    else
        program->expected.unsampled++;
    writes(program, op, HANDLE, number);
    writes(program, op, USE, number);
}

/* --- spans end --- */

enum how { END, CANCEL, COLLECT, ABANDON };

bool program_keeps(int root, bool has_error)
{
    return root % 3 != 0 || has_error;
}

/* What is kept goes to the set around it; or the way that was decided there. */
static void pass_on(struct program *program, int index)
{
    const struct program_set *set = &program->sets[index];
    const int taker = taker_of(program, index);
    struct program_set *outer = &program->sets[taker];
    if (outer->state == PROGRAM_HOLDING) {
        outer->count += set->count;
        outer->has_error |= set->has_error;
        for (int i = 0; i < program->span_count; i++)
            if (program->spans[i].set == index && program->spans[i].fate == PROGRAM_IN_SET)
                program->spans[i].set = taker;
    } else if (outer->state == PROGRAM_KEPT) {
        deliver(program, set->count);
        settle(program, index, PROGRAM_EXPORTED);
    } else {
        if (outer->is_abandoned)
            lose(program, OTEL_DROP_ABANDONED, set->count);
        else
            withhold(program, OTEL_WITHHELD_LATE, set->count);
        settle(program, index, PROGRAM_LOST);
    }
}

static void decide(struct program *program, int number, enum how how)
{
    const int index = program->spans[number].set;
    struct program_set *set = &program->sets[index];
    if (how == CANCEL || how == COLLECT || how == ABANDON) {
        set->state = PROGRAM_CLOSED;
        set->is_abandoned = how == ABANDON;
        if (how == ABANDON)
            lose(program, OTEL_DROP_ABANDONED, set->count);
        else
            withhold(program, how == CANCEL ? OTEL_WITHHELD_CANCELLED : OTEL_WITHHELD_COLLECTED,
                     set->count);
        if (how != COLLECT)
            settle(program, index, PROGRAM_LOST);
        return;
    }
    const bool asks = program->has_rules && set->outer == PROGRAM_NONE; /* else its root does */
    if (asks) {
        program->tails[number].span_count = set->count;
        program->tails[number].has_error = set->has_error;
    }
    if (asks && !program_keeps(number, set->has_error)) {
        set->state = PROGRAM_CLOSED;
        withhold(program, OTEL_WITHHELD_NOT_KEPT, set->count);
        settle(program, index, PROGRAM_LOST);
        return;
    }
    set->state = PROGRAM_KEPT;
    pass_on(program, index);
}

static void end_sampled(struct program *program, int number, enum how how)
{
    struct program_span *span = &program->spans[number];
    if (span->set != PROGRAM_NONE)
        span->set = taker_of(program, span->set);
    struct program_set *set = span->set != PROGRAM_NONE ? &program->sets[span->set] : NULL;
    const bool is_cancelled = how == CANCEL && !span->holds;
    const bool is_held = set != NULL && set->state == PROGRAM_HOLDING;
    span->fate = PROGRAM_LOST;
    if (how == ABANDON || (!is_cancelled && !is_held && set != NULL && set->is_abandoned)) {
        lose(program, OTEL_DROP_ABANDONED, 1);
    } else if (is_cancelled) {
        withhold(program, OTEL_WITHHELD_CANCELLED, 1);
    } else if (is_held) {
        span->fate = PROGRAM_IN_SET;
        set->count++;
        set->has_error |= span->has_failed;
    } else if (span->is_late || (set != NULL && set->state == PROGRAM_CLOSED)) {
        withhold(program, OTEL_WITHHELD_LATE, 1);
    } else {
        span->fate = PROGRAM_EXPORTED;
        deliver(program, 1);
    }
    if (span->holds)
        decide(program, number, how);
}

/* What an end waits for; also when it comes too late and does nothing. */
static void touch_end(struct program *program, struct program_op *op, int number)
{
    const struct program_span *span = &program->spans[number];
    reads(program, op, HANDLE, number);
    writes(program, op, USE, number);
    reads_sets(program, op, span->set);
    if (span->holds)
        writes(program, op, SET, span->set);
}

static void end_span(struct program *program, struct program_op *op, enum how how)
{
    struct program_span *span = &program->spans[op->span];
    const bool is_foreign = span->life != PROGRAM_NONE && span->life != op->life;
    if (is_foreign) {
        reads(program, op, HANDLE, op->span);
        return;
    }
    touch_end(program, op, op->span);
    if (!span->is_open)
        return;
    span->is_open = false;
    if (span->is_sampled)
        end_sampled(program, op->span, how);
    if (span->life == PROGRAM_NONE)
        return;
    struct program_life *life = &program->lives[op->life];
    const int place = place_of(life, PROGRAM_IS_SPAN, op->span);
    if (!life->places[place].is_passed)
        pass_over(program, life, place);
    leave(life, place);
}

static void collect(struct program *program, struct program_op *op)
{
    const struct program_span *span = &program->spans[op->span];
    const bool is_mine = span->life == PROGRAM_NONE || span->life == op->life;
    const bool holds = span->is_open && span->holds && is_mine;
    end_span(program, op, COLLECT);
    if (!holds)
        return;
    op->lines = give(program, span->set);
    op->expected = program->sets[span->set].count;
    program->lines[op->lines].is_accounted = true;
    writes(program, op, LINES, op->lines);
}

static void describe(struct program *program, struct program_op *op)
{
    struct program_span *span = &program->spans[op->span];
    const bool is_foreign = span->life != PROGRAM_NONE && span->life != op->life;
    reads(program, op, HANDLE, op->span);
    if (is_foreign)
        return;
    reads(program, op, USE, op->span);
    if (!span->is_open)
        return;
    if (op->kind == PROGRAM_FAIL)
        span->has_failed = true;
    else
        span->values[op->life] = op->value;
}

/* --- contexts and stretches --- */

static void attach(struct program *program, struct program_op *op)
{
    struct program_life *life = &program->lives[op->life];
    reads_context(program, op, op->context);
    op->token = program->token_count++;
    const int place = push(life, PROGRAM_ATTACHED, op->context);
    life->places[place].token = op->token;
    life->attached[life->attached_count++] = place;
}

static void detach(struct program *program, const struct program_op *op)
{
    struct program_life *life = &program->lives[op->life];
    int at = life->attached_count - 1;
    while (at >= 0 && life->places[life->attached[at]].token != op->token)
        at--;
    STRESS_CHECK(at >= 0);
    const int place = life->attached[at];
    const bool in_order = at == life->attached_count - 1;
    life->places[place].token = PROGRAM_NONE;
    while (life->attached_count != 0 &&
           life->places[life->attached[life->attached_count - 1]].token == PROGRAM_NONE)
        life->attached_count--;
    leave(life, place);
    if (in_order)
        cover(life, place);
}

static void begin_stretch(struct program *program, struct program_op *op)
{
    const int set = op->value = new_set(program);
    push(&program->lives[op->life], PROGRAM_IS_STRETCH,
         (struct program_context){PROGRAM_STRETCH, set});
    writes(program, op, SET, set);
}

static void finish_stretch(struct program *program, struct program_op *op)
{
    struct program_life *life = &program->lives[op->life];
    int place = life->top;
    while (place > 0 &&
           (life->places[place].kind != PROGRAM_IS_STRETCH || life->places[place].is_dead))
        place--;
    if (place == 0)
        return;
    const int set = life->places[place].context.index;
    writes(program, op, SET, set);
    program->sets[set].state = PROGRAM_CLOSED;
    op->expected = program->sets[set].count;
    op->lines = give(program, set);
    writes(program, op, LINES, op->lines);
    leave(life, place);
    cover(life, place);
}

static void mount(struct program *program, struct program_op *op)
{
    struct program_lines *lines = &program->lines[op->lines];
    const int count = program->sets[lines->set].count;
    writes(program, op, LINES, op->lines);
    for (int i = 0; i < op->parent_count; i++) {
        const struct program_context parent = op->parents[i];
        reads_context(program, op, parent);
        if (parent.kind == PROGRAM_NO_SPAN || is_collected(program, parent) ||
            !is_sampled(program, parent) || !lines->is_given)
            continue;
        if (lines->is_accounted)
            program->expected.started += (uint64_t)count;
        lines->is_accounted = true;
        deliver(program, count);
        program->mounts[program->mount_count++] =
            (struct program_mount){lines->set, parent, op->linked};
    }
}

static void free_lines(struct program *program, struct program_op *op)
{
    struct program_lines *lines = &program->lines[op->lines];
    writes(program, op, LINES, op->lines);
    lines->is_free = true;
    if (!lines->is_accounted)
        withhold(program, OTEL_WITHHELD_UNMOUNTED, program->sets[lines->set].count);
}

/* The thread ends with what is open, from the top of its stack. */
static void end_life(struct program *program, struct program_op *op)
{
    struct program_life *life = &program->lives[op->life];
    for (; life->top > 0; life->top--) {
        const struct program_place *place = &life->places[life->top];
        const int index = place->context.index;
        if (place->is_dead)
            continue;
        if (place->kind == PROGRAM_IS_STRETCH) {
            writes(program, op, SET, index);
            program->sets[index].state = PROGRAM_CLOSED;
            lose(program, OTEL_DROP_ABANDONED, program->sets[index].count);
            settle(program, index, PROGRAM_LOST);
        } else if (place->kind == PROGRAM_IS_SPAN) {
            struct program_span *span = &program->spans[index];
            touch_end(program, op, index);
            span->is_open = false;
            if (span->is_sampled)
                end_sampled(program, index, ABANDON);
        }
    }
    life->has_ended = true;
}

void program_do(struct program *program, struct program_op *op)
{
    const otel_stats before = program->expected;
    switch (op->kind) {
    case PROGRAM_ENTER:
    case PROGRAM_START:
        begin_span(program, op);
        break;
    case PROGRAM_END:
        end_span(program, op, END);
        break;
    case PROGRAM_CANCEL:
        end_span(program, op, CANCEL);
        break;
    case PROGRAM_COLLECT:
        collect(program, op);
        break;
    case PROGRAM_SET:
    case PROGRAM_FAIL:
        describe(program, op);
        break;
    case PROGRAM_ATTACH:
        attach(program, op);
        break;
    case PROGRAM_DETACH:
        detach(program, op);
        break;
    case PROGRAM_BEGIN:
        begin_stretch(program, op);
        break;
    case PROGRAM_FINISH:
        finish_stretch(program, op);
        break;
    case PROGRAM_MOUNT:
        mount(program, op);
        break;
    case PROGRAM_FREE:
        free_lines(program, op);
        break;
    case PROGRAM_RECORD:
        record_span(program, op);
        break;
    case PROGRAM_EXIT:
        end_life(program, op);
        break;
    }
    for (int i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        op->lost[i] = (int)(program->expected.dropped[i] - before.dropped[i]);
    for (int i = 0; i < OTEL_WITHHELD_REASON_COUNT; i++)
        op->withheld[i] = (int)(program->expected.withheld[i] - before.withheld[i]);
    program->lives[op->life].op_count++;
}
