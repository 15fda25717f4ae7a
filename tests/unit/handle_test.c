/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/handle_test.c - specification of api/handle.h. */
#include "api/handle.h"
#include "api/tracestate.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_each_part_of_a_handle_comes_back_and_touches_no_other(void **state)
{
    (void)state;
    static const uint8_t flags[] = {0, 1, 2, 3, 0xff};
    static const uint32_t numbers[] = {0, 1, 0x55555, 0xaaaaa, OTELI_SLOT_MAX};
    for (size_t f = 0; f < sizeof flags; f++) {
        for (size_t s = 0; s < 5; s++) {
            for (size_t t = 0; t < 5; t++) {
                const uint64_t ref =
                    oteli_ref_make(flags[f], OTELI_PLACE_DETACHED, true, numbers[s], numbers[t]);

                assert_int_equal(oteli_ref_flags(ref), flags[f] & 3);
                assert_int_equal(oteli_ref_place(ref), OTELI_PLACE_DETACHED);
                assert_int_equal(oteli_ref_slot(ref), numbers[s]);
                assert_int_equal(oteli_ref_tracestate(ref), numbers[t]);
                assert_false(oteli_ref_is_remote(ref));
                assert_true(oteli_ref_is_remote(ref | OTELI_REF_REMOTE));
                assert_int_equal(oteli_ref_slot(ref | OTELI_REF_REMOTE), numbers[s]);
            }
        }
    }
}

static void test_every_place_has_a_number_of_its_own(void **state)
{
    (void)state;
    for (unsigned place = OTELI_PLACE_NOWHERE; place <= OTELI_PLACE_DETACHED; place++) {
        const uint64_t ref =
            oteli_ref_make(0, (enum oteli_span_place)place, false, OTELI_SLOT_MAX, OTELI_SLOT_MAX);
        assert_int_equal(oteli_ref_place(ref), place);
    }
}

static void test_a_handle_is_valid_with_both_ids_only(void **state)
{
    (void)state;
    assert_false(oteli_span_is_valid(&(otel_span){{0, 0, 0, UINT64_MAX}}));
    assert_false(oteli_span_is_valid(&(otel_span){{1, 1, 0, 0}}));
    assert_false(oteli_span_is_valid(&(otel_span){{0, 0, 1, 0}}));
    assert_true(oteli_span_is_valid(&(otel_span){{1, 0, 1, 0}}));
    assert_true(oteli_span_is_valid(&(otel_span){{0, 1, 1, 0}}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_part_of_a_handle_comes_back_and_touches_no_other),
        cmocka_unit_test(test_every_place_has_a_number_of_its_own),
        cmocka_unit_test(test_a_handle_is_valid_with_both_ids_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
