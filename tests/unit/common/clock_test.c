/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/clock_test.c - specification of common/clock/clock.h: one straight line for one
 * epoch, whatever the wall clock does; and with a counter whose rate must be measured, while the
 * clocks are slewed and stepped and the machine is suspended. Real clocks are only asked whether
 * they go forward, whether any thread converts while another renews, with equal answers, and
 * whether no child process waits for a lock. */
#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "tests/support/unit.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
#define HOUR_NS (3600 * SECOND_NS)
#define YEAR_NS (INT64_C(31556952) * INT64_C(1000000000))
#define LONG_AWAKE (HOUR_NS * TICKS_PER_NS) /* ticks */
#define WALL_NS (UINT64_C(1700000000) * SECOND_NS)

enum {
    TICKS_PER_NS = 3,     /* the played counter's: 3 GHz */
    ERROR_NS = 101,       /* of the curve to the clock after a renewal: its tolerance */
    FIRST_ERROR_NS = 400, /* a played counter's rate is not known when the clock starts */
    RENEWALS = 600,
    STORMS = 20000,
    DEPTH = 4
};

/* The counter runs fast or slow by this, as NTP sees it. */
static int64_t drift_ppm;

static int start_fake(bool counts)
{
    drift_ppm = 0;
    oteli_fake_clock = (struct oteli_fake_clock){.ticks = UINT64_C(1) << 52,
                                                 .monotonic_ns = HOUR_NS,
                                                 .wall_ns = WALL_NS,
                                                 .suspended_ns = HOUR_NS / 2,
                                                 .counts = counts};
    assert_null(oteli_clock_start("fake"));
    return 0;
}

static int start_counter(void **state)
{
    (void)state;
    return start_fake(true);
}

static int start_nanoseconds(void **state)
{
    (void)state;
    return start_fake(false);
}

static void pass(uint64_t ns)
{
    const int64_t drift_ns = (int64_t)(ns / 1000) * drift_ppm / 1000;
    oteli_fake_clock.ticks += oteli_fake_clock.counts ? ns * TICKS_PER_NS : ns;
    oteli_fake_clock.monotonic_ns += ns + (uint64_t)drift_ns;
    oteli_fake_clock.wall_ns += ns + (uint64_t)drift_ns;
}

enum counter_in_suspend { GOES_ON, STANDS_STILL, BEGINS_ANEW };

static void suspend(uint64_t ns, enum counter_in_suspend counter)
{
    oteli_fake_clock.wall_ns += ns;
    oteli_fake_clock.suspended_ns += ns;
    if (counter == GOES_ON)
        oteli_fake_clock.ticks += ns * TICKS_PER_NS;
    else if (counter == BEGINS_ANEW)
        oteli_fake_clock.ticks = 1000;
}

static void step(int64_t ns)
{
    oteli_fake_clock.wall_ns += (uint64_t)ns;
}

static uint64_t now_stored(void)
{
    return oteli_ticks() | OTELI_TICKS_BIT;
}

static int64_t error_ns(void)
{
    return (int64_t)(oteli_clock_to_ns(now_stored(), oteli_clock_epoch()) -
                     oteli_fake_clock.wall_ns);
}

static void assert_exact(int64_t most_ns)
{
    const int64_t error = error_ns();
    assert_true(-most_ns <= error && error <= most_ns);
}

/* A few renewals, by which the rate is known. */
static void settle(void)
{
    for (int i = 0; i < 5; i++) {
        pass(5 * SECOND_NS);
        oteli_clock_renew();
    }
}

AROUND_EACH(start_counter, NULL);

/* ---- a clock of nanoseconds
 * ---------------------------------------------------------------------- */

#define NANOSECONDS(name) TEST_WITH(start_nanoseconds, NULL, name)

NANOSECONDS(ticks_become_wall_time)
{
    const uint32_t epoch = oteli_clock_epoch();
    assert_true(oteli_clock_to_ns(now_stored(), epoch) == WALL_NS);
    pass(123456789);
    assert_true(oteli_clock_to_ns(now_stored(), epoch) == WALL_NS + 123456789);
    assert_true(oteli_clock_to_ns((oteli_ticks() - SECOND_NS) | OTELI_TICKS_BIT, epoch) ==
                WALL_NS + 123456789 - SECOND_NS);
    assert_true(oteli_monotonic_ns() == HOUR_NS + 123456789);
}

NANOSECONDS(an_epoch_that_holds_stays)
{
    const uint32_t epoch = oteli_clock_epoch();
    pass(10 * SECOND_NS);
    oteli_clock_renew();
    assert_int_equal(oteli_clock_epoch(), epoch);
    oteli_fake_clock.wall_ns += 500;
    oteli_clock_renew();
    assert_int_equal(oteli_clock_epoch(), epoch);
    oteli_fake_clock.wall_ns += 1;
    oteli_clock_renew();
    assert_int_equal(oteli_clock_epoch(), epoch + 1);
    assert_true(oteli_clock_to_ns(now_stored(), epoch + 1) == oteli_fake_clock.wall_ns);
}

NANOSECONDS(a_step_of_the_wall_clock_bends_no_trace)
{
    static const int64_t steps_s[] = {3600, -3600, 1, -1, -10 * 3600};
    for (size_t i = 0; i < sizeof steps_s / sizeof steps_s[0]; i++) {
        const uint32_t epoch = oteli_clock_epoch();
        const uint64_t parent_start = now_stored();
        pass(1000);
        const uint64_t child_start = now_stored();
        const uint64_t parent_start_ns = oteli_clock_to_ns(parent_start, epoch);
        step(steps_s[i] * (int64_t)SECOND_NS);
        oteli_clock_renew();
        assert_int_equal(oteli_clock_epoch(), epoch + 1);
        pass(1000);
        const uint64_t child_end_ns = oteli_clock_to_ns(now_stored(), epoch);
        oteli_clock_renew();
        pass(1000);
        const uint64_t parent_end_ns = oteli_clock_to_ns(now_stored(), epoch);

        assert_true(oteli_clock_to_ns(parent_start, epoch) == parent_start_ns);
        assert_true(oteli_clock_to_ns(child_start, epoch) - parent_start_ns == 1000);
        assert_true(child_end_ns - parent_start_ns == 2000);
        assert_true(parent_end_ns - parent_start_ns == 3000);
        assert_true(oteli_clock_to_ns(now_stored(), oteli_clock_epoch()) ==
                    oteli_fake_clock.wall_ns);
    }
}

NANOSECONDS(an_epoch_older_than_all_anchors_still_keeps_order)
{
    const uint32_t epoch = oteli_clock_epoch();
    const uint64_t start = now_stored();
    for (int i = 0; i < RENEWALS; i++) {
        pass(SECOND_NS);
        oteli_fake_clock.wall_ns += 1000;
        oteli_clock_renew();
    }
    const uint64_t end = now_stored();
    assert_int_equal(oteli_clock_epoch(), epoch + RENEWALS);
    assert_true(oteli_clock_to_ns(end, epoch) - oteli_clock_to_ns(start, epoch) ==
                RENEWALS * SECOND_NS);
}

NANOSECONDS(each_start_is_an_epoch_of_its_own)
{
    const uint32_t epoch = oteli_clock_epoch();
    oteli_fake_clock.wall_ns += SECOND_NS;
    assert_null(oteli_clock_start("fake"));
    assert_int_equal(oteli_clock_epoch(), epoch + 1);
    assert_true(oteli_clock_to_ns(now_stored(), epoch + 1) == WALL_NS + SECOND_NS);
}

NANOSECONDS(a_clock_of_nanoseconds_stands_still_in_a_suspend)
{
    const uint32_t epoch = oteli_clock_epoch();
    const uint64_t start = now_stored();
    suspend(HOUR_NS, STANDS_STILL);
    pass(1000);
    oteli_clock_renew();
    const uint64_t end = now_stored();
    assert_true(oteli_clock_to_ns(start, epoch) == WALL_NS);
    assert_true(oteli_clock_to_ns(end, epoch) == WALL_NS + HOUR_NS + 1000);
    assert_int_equal(oteli_clock_epoch(), epoch);
}

/* ---- a counter
 * ----------------------------------------------------------------------------------- */

TEST(the_first_reading_is_enough_for_what_lies_before_the_second)
{
    const uint32_t epoch = oteli_clock_epoch();
    uint64_t stored[50];
    for (size_t i = 0; i < 50; i++) {
        pass(SECOND_NS / 10);
        stored[i] = now_stored();
    }
    oteli_clock_renew();
    for (size_t i = 0; i < 50; i++) {
        const uint64_t truth_ns = WALL_NS + (i + 1) * SECOND_NS / 10;
        assert_true(oteli_clock_to_ns(stored[i], epoch) - truth_ns + FIRST_ERROR_NS <=
                    2 * FIRST_ERROR_NS);
    }
    assert_int_equal(oteli_clock_epoch(), epoch);
}

TEST(durations_in_ticks)
{
    settle();
    assert_true(oteli_clock_ticks_of_ns(0) == 0);
    assert_true(oteli_clock_ticks_of_ns(SECOND_NS) - 3 * SECOND_NS + 5 <= 10);
    assert_true(oteli_clock_ticks_of_ns(UINT64_MAX) == UINT64_MAX);
}

TEST(milliseconds_are_rounded_up)
{
    assert_int_equal(oteli_ms_between(5, 4) + oteli_ms_between(5, 5), 0);
    assert_int_equal(oteli_ms_between(5, 6), 1);
    assert_int_equal(oteli_ms_between(5, 1000005), 1);
    assert_int_equal(oteli_ms_between(5, 1000006), 2);
}

TEST(a_slew_is_followed_without_a_new_epoch)
{
    settle();
    const uint32_t epoch = oteli_clock_epoch();
    static const int64_t slews_ppm[] = {500, -500, 20, -3, 0};
    uint64_t before_ns = 0;
    for (size_t i = 0; i < sizeof slews_ppm / sizeof slews_ppm[0]; i++) {
        drift_ppm = slews_ppm[i];
        for (int k = 0; k < 100; k++) {
            pass(SECOND_NS / 20);
            const uint64_t stored = now_stored();
            oteli_clock_renew();
            assert_exact(ERROR_NS);
            const uint64_t ns = oteli_clock_to_ns(stored, epoch);
            assert_true(ns > before_ns);
            before_ns = ns;
        }
    }
    assert_int_equal(oteli_clock_epoch(), epoch);
}

TEST(a_rate_is_that_of_the_last_seconds)
{
    for (int i = 0; i < 20; i++)
        settle();
    drift_ppm = 100;
    settle();
    const uint64_t slower = SECOND_NS * TICKS_PER_NS - oteli_clock_ticks_of_ns(SECOND_NS);
    assert_in_range(slower, 299000, 301000);
}

TEST(an_idle_hour_is_a_straight_line)
{
    settle();
    drift_ppm = 7;
    pass(HOUR_NS);
    const uint64_t stored = now_stored();
    const uint64_t wall_ns = oteli_fake_clock.wall_ns;
    pass(5 * SECOND_NS);
    oteli_clock_renew();
    assert_true(oteli_clock_to_ns(stored, oteli_clock_epoch()) - wall_ns + ERROR_NS <=
                2 * ERROR_NS);
    assert_exact(ERROR_NS);
}

static uint64_t stored_meanwhile;
static uint64_t ns_meanwhile;

static void convert_later(void)
{
    pass(SECOND_NS / 5);
    stored_meanwhile = now_stored();
    ns_meanwhile = oteli_clock_to_ns(stored_meanwhile, oteli_clock_epoch());
}

/* The thread that has read the clocks waits for its core, and others go on: that is no counter that
 * began anew. */
TEST(a_reading_that_waits)
{
    for (unsigned way = 0; way < 2; way++) {
        start_counter(state);
        settle();
        const uint32_t epoch = oteli_clock_epoch();
        pass(SECOND_NS);
        const uint64_t before = now_stored();
        const uint64_t before_wall_ns = oteli_fake_clock.wall_ns;
        oteli_fake_clock.meanwhile = convert_later;
        if (way == 0)
            oteli_clock_renew();
        else
            (void)oteli_clock_to_ns(now_stored(), epoch);
        assert_int_equal(oteli_clock_epoch(), epoch);
        assert_true(oteli_clock_to_ns(stored_meanwhile, epoch) == ns_meanwhile);
        assert_true(oteli_clock_to_ns(before, epoch) - before_wall_ns + FIRST_ERROR_NS <=
                    2 * FIRST_ERROR_NS);
    }
}

/* A trace that is open over a suspend lasts as long as it did on the wall. */
TEST(suspends)
{
    for (int counter = GOES_ON; counter <= BEGINS_ANEW; counter++) {
        for (unsigned renewals_after = 0; renewals_after < 2; renewals_after++) {
            start_counter(state);
            settle();
            const uint32_t epoch = oteli_clock_epoch();
            const uint64_t start_wall_ns = oteli_fake_clock.wall_ns;
            const uint64_t start = now_stored();
            pass(SECOND_NS);
            oteli_clock_renew();
            suspend(HOUR_NS, (enum counter_in_suspend)counter);
            pass(SECOND_NS);
            for (unsigned i = 0; i < renewals_after; i++)
                oteli_clock_renew();
            pass(SECOND_NS);
            const uint64_t end = now_stored();
            oteli_clock_renew();

            const uint64_t start_ns = oteli_clock_to_ns(start, epoch);
            const uint64_t end_ns = oteli_clock_to_ns(end, epoch);
            assert_true(start_ns - start_wall_ns + ERROR_NS <= 2 * ERROR_NS);
            assert_true(end_ns - start_ns - HOUR_NS - 3 * SECOND_NS + 2 * ERROR_NS <= 4 * ERROR_NS);
            assert_exact(ERROR_NS);
            pass(20 * SECOND_NS);
            oteli_clock_renew();
            assert_exact(ERROR_NS);
        }
    }
}

/* Parents around children, all in one epoch, with a step and a suspend at each renewal. */
TEST(a_span_that_is_open_over_all_of_it)
{
    settle();
    const uint32_t epoch = oteli_clock_epoch();
    const uint64_t parent_start = now_stored();
    uint64_t first_ns = 0;
    uint64_t last_ns = 0;
    for (int i = 0; i < RENEWALS; i++) {
        pass(1000);
        const uint64_t start_ns = oteli_clock_to_ns(now_stored(), epoch);
        step((i % 3 - 1) * (int64_t)HOUR_NS + i);
        if (i % 10 == 0)
            suspend(SECOND_NS, i % 20 == 0 ? GOES_ON : STANDS_STILL);
        pass(SECOND_NS);
        oteli_clock_renew();
        const uint64_t end_ns = oteli_clock_to_ns(now_stored(), epoch);
        assert_true(start_ns < end_ns && start_ns > last_ns);
        first_ns = first_ns == 0 ? start_ns : first_ns;
        last_ns = end_ns;
    }
    pass(1000);
    assert_true(oteli_clock_epoch() - epoch >= RENEWALS / 2);
    assert_true(oteli_clock_to_ns(parent_start, epoch) < first_ns);
    assert_true(oteli_clock_to_ns(now_stored(), epoch) > last_ns);
}

TEST(after_a_rest_a_step_is_put_right)
{
    settle();
    (void)oteli_clock_to_ns(now_stored(), oteli_clock_epoch());
    const uint32_t used = oteli_clock_epoch();
    oteli_clock_rest();
    const uint32_t epoch = oteli_clock_epoch();
    assert_int_equal(epoch, used + 1);

    pass(SECOND_NS);
    step(-(int64_t)HOUR_NS);
    suspend(5 * HOUR_NS, STANDS_STILL);
    const uint64_t start = now_stored();
    const uint64_t wall_ns = oteli_fake_clock.wall_ns;
    pass(SECOND_NS);
    oteli_clock_renew();

    assert_int_equal(oteli_clock_epoch(), epoch);
    assert_true(oteli_clock_to_ns(start, epoch) - wall_ns + ERROR_NS <= 2 * ERROR_NS);
    oteli_clock_rest();
    oteli_clock_rest(); /* nothing has used the new epoch: no other is needed */
    assert_int_equal(oteli_clock_epoch(), epoch + 1);
}

TEST(after_a_rest_what_was_converted_stays)
{
    oteli_clock_rest();
    const uint32_t epoch = oteli_clock_epoch();
    pass(1000);
    const uint64_t stored = now_stored();
    const uint64_t ns = oteli_clock_to_ns(stored, epoch);
    step((int64_t)HOUR_NS);
    oteli_clock_renew();
    assert_int_equal(oteli_clock_epoch(), epoch + 1);
    assert_true(oteli_clock_to_ns(stored, epoch) == ns);
}

static uint64_t seed;

static uint64_t random_below(uint64_t limit)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % limit;
}

static void something_happens(void)
{
    static const int64_t steps_ns[] = {1, -1, 600, -600, 1000000, -1000000, YEAR_NS, -YEAR_NS};
    switch (random_below(8)) {
    case 0:
        step(steps_ns[random_below(8)] * (int64_t)(1 + random_below(9)));
        break;
    case 1:
        suspend(1 + random_below(100 * SECOND_NS),
                (enum counter_in_suspend)random_below(oteli_fake_clock.ticks > LONG_AWAKE ? 3 : 2));
        break;
    case 2:
        drift_ppm = (int64_t)random_below(1001) - 500;
        break;
    case 3:
        oteli_clock_rest();
        break;
    default:
        oteli_clock_renew();
        break;
    }
    if (oteli_fake_clock.wall_ns - WALL_NS + 100 * (uint64_t)YEAR_NS > 150 * (uint64_t)YEAR_NS)
        oteli_fake_clock.wall_ns = WALL_NS;
}

/* Nested spans; anything happens at any moment between, except that a counter does not begin
 * anew soon after it did, and that this is noticed before the next span. */
TEST(storms)
{
    seed = 42;
    for (int i = 0; i < STORMS; i++) {
        uint64_t starts[DEPTH];
        uint64_t ends_ns[DEPTH];
        uint64_t children_ns[DEPTH];
        if (random_below(100) == 0)
            pass(HOUR_NS);
        const uint64_t before = oteli_fake_clock.ticks;
        oteli_clock_renew();
        const uint32_t epoch = oteli_clock_epoch();
        for (int depth = 0; depth < DEPTH; depth++) {
            starts[depth] = now_stored();
            pass(random_below(SECOND_NS / 100));
            something_happens();
            if (oteli_fake_clock.ticks < before)
                oteli_clock_renew();
        }
        for (int depth = DEPTH - 1; depth >= 0; depth--) {
            const uint64_t end = now_stored();
            pass(random_below(2000));
            if (random_below(2) == 0)
                oteli_clock_renew();
            ends_ns[depth] = oteli_clock_to_ns(end, epoch);
            children_ns[depth] = oteli_clock_to_ns(starts[depth], epoch);
            assert_true(ends_ns[depth] >= children_ns[depth]);
            if (depth != DEPTH - 1)
                assert_true(children_ns[depth] <= children_ns[depth + 1] &&
                            ends_ns[depth] >= ends_ns[depth + 1]);
            assert_true(oteli_clock_to_ns(end, epoch) == ends_ns[depth]);
        }
        drift_ppm = random_below(4) == 0 ? 0 : drift_ppm;
    }
}

/* ---- real clocks
 * ---------------------------------------------------------------------------------- */

TEST_WITH(NULL, NULL, real_clocks_go_forward)
{
    static const char *const wishes[] = {"auto", "tsc", "monotonic", "coarse"};
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        const char *refused = oteli_clock_start(wishes[i]);
        assert_true(refused == NULL || i == 1);
        const uint32_t epoch = oteli_clock_epoch();
        uint64_t before = oteli_ticks();
        uint64_t before_ns = oteli_clock_to_ns(before | OTELI_TICKS_BIT, epoch);
        assert_true((before & OTELI_TICKS_BIT) == 0);
        assert_true(before_ns > WALL_NS);
        for (int k = 0; k < 1000; k++) {
            const uint64_t ticks = oteli_ticks();
            const uint64_t ns = oteli_clock_to_ns(ticks | OTELI_TICKS_BIT, epoch);
            assert_true(ticks >= before && ns >= before_ns);
            before = ticks;
            before_ns = ns;
        }
        oteli_clock_renew();
        assert_true(oteli_clock_to_ns(before | OTELI_TICKS_BIT, epoch) == before_ns);
    }
}

TEST_WITH(NULL, NULL, a_counter_is_used_where_it_is_trusted)
{
    const char *distrust = oteli_clock_counter_distrust();
    assert_ptr_equal(oteli_clock_start("tsc"), distrust);
    assert_int_equal(oteli_clock.source,
                     distrust == NULL ? OTELI_CLOCK_COUNTER : OTELI_CLOCK_MONOTONIC);
    assert_null(oteli_clock_start("auto"));
    assert_int_equal(oteli_clock.source,
                     distrust == NULL ? OTELI_CLOCK_COUNTER : OTELI_CLOCK_MONOTONIC);
    assert_null(oteli_clock_start("monotonic"));
    assert_int_equal(oteli_clock.source, OTELI_CLOCK_MONOTONIC);
    assert_null(oteli_clock_start("coarse"));
    assert_int_equal(oteli_clock.source, OTELI_CLOCK_COARSE);
}

enum { THREADS = 3, TIMES = 20000, CHILDREN = 30, CHILD_MAY_TAKE_S = 60 };

struct converted {
    uint64_t stored[TIMES];
    uint64_t ns[TIMES];
    uint32_t epoch;
    bool is_ordered;
};

static struct converted converted[THREADS];
static uint32_t stop;

static void *convert(void *argument)
{
    struct converted *mine = argument;
    mine->epoch = oteli_clock_epoch();
    mine->is_ordered = true;
    for (size_t i = 0; i < TIMES; i++) {
        mine->stored[i] = oteli_ticks() | OTELI_TICKS_BIT;
        mine->ns[i] = oteli_clock_to_ns(mine->stored[i], mine->epoch);
        if (i != 0 && mine->ns[i] < mine->ns[i - 1])
            mine->is_ordered = false;
    }
    return NULL;
}

static void *renew(void *argument)
{
    (void)argument;
    while (oteli_load_acquire_32(&stop) == 0) {
        oteli_clock_renew();
        oteli_clock_rest();
    }
    return NULL;
}

static pthread_t start_renewing(void)
{
    pthread_t thread;
    oteli_store_release_32(&stop, 0);
    assert_int_equal(pthread_create(&thread, NULL, renew, NULL), 0);
    return thread;
}

static void stop_renewing(pthread_t thread)
{
    oteli_store_release_32(&stop, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

TEST_WITH(NULL, NULL, threads_agree)
{
    static const char *const wishes[] = {"auto", "monotonic", "coarse"};
    for (size_t wish = 0; wish < sizeof wishes / sizeof wishes[0]; wish++) {
        pthread_t threads[THREADS];
        assert_null(oteli_clock_start(wishes[wish]));
        const pthread_t renewing = start_renewing();
        for (size_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, convert, &converted[i]), 0);
        for (size_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        stop_renewing(renewing);

        for (size_t i = 0; i < THREADS; i++) {
            const struct converted *of = &converted[i];
            assert_true(of->is_ordered);
            for (size_t k = 0; k < TIMES; k++)
                assert_true(oteli_clock_to_ns(of->stored[k], of->epoch) == of->ns[k]);
        }
    }
}

static int live_as_child(void)
{
    alarm(CHILD_MAY_TAKE_S); /* one that waits for ever is killed */
    for (int i = 0; i < 3; i++) {
        oteli_clock_renew();
        if (oteli_clock_to_ns(oteli_ticks() | OTELI_TICKS_BIT, oteli_clock_epoch()) == 0)
            return 1;
    }
    oteli_clock_forget(); /* as common/os/fork.c does before any start in a child */
    if (oteli_clock_start("auto") != NULL)
        return 2;
    const uint32_t epoch = oteli_clock_epoch();
    const uint64_t start = oteli_clock_to_ns(oteli_ticks() | OTELI_TICKS_BIT, epoch);
    return oteli_clock_to_ns(oteli_ticks() | OTELI_TICKS_BIT, epoch) < start ? 3 : 0;
}

TEST_WITH(NULL, NULL, a_child_waits_for_nobody)
{
    assert_null(oteli_clock_start("auto"));
    const pthread_t renewing = start_renewing();
    for (int i = 0; i < CHILDREN; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(live_as_child());
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    stop_renewing(renewing);
}
