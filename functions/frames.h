/* SPDX-License-Identifier: Apache-2.0 */
/* functions/frames.h - the instrumented functions that one thread is inside of, and which of
 * them are gone without having said so.
 *
 *     main        at 0x7ffd10     a span each
 *       serve     at 0x7ffcb0
 *         parse   at 0x7ffc20     the top
 *
 * A function reports its entry and its exit, but the exit is missing when longjmp, an
 * exception or the end of the thread takes it away. What remains is where it was: while a
 * function is active, the stack never becomes shorter than it was at its entry. So whatever
 * reports from further up says that all frames below it are gone. At the same height there
 * are the functions that the compiler has put into one another. Those came from the same
 * call, but through another instruction; the same instruction again is another call, and so
 * is another place to return to.
 *
 * Heights are addresses of a stack that grows downwards: a frame further down is lower.
 *
 * Threads:  a stack of frames belongs to its thread. Never allocates, never calls anything
 *           but the API. */
#ifndef OTELI_FRAMES_H
#define OTELI_FRAMES_H

#include <otel/trace.h>

enum { OTELI_FRAMES_MOST = 256 };

/* The caller of a hook: what the compiler hands to it, and where it was called from. */
struct oteli_caller {
    const void *function;
    const void *site;        /* where the function will return to */
    const void *instruction; /* the one behind the call of the hook */
    uintptr_t at;            /* the height of the stack there */
};

struct oteli_frame {
    otel_span span;
    struct oteli_caller caller;
};
_Static_assert(sizeof(struct oteli_frame) == 64, "a frame is a cache line");

struct oteli_frames {
    uint32_t depth;
    uint32_t deeper; /* calls below the deepest frame that have none */
    struct oteli_frame frame[OTELI_FRAMES_MOST];
};

/* What holds for all threads. */
struct oteli_frames_limits {
    uint64_t min_ns;    /* what took less leaves no span */
    uint32_t max_depth; /* at most OTELI_FRAMES_MOST */
};

/* A function begins: end the frames that are gone, and give it a span. */
void oteli_frames_enter(struct oteli_frames *frames, const struct oteli_frames_limits *limits,
                        otel_tracer *tracer, const struct oteli_caller *caller);

/* A function ends; `is_excluded` says that it had no frame to begin with. */
void oteli_frames_exit(struct oteli_frames *frames, const struct oteli_frames_limits *limits,
                       const struct oteli_caller *caller, bool is_excluded);

/* End all of them. */
void oteli_frames_clear(struct oteli_frames *frames, const struct oteli_frames_limits *limits);

#endif
