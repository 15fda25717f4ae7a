/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/holders_test.c - specification of api/holders.h. */
#include "api/holders.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

enum { WAYS = 8 }; /* that the table has for one trace */

static struct otel_lines *holder_of(uint64_t trace)
{
    const uint64_t trace_id[2] = {trace, 1};
    struct otel_lines *hold = oteli_hold_new(oteli_self, trace_id);
    assert_non_null(hold);
    oteli_holders_add(hold);
    return hold;
}

static void decide(struct otel_lines *hold, bool kept)
{
    oteli_holders_decide(hold, kept);
    oteli_hold_leave(hold);
}

static struct otel_lines *find(uint64_t trace, uint32_t number, uint8_t *end_as)
{
    const uint64_t trace_id[2] = {trace, 1};
    *end_as = 0;
    return oteli_holders_find(trace_id, number, end_as);
}

/* A state for this thread, of the recorder's SDK. */
static int setup(void **state)
{
    recorder_setup(state);
    assert_non_null(oteli_thread_refresh());
    return 0;
}

AROUND_EACH(setup, recorder_teardown);

TEST(the_oldest_verdict_makes_room_and_what_is_undecided_stays)
{
    uint8_t end_as;
    uint32_t numbers[WAYS];
    struct otel_lines *undecided = holder_of(1);
    for (int i = 1; i < WAYS; i++) {
        struct otel_lines *hold = holder_of(1);
        numbers[i] = hold->number;
        decide(hold, false);
    }
    struct otel_lines *newest = holder_of(1);

    assert_null(find(1, numbers[1], &end_as));
    assert_int_equal(end_as, 0); /* forgotten */
    assert_null(find(1, numbers[2], &end_as));
    assert_int_equal(end_as, OTELI_END_LATE);
    assert_ptr_equal(find(1, undecided->number, &end_as), undecided);

    oteli_hold_leave(undecided);
    decide(undecided, true);
    decide(newest, true);
}

TEST(a_root_that_lost_its_place_decides_nothing)
{
    uint8_t end_as;
    struct otel_lines *holds[WAYS + 1];
    for (int i = 0; i <= WAYS; i++)
        holds[i] = holder_of(1);

    assert_null(find(1, holds[0]->number, &end_as));
    assert_int_equal(end_as, 0);
    for (int i = 0; i <= WAYS; i++)
        decide(holds[i], false);

    assert_null(find(1, holds[0]->number, &end_as));
    assert_int_equal(end_as, 0);
    assert_null(find(1, holds[1]->number, &end_as));
    assert_int_equal(end_as, OTELI_END_LATE);
}

TEST(a_number_is_not_used_again_soon)
{
    struct otel_lines *first = holder_of(1);
    const uint32_t number = first->number;
    decide(first, false);
    for (int i = 0; i < OTELI_HOLDER_MAX; i++) {
        struct otel_lines *hold = holder_of(1);
        assert_int_not_equal(hold->number, number);
        assert_in_range(hold->number, 0, OTELI_HOLDER_MAX);
        decide(hold, true);
    }
}
