/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/handle_test.c - specification of api/handle.h. */
#include "api/handle.h"
#include "api/tracestate.h"
#include "tests/support/unit.h"
#include <otel/thread_context.h>

TEST(each_part_of_a_handle_comes_back_and_touches_no_other)
{
    static const uint8_t flags[] = {0, 1, 2, 3, 0xff};
    static const uint32_t numbers[] = {0, 1, 0x55555, 0xaaaaa, OTELI_SLOT_MAX};
    static const uint32_t tracestates[] = {0, 1, 0x555555, 0xaaaaaa, 0xffffff};
    for (size_t f = 0; f < sizeof flags; f++) {
        for (size_t s = 0; s < 5; s++) {
            for (size_t t = 0; t < 5; t++) {
                const uint64_t ref = oteli_ref_make(flags[f], OTELI_PLACE_DETACHED, true,
                                                    numbers[s], tracestates[t]);

                assert_int_equal(oteli_ref_flags(ref), flags[f] & 3);
                assert_int_equal(oteli_ref_place(ref), OTELI_PLACE_DETACHED);
                assert_int_equal(oteli_ref_slot(ref), numbers[s]);
                assert_int_equal(oteli_ref_tracestate(ref), tracestates[t]);
                assert_false(oteli_ref_is_remote(ref));
                assert_true(oteli_ref_is_remote(ref | OTELI_REF_REMOTE));
                assert_int_equal(oteli_ref_slot(ref | OTELI_REF_REMOTE), numbers[s]);
            }
        }
    }
}

TEST(a_handle_of_a_span_with_nothing_unusual_is_a_record)
{
    const uint64_t ref = oteli_ref_make(3, OTELI_PLACE_LOCAL, true, OTELI_SLOT_MAX, 0);
    const uint64_t others =
        OTELI_REF_REMOTE | OTELI_REF_HELD | OTELI_REF_ATTACHED | OTELI_REF_DEBUG | OTELI_REF_HOLDER;
    const otel_span span = {{1, 2, 3, ref | others}};
    otel_thread_context_record record;
    memcpy(&record, &span, sizeof record);

    assert_true(oteli_ref_is_record(span.opaque[3]));
    assert_int_equal(record.valid, 1);
    assert_int_equal(record.trace_flags, 3);
    assert_int_equal(record.attributes_size, 0);
    assert_memory_equal(record.trace_id, &span.opaque[0], sizeof record.trace_id);
    assert_memory_equal(record.span_id, &span.opaque[2], sizeof record.span_id);
    static const uint64_t unlike[] = {OTELI_REF_LONE, OTELI_REF_COLLECTED, OTELI_REF_DEFERRED};
    for (size_t i = 0; i < sizeof unlike / sizeof unlike[0]; i++)
        assert_false(oteli_ref_is_record(ref | unlike[i]));
    for (unsigned bit = 0; bit < 24; bit++)
        assert_false(oteli_ref_is_record(ref | oteli_ref_of_tracestate(UINT32_C(1) << bit)));
    assert_false(oteli_ref_is_record(0));
}

TEST(every_place_has_a_number_of_its_own)
{
    for (unsigned place = OTELI_PLACE_NOWHERE; place <= OTELI_PLACE_DETACHED; place++) {
        const uint64_t ref =
            oteli_ref_make(0, (enum oteli_span_place)place, false, OTELI_SLOT_MAX, OTELI_SLOT_MAX);
        assert_int_equal(oteli_ref_place(ref), place);
    }
}

TEST(a_handle_is_valid_with_both_ids_only)
{
    assert_false(oteli_span_is_valid(&(otel_span){{0, 0, 0, UINT64_MAX}}));
    assert_false(oteli_span_is_valid(&(otel_span){{1, 1, 0, 0}}));
    assert_false(oteli_span_is_valid(&(otel_span){{0, 0, 1, 0}}));
    assert_true(oteli_span_is_valid(&(otel_span){{1, 0, 1, 0}}));
    assert_true(oteli_span_is_valid(&(otel_span){{0, 1, 1, 0}}));
}
