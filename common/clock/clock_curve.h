/* SPDX-License-Identifier: Apache-2.0 */
/* common/clock/clock_curve.h - the curve that turns ticks into nanoseconds.
 *
 *      ns │                     .·'        a knot: from here on at this rate
 *         │                .·'
 *         │         k2 .·o' · · · · ·      the curve is fixed up to `covered`, and what
 *         │     k1 .o'        │            is behind may still bend
 *         │  .·'              │
 *         └───────────────────┴───────── ticks
 *                          covered
 *
 * Knots are only ever added at or behind `covered`, and nothing is converted behind it: so
 * equal ticks give equal nanoseconds, whoever asks and whenever. The curve never goes down.
 * It follows the clock of the kernel, which NTP makes faster and slower, without a step
 * back; only after a suspend it leaps forward.
 *
 * Threads:  oteli_curve_at, _cover and _covered any thread, without a lock and without
 *           waiting; _leap and _follow one thread at a time.
 * Memory:   the last OTELI_KNOTS bends; what is older lies on the oldest one's line. */
#ifndef OTELI_CLOCK_CURVE_H
#define OTELI_CLOCK_CURVE_H

#include <stdbool.h>
#include <stdint.h>

enum { OTELI_RATE_SHIFT = 40, OTELI_KNOTS = 4096 };

#define OTELI_RATE_ONE (UINT64_C(1) << OTELI_RATE_SHIFT)

__extension__ typedef unsigned __int128 oteli_wide; /* a product of two 64-bit numbers */

struct oteli_knot {
    uint64_t ticks; /* the line holds behind them */
    uint64_t ns;    /* what they are */
    uint64_t rate;  /* nanoseconds a tick, times 2^OTELI_RATE_SHIFT */
};

/* How many knots there are, and how far they are fixed, are one word: who fixes more of the
 * curve and who bends it find out about each other by compare-and-swap. */
struct oteli_curve {
    uint64_t head;  /* covered, in units of 512 ticks, and the number of knots, modulo */
    uint64_t total; /* of knots that there ever were; release, behind head */
    uint64_t rate;  /* the best known; relaxed */
    struct oteli_knot knots[OTELI_KNOTS];
};

/* `ticks` at `rate`, in nanoseconds. */
static inline uint64_t oteli_ticks_times_rate(uint64_t ticks, uint64_t rate)
{
    return (uint64_t)(((oteli_wide)ticks * rate) >> OTELI_RATE_SHIFT);
}

/* The last ticks that are fixed. */
uint64_t oteli_curve_covered(const struct oteli_curve *curve);

/* Fix the curve up to these ticks, or a little further. */
void oteli_curve_cover(struct oteli_curve *curve, uint64_t ticks);

/* For ticks that are not covered: what the curve is as it stands. */
uint64_t oteli_curve_at(const struct oteli_curve *curve, uint64_t ticks);

/* A part of the curve that is one line and stays as it is. */
struct oteli_curve_piece {
    uint64_t after; /* ticks behind this one … */
    uint64_t to;    /* … up to this one */
    uint64_t ns;    /* at `after` */
    uint64_t rate;
};

/* The piece around ticks that are covered. False: they are before all that is known. */
bool oteli_curve_piece_at(const struct oteli_curve *curve, uint64_t ticks,
                          struct oteli_curve_piece *piece);

/* Nothing that is behind `covered` belongs together with what is before: from there on, the
 * curve is the line through this point. */
void oteli_curve_leap(struct oteli_curve *curve, uint64_t ticks, uint64_t ns, uint64_t rate);

/* In a forked child, in which nobody is in the middle of bending it any more. Stores only. */
void oteli_curve_forget(struct oteli_curve *curve);

/* What a reading behind `covered` says about the curve. */
struct oteli_curve_point {
    uint64_t ticks;
    uint64_t ns;
    uint64_t rate;
    uint64_t tolerance_ns; /* the curve stays as it is when it is off by no more */
    uint64_t most_ppm;     /* no clock of the kernel goes faster or slower by more */
};

/* The point is behind `covered`. Bend the curve so that it meets the point, or comes
 * back to it soon, and fix it up to there. It leaps when it is too far behind. When it is
 * too far ahead it goes on in parallel: returns by how much it is ahead then, otherwise 0. */
uint64_t oteli_curve_follow(struct oteli_curve *curve, const struct oteli_curve_point *point);

#endif
