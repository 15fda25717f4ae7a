/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/trampolines_unwiped_test.c - that the wipe matters: with trampolines that are built
 * without it (OTELI_TRAMPOLINE_KEEPS_MARKER), the records of functions that have returned are
 * found, so the specification of the others can fail. */
#include "profiling/trampolines_shape.h"
#include "tests/support/dead_records.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_without_the_wipe_dead_records_are_found(void **state)
{
    (void)state;
    if (OTELI_HAS_TRAMPOLINES)
        assert_true(dead_records_after(dead_records_work, NULL) > 0);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(test_without_the_wipe_dead_records_are_found),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
