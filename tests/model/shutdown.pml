/* SPDX-License-Identifier: Apache-2.0 */
/* shutdown.pml - the SDK goes away under threads that trace.
 *
 * Twin of: oteli_sdk_borrow, _return, _uninstall and _wait_until_left (api/thread/thread_state.c,
 * sdk_slot.c, thread_life.c), the fast end of otel_span_end_n (api/span/end.c) and append_ended
 * (api/thread/line_writer.c), wait_for_borrowers, on_stop and oteli_worker_finish
 * (sdk/worker/worker.c), otel_shutdown, stop_worker, flush_worker, bury and worker_has_left
 * (sdk/lifecycle/lifecycle.c), oteli_drain_leftover and oteli_drain_fini (sdk/engine/drain.c).
 *
 * Abstracted: a thread's line and the ring are numbers of spans (drain.pml); the worker is
 * awake (waker.pml); no call has a deadline, and no exporter hangs. One flush is under way at any
 * time before, during and after the shutdown. When the worker is done and no thread is inside, the
 * engine's memory may go at any moment: that is the start of the next SDK.
 *
 * Order: a thread's `in_sdk` goes through its store buffer; its full fence waits for that. What
 * the shutdown stores is in order without more: an exchange, and release stores after it. */

#ifndef SPANS
#define SPANS 1 /* of each thread */
#endif
#ifndef FIRST_SPANS
#define FIRST_SPANS SPANS /* of the first one */
#endif
#define THREADS 3

bool is_installed = true; /* oteli_generation, oteli_sdk_current */
bool in_sdk[THREADS];     /* in memory */
bool in_next[THREADS];    /* in the thread's store buffer … */
bool is_buffered[THREADS];
byte line[THREADS];       /* spans committed there, and not taken */
byte ring;                /* spans handed over, and not taken */

bool is_stopping, is_done, is_freed;
byte flush_wanted, flush_done;

byte ended, exported, dropped; /* dropped: of threads that found the SDK gone */
byte finished;

#define IS_BORROWED (in_sdk[0] || in_sdk[1] || in_sdk[2])
#define IN_LINES (line[0] + line[1] + line[2])

active proctype memory()
{
end:
    do
    :: atomic { is_buffered[0] -> in_sdk[0] = in_next[0]; is_buffered[0] = false }
    :: atomic { is_buffered[1] -> in_sdk[1] = in_next[1]; is_buffered[1] = false }
    :: atomic { is_buffered[2] -> in_sdk[2] = in_next[2]; is_buffered[2] = false }
    od
}

/* A span that goes behind the last one: no function of the SDK is called. */
inline end_fast()
{
    d_step { ended++; line[p] = line[p] + 1 }
}

/* One that needs the SDK: it is handed over by itself. */
inline end_slow()
{
    atomic { !is_buffered[p] -> in_next[p] = true; is_buffered[p] = true };
#ifndef LOST_FENCE
    !is_buffered[p];
#endif
    if
    :: is_installed ->
        /* Inside. The ring and all else is the engine's. */
        assert(!is_freed);
        ended++;
        d_step { assert(!is_freed); ring++ }
    :: else -> d_step { ended++; dropped++ }
    fi;
    atomic { !is_buffered[p] -> in_next[p] = false; is_buffered[p] = true }
}

proctype thread(byte p; byte spans)
{
    byte span;
    for (span : 1 .. spans) {
        if
        :: is_installed ->
            /* The look at oteli_fast_generation; what follows may come much later. */
            if
            :: end_fast()
            :: end_slow()
            fi
        :: else -> d_step { ended++; dropped++ }
        fi
    };
    finished++
}

/* `users` keeps the engine while it is inside. */
bool has_user = true;
active proctype flusher()
{
    byte ticket;
    d_step { flush_wanted++; ticket = flush_wanted };
    atomic { flush_done >= ticket || is_done -> assert(!is_freed); has_user = false; finished++ }
}

active proctype shutdown()
{
    is_installed = false;
    is_stopping = true;
    is_done; /* for ever: an invalid end state */
    finished++
}

/* The start of another SDK frees this one as soon as it may. */
active proctype next_start()
{
    is_done && !has_user && !IS_BORROWED;
    is_freed = true
}

inline take(p)
{
    d_step { exported = exported + line[p]; line[p] = 0 }
}

inline pass()
{
    take(0);
    take(1);
    take(2);
    d_step { exported = exported + ring; ring = 0 }
}

active proctype worker()
{
    byte asked;
    do
    :: is_stopping -> break
    :: !is_stopping && flush_wanted != flush_done ->
        asked = flush_wanted;
        pass();
        atomic { flush_done = asked; asked = 0 }
    :: !is_stopping && IN_LINES + ring > 0 -> pass()
    od;
#ifndef NO_WAIT_FOR_BORROWERS
    !in_sdk[0];
    !in_sdk[1];
    !in_sdk[2];
#endif
#ifdef NO_LAST_PASS
    skip;
#else
    pass();
#endif
    ring = 0; /* oteli_drain_fini: what is there now is given back unseen */
    is_done = true
}

init
{
    byte p;
    atomic {
        run thread(0, FIRST_SPANS);
        for (p : 1 .. THREADS - 1) {
            run thread(p, SPANS)
        }
    };
    /* No process can move. What has ended was exported, was dropped by its thread, or is left over
     * in a line, and counted there: oteli_drain_leftover. */
    timeout -> d_step {
        assert(finished == THREADS + 2);
        assert(is_freed);
        assert(ended == FIRST_SPANS + (THREADS - 1) * SPANS);
        assert(ring == 0);
        assert(ended == exported + dropped + IN_LINES)
    }
}
