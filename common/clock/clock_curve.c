/* SPDX-License-Identifier: Apache-2.0 */
/* common/clock/clock_curve.c - see clock_curve.h. Any thread reads; the thread that
 * renews the clock writes.
 *
 * A bend is prepared in knots that no thread looks at yet, and then published with the new
 * `covered` by one compare-and-swap. If a reader has fixed more of the curve meanwhile, it
 * fails and the bend is prepared again, from there. So no reader is ever contradicted.
 *
 * Knots are reused after OTELI_KNOTS; a reader looks afterwards whether that came near. */
#include "common/clock/clock_curve.h"
#include "common/base/atomic.h"
#include "common/clock/time_units.h"

enum {
    UNIT = 512,       /* ticks: 52 bits of units are many years of any counter */
    MARGIN = 8,       /* knots that may be rewritten while a reader looks */
    LEAST_LEAP = 1000 /* NTP makes no clock faster by more than one part in so many */
};

static uint64_t covered_of(uint64_t head)
{
    return head / OTELI_KNOTS * UNIT + (UNIT - 1);
}

static uint64_t head_of(uint64_t covered, uint64_t knots)
{
    return covered / UNIT * OTELI_KNOTS + knots % OTELI_KNOTS;
}

uint64_t oteli_curve_covered(const struct oteli_curve *curve)
{
    return covered_of(oteli_load_acquire_64(&curve->head));
}

void oteli_curve_cover(struct oteli_curve *curve, uint64_t ticks)
{
    uint64_t head = oteli_load_acquire_64(&curve->head);
    while (ticks > covered_of(head)) {
        oteli_cas_full_64(&curve->head, head, head_of(ticks, head));
        head = oteli_load_acquire_64(&curve->head);
    }
}

static const struct oteli_knot *knot_of(const struct oteli_curve *curve, uint64_t head,
                                        uint64_t age)
{
    return &curve->knots[(head - 1 - age) % OTELI_KNOTS];
}

static uint64_t ticks_of(const struct oteli_curve *curve, uint64_t head, uint64_t age)
{
    return oteli_load_relaxed_64(&knot_of(curve, head, age)->ticks);
}

/* The newest knot before `ticks`, or the oldest there is, as its distance from the newest.
 * Nearly always that is 0 or 1, because spans are converted soon. A slot without ticks has
 * never had a knot. */
static uint64_t find_knot(const struct oteli_curve *curve, uint64_t head, uint64_t ticks)
{
    uint64_t age = 0;
    while (ticks_of(curve, head, age) >= ticks && age + 1 < OTELI_KNOTS - MARGIN &&
           ticks_of(curve, head, age + 1) != 0)
        age++;
    return age;
}

struct oteli_curve_piece oteli_curve_piece_at(const struct oteli_curve *curve, uint64_t ticks)
{
    for (;;) {
        const uint64_t head = oteli_load_acquire_64(&curve->head);
        const uint64_t age = find_knot(curve, head, ticks);
        const struct oteli_knot *knot = knot_of(curve, head, age);
        const struct oteli_curve_piece piece = {
            .from = {.ticks = oteli_load_relaxed_64(&knot->ticks),
                     .ns = oteli_load_relaxed_64(&knot->ns),
                     .rate = oteli_load_relaxed_64(&knot->rate)},
            .to = age == 0 ? covered_of(head) : ticks_of(curve, head, age - 1),
        };
        oteli_fence_after_load(); /* the knots before the head */
        const uint64_t reused = (oteli_load_relaxed_64(&curve->head) - head) % OTELI_KNOTS;
        if (OTELI_LIKELY(age + reused < OTELI_KNOTS - MARGIN / 2))
            return piece;
    }
}

static void set_knot(struct oteli_curve *curve, uint64_t index, struct oteli_knot value)
{
    struct oteli_knot *knot = &curve->knots[index % OTELI_KNOTS];
    oteli_store_relaxed_64(&knot->ticks, value.ticks);
    oteli_store_relaxed_64(&knot->ns, value.ns);
    oteli_store_relaxed_64(&knot->rate, value.rate);
}

/* The line through a point, from `ticks` on. */
static struct oteli_knot line_through(const struct oteli_knot *point, uint64_t ticks)
{
    return (struct oteli_knot){ticks, oteli_knot_at(point, ticks), point->rate};
}

void oteli_curve_leap(struct oteli_curve *curve, const struct oteli_knot *point)
{
    uint64_t head;
    do {
        head = oteli_load_acquire_64(&curve->head);
        set_knot(curve, head, line_through(point, covered_of(head)));
    } while (!oteli_cas_full_64(&curve->head, head, head_of(covered_of(head), head + 1)));
}

void oteli_curve_follow(struct oteli_curve *curve, const struct oteli_knot *point,
                        uint64_t tolerance_ns)
{
    uint64_t head;
    uint64_t added;
    do {
        head = oteli_load_acquire_64(&curve->head);
        added = 0;
        const uint64_t from = covered_of(head);
        if (point->ticks <= from) /* another thread was faster */
            return;
        const uint64_t start_ns = oteli_curve_at(curve, from);
        const uint64_t end_ns = oteli_curve_at(curve, point->ticks);
        const uint64_t elapsed_ns = oteli_ticks_times_rate(point->ticks - from, point->rate);
        if (point->ns > start_ns + elapsed_ns + elapsed_ns / LEAST_LEAP + tolerance_ns) {
            set_knot(curve, head, line_through(point, from));
            added = 1;
        } else if (oteli_distance(end_ns, point->ns) > tolerance_ns) {
            const uint64_t met_ns = point->ns > start_ns ? point->ns : start_ns;
            const oteli_wide rise = (oteli_wide)(met_ns - start_ns) << OTELI_RATE_SHIFT;
            const uint64_t slope = (uint64_t)(rise / (point->ticks - from));
            set_knot(curve, head, (struct oteli_knot){from, start_ns, slope});
            set_knot(curve, head + 1, (struct oteli_knot){point->ticks, met_ns, point->rate});
            added = 2;
        }
    } while (!oteli_cas_full_64(&curve->head, head, head_of(point->ticks, head + added)));
}
