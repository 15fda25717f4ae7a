/* SPDX-License-Identifier: Apache-2.0 */
/* alone.pml - a thread takes no locks for its detached spans until another one uses one of them.
 *
 * Twin of: oteli_detached_try_lock (api/thread/detached_pool.h), take_lock and oteli_detached_lock
 * (api/thread/detached_pool.c), oteli_thread_mark_alone and oteli_thread_leave_call
 * (api/thread/thread_state.h), share (api/thread/detached_pool.c), free_slot (api/span/end.c).
 *
 * Abstracted: one span of one thread, two other threads. Each adds to what is said of the span, which
 * is to read it and to write it anew, and tries to end it. The lock is one word, which is taken by
 * compare-and-swap.
 *
 * Order: what the owner stores reaches memory whenever it likes, and stores to different places in any
 * order. A compare-and-swap and the release of a lock empty the owner's buffer, and so does a fence of
 * another thread (membarrier). The others' own stores are in order: they have fences. */

#ifndef CALLS
#define CALLS 2 /* of the owner, beside its end */
#endif
#define OTHERS 2
#define MINE 2 /* the owner's number, in the lock */
#define LOCKED 1
#define FREE 254

#define MARK 0 /* the owner is in a call without a lock */
#define SAID 1
#define OPEN 2
#define PLACES 3
byte memory[PLACES], buffer[PLACES];
bool is_buffered[PLACES];

byte lock = MINE, owns = MINE;
bool is_shared;
byte calls, ends, done; /* what must have been said, how often it was ended, threads that are through */

#define SEEN(place) (is_buffered[place] -> buffer[place] : memory[place]) /* by the owner */

inline store(place, value)
{
    d_step { buffer[place] = value; is_buffered[place] = true }
}

inline drain(place)
{
    d_step {
        if
        :: is_buffered[place] -> memory[place] = buffer[place]; buffer[place] = 0; is_buffered[place] = false
        :: else
        fi
    }
}

inline empty_buffer() { d_step { drain(MARK); drain(SAID); drain(OPEN) } }

/* What the owner does to its span, with a lock or without. */
inline change(is_end)
{
    if
    :: SEEN(OPEN) == 0
    :: SEEN(OPEN) == 1 && is_end -> store(OPEN, 0); ends++
    :: SEEN(OPEN) == 1 && !is_end ->
        said = SEEN(SAID);
        store(SAID, said + 1);
        calls++
    fi;
    said = 0
}

inline call(is_end)
{
#ifdef LOOK_BEFORE_MARK
    mine = owns;
    store(MARK, 1);
#else
    store(MARK, 1);
    mine = owns;
#endif
    if
    :: mine != 0 && lock == mine ->
        change(is_end);
        if
        :: SEEN(OPEN) == 0 -> atomic { empty_buffer(); lock = FREE } /* a release store */
        :: else
        fi;
        store(MARK, 0)
    :: else ->
        store(MARK, 0);
        do
        :: SEEN(OPEN) == 0 -> break
        :: atomic { lock == 0 || lock == MINE -> empty_buffer(); lock = LOCKED };
           change(is_end);
           atomic { empty_buffer(); lock = (memory[OPEN] == 0 -> FREE : 0) };
           break
        :: atomic { lock == FREE -> empty_buffer() }; break
        od
    fi;
    mine = 0
}

proctype owner()
{
    byte left = CALLS, said, mine;
    do
    :: left > 0 -> left--; call(false)
    :: else -> break
    od;
    call(true);
    empty_buffer();
    done++
}

proctype stores()
{
    do
    :: is_buffered[MARK] -> drain(MARK)
    :: is_buffered[SAID] -> drain(SAID)
    :: is_buffered[OPEN] -> drain(OPEN)
    :: done == OTHERS + 1 -> break
    od
}

inline fence() { empty_buffer() }

inline share()
{
    if
    :: is_shared
    :: else ->
#ifdef SHARED_EARLY
        is_shared = true;
#endif
        owns = 0;
#ifndef NO_FENCE
        fence();
#endif
#ifndef NO_WAIT
        memory[MARK] == 0;
#endif
#ifndef NO_SECOND_FENCE
        fence();
#endif
        is_shared = true
    fi
}

/* Another thread: says something, or ends the span. */
inline use(is_end)
{
    do
    :: memory[OPEN] == 0 || lock == FREE -> break
    :: atomic { lock == MINE || lock == 0 -> seen = lock };
        if
        :: seen == MINE -> share()
        :: else
        fi;
        if
        :: atomic { lock == seen -> lock = LOCKED };
           if
           :: memory[OPEN] == 0
           :: memory[OPEN] == 1 && is_end -> memory[OPEN] = 0; ends++
           :: memory[OPEN] == 1 && !is_end ->
               said = memory[SAID];
               memory[SAID] = said + 1;
               calls++
           fi;
           lock = (memory[OPEN] == 0 -> FREE : 0);
           break
        :: lock != seen
        fi
    od;
    said = 0;
    seen = 0
}

proctype other()
{
    byte said, seen;
    use(false);
    if
    :: use(true)
    :: skip
    fi;
    done++
}

init
{
    atomic {
        memory[OPEN] = 1;
        run owner();
        run stores();
        run other();
        run other()
    };
    done == OTHERS + 1;
    assert(memory[SAID] == calls); /* nothing is lost */
    assert(ends == 1 && memory[OPEN] == 0)
}
