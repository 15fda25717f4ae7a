/* SPDX-License-Identifier: Apache-2.0 */
/* common/clock/clock.c - follow the kernel's clocks, and turn ticks into wall time.
 *
 * To use a reading, a thread takes a lock for less than a microsecond, and nobody waits for
 * it: a conversion that finds it taken goes on with the curve as it is. A forked child in
 * which the holder does not exist takes the lock away from it, and goes on with the curve of
 * its parent: a trace of both processes is converted by one function. */
#include "common/clock/clock.h"
#include "common/base/spin_lock.h"
#include "common/clock/clock_curve.h"
#include "common/clock/clock_offsets.h"
#include "common/clock/clock_reading.h"
#include "common/clock/time_units.h"

#include <stddef.h>

#define FIRST_BASELINE_NS UINT64_C(50000) /* a rate to 1/1000; it gets better all the time */
#define GOOD_BASELINE_NS OTELI_NS_PER_S   /* a rate measured over less is better than none */
#define BASELINE_NS (8 * OTELI_NS_PER_S)  /* half of what a rate is measured over at most */
#define MOST_GAP (UINT64_C(1) << 44)      /* ticks */
#define EPOCH_NS (600 * OTELI_NS_PER_S)   /* see struct epoch */
#define BACK_NS (100 * OTELI_NS_PER_MS)   /* ticks that go back more: the counter began anew */
#define MOST_PPM 1000                     /* no NTP slews faster */
#define MOST_PPM_SUSPENDED 50             /* beyond that, the counter stood still */

enum {
    EPOCHS = 4096,
    CURVE_TOLERANCE_NS = 100, /* a reading is good to 10 or 20 */
    WALL_TOLERANCE_NS = 500,
    LEAST_SUSPEND_NS = 1000000, /* no suspend takes less */
    COVER_AHEAD = 8, /* a rate is trusted for this part of the time it was measured over */
};

/* Ticks before the origin of their own span's epoch are of a counter that began anew since.
 * A new epoch now and then, even when nothing happens, keeps that unambiguous for all but
 * spans that are open longer than the machine was awake before. */
struct epoch {
    uint64_t offset; /* wall clock less curve, times 2; plus 1: somebody has used it */
    uint64_t base;   /* to be added to ticks before they are looked up */
    uint64_t origin; /* ticks at its beginning */
};

/* Of whoever holds the lock. */
struct renewer {
    uint32_t lock;
    bool counts;
    bool may_correct;     /* the epoch was begun by a rest */
    bool is_torn;         /* after a fork: the two readings below may be half of another */
    bool is_compared;     /* the cores are, since the clock was started */
    uint32_t is_doubted;  /* a rate was rejected, and the kernel is not asked yet; relaxed */
    uint32_t core;        /* on which the clock was started */
    uint64_t base;        /* see struct epoch; changes when the counter begins anew; relaxed */
    uint64_t rate;        /* as in struct oteli_knot */
    uint64_t rate_ns;     /* how long a time it was measured over */
    uint64_t narrowest;   /* reading */
    uint64_t newest_ns;   /* of the readings' CLOCK_BOOTTIME */
    uint64_t ahead_ns;    /* of CLOCK_BOOTTIME; what the curve could not follow, and what ticks of
                             CLOCK_MONOTONIC were moved by; modulo 2^64 */
    int64_t suspended_ns; /* CLOCK_BOOTTIME less CLOCK_MONOTONIC, as one reading estimated it */
    int64_t suspended_least_ns; /* and what all readings since then allow */
    int64_t suspended_most_ns;
    struct oteli_reading older; /* the rate is measured since here */
    struct oteli_reading newer; /* and will be since here */
};

static struct oteli_curve curve;
static struct epoch epochs[EPOCHS];
static struct renewer renewer;

static bool try_lock(void)
{
    return oteli_spin_try_lock(&renewer.lock);
}

/* For threads that may wait. */
static void lock(void)
{
    oteli_spin_lock(&renewer.lock);
}

static void unlock(void)
{
    oteli_spin_unlock(&renewer.lock);
}

uint64_t oteli_clock_ticks_of_ns(uint64_t ns)
{
    const uint64_t rate = oteli_load_relaxed_64(&curve.rate);
    if (rate == 0)
        return ns;
    const oteli_wide ticks = ((oteli_wide)ns << OTELI_RATE_SHIFT) / rate;
    return ticks > UINT64_MAX ? UINT64_MAX : (uint64_t)ticks;
}

static void restart_baseline(const struct oteli_reading *now)
{
    renewer.older = *now;
    renewer.newer = *now;
}

/* How far off a reading may be that took longer than others: half of that. */
static uint64_t doubt_ns(const struct oteli_reading *now)
{
    renewer.narrowest = oteli_min(renewer.narrowest, now->width);
    return oteli_ticks_times_rate(now->width - renewer.narrowest, renewer.rate) / 2;
}

/* A rate that differs from the last by more than NTP does is not one: something happened
 * to one of the clocks, or the last was wrong. It is measured anew, and the next renewal asks the
 * kernel whether it still trusts the counter. */
static void measure_rate(const struct oteli_reading *now)
{
    const uint64_t ticks = now->ticks - renewer.older.ticks;
    const uint64_t elapsed_ns = now->boot_ns - renewer.older.boot_ns;
    if (!renewer.counts || ticks == 0 || elapsed_ns < FIRST_BASELINE_NS ||
        elapsed_ns < oteli_min(renewer.rate_ns, GOOD_BASELINE_NS) ||
        doubt_ns(now) > CURVE_TOLERANCE_NS)
        return;
    const uint64_t rate = (uint64_t)(((oteli_wide)elapsed_ns << OTELI_RATE_SHIFT) / ticks);
    if (renewer.rate_ns != 0 && oteli_distance(rate, renewer.rate) > renewer.rate / 500) {
        restart_baseline(now);
        renewer.rate_ns = 0;
        oteli_store_relaxed_32(&renewer.is_doubted, 1);
        return;
    }
    renewer.rate = rate;
    if (elapsed_ns > renewer.rate_ns)
        renewer.rate_ns = elapsed_ns;
    if (now->boot_ns - renewer.newer.boot_ns >= BASELINE_NS) {
        renewer.older = renewer.newer;
        renewer.newer = *now;
    }
}

static void set_suspended(const struct oteli_reading *now)
{
    renewer.suspended_least_ns = now->suspended_least_ns;
    renewer.suspended_most_ns = now->suspended_most_ns;
    renewer.suspended_ns =
        now->suspended_least_ns + (now->suspended_most_ns - now->suspended_least_ns) / 2;
}

/* Only bounds that contradict those known so far are of a suspend: a reader that is preempted gets
 * wide bounds, and those contain what was true before. */
static bool notice_suspend(const struct oteli_reading *now)
{
    const int64_t least_ns = now->suspended_least_ns;
    const int64_t most_ns = now->suspended_most_ns;
    if (least_ns - renewer.suspended_most_ns >= LEAST_SUSPEND_NS ||
        renewer.suspended_least_ns - most_ns >= LEAST_SUSPEND_NS) {
        set_suspended(now);
        restart_baseline(now);
        return true;
    }
    if (least_ns > renewer.suspended_least_ns)
        renewer.suspended_least_ns = least_ns;
    if (most_ns < renewer.suspended_most_ns)
        renewer.suspended_most_ns = most_ns;
    return false;
}

static void mend(const struct oteli_reading *now)
{
    if (renewer.is_torn)
        restart_baseline(now);
    renewer.is_torn = false;
}

/* What the curve should be at a reading. Ticks that are nanoseconds of CLOCK_MONOTONIC are
 * only moved, so that they stay exact. */
static uint64_t target_of(const struct oteli_reading *now)
{
    const uint64_t ns = renewer.counts ? now->boot_ns : now->ticks + (uint64_t)renewer.suspended_ns;
    return ns + renewer.ahead_ns;
}

static void begin_epoch(const struct oteli_reading *now, uint64_t offset)
{
    const uint32_t number = oteli_clock.epoch + 1;
    struct epoch *epoch = &epochs[number % EPOCHS];
    oteli_store_relaxed_64(&epoch->offset, offset << 1);
    oteli_store_relaxed_64(&epoch->base, renewer.base);
    oteli_store_relaxed_64(&epoch->origin, now->ticks);
    oteli_store_release_32(&oteli_clock.epoch, number); /* pairs with oteli_clock_to_ns */
    renewer.may_correct = false;
}

/* Ticks go back: from now on something is added to them. Behind what is covered there is
 * room for the old ticks that nobody has converted yet, which are no more than the time
 * since, and then for those since the counter began anew. */
static void begin_ticks_anew(const struct oteli_reading *now)
{
    const uint64_t covered = oteli_curve_covered(&curve);
    const uint64_t covered_ns = oteli_curve_at(&curve, covered);
    const uint64_t target_ns = target_of(now);
    if (target_ns < covered_ns)
        renewer.ahead_ns += covered_ns - target_ns;
    const uint64_t room = oteli_clock_ticks_of_ns(target_of(now) - covered_ns);
    const uint64_t gap = oteli_min(oteli_min(now->ticks, MOST_GAP), room);
    oteli_curve_cover(&curve, covered + room);
    const uint64_t ticks = oteli_curve_covered(&curve) + gap;
    oteli_store_relaxed_64(&renewer.base, ticks - now->ticks);
    restart_baseline(now);
    oteli_curve_leap(&curve, ticks, target_of(now), renewer.rate);
    oteli_curve_cover(&curve, ticks);
    begin_epoch(now, now->wall_ns - target_of(now));
}

/* The line behind the last reading is fixed for a moment, so that many conversions right
 * after each other need one reading. */
static uint64_t ticks_ahead(void)
{
    if (!renewer.counts)
        return 0;
    return oteli_clock_ticks_of_ns(oteli_min(renewer.rate_ns / COVER_AHEAD, OTELI_NS_PER_MS));
}

/* Lead the curve through a reading. */
static void follow(const struct oteli_reading *now)
{
    if (now->boot_ns < renewer.newest_ns) /* a later reading was faster */
        return;
    renewer.newest_ns = now->boot_ns;
    mend(now);
    const bool was_suspended = notice_suspend(now);
    const uint64_t ticks = now->ticks + renewer.base;
    const uint64_t covered = oteli_curve_covered(&curve);
    if (ticks < covered && covered - ticks > oteli_clock_ticks_of_ns(BACK_NS)) {
        begin_ticks_anew(now);
        return;
    }
    if (ticks <= covered)
        return;
    measure_rate(now);
    const struct oteli_curve_point point = {
        .ticks = ticks,
        .ns = target_of(now),
        .rate = renewer.rate,
        .tolerance_ns = CURVE_TOLERANCE_NS + doubt_ns(now),
        .most_ppm = was_suspended ? MOST_PPM_SUSPENDED : MOST_PPM,
    };
    renewer.ahead_ns += oteli_curve_follow(&curve, &point);
    oteli_curve_cover(&curve, ticks + ticks_ahead());
}

/* A renewal after a rest: nothing has been converted in the epoch, so it can still get the
 * right offset. False: something has just been. */
static bool correct_epoch(uint64_t offset)
{
    uint64_t *place = &epochs[oteli_clock.epoch % EPOCHS].offset;
    const uint64_t unused = oteli_load_relaxed_64(place);
    const bool may = renewer.may_correct && (unused & 1) == 0;
    renewer.may_correct = false;
    return may && oteli_cas_full_64(place, unused, offset << 1);
}

static uint64_t offset_of(const struct epoch *epoch)
{
    const uint64_t offset = oteli_load_relaxed_64(&epoch->offset);
    return (uint64_t)((int64_t)offset >> 1);
}

static void follow_wall(const struct oteli_reading *now)
{
    const struct epoch *epoch = &epochs[oteli_clock.epoch % EPOCHS];
    const uint64_t offset = now->wall_ns - target_of(now);
    const int64_t off = (int64_t)(offset - offset_of(epoch));
    const uint64_t off_ns = off < 0 ? (uint64_t)-off : (uint64_t)off;
    if (off_ns > WALL_TOLERANCE_NS + doubt_ns(now)) {
        if (!correct_epoch(offset))
            begin_epoch(now, offset);
    } else if (now->ticks - epoch->origin > oteli_clock_ticks_of_ns(EPOCH_NS)) {
        begin_epoch(now, offset_of(epoch));
    }
}

const char *oteli_clock_start(const char *wish)
{
    lock();
    const char *refused = oteli_clock_choose(wish);
    renewer.is_torn = false;
    renewer.is_compared = false;
    oteli_store_relaxed_32(&renewer.is_doubted, 0);
    renewer.counts = oteli_clock_counts();
    renewer.core = oteli_core_now();
    renewer.rate = OTELI_RATE_ONE;
    renewer.rate_ns = 0;
    renewer.ahead_ns = 0;
    renewer.narrowest = UINT64_MAX;
    struct oteli_reading now = oteli_clock_read();
    set_suspended(&now);
    renewer.newest_ns = now.boot_ns;
    restart_baseline(&now);
    while (renewer.counts && oteli_clock_source() != OTELI_CLOCK_FAKE &&
           now.boot_ns - renewer.older.boot_ns < FIRST_BASELINE_NS)
        now = oteli_clock_read();
    measure_rate(&now);

    const uint64_t covered = oteli_curve_covered(&curve);
    if (now.ticks + renewer.base <= covered)
        oteli_store_relaxed_64(&renewer.base, covered + oteli_min(now.ticks, MOST_GAP) - now.ticks);
    oteli_curve_leap(&curve, now.ticks + renewer.base, target_of(&now), renewer.rate);
    oteli_curve_cover(&curve, now.ticks + renewer.base);
    begin_epoch(&now, now.wall_ns - target_of(&now));
    unlock();
    return refused;
}

/* Behind what is covered, ticks are nanoseconds of CLOCK_MONOTONIC. Spans that are open go on in
 * their epoch: their ticks from before are on the lines from before. */
static void leave_counter(void)
{
    const uint64_t covered = oteli_curve_covered(&curve);
    oteli_clock_leave_counter(covered - renewer.base);
    renewer.counts = false;
    renewer.rate = OTELI_RATE_ONE;
    renewer.narrowest = UINT64_MAX;
    const struct oteli_reading now = oteli_clock_read();
    renewer.newest_ns = now.boot_ns; /* readings of the counter that come later are too late */
    const uint64_t target_ns = now.boot_ns + renewer.ahead_ns;
    const uint64_t ticks = now.ticks + renewer.base;
    const uint64_t least_ns = oteli_curve_at(&curve, covered) + (ticks - covered);
    renewer.ahead_ns += (target_ns > least_ns ? target_ns : least_ns) - target_of(&now);
    oteli_curve_leap(&curve, ticks, target_of(&now), renewer.rate);
    follow_wall(&now);
}

bool oteli_clock_renew(void)
{
    const bool is_doubted = oteli_load_relaxed_32(&renewer.is_doubted) != 0;
    const bool is_given_up = is_doubted && oteli_clock_counter_is_given_up();
    const struct oteli_reading now = oteli_clock_read();
    if (oteli_clock_epoch() == 0 || !try_lock())
        return false;
    if (is_doubted)
        oteli_store_relaxed_32(&renewer.is_doubted, 0);
    follow(&now);
    follow_wall(&now);
    if (is_given_up)
        leave_counter();
    unlock();
    return is_given_up;
}

void oteli_clock_rest(void)
{
    const struct oteli_reading now = oteli_clock_read();
    if (oteli_clock_epoch() == 0 || !try_lock())
        return;
    follow(&now);
    follow_wall(&now);
    const struct epoch *epoch = &epochs[oteli_clock.epoch % EPOCHS];
    if ((oteli_load_relaxed_64(&epoch->offset) & 1) != 0)
        begin_epoch(&now, offset_of(epoch));
    renewer.may_correct = true;
    unlock();
}

bool oteli_clock_measure_offsets(const uint64_t *stop)
{
    enum { BUDGET_NS = 5000000 };
    if (oteli_clock_source() != OTELI_CLOCK_COUNTER || renewer.is_compared)
        return false;
    bool found = oteli_cores_measure(renewer.core, oteli_clock_ticks_of_ns(BUDGET_NS), stop);
    lock();
    renewer.is_compared = true;
    found = found && oteli_clock_source() == OTELI_CLOCK_COUNTER; /* not given up meanwhile */
    if (found) {
        oteli_store_release_32(&oteli_clock.source, OTELI_CLOCK_COUNTER_BY_CORE);
        const struct oteli_reading now = oteli_clock_read();
        restart_baseline(&now);
    }
    unlock();
    return found;
}

void oteli_clock_forget(void)
{
    if (renewer.lock == 0)
        return;
    renewer.is_torn = true;
    renewer.lock = 0;
    oteli_curve_forget(&curve);
}

/* Make the curve reach these ticks, by a reading if possible; if somebody else is at it, it
 * is fixed as it stands. Ticks may be a little later than a reading, on another core; but
 * what is far in the future is no reading at all, and fixes nothing. */
static OTELI_COLD void cover(uint64_t ticks)
{
    const struct oteli_reading now = oteli_clock_read();
    const uint64_t newest = now.ticks + oteli_load_relaxed_64(&renewer.base);
    if (try_lock()) {
        follow(&now);
        unlock();
    }
    if (ticks < newest || ticks - newest < oteli_clock_ticks_of_ns(BACK_NS))
        oteli_curve_cover(&curve, ticks);
}

static uint32_t oldest_epoch(uint32_t newest)
{
    return newest > EPOCHS - 2 ? newest - (EPOCHS - 2) : 1;
}

/* The offset of an epoch, which is final from now on, and what to add to ticks. Ticks from
 * before the epoch are of a counter that began anew since. */
static uint64_t use_epoch(uint32_t number, uint32_t newest, uint64_t *ticks)
{
    struct epoch *epoch = &epochs[number % EPOCHS];
    uint64_t offset = oteli_load_relaxed_64(&epoch->offset);
    while (OTELI_UNLIKELY((offset & 1) == 0)) {
        oteli_cas_full_64(&epoch->offset, offset, offset | 1);
        offset = oteli_load_relaxed_64(&epoch->offset);
    }
    uint64_t base = oteli_load_relaxed_64(&epoch->base);
    const uint64_t newest_base = oteli_load_relaxed_64(&epochs[newest % EPOCHS].base);
    if (OTELI_UNLIKELY(base != newest_base) &&
        *ticks + oteli_clock_ticks_of_ns(BACK_NS) < oteli_load_relaxed_64(&epoch->origin))
        base = newest_base;
    *ticks += base;
    return (uint64_t)((int64_t)offset >> 1);
}

/* What this thread has converted last, for the next time: the worker converts the times of many
 * spans right after each other, and they are on one line. What is covered stays, so a line that
 * was right once always is. */
struct line {
    struct oteli_curve_piece piece;
    uint64_t base;
    uint64_t offset;
    uint32_t epoch; /* 0: none yet */
};
static OTELI_TLS struct line last;

static bool is_on(const struct line *line, uint64_t ticks, uint32_t epoch)
{
    return epoch == line->epoch &&
           ticks + line->base - line->piece.after - 1 < line->piece.to - line->piece.after;
}

static uint64_t find_ns(uint64_t stored, uint32_t epoch, struct line *line)
{
    uint32_t newest = oteli_load_acquire_32(&oteli_clock.epoch);
    if (newest == 0) /* no clock was ever started */
        return stored;
    for (;;) {
        const bool is_forgotten = epoch < oldest_epoch(newest);
        if (is_forgotten)
            epoch = oldest_epoch(newest);
        uint64_t ticks = stored;
        const uint64_t offset = use_epoch(epoch, newest, &ticks);
        if (OTELI_UNLIKELY(ticks > oteli_curve_covered(&curve)))
            cover(ticks);
        const uint64_t ns = oteli_curve_at(&curve, ticks) + offset;
        *line = (struct line){.base = ticks - stored, .offset = offset, .epoch = epoch};
        const bool is_line = oteli_curve_piece_at(&curve, ticks, &line->piece);
        newest = oteli_load_acquire_32(&oteli_clock.epoch);
        if (OTELI_UNLIKELY(epoch < oldest_epoch(newest)))
            continue;
        if (!is_line || is_forgotten)
            line->epoch = 0;
        return ns;
    }
}

uint64_t oteli_clock_to_ns(uint64_t stored, uint32_t epoch)
{
    const struct line *line = &last;
    const uint64_t ticks = stored & ~OTELI_TICKS_BIT;
    if (stored == ticks)
        return stored;
    if (OTELI_LIKELY(is_on(line, ticks, epoch)))
        return line->piece.ns + line->offset +
               oteli_ticks_times_rate(ticks + line->base - line->piece.after, line->piece.rate);
    return find_ns(ticks, epoch, &last);
}
