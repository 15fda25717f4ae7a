/* SPDX-License-Identifier: Apache-2.0 */
/* common/clock/conversion.h - the times of many spans right after each other, inline: they are on
 * one line, which a thread keeps from one conversion to the next. Any thread. */
#ifndef OTELI_CONVERSION_H
#define OTELI_CONVERSION_H

#include "common/clock/clock.h"
#include "common/clock/clock_curve.h"

/* Ticks of an epoch as nanoseconds, and what the next conversion can begin with. */
struct oteli_conversion {
    struct oteli_curve_piece piece;
    uint64_t offset;
    uint64_t ns;
    uint32_t epoch; /* 0: none yet */
};

/* What this thread has converted last. What is covered stays, so a piece that was right once always
 * is. */
OTELI_NOT_LENT extern OTELI_TLS struct oteli_conversion oteli_clock_last;

/* What is added to ticks before they are looked up. Relaxed. */
OTELI_NOT_LENT extern uint64_t oteli_clock_base;

/* What ticks, already counted from the start of the last piece, are on its line. */
static inline uint64_t oteli_ns_like_last(uint64_t ticks)
{
    const struct oteli_conversion *last = &oteli_clock_last;
    return last->piece.from.ns + last->offset +
           oteli_ticks_times_rate(ticks, last->piece.from.rate);
}

/* oteli_clock_span_times of two measured times, without their OTELI_TICKS_BIT. */
static OTELI_INLINE struct oteli_span_times oteli_clock_measured_times(uint64_t start, uint64_t end,
                                                                       uint32_t epoch)
{
    const struct oteli_conversion *last = &oteli_clock_last;
    const uint64_t from = last->piece.from.ticks;
    const uint64_t moved = oteli_load_relaxed_64(&oteli_clock_base) - from;
    const uint64_t start_ticks = start + moved;
    const uint64_t end_ticks = end + moved;
    if (OTELI_UNLIKELY(epoch != last->epoch || end_ticks - 1 >= last->piece.to - from ||
                       start_ticks - 1 > end_ticks - 1)) /* a piece is behind its `from` */
        return oteli_clock_span_times(start | OTELI_TICKS_BIT, end | OTELI_TICKS_BIT, epoch);
    return (struct oteli_span_times){oteli_ns_like_last(start_ticks),
                                     oteli_ns_like_last(end_ticks)};
}

#endif
