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
 * equal ticks give equal nanoseconds, in any thread and at any time. The curve never goes down.
 * It follows the clock of the kernel, which NTP makes faster and slower; where it is ahead it
 * becomes flatter until the clock has caught up, and after a suspend it leaps forward.
 *
 * Threads:  oteli_curve_piece_at, _at, _cover and _covered any thread, without a lock and without
 *           waiting; _leap and _follow one thread at a time.
 * Memory:   the last OTELI_KNOTS bends; what is older lies on the oldest one's line. */
#ifndef OTELI_CLOCK_CURVE_H
#define OTELI_CLOCK_CURVE_H

#include <stdint.h>

enum { OTELI_RATE_SHIFT = 40, OTELI_KNOTS = 4096 };

#define OTELI_RATE_ONE (UINT64_C(1) << OTELI_RATE_SHIFT)

__extension__ typedef unsigned __int128 oteli_wide; /* a product of two 64-bit numbers */

struct oteli_knot {
    uint64_t ticks; /* the line holds behind them */
    uint64_t ns;    /* what they are */
    uint64_t rate;  /* nanoseconds a tick, times 2^OTELI_RATE_SHIFT */
};

/* How many knots there are, and how far they are fixed, are one word: a thread that fixes more of
 * the curve and one that bends it find out about each other by compare-and-swap. */
struct oteli_curve {
    uint64_t head; /* covered, in units of 512 ticks, and the number of knots, modulo */
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

/* A part of the curve that is one line. */
struct oteli_curve_piece {
    struct oteli_knot from; /* the piece is behind it … */
    uint64_t to;            /* … up to these ticks; it stays as it is up to there */
};

/* The piece around these ticks. Those before all that is known, and those that are not covered,
 * are outside of it, on its line. */
struct oteli_curve_piece oteli_curve_piece_at(const struct oteli_curve *curve, uint64_t ticks);

/* What these ticks are on the line of a knot. */
static inline uint64_t oteli_knot_at(const struct oteli_knot *knot, uint64_t ticks)
{
    if (ticks >= knot->ticks)
        return knot->ns + oteli_ticks_times_rate(ticks - knot->ticks, knot->rate);
    return knot->ns - oteli_ticks_times_rate(knot->ticks - ticks, knot->rate);
}

static inline uint64_t oteli_curve_at(const struct oteli_curve *curve, uint64_t ticks)
{
    const struct oteli_curve_piece piece = oteli_curve_piece_at(curve, ticks);
    return oteli_knot_at(&piece.from, ticks);
}

/* Behind `covered`, the curve is the line through this point from now on; the point's ticks are
 * not covered. */
void oteli_curve_leap(struct oteli_curve *curve, const struct oteli_knot *point);

/* Bend the curve so that it meets a point, unless it is off by no more than `tolerance_ns`, and
 * fix it up to there. It goes straight to the point; it stands still where it is ahead of it, and
 * leaps where it is behind by more than a clock of the kernel gains on the counter. */
void oteli_curve_follow(struct oteli_curve *curve, const struct oteli_knot *point,
                        uint64_t tolerance_ns);

#endif
