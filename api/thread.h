/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread.h - what each thread has for itself: its current context, its stack of open
 * spans, its line, its random numbers and its counters.
 *
 * One thread-local pointer leads here. Until a thread needs state of its own it points at
 * one static, empty state that nobody writes to and that fits no SDK's generation: no
 * SDK, a thread's first span and a changed SDK are then the same cold branch.
 *
 * States are kept in a list for ever: when a thread ends, the next new one takes its state
 * over, with a partly filled line in it. So the worker finds every line by walking the
 * list, and thread exit hands nothing over.
 *
 * Threads:  everything belongs to the owning thread, except what the comments say that
 *           others read. */
#ifndef OTELI_THREAD_H
#define OTELI_THREAD_H

#include "api/line.h"
#include "api/open.h"
#include "common/random.h"
#include <otel/exporter.h>

/* Counted by the owner with relaxed stores, read by anybody. */
struct oteli_thread_counts {
    uint64_t started;
    uint64_t unsampled;
    uint64_t ended;
    uint64_t dropped[OTEL_DROP_REASON_COUNT]; /* never OTEL_DROP_REENTRANT, but: */
    uint64_t reentrant; /* started, ended and dropped at once; added to atomically */
};

enum { OTELI_DETACHED_CACHE = 16 };

struct oteli_thread {
    /* of the owner: every span touches these. A handle must not lie across two cache
     * lines, or loading what was just stored would take the long way. */
    otel_context current;
    struct oteli_random random;
    uint64_t generation; /* which SDK this state is made for; release, read by the worker */

    struct oteli_open *open;
    struct oteli_line *line; /* release; the worker reads it */
    uint32_t busy;           /* inside a call: a signal handler must not enter another */
    uint32_t depth;          /* open local spans, ended ones below the top included */
    uint32_t open_capacity;
    uint32_t lot;      /* spans that may still end before asking for more */
    uint32_t lot_size; /* as it was given */
    uint32_t used;     /* bytes written to the line */
    uint32_t line_capacity;
    uint8_t decide[OTELI_PARENT_KINDS + 3];
    struct oteli_limits limits;

    /* of the owner: now and then */
    uint64_t attached;           /* contexts that are attached */
    struct oteli_buffer scratch; /* a record for a synchronous SDK */
    uint32_t detached_count;
    uint32_t detached[OTELI_DETACHED_CACHE]; /* free slots of the pool, kept at hand */

    /* of the owner, read by anybody */
    _Alignas(OTELI_CACHELINE) struct oteli_thread_counts counts;

    /* of the list */
    _Alignas(OTELI_CACHELINE) uint32_t in_use; /* exchanged by the thread that takes it */
    uint32_t in_sdk;                           /* see oteli_sdk_is_borrowed */
    struct oteli_thread *next;                 /* constant once in the list */
};

_Static_assert(offsetof(struct oteli_thread, open) == 64, "the first cache line is full");

extern struct oteli_thread oteli_empty_thread;

#if defined(__GLIBC__)
#define OTELI_TLS __thread __attribute__((tls_model("initial-exec")))
#else
#define OTELI_TLS __thread
#endif
extern OTELI_TLS struct oteli_thread *oteli_self;

/* This thread's own state, made when there is none; NULL without memory. */
OTELI_COLD struct oteli_thread *oteli_thread_own(void);

/* Make this thread's state fit the SDK that runs now. NULL: none runs, or no memory. */
OTELI_COLD struct oteli_thread *oteli_thread_refresh(void);

/* The state of this thread for the end of a span of this generation, also after its SDK
 * has stopped; NULL: another SDK runs, or no memory. */
struct oteli_thread *oteli_thread_for_end(uint64_t generation);

/* Room for one more open span on the stack. */
OTELI_COLD bool oteli_thread_deepen(struct oteli_thread *thread);

/* The list of all states. */
OTELI_LENT struct oteli_thread *oteli_threads(void);

/* How many states belong to living threads now. */
OTELI_LENT uint32_t oteli_threads_alive(void);

/* Free every state, pool and table of the API: no other thread may trace. */
OTELI_LENT void oteli_api_reset(void);

static inline bool oteli_thread_fits(const struct oteli_thread *thread)
{
    return thread->generation == oteli_load_relaxed_64(&oteli_generation);
}

/* Calls of one thread do not nest, except from a signal handler; then the inner one is
 * refused. Only this thread and its handlers look at busy: no ordering but the compiler's. */
static inline bool oteli_thread_begin(struct oteli_thread *thread)
{
    if (OTELI_UNLIKELY(thread->busy != 0))
        return false;
    thread->busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return true;
}

static inline void oteli_thread_finish(struct oteli_thread *thread)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread->busy = 0;
}

static inline void oteli_count(uint64_t *counter, uint64_t more)
{
    oteli_store_relaxed_64(counter, oteli_load_relaxed_64(counter) + more);
}

/* Keep the SDK alive while this thread is inside one of its functions. NULL: gone. */
struct oteli_sdk *oteli_sdk_borrow(struct oteli_thread *thread);
void oteli_sdk_return(struct oteli_thread *thread);

#endif
