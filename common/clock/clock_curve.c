/* SPDX-License-Identifier: Apache-2.0 */
/* common/clock/clock_curve.c - see clock_curve.h. Any thread reads; the thread that
 * renews the clock writes.
 *
 * A bend is prepared in knots that nobody looks at yet, and then published with the new
 * `covered` by one compare-and-swap. If a reader has fixed more of the curve meanwhile, it
 * fails and the bend is prepared again, from there. So no reader is ever contradicted.
 *
 * A bend may end behind `covered`, and another may begin before that: then the end of the
 * first is a knot that does not count. Whoever looks from the newest knot backwards for
 * the first one before his ticks does not meet it.
 *
 * Knots are reused after OTELI_KNOTS; a reader looks afterwards whether that came near. */
#include "common/clock/clock_curve.h"
#include "common/base/atomic.h"
#include "common/clock/time_units.h"

enum {
    UNIT = 512,               /* ticks: 52 bits of units are many years of any counter */
    MARGIN = 8,               /* knots that may be rewritten while a reader looks */
    SLEW_PPM = 1000,          /* the curve comes back to the clock this fast */
    SLEW_NS = OTELI_NS_PER_MS /* when it is off by no more than this */
};

static uint64_t per_mille(uint64_t value)
{
    return value / (1000000 / SLEW_PPM);
}

static uint64_t covered_of(uint64_t head)
{
    return head / OTELI_KNOTS * UNIT + (UNIT - 1);
}

static uint64_t head_of(uint64_t covered, uint64_t total)
{
    return covered / UNIT * OTELI_KNOTS + total % OTELI_KNOTS;
}

uint64_t oteli_curve_covered(const struct oteli_curve *curve)
{
    return covered_of(oteli_load_acquire_64(&curve->head));
}

static const struct oteli_knot *knot_of(const struct oteli_curve *curve, uint64_t head,
                                        uint64_t age)
{
    return &curve->knots[(head - 1 - age) % OTELI_KNOTS];
}

/* The newest knot before `ticks`, or the oldest there is, as its distance from the newest.
 * Nearly always that is 0 or 1, because spans are converted soon. A knot without a rate
 * has never been one. */
static uint64_t find_knot(const struct oteli_curve *curve, uint64_t head, uint64_t ticks)
{
    uint64_t age = 0;
    while (oteli_load_relaxed_64(&knot_of(curve, head, age)->ticks) >= ticks &&
           age + 1 < OTELI_KNOTS - MARGIN &&
           oteli_load_relaxed_64(&knot_of(curve, head, age + 1)->rate) != 0)
        age++;
    return age;
}

static uint64_t evaluate(const struct oteli_knot *knot, uint64_t ticks)
{
    const uint64_t start = oteli_load_relaxed_64(&knot->ticks);
    const uint64_t ns = oteli_load_relaxed_64(&knot->ns);
    const uint64_t rate = oteli_load_relaxed_64(&knot->rate);
    if (ticks >= start)
        return ns + oteli_ticks_times_rate(ticks - start, rate);
    return ns - oteli_ticks_times_rate(start - ticks, rate);
}

uint64_t oteli_curve_at(const struct oteli_curve *curve, uint64_t ticks)
{
    for (;;) {
        const uint64_t total = oteli_load_acquire_64(&curve->total);
        const uint64_t head = oteli_load_acquire_64(&curve->head);
        if (head == 0)
            return ticks;
        const uint64_t age = find_knot(curve, head, ticks);
        const uint64_t ns = evaluate(knot_of(curve, head, age), ticks);
        oteli_fence_after_load(); /* the knot before the total */
        const uint64_t reused = oteli_load_relaxed_64(&curve->total) - total;
        if (OTELI_LIKELY(age + reused < OTELI_KNOTS - MARGIN / 2))
            return ns;
    }
}

/* Where the piece ends that begins at a knot: at the nearest of the newer knots, or at what is
 * covered. */
static uint64_t end_of_piece(const struct oteli_curve *curve, uint64_t head, uint64_t age)
{
    uint64_t end = covered_of(head);
    while (age-- != 0) {
        const uint64_t ticks = oteli_load_relaxed_64(&knot_of(curve, head, age)->ticks);
        if (ticks < end)
            end = ticks;
    }
    return end;
}

bool oteli_curve_piece_at(const struct oteli_curve *curve, uint64_t ticks,
                          struct oteli_curve_piece *piece)
{
    const uint64_t total = oteli_load_acquire_64(&curve->total);
    const uint64_t head = oteli_load_acquire_64(&curve->head);
    if (head == 0)
        return false;
    const uint64_t age = find_knot(curve, head, ticks);
    const struct oteli_knot *knot = knot_of(curve, head, age);
    *piece = (struct oteli_curve_piece){.after = oteli_load_relaxed_64(&knot->ticks),
                                        .to = end_of_piece(curve, head, age),
                                        .ns = oteli_load_relaxed_64(&knot->ns),
                                        .rate = oteli_load_relaxed_64(&knot->rate)};
    oteli_fence_after_load(); /* the knots before the total */
    const uint64_t reused = oteli_load_relaxed_64(&curve->total) - total;
    return age + reused < OTELI_KNOTS - MARGIN / 2 && ticks > piece->after && ticks <= piece->to;
}

void oteli_curve_cover(struct oteli_curve *curve, uint64_t ticks)
{
    uint64_t head = oteli_load_acquire_64(&curve->head);
    while (ticks > covered_of(head)) {
        oteli_cas_full_64(&curve->head, head, head_of(ticks, head));
        head = oteli_load_acquire_64(&curve->head);
    }
}

/* A bend that is not published yet. */
struct bend {
    uint64_t head; /* that it is for */
    uint64_t from; /* what is covered there */
    uint64_t start_ns;
    uint64_t count; /* of its knots */
};

static struct bend prepare(const struct oteli_curve *curve)
{
    const uint64_t head = oteli_load_acquire_64(&curve->head);
    const uint64_t from = covered_of(head);
    return (struct bend){head, from, oteli_curve_at(curve, from), 0};
}

static void add(struct oteli_curve *curve, struct bend *bend, uint64_t ticks, uint64_t ns,
                uint64_t rate)
{
    struct oteli_knot *knot = &curve->knots[(curve->total + bend->count++) % OTELI_KNOTS];
    oteli_store_relaxed_64(&knot->ticks, ticks);
    oteli_store_relaxed_64(&knot->ns, ns);
    oteli_store_relaxed_64(&knot->rate, rate);
}

/* False: somebody has fixed more than the bend is for. */
static bool publish(struct oteli_curve *curve, const struct bend *bend, uint64_t covered)
{
    const uint64_t total = curve->total + bend->count;
    if (covered < bend->from)
        covered = bend->from;
    if (!oteli_cas_full_64(&curve->head, bend->head, head_of(covered, total)))
        return false;
    oteli_store_release_64(&curve->total, total);
    return true;
}

/* Between the two stores of publish, `head` has the knots and `total` does not. */
void oteli_curve_forget(struct oteli_curve *curve)
{
    curve->total += (curve->head - curve->total) % OTELI_KNOTS;
}

void oteli_curve_leap(struct oteli_curve *curve, uint64_t ticks, uint64_t ns, uint64_t rate)
{
    struct bend bend;
    oteli_store_relaxed_64(&curve->rate, rate);
    do {
        bend = prepare(curve);
        add(curve, &bend, bend.from, ns - oteli_ticks_times_rate(ticks - bend.from, rate), rate);
    } while (!publish(curve, &bend, bend.from));
}

/* Straight to the point, and on from there at the clock's own rate. */
static void bend_to(struct oteli_curve *curve, struct bend *bend,
                    const struct oteli_curve_point *point)
{
    const uint64_t ticks = point->ticks - bend->from;
    const uint64_t slope =
        (uint64_t)(((oteli_wide)(point->ns - bend->start_ns) << OTELI_RATE_SHIFT) / ticks);
    add(curve, bend, bend->from, bend->start_ns, slope);
    add(curve, bend, point->ticks, point->ns, point->rate);
}

/* The point is too near for that: a little faster or slower until the curve is back. */
static void bend_towards(struct oteli_curve *curve, struct bend *bend, uint64_t off_ns,
                         bool is_behind, uint64_t rate)
{
    const uint64_t change = per_mille(rate);
    const uint64_t slope = is_behind ? rate + change : rate - change;
    const uint64_t ticks = (uint64_t)(((oteli_wide)off_ns << OTELI_RATE_SHIFT) / change);
    const uint64_t end_ns = bend->start_ns + oteli_ticks_times_rate(ticks, slope);
    add(curve, bend, bend->from, bend->start_ns, slope);
    add(curve, bend, bend->from + ticks, end_ns, rate);
}

/* Returns by how much the curve stays ahead. */
static uint64_t choose_bend(struct oteli_curve *curve, struct bend *bend,
                            const struct oteli_curve_point *point)
{
    if (oteli_distance(oteli_curve_at(curve, point->ticks), point->ns) <= point->tolerance_ns)
        return 0;
    const uint64_t elapsed_ns = oteli_ticks_times_rate(point->ticks - bend->from, point->rate);
    const uint64_t at_rate_ns = bend->start_ns + elapsed_ns;
    const uint64_t off_ns = oteli_distance(at_rate_ns, point->ns);
    const bool is_behind = at_rate_ns < point->ns;
    if (off_ns <= elapsed_ns / 1000 * point->most_ppm / 1000) {
        bend_to(curve, bend, point);
    } else if (off_ns <= SLEW_NS) {
        bend_towards(curve, bend, off_ns, is_behind, point->rate);
    } else if (is_behind) {
        add(curve, bend, bend->from, point->ns - elapsed_ns, point->rate);
    } else {
        add(curve, bend, bend->from, bend->start_ns, point->rate);
        return off_ns;
    }
    return 0;
}

uint64_t oteli_curve_follow(struct oteli_curve *curve, const struct oteli_curve_point *point)
{
    oteli_store_relaxed_64(&curve->rate, point->rate);
    for (;;) {
        struct bend bend = prepare(curve);
        if (point->ticks <= bend.from) /* somebody was faster */
            return 0;
        const uint64_t ahead_ns = choose_bend(curve, &bend, point);
        if (publish(curve, &bend, point->ticks))
            return ahead_ns;
    }
}
