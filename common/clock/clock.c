/* SPDX-License-Identifier: Apache-2.0 */
/* common/clock/clock.c - follow the kernel's clocks, and turn ticks into wall time.
 *
 * To read the clocks, a thread takes a lock for a few microseconds, and no thread waits for
 * it: a conversion that finds it taken goes on with the curve as it is. A forked child in
 * which the holder does not exist takes the lock away from it, and goes on with the curve of
 * its parent: a trace of both processes is converted by one function. */
#include "common/clock/clock.h"
#include "common/base/spin_lock.h"
#include "common/clock/clock_offsets.h"
#include "common/clock/clock_reading.h"
#include "common/clock/conversion.h"
#include "common/clock/time_units.h"

#include <stddef.h>

#define FIRST_BASELINE_NS UINT64_C(50000) /* a rate to 1/1000; it gets better all the time */
#define BASELINE_NS (8 * OTELI_NS_PER_S)  /* what a rate is measured over, once there is time */
#define MOST_GAP (UINT64_C(1) << 44)      /* ticks */
#define BACK_NS (100 * OTELI_NS_PER_MS)   /* ticks that go back more: the counter began anew */

enum {
    EPOCHS = 4096,
    CURVE_TOLERANCE_NS = 100, /* a reading is good to 10 or 20 */
    WALL_TOLERANCE_NS = 500,
    COVER_AHEAD = 8, /* a rate is trusted for this part of the time it was measured over */
};

/* Of the thread that holds the lock. */
struct renewer {
    uint32_t lock;
    bool counts;
    bool may_correct;    /* the epoch was begun by a rest, and no renewal has been since */
    bool is_compared;    /* the cores are, since the clock was started */
    uint32_t is_doubted; /* a rate was rejected, and the kernel is not asked yet; relaxed */
    uint32_t core;       /* on which the clock was started */
    uint64_t rate;       /* the best known, as in struct oteli_knot; relaxed */
    uint64_t rate_ns;    /* how long a time it was measured over */
    uint64_t narrowest;  /* reading */
    uint64_t ahead_ns;   /* that the curve is of CLOCK_BOOTTIME, where it had to be; modulo 2^64 */
    uint64_t older_ticks, older_ns; /* the rate is measured since here; 0 ns: since the next */
};

static struct oteli_curve curve;
static struct renewer renewer;

/* The wall clock less the curve, times 2; plus 1: a conversion has used it, and it stays. */
static uint64_t epochs[EPOCHS];

uint64_t oteli_clock_base;
static uint64_t former_base; /* was added to ticks of the counter that began anew since. Relaxed */

uint64_t oteli_clock_ticks_of_ns(uint64_t ns)
{
    const uint64_t rate = oteli_load_relaxed_64(&renewer.rate);
    if (rate == 0)
        return ns;
    const oteli_wide ticks = ((oteli_wide)ns << OTELI_RATE_SHIFT) / rate;
    return ticks > UINT64_MAX ? UINT64_MAX : (uint64_t)ticks;
}

static void restart_baseline(const struct oteli_reading *now)
{
    renewer.older_ticks = now->ticks;
    renewer.older_ns = now->boot_ns;
}

/* How far off a reading may be that took longer than others: half of that. */
static uint64_t doubt_ns(const struct oteli_reading *now)
{
    renewer.narrowest = oteli_min(renewer.narrowest, now->width);
    return oteli_ticks_times_rate(now->width - renewer.narrowest, renewer.rate) / 2;
}

/* A rate that differs from the last by more than NTP does is not one: the machine was suspended,
 * or something happened to one of the clocks, or the last was wrong. It is measured anew, and the
 * next renewal asks the kernel whether it still trusts the counter. */
static void measure_rate(const struct oteli_reading *now)
{
    if (renewer.older_ns == 0)
        restart_baseline(now);
    const uint64_t ticks = now->ticks - renewer.older_ticks;
    const uint64_t elapsed_ns = now->boot_ns - renewer.older_ns;
    if (!renewer.counts || ticks == 0 || elapsed_ns < FIRST_BASELINE_NS ||
        elapsed_ns < renewer.rate_ns || doubt_ns(now) > CURVE_TOLERANCE_NS)
        return;
    const uint64_t rate = (uint64_t)(((oteli_wide)elapsed_ns << OTELI_RATE_SHIFT) / ticks);
    if (renewer.rate_ns != 0 && oteli_distance(rate, renewer.rate) > renewer.rate / 500) {
        restart_baseline(now);
        renewer.rate_ns = 0;
        oteli_store_relaxed_32(&renewer.is_doubted, 1);
        return;
    }
    oteli_store_relaxed_64(&renewer.rate, rate);
    renewer.rate_ns = oteli_min(elapsed_ns, BASELINE_NS);
    if (elapsed_ns >= BASELINE_NS)
        restart_baseline(now);
}

/* What the curve should be at a reading. */
static uint64_t target_of(const struct oteli_reading *now)
{
    return now->boot_ns + renewer.ahead_ns;
}

static void begin_epoch(uint64_t offset)
{
    const uint32_t number = oteli_clock.epoch + 1;
    oteli_store_relaxed_64(&epochs[number % EPOCHS], offset << 1);
    oteli_store_release_32(&oteli_clock.epoch, number); /* pairs with find_ns */
}

/* From the reading on, the curve is a line of its own. It does not go down for that: where it would
 * have to, it stays ahead. */
static void leap_to(const struct oteli_reading *now)
{
    const uint64_t covered = oteli_curve_covered(&curve);
    const uint64_t ticks = now->ticks + oteli_clock_base;
    const uint64_t least_ns =
        oteli_curve_at(&curve, covered) + oteli_ticks_times_rate(ticks - covered, renewer.rate);
    if (target_of(now) < least_ns)
        renewer.ahead_ns += least_ns - target_of(now);
    const struct oteli_knot point = {ticks, target_of(now), renewer.rate};
    oteli_curve_leap(&curve, &point);
    oteli_curve_cover(&curve, ticks);
}

static void set_base(uint64_t value)
{
    oteli_store_relaxed_64(&former_base, oteli_clock_base);
    oteli_store_relaxed_64(&oteli_clock_base, value);
}

/* Ticks go back: from now on something else is added to them. Behind what is covered there is
 * room for the old ticks that are not converted yet, which are no more than the time
 * since, and then for those since the counter began anew. */
static void begin_ticks_anew(const struct oteli_reading *now)
{
    const uint64_t covered = oteli_curve_covered(&curve);
    const uint64_t covered_ns = oteli_curve_at(&curve, covered);
    if (target_of(now) < covered_ns)
        renewer.ahead_ns += covered_ns - target_of(now);
    const uint64_t room = oteli_clock_ticks_of_ns(target_of(now) - covered_ns);
    const uint64_t gap = oteli_min(oteli_min(now->ticks, MOST_GAP), room);
    oteli_curve_cover(&curve, covered + room);
    const uint64_t ticks = oteli_curve_covered(&curve) + gap;
    set_base(ticks - now->ticks);
    restart_baseline(now);
    const struct oteli_knot point = {ticks, target_of(now), renewer.rate};
    oteli_curve_leap(&curve, &point);
    oteli_curve_cover(&curve, ticks);
    begin_epoch(now->wall_ns - target_of(now));
}

/* The line behind the last reading is fixed for a moment, so that many conversions right
 * after each other need one reading. */
static uint64_t ticks_ahead(void)
{
    if (!renewer.counts)
        return 0;
    return oteli_clock_ticks_of_ns(oteli_min(renewer.rate_ns / COVER_AHEAD, OTELI_NS_PER_MS));
}

/* Lead the curve through a reading, before which `covered` was. What is covered by now may be later
 * than the reading: others cover more while this thread waits for its core. */
static void follow(const struct oteli_reading *now, uint64_t covered)
{
    const uint64_t ticks = now->ticks + oteli_clock_base;
    if (ticks < covered && covered - ticks > oteli_clock_ticks_of_ns(BACK_NS)) {
        begin_ticks_anew(now);
    } else if (ticks > oteli_curve_covered(&curve)) {
        measure_rate(now);
        const struct oteli_knot point = {ticks, target_of(now), renewer.rate};
        oteli_curve_follow(&curve, &point, CURVE_TOLERANCE_NS + doubt_ns(now));
        oteli_curve_cover(&curve, ticks + ticks_ahead());
    }
}

static uint64_t offset_in(uint64_t epoch)
{
    return (uint64_t)((int64_t)epoch >> 1);
}

/* After a rest, an epoch in which nothing has been converted yet can still get the right offset. */
static void follow_wall(const struct oteli_reading *now)
{
    uint64_t *slot = &epochs[oteli_clock.epoch % EPOCHS];
    const uint64_t epoch = oteli_load_relaxed_64(slot);
    const uint64_t offset = now->wall_ns - target_of(now);
    const int64_t off = (int64_t)(offset - offset_in(epoch));
    const bool may_correct = renewer.may_correct && (epoch & 1) == 0;
    renewer.may_correct = false;
    const uint64_t off_ns = off < 0 ? (uint64_t)-off : (uint64_t)off;
    if (off_ns > WALL_TOLERANCE_NS + doubt_ns(now) &&
        !(may_correct && oteli_cas_full_64(slot, epoch, offset << 1)))
        begin_epoch(offset);
}

/* Where the rate is measured from, if a clock is started now. */
static void begin_baseline(const struct oteli_reading *now,
                           const struct oteli_counter_reading *mark)
{
    restart_baseline(now);
    if (mark == NULL || oteli_clock_source() != OTELI_CLOCK_COUNTER || mark->core != renewer.core ||
        mark->boot_ns >= now->boot_ns)
        return;
    renewer.older_ticks = mark->ticks;
    renewer.older_ns = mark->boot_ns;
}

const char *oteli_clock_start(const char *wish)
{
    return oteli_clock_start_after(NULL, wish);
}

const char *oteli_clock_start_after(const struct oteli_counter_reading *mark, const char *wish)
{
    oteli_spin_lock(&renewer.lock);
    const char *refused = oteli_clock_choose(wish);
    renewer.is_compared = false;
    oteli_store_relaxed_32(&renewer.is_doubted, 0);
    renewer.counts = oteli_clock_counts();
    renewer.core = oteli_core_now();
    oteli_store_relaxed_64(&renewer.rate, OTELI_RATE_ONE);
    renewer.rate_ns = 0;
    renewer.ahead_ns = 0;
    renewer.narrowest = UINT64_MAX;
    struct oteli_reading now = oteli_clock_read();
    begin_baseline(&now, mark);
    while (renewer.counts && oteli_clock_source() != OTELI_CLOCK_FAKE &&
           now.boot_ns - renewer.older_ns < FIRST_BASELINE_NS)
        now = oteli_clock_read();
    measure_rate(&now);
    const uint64_t covered = oteli_curve_covered(&curve);
    if (now.ticks + oteli_clock_base <= covered)
        set_base(covered + oteli_min(now.ticks, MOST_GAP) - now.ticks);
    leap_to(&now);
    begin_epoch(now.wall_ns - target_of(&now));
    oteli_spin_unlock(&renewer.lock);
    return refused;
}

/* Behind what is covered, ticks are nanoseconds of CLOCK_MONOTONIC. Spans that are open go on in
 * their epoch: their ticks from before are on the lines from before. */
static void leave_counter(void)
{
    oteli_clock_leave_counter(oteli_curve_covered(&curve) - oteli_clock_base);
    renewer.counts = false;
    oteli_store_relaxed_64(&renewer.rate, OTELI_RATE_ONE);
    renewer.narrowest = UINT64_MAX;
    const struct oteli_reading now = oteli_clock_read();
    leap_to(&now);
    follow_wall(&now);
}

/* Follow the clocks. False: another thread is at it. */
static bool renew_and_lock(void)
{
    if (oteli_clock_epoch() == 0 || !oteli_spin_try_lock(&renewer.lock))
        return false;
    const uint64_t covered = oteli_curve_covered(&curve);
    const struct oteli_reading now = oteli_clock_read();
    follow(&now, covered);
    follow_wall(&now);
    return true;
}

bool oteli_clock_renew(void)
{
    const bool is_doubted = oteli_load_relaxed_32(&renewer.is_doubted) != 0;
    const bool is_given_up = is_doubted && oteli_clock_counter_is_given_up();
    if (!renew_and_lock())
        return false;
    if (is_doubted)
        oteli_store_relaxed_32(&renewer.is_doubted, 0);
    if (is_given_up)
        leave_counter();
    oteli_spin_unlock(&renewer.lock);
    return is_given_up;
}

void oteli_clock_rest(void)
{
    if (!renew_and_lock())
        return;
    const uint64_t epoch = oteli_load_relaxed_64(&epochs[oteli_clock.epoch % EPOCHS]);
    if ((epoch & 1) != 0)
        begin_epoch(offset_in(epoch));
    renewer.may_correct = true;
    oteli_spin_unlock(&renewer.lock);
}

bool oteli_clock_measure_offsets(const uint64_t *stop)
{
    enum { BUDGET_NS = 5000000 };
    if (oteli_clock_source() != OTELI_CLOCK_COUNTER || renewer.is_compared)
        return false;
    bool found = oteli_cores_measure(renewer.core, oteli_clock_ticks_of_ns(BUDGET_NS), stop);
    oteli_spin_lock(&renewer.lock);
    renewer.is_compared = true;
    found = found && oteli_clock_source() == OTELI_CLOCK_COUNTER; /* not given up meanwhile */
    if (found) {
        oteli_store_release_32(&oteli_clock.source, OTELI_CLOCK_COUNTER_BY_CORE);
        renewer.older_ns = 0;
    }
    oteli_spin_unlock(&renewer.lock);
    return found;
}

/* The two numbers of the baseline may be of two readings. */
void oteli_clock_forget(void)
{
    if (renewer.lock == 0)
        return;
    renewer.older_ns = 0;
    renewer.lock = 0;
}

/* Make the curve reach stored ticks, by a reading if possible; if another thread is at it, it
 * is fixed as it stands. Ticks may be a little later than a reading, on another core; but
 * what is far in the future is of a counter that began anew since, or no reading at all, and fixes
 * nothing. Returns the ticks to look up. */
static OTELI_COLD uint64_t cover(uint64_t stored)
{
    const bool may_follow = oteli_spin_try_lock(&renewer.lock);
    const uint64_t covered = oteli_curve_covered(&curve);
    const struct oteli_reading now = oteli_clock_read();
    if (may_follow) {
        follow(&now, covered);
        oteli_spin_unlock(&renewer.lock);
    }
    if (stored > now.ticks && stored - now.ticks > oteli_clock_ticks_of_ns(BACK_NS))
        return stored + oteli_load_relaxed_64(&former_base);
    const uint64_t ticks = stored + oteli_load_relaxed_64(&oteli_clock_base);
    oteli_curve_cover(&curve, ticks);
    return ticks;
}

static uint32_t oldest_epoch(uint32_t newest)
{
    return newest > EPOCHS - 2 ? newest - (EPOCHS - 2) : 1;
}

/* The offset of an epoch, which is final from now on. */
static uint64_t use_epoch(uint32_t number)
{
    uint64_t *slot = &epochs[number % EPOCHS];
    uint64_t epoch = oteli_load_relaxed_64(slot);
    while (OTELI_UNLIKELY((epoch & 1) == 0)) {
        oteli_cas_full_64(slot, epoch, epoch | 1);
        epoch = oteli_load_relaxed_64(slot);
    }
    return offset_in(epoch);
}

OTELI_TLS struct oteli_conversion oteli_clock_last;

/* A clock was started. */
static struct oteli_conversion convert(uint64_t stored, uint32_t epoch)
{
    uint32_t newest = oteli_load_acquire_32(&oteli_clock.epoch);
    uint32_t number;
    uint64_t offset;
    do { /* again where the epoch was forgotten meanwhile */
        number = epoch < oldest_epoch(newest) ? oldest_epoch(newest) : epoch;
        offset = use_epoch(number);
        newest = oteli_load_acquire_32(&oteli_clock.epoch);
    } while (OTELI_UNLIKELY(number < oldest_epoch(newest)));
    uint64_t ticks = stored + oteli_load_relaxed_64(&oteli_clock_base);
    if (OTELI_UNLIKELY(ticks > oteli_curve_covered(&curve)))
        ticks = cover(stored);
    const struct oteli_curve_piece piece = oteli_curve_piece_at(&curve, ticks);
    return (struct oteli_conversion){piece, offset, oteli_knot_at(&piece.from, ticks) + offset,
                                     number};
}

static uint64_t find_ns(uint64_t stored, uint32_t epoch)
{
    if (oteli_clock_epoch() == 0) /* no clock was ever started */
        return stored;
    oteli_clock_last = convert(stored, epoch);
    return oteli_clock_last.ns;
}

/* The wall clock may have been set since the last renewal, and would not be followed by a
 * conversion alone. oteli_clock_last stays: this may interrupt the conversion that writes it. */
uint64_t oteli_clock_now_ns(uint32_t epoch)
{
    const uint64_t stored = oteli_ticks();
    const uint64_t ticks = stored + oteli_load_relaxed_64(&oteli_clock_base);
    const uint32_t newest = oteli_clock_epoch();
    const uint64_t offset = oteli_load_relaxed_64(&epochs[(epoch != 0 ? epoch : newest) % EPOCHS]);
    const bool is_used = (offset & 1) != 0;
    if (OTELI_UNLIKELY(!is_used || ticks > oteli_curve_covered(&curve)) && renew_and_lock())
        oteli_spin_unlock(&renewer.lock);
    const uint64_t ns = convert(stored, epoch != 0 ? epoch : oteli_clock_epoch()).ns;
    return ns & ~OTELI_TICKS_BIT; /* offsets are known modulo 2^63 */
}

uint64_t oteli_clock_to_ns(uint64_t stored, uint32_t epoch)
{
    if ((stored & OTELI_TICKS_BIT) == 0)
        return stored;
    const struct oteli_conversion *last = &oteli_clock_last;
    const uint64_t from = last->piece.from.ticks;
    const uint64_t ticks = (stored & ~OTELI_TICKS_BIT) + oteli_load_relaxed_64(&oteli_clock_base);
    if (OTELI_LIKELY(epoch == last->epoch && ticks - from - 1 < last->piece.to - from))
        return oteli_ns_like_last(ticks - from);
    return find_ns(stored & ~OTELI_TICKS_BIT, epoch);
}

struct oteli_span_times oteli_clock_span_times(uint64_t start, uint64_t end, uint32_t epoch)
{
    const uint64_t start_ns = oteli_clock_to_ns(start, epoch);
    const uint64_t end_ns = oteli_clock_to_ns(end, epoch);
    const bool is_measured = (start & end & OTELI_TICKS_BIT) != 0;
    return (struct oteli_span_times){start_ns,
                                     is_measured && end_ns < start_ns ? start_ns : end_ns};
}
