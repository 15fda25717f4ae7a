/* SPDX-License-Identifier: Apache-2.0 */
/* leaf.pml - the current span has its name and attributes in the line, where its record will be.
 *
 * Twin of: lend_line, enter_fast and enter_under (api/span/start.c), end_fast, end_any and
 * append_current (api/span/end.c), oteli_active_take_back (api/active/active_span.c) and
 * oteli_thread_take_back (api/thread/thread_state.h), append_ended and find_room
 * (api/thread/line_writer.c), oteli_thread_mark_busy (api/thread/thread_state.h), keep_own
 * (api/thread/thread_life.c).
 *
 * Abstracted: one thread. A line is a row of cells, in which a record has two parts: the body (name
 * and attributes, here the span's number and how many there are) and the head (all else). The worker
 * visits lines at any moment, and a visit is one step: how lines are handed over is drain.pml's
 * matter. A signal handler comes between any two calls, and is refused inside one. A fork has one
 * process left: the child, which has another line. One inside a call is left out: the child has no
 * state, then.
 *
 * Order: the worker reads what is below `committed`, a release store; what is written before it is
 * one step with it. */

#ifndef CALLS
#define CALLS 4 /* of the program, beside the ends of what is open */
#endif
#ifndef HANDLED
#define HANDLED 1 /* signals */
#endif
#define SPANS (CALLS + HANDLED) /* from 1 on */
#define LINES 3
#define OF_CHILD 2 /* its line */
#define CAPACITY 2
#define NO_LINE LINES
#define DEPTH 2
#define ATTRIBUTE 16 /* one more in a body */
#define REWRITTEN 255

#define OPEN 1
#define ENDED 2
#define EXPORTED 3
#define DROPPED 4
byte fate[SPANS + 1];
byte attributes[SPANS + 1];

/* The line's cells, and the lines. */
byte body[(LINES + 1) * CAPACITY];
byte head[(LINES + 1) * CAPACITY];
byte committed[LINES + 1];
byte consumed[LINES + 1];
bool is_handed_over[LINES + 1];
bool is_free[LINES + 1];

/* The thread. */
byte current, used;
byte stack[DEPTH + 1]; /* spans; the handler's above the program's */
byte place[SPANS + 1]; /* a body */
byte depth, spans;
bool is_lent; /* the top is a leaf, whose body is in … */
byte leaf;    /* … this cell */
bool is_busy, in_handler, is_over, has_forked;

byte parents; /* in a forked child: spans up to this one are not its own */

#ifdef BEHIND_LEAF /* and a leaf has no children */
#define MAY_ENTER !is_lent
#else
#define MAY_ENTER true
#endif
#define TOP stack[depth - 1]
#define CELL (current * CAPACITY + used)
#define BODY(span) (span + ATTRIBUTE * attributes[span])

inline begin_call() { atomic { in_handler == is_handler -> assert(!is_busy); is_busy = true } }

inline take_back()
{
    if
    :: is_lent -> assert(body[leaf] == BODY(TOP)); place[TOP] = body[leaf]; is_lent = false
    :: else
    fi
}

/* The span is the last record of the line. */
inline commit(span)
{
    assert(span > parents);
    used++;
#ifdef BEHIND_LEAF
    if
    :: is_lent -> skip /* not before the leaf */
    :: else -> committed[current] = used
    fi;
#else
    committed[current] = used;
#endif
    fate[span] = ENDED
}

/* Another line, if there is one. */
inline exchange()
{
    if
    :: current != NO_LINE -> is_handed_over[current] = true
    :: else
    fi;
    current = 0;
    do
    :: current < LINES && !is_free[current] -> current++
    :: else -> break
    od;
    is_free[current] = false;
    used = 0
}

/* A record is written from somewhere else than the line. */
inline write(span, bytes, is_larger)
{
    if
    :: current == NO_LINE || used == CAPACITY || is_larger ->
#ifndef NO_TAKE_BACK_AT_EXCHANGE
        take_back();
#endif
        exchange()
    :: else ->
#if !defined(NO_TAKE_BACK_AT_APPEND) && !defined(BEHIND_LEAF)
        take_back()
#else
        skip
#endif
    fi;
    if
    :: current == NO_LINE -> fate[span] = DROPPED
    :: else -> body[CELL] = bytes; head[CELL] = span; commit(span)
    fi
}

inline enter()
{
    begin_call();
    d_step {
#ifndef NO_TAKE_BACK_AT_ENTER
        if
        :: depth != 0 -> take_back()
        :: else
        fi;
#endif
        spans++;
        fate[spans] = OPEN;
        stack[depth] = spans;
        depth++;
        is_lent = current != NO_LINE && used < CAPACITY;
        if
        :: is_lent ->
            leaf = CELL;
            body[leaf] = spans;
#ifdef COMMIT_AT_OPENING
            committed[current] = used + 1;
#endif
#ifdef BEHIND_LEAF
            used++; /* reserved */
#endif
        :: else -> place[spans] = spans
        fi
    };
    is_busy = false
}

inline find_leaf() { was_lent = is_lent; at = leaf }

/* One more attribute of the top. */
inline set()
{
#ifdef ADDRESS_BEFORE_BUSY
    atomic { in_handler == is_handler -> find_leaf() };
    begin_call();
#else
    begin_call();
    d_step { find_leaf() };
#endif
    d_step {
        if
        :: fate[TOP] != OPEN -> skip /* the parent's */
        :: fate[TOP] == OPEN && was_lent -> body[at] = body[at] + ATTRIBUTE; attributes[TOP]++
        :: else -> place[TOP] = place[TOP] + ATTRIBUTE; attributes[TOP]++
        fi;
        was_lent = false;
        at = 0
    };
    is_busy = false
}

inline end()
{
    begin_call();
    d_step {
        if
        :: fate[TOP] != OPEN
        :: fate[TOP] == OPEN && is_lent ->
#ifdef BEHIND_LEAF
            head[leaf] = TOP;
            committed[current] = used;
            fate[TOP] = ENDED
#else
            assert(body[leaf] == BODY(TOP));
            head[CELL] = TOP;
            commit(TOP)
#endif
        :: else -> assert(place[TOP] == BODY(TOP)); write(TOP, place[TOP], false)
        fi;
        is_lent = false;
        depth--;
        stack[depth] = 0
    };
    is_busy = false
}

/* A detached span ends, or any other record is appended: it may be larger than the room. */
inline append()
{
    begin_call();
    spans++;
    if
    :: d_step { write(spans, spans, false) }
    :: d_step { write(spans, spans, true) }
    fi;
    is_busy = false
}

inline forget()
{
    has_forked = true;
    parents = spans;
    for (i : 1 .. SPANS) {
        fate[i] = 0
    };
    for (i : 0 .. LINES - 1) {
        is_handed_over[i] = false;
        is_free[i] = i == OF_CHILD
    };
    i = 0;
#ifdef CHILD_KEEPS_LEAF
    if
    :: is_lent -> fate[TOP] = OPEN
    :: else -> current = NO_LINE; used = 0
    fi
#else
    is_lent = false;
    current = NO_LINE;
    used = 0
#endif
}

/* Once: the rest is what the child does. */
inline fork()
{
    begin_call();
    d_step {
        if
        :: has_forked
        :: else -> forget()
        fi
    };
    is_busy = false
}

proctype program()
{
    byte calls = CALLS, i, at;
    bool is_handler = false, was_lent;
    do
    :: calls > 0 ->
        calls--;
        if
        :: !in_handler && depth < DEPTH && MAY_ENTER -> enter()
        :: !in_handler && depth != 0 -> set()
        :: !in_handler && depth != 0 -> end()
        :: append()
#ifndef NO_FORK
        :: !has_forked -> fork()
#endif
        fi
    :: calls == 0 && depth != 0 && !in_handler -> end()
    :: calls == 0 && depth == 0 && !in_handler -> break
    od;
    atomic { !in_handler -> is_over = true }
}

proctype handler()
{
    byte left = HANDLED, i, at;
    bool is_handler = true, was_lent;
    do
    :: left == 0 || is_over -> break
    :: atomic { left > 0 && !is_over && !is_busy -> in_handler = true; left-- };
       if
       :: MAY_ENTER -> enter(); end()
       :: append()
#ifndef NO_FORK
       :: !has_forked -> fork()
#endif
       fi;
       in_handler = false
    od
}

/* A line that is the thread's, or was handed over: each record in it is an ended span's, whole. */
inline visit(line)
{
    do
    :: consumed[line] < committed[line] ->
        at = line * CAPACITY + consumed[line];
        span = head[at];
        assert(span > parents && fate[span] == ENDED && body[at] == BODY(span));
        fate[span] = EXPORTED;
        body[at] = REWRITTEN;
        head[at] = 0;
        consumed[line] = consumed[line] + 1
    :: else -> break
    od;
    if
    :: is_handed_over[line] ->
        is_handed_over[line] = false;
        is_free[line] = true;
        committed[line] = 0;
        consumed[line] = 0
    :: else
    fi
}

/* A pass for a flush: afterwards nothing that has ended is left. */
inline pass()
{
    d_step {
        for (line : 0 .. LINES - 1) {
            if
            :: line == current || is_handed_over[line] -> visit(line)
            :: else
            fi
        };
        for (span : 1 .. SPANS) {
            assert(fate[span] != ENDED)
        };
        line = 0;
        span = 0;
        at = 0
    }
}

proctype worker()
{
    byte line, span, at;
    do
    :: !is_over -> pass()
    :: is_over -> pass(); break
    od
}

init { atomic { is_free[1] = true; run program(); run handler(); run worker() } }
