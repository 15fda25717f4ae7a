/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/trampolines_unwiped_test.c - that the wipe matters: with trampolines that
 * are built without it (OTELI_TRAMPOLINE_KEEPS_MARKER), the records of functions that have returned
 * are found, so the specification of the others can fail. */
#include "profiling/labels/trampolines_shape.h"
#include "tests/support/dead_records.h"
#include "tests/support/unit.h"

TEST(without_the_wipe_dead_records_are_found)
{
    if (OTELI_HAS_TRAMPOLINES)
        assert_true(dead_records_after(dead_records_work, NULL) > 0);
}
