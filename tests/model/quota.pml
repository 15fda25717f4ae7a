/* SPDX-License-Identifier: Apache-2.0 */
/* quota.pml - the room in the queue: quotas, what is freed again, and the request to drain when
 * there is none.
 *
 * Twin of: oteli_queue_take_quota, quota_size, oteli_queue_announce, ask_for_drain, mark_queue_full,
 * clear_full and oteli_queue_free_room (sdk/engine/queue.c), has_quota, oteli_commit and the look at `oteli_full`
 * (api/thread/line_writer.c, .h), take_from and oteli_drain_release (sdk/engine/drain.c), and of sdk/worker/worker.c
 * what has to do with `full_but_empty`.
 *
 * Abstracted: where spans are (drain.pml), and how the worker falls asleep: it waits until it is
 * woken, and misses nothing (waker.pml). There is no tick: a thread that finds no room gets some
 * from the worker, or there are no spans to make room with.
 *
 * Order: the additions, exchanges and comparisons here are all full fences. What is committed
 * goes through the thread's store buffer, which its next full fence empties. */

#ifndef SPANS
#define SPANS 2 /* of each producer */
#endif
#ifndef FIRST_SPANS
#define FIRST_SPANS SPANS /* of the first one */
#endif
#ifndef QUEUE
#define QUEUE 4
#endif
#ifndef BATCH
#define BATCH 2
#endif
#define PRODUCERS 3

byte reserved;
short waiting; /* announced, less those taken */
bool drain_requested;
bool full_but_empty;
bool is_full;   /* oteli_full: threads without a quota need not ask */

byte quota[PRODUCERS];       /* of which so many are left */
byte unannounced[PRODUCERS];
byte on_the_way[PRODUCERS]; /* committed, in the store buffer */
byte ready[PRODUCERS];      /* committed, the worker can see it */
byte batched;
byte exported, dropped;
byte finished;

/* Everything that has a place in the queue. */
#define ALL_PLACES (quota[0] + quota[1] + quota[2] + ready[0] + ready[1] + ready[2] + \
                    on_the_way[0] + on_the_way[1] + on_the_way[2] + batched)
#define DRAIN(p) ready[p] = ready[p] + on_the_way[p]; on_the_way[p] = 0
/* The worker's, for a batch. */
#define IS_DUE (waiting >= BATCH)

active proctype memory()
{
end:
    do
    :: d_step { on_the_way[0] > 0 -> DRAIN(0) }
    :: d_step { on_the_way[1] > 0 -> DRAIN(1) }
    :: d_step { on_the_way[2] > 0 -> DRAIN(2) }
    od
}

/* Two spans while there is much room, as larger quotas are given then. */
#define QUOTA(room) (room >= 4 -> 2 : 1)

inline announce()
{
    d_step { DRAIN(p); waiting = waiting + unannounced[p]; unannounced[p] = 0 };
    if
    :: full_but_empty ->
        was_full = is_full; /* a plain load, which may overtake the store */
        full_but_empty = false;
        if
        :: was_full -> was_full = false; drain_requested = true
        :: else
        fi
    :: else
    fi
}

inline ask_for_drain()
{
    if
    :: !full_but_empty -> d_step { DRAIN(p); drain_requested = true }
    :: else
    fi
}

inline mark_queue_full()
{
    d_step { DRAIN(p); is_full = true };
    if
    :: reserved < QUEUE -> is_full = false
    :: else
    fi
}

inline take_quota()
{
    if
    :: unannounced[p] != 0 -> announce()
    :: else
    fi;
    do
    :: seen = reserved;
       if
       :: seen >= QUEUE ->
#ifdef FULL_AFTER_REQUEST
           ask_for_drain();
           mark_queue_full();
#else
           mark_queue_full();
           ask_for_drain();
#endif
           seen = 0;
           break
       :: else ->
#ifdef CHECK_THEN_ADD
           d_step {
               DRAIN(p);
               reserved = reserved + QUOTA(QUEUE - seen);
               quota[p] = QUOTA(QUEUE - seen);
               seen = 0
           };
           break
#else
           if
           :: atomic {
                  reserved == seen ->
                  DRAIN(p);
                  reserved = reserved + QUOTA(QUEUE - seen);
                  quota[p] = QUOTA(QUEUE - seen);
                  seen = 0
              };
              break
           :: atomic { reserved != seen -> seen = 0 }
           fi
#endif
       fi
    od
}

#ifdef UNANNOUNCED
#define NEED_NOT_ASK(p) (quota[p] == 0 && is_full)
#else
#define NEED_NOT_ASK(p) (quota[p] == 0 && unannounced[p] == 0 && is_full)
#endif

proctype producer(byte p; byte spans)
{
    byte span, seen;
    bool was_full;
    for (span : 1 .. spans) {
        if
        :: quota[p] == 0 && !NEED_NOT_ASK(p) -> take_quota()
        :: else
        fi;
        atomic {
            if
            :: quota[p] == 0 -> dropped++; assert(unannounced[p] == 0)
            :: else ->
                quota[p] = quota[p] - 1;
                unannounced[p] = unannounced[p] + 1;
                on_the_way[p] = on_the_way[p] + 1
            fi;
            assert(reserved <= QUEUE && ALL_PLACES <= QUEUE)
        }
    };
    finished++
}

/* What a thread has committed goes into the batch. */
inline visit(p)
{
    d_step {
        batched = batched + ready[p];
        found = found + ready[p];
        waiting = waiting - ready[p];
#ifdef FREED_EARLY
        reserved = reserved - ready[p];
#endif
        ready[p] = 0
    }
}

inline pass()
{
    found = 0;
    visit(0);
    visit(1);
    visit(2);
#ifdef FREED_EARLY
    d_step { exported = exported + batched; batched = 0 }
#else
    d_step { exported = exported + batched; reserved = reserved - batched; batched = 0 }
#endif
    if
    :: is_full -> is_full = false
    :: else
    fi
}

active proctype worker()
{
    byte found;
    bool was_requested;
end_asleep:
    do
    :: drain_requested || IS_DUE -> /* oteli_waker_sleep */
        d_step { was_requested = drain_requested; drain_requested = false };
        if
        :: was_requested ->
#ifdef EMPTY_AFTER_LOOKING
            pass();
            full_but_empty = (found == 0);
#else
            full_but_empty = true;
            pass();
            if
            :: found != 0 -> full_but_empty = false
            :: else
            fi;
#endif
            d_step { found = 0; was_requested = false }
        :: else -> pass(); found = 0
        fi
    od
}

init
{
    byte p;
    atomic {
        run producer(0, FIRST_SPANS);
        for (p : 1 .. PRODUCERS - 1) {
            run producer(p, SPANS)
        }
    };
    /* No process can move. The places that are taken are those of spans that are there; and if
     * there is no room although there are spans to make room with, the next thread asks, and
     * requests a drain. */
    timeout -> d_step {
        assert(finished == PRODUCERS);
        assert(reserved == ALL_PLACES);
        assert(exported + dropped + ready[0] + ready[1] + ready[2] ==
               FIRST_SPANS + (PRODUCERS - 1) * SPANS);
        assert(!drain_requested);
        assert(reserved < QUEUE || waiting <= 0 || (!full_but_empty && !is_full));
        assert(reserved >= QUEUE || !is_full)
    }
}
