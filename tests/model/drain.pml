/* SPDX-License-Identifier: Apache-2.0 */
/* drain.pml - spans in lines, lines in the ring, passes that collect them, and flushes.
 *
 * Twin of: next_line and oteli_commit (api/thread/line_writer.c, .h), oteli_ring_put, _peek and _take
 * (sdk/pipeline/ring.h), all of sdk/engine/drain.c but mounts, choose, begin_pass, continue_pass, send_batch
 * and on_flush (sdk/worker/worker.c), flush_worker (sdk/lifecycle/lifecycle.c), oteli_line_get and _put
 * (api/record/line.c) as a set of free lines.
 *
 * Abstracted: the worker is never asleep and may begin a pass at any moment (waker.pml and
 * mark.pml are about sleeping); there is room for every span (quota.pml). Spans have numbers,
 * and what became of each is known, so that one that is lost, taken twice, or read from
 * memory that another thread owns by now is an error. One batch is filled while the other is under
 * way.
 *
 * Order: everything here that another thread reads is published by a release store, and read
 * with an acquire; what a thread writes before such a store is one step with it, except in the
 * variants that turn the two round. */

#ifndef SPANS
#define SPANS 2 /* of each producer */
#endif
#ifndef LAST_SPANS
#define LAST_SPANS 1 /* of the last producer */
#endif
#ifndef LINES
#define LINES 3
#endif
#ifndef SLOTS
#define SLOTS 2 /* of the ring: as many lines as are handed over */
#endif
#ifndef CAPACITY
#define CAPACITY 1 /* spans in a line */
#endif
#ifndef BATCH
#define BATCH 2
#endif
#ifndef FLUSHES
#define FLUSHES 1
#endif
#ifndef PRODUCERS
#define PRODUCERS 3
#endif
#define NONE 255
#define ALL_SPANS ((PRODUCERS - 1) * SPANS + LAST_SPANS)

/* What became of a span. */
#define OPEN 0
#define ENDED 1 /* committed */
#define FILLED 2 /* in the batch that is being filled */
#define SENT 3 /* in the one that is under way */
#define EXPORTED 4
#define DROPPED 5
byte fate[ALL_SPANS];
byte ready; /* spans that have ended, and are in no batch */

/* Lines. */
bool is_free[LINES] = true;
bool is_parked[LINES];
bool is_filled_from[LINES]; /* the batch that is being filled points into it */
bool is_sent_from[LINES];   /* the one that is under way */
byte owner[LINES];
byte committed[LINES];
byte consumed[LINES];
byte record[LINES * CAPACITY] = NONE;

byte current[PRODUCERS] = NONE;

/* The ring. */
byte head, tail;
byte slot_line[SLOTS];
byte slot_sequence[SLOTS];

byte flush_wanted, flush_done;
byte finished;

#define IS_THERE(ticket) (slot_sequence[ticket % SLOTS] == ticket + 1)
#define PEEK(ticket) (IS_THERE(ticket) -> slot_line[ticket % SLOTS] : NONE)

/* --- producers --- */

inline line_get(line)
{
    d_step {
        line = 0;
        do
        :: line < LINES && !is_free[line] -> line++
        :: else -> break
        od;
        if
        :: line < LINES ->
            is_free[line] = false;
            committed[line] = 0;
            consumed[line] = 0;
            owner[line] = p
        :: else -> line = NONE
        fi
    }
}

inline ring_put(line)
{
    d_step {
        ticket = head;
        head++;
        assert(ticket < tail + SLOTS) /* a slot for every line */
    };
#ifdef PUBLISH_FIRST
    slot_sequence[ticket % SLOTS] = ticket + 1;
    slot_line[ticket % SLOTS] = line;
#else
    d_step { slot_line[ticket % SLOTS] = line; slot_sequence[ticket % SLOTS] = ticket + 1 };
#endif
    ticket = 0
}

inline append()
{
#ifdef COMMIT_FIRST
    d_step { committed[current[p]] = used + 1; fate[span] = ENDED; ready++ };
    d_step { record[current[p] * CAPACITY + used] = span; used++; span++; spans-- }
#else
    d_step {
        record[current[p] * CAPACITY + used] = span;
        used++;
        committed[current[p]] = used;
        fate[span] = ENDED;
        ready++;
        span++;
        spans--
    }
#endif
}

inline next_line()
{
    atomic {
        line_get(line);
        if
        :: line == NONE -> fate[span] = DROPPED; span++; spans--; goto next
        :: else
        fi
    };
#ifdef CHANGE_BEFORE_RING
    d_step { old = current[p]; current[p] = line; line = old; old = NONE };
    if
    :: line != NONE -> ring_put(line)
    :: else
    fi;
    d_step { used = 0; line = NONE }
#else
    if
    :: current[p] != NONE -> ring_put(current[p])
    :: else
    fi;
    d_step { current[p] = line; used = 0; line = NONE }
#endif
}

proctype producer(byte p; byte spans)
{
    byte span, used = CAPACITY, line = NONE, old = NONE, ticket;
    span = p * SPANS;
next:
    do
    :: spans > 0 && used < CAPACITY -> append()
    :: spans > 0 && used == CAPACITY -> next_line()
    :: else -> break
    od;
    finished++
}

/* A flush: what had ended when it began is exported when it is done. */
active [FLUSHES] proctype flusher()
{
    byte ticket, i;
    bool was_ended[ALL_SPANS];
    d_step {
        for (i : 0 .. ALL_SPANS - 1) {
            was_ended[i] = (fate[i] != OPEN)
        };
        i = 0;
        flush_wanted++;
        ticket = flush_wanted
    };
    d_step {
        flush_done >= ticket;
        for (i : 0 .. ALL_SPANS - 1) {
            assert(!was_ended[i] || fate[i] >= EXPORTED);
            was_ended[i] = false
        };
        i = 0;
        ticket = 0;
        finished++
    }
}

/* --- the worker --- */

#ifdef NO_PINS
#define IS_PINNED(line) false
#else
#define IS_PINNED(line) (is_filled_from[line] || is_sent_from[line])
#endif
#ifdef GIVE_BACK_CURRENT
#define IS_CURRENT(line) false
#else
#define IS_CURRENT(line) (current[owner[line]] == line)
#endif

inline give_back(line)
{
    if
    :: IS_PINNED(line) || IS_CURRENT(line) -> is_parked[line] = true
    :: else ->
        assert(!is_filled_from[line] && !is_sent_from[line]);
        assert(!is_free[line] && consumed[line] == committed[line]);
        assert(current[owner[line]] != line);
        is_parked[line] = false;
        is_free[line] = true;
        owner[line] = 0;
        committed[line] = 0;
        consumed[line] = 0
    fi
}

#ifdef PUBLISH_FIRST
#define FORGET(ticket)
#else
#define FORGET(ticket) slot_line[(ticket) % SLOTS] = 0
#endif

inline retire()
{
    do
    :: atomic {
           PEEK(tail) != NONE && consumed[PEEK(tail)] == committed[PEEK(tail)] ->
           peeked = PEEK(tail);
           FORGET(tail);
           tail++;
           give_back(peeked);
           peeked = NONE
       }
    :: else -> break
    od
}

/* The export that is under way is over. */
inline finish_export()
{
    i = 0;
    do
    :: i < ALL_SPANS && fate[i] == SENT -> fate[i] = EXPORTED; i++
    :: i < ALL_SPANS && fate[i] != SENT -> i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < LINES ->
        is_sent_from[i] = false;
        if
        :: is_parked[i] -> give_back(i)
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

/* The batch is complete: wait for the other, and let this one go. */
inline send_batch()
{
    atomic {
        finish_export();
        do
        :: i < ALL_SPANS && fate[i] == FILLED -> fate[i] = SENT; i++
        :: i < ALL_SPANS && fate[i] != FILLED -> i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < LINES ->
            is_sent_from[i] = is_filled_from[i];
            is_filled_from[i] = false;
            i++
        :: else -> break
        od;
        i = 0;
        count = 0
    }
}

/* Take up to the limit, as long as there is room. What a line holds below `committed` does
 * not change, and `consumed` is the worker's. */
inline take_from(line)
{
    do
    :: consumed[line] < limit && count < BATCH ->
        i = record[line * CAPACITY + consumed[line]];
        assert(i != NONE);
        assert(fate[i] == ENDED);
        fate[i] = FILLED;
        ready--;
        record[line * CAPACITY + consumed[line]] = NONE;
        i = 0;
        consumed[line] = consumed[line] + 1;
        count++;
        is_filled_from[line] = true
    :: else -> break
    od
}

inline visit_threads()
{
    do
    :: t < PRODUCERS && current[t] == NONE -> t++
    :: t < PRODUCERS && current[t] != NONE ->
        line = current[t];
        limit = committed[line];
        do
        :: atomic {
               take_from(line);
               if
               :: consumed[line] == limit -> break
               :: else
               fi
           };
           send_batch();
           if
           :: current[t] != line -> break /* the rest is in the ring */
           :: else
           fi
        od;
        atomic { line = NONE; limit = 0; t++ }
    :: t == PRODUCERS -> t = 0; break
    od
}

/* The loop of oteli_drain_continue over the ring. */
inline visit_ring()
{
    atomic { ticket = tail; ring_end = head };
    do
    :: ticket != ring_end && ticket < tail -> ticket++
    :: ticket != ring_end && ticket >= tail ->
        do
        :: atomic {
               line = PEEK(ticket);
               if
#ifdef STOP_AT_GAP
               :: line == NONE -> ring_end = ticket + 1; break
#else
               :: line == NONE -> break
#endif
               :: else -> limit = committed[line]
               fi;
               take_from(line);
               if
               :: consumed[line] == limit -> break
               :: else
               fi
           };
           send_batch()
        od;
        atomic { line = NONE; limit = 0; ticket++ };
        retire()
    :: ticket == ring_end -> d_step { ticket = 0; ring_end = 0 }; break
    od
}

inline pass(all)
{
#ifdef RING_FIRST
    visit_ring();
    visit_threads();
#else
    visit_threads();
    visit_ring();
#endif
    retire();
    if
    :: count == BATCH || (all && count != 0) -> send_batch()
    :: else
    fi;
    atomic { finish_export() }
}

active proctype worker()
{
    byte t, line = NONE, peeked = NONE, limit, ticket, ring_end, count, i, asked;
    bool all, is_last;
    do
    :: atomic {
           if
           :: count + ready >= BATCH -> /* a whole batch waits */
           :: flush_wanted != flush_done -> all = true
           :: finished == PRODUCERS + FLUSHES -> all = true; is_last = true
           fi;
#ifdef JOINED_PASS
           all = true;
#endif
           asked = flush_done;
           if
           :: all -> asked = flush_wanted
           :: else
           fi
       };
       pass(all);
#if defined(LATE_TICKET) || defined(JOINED_PASS)
       asked = flush_wanted;
#endif
       atomic {
           flush_done = asked;
           asked = 0;
           if
           :: is_last -> break
           :: else -> all = false
           fi
       }
    od;
    /* Every span is somewhere, and every line that is not current is free. */
    atomic {
        for (i : 0 .. ALL_SPANS - 1) {
            assert(fate[i] >= EXPORTED)
        };
        for (i : 0 .. LINES - 1) {
            assert(is_free[i] != (current[owner[i]] == i))
        };
        assert(head == tail)
    }
}

init
{
    byte p;
    atomic {
        for (p : 0 .. PRODUCERS - 2) {
            run producer(p, SPANS)
        };
        run producer(PRODUCERS - 1, LAST_SPANS)
    }
}
