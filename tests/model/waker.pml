/* SPDX-License-Identifier: Apache-2.0 */
/* waker.pml - producers announce spans and request a drain, a thread flushes, the worker sleeps.
 *
 * Twin of: oteli_waker_announce, _request_drain, _wake, _arm, _disarm, _sleep and wake_once
 * (sdk/pipeline/waker.c), oteli_waker_taken, _take_drain_request, _listen (sdk/pipeline/waker.h),
 * the loop of oteli_worker_main and choose (sdk/worker/worker.c), flush_worker
 * (sdk/lifecycle/lifecycle.c). With POLLED the worker is driven through the eventfd: step and
 * oteli_drive_until (sdk/worker/drive.c).
 *
 * Abstracted: lines and ring are a number of committed spans (drain.pml); exporting is a
 * step. There is no clock at all: a process that sleeps is woken by another, or never. Instead of
 * the number of the sleep in `wanted`, it is known of each thread whether what it has seen is of
 * the sleep that still lasts.
 *
 * Order: the worker's stores to `wanted` go through a store buffer and reach memory whenever
 * they like; a full fence, or an atomic addition or exchange, waits until they have. A
 * producer's plain load may not overtake its atomic addition, except in the variant that says
 * so. `word` is what the kernel compares; comparing and falling asleep is one step. */

#ifndef ANNOUNCEMENTS
#define ANNOUNCEMENTS 1 /* of the first producer */
#endif
#ifndef LAST_ANNOUNCEMENTS
#define LAST_ANNOUNCEMENTS 1
#endif
#ifndef REQUESTS
#define REQUESTS 0
#endif
#ifndef FLUSHES
#define FLUSHES 0
#endif
#ifndef SPANS
#define SPANS 1 /* spans */
#endif
#ifndef BATCH
#define BATCH 2
#endif
#define NEVER 100

byte wanted = NEVER; /* in memory */
byte wanted_next;    /* in the worker's store buffer … */
bool is_buffered;     /* … if something is */
short waiting;
short ready; /* committed, and not taken */
byte batch;  /* spans in the one that is being filled */
bool is_woken; /* `word` differs from what the worker heard; or the eventfd can be read */
bool drain_requested;
bool in_futex;
byte flush_wanted;
byte flush_done;

bool is_fresh[4]; /* of each thread: what it has seen of `wanted` is of this sleep */
bool may_wake; /* the worker sleeps, or is about to, and was not woken from that yet */
byte finished;

#define FENCE (!is_buffered)

/* The worker's store buffer drains by itself. */
active proctype memory()
{
end:
    do
    :: d_step {
           is_buffered -> wanted = wanted_next;
           is_buffered = false;
           if
           :: wanted != NEVER ->
               may_wake = true;
#ifndef NO_NUMBER
               is_fresh[0] = false;
               is_fresh[1] = false;
               is_fresh[2] = false;
               is_fresh[3] = false
#endif
           :: else -> may_wake = false
           fi
       }
    od
}

inline wake()
{
    is_woken = true;
#ifndef POLLED
    in_futex = false
#endif
}

inline waker_wake(p)
{
    is_fresh[p] = true;
    d_step {
        if
        :: is_fresh[p] -> wanted = NEVER; may_wake = false
        :: else
        fi;
        is_fresh[p] = false
    };
    wake()
}

/* The thread that changes the number wakes the worker, only once in each sleep, for a reason. */
inline wake_once(p)
{
    d_step {
#ifndef NO_SWAP
        is_due = (is_fresh[p] && wanted != NEVER);
#endif
        if
        :: is_due ->
            assert(may_wake);
            assert(waiting >= seen || drain_requested);
            may_wake = false;
            wanted = NEVER
        :: else
        fi;
        seen = NEVER;
        is_fresh[p] = false
    };
    if
    :: is_due -> is_due = false; wake()
    :: else
    fi
}

inline see(p)
{
    d_step { seen = wanted; is_fresh[p] = (wanted != NEVER) }
}

inline commit() { ready = ready + SPANS }

inline announce(p)
{
#ifdef LOST_PRODUCER_FENCE
    see(p);
    waiting = waiting + SPANS;
    is_due = waiting >= seen;
#elif defined(OLD_SUM)
    d_step { waiting = waiting + SPANS; sum = waiting };
    see(p);
    d_step { is_due = sum >= seen; sum = 0 };
#else
    waiting = waiting + SPANS;
    see(p);
    is_due = waiting >= seen;
#endif
    wake_if_due(p)
}

inline request_drain(p)
{
    d_step { is_due = !drain_requested; drain_requested = true };
    if
    :: is_due ->
        see(p);
#ifndef OLD_REQUEST
        is_due = drain_requested;
#endif
        wake_if_due(p)
    :: else
    fi
}

inline wake_if_due(p)
{
    if
    :: is_due && seen != NEVER -> wake_once(p)
    :: else -> d_step { seen = NEVER; is_fresh[p] = false; is_due = false }
    fi
}

proctype producer(byte p; byte announcements; bool requests)
{
    short sum;
    byte seen = NEVER;
    bool is_due;
    do
    :: announcements > 0 ->
#ifdef SIGNAL_BEFORE_PUBLISH
        announce(p);
        commit();
#else
        commit();
        announce(p);
#endif
        announcements--
    :: else -> break
    od;
    if
    :: requests -> request_drain(p)
    :: else
    fi;
    finished++
}

active [FLUSHES] proctype flusher()
{
    byte ticket;
#ifdef WAKE_BEFORE_ASKING
    waker_wake(3);
    d_step { flush_wanted++; ticket = flush_wanted };
#else
    d_step { flush_wanted++; ticket = flush_wanted };
    waker_wake(3);
#endif
    flush_done >= ticket; /* for ever: an invalid end state */
    finished++
}

/* No process looks at `waiting` between the worker's taking and its saying so: `wanted` is NEVER. */
inline take()
{
    d_step {
        FENCE -> batch = batch + ready;
        waiting = waiting - ready;
        ready = 0
    }
}

active proctype worker()
{
    byte asked;
    bool was_requested;
    do
    ::
#ifdef POLLED
        FENCE -> d_step { wanted_next = NEVER; is_buffered = true };
#ifndef DRAIN_AFTER_LOOKING
        FENCE -> is_woken = false; /* a system call */
#endif
#elif !defined(LISTEN_LATE)
        is_woken = false;
#endif
again:
        asked = flush_wanted;
        if
        :: asked != flush_done ->
            take();
            d_step { batch = 0; flush_done = asked; asked = 0 };
            goto again
        :: else -> asked = 0
        fi;
        d_step { FENCE -> was_requested = drain_requested; drain_requested = false };
        if
        :: was_requested ->
            take();
            d_step { batch = 0; was_requested = false };
            goto again
        :: else
        fi;
        if
        :: waiting >= BATCH - batch ->
            take();
            /* Woken for a batch, and there is one. */
            d_step { assert(batch >= BATCH); batch = batch % BATCH };
            goto again
        :: else
        fi;
#ifdef LISTEN_LATE
        is_woken = false;
#endif
#ifdef DRAIN_AFTER_LOOKING
        FENCE -> is_woken = false;
#endif

        /* oteli_waker_arm */
        d_step {
            FENCE -> wanted_next = BATCH - batch;
            is_buffered = true
        };
#ifndef LOST_WORKER_FENCE
        FENCE;
#endif
#ifdef NO_LOOK_BEFORE_SLEEPING
        if
        :: true ->
#else
        if
        :: waiting < BATCH - batch && !drain_requested ->
#endif
#ifdef POLLED
end_asleep:
            is_woken
#else
            d_step {
                if
#ifdef NO_WORD
                :: true -> in_futex = true
#else
                :: !is_woken -> in_futex = true
#endif
                :: else
                fi
            };
end_asleep:
            !in_futex
#endif
        :: else
        fi;
#ifndef POLLED
        d_step { FENCE -> wanted_next = NEVER; is_buffered = true }
#endif
    od
}

init
{
    atomic {
        run producer(0, ANNOUNCEMENTS, false);
        run producer(1, 1, false);
        run producer(2, LAST_ANNOUNCEMENTS, REQUESTS)
    }
    /* Every producer has announced its spans, and no process can move: the worker sleeps, and there
     * must be no reason why it should not. */
    timeout -> d_step {
        assert(finished == 3 + FLUSHES);
        assert(ready + batch < BATCH);
        assert(waiting == ready);
        assert(!drain_requested)
    }
}
