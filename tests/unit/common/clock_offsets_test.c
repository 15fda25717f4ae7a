/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/clock_offsets_test.c - specification of common/clock/clock_offsets.h, on cores
 * that are played, and with the real ones, where only affinity and gross offsets are looked at. */
#include "common/clock/clock.h"
#include "common/clock/clock_offsets.h"
#include "tests/support/unit.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>

enum { CORES = 4, TICKS_PER_US = 3000, BUDGET = 5000 * TICKS_PER_US, PLENTY = 1 << 30 };
#define INJECTED (INT64_C(1) << 34) /* seconds: longer than any visit of a real core takes */

/* The played machine: going to a core takes 8 to 40 us, reading a little. */
static struct {
    uint64_t now;
    uint64_t seed;
    uint32_t core;
    unsigned moves;
    unsigned moves_allowed;
    int64_t ahead[CORES];
    bool is_uneven;
} machine;

static uint64_t random_below(uint64_t limit)
{
    machine.seed = machine.seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (machine.seed >> 33) % limit;
}

static const uint64_t never;

static bool play_go_to(uint32_t core)
{
    if (machine.moves == machine.moves_allowed)
        return false;
    machine.moves++;
    machine.core = core;
    machine.now += 8 * TICKS_PER_US + random_below(32 * TICKS_PER_US);
    return true;
}

static uint64_t play_read(uint32_t *core)
{
    *core = machine.core;
    machine.now += 30;
    if (machine.is_uneven && machine.core == 1)
        return machine.now + random_below(1000000 * (uint64_t)TICKS_PER_US);
    return machine.now + (uint64_t)machine.ahead[machine.core];
}

static const struct oteli_core_probe played = {play_go_to, play_read};
static const uint32_t all_cores[CORES] = {0, 1, 2, 3};
static int64_t ahead[CORES];

static int set_up(void **state)
{
    (void)state;
    memset(&machine, 0, sizeof machine);
    machine.now = UINT64_C(1) << 50;
    machine.seed = 5;
    machine.moves_allowed = PLENTY;
    memset(ahead, 0x55, sizeof ahead);
    return 0;
}

static bool compare(uint64_t budget)
{
    return oteli_cores_compare(&played, all_cores, CORES, budget, &never, ahead);
}

static void assert_near(int64_t found, int64_t truth, int64_t most)
{
    assert_true(found - truth <= most && truth - found <= most);
}

static void assert_none_is_ahead(void)
{
    for (size_t i = 0; i < CORES; i++)
        assert_true(ahead[i] == 0);
}

AROUND_EACH(set_up, NULL);

TEST(a_core_that_is_off_is_found_and_put_right)
{
    static const int64_t offsets_us[] = {50, -50, 1000, -100000000};
    for (size_t i = 0; i < sizeof offsets_us / sizeof offsets_us[0]; i++) {
        set_up(state);
        machine.ahead[2] = offsets_us[i] * TICKS_PER_US;
        assert_true(compare(BUDGET));
        assert_near(ahead[2], machine.ahead[2], 10 * TICKS_PER_US);
        assert_true(ahead[0] == 0 && ahead[1] == 0 && ahead[3] == 0);
    }
}

TEST(the_reference_is_never_off)
{
    machine.ahead[0] = 70 * TICKS_PER_US;
    assert_true(compare(BUDGET));
    assert_true(ahead[0] == 0);
    for (size_t i = 1; i < CORES; i++)
        assert_near(ahead[i], -machine.ahead[0], 10 * TICKS_PER_US);
}

TEST(what_is_below_the_error_is_left_alone)
{
    assert_false(compare(BUDGET));
    assert_none_is_ahead();
    machine.ahead[1] = 7 * TICKS_PER_US;
    machine.ahead[2] = -7 * TICKS_PER_US;
    machine.ahead[3] = 1;
    assert_false(compare(BUDGET));
    assert_none_is_ahead();
}

TEST(a_counter_that_goes_unevenly_is_not_put_right)
{
    machine.is_uneven = true;
    assert_false(compare(BUDGET));
    assert_true(ahead[1] == 0);
}

TEST(it_ends_when_its_time_is_over)
{
    const uint64_t start = machine.now;
    compare(BUDGET);
    assert_true(machine.now - start < BUDGET + 4 * 40 * TICKS_PER_US);

    set_up(state);
    machine.ahead[1] = machine.ahead[3] = 90 * TICKS_PER_US;
    assert_true(compare(1)); /* one visit: what was not visited has no offset */
    assert_true(ahead[1] != 0 && ahead[3] == 0);
}

TEST(it_is_harmless_where_it_must_not_move)
{
    machine.ahead[1] = 90 * TICKS_PER_US;
    for (unsigned moves = 0; moves < 4; moves++) {
        machine.moves = 0;
        machine.moves_allowed = moves;
        assert_false(compare(BUDGET));
        assert_true(ahead[1] == 0);
    }
    assert_false(oteli_cores_compare(&played, all_cores, 1, BUDGET, &never, ahead));
    assert_false(oteli_cores_compare(&played, all_cores, 0, BUDGET, &never, ahead));
}

/* From here on, the real cores. */
static cpu_set_t visited;
static cpu_set_t before;    /* the cores that are allowed, as they are after each test */
static uint32_t first_core; /* all others are ahead of it */
static struct oteli_core_probe real;

static bool go_and_note(uint32_t core)
{
    CPU_SET(core, &visited);
    return real.go_to(core);
}

static uint64_t read_with_offset(uint32_t *core)
{
    const uint64_t ticks = real.read(core);
    return *core == first_core ? ticks : ticks + (uint64_t)INJECTED;
}

static cpu_set_t allowed(void)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    return set;
}

static uint32_t nth_core(const cpu_set_t *set, int n)
{
    for (uint32_t core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, set) && n-- == 0)
            return core;
    fail();
    return 0;
}

static int inject(void **state)
{
    (void)state;
    CPU_ZERO(&visited);
    real = oteli_core_probe;
    oteli_core_probe = (struct oteli_core_probe){go_and_note, read_with_offset};
    before = allowed();
    first_core = nth_core(&before, 0);
    return 0;
}

static int eject(void **state)
{
    (void)state;
    const cpu_set_t after = allowed();
    assert_true(CPU_EQUAL(&before, &after));
    oteli_core_probe = real;
    memset(oteli_core_offsets, 0, sizeof oteli_core_offsets);
    return 0;
}

static cpu_set_t go_to_only(uint32_t core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    return one;
}

static bool can_measure(void)
{
#if defined(__x86_64__)
    return CPU_COUNT(&before) > 1;
#else
    return false;
#endif
}

#define REAL(name) TEST_WITH(inject, eject, name)

REAL(real_cores_are_visited_and_left)
{
    const uint32_t last_core = nth_core(&before, CPU_COUNT(&before) - 1);

    assert_int_equal(oteli_cores_measure(first_core, UINT64_MAX, &never), can_measure());

    if (can_measure()) {
        assert_true(CPU_EQUAL(&before, &visited));
        assert_near((int64_t)oteli_core_offsets[last_core], INJECTED, INJECTED / 2);
        assert_true(oteli_core_offsets[first_core] == 0);
    }
}

REAL(cores_that_are_not_allowed_are_not_visited)
{
    const cpu_set_t one = go_to_only(nth_core(&before, CPU_COUNT(&before) - 1));

    assert_false(oteli_cores_measure(first_core, UINT64_MAX, &never));

    const cpu_set_t after = allowed();
    assert_true(CPU_EQUAL(&one, &after));
    assert_int_equal(CPU_COUNT(&visited), 0);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

REAL(the_clock_uses_offsets_that_it_finds)
{
    assert_null(oteli_clock_start("auto"));
    oteli_clock.source = OTELI_CLOCK_COUNTER; /* wherever the tests run */
    assert_int_equal(oteli_clock_measure_offsets(&never), can_measure());
    assert_int_equal(oteli_clock.source,
                     can_measure() ? OTELI_CLOCK_COUNTER_BY_CORE : OTELI_CLOCK_COUNTER);
}

REAL(one_that_is_to_stop_visits_no_more)
{
    static const uint64_t now = 1;
    assert_false(oteli_cores_measure(first_core, UINT64_MAX, &now) && CPU_COUNT(&before) > 2);
    assert_true(CPU_COUNT(&visited) <= 2);
}

REAL(other_sources_are_not_measured)
{
    static const char *const wishes[] = {"monotonic", "coarse", "fake"};
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        assert_null(oteli_clock_start(wishes[i]));
        assert_false(oteli_clock_measure_offsets(&never));
    }
    assert_int_equal(CPU_COUNT(&visited), 0);
}

#if defined(__x86_64__)
/* Each core's own offset is taken away, in the same breath as it is read. */
REAL(ticks_are_those_of_the_reference)
{
    oteli_clock.source = OTELI_CLOCK_COUNTER_BY_CORE;
    for (int i = 0; i < CPU_COUNT(&before); i++) {
        const uint32_t core = nth_core(&before, i);
        oteli_core_offsets[core] = (uint64_t)(core % 2 == 0 ? INJECTED : -INJECTED);
        (void)go_to_only(core);
        const uint64_t early = __rdtsc() - oteli_core_offsets[core];
        const uint64_t ticks = oteli_ticks();
        const uint64_t late = __rdtsc() - oteli_core_offsets[core];
        assert_true(early <= ticks && ticks <= late);
    }
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}
#endif
