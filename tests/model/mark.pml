/* SPDX-License-Identifier: Apache-2.0 */
/* mark.pml - a worker without spans sleeps without a timer, and the next span wakes it.
 *
 * Twin of: oteli_wake and oteli_wake_slow (api/thread/thread_state.*), oteli_commit
 * (api/thread/line_writer.h), oteli_sdk_set_asleep and _is_asleep (api/thread/sdk_slot.c),
 * notice_waking and on_tick (sdk/worker/worker.c).
 *
 * Abstracted: the waker is for this alone, so no number of spans is worth a wake-up, and its word
 * is whether it has changed since the worker listened (waker.pml). A tick may come at any moment
 * while there is one.
 *
 * Order: what is committed goes through the thread's store buffer, and no fence stands between
 * that and the look at the mark: a span does not pay for one. What stands in for it is time: the
 * worker looks once more when everything that was on its way when it set the mark has arrived. */

#ifndef SPANS
#define SPANS 1 /* of each thread */
#endif
#define THREADS 3

byte on_the_way[THREADS]; /* committed, in the store buffer */
bool crosses[THREADS];    /* and was when the mark was set */
byte ready[THREADS];      /* the worker can see it */
bool is_marked = true;    /* oteli_asleep */
bool is_woken;
byte finished;

#define DRAIN(p) ready[p] = ready[p] + on_the_way[p]; on_the_way[p] = 0; crosses[p] = false

#ifdef NO_GRACE
#define HAS_ARRIVED true
#else
#define HAS_ARRIVED (!crosses[0] && !crosses[1] && !crosses[2])
#endif

active proctype memory()
{
end:
    do
    :: d_step { on_the_way[0] > 0 -> DRAIN(0) }
    :: d_step { on_the_way[1] > 0 -> DRAIN(1) }
    :: d_step { on_the_way[2] > 0 -> DRAIN(2) }
    od
}

inline commit() { on_the_way[p] = on_the_way[p] + 1 }

/* oteli_sdk_set_asleep(sdk, false), and wake the worker if that took the mark away. */
inline take_mark_away()
{
    d_step { DRAIN(p); had_mark = is_marked; is_marked = false };
    if
    :: had_mark -> had_mark = false; is_woken = true
    :: else
    fi
}

proctype thread(byte p)
{
    byte span;
    bool had_mark;
    for (span : 1 .. SPANS) {
#ifdef LOOK_BEFORE_COMMIT
        if
        :: is_marked -> commit(); take_mark_away()
        :: else -> commit()
        fi
#elif defined(WAKE_BEFORE_MARK)
        commit();
        if
        :: is_marked -> is_woken = true; d_step { DRAIN(p); is_marked = false }
        :: else
        fi
#else
        commit();
        if
        :: is_marked -> take_mark_away()
        :: else
        fi
#endif
    };
    finished++
}

inline take(p)
{
    d_step { found = found || ready[p] > 0; ready[p] = 0 }
}

active proctype worker()
{
    bool is_asleep = true, has_tick, found;
    do
    :: is_woken = false; /* oteli_waker_listen */
       if
       :: is_asleep && !is_marked -> d_step { is_asleep = false; has_tick = true }
       :: else
       fi;
       if
       :: has_tick && HAS_ARRIVED -> /* the tick has come */
          take(0);
          take(1);
          take(2);
          if
          :: found ->
              is_asleep = false;
              found = false;
              is_marked = false
          :: !found && !is_asleep ->
              d_step {
                  is_asleep = true;
                  is_marked = true;
                  crosses[0] = on_the_way[0] > 0;
                  crosses[1] = on_the_way[1] > 0;
                  crosses[2] = on_the_way[2] > 0;
#ifdef NO_SECOND_LOOK
                  has_tick = false
#endif
              }
          :: !found && is_asleep -> has_tick = false
          fi
       :: is_woken
       :: !has_tick ->
end_asleep:
          is_woken /* the futex, without a deadline */
       fi
    od
}

init
{
    byte p;
    atomic {
        for (p : 0 .. THREADS - 1) {
            run thread(p)
        }
    };
    /* No process can move: the worker sleeps for ever, and nothing waits. */
    timeout -> d_step {
        assert(finished == THREADS);
        assert(ready[0] + ready[1] + ready[2] == 0);
        assert(is_marked)
    }
}
